//! The keyring (D3, D9): the keys, when each may sign, and whether a signature counts.
//!
//! Times are milliseconds since the Unix epoch. A record's time is its signer's claim: a thief of a key can write any time.
//! So a verifier who accepts signatures from before a revocation must take the time from a source that the thief does not
//! control, such as a checkpoint that others have seen; or revoke the key from its beginning.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::key::{KeyId, PublicKey};
use super::signature::{Context, Signature};
use crate::merkle::Hash;

/// A key and when it may sign. What is `None` sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub public: PublicKey,
    /// The first moment at which it may sign.
    pub not_before_ms: Option<i64>,
    /// The last moment at which it may sign.
    pub not_after_ms: Option<i64>,
    /// From this moment on nothing it signs counts; what it signed before does.
    pub revoked_at_ms: Option<i64>,
}

impl Key {
    /// A key without bounds.
    pub fn unbounded(public: PublicKey) -> Self {
        Key { public, not_before_ms: None, not_after_ms: None, revoked_at_ms: None }
    }
}

/// Keys by their names.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    keys: BTreeMap<KeyId, Key>,
}

/// As people write it.
fn time(at_ms: &i64) -> String {
    quorate_kernel::clock::rfc3339(*at_ms)
}

/// Why a key is not taken into a keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// It is there already; two entries could say two things of one key.
    #[error("the key {id} is in the keyring twice")]
    Duplicate { id: KeyId },
    /// It would end before it begins, and never count.
    #[error(
        "the key {id} may sign until {}, which is before it may start at {}",
        time(.not_after_ms),
        time(.not_before_ms)
    )]
    EndsBeforeStart { id: KeyId, not_before_ms: i64, not_after_ms: i64 },
}

/// Why a signature does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RejectedSignature {
    #[error("the key {id} is not in the keyring")]
    UnknownKey { id: KeyId },
    /// The key was revoked by then.
    #[error("the key {id} is revoked from {} on", time(.revoked_at_ms))]
    Revoked { id: KeyId, revoked_at_ms: i64 },
    /// The key might not sign yet.
    #[error("the key {id} may not sign before {}", time(.not_before_ms))]
    NotYetValid {
        id: KeyId,
        /// The first moment at which it may.
        not_before_ms: i64,
    },
    /// The key might no longer sign.
    #[error("the key {id} may not sign after {}", time(.not_after_ms))]
    Expired {
        id: KeyId,
        /// The last moment at which it may.
        not_after_ms: i64,
    },
    /// The signature is not that key's over that leaf.
    #[error("the signature is not that of the key {id}")]
    Forged { id: KeyId },
}

impl Keyring {
    /// A keyring without keys.
    pub fn new() -> Self {
        Keyring::default()
    }

    /// Takes a key.
    ///
    /// # Errors
    /// [`InsertError`] where it is there already or its times contradict each other.
    pub fn insert(&mut self, key: Key) -> Result<KeyId, InsertError> {
        let id = key.public.id();
        if let (Some(not_before_ms), Some(not_after_ms)) = (key.not_before_ms, key.not_after_ms)
            && not_after_ms < not_before_ms
        {
            return Err(InsertError::EndsBeforeStart { id, not_before_ms, not_after_ms });
        }
        match self.keys.entry(id) {
            Entry::Occupied(_) => Err(InsertError::Duplicate { id }),
            Entry::Vacant(place) => {
                place.insert(key);
                Ok(id)
            }
        }
    }

    /// A key, whatever its times.
    pub fn get(&self, id: KeyId) -> Option<&Key> {
        self.keys.get(&id)
    }

    /// The same keys without their times.
    pub fn unbounded(&self) -> Keyring {
        let keys = self.keys.iter().map(|(id, key)| (*id, Key::unbounded(key.public)));
        Keyring { keys: keys.collect() }
    }

    /// The keys, in the order of their names.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = (KeyId, &Key)> {
        self.keys.iter().map(|(id, key)| (*id, key))
    }

    /// Whether what a key signs at a time counts: both bounds are within, the moment of revocation is not. Who asks before
    /// signing asks this too.
    ///
    /// # Errors
    /// [`RejectedSignature`]: why not; the gravest reason where there are several.
    pub fn may_sign(&self, id: KeyId, at_ms: i64) -> Result<&Key, RejectedSignature> {
        let key = self.keys.get(&id).ok_or(RejectedSignature::UnknownKey { id })?;
        match *key {
            Key { revoked_at_ms: Some(revoked_at_ms), .. } if at_ms >= revoked_at_ms => {
                Err(RejectedSignature::Revoked { id, revoked_at_ms })
            }
            Key { not_before_ms: Some(not_before_ms), .. } if at_ms < not_before_ms => {
                Err(RejectedSignature::NotYetValid { id, not_before_ms })
            }
            Key { not_after_ms: Some(not_after_ms), .. } if at_ms > not_after_ms => {
                Err(RejectedSignature::Expired { id, not_after_ms })
            }
            _ => Ok(key),
        }
    }

    /// Whether a signature over a leaf, by this key and at this time, counts.
    ///
    /// # Errors
    /// [`RejectedSignature`]: why not.
    pub fn verify(
        &self,
        id: KeyId,
        at_ms: i64,
        context: Context,
        leaf: &Hash,
        signature: &Signature,
    ) -> Result<&Key, RejectedSignature> {
        let key = self.may_sign(id, at_ms)?;
        key.public.verify(context, leaf, signature).map_err(|_| RejectedSignature::Forged { id })?;
        Ok(key)
    }
}
