//! Which keys may sign for a run (D3, D10), and when. Verification applies this to stored records, and the store to records
//! it is about to write.

use std::collections::BTreeMap;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::record::{self, RunOpened};
use quorate_protocol::Json;
use serde_json::Map;

use super::{Context, KeyId, Keyring, PublicKey, RejectedSignature, Voucher};

/// What is known of keys outside of the ledger.
#[derive(Debug, Clone, Default)]
pub struct ExternalKeys {
    /// The workspace's keyring; `None` where there is no such list.
    pub keyring: Option<Keyring>,
    /// Keys that are known to have signed runs without being on a list.
    pub signers: Vec<PublicKey>,
}

/// [`ExternalKeys`], borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExternalKeysRef<'a> {
    pub(crate) keyring: Option<&'a Keyring>,
    pub(crate) signers: &'a [PublicKey],
}

impl ExternalKeys {
    pub(crate) fn borrowed(&self) -> ExternalKeysRef<'_> {
        ExternalKeysRef { keyring: self.keyring.as_ref(), signers: &self.signers }
    }
}

/// What a run's first record says of signatures, and the keys that its `keyring` records have added since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKeyring {
    pub(crate) required: bool,
    /// The key that was to sign.
    pub(crate) signer: Option<String>,
    /// Whether the keys were bound by governance, and so are those of the run alone.
    pub(crate) governed: bool,
    pub(crate) keys: BTreeMap<KeyId, PublicKey>,
}

impl RunKeyring {
    /// Of the body of a run's first record.
    pub(crate) fn from_opened(opened: &Map<String, Json>) -> Option<RunKeyring> {
        let audit = record::read::<RunOpened>(opened).ok()?.audit?;
        let keys = audit.keyring.iter().filter_map(|key| PublicKey::from_text(key).ok());
        Some(RunKeyring {
            required: audit.signing == "required",
            signer: audit.signer,
            governed: audit.governed,
            keys: keys.map(|key| (key.id(), key)).collect(),
        })
    }

    /// Adds the keys that the body of a `keyring` record vouches for, all or none.
    ///
    /// # Errors
    /// Why one of them does not count, in words.
    pub(crate) fn extend(
        &mut self,
        keyring: &Map<String, Json>,
        authority: ExternalKeysRef<'_>,
    ) -> Result<(), String> {
        let mut keys = self.keys.clone();
        extend_keys(&mut keys, keyring, |vouched| {
            let Some(ring) = authority.keyring else { return Ok(()) };
            match ring.may_sign(vouched.by, vouched.at_ms) {
                // A run may bring keys of its own where governance bound them, which its signatures are judged by.
                Err(RejectedSignature::UnknownKey { .. }) => return Ok(()),
                Err(error) => return Err(format!("{error}, and it vouches for {}", vouched.key.id())),
                // Who has stolen a key can write any time.
                Ok(by) if by.revoked_at_ms.is_none() => return Ok(()),
                Ok(_) => {}
            }
            match ring.get(vouched.key.id()) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "the key {} is revoked, and vouches for {}, which is not in the workspace's keyring",
                    vouched.by,
                    vouched.key.id()
                )),
            }
        })?;
        self.keys = keys;
        Ok(())
    }
}

/// Adds to keys those that the body of a `keyring` record vouches for; each voucher may come from one that was just
/// added. `may` says whether a voucher whose signature holds counts.
pub(crate) fn extend_keys(
    keys: &mut BTreeMap<KeyId, PublicKey>,
    keyring: &Map<String, Json>,
    may: impl Fn(&super::CheckedVoucher) -> Result<(), String>,
) -> Result<(), String> {
    let keyring: record::Keyring =
        record::read(keyring).map_err(|error| format!("a keyring record cannot be read: {error}"))?;
    let vouchers = keyring.vouched;
    if vouchers.is_empty() {
        return Err("a keyring record vouches for no key".to_owned());
    }
    for voucher in vouchers {
        let voucher: Voucher =
            serde_json::from_value(voucher).map_err(|error| format!("a voucher cannot be read: {error}"))?;
        let vouched = voucher.check(Context::VOUCHER, |by| keys.get(&by).copied())?;
        may(&vouched)?;
        keys.insert(vouched.key.id(), vouched.key);
    }
    Ok(())
}

/// A signer that may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedSigner {
    pub(crate) key: PublicKey,
    /// Only the run itself vouches for the key; whether it may bring keys of its own is known when the whole ledger is.
    pub(crate) is_unlisted: bool,
    /// Why the record's time is not to be believed: its key was revoked by the time of a checkpoint that is before it.
    pub(crate) backdated: Option<String>,
}

/// Judges whether a key may sign a record of a run. `sealed_ms` is the time of the last signed checkpoint before it.
///
/// # Errors
/// Why it may not, in words.
pub(crate) fn check_signer(
    audit: Option<&RunKeyring>,
    key: &str,
    at_ms: i64,
    sealed_ms: Option<i64>,
    authority: ExternalKeysRef<'_>,
) -> Result<AllowedSigner, String> {
    let id = KeyId::from_text(key).map_err(|error| format!("`{key}` signed it: {error}"))?;
    let of_run = audit.and_then(|audit| audit.keys.get(&id)).copied();
    if audit.is_some() && of_run.is_none() {
        return Err(format!("the key {id} signed it, which is not in the run's keyring"));
    }
    let known = |key, is_outsider| AllowedSigner { key, is_unlisted: is_outsider, backdated: None };
    // What the workspace says of a key's times holds for every run.
    match (authority.keyring.map(|keyring| keyring.may_sign(id, at_ms)), of_run) {
        (Some(Ok(listed)), _) => {
            let revoked =
                listed.revoked_at_ms.filter(|at| sealed_ms.is_some_and(|sealed_ms| sealed_ms >= *at));
            let backdated = revoked.map(|at| {
                format!(
                    "the key {id} is revoked from {} on, and the record follows a checkpoint of a later time",
                    rfc3339(at)
                )
            });
            Ok(AllowedSigner { key: listed.public, is_unlisted: false, backdated })
        }
        (Some(Err(RejectedSignature::UnknownKey { .. })) | None, Some(key)) => Ok(known(key, true)),
        (Some(Err(RejectedSignature::UnknownKey { .. })) | None, None) => {
            let signer = authority.signers.iter().find(|key| key.id() == id).copied();
            let signer = signer.map(|key| known(key, false));
            signer.ok_or_else(|| format!("the key {id} signed it, and no keyring here has it"))
        }
        (Some(Err(error)), _) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::consultation::object;
    use serde_json::json;

    use super::*;
    use crate::signing::{Key, SecretKey};

    #[test]
    fn a_revoked_key_vouches_for_keys_that_are_known_alone() {
        // D10
        let key = |seed: u8| SecretKey::from_seed(&[seed; 32]);
        let audit = json!({"audit": {"signing": "required", "keyring": [key(1).public().to_string()]}});
        let vouched = Voucher::sign(Context::VOUCHER, &key(1), &key(2).public(), 50);
        let keyring = object(json!({"vouched": [vouched.to_json()]}));
        let by = |change: fn(&mut Key)| {
            let mut by = Key::unbounded(key(1).public());
            change(&mut by);
            by
        };
        let of = Key::unbounded(key(2).public());
        let cases = [
            (None, true),
            (Some(vec![]), true),
            (Some(vec![by(|_| {})]), true),
            (Some(vec![by(|by| by.revoked_at_ms = Some(60))]), false),
            (Some(vec![by(|by| by.revoked_at_ms = Some(60)), of]), true),
            (Some(vec![by(|by| by.revoked_at_ms = Some(40)), of]), false),
            (Some(vec![by(|by| by.not_after_ms = Some(40)), of]), false),
        ];
        for (keys, counts) in cases {
            let ring = keys.clone().map(|keys| {
                let mut ring = Keyring::new();
                for key in keys {
                    ring.insert(key).unwrap();
                }
                ring
            });
            let authority = ExternalKeysRef { keyring: ring.as_ref(), signers: &[] };
            let mut run = RunKeyring::from_opened(&object(audit.clone())).unwrap();
            let extended = run.extend(&keyring, authority);
            assert_eq!(extended.is_ok(), counts, "{keys:?}");
            // What bounds a key is said as people write times.
            if let Some([by, ..]) = keys.as_deref()
                && by.not_after_ms.is_some()
            {
                assert!(extended.unwrap_err().contains("1970-01-01T00:00:00.040Z"));
            }
            assert_eq!(run.keys.contains_key(&key(2).public().id()), counts, "all or none");
        }
    }
}
