//! Imports runs of another ledger from its export.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::import::{self, ImportError, ImportOptions, ImportSummary};
use quorate_ledger::prove::TrustedKey;
use quorate_ledger::signing::{PublicKey, SecretKey};

use super::{checkpoint, trust};
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::{ServiceError, error_chain};
use crate::service::keys::Keys;
use crate::service::paths::absolute;
use crate::service::session::LedgerSession;
use crate::service::workspace::Workspace;

#[derive(Debug, Clone)]
pub struct Request {
    pub file: String,
    /// `--key`.
    pub keys: Vec<String>,
    /// `--signer`.
    pub signers: Vec<String>,
    /// Whether it is a dry run.
    pub dry_run: bool,
}

/// The checked inputs of an import.
struct PreparedImport {
    path: PathBuf,
    trusted: Vec<TrustedKey>,
    signers: Vec<PublicKey>,
    /// The ledger's key; `None` for a dry run.
    key: Option<Arc<SecretKey>>,
    at_ms: i64,
    dry_run: bool,
}

impl PreparedImport {
    fn of(environment: &Environment, keys: &Keys, request: &Request) -> Result<PreparedImport, ServiceError> {
        let mut trusted = trust::own_keys(keys)?;
        trusted.extend(trust::ledger_keys(environment, &request.keys)?);
        let signers = trust::signer_keys(environment, &request.signers)?;
        let path = absolute(&environment.directory, Path::new(&request.file));
        let unusable = |what: &str| {
            let body = Body::new(format!("cannot import {}: {what}", request.file));
            body.help("run `quorate ledger export --out FILE` to write an export")
        };
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => {}
            // The export is read twice, so a pipe cannot be used.
            Ok(_) => {
                return Err(ServiceError::configuration(
                    codes::EXPORT_INVALID,
                    unusable("it is not a regular file"),
                ));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(ServiceError::not_found(
                    codes::EXPORT_INVALID,
                    unusable("the file does not exist"),
                ));
            }
            Err(error) => {
                let what = format!("cannot read it: {error}");
                return Err(ServiceError::configuration(codes::EXPORT_INVALID, unusable(&what)));
            }
        }
        Ok(PreparedImport {
            path,
            trusted,
            signers,
            key: None,
            at_ms: environment.clock.now_ms(),
            dry_run: request.dry_run,
        })
    }

    fn terms(&self) -> ImportOptions<'_> {
        let PreparedImport { trusted, signers, key, at_ms, dry_run, .. } = self;
        ImportOptions { trusted, signers, key: key.as_deref(), at_ms: *at_ms, dry_run: *dry_run }
    }

    fn open(&self) -> std::io::Result<BufReader<std::fs::File>> {
        disk::open(&self.path).map(BufReader::new)
    }
}

/// Verifies an export if no ledger exists yet, and lists the records that an import would merge. A dry run and a refusal
/// create no ledger.
///
/// # Errors
/// As [`import()`].
#[crate::boxed]
pub async fn preview(
    environment: &Environment,
    workspace: &Workspace,
    request: &Request,
) -> Result<ImportSummary, ServiceError> {
    let ready = PreparedImport::of(environment, &Keys::of(environment, workspace), request)?;
    let file =
        ready.open().map_err(|error| import_error(request, ImportError::InvalidExport(error.into())))?;
    import::preview(file, &ready.terms()).await.map_err(|error| import_error(request, error))
}

/// Verifies an export, merges records that this ledger lacks, then seals.
///
/// # Errors
/// If the file is not an export, is invalid, has no trusted signer, or contradicts this ledger; then nothing is merged.
#[crate::boxed]
pub async fn import(session: &LedgerSession, request: &Request) -> Result<ImportSummary, ServiceError> {
    let mut ready = PreparedImport::of(&session.environment, session.keys(), request)?;
    if !request.dry_run {
        ready.key = Some(session.sealer().required_key().await?);
    }
    let imported = session.store.import(|| ready.open(), &ready.terms()).await;
    let imported = imported.map_err(|error| import_error(request, error))?;
    if !request.dry_run && !imported.runs.is_empty() {
        session.absorb(checkpoint::checkpoint(session).await?.report);
    }
    Ok(imported)
}

fn import_error(request: &Request, error: ImportError) -> ServiceError {
    let file = &request.file;
    match error {
        ImportError::InvalidExport(flaw) => ServiceError::configuration(
            codes::EXPORT_INVALID,
            Body::new(format!("cannot import {file}: {}", error_chain(&flaw)))
                .help("ask for a new export, and keep the file unchanged, byte for byte"),
        ),
        ImportError::UntrustedKey { keys } => {
            let why = match keys.is_empty() {
                true => "it is unsigned".to_owned(),
                false => format!("it is signed by {}, but that key is not trusted", keys.join(" and ")),
            };
            let help = "get the ledger's key from its owner over another channel (`quorate keys export ledger`) and pass it with `--key`";
            ServiceError::configuration(
                codes::KEY_UNVOUCHED,
                Body::new(format!("cannot import {file}: {why}")).help(help),
            )
        }
        ImportError::Conflict { .. } => ServiceError::configuration(
            codes::IMPORT_CONFLICT,
            Body::new(format!("cannot import {file}: {error}")).help(
                "import it into a new ledger with `--ledger`, and compare the run with `quorate show`",
            ),
        ),
        ImportError::Ledger(error) => error.into(),
    }
}
