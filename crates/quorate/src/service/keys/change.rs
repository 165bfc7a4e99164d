//! Making, replacing and revoking keys. A secret is on disk before any file names its public half, and if the keyring
//! cannot be written, no key changes.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::clock::as_rfc3339;
use quorate_ledger::keys::{KeyFileError, KeyPurpose};
use quorate_ledger::signing::{KeyId, PublicKey, SecretKey, SigningContext, Voucher};
use quorate_ledger::store::Succession;
use quorate_ledger::store::lease::RunLock;
use quorate_manifest::keyring::{Key, TimeField, set_time};
use quorate_manifest::{keyring as edit, timestamp};
use serde::Serialize;

use super::super::error::{Error, ErrorKind};
use super::super::session::LedgerSession;
use super::super::{disk, ledger, sealing};
use super::{KeyringFile, SigningKey, WorkspaceKeys, find_in_keyring};

/// The comment at the top of a new keyring.
const KEYRING_HEADER: &str = "\
# The public keys whose signatures count in this workspace. Commit this file: a person who can change it decides which keys count.
# Times are RFC 3339, or dates. `quorate keys` keeps what you write here; https://www.rfc-editor.org/rfc/rfc8032 says what a key is.
";

/// 2020-01-01: no key is older.
const FIRST_KEYS_MS: i64 = 1_577_836_800_000;
/// The start of a key's validity if the time of its first use is unknown.
const LONG_AGO_MS: i64 = 0;

/// An existing key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// Its name.
    pub id: KeyId,
    /// The source of its secret half, for people.
    pub from: String,
    /// Whether this command made it.
    pub new: bool,
}

/// The keys of a workspace, made if they were missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyInit {
    /// The key that signs the ledger's checkpoints.
    pub ledger: KeyInfo,
    /// The key that signs records.
    pub signing: KeyInfo,
    /// The keyring's path as shown to the user.
    pub keyring: String,
    /// Whether this command added the key that signs records to the keyring.
    pub added: bool,
}

/// Makes missing keys, and adds the public half of the one that signs records to the keyring. Idempotent.
///
/// # Errors
/// If a file cannot be read, used or written.
pub(crate) async fn init(keys: &WorkspaceKeys) -> Result<KeyInit, Error> {
    let ring = keys.load_keyring()?;
    let directory = keys.directory();
    let load = |purpose| directory.load(purpose).map_err(|error| keys.to_error(&error));
    let ledger_is_new = load(KeyPurpose::Ledger)?.is_none();
    let ledger = directory.load_or_create(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    let (signing, from, signing_is_new) = match keys.signing_key().await? {
        SigningKey::Available(key, from) => (key.public(), from, false),
        SigningKey::Missing(why) if keys.settings.signing.is_some() => {
            let body = Body::new(format!("`[keys] signing` names the source of the key, but {why}"));
            let help = "put a key there; or remove `signing`, and `quorate keys init` makes one in `keys/` beside the ledger";
            return Err(Error::configuration(codes::KEY_UNUSABLE, body.help(help)));
        }
        SigningKey::Missing(_) => {
            let made =
                directory.load_or_create(KeyPurpose::Signing).map_err(|error| keys.to_error(&error))?;
            (made.public(), keys.display_path(&directory.key_path(KeyPurpose::Signing)), true)
        }
    };
    let added = !contains_key(&ring, &signing);
    if added {
        // An existing key may have signed already, so its earlier signatures must count.
        let from_ms = if signing_is_new { keys.now_ms() } else { LONG_AGO_MS };
        write(keys, &add_key(keys, keyring_text(&ring), &signing, from_ms, None)?)?;
    }
    Ok(KeyInit {
        ledger: KeyInfo {
            id: ledger.public().id(),
            from: keys.display_path(&directory.key_path(KeyPurpose::Ledger)),
            new: ledger_is_new,
        },
        signing: KeyInfo { id: signing.id(), from, new: signing_is_new },
        keyring: keys.shown_keyring(),
        added,
    })
}

/// A replaced key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRotation {
    /// The purpose of both keys.
    #[serde(rename = "signs")]
    pub purpose: KeyPurpose,
    /// The old key; `None` if it was lost. Its signatures count up to its revocation.
    pub old: Option<KeyId>,
    /// The time from which the old key is revoked, if it is.
    #[serde(skip)]
    pub revoked_at_ms: Option<i64>,
    /// The key that signs from now on.
    pub new: KeyId,
    /// The keyring's path as shown to the user.
    #[serde(skip)]
    pub keyring: String,
}

/// Replaces the ledger's key. First both keys sign a checkpoint, so that verifiers who trust the old key can accept the
/// new one; then the new key alone signs another one, after which the old key no longer counts. Other ledgers that the
/// old key signed continue with its voucher for the new one, which is stored beside the keys.
///
/// # Errors
/// If another key than this machine's signs the ledger, a file cannot be used or written, or the ledger does not
/// answer. Then nothing is written that a verification would refuse.
pub(crate) async fn rotate_ledger(
    keys: &WorkspaceKeys,
    session: &LedgerSession,
) -> Result<KeyRotation, Error> {
    if sealing::key_from_environment(&keys.environment).is_some() {
        let body = Body::new(format!(
            "the ledger's key comes from the variable {}, which this command cannot change",
            sealing::LEDGER_KEY_VARIABLE
        ));
        let help = "unset it on the machine with the key's file, rotate there, and pass the new key";
        return Err(Error::configuration(codes::KEY_UNUSABLE, body.help(help)));
    }
    let directory = keys.directory();
    let present = directory.load(KeyPurpose::Ledger).map_err(|error| keys.to_error(&error))?;
    let is_signed = session.store.checkpoint_keys().await?.is_some();
    let old = match present.is_some() || is_signed {
        true => Some(session.sealer().signing_key().await?),
        // A ledger that was never signed has no key to replace.
        false => None,
    };
    let made = SecretKey::generate();
    let id = made.public().id();
    let new = SecretKey::from_text(&made.to_text()).expect("the text of a key is one");
    let (old, vouched) = old.map_or_else(Default::default, |own| (Some(own.key), own.vouched));
    let both: Vec<Arc<SecretKey>> = std::iter::once(Arc::new(made)).chain(old.clone()).collect();
    let succession = Succession { vouched, ..Succession::default() };
    ledger::vouch(session, &both, succession).await?;
    match &old {
        Some(_) => directory.rotate(KeyPurpose::Ledger, new, keys.now_ms()).map(|_| ()),
        None => directory.insert(KeyPurpose::Ledger, new).map(|_| ()),
    }
    .map_err(|error| keys.to_error(&error))?;
    if let Err(error) = ledger::seal_again(session).await {
        let body = Body::new(format!("the old key still counts: {}", error.first_message()));
        let help = "run `quorate ledger checkpoint` to sign with the new key alone";
        session.warn(codes::CHECKPOINT_MISSING, body.help(help));
    }
    let old = old.map(|old| old.public().id());
    Ok(KeyRotation {
        purpose: KeyPurpose::Ledger,
        old,
        revoked_at_ms: None,
        new: id,
        keyring: keys.shown_keyring(),
    })
}

/// Replaces the key that signs records: in the keyring the old key ends now and the new one begins, and the old key
/// vouches for the new one, which can then continue its runs.
///
/// # Errors
/// If there is no key, it does not come from its own file, a process is signing with it, or a file cannot be used or
/// written.
pub(crate) async fn rotate_signing(keys: &WorkspaceKeys) -> Result<KeyRotation, Error> {
    let directory = keys.directory();
    let file = keys.display_path(&directory.key_path(KeyPurpose::Signing));
    if let SigningKey::Available(_, from) = keys.signing_key().await?
        && from != file
    {
        let body = Body::new(format!("the signing key comes from {from}, which this command cannot change"));
        let help = "put another key there, add it with `quorate keys init`, vouch for it with the old one (`quorate keys vouch KEY`), and revoke the old one";
        return Err(Error::configuration(codes::KEY_UNUSABLE, body.help(help)));
    }
    ensure_idle(keys)?;
    let ring = keys.load_keyring()?;
    let old = directory.load(KeyPurpose::Signing).and_then(|key| {
        key.ok_or_else(|| KeyFileError::Missing { path: directory.key_path(KeyPurpose::Signing) })
    });
    let old = old.map_err(|error| keys.to_error(&error))?;
    let new = SecretKey::generate();
    let (now_ms, new_public) = (keys.now_ms(), new.public());
    // Signatures of a key that may not sign count for nothing.
    let may = super::unusable_reason(&super::to_keyring(&ring.keys), old.public().id(), now_ms).is_none();
    let voucher = may.then(|| Voucher::sign(SigningContext::VOUCHER, &old, &new_public, now_ms));
    let ended = |text: &str, old: &PublicKey| match contains_key(&ring, old) {
        true => set_timestamp(keys, text, old, TimeField::NotAfter, keys.now_ms()),
        false => Ok(text.to_owned()),
    };
    // A process killed in between leaves the old key, which still signs, or the new one with its voucher.
    ended(keyring_text(&ring), &old.public())?;
    let grown = add_key(keys, keyring_text(&ring), &new_public, now_ms, voucher.as_ref())?;
    write(keys, &grown)?;
    let rotated =
        directory.rotate(KeyPurpose::Signing, new, now_ms).map_err(|error| keys.to_error(&error))?;
    write(keys, &ended(&grown, &rotated)?)?;
    let revoked_at_ms = listed(&ring, &rotated).and_then(|key| key.revoked_at_ms);
    Ok(KeyRotation {
        purpose: KeyPurpose::Signing,
        old: Some(rotated.id()),
        revoked_at_ms: revoked_at_ms.filter(|at_ms| *at_ms <= now_ms),
        new: new_public.id(),
        keyring: keys.shown_keyring(),
    })
}

/// A voucher for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyVouch {
    /// The key that vouches.
    pub by: KeyId,
    /// The key that it vouches for.
    pub key: KeyId,
    /// The keyring's path as shown to the user.
    #[serde(skip)]
    pub keyring: String,
}

/// Makes the key that signs records vouch for another key of the keyring. That key can then sign what the first may
/// sign, such as runs that were opened before it existed.
///
/// # Errors
/// If no key may sign now, the other key does not exist, or the file cannot be used or written.
pub(crate) async fn vouch(keys: &WorkspaceKeys, id: &str) -> Result<KeyVouch, Error> {
    let ring = keys.load_keyring()?;
    let public = find_in_keyring(keys, &ring, id)?;
    let cannot = |why: &str| {
        let body = Body::new(format!("cannot vouch for {}: {why}", public.id()));
        let help = "use a key that may sign, for example with QUORATE_SIGNING_KEY; `quorate keys list` shows the available keys";
        Error::configuration(codes::SIGNING_KEY_MISSING, body.help(help))
    };
    let by = match keys.signing_key().await? {
        SigningKey::Available(by, _) => by,
        SigningKey::Missing(why) => return Err(cannot(&why)),
    };
    let now_ms = keys.now_ms();
    if let Some(why) = super::unusable_reason(&super::to_keyring(&ring.keys), by.public().id(), now_ms) {
        return Err(cannot(&why));
    }
    if by.public() == public {
        return Err(cannot("it is the signing key itself"));
    }
    let voucher = Voucher::sign(SigningContext::VOUCHER, &by, &public, now_ms).to_text();
    let edited = edit::add_voucher(keyring_text(&ring), &public.to_string(), &voucher).ok_or_else(|| {
        manual_edit_error(keys, &format!("write `vouched = [\"{voucher}\"]` beside {}", public.id()))
    })?;
    write(keys, &edited)?;
    Ok(KeyVouch { by: by.public().id(), key: public.id(), keyring: keys.shown_keyring() })
}

/// A revoked key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyRevocation {
    /// The key.
    pub id: KeyId,
    /// The time from which its signatures do not count, in milliseconds since the Unix epoch.
    #[serde(rename = "revoked_at", serialize_with = "as_rfc3339")]
    pub revoked_at_ms: i64,
    /// The keyring's path as shown to the user.
    #[serde(skip)]
    pub keyring: String,
}

/// Revokes a key from a time on: its later signatures do not count.
///
/// # Errors
/// If it is not in the keyring, or the file cannot be used or written.
pub(crate) fn revoke(keys: &WorkspaceKeys, id: &str, at_ms: i64) -> Result<KeyRevocation, Error> {
    let (ring, public) = find_revocable(keys, id, at_ms)?;
    write(keys, &set_timestamp(keys, keyring_text(&ring), &public, TimeField::RevokedAt, at_ms)?)?;
    Ok(KeyRevocation { id: public.id(), revoked_at_ms: at_ms, keyring: keys.shown_keyring() })
}

/// The key of a name, unless it is revoked from an earlier time on.
fn find_revocable(keys: &WorkspaceKeys, id: &str, at_ms: i64) -> Result<(KeyringFile, PublicKey), Error> {
    let ring = keys.load_keyring()?;
    let public = find_in_keyring(keys, &ring, id)?;
    // A slip, such as a span of 99999 weeks, could not be undone. 0 is `all`.
    if at_ms != 0 && at_ms < FIRST_KEYS_MS {
        let body = Body::new(format!("{} is earlier than any key", timestamp::format(at_ms)));
        let help = "give the earliest time at which another person may have had the key, or `--at all` for everything that it signed";
        return Err(Error::usage(body.help(help)));
    }
    let revoked_at_ms = listed(&ring, &public).and_then(|key| key.revoked_at_ms);
    if let Some(before_ms) = revoked_at_ms.filter(|before_ms| *before_ms < at_ms) {
        let body = Body::new(format!(
            "{} is already revoked from {} on, and a revocation cannot move to a later time",
            public.id(),
            timestamp::format(before_ms)
        ));
        let help = "to make later signatures count again, edit the keyring, where others see the change";
        return Err(Error::configuration(codes::KEY_REVOKED, body.help(help)));
    }
    Ok((ring, public))
}

/// The warning before a key is revoked from a past time on, which cannot be undone.
///
/// # Errors
/// As [`revoke`].
pub(crate) fn backdating_warning(
    keys: &WorkspaceKeys,
    id: &str,
    at_ms: i64,
    now_ms: i64,
) -> Result<Report, Error> {
    let id = find_revocable(keys, id, at_ms)?.1.id();
    let mut report = Report::new();
    if at_ms < now_ms {
        let body =
            Body::new(format!("signatures of {id} since {} no longer count", timestamp::format(at_ms)));
        let help = "where it signed records since then, `quorate ledger verify` exits with 1 from now on: keep its report, and \
                    a checkpoint from before, as evidence for these records";
        report.warn(codes::REVOKED_BEFORE, body.help(help));
    }
    Ok(report)
}

/// Refuses while another process works on a run: its next signatures would come after the key's end.
fn ensure_idle(keys: &WorkspaceKeys) -> Result<(), Error> {
    let live = keys.ledger_dir.join("live");
    for found in disk::walk(&live).unwrap_or_default() {
        let Some(name) = found.path.file_name().and_then(|name| name.to_str()) else { continue };
        if let Ok(None) = RunLock::try_acquire(&keys.ledger_dir, name) {
            let body = Body::new(format!("another process works on {name} and may be signing with this key"));
            return Err(Error::new(
                ErrorKind::Moved,
                codes::RUN_MOVED,
                body.help("rotate when it has ended"),
            ));
        }
    }
    Ok(())
}

fn keyring_text(ring: &KeyringFile) -> &str {
    ring.text.as_deref().unwrap_or(KEYRING_HEADER)
}

fn contains_key(ring: &KeyringFile, key: &PublicKey) -> bool {
    listed(ring, key).is_some()
}

fn listed<'a>(ring: &'a KeyringFile, key: &PublicKey) -> Option<&'a Key> {
    ring.keys.iter().find(|one| *one.public == key.to_string())
}

/// The keyring's text with another key, valid from now on.
fn add_key(
    keys: &WorkspaceKeys,
    text: &str,
    key: &PublicKey,
    from_ms: i64,
    voucher: Option<&Voucher>,
) -> Result<String, Error> {
    let from = timestamp::format(from_ms);
    let voucher = voucher.map(Voucher::to_text);
    edit::add_key(text, &key.to_string(), &keys.environment.user, &from, voucher.as_deref())
        .ok_or_else(|| manual_edit_error(keys, &format!("add `public = \"{key}\"`")))
}

fn set_timestamp(
    keys: &WorkspaceKeys,
    text: &str,
    key: &PublicKey,
    what: TimeField,
    at_ms: i64,
) -> Result<String, Error> {
    let at = timestamp::format(at_ms);
    let line = match what {
        TimeField::NotAfter => "not_after",
        TimeField::RevokedAt => "revoked_at",
    };
    set_time(text, &key.to_string(), what, &at)
        .ok_or_else(|| manual_edit_error(keys, &format!("write `{line} = \"{at}\"` beside {}", key.id())))
}

fn manual_edit_error(keys: &WorkspaceKeys, what: &str) -> Error {
    let body = Body::new(format!(
        "cannot edit {}: it is not in the form that this command edits, `[[keys]]` tables with one line for each key",
        keys.shown_keyring()
    ));
    Error::configuration(
        codes::KEYRING_INVALID,
        body.help(format!("rewrite it in that form, or edit it by hand: {what}")),
    )
}

fn write(keys: &WorkspaceKeys, text: &str) -> Result<(), Error> {
    let path = keys.keyring_path();
    disk::write_below(&keys.root, &path, text.as_bytes()).map_err(|error| {
        let body = Body::new(format!("cannot write {}: {error}", keys.display_path(&path)));
        Error::configuration(
            codes::KEYRING_INVALID,
            body.help("the key exists; run the command again when the file can be written"),
        )
    })
}
