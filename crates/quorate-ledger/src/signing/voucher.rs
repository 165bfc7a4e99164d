//! Vouchers (D10): a key states that another key's signatures count wherever its own do. So a rotated key's successor, or a
//! colleague's key, can continue runs that were opened before it was in the keyring.

use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{Context, KeyId, PublicKey, SecretKey, Signature};
use crate::merkle::Hash;

/// The word of one key for another, as a `keyring` record has it. Its fields are in the order of canonical JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voucher {
    /// When: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// The name of the key that vouches.
    pub by: String,
    /// The public key that is vouched for.
    pub key: String,
    /// The signature over both of the others: in the context [`Context::VOUCHER`] for runs, and in
    /// [`Context::LEDGER_VOUCHER`] for the checkpoints of a ledger.
    pub signature: String,
}

/// What a voucher says, once it was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedVoucher {
    /// The key that vouches.
    pub by: KeyId,
    /// The key that is vouched for.
    pub key: PublicKey,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl Voucher {
    pub fn sign(context: Context, by: &SecretKey, key: &PublicKey, at_ms: i64) -> Voucher {
        let (at, key) = (rfc3339(at_ms), key.to_string());
        let signature = by.sign(context, &hash(&at, &key)).to_string();
        Voucher { at, by: by.public().id().to_string(), key, signature }
    }

    /// Checks its form and its signature. `known` gives the public half of the key that vouches.
    ///
    /// # Errors
    /// Why it is invalid, in words.
    pub fn check(
        &self,
        context: Context,
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
            format!("the key {by} vouches for {}, and its own signatures do not count here", key.id())
        })?;
        let verified = public.verify(context, &hash(&self.at, &self.key), &signature);
        verified.map_err(|_| format!("the voucher for {} is not signed by the key {by}", key.id()))?;
        Ok(CheckedVoucher { by, key, at_ms })
    }

    /// As a keyring file has it beside the key: name, time and signature with spaces between them.
    pub fn to_text(&self) -> String {
        format!("{} {} {}", self.by, self.at, self.signature)
    }

    pub(crate) fn to_json(&self) -> Json {
        json!({"at": self.at, "by": self.by, "key": self.key, "signature": self.signature})
    }

    /// Reads what [`Voucher::to_text`] writes of a key; `None` where it has another form.
    pub fn from_text(key: &str, written: &str) -> Option<Voucher> {
        let [by, at, signature] = written.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let text = str::to_owned;
        Some(Voucher { at: text(at), by: text(by), key: text(key), signature: text(signature) })
    }

    /// The vouchers that lead from keys that `count` to `key`, in an order in which each follows from those before it;
    /// `None` where they do not lead there. What does not hold is passed over.
    pub fn chain_to(
        context: Context,
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

/// What a voucher's signature is over: SHA-256 of the canonical JSON `{at, key}`. Neither text needs escaping.
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
        let voucher = Voucher::sign(Context::VOUCHER, &old, &new.public(), 1_000);
        let known = |_| Some(old.public());
        let vouched = CheckedVoucher { by: old.public().id(), key: new.public(), at_ms: 1_000 };
        assert_eq!(voucher.check(Context::VOUCHER, known), Ok(vouched));
        assert_eq!(Voucher::from_text(&voucher.key, &voucher.to_text()), Some(voucher.clone()));
        assert!(voucher.check(Context::VOUCHER, |_| None).is_err());
        assert!(
            voucher.check(Context::LEDGER_VOUCHER, known).is_err(),
            "a voucher holds in its own context alone"
        );
        assert!(voucher.check(Context::VOUCHER, |_| Some(key(3).public())).is_err());
        for changed in [
            Voucher { at: rfc3339(2_000), ..voucher.clone() },
            Voucher { key: key(3).public().to_string(), ..voucher.clone() },
            Voucher { at: "1970-01-01T00:00:01Z".into(), ..voucher.clone() },
            Voucher { key: format!("{}\n", voucher.key), ..voucher.clone() },
            Voucher { signature: voucher.signature.replace('A', "B") + "x", ..voucher.clone() },
        ] {
            assert!(changed.check(Context::VOUCHER, known).is_err(), "{changed:?}");
        }
        assert_eq!(Voucher::from_text("k", "two words"), None);
    }

    #[test]
    fn vouchers_lead_from_key_to_key() {
        // D10
        let all = [
            Voucher::sign(Context::VOUCHER, &key(2), &key(3).public(), 2),
            Voucher::sign(Context::VOUCHER, &key(1), &key(2).public(), 1),
            Voucher::sign(Context::VOUCHER, &key(3), &key(1).public(), 3),
            // Not signed by whom it names.
            Voucher {
                by: key(1).public().id().to_string(),
                ..Voucher::sign(Context::VOUCHER, &key(8), &key(9).public(), 1)
            },
        ];
        let lead = |to: u8, from: u8| {
            Voucher::chain_to(Context::VOUCHER, key(to).public().id(), [key(from).public()], &all)
        };
        assert_eq!(lead(3, 1), Some(vec![all[1].clone(), all[0].clone()]));
        assert_eq!(lead(1, 1), Some(Vec::new()));
        assert_eq!((lead(9, 1), lead(3, 7)), (None, None));
    }
}
