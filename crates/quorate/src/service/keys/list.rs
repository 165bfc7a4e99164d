//! Lists keys: public halves only.

use quorate_diagnostics::{Body, codes};
use quorate_ledger::Store;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::note::Verifier;
use quorate_ledger::signing::{KeyId, Keyring, PublicKey, RejectedSignature};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::keyring::KeyringEntry;

use super::{Keys, SigningKey, change};
use crate::service::error::{ServiceError, error_chain};

/// A listed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    pub public: PublicKey,
    /// The purpose of its secret half, if that is on this machine.
    pub purpose: Option<KeyPurpose>,
    /// Whether it may sign.
    pub state: State,
    pub label: Option<String>,
    /// The source of its secret half, for people.
    pub from: Option<String>,
    /// Its entry in the keyring.
    pub entry: Option<Key>,
}

/// Whether a key may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its signatures count.
    Usable,
    /// Not valid yet.
    NotYet,
    /// No longer valid.
    Expired,
    Revoked,
    /// Replaced by another key.
    Retired,
    /// It is not in the keyring.
    Unlisted,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Usable => "usable",
            State::NotYet => "not_yet",
            State::Expired => "expired",
            State::Revoked => "revoked",
            State::Retired => "retired",
            State::Unlisted => "not_in_keyring",
        }
    }
}

/// All keys, and the reason if no key signs records.
#[derive(Debug, Clone)]
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
#[crate::boxed]
pub async fn list(keys: &Keys) -> Result<KeyList, ServiceError> {
    let directory = keys.directory();
    let ring = keys.load_keyring()?;
    let judge = super::to_keyring(&ring.keys);
    let mut all = Vec::new();
    let ledger = |public, state, from| KeyEntry {
        public,
        purpose: Some(KeyPurpose::Ledger),
        state,
        label: None,
        from,
        entry: None,
    };
    if let Some(key) = directory.load(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))? {
        let from = keys.display_path(&directory.key_path(KeyPurpose::Ledger));
        all.push(ledger(key.public(), State::Usable, Some(from)));
    }
    let retired = directory.retired(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    all.extend(retired.into_iter().map(|public| ledger(public, State::Retired, None)));
    let (signing, mut unsigned) = match keys.signing_key().await? {
        SigningKey::Available(key, from) => (Some((key.public(), from)), None),
        SigningKey::Missing(why) => (None, Some(why)),
    };
    if let Some((public, from)) = &signing {
        let entry = ring.keys.iter().find(|key| *key.public == public.to_string()).cloned();
        all.push(KeyEntry {
            public: *public,
            purpose: Some(KeyPurpose::Signing),
            state: key_state(&judge, public.id(), keys.now_ms()),
            label: entry.as_ref().and_then(|key| key.label.clone()),
            from: Some(from.clone()),
            entry,
        });
        unsigned = super::unusable_reason(&judge, public.id(), keys.now_ms());
    }
    for key in &ring.keys {
        let Some(public) = super::public_key(key) else { continue };
        if signing.as_ref().is_none_or(|(signing, _)| *signing != public) {
            all.push(KeyEntry {
                public,
                purpose: None,
                state: key_state(&judge, public.id(), keys.now_ms()),
                label: key.label.clone(),
                from: None,
                entry: Some(key.clone()),
            });
        }
    }
    Ok(KeyList { keys: all, unsigned, keyring: keys.display_path(&keys.keyring_path()) })
}

fn key_state(ring: &Keyring, id: KeyId, at_ms: i64) -> State {
    match ring.may_sign(id, at_ms) {
        Ok(_) => State::Usable,
        Err(RejectedSignature::NotYetValid { .. }) => State::NotYet,
        Err(RejectedSignature::Expired { .. }) => State::Expired,
        Err(RejectedSignature::Revoked { .. }) => State::Revoked,
        Err(RejectedSignature::UnknownKey { .. } | RejectedSignature::Forged { .. }) => State::Unlisted,
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
#[crate::boxed]
pub async fn export(keys: &Keys, which: &KeySelector) -> Result<PublicKey, ServiceError> {
    match which {
        KeySelector::Ledger => ledger_key(keys),
        KeySelector::Signing => match keys.signing_key().await? {
            SigningKey::Available(key, _) => Ok(key.public()),
            SigningKey::Missing(why) => {
                let body = Body::new(format!("no signing key: {why}"));
                Err(ServiceError::not_found(codes::KEY_UNKNOWN, body.help("run `quorate keys init` to make one")))
            }
        },
        KeySelector::Prefix(id) => change::find(keys, &keys.load_keyring()?, id),
    }
}

/// The ledger's key in the format of signed-note tools: `<name>+<id>+<key>`. The first checkpoint fixes the name.
///
/// # Errors
/// If the key or a checkpoint is missing, or the ledger does not answer.
#[crate::boxed]
pub async fn export_note(keys: &Keys, address: &StoreAddress) -> Result<String, ServiceError> {
    let public = ledger_key(keys)?;
    let unsealed = || {
        let body = Body::new("the ledger has no checkpoint yet, and the first checkpoint fixes its name");
        ServiceError::not_found(codes::KEY_UNKNOWN, body.help("run `quorate ledger checkpoint` to make one"))
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
        Err(error) => Err(ServiceError::configuration(codes::LEDGER_CORRUPT, Body::new(error_chain(&error)))),
    }
}

fn ledger_key(keys: &Keys) -> Result<PublicKey, ServiceError> {
    let key = keys.directory().load(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    key.map(|key| key.public()).ok_or_else(|| {
        let body = Body::new("the ledger has no key");
        ServiceError::not_found(codes::KEY_UNKNOWN, body.help("run `quorate keys init` to make one"))
    })
}
