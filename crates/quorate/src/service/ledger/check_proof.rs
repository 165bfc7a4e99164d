//! Checks a proof, or a report with a proof in it, from its file and keys alone, without a ledger or a workspace.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::prove::{self, InvalidProof, VerifiedProof};

use super::trust;
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::{ExitClass, ServiceError, error_chain};
use crate::service::paths::absolute;
use crate::service::report_file::{InvalidContents, ReportFile};

/// The longest file that is read: a report has its proof in base64, beside the page.
const MAX_FILE_BYTES: u64 = 4 * prove::MAX_BYTES as u64;

#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The file of the proof or the report, or `-` for standard input.
    pub file: String,
    /// `--key`.
    pub keys: Vec<String>,
    /// `--signer`.
    pub signers: Vec<String>,
}

/// How a report file is read and drawn; the front end with pages supplies it.
pub struct ReportFormat {
    /// The beginning of every report.
    pub begins: &'static str,
    /// Reads the contents that are embedded in a report; the error is a reason in words.
    pub embedded: fn(&str) -> Result<Embedded, String>,
    /// Draws the contents; the error is a reason in words.
    pub draw: fn(&ReportFile) -> Result<String, String>,
}

/// The embedded parts of a report.
pub struct Embedded {
    pub proof: String,
    /// The texts, each with its place among the run's inputs.
    pub texts: Vec<(usize, Arc<str>)>,
    /// The program that drew the report.
    pub program: String,
    /// This program, which draws it again.
    pub this_program: String,
}

/// The result of a check.
pub struct Checked {
    pub proven: VerifiedProof,
    /// Whether the file is a report. A report shows exactly what its proof says.
    pub is_report: bool,
}

/// Checks a proof or a report. If its key is not trusted, [`VerifiedProof::trusted_key`] is `None` and [`unvouched`] warns:
/// the proof is consistent, but a forged one would be as well. Draws a report again from its proof; the result must be
/// equal, byte for byte.
///
/// # Errors
/// If it is not a proof, is invalid, or shows something else than its proof says.
pub fn check(
    environment: &Environment,
    request: &Request,
    reports: Option<&ReportFormat>,
) -> Result<Checked, ServiceError> {
    let trusted = trust::ledger_keys(environment, &request.keys)?;
    let signers = trust::signer_keys(environment, &request.signers)?;
    let text = read_file(environment, request)?;
    let report = reports.filter(|format| text.starts_with(format.begins));
    let embedded = report.map(|format| (format.embedded)(&text)).transpose();
    let embedded = embedded.map_err(|why| unreadable(request, &why))?;
    let proof = embedded.as_ref().map_or(&*text, |embedded| &*embedded.proof);
    let proven = prove::check_proof(proof, &trusted, &signers).map_err(|failed| invalid(request, failed))?;
    if let (Some(format), Some(embedded)) = (report, embedded) {
        check_drawn(request, &text, format, embedded)?;
    }
    Ok(Checked { proven, is_report: report.is_some() })
}

/// Draws a report again from what it embeds, and compares.
fn check_drawn(
    request: &Request,
    text: &str,
    format: &ReportFormat,
    embedded: Embedded,
) -> Result<(), ServiceError> {
    let Embedded { proof, texts, program, this_program } = embedded;
    let file = ReportFile::read(proof, texts).map_err(|error| match error {
        InvalidContents::Proof(failed) => invalid(request, failed),
        other => differs(request, &other.to_string(), "ask its sender for a new report"),
    })?;
    let drawn = (format.draw)(&file).map_err(|why| unreadable(request, &why))?;
    if drawn == text {
        return Ok(());
    }
    if program != this_program {
        let what =
            format!("{program} drew it; this program, {this_program}, cannot compare its content");
        let help =
            format!("check it with {program}, or ask its sender for the proof (`quorate ledger prove`)");
        return Err(differs(request, &what, &help));
    }
    let line = drawn.lines().zip(text.lines()).take_while(|(ours, theirs)| ours == theirs).count() + 1;
    let what = format!("line {line} of the file differs from what its proof says");
    Err(differs(request, &what, "do not rely on it; ask its sender for a new report"))
}

fn differs(request: &Request, what: &str, help: &str) -> ServiceError {
    let body = Body::new(format!("{} was changed: {what}", request.file));
    ServiceError::new(ExitClass::Refused, codes::REPORT_DIFFERS, body.help(help))
}

fn invalid(request: &Request, failed: InvalidProof) -> ServiceError {
    match failed {
        InvalidProof::NotAProof(why) => unreadable(request, &why),
        InvalidProof::InvalidPart { .. } => ServiceError::new(
            ExitClass::Refused,
            codes::PROOF_INVALID,
            Body::new(format!("{} is not proven: {failed}", request.file))
                .help("ask its sender for a new proof, and for the key over another channel"),
        ),
    }
}

fn read_file(environment: &Environment, request: &Request) -> Result<String, ServiceError> {
    let limit = MAX_FILE_BYTES;
    let bytes = match request.file.as_str() {
        "-" => disk::read_stdin(limit),
        file => disk::read_up_to(&absolute(&environment.directory, Path::new(file)), limit),
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ServiceError::not_found(
            codes::PROOF_UNREADABLE,
            Body::new(format!("{} does not exist", request.file))
                .help("run `quorate ledger prove RUN` to write a proof"),
        ),
        _ => unreadable(request, &error_chain(&error)),
    })?;
    String::from_utf8(bytes).map_err(|_| unreadable(request, "it is not UTF-8"))
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
    let body = Body::new(format!("cannot read {} as a proof: {why}", request.file));
    let help = "run `quorate ledger prove RUN > proof.json` to write one, and keep the file unchanged, byte for byte";
    ServiceError::configuration(codes::PROOF_UNREADABLE, body.help(help))
}
