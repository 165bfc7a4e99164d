//! Checks an export from its file and keys alone, without a ledger or a workspace.

use std::io::{BufRead, BufReader};
use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::export::jsonl::{ExportHeader, ExportTotals};
use quorate_ledger::export::jsonl::{InvalidExport, Reader};

use super::check_proof::Request;
use super::trust;
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::paths::absolute;

/// A verified export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportCheck {
    pub header: ExportHeader,
    /// The number of lines by kind.
    pub counted: ExportTotals,
    /// The trusted key that signed its checkpoint; `None` means that the export proves nothing.
    pub vouched: Option<String>,
}

/// Checks an export, line by line.
///
/// # Errors
/// If it is not an export, or is invalid.
pub fn check(environment: &Environment, request: &Request) -> Result<ExportCheck, ServiceError> {
    let trusted = trust::ledger_keys(environment, &request.keys)?;
    let signers = trust::signer_keys(environment, &request.signers)?;
    let input: Box<dyn BufRead> = match request.file.as_str() {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        file => {
            let opened = disk::open(&absolute(&environment.directory, Path::new(file)));
            Box::new(BufReader::new(opened.map_err(|error| unreadable(request, &error))?))
        }
    };
    let refused = |flaw: InvalidExport| match flaw {
        InvalidExport::Io(error) => unreadable(request, &error),
        InvalidExport::NotAnExport(_) => invalid_export(request, &flaw.to_string()),
        InvalidExport::InvalidLine { .. } => {
            let body = Body::new(format!("the export {} is invalid: {flaw}", request.file));
            let help = "ask for a new export, and keep the file unchanged, byte for byte";
            ServiceError::new(ExitClass::Refused, codes::EXPORT_INVALID, body.help(help))
        }
    };
    let mut reader = Reader::open(input, &signers).map_err(refused)?;
    while reader.next_entry().map_err(refused)?.is_some() {}
    let (header, counted) = (reader.header().clone(), reader.totals().clone());
    Ok(ExportCheck { vouched: reader.trusted_key(&trusted), header, counted })
}

/// The warning about an export whose key is not trusted.
pub fn unvouched(request: &Request, checked: &ExportCheck) -> ServiceError {
    let why = match (checked.header.keys.as_slice(), request.keys.is_empty()) {
        ([], _) => "its checkpoint is unsigned, so it proves nothing".to_owned(),
        (keys, true) => format!("it verifies against {}, but that key is not trusted", keys.join(" and ")),
        (keys, false) => {
            format!("it verifies against {}, which is not one of the given keys", keys.join(" and "))
        }
    };
    let help = "get the ledger's key from its owner over another channel (`quorate keys export ledger`) and pass it with `--key`";
    ServiceError::new(
        ExitClass::Refused,
        codes::KEY_UNVOUCHED,
        Body::new(format!("{}: {why}", request.file)).help(help),
    )
}

fn unreadable(request: &Request, error: &std::io::Error) -> ServiceError {
    match error.kind() {
        std::io::ErrorKind::NotFound => ServiceError::not_found(
            codes::EXPORT_INVALID,
            Body::new(format!("{} does not exist", request.file))
                .help("run `quorate ledger export --out FILE` to write an export"),
        ),
        _ => invalid_export(request, &error_chain(error)),
    }
}

fn invalid_export(request: &Request, why: &str) -> ServiceError {
    let body = Body::new(format!("cannot read {} as an export: {why}", request.file));
    ServiceError::configuration(
        codes::EXPORT_INVALID,
        body.help("run `quorate ledger export --out FILE` to write one"),
    )
}
