//! Which keys may sign for a run (D3, D10), and when. Verification applies this to stored records, and the store to
//! records before it writes them.

use std::collections::BTreeMap;

use quorate_kernel::clock::rfc3339;
use quorate_kernel::record::{self, RunOpened};
use quorate_protocol::Json;
use serde_json::Map;

use super::{KeyId, Keyring, PublicKey, RejectedSignature, SigningContext, Voucher};

/// The keys known outside of the ledger.
#[derive(Debug, Clone, Default)]
pub struct ExternalKeys {
    /// The workspace's keyring, if there is one.
    pub keyring: Option<Keyring>,
    /// Keys outside of the keyring that are known to have signed runs.
    pub signers: Vec<PublicKey>,
}

/// A run's own rules for signatures: those in its first record, and the keys that `keyring` records have added since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunKeyring {
    pub(crate) required: bool,
    /// The configured signer.
    pub(crate) signer: Option<String>,
    /// Whether governance bound the keys. If so, only the run's own keys count.
    pub(crate) governed: bool,
    pub(crate) keys: BTreeMap<KeyId, PublicKey>,
}

impl RunKeyring {
    /// Reads the body of a run's first record.
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

    /// Adds the keys in the body of a `keyring` record, all or none.
    ///
    /// # Errors
    /// The reason why one of them does not count.
    pub(crate) fn extend(
        &mut self,
        keyring: &Map<String, Json>,
        authority: &ExternalKeys,
    ) -> Result<(), String> {
        let mut keys = self.keys.clone();
        extend_keys(&mut keys, keyring, |vouched| {
            let Some(ring) = &authority.keyring else { return Ok(()) };
            match ring.may_sign(vouched.by, vouched.at_ms) {
                // A run may introduce its own keys if governance bound them. Its signatures are checked with those.
                Err(RejectedSignature::UnknownKey { .. }) => return Ok(()),
                Err(error) => return Err(format!("{error}, and it vouches for {}", vouched.key.id())),
                // A thief of a key can claim any time.
                Ok(by) if by.revoked_at_ms.is_none() => return Ok(()),
                Ok(_) => {}
            }
            match ring.get(vouched.key.id()) {
                Some(_) => Ok(()),
                None => Err(format!(
                    "the key {} is revoked, but vouches for {}, which is not in the workspace's keyring",
                    vouched.by,
                    vouched.key.id()
                )),
            }
        })?;
        self.keys = keys;
        Ok(())
    }
}

/// Adds to `keys` those that the body of a `keyring` record vouches for. A voucher may come from a key that an earlier
/// one added. `may` decides whether a valid voucher counts.
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
        let vouched = voucher.check(SigningContext::VOUCHER, |by| keys.get(&by).copied())?;
        may(&vouched)?;
        keys.insert(vouched.key.id(), vouched.key);
    }
    Ok(())
}

/// A permitted signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedSigner {
    pub(crate) key: PublicKey,
    /// Only the run itself vouches for the key. Whether it may is decided after the whole ledger was read.
    pub(crate) is_unlisted: bool,
    /// Why the record's time is not credible: its key was revoked before the time of a checkpoint that precedes the
    /// record.
    pub(crate) backdated: Option<String>,
}

/// Checks that a key may sign a record of a run. `sealed_ms` is the time of the last signed checkpoint before the
/// record.
///
/// # Errors
/// The reason why it may not.
pub(crate) fn check_signer(
    audit: Option<&RunKeyring>,
    key: &str,
    at_ms: i64,
    sealed_ms: Option<i64>,
    authority: &ExternalKeys,
) -> Result<AllowedSigner, String> {
    let id = KeyId::from_text(key).map_err(|error| format!("`{key}` signed it: {error}"))?;
    let of_run = audit.and_then(|audit| audit.keys.get(&id)).copied();
    if audit.is_some() && of_run.is_none() {
        return Err(format!("it is signed by the key {id}, which is not in the run's keyring"));
    }
    let known = |key, is_outsider| AllowedSigner { key, is_unlisted: is_outsider, backdated: None };
    // The workspace's bounds for a key apply to every run.
    match (authority.keyring.as_ref().map(|keyring| keyring.may_sign(id, at_ms)), of_run) {
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
            signer.ok_or_else(|| format!("it is signed by the key {id}, which is in no keyring here"))
        }
        (Some(Err(error)), _) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use quorate_kernel::attempts::object;
    use serde_json::json;

    use super::*;
    use crate::signing::{KeyringEntry, SecretKey};

    #[test]
    fn a_revoked_key_vouches_for_keys_that_are_known_alone() {
        // D10
        let key = |seed: u8| SecretKey::from_seed(&[seed; 32]);
        let audit = json!({"audit": {"signing": "required", "keyring": [key(1).public().to_string()]}});
        let vouched = Voucher::sign(SigningContext::VOUCHER, &key(1), &key(2).public(), 50);
        let keyring = object(json!({"vouched": [vouched]}));
        let by = |change: fn(&mut KeyringEntry)| {
            let mut by = KeyringEntry::unbounded(key(1).public());
            change(&mut by);
            by
        };
        let of = KeyringEntry::unbounded(key(2).public());
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
            let authority = ExternalKeys { keyring: ring, signers: Vec::new() };
            let mut run = RunKeyring::from_opened(&object(audit.clone())).unwrap();
            let extended = run.extend(&keyring, &authority);
            assert_eq!(extended.is_ok(), counts, "{keys:?}");
            // Bounds are shown as dates.
            if let Some([by, ..]) = keys.as_deref()
                && by.not_after_ms.is_some()
            {
                assert!(extended.unwrap_err().contains("1970-01-01T00:00:00.040Z"));
            }
            assert_eq!(run.keys.contains_key(&key(2).public().id()), counts, "all or none");
        }
    }
}
