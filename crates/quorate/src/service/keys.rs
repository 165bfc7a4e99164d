//! Keys: their locations, and the commands on them (D3, D10). `keys/secret.rs` finds the key that signs records,
//! `keys/change.rs` makes, replaces and revokes keys, `keys/list.rs` shows them, and `service/signer.rs` decides which key
//! signs a run.

pub mod change;
pub mod list;
mod secret;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::keys::{KeyDirectory, KeyFileError, KeyPurpose};
use quorate_ledger::signing::{self, ExternalKeys, KeyId, Keyring, PublicKey, SecretKey, Voucher};
use quorate_manifest::config;
use quorate_manifest::keyring::{self, Key};
use tokio::sync::OnceCell;

use super::disk::{self, Disk, Text};
use super::environment::Environment;
use super::error::{ExitClass, ServiceError, error_chain};
use super::guard;
use super::paths::{absolute, display_path};
use super::workspace::{Workspace, boundary};

/// Locations of a workspace's keys and of its ledger's keys.
#[derive(Clone)]
pub struct Keys {
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
pub struct KeyringFile {
    /// Its text; `None` if the file does not exist.
    pub text: Option<Arc<str>>,
    /// Its keys, in the order of the file.
    pub keys: Vec<Key>,
}

/// A secret key, or the reason why it is missing.
#[derive(Debug, Clone)]
pub enum SigningKey {
    /// A key, and where it comes from, for people.
    Available(Arc<SecretKey>, String),
    Missing(String),
}

impl Keys {
    pub fn of(environment: &Environment, workspace: &Workspace) -> Keys {
        let root = workspace.host_path.as_deref().and_then(Path::parent).unwrap_or(&workspace.council.dir);
        Keys {
            environment: environment.clone(),
            settings: workspace.host.keys.clone(),
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
    pub fn load_keyring(&self) -> Result<KeyringFile, ServiceError> {
        let path = self.keyring_path();
        let read = match boundary::leads_out(&self.root, &path) {
            true => Err(std::io::Error::other("it leads out of its workspace")),
            false => disk::read_text(&path),
        };
        let text = read.map_err(|error| {
            let body = Body::new(format!("cannot read the keyring {}: {error}", self.display_path(&path)));
            ServiceError::configuration(
                codes::KEYRING_INVALID,
                body.help("restore the file; the keyring is a text file"),
            )
        })?;
        let Text::Present(text) = text else { return Ok(KeyringFile::default()) };
        let loaded = keyring::load(&path, &self.display_path(&path), &Disk, &*self.environment.host);
        match loaded.value {
            Some(keys) => Ok(KeyringFile { text: Some(text.into()), keys }),
            None => Err(ServiceError::from_report(ExitClass::Configuration, loaded.report)),
        }
    }

    /// A refusal about a key file.
    fn to_error(&self, error: &KeyFileError) -> ServiceError {
        let text = |path: &Path| self.display_path(path);
        let (code, body) = match error {
            KeyFileError::Exposed { path, mode } => (
                codes::KEY_EXPOSED,
                Body::new(format!(
                    "{} has the permissions {mode:04o}, so other users can read the secret key",
                    text(path)
                ))
                .help(format!(
                    "chmod go-rwx {}; and if another user may have read it, run `quorate keys rotate` after that",
                    text(path)
                )),
            ),
            KeyFileError::NotAKey { path, source } => (
                codes::KEY_UNUSABLE,
                Body::new(format!("cannot read a secret key from {}: {source}", text(path)))
                    .help("restore the key, or move the file away and run `quorate keys init`"),
            ),
            KeyFileError::AlreadyExists { path } => (
                codes::KEY_UNUSABLE,
                Body::new(format!("{} already exists, and keys are never overwritten", text(path)))
                    .help("run `quorate keys rotate` to replace it"),
            ),
            KeyFileError::Missing { path } => (
                codes::KEY_UNKNOWN,
                Body::new(format!("{} does not exist", text(path))).help("run `quorate keys init` to make it"),
            ),
            KeyFileError::Io { .. } => (
                codes::KEY_UNUSABLE,
                Body::new(error_chain(error)).help("keep keys in `keys/` beside the ledger, readable by their owner alone"),
            ),
        };
        ServiceError::configuration(code, body)
    }
}

impl Keys {
    /// The keys and vouchers known outside of the ledger, which check signatures before and after they are made.
    ///
    /// # Errors
    /// If the keyring is refused.
    pub fn trusted_keys(&self) -> Result<ExternalKeys, ServiceError> {
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
pub(super) fn to_keyring(keys: &[Key]) -> Keyring {
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
pub(super) fn unusable_reason(ring: &Keyring, id: KeyId, at_ms: i64) -> Option<String> {
    use quorate_ledger::signing::RejectedSignature as Why;
    use quorate_manifest::timestamp::format;
    Some(match ring.may_sign(id, at_ms).err()? {
        Why::UnknownKey { .. } => format!("the key {id} is not in the keyring"),
        Why::Revoked { revoked_at_ms, .. } => {
            format!("the key {id} is revoked since {}", format(revoked_at_ms))
        }
        Why::NotYetValid { not_before_ms, .. } => {
            format!("the key {id} may not sign before {}", format(not_before_ms))
        }
        Why::Expired { not_after_ms, .. } => {
            format!("the key {id} may not sign after {}", format(not_after_ms))
        }
        Why::Forged { .. } => format!("the key {id} does not verify"),
    })
}
