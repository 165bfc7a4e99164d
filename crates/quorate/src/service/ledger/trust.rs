//! Trusted keys for making and checking proofs and exports: those of `--key` and `--signer`, and this workspace's.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::PublicKey;

use crate::service::disk::{self, Text};
use crate::service::environment::Environment;
use crate::service::error::{ServiceError, error_chain};
use crate::service::keys::{Keys, SigningKey, public_key};
use crate::service::paths::absolute;
use crate::service::session::LedgerSession;

/// Keys of ledgers: each value is a verifier's line, a public key, or a file of such lines.
///
/// # Errors
/// If a value has none of these forms.
pub fn ledger_keys(environment: &Environment, given: &[String]) -> Result<Vec<TrustedKey>, ServiceError> {
    parse_keys(environment, given, TrustedKey::from_text)
}

/// Keys of signers of records: each value is a public key or a file of such lines.
///
/// # Errors
/// If a value is neither.
pub fn signer_keys(environment: &Environment, given: &[String]) -> Result<Vec<PublicKey>, ServiceError> {
    parse_keys(environment, given, |line| {
        PublicKey::from_text(line.trim()).map_err(|error| error.to_string())
    })
}

fn parse_keys<T>(
    environment: &Environment,
    given: &[String],
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, ServiceError> {
    let mut all = Vec::new();
    for value in given {
        let path = absolute(&environment.directory, Path::new(value));
        let unusable = |why: &str| {
            let help =
                "`quorate keys export ledger` prints a ledger's key, and `quorate keys export` a signer's";
            ServiceError::configuration(
                codes::KEY_UNUSABLE,
                Body::new(format!("`{value}` is not a public key: {why}")).help(help),
            )
        };
        let text = match path.is_file() {
            true => disk::read_text(&path).map_err(|error| unusable(&error_chain(&error)))?,
            false => Text::Present(value.clone()),
        };
        let Text::Present(text) = text else { return Err(unusable("the file does not exist")) };
        let before = all.len();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            all.push(read(line).map_err(|why| match path.is_file() {
                true => unusable(&why),
                false => unusable(&format!("{why}, and no file has this name")),
            })?);
        }
        if all.len() == before {
            return Err(unusable("it is empty"));
        }
    }
    Ok(all)
}

/// The keys of this ledger, retired ones included, since it trusts its own signatures.
///
/// # Errors
/// If one cannot be read.
pub fn own_keys(keys: &Keys) -> Result<Vec<TrustedKey>, ServiceError> {
    let directory = keys.directory();
    let unreadable = |error: quorate_ledger::keys::KeyFileError| {
        ServiceError::configuration(
            codes::KEY_UNUSABLE,
            Body::new(error_chain(&error)).help("see `quorate keys list`"),
        )
    };
    let now = directory.load(KeyPurpose::Ledger).map_err(unreadable)?.map(|key| key.public());
    let retired = directory.retired(KeyPurpose::Ledger).map_err(unreadable)?;
    Ok(now.into_iter().chain(retired).map(TrustedKey::Public).collect())
}

/// The public keys that may have signed records here: the keyring's, the signing key's, and retired keys. Skips unreadable
/// keys.
#[crate::boxed]
pub async fn known_signers(session: &LedgerSession) -> Vec<PublicKey> {
    let keys = session.keys();
    let ring = keys.load_keyring().unwrap_or_default();
    let mut known: Vec<PublicKey> = ring.keys.iter().filter_map(public_key).collect();
    if let Ok(SigningKey::Available(secret, _)) = keys.signing_key().await {
        known.push(secret.public());
    }
    known.extend(keys.directory().retired(KeyPurpose::Signing).unwrap_or_default());
    known
}
