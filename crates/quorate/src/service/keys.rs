//! Keys: their locations, listing them, and finding the key that signs records (D3, D10): in a variable, at the place
//! that quorate.toml names, or in a file beside the ledger. `keys/change.rs` makes, replaces and revokes keys, and
//! `signer.rs` decides which key signs a run.
//!
//! A key is never printed, and no message quotes what was read.

pub(crate) mod change;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::clock::as_optional_rfc3339;
use quorate_ledger::Store;
use quorate_ledger::keys::{self, KeyDirectory, KeyFileError, KeyPurpose};
use quorate_ledger::note::Verifier;
use quorate_ledger::signing::{
    self, ExternalKeys, KeyId, Keyring, PublicKey, RejectedSignature, SecretKey, Voucher,
};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::{self, KeySource};
use quorate_manifest::keyring::{self, Key};
use serde::Serialize;
use tokio::sync::OnceCell;
use zeroize::Zeroizing;

use super::disk::{self, Disk, absolute, display_path};
use super::environment::Environment;
use super::error::{Error, ErrorKind, error_chain};
use super::trust::requests::TrustRequest;
use super::workspace::{self, Workspace};
use super::{guard, trust};

/// Locations of a workspace's keys and of its ledger's keys.
#[derive(Clone)]
pub struct WorkspaceKeys {
    pub(super) environment: Environment,
    settings: config::Keys,
    root: PathBuf,
    /// The ledger's own directory.
    ledger_dir: PathBuf,
    /// The key that signs records, cached: the command that prints it may prompt the user.
    pub(super) signing_key: Arc<OnceCell<SigningKey>>,
}

/// The workspace's keyring file.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyringFile {
    /// Its text; `None` if the file does not exist.
    pub text: Option<Arc<str>>,
    /// Its keys, in the order of the file.
    pub keys: Vec<Key>,
}

/// A secret key, or the reason why it is missing.
#[derive(Debug, Clone)]
pub(crate) enum SigningKey {
    /// A key, and where it comes from, for people.
    Available(Arc<SecretKey>, String),
    Missing(String),
}

impl WorkspaceKeys {
    pub fn of(environment: &Environment, workspace: &Workspace) -> WorkspaceKeys {
        let root = workspace.config_path.as_deref().and_then(Path::parent).unwrap_or(&workspace.council.dir);
        WorkspaceKeys {
            environment: environment.clone(),
            settings: workspace.config.keys.clone(),
            root: absolute(&environment.directory, root),
            ledger_dir: workspace.ledger.dir().to_owned(),
            signing_key: Arc::default(),
        }
    }

    /// The setting `[keys] sign`.
    pub fn signing_mode(&self) -> quorate_manifest::assembly::Signing {
        self.settings.sign
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of secret keys.
    pub fn directory(&self) -> KeyDirectory {
        KeyDirectory::new(&self.ledger_dir)
    }

    /// The settings' file.
    fn config_path(&self) -> PathBuf {
        self.root.join("quorate.toml")
    }

    pub fn keyring_path(&self) -> PathBuf {
        guard::keyring_of(&self.root, &self.settings)
    }

    /// The keyring's path as shown to the user.
    fn shown_keyring(&self) -> String {
        self.display_path(&self.keyring_path())
    }

    /// A file's path as shown to the user.
    pub fn display_path(&self, path: &Path) -> String {
        display_path(&self.environment, path)
    }

    pub fn now_ms(&self) -> i64 {
        self.environment.clock.now_ms()
    }

    /// Reads the keyring; a missing file is empty.
    ///
    /// # Errors
    /// If it is refused.
    pub(crate) fn load_keyring(&self) -> Result<KeyringFile, Error> {
        let path = self.keyring_path();
        let read = match disk::leads_out(&self.root, &path) {
            true => Err(std::io::Error::other("it leads out of its workspace")),
            false => disk::read_text(&path),
        };
        let text = read.map_err(|error| {
            let body = Body::new(format!("cannot read the keyring {}: {error}", self.display_path(&path)));
            Error::configuration(
                codes::KEYRING_INVALID,
                body.help("restore the file; the keyring is a text file"),
            )
        })?;
        let Some(text) = text else { return Ok(KeyringFile::default()) };
        let loaded = keyring::load(&path, &self.display_path(&path), &Disk, &*self.environment.registries);
        match loaded.value {
            Some(keys) => Ok(KeyringFile { text: Some(text.into()), keys }),
            None => Err(Error::from_report(ErrorKind::Configuration, loaded.report)),
        }
    }

    /// A refusal about a key file.
    fn to_error(&self, error: &KeyFileError) -> Error {
        let text = |path: &Path| self.display_path(path);
        let (code, message, help) = match error {
            KeyFileError::Exposed { path, mode } => (
                codes::KEY_EXPOSED,
                format!(
                    "{} has the permissions {mode:04o}, so other users can read the secret key",
                    text(path)
                ),
                format!(
                    "chmod go-rwx {}; and if another user may have read it, run `quorate keys rotate` after that",
                    text(path)
                ),
            ),
            KeyFileError::NotAKey { path, source } => (
                codes::KEY_UNUSABLE,
                format!("cannot read a secret key from {}: {source}", text(path)),
                "restore the key, or move the file away and run `quorate keys init`".to_owned(),
            ),
            KeyFileError::AlreadyExists { path } => (
                codes::KEY_UNUSABLE,
                format!("{} already exists, and keys are never overwritten", text(path)),
                "run `quorate keys rotate` to replace it".to_owned(),
            ),
            KeyFileError::Missing { path } => (
                codes::KEY_UNKNOWN,
                format!("{} does not exist", text(path)),
                "run `quorate keys init` to make it".to_owned(),
            ),
            KeyFileError::Io { .. } => (
                codes::KEY_UNUSABLE,
                error_chain(error),
                "keep keys in `keys/` beside the ledger, readable by their owner alone".to_owned(),
            ),
        };
        Error::configuration(code, Body::new(message).help(help))
    }

    /// The keys and vouchers known outside of the ledger, which check signatures before and after they are made.
    ///
    /// # Errors
    /// If the keyring is refused.
    pub fn trusted_keys(&self) -> Result<ExternalKeys, Error> {
        let ring = self.load_keyring()?.keys;
        let directory = self.directory();
        let signing = directory.load(KeyPurpose::Signing).ok().flatten().map(|key| key.public());
        Ok(ExternalKeys {
            keyring: (!ring.is_empty()).then(|| to_keyring(&ring)),
            signers: signing
                .into_iter()
                .chain(directory.retired(KeyPurpose::Signing).unwrap_or_default())
                .collect(),
        })
    }
}

/// The vouchers of a keyring whose keys could vouch at the time.
pub(super) fn vouchers(keys: &[Key]) -> Vec<Voucher> {
    let judge = to_keyring(keys);
    let all = keys
        .iter()
        .flat_map(|key| key.vouchers.iter().map(|voucher| Voucher::from_text(&key.public, voucher)));
    let might = |voucher: &Voucher| {
        let (Ok(by), Some(at_ms)) =
            (KeyId::from_text(&voucher.by), quorate_manifest::timestamp::parse(&voucher.at))
        else {
            return false;
        };
        judge.get(by).is_none() || judge.may_sign(by, at_ms).is_ok()
    };
    all.flatten().filter(might).collect()
}

/// A public key of a keyring that was read.
pub(super) fn public_key(key: &Key) -> Option<PublicKey> {
    PublicKey::from_text(&key.public).ok()
}

/// The keys, in the form that verification reads.
pub(crate) fn to_keyring(keys: &[Key]) -> Keyring {
    let mut ring = Keyring::new();
    for key in keys {
        let Some(public) = public_key(key) else { continue };
        // A key whose bounds cross, because two keyrings bound it, is ignored; so is a key outside the ring.
        let _ = ring.insert(signing::KeyringEntry {
            public,
            not_before_ms: key.not_before_ms,
            not_after_ms: key.not_after_ms,
            revoked_at_ms: key.revoked_at_ms,
        });
    }
    ring
}

/// Why a key may not sign, for people.
pub(crate) fn unusable_reason(ring: &Keyring, id: KeyId, at_ms: i64) -> Option<String> {
    Some(match ring.may_sign(id, at_ms).err()? {
        RejectedSignature::Revoked { revoked_at_ms, .. } => {
            format!("the key {id} is revoked since {}", quorate_manifest::timestamp::format(revoked_at_ms))
        }
        why => why.to_string(),
    })
}

/// The variable that overrides all other sources.
const VARIABLE: &str = "QUORATE_SIGNING_KEY";
/// The deadline of a command that prints the key: it may prompt a person.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

impl WorkspaceKeys {
    /// The key that signs records.
    ///
    /// # Errors
    /// If a key exists but is unusable: it is malformed, or others can read it.
    pub(crate) async fn signing_key(&self) -> Result<SigningKey, Error> {
        self.signing_key.get_or_try_init(|| find(self)).await.cloned()
    }

    /// The key that signs records, if no command has to print it.
    ///
    /// # Errors
    /// As [`WorkspaceKeys::signing_key`].
    pub(crate) fn signing_key_without_command(&self) -> Result<Option<SigningKey>, Error> {
        Ok(match self.key_command() {
            Some(_) => None,
            None => Some(find_without_command(self)?),
        })
    }

    /// The command that prints the key, unless the variable overrides it.
    fn key_command(&self) -> Option<&[String]> {
        match &self.settings.signing {
            Some((KeySource::Command(command), _)) if variable(self, VARIABLE).is_none() => Some(command),
            _ => None,
        }
    }
}

async fn find(all: &WorkspaceKeys) -> Result<SigningKey, Error> {
    let Some(command) = all.key_command() else { return find_without_command(all) };
    let need = TrustRequest {
        file: all.config_path(),
        acts: vec![process::command_side_effect(command, &all.root)],
    };
    let from = format!("the command `{}`", command.first().map_or("", String::as_str));
    if let Some(why) = untrusted(all, need)? {
        return Ok(SigningKey::Missing(format!("{from} was not run, since {why}")));
    }
    match process::run_command(command, &all.root, String::new(), COMMAND_TIMEOUT).await {
        Ok(text) => from_text(&Zeroizing::new(text), from),
        // Its output may contain the key.
        Err(_) => Ok(SigningKey::Missing(format!("{from} failed; try it by hand"))),
    }
}

fn find_without_command(all: &WorkspaceKeys) -> Result<SigningKey, Error> {
    if let Some(text) = variable(all, VARIABLE) {
        return from_text(&text, format!("the variable {VARIABLE}"));
    }
    match all.settings.signing.as_ref().map(|(source, _)| source) {
        Some(KeySource::Env(name)) => match variable(all, name) {
            Some(text) => from_text(&text, format!("the variable {name}")),
            None => Ok(SigningKey::Missing(format!("the variable {name} is not set"))),
        },
        Some(KeySource::File(path)) => {
            let path = absolute(&all.root, path.as_ref());
            match refuse_outside(all, &path)? {
                Some(missing) => Ok(missing),
                None => from_file(all, &path, keys::read(&path)),
            }
        }
        Some(KeySource::Command(_)) | None => {
            let directory = all.directory();
            from_file(all, &directory.key_path(KeyPurpose::Signing), directory.load(KeyPurpose::Signing))
        }
    }
}

/// Why an untrusted source is not used. Listing keys and optional signing continue without it.
fn untrusted(all: &WorkspaceKeys, need: TrustRequest) -> Result<Option<String>, Error> {
    match trust::admit(&all.environment, vec![need]) {
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Untrusted => Ok(Some(error.first_message())),
        Err(error) => Err(error),
    }
}

/// Why a key outside of the workspace is not used: it may be the same person's key for another purpose.
fn refuse_outside(all: &WorkspaceKeys, path: &std::path::Path) -> Result<Option<SigningKey>, Error> {
    let Some(act) = workspace::of_key(&all.root, path) else { return Ok(None) };
    let why = untrusted(all, TrustRequest { file: all.config_path(), acts: vec![act] })?;
    Ok(why.map(|why| SigningKey::Missing(format!("{} was not read, since {why}", all.display_path(path)))))
}

fn from_file(
    all: &WorkspaceKeys,
    path: &std::path::Path,
    read: Result<Option<SecretKey>, keys::KeyFileError>,
) -> Result<SigningKey, Error> {
    let shown = all.display_path(path);
    Ok(match read.map_err(|error| all.to_error(&error))? {
        Some(key) => SigningKey::Available(Arc::new(key), shown),
        None => SigningKey::Missing(format!("{shown} does not exist")),
    })
}

fn variable(all: &WorkspaceKeys, name: &str) -> Option<Zeroizing<String>> {
    let text = all.environment.variables.get(name).filter(|text| !text.is_empty())?;
    Some(Zeroizing::new(text.to_owned()))
}

fn from_text(text: &str, from: String) -> Result<SigningKey, Error> {
    match SecretKey::from_text(text) {
        Ok(key) => Ok(SigningKey::Available(Arc::new(key), from)),
        Err(error) => {
            let body = Body::new(format!("cannot read a secret key from {from}: {error}"));
            Err(Error::configuration(
                codes::KEY_UNUSABLE,
                body.help("pass a single line in the format of the files in `keys/`"),
            ))
        }
    }
}

/// A listed key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyEntry {
    /// Its name.
    pub id: KeyId,
    /// Its public half.
    pub public: PublicKey,
    /// The purpose of its secret half, if that is on this machine.
    #[serde(rename = "signs")]
    pub purpose: Option<KeyPurpose>,
    /// Whether it may sign.
    pub state: KeyState,
    /// Its label in the keyring.
    pub label: Option<String>,
    /// The source of its secret half, for people.
    pub from: Option<String>,
    /// The time from which its signatures count, in milliseconds since the Unix epoch.
    #[serde(rename = "not_before", serialize_with = "as_optional_rfc3339")]
    pub not_before_ms: Option<i64>,
    /// The time until which they count.
    #[serde(rename = "not_after", serialize_with = "as_optional_rfc3339")]
    pub not_after_ms: Option<i64>,
    /// The time from which it is revoked.
    #[serde(rename = "revoked_at", serialize_with = "as_optional_rfc3339")]
    pub revoked_at_ms: Option<i64>,
}

impl KeyEntry {
    fn new(
        public: PublicKey,
        purpose: Option<KeyPurpose>,
        state: KeyState,
        listed: Option<&Key>,
    ) -> KeyEntry {
        KeyEntry {
            id: public.id(),
            public,
            purpose,
            state,
            label: listed.and_then(|key| key.label.clone()),
            from: None,
            not_before_ms: listed.and_then(|key| key.not_before_ms),
            not_after_ms: listed.and_then(|key| key.not_after_ms),
            revoked_at_ms: listed.and_then(|key| key.revoked_at_ms),
        }
    }
}

/// Whether a key may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// Its signatures count.
    Usable,
    /// Not valid yet.
    NotYet,
    /// No longer valid.
    Expired,
    /// Revoked, whether or not it is still valid.
    Revoked,
    /// Replaced by another key.
    Retired,
    /// It is not in the keyring.
    #[serde(rename = "not_in_keyring")]
    Unlisted,
}

/// All keys, and the reason if no key signs records.
#[derive(Debug, Clone, Serialize)]
pub struct KeyList {
    /// The ledger's key, then the one that signs records, then the keyring's in file order.
    pub keys: Vec<KeyEntry>,
    /// Why no key signs records.
    pub unsigned: Option<String>,
    /// The keyring's path as shown to the user.
    pub keyring: String,
}

/// Lists all keys.
///
/// # Errors
/// If a file cannot be read or used.
pub(crate) async fn list(keys: &WorkspaceKeys) -> Result<KeyList, Error> {
    let directory = keys.directory();
    let ring = keys.load_keyring()?;
    let judge = to_keyring(&ring.keys);
    let mut all = Vec::new();
    let ledger = |public, state| KeyEntry::new(public, Some(KeyPurpose::Ledger), state, None);
    if let Some(key) = directory.load(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))? {
        let from = Some(keys.display_path(&directory.key_path(KeyPurpose::Ledger)));
        all.push(KeyEntry { from, ..ledger(key.public(), KeyState::Usable) });
    }
    let retired = directory.retired(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    all.extend(retired.into_iter().map(|public| ledger(public, KeyState::Retired)));
    let (signing, mut unsigned) = match keys.signing_key().await? {
        SigningKey::Available(key, from) => (Some((key.public(), from)), None),
        SigningKey::Missing(why) => (None, Some(why)),
    };
    let state = |public: &PublicKey| key_state(&judge, public.id(), keys.now_ms());
    if let Some((public, from)) = &signing {
        let entry = ring.keys.iter().find(|key| *key.public == public.to_string());
        let listed = KeyEntry::new(*public, Some(KeyPurpose::Signing), state(public), entry);
        all.push(KeyEntry { from: Some(from.clone()), ..listed });
        unsigned = unusable_reason(&judge, public.id(), keys.now_ms());
    }
    for key in &ring.keys {
        let Some(public) = public_key(key) else { continue };
        if signing.as_ref().is_none_or(|(signing, _)| *signing != public) {
            all.push(KeyEntry::new(public, None, state(&public), Some(key)));
        }
    }
    Ok(KeyList { keys: all, unsigned, keyring: keys.shown_keyring() })
}

fn key_state(ring: &Keyring, id: KeyId, at_ms: i64) -> KeyState {
    match ring.may_sign(id, at_ms) {
        Ok(_) => KeyState::Usable,
        Err(RejectedSignature::NotYetValid { .. }) => KeyState::NotYet,
        Err(RejectedSignature::Expired { .. }) => KeyState::Expired,
        Err(RejectedSignature::Revoked { .. }) => KeyState::Revoked,
        Err(RejectedSignature::UnknownKey { .. }) => KeyState::Unlisted,
    }
}

/// Which key to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySelector {
    /// The key that signs the ledger's checkpoints.
    Ledger,
    /// The key that signs records.
    Signing,
    /// A key of the keyring, by its name or a prefix of it.
    Prefix(String),
}

/// The public half of a key.
///
/// # Errors
/// If there is no such key, or a file cannot be read or used.
pub(crate) async fn export(keys: &WorkspaceKeys, which: &KeySelector) -> Result<PublicKey, Error> {
    match which {
        KeySelector::Ledger => ledger_key(keys),
        KeySelector::Signing => match keys.signing_key().await? {
            SigningKey::Available(key, _) => Ok(key.public()),
            SigningKey::Missing(why) => {
                let body = Body::new(format!("no signing key: {why}"));
                Err(Error::not_found(codes::KEY_UNKNOWN, body.help("run `quorate keys init` to make one")))
            }
        },
        KeySelector::Prefix(id) => find_in_keyring(keys, &keys.load_keyring()?, id),
    }
}

/// The ledger's key in the format of signed-note tools: `<name>+<id>+<key>`. The first checkpoint fixes the name.
///
/// # Errors
/// If the key or a checkpoint is missing, or the ledger does not answer.
pub(crate) async fn export_note(keys: &WorkspaceKeys, address: &StoreAddress) -> Result<String, Error> {
    let public = ledger_key(keys)?;
    let unsealed = || {
        let body = Body::new("the ledger has no checkpoint yet, and the first checkpoint fixes its name");
        Error::not_found(codes::KEY_UNKNOWN, body.help("run `quorate ledger checkpoint` to make one"))
    };
    if !address.may_exist() {
        return Err(unsealed());
    }
    let store = Store::open_at(address).await?.store;
    let sealed = store.last_checkpoint().await;
    store.close().await;
    let sealed = sealed?.ok_or_else(unsealed)?;
    match Verifier::new(&sealed.origin, public) {
        Ok(verifier) => Ok(verifier.to_string()),
        Err(why) => Err(Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, Body::new(why))),
    }
}

fn ledger_key(keys: &WorkspaceKeys) -> Result<PublicKey, Error> {
    let key = keys.directory().load(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    key.map(|key| key.public()).ok_or_else(|| {
        let body = Body::new("the ledger has no key");
        Error::not_found(codes::KEY_UNKNOWN, body.help("run `quorate keys init` to make one"))
    })
}

/// The key of the keyring by name, by a unique prefix of its name, or by the key's text.
///
/// # Errors
/// If none or several match.
pub(super) fn find_in_keyring(
    keys: &WorkspaceKeys,
    ring: &KeyringFile,
    id: &str,
) -> Result<PublicKey, Error> {
    let all = ring.keys.iter().filter_map(public_key);
    let found: Vec<PublicKey> =
        all.filter(|key| key.id().to_string().starts_with(id) || key.to_string() == id).collect();
    let listed = "run `quorate keys list` to see the available keys";
    let (message, help) = match found.as_slice() {
        // An unset shell variable gives an empty name, which would match a keyring with a single key.
        _ if id.is_empty() => ("no key is named".to_owned(), listed),
        [one] => return Ok(*one),
        [] => (format!("the keyring {} has no key `{id}`", keys.shown_keyring()), listed),
        several => {
            (format!("`{id}` is a prefix of the names of {} keys", several.len()), "give more characters")
        }
    };
    Err(Error::not_found(codes::KEY_UNKNOWN, Body::new(message).help(help)))
}
