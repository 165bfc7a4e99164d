//! The keys that sign the ledger's checkpoints and the records of runs: making, listing, replacing, revoking and
//! exporting them. No method returns or shows a secret half.

use quorate_diagnostics::{Body, Report};

use super::builder::Quorate;
use super::error::Error;
use super::service::keys::{self, WorkspaceKeys, change};
use super::service::runs;
use super::service::time_text::{instant, minute};
use super::service::workspace::{self, Workspace};
use super::session::Outcome;
use super::view::{Doc, Table, Text, Tone};

pub use super::service::keys::change::{KeyInfo, KeyInit, KeyRevocation, KeyRotation, KeyVouch};
pub use super::service::keys::{KeyEntry, KeyList, KeySelector, KeyState};
pub use quorate_ledger::keys::KeyPurpose;
pub use quorate_ledger::signing::{KeyId, PublicKey};

/// The form of an exported public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyFormat {
    /// The form of keyrings.
    #[default]
    Text,
    /// The form of tools for signed notes, for the ledger's key: a name, an id, and the key.
    Note,
    /// PEM, as tools for attestations read it.
    Pem,
}

impl Quorate {
    /// The ledger's key, the one that signs records, and those of the keyring.
    ///
    /// # Errors
    /// If a file cannot be read or used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    /// use quorate::keys::KeyState;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let made = quorate.init_keys().await?;
    /// let listed = quorate.keys().await?;
    /// assert_eq!(listed.keys[1].id, made.signing.id);
    /// assert_eq!(listed.keys[1].state, KeyState::Usable);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn keys(&self) -> Result<Outcome<KeyList>, Error> {
        let (keys, _, warnings) = self.workspace_keys()?;
        Outcome::of(keys::list(&keys).await, warnings)
    }

    /// Makes missing keys, and adds the public half of the one that signs records to the keyring. Idempotent.
    ///
    /// # Errors
    /// If a file cannot be read, used or written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// let made = quorate.init_keys().await?;
    /// assert!(made.ledger.new && made.signing.new && made.added);
    /// assert!(!quorate.init_keys().await?.added);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn init_keys(&self) -> Result<Outcome<KeyInit>, Error> {
        let (keys, _, warnings) = self.workspace_keys()?;
        Outcome::of(change::init(&keys).await, warnings)
    }

    /// Replaces a key by a new one. Signatures of the old key stay valid, up to its revocation.
    ///
    /// # Errors
    /// If the key does not come from a file of this machine, a process is signing with it, or a file cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// use quorate::keys::KeyPurpose;
    ///
    /// let made = quorate.init_keys().await?;
    /// let rotation = quorate.rotate_key(KeyPurpose::Signing).await?;
    /// assert_eq!(rotation.old, Some(made.signing.id));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn rotate_key(&self, purpose: KeyPurpose) -> Result<Outcome<KeyRotation>, Error> {
        let (keys, _, warnings) = self.workspace_keys()?;
        match purpose {
            KeyPurpose::Ledger => {
                let session = self.open(runs::open(&self.environment, &self.places)).await?;
                let rotated = change::rotate_ledger(&keys, &session).await;
                session.finish(rotated).await
            }
            KeyPurpose::Signing => Outcome::of(change::rotate_signing(&keys).await, warnings),
        }
    }

    /// Makes the key that signs records vouch for another key of the keyring, which can then continue the same runs.
    /// The other key is given by its name, a prefix of it, or its text.
    ///
    /// # Errors
    /// If no key may sign now, there is no such key, or the keyring cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// use quorate::keys::KeyPurpose;
    ///
    /// let old = quorate.init_keys().await?.signing.id;
    /// let rotation = quorate.rotate_key(KeyPurpose::Signing).await?;
    /// let vouched = quorate.vouch_for_key(&old.to_string()).await?;
    /// assert_eq!((vouched.by, vouched.key), (rotation.new, old));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn vouch_for_key(&self, key: &str) -> Result<Outcome<KeyVouch>, Error> {
        let (keys, _, warnings) = self.workspace_keys()?;
        Outcome::of(change::vouch(&keys, key).await, warnings)
    }

    /// Revokes a key of the keyring from a time on, in milliseconds since the Unix epoch; 0 revokes all its signatures.
    /// `None` stands for now. A revocation that begins in the past is a warning.
    ///
    /// # Errors
    /// If there is no such key, it is revoked from an earlier time on, or the keyring cannot be written.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// let key = quorate.init_keys().await?.signing.id;
    /// let revoked = quorate.revoke_key(&key.to_string(), None)?;
    /// assert_eq!(revoked.id, key);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn revoke_key(&self, key: &str, at_ms: Option<i64>) -> Result<Outcome<KeyRevocation>, Error> {
        let (keys, _, mut warnings) = self.workspace_keys()?;
        let at_ms = at_ms.unwrap_or_else(|| keys.now_ms());
        let revoked = change::backdating_warning(&keys, key, at_ms, keys.now_ms()).and_then(|backdated| {
            warnings.absorb(backdated);
            change::revoke(&keys, key, at_ms)
        });
        Outcome::of(revoked, warnings)
    }

    /// The public half of a key, as text that ends with a line break.
    ///
    /// # Errors
    /// If there is no such key, it has no such form, or a file cannot be used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// # let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// use quorate::keys::{KeyFormat, KeySelector};
    ///
    /// let made = quorate.init_keys().await?;
    /// let key = quorate.export_key(KeySelector::Signing, KeyFormat::Pem).await?;
    /// assert!(key.starts_with("-----BEGIN PUBLIC KEY-----"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn export_key(&self, key: KeySelector, format: KeyFormat) -> Result<Outcome<String>, Error> {
        let (keys, workspace, warnings) = self.workspace_keys()?;
        let text = match format {
            KeyFormat::Text => keys::export(&keys, &key).await.map(|key| format!("{key}\n")),
            KeyFormat::Pem => keys::export(&keys, &key).await.map(|key| key.to_pem()),
            KeyFormat::Note if key == KeySelector::Ledger => {
                keys::export_note(&keys, &workspace.ledger).await.map(|line| format!("{line}\n"))
            }
            KeyFormat::Note => {
                let body = Body::new("only the ledger's key signs notes");
                let help = "write `quorate keys export ledger --format note`";
                Err(Error::usage(body.help(help)))
            }
        };
        Outcome::of(text, warnings)
    }

    fn workspace_keys(&self) -> Result<(WorkspaceKeys, Workspace, Report), Error> {
        let mut workspace = workspace::load(&self.environment, &self.places, &self.environment.directory)?;
        let warnings = std::mem::take(&mut workspace.report);
        Ok((WorkspaceKeys::of(&self.environment, &workspace), workspace, warnings))
    }
}

/// The beginning of a key's name, which people recognize it by.
fn short(id: KeyId) -> String {
    id.to_string().chars().take(12).collect()
}

fn signed_by(purpose: KeyPurpose) -> &'static str {
    match purpose {
        KeyPurpose::Ledger => "checkpoints",
        KeyPurpose::Signing => "records",
    }
}

impl KeyList {
    /// The keys as a table.
    pub fn doc(&self) -> Doc {
        let row = |key: &KeyEntry| -> [Text; 6] {
            let state = match key.state {
                KeyState::Usable => "usable",
                KeyState::NotYet => "not yet",
                KeyState::Expired => "expired",
                KeyState::Revoked => "revoked",
                KeyState::Retired => "retired",
                KeyState::Unlisted => "not in the keyring",
            };
            let tone = if key.state == KeyState::Usable { Tone::Good } else { Tone::Absent };
            let until = key.revoked_at_ms.into_iter().chain(key.not_after_ms).min();
            [
                Text::strong(short(key.id)),
                key.purpose.map_or("", signed_by).into(),
                Text::toned(tone, state),
                until.map(minute).unwrap_or_default().into(),
                key.label.clone().unwrap_or_default().into(),
                key.from.clone().unwrap_or_default().into(),
            ]
        };
        let mut doc = Doc::new();
        let table = Table::new(["key", "signs", "state", "until", "who", "where"]);
        doc.table(table.with_rows(self.keys.iter().map(row)));
        doc.line(match &self.unsigned {
            Some(reason) => format!("Records are not signed: {reason}."),
            None => format!("The keyring is {}.", self.keyring),
        });
        doc
    }
}

impl KeyInit {
    /// The keys, and what to do with them.
    pub fn doc(&self) -> Doc {
        let fact = |is_new, word: &'static str, text: String| (if is_new { word } else { "exists" }, text);
        let key = |key: &KeyInfo, signs| {
            fact(key.new, "new", format!("{} signs {signs}: {}", short(key.id), key.from))
        };
        let keyring = format!("{} to the keyring: {}", short(self.signing.id), self.keyring);
        let mut doc = Doc::new();
        doc.facts([
            key(&self.ledger, "checkpoints"),
            key(&self.signing, "records"),
            fact(self.added, "added", keyring),
        ]);
        if self.added {
            doc.line("Commit the keyring. Copy the secret keys to a backup, and to no other place.");
        }
        doc
    }
}

impl KeyRotation {
    /// The old and the new key.
    pub fn doc(&self) -> Doc {
        let (new, signs) = (short(self.new), signed_by(self.purpose));
        let mut doc = Doc::new();
        let Some(old) = self.old.map(short) else {
            doc.line(format!(
                "{new} signs {signs} from now on. No earlier key vouches for it: send the new key to everyone who \
                 verifies the ledger."
            ));
            return doc;
        };
        doc.line(format!("{new} follows {old} and signs {signs}."));
        doc.line(match (self.purpose, self.revoked_at_ms) {
            (KeyPurpose::Ledger, _) => {
                "Signatures of the old key stay valid, and it vouches for the new one.".to_owned()
            }
            (KeyPurpose::Signing, None) => {
                format!("Signatures of the old key stay valid. Commit {}.", self.keyring)
            }
            (KeyPurpose::Signing, Some(at_ms)) => format!(
                "The old key is revoked: its signatures from {} on are invalid, and it does not vouch for the new one. \
                 Commit {}.",
                instant(at_ms),
                self.keyring
            ),
        });
        doc
    }
}

impl KeyVouch {
    /// The vouching and the vouched key.
    pub fn doc(&self) -> Doc {
        let (by, key) = (short(self.by), short(self.key));
        let mut doc = Doc::new();
        doc.line(format!(
            "{by} vouches for {key}, which can continue the runs that {by} signs. Commit {}.",
            self.keyring
        ));
        doc
    }
}

impl KeyRevocation {
    /// The revoked key, and the time of its revocation.
    pub fn doc(&self) -> Doc {
        let (id, at) = (short(self.id), instant(self.revoked_at_ms));
        let mut doc = Doc::new();
        doc.line(format!(
            "{id} is revoked: its signatures from {at} on are invalid. Commit {}.",
            self.keyring
        ));
        doc
    }
}
