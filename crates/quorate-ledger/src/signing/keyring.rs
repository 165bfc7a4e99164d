//! The keyring (D3, D9): the keys, when each may sign, and whether a signature counts.
//!
//! Times are milliseconds since the Unix epoch. A record's time is its signer's claim: a thief of a key can write any
//! time. So a verifier who accepts signatures from before a revocation must take the time from a source that the thief
//! does not control, such as a checkpoint that others have seen; or revoke the key from its beginning. A [`Voucher`]
//! lets one key authorize another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{KeyId, PublicKey, SecretKey, Signature, SigningContext};
use crate::merkle::Hash;

/// A key and the times when it may sign. A bound that is `None` does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyringEntry {
    pub public: PublicKey,
    /// The earliest time at which it may sign.
    pub not_before_ms: Option<i64>,
    /// The latest time at which it may sign.
    pub not_after_ms: Option<i64>,
    /// Signatures at or after this time do not count; earlier ones do.
    pub revoked_at_ms: Option<i64>,
}

impl KeyringEntry {
    /// A key without bounds.
    pub fn unbounded(public: PublicKey) -> Self {
        KeyringEntry { public, not_before_ms: None, not_after_ms: None, revoked_at_ms: None }
    }
}

/// Keys by their names.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    keys: BTreeMap<KeyId, KeyringEntry>,
}

/// As people write it.
fn time(at_ms: &i64) -> String {
    quorate_kernel::clock::rfc3339(*at_ms)
}

/// Why a key cannot be added to a keyring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// The keyring contains it already; two entries for one key could contradict each other.
    #[error("the key {id} is in the keyring twice")]
    Duplicate { id: KeyId },
    /// It would end before it begins, so that no signature could count.
    #[error(
        "the key {id} ends at {}, before it starts at {}",
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
    /// The key was revoked at that time.
    #[error("the key {id} is revoked from {} on", time(.revoked_at_ms))]
    Revoked { id: KeyId, revoked_at_ms: i64 },
    /// The key was not valid yet.
    #[error("the key {id} may not sign before {}", time(.not_before_ms))]
    NotYetValid {
        id: KeyId,
        /// The earliest valid time.
        not_before_ms: i64,
    },
    /// The key was no longer valid.
    #[error("the key {id} may not sign after {}", time(.not_after_ms))]
    Expired {
        id: KeyId,
        /// The latest valid time.
        not_after_ms: i64,
    },
}

impl Keyring {
    /// A keyring without keys.
    pub fn new() -> Self {
        Keyring::default()
    }

    /// Adds a key.
    ///
    /// # Errors
    /// [`KeyringError`] if the keyring contains it or its times contradict each other.
    pub fn insert(&mut self, key: KeyringEntry) -> Result<KeyId, KeyringError> {
        let id = key.public.id();
        if let (Some(not_before_ms), Some(not_after_ms)) = (key.not_before_ms, key.not_after_ms)
            && not_after_ms < not_before_ms
        {
            return Err(KeyringError::EndsBeforeStart { id, not_before_ms, not_after_ms });
        }
        match self.keys.entry(id) {
            Entry::Occupied(_) => Err(KeyringError::Duplicate { id }),
            Entry::Vacant(place) => {
                place.insert(key);
                Ok(id)
            }
        }
    }

    /// The public key with this name. Ignores times.
    pub fn get(&self, id: KeyId) -> Option<&KeyringEntry> {
        self.keys.get(&id)
    }

    /// The same keys without bounds.
    pub fn unbounded(&self) -> Keyring {
        let keys = self.keys.iter().map(|(id, key)| (*id, KeyringEntry::unbounded(key.public)));
        Keyring { keys: keys.collect() }
    }

    /// Checks that a key's signature at a time counts. Both bounds are inclusive, the time of revocation is exclusive.
    /// Call it also before signing.
    ///
    /// # Errors
    /// [`RejectedSignature`]: the most serious reason.
    pub fn may_sign(&self, id: KeyId, at_ms: i64) -> Result<&KeyringEntry, RejectedSignature> {
        let key = self.keys.get(&id).ok_or(RejectedSignature::UnknownKey { id })?;
        match *key {
            KeyringEntry { revoked_at_ms: Some(revoked_at_ms), .. } if at_ms >= revoked_at_ms => {
                Err(RejectedSignature::Revoked { id, revoked_at_ms })
            }
            KeyringEntry { not_before_ms: Some(not_before_ms), .. } if at_ms < not_before_ms => {
                Err(RejectedSignature::NotYetValid { id, not_before_ms })
            }
            KeyringEntry { not_after_ms: Some(not_after_ms), .. } if at_ms > not_after_ms => {
                Err(RejectedSignature::Expired { id, not_after_ms })
            }
            _ => Ok(key),
        }
    }
}

/// A key's authorization of another key, in the form of a `keyring` record. The fields are in the order of canonical
/// JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voucher {
    /// The time: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// The name of the key that signs the voucher.
    pub by: String,
    /// The authorized public key.
    pub key: String,
    /// The signature over the other fields: in the context [`SigningContext::VOUCHER`] for runs, in
    /// [`SigningContext::LEDGER_VOUCHER`] for the checkpoints of a ledger.
    pub signature: String,
}

/// A valid voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedVoucher {
    /// The key that signed it.
    pub by: KeyId,
    /// The authorized key.
    pub key: PublicKey,
    /// The time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl Voucher {
    pub fn sign(context: SigningContext, by: &SecretKey, key: &PublicKey, at_ms: i64) -> Voucher {
        let (at, key) = (rfc3339(at_ms), key.to_string());
        let signature = by.sign(context, &hash(&at, &key)).to_string();
        Voucher { at, by: by.public().id().to_string(), key, signature }
    }

    /// Checks its form and its signature. `known` looks up the public key that signed it.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn check(
        &self,
        context: SigningContext,
        known: impl FnOnce(KeyId) -> Option<PublicKey>,
    ) -> Result<CheckedVoucher, String> {
        let by = KeyId::from_text(&self.by).map_err(|error| format!("a voucher's key: {error}"))?;
        let key = PublicKey::from_text(&self.key).map_err(|error| format!("a vouched key: {error}"))?;
        if key.to_string() != self.key {
            return Err("a vouched key is not in its canonical form".to_owned());
        }
        let at_ms = parse_rfc3339(&self.at).filter(|at_ms| rfc3339(*at_ms) == self.at);
        let at_ms = at_ms.ok_or("the time of a voucher cannot be read")?;
        let signature = Signature::from_text(&self.signature).map_err(|error| error.to_string())?;
        let public = known(by).ok_or_else(|| {
            format!("the key {by} vouches for {}, but its own signatures do not count here", key.id())
        })?;
        let verified = public.verify(context, &hash(&self.at, &self.key), &signature);
        verified.map_err(|_| format!("the voucher for {} is not signed by the key {by}", key.id()))?;
        Ok(CheckedVoucher { by, key, at_ms })
    }

    /// The form in a keyring file, beside the key: name, time and signature, separated by spaces.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.by, self.at, self.signature)
    }

    /// Parses the output of [`Voucher::to_text`] for a key; `None` if it is malformed.
    pub fn from_text(key: &str, written: &str) -> Option<Voucher> {
        let [by, at, signature] = written.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let text = str::to_owned;
        Some(Voucher { at: text(at), by: text(by), key: text(key), signature: text(signature) })
    }

    /// The vouchers that lead from trusted keys (`count`) to `key`, ordered so that each follows from those before it;
    /// `None` if there is no such chain. Ignores invalid vouchers.
    pub fn chain_to(
        context: SigningContext,
        key: KeyId,
        count: impl IntoIterator<Item = PublicKey>,
        all: &[Voucher],
    ) -> Option<Vec<Voucher>> {
        let mut known: Vec<(PublicKey, Option<usize>)> = count.into_iter().map(|key| (key, None)).collect();
        let mut at = 0;
        while at < known.len() {
            let by = known[at].0;
            for (number, voucher) in all.iter().enumerate().filter(|(_, one)| one.by == by.id().to_string()) {
                let Ok(vouched) = voucher.check(context, |_| Some(by)) else { continue };
                if !known.iter().any(|(one, _)| *one == vouched.key) {
                    known.push((vouched.key, Some(number)));
                }
            }
            at += 1;
        }
        let mut chain = Vec::new();
        let mut wanted = key;
        loop {
            let (_, from) = known.iter().find(|(one, _)| one.id() == wanted)?;
            let Some(number) = from else { break };
            wanted = KeyId::from_text(&all[*number].by).ok()?;
            chain.push(all[*number].clone());
        }
        chain.reverse();
        Some(chain)
    }
}

/// The signed hash: SHA-256 of the canonical JSON `{at, key}`. Neither text needs escaping.
fn hash(at: &str, key: &str) -> Hash {
    Sha256::digest(format!("{{\"at\":\"{at}\",\"key\":\"{key}\"}}").as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed(&[seed; 32])
    }

    #[test]
    fn a_voucher_holds_for_its_key_its_time_and_who_gave_it() {
        // D10
        let (old, new) = (key(1), key(2));
        let voucher = Voucher::sign(SigningContext::VOUCHER, &old, &new.public(), 1_000);
        let known = |_| Some(old.public());
        let vouched = CheckedVoucher { by: old.public().id(), key: new.public(), at_ms: 1_000 };
        assert_eq!(voucher.check(SigningContext::VOUCHER, known), Ok(vouched));
        assert_eq!(Voucher::from_text(&voucher.key, &voucher.to_text()), Some(voucher.clone()));
        assert!(voucher.check(SigningContext::VOUCHER, |_| None).is_err());
        assert!(
            voucher.check(SigningContext::LEDGER_VOUCHER, known).is_err(),
            "a voucher holds in its own context alone"
        );
        assert!(voucher.check(SigningContext::VOUCHER, |_| Some(key(3).public())).is_err());
        for changed in [
            Voucher { at: rfc3339(2_000), ..voucher.clone() },
            Voucher { key: key(3).public().to_string(), ..voucher.clone() },
            Voucher { at: "1970-01-01T00:00:01Z".into(), ..voucher.clone() },
            Voucher { key: format!("{}\n", voucher.key), ..voucher.clone() },
            Voucher { signature: voucher.signature.replace('A', "B") + "x", ..voucher.clone() },
        ] {
            assert!(changed.check(SigningContext::VOUCHER, known).is_err(), "{changed:?}");
        }
        assert_eq!(Voucher::from_text("k", "two words"), None);
    }

    #[test]
    fn vouchers_lead_from_key_to_key() {
        // D10
        let all = [
            Voucher::sign(SigningContext::VOUCHER, &key(2), &key(3).public(), 2),
            Voucher::sign(SigningContext::VOUCHER, &key(1), &key(2).public(), 1),
            Voucher::sign(SigningContext::VOUCHER, &key(3), &key(1).public(), 3),
            // Signed by another key than the named one.
            Voucher {
                by: key(1).public().id().to_string(),
                ..Voucher::sign(SigningContext::VOUCHER, &key(8), &key(9).public(), 1)
            },
        ];
        let lead = |to: u8, from: u8| {
            Voucher::chain_to(SigningContext::VOUCHER, key(to).public().id(), [key(from).public()], &all)
        };
        assert_eq!(lead(3, 1), Some(vec![all[1].clone(), all[0].clone()]));
        assert_eq!(lead(1, 1), Some(Vec::new()));
        assert_eq!((lead(9, 1), lead(3, 7)), (None, None));
    }
}
