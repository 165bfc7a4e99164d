//! Finds the key that signs records: in a variable, at the place that quorate.toml names, or in a file beside the ledger.
//! Never prints the key, and no message quotes what was read.

use std::sync::Arc;
use std::time::Duration;

use quorate_adapters::process;
use quorate_diagnostics::{Body, codes};
use quorate_ledger::keys::{self, KeyPurpose};
use quorate_ledger::signing::SecretKey;
use quorate_manifest::config::KeySource;
use zeroize::Zeroizing;

use super::{Keys, SigningKey};
use crate::service::error::ServiceError;
use crate::service::paths::absolute;
use crate::service::trust;
use crate::service::trust::TrustRequest;
use crate::service::workspace::boundary;

/// The variable that overrides all other sources.
const VARIABLE: &str = "QUORATE_SIGNING_KEY";
/// The deadline of a command that prints the key: it may prompt a person.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

impl Keys {
    /// The key that signs records.
    ///
    /// # Errors
    /// If a key exists but is unusable: it is malformed, or others can read it.
    #[crate::boxed]
    pub async fn signing_key(&self) -> Result<SigningKey, ServiceError> {
        self.signing_key.get_or_try_init(|| find(self)).await.cloned()
    }

    /// The key that signs records, if no command has to print it.
    ///
    /// # Errors
    /// As [`Keys::signing_key`].
    pub fn signing_key_without_command(&self) -> Result<Option<SigningKey>, ServiceError> {
        match find_without_command(self)? {
            FoundKey::Here(key) => Ok(Some(key)),
            FoundKey::Printed(_) => Ok(None),
        }
    }
}

/// Where the key comes from.
enum FoundKey<'k> {
    Here(SigningKey),
    /// This command prints it.
    Printed(&'k [String]),
}

async fn find(all: &Keys) -> Result<SigningKey, ServiceError> {
    let command = match find_without_command(all)? {
        FoundKey::Here(key) => return Ok(key),
        FoundKey::Printed(command) => command,
    };
    let need = TrustRequest {
        file: all.config_path(),
        acts: vec![process::command_side_effect(command, &all.root)],
    };
    let from = format!("the command `{}`", command.first().map_or("", String::as_str));
    if let Some(why) = untrusted(all, need)? {
        return Ok(SigningKey::Missing(format!("{from} was not run, since {why}")));
    }
    match process::run_command(command, &all.root, String::new(), COMMAND_TIMEOUT).await {
        Ok(text) => from_text(&Zeroizing::new(text), from),
        // Its output may contain the key.
        Err(_) => Ok(SigningKey::Missing(format!("{from} failed; try it by hand"))),
    }
}

fn find_without_command(all: &Keys) -> Result<FoundKey<'_>, ServiceError> {
    if let Some(text) = variable(all, VARIABLE) {
        return from_text(&text, format!("the variable {VARIABLE}")).map(FoundKey::Here);
    }
    let found = match all.settings.signing.as_ref().map(|(source, _)| source) {
        Some(KeySource::Env(name)) => match variable(all, name) {
            Some(text) => from_text(&text, format!("the variable {name}")),
            None => Ok(SigningKey::Missing(format!("the variable {name} is not set"))),
        },
        Some(KeySource::File(path)) => {
            let path = absolute(&all.root, path.as_ref());
            match refuse_outside(all, &path)? {
                Some(missing) => Ok(missing),
                None => from_file(all, &path, keys::read(&path)),
            }
        }
        Some(KeySource::Command(command)) => return Ok(FoundKey::Printed(command)),
        None => {
            let directory = all.directory();
            from_file(all, &directory.key_path(KeyPurpose::Signing), directory.load(KeyPurpose::Signing))
        }
    };
    found.map(FoundKey::Here)
}

/// Why an untrusted source is not used. Listing keys and optional signing continue without it.
fn untrusted(all: &Keys, need: TrustRequest) -> Result<Option<String>, ServiceError> {
    match trust::admit(&all.environment, vec![need]) {
        Ok(_) => Ok(None),
        Err(error) => {
            match error.report.refusals.iter().all(|refusal| refusal.code == codes::WORKSPACE_UNTRUSTED) {
                true => Ok(Some(error.first_message())),
                false => Err(error),
            }
        }
    }
}

/// Why a key outside of the workspace is not used: it may be the same person's key for another purpose.
fn refuse_outside(all: &Keys, path: &std::path::Path) -> Result<Option<SigningKey>, ServiceError> {
    let Some(act) = boundary::of_key(&all.root, path) else { return Ok(None) };
    let why = untrusted(all, TrustRequest { file: all.config_path(), acts: vec![act] })?;
    Ok(why.map(|why| SigningKey::Missing(format!("{} was not read, since {why}", all.display_path(path)))))
}

fn from_file(
    all: &Keys,
    path: &std::path::Path,
    read: Result<Option<SecretKey>, keys::KeyFileError>,
) -> Result<SigningKey, ServiceError> {
    let shown = all.display_path(path);
    Ok(match read.map_err(|error| all.to_error(&error))? {
        Some(key) => SigningKey::Available(Arc::new(key), shown),
        None => SigningKey::Missing(format!("{shown} does not exist")),
    })
}

fn variable(all: &Keys, name: &str) -> Option<Zeroizing<String>> {
    let text = all.environment.variables.get(name).filter(|text| !text.is_empty())?;
    Some(Zeroizing::new(text.to_owned()))
}

fn from_text(text: &str, from: String) -> Result<SigningKey, ServiceError> {
    match SecretKey::from_text(text) {
        Ok(key) => Ok(SigningKey::Available(Arc::new(key), from)),
        Err(error) => {
            let body = Body::new(format!("cannot read a secret key from {from}: {error}"));
            Err(ServiceError::configuration(
                codes::KEY_UNUSABLE,
                body.help("pass a single line in the format of the files in `keys/`"),
            ))
        }
    }
}
