//! The body of a task. The machine that queues a task signs it (D14: a task counts only with a valid signature where keys are
//! configured), and a worker verifies the signature before it uses any part of the task. Without a key and a keyring, tasks
//! are unsigned.

use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::attempts::object;
use quorate_kernel::canonical;
use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::{sha256_hex, unhex};
use quorate_kernel::record::{HiddenText, Producer, TierSource};
use quorate_ledger::merkle::Hash;
use quorate_ledger::signing::{KeyId, Keyring, KeyringEntry, SecretKey, Signature, SigningContext};
use quorate_ledger::store::tasks::ClaimedTask;
use quorate_manifest::assembly::Signing;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::error::Error;
use crate::service::keys::{self, SigningKey, WorkspaceKeys};
use crate::service::review::MAX_TYPE_CHARS;

/// The body of a task: the hashes of its texts, which the queue stores, and its metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskBody {
    /// The hash of the council or assembly.
    pub(super) bundle: String,
    /// The hash of the redacted text.
    pub(super) text: String,
    /// The hash of the earlier verdicts.
    pub(super) priors: Option<String>,
    /// The hash of the text before redaction.
    pub(super) artifact_sha256: String,
    pub(super) artifact_type: Option<String>,
    pub(super) tier: Option<u8>,
    pub(super) tier_source: Option<TierSource>,
    pub(super) producer: Option<Producer>,
    /// The number of messages, if the subject is a conversation.
    pub(super) messages: Option<u64>,
    pub(super) redactions: u32,
    /// The invisible text of the draft, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hidden: Option<HiddenText>,
    pub(super) batch: String,
    /// The log of the workspace that queued the task, and its length in bytes.
    pub(super) log: Option<(String, u64)>,
}

impl TaskBody {
    /// Why the task cannot run, if it is malformed. A value that is too long for a database index would fail every attempt.
    fn malformed(&self) -> Option<String> {
        let digests = [&self.bundle, &self.text, &self.artifact_sha256].into_iter().chain(&self.priors);
        if let Some(digest) = digests.into_iter().find(|digest| !is_sha256(digest)) {
            let begins: String = digest.chars().take(64).collect();
            return Some(format!("`{}` is not a SHA-256", begins.escape_debug()));
        }
        let is_long = self.artifact_type.as_ref().is_some_and(|word| word.chars().count() > MAX_TYPE_CHARS);
        is_long.then(|| format!("its type has more than {MAX_TYPE_CHARS} characters"))
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The field of a task's body that holds its signature: the key's name, the time and the signature, with spaces between
/// them.
const SIGNATURE_FIELD: &str = "signature";

/// The values that a signature covers besides the body, so that it does not fit another task.
#[derive(Clone, Copy)]
pub(super) struct Covered<'a> {
    pub(super) run: &'a str,
    pub(super) tenant: &'a str,
    pub(super) subject: &'a str,
}

/// The key that signs the tasks that this workspace queues; `None` if it has neither a key nor a keyring.
///
/// # Errors
/// If signatures are required or there is a keyring, and no key may sign; and if a key or the keyring is unusable.
#[crate::boxed]
pub(super) async fn signing_key(keys: &WorkspaceKeys) -> Result<Option<Arc<SecretKey>>, Error> {
    let ring = keys.load_keyring()?.keys;
    let why = match keys.signing_key().await? {
        SigningKey::Available(key, from) => {
            let id = key.public().id();
            match keys::unusable_reason(&keys::to_keyring(&ring), id, keys.now_ms()) {
                Some(why) if !ring.is_empty() => format!("{why}; it comes from {from}"),
                _ => return Ok(Some(key)),
            }
        }
        SigningKey::Missing(_) if ring.is_empty() && keys.signing_mode() != Signing::Required => {
            return Ok(None);
        }
        SigningKey::Missing(why) => why,
    };
    let body = Body::new(format!("cannot sign tasks for the queue: {why}"));
    let help = format!(
        "run `quorate keys init`, which makes a key and lists it in {}: workers refuse unsigned tasks where keys are configured",
        keys.display_path(&keys.keyring_path())
    );
    Err(Error::configuration(codes::SIGNING_KEY_MISSING, body.help(help)))
}

/// Adds the signature of a key to a task's body.
pub(super) fn sign_task(body: &mut Map<String, Json>, key: &SecretKey, covered: Covered<'_>, now_ms: i64) {
    let at = rfc3339(now_ms);
    let signature = key.sign(SigningContext::TASK, &signed_hash(body, covered, &at));
    body.insert(SIGNATURE_FIELD.to_owned(), json!(format!("{} {at} {signature}", key.public().id())));
}

/// Verifies the signature of a claimed task, and parses its body.
///
/// # Errors
/// If the body is malformed, if a required signature is missing, or if the signature does not count.
#[crate::boxed]
pub(super) async fn verified_body(keys: &WorkspaceKeys, task: &ClaimedTask) -> Result<TaskBody, Error> {
    let unreadable =
        |why: String| super::invalid(format!("cannot read the task: {why}"), "cancel it and queue it again");
    let mut body: Map<String, Json> =
        serde_json::from_str(&task.body).map_err(|error| unreadable(error.to_string()))?;
    let signature = body.remove(SIGNATURE_FIELD);
    let covered = Covered { run: &task.run, tenant: &task.tenant, subject: &task.subject };
    if let Some(why) = signature_rejection(keys, &body, covered, signature.as_ref()).await? {
        let what = Body::new(format!("cannot use the task of run {}: {why}", task.run));
        let help =
            "queue the text again from a workspace whose key is in this worker's keyring, with `--force`";
        return Err(Error::configuration(codes::TASK_UNSIGNED, what.help(help)));
    }
    let body: TaskBody =
        serde_json::from_value(Json::Object(body)).map_err(|error| unreadable(error.to_string()))?;
    match body.malformed() {
        None => Ok(body),
        Some(why) => Err(unreadable(why)),
    }
}

/// Why a task may not be used; `None` if it may. A key counts if it was valid at the stated time and is not revoked now:
/// the thief of a revoked key can state any time.
async fn signature_rejection(
    keys: &WorkspaceKeys,
    body: &Map<String, Json>,
    covered: Covered<'_>,
    signature: Option<&Json>,
) -> Result<Option<String>, Error> {
    let external = keys.trusted_keys()?;
    let (ring, is_required) = match external.keyring {
        Some(ring) => (ring, true),
        None => {
            let mut own = Keyring::new();
            let mut publics = external.signers;
            if let SigningKey::Available(key, _) = keys.signing_key().await? {
                publics.push(key.public());
            }
            let has_keys = !publics.is_empty();
            for public in publics {
                // The same key may come from several places.
                let _ = own.insert(KeyringEntry::unbounded(public));
            }
            (own, has_keys || keys.signing_mode() == Signing::Required)
        }
    };
    if !is_required {
        return Ok(None);
    }
    let Some(signature) = signature else {
        return Ok(Some("it is unsigned, and this worker has keys".to_owned()));
    };
    let Some((id, at_ms, signature)) = signature.as_str().and_then(parse_signature) else {
        return Ok(Some("its signature is malformed".to_owned()));
    };
    let leaf = signed_hash(body, covered, &rfc3339(at_ms));
    Ok(match ring.may_sign(id, at_ms) {
        Err(why) => Some(why.to_string()),
        Ok(key) if key.public.verify(SigningContext::TASK, &leaf, &signature).is_err() => {
            Some(format!("the key {id} did not make this signature"))
        }
        Ok(key) => key
            .revoked_at_ms
            .filter(|revoked_at_ms| *revoked_at_ms <= keys.now_ms())
            .map(|revoked_at_ms| format!("the key {id} is revoked from {} on", rfc3339(revoked_at_ms))),
    })
}

fn parse_signature(text: &str) -> Option<(KeyId, i64, Signature)> {
    let [id, at, signature] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some((KeyId::from_text(id).ok()?, parse_rfc3339(at)?, Signature::from_text(signature).ok()?))
}

/// The hash that the signature covers.
fn signed_hash(body: &Map<String, Json>, covered: Covered<'_>, at: &str) -> Hash {
    let Covered { run, tenant, subject } = covered;
    let all = object(json!({"at": at, "body": body, "run": run, "subject": subject, "tenant": tenant}));
    unhex(&sha256_hex(canonical::object(&all).as_bytes())).expect("a hash in hexadecimal is 32 bytes")
}
