//! Showing keys: public halves alone.

use quorate_diagnostics::{Body, codes};
use quorate_ledger::Store;
use quorate_ledger::keys::Purpose;
use quorate_ledger::note::Verifier;
use quorate_ledger::signing::{KeyId, Keyring, PublicKey, Uncounted};
use quorate_ledger::store::address::Address;
use quorate_manifest::keyring::Key;

use super::{Keys, Secret, change};
use crate::service::stop::{Stop, chain};

/// A key as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its public half.
    pub public: PublicKey,
    /// What its secret half is used for here, if it is here.
    pub purpose: Option<Purpose>,
    /// Whether it signs, or may.
    pub state: State,
    /// Who has it.
    pub label: Option<String>,
    /// Where its secret half comes from, for people.
    pub from: Option<String>,
    /// Its entry in the keyring.
    pub entry: Option<Key>,
}

/// Whether a key signs, or may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// What it signs counts.
    Usable,
    /// It may not sign yet.
    NotYet,
    /// It may no longer sign.
    Expired,
    /// It was revoked.
    Revoked,
    /// Another has followed it.
    Retired,
    /// It is not in the keyring.
    Unlisted,
}

impl State {
    /// Its word.
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

/// All keys, and why there is none that signs records, if there is none.
#[derive(Debug, Clone)]
pub struct All {
    /// The ledger's, then the one that signs records, then the keyring's in the order of its file.
    pub keys: Vec<Listed>,
    /// Why no key signs records.
    pub unsigned: Option<String>,
    /// What the user calls the keyring.
    pub keyring: String,
}

/// All keys.
///
/// # Errors
/// When a file cannot be read or used.
pub async fn list(keys: &Keys) -> Result<All, Stop> {
    let directory = keys.directory();
    let ring = keys.ring()?;
    let judge = super::judge(&ring.keys);
    let mut all = Vec::new();
    let ledger = |public, state, from| Listed {
        public,
        purpose: Some(Purpose::Ledger),
        state,
        label: None,
        from,
        entry: None,
    };
    if let Some(key) = directory.load(Purpose::Ledger).map_err(|error| keys.stop(&error))? {
        let from = keys.shown(&directory.file(Purpose::Ledger));
        all.push(ledger(key.public(), State::Usable, Some(from)));
    }
    let retired = directory.retired(Purpose::Ledger).map_err(|error| keys.stop(&error))?;
    all.extend(retired.into_iter().map(|public| ledger(public, State::Retired, None)));
    let (signing, mut unsigned) = match keys.secret().await? {
        Secret::There(key, from) => (Some((key.public(), from)), None),
        Secret::Missing(why) => (None, Some(why)),
    };
    if let Some((public, from)) = &signing {
        let entry = ring.keys.iter().find(|key| *key.public == public.to_string()).cloned();
        all.push(Listed {
            public: *public,
            purpose: Some(Purpose::Signing),
            state: state(&judge, public.id(), keys.now_ms()),
            label: entry.as_ref().and_then(|key| key.label.clone()),
            from: Some(from.clone()),
            entry,
        });
        unsigned = super::unusable(&judge, public.id(), keys.now_ms());
    }
    for key in &ring.keys {
        let Some(public) = super::public(key) else { continue };
        if signing.as_ref().is_none_or(|(signing, _)| *signing != public) {
            all.push(Listed {
                public,
                purpose: None,
                state: state(&judge, public.id(), keys.now_ms()),
                label: key.label.clone(),
                from: None,
                entry: Some(key.clone()),
            });
        }
    }
    Ok(All { keys: all, unsigned, keyring: keys.shown(&keys.ring_path()) })
}

fn state(ring: &Keyring, id: KeyId, at_ms: i64) -> State {
    match ring.may_sign(id, at_ms) {
        Ok(_) => State::Usable,
        Err(Uncounted::Early { .. }) => State::NotYet,
        Err(Uncounted::Late { .. }) => State::Expired,
        Err(Uncounted::Revoked { .. }) => State::Revoked,
        Err(Uncounted::Unknown { .. } | Uncounted::Forged { .. }) => State::Unlisted,
    }
}

/// Which key is to be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one that signs the ledger's checkpoints.
    Ledger,
    /// The one that signs records.
    Signing,
    /// One of the keyring, by its name or the beginning of it.
    Named(String),
}

/// The public half of a key.
///
/// # Errors
/// When there is no such key, or a file cannot be read or used.
pub async fn export(keys: &Keys, which: &Which) -> Result<PublicKey, Stop> {
    match which {
        Which::Ledger => ledger(keys),
        Which::Signing => match keys.secret().await? {
            Secret::There(key, _) => Ok(key.public()),
            Secret::Missing(why) => {
                let body = Body::new(format!("there is no key that signs records: {why}"));
                Err(Stop::not_found(codes::KEY_UNKNOWN, body.help("`quorate keys init` makes one")))
            }
        },
        Which::Named(id) => change::find(keys, &keys.ring()?, id),
    }
}

/// The ledger's key as tools for signed notes take it: `<name>+<id>+<key>`. The name is given by the first checkpoint.
///
/// # Errors
/// When there is no such key, no checkpoint yet, or the ledger does not answer.
pub async fn export_note(keys: &Keys, address: &Address) -> Result<String, Stop> {
    let public = ledger(keys)?;
    let unsealed = || {
        let body = Body::new("the ledger has no checkpoint yet, and its first one gives it the name");
        Stop::not_found(codes::KEY_UNKNOWN, body.help("`quorate ledger checkpoint` makes one"))
    };
    if !address.may_be_there() {
        return Err(unsealed());
    }
    let store = Store::open_at(address).await?.store;
    let sealed = store.last_sealed().await;
    store.close().await;
    let sealed = sealed?.ok_or_else(unsealed)?;
    match Verifier::new(&sealed.origin, public) {
        Ok(verifier) => Ok(verifier.to_string()),
        Err(error) => Err(Stop::configuration(codes::LEDGER_CORRUPT, Body::new(chain(&error)))),
    }
}

fn ledger(keys: &Keys) -> Result<PublicKey, Stop> {
    let key = keys.directory().load(Purpose::Ledger).map_err(|error| keys.stop(&error))?;
    key.map(|key| key.public()).ok_or_else(|| {
        let body = Body::new("the ledger has no key");
        Stop::not_found(codes::KEY_UNKNOWN, body.help("`quorate keys init` makes one"))
    })
}
