//! Checks a proof from its file and keys alone, without a ledger or a workspace.

use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::prove::{self, InvalidProof, VerifiedProof};

use super::trust;
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::paths::absolute;

#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The proof's file, or `-` for standard input.
    pub file: String,
    /// `--key`.
    pub keys: Vec<String>,
    /// `--signer`.
    pub signers: Vec<String>,
}

/// Checks a proof. If its key is not trusted, [`VerifiedProof::trusted_key`] is `None` and [`unvouched`] warns: it is
/// consistent, but so is a forger's.
///
/// # Errors
/// If it is not a proof, or is invalid.
pub fn check(environment: &Environment, request: &Request) -> Result<VerifiedProof, ServiceError> {
    let trusted = trust::ledger_keys(environment, &request.keys)?;
    let signers = trust::signer_keys(environment, &request.signers)?;
    let limit = prove::MAX_BYTES as u64;
    let bytes = match request.file.as_str() {
        "-" => disk::read_stdin(limit),
        file => disk::read_up_to(&absolute(&environment.directory, Path::new(file)), limit),
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ServiceError::not_found(
            codes::PROOF_UNREADABLE,
            Body::new(format!("{} does not exist", request.file))
                .help("`quorate ledger prove RUN` writes a proof"),
        ),
        _ => unreadable(request, &error_chain(&error)),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(request, "it is not UTF-8"))?;
    prove::check_proof(&text, &trusted, &signers).map_err(|failed| match failed {
        InvalidProof::NotAProof(why) => unreadable(request, &why),
        InvalidProof::InvalidPart { .. } => ServiceError::new(
            ExitClass::Refused,
            codes::PROOF_INVALID,
            Body::new(format!("{} proves nothing: {failed}", request.file))
                .help("ask its sender for a new proof, and for the key over another channel"),
        ),
    })
}

/// The warning about a proof whose key is not trusted.
pub fn unvouched(request: &Request, proven: &VerifiedProof) -> ServiceError {
    let keys: Vec<String> = proven.keys.iter().map(ToString::to_string).collect();
    let keys = keys.join(" and ");
    let why = match request.keys.is_empty() {
        true => "but that key is not trusted",
        false => "which is not one of the given keys",
    };
    let body = Body::new(format!("{} verifies against {keys}, {why}", request.file));
    let help = "get the ledger's key from its owner over another channel (`quorate keys export ledger`) and pass it with `--key`";
    ServiceError::new(ExitClass::Refused, codes::KEY_UNVOUCHED, body.help(help))
}

fn unreadable(request: &Request, why: &str) -> ServiceError {
    let body = Body::new(format!("{} is no proof that can be read: {why}", request.file));
    let help = "`quorate ledger prove RUN > proof.json` writes one; it has to stay as it is, byte for byte";
    ServiceError::configuration(codes::PROOF_UNREADABLE, body.help(help))
}
