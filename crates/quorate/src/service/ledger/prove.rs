//! Proves records to a reader without the ledger, and checks a proof, a report or an export from its file and keys
//! alone, without a ledger or a workspace.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_ledger::export::jsonl::{ExportHeader, ExportReader, ExportTotals, InvalidExport};
use quorate_ledger::prove::{self, InvalidProof, Proof, ProveError, VerifiedProof};
use quorate_ledger::store::STREAM;
use quorate_ledger::verify::{Divergence, LedgerPart};
use quorate_protocol::Name;

use super::super::disk::{self, absolute};
use super::super::environment::Environment;
use super::super::error::{ExitClass, ServiceError, error_chain};
use super::super::report_file::{InvalidContents, ReportFile};
use super::super::session::LedgerSession;
use super::verify;

/// The proof of a record (`<run>/<n>`), or of all records of a run or a stream. A prefix of a run's id suffices.
///
/// # Errors
/// If the record does not exist or is not sealed, the last checkpoint is unsigned, or the record was altered.
#[crate::boxed]
pub async fn prove(session: &LedgerSession, what: &str) -> Result<Proof, ServiceError> {
    try_prove(session, what).await.map_err(ServiceError::corrupt_as_refused)
}

async fn try_prove(session: &LedgerSession, what: &str) -> Result<Proof, ServiceError> {
    let (run, n) = parse_target(session, what).await?;
    verify::ensure_unaltered(session, |divergence| concerns(divergence, &run)).await?;
    let known = super::known_signers(session).await;
    match session.store.prove(&run, n, &known).await {
        Ok(proof) => Ok(proof),
        Err(error) => {
            let last = session.store.tail(&run, 1).await?.pop();
            let id = last.filter(|last| last.is(Kind::Checkpoint)).map(|last| format!("{run}/{}", last.n));
            let is_checkpoint =
                matches!(&error, ProveError::NotSealed { id: unsealed } if Some(unsealed) == id.as_ref());
            Err(prove_error(session, &run, error, is_checkpoint))
        }
    }
}

/// Refuses to vouch for a run that `quorate ledger verify` rejects. Returns whether the rest of the ledger holds.
///
/// # Errors
/// The first divergence that concerns the run; or if the ledger cannot be verified.
pub(in crate::service) async fn ensure_run_holds(
    session: &LedgerSession,
    run: &Name,
) -> Result<bool, ServiceError> {
    let others_hold = AtomicBool::new(true);
    let concerns_run = |divergence: &Divergence| {
        let concerned = concerns(divergence, run);
        others_hold.fetch_and(concerned, Ordering::Relaxed);
        concerned
    };
    verify::ensure_intact(session, concerns_run).await?;
    Ok(others_hold.into_inner())
}

/// Whether a divergence concerns a run. A divergence of another run does not.
fn concerns(divergence: &Divergence, run: &Name) -> bool {
    let other = divergence.run.as_ref().filter(|other| *other != run && &***other != STREAM);
    // A text may belong to several runs, but its divergence is reported once.
    other.is_none() || divergence.part == LedgerPart::Body
}

/// The name of a run, a stream or a record.
async fn parse_target(session: &LedgerSession, what: &str) -> Result<(Name, Option<u64>), ServiceError> {
    if is_stream(session, what).await? {
        return Ok((what.into(), None));
    }
    if let Some((run, n)) = what.rsplit_once('/')
        && let Ok(n) = n.parse()
    {
        let run = match is_stream(session, run).await? {
            true => run.into(),
            false => session.find_run(run).await?.run,
        };
        return Ok((run, Some(n)));
    }
    Ok((session.find_run(what).await?.run, None))
}

/// Whether there is a stream of exactly this name.
pub(super) async fn is_stream(session: &LedgerSession, name: &str) -> Result<bool, ServiceError> {
    Ok(!session.store.tail(&name.into(), 1).await?.is_empty())
}

/// `is_checkpoint` tells whether the unsealed record is that of the last checkpoint.
fn prove_error(session: &LedgerSession, run: &Name, error: ProveError, is_checkpoint: bool) -> ServiceError {
    match error {
        ProveError::UnknownRecord { id } => {
            let body = Body::new(format!("the ledger has no record {id}"));
            let help = format!("run `quorate show {run}` to see the records of the run");
            ServiceError::not_found(codes::RUN_UNKNOWN, body.help(help))
        }
        ProveError::NotSealed { id } if is_checkpoint => {
            let body = Body::new(format!(
                "cannot prove record {id}: it belongs to the last checkpoint, which does not cover it"
            ));
            let help = "the next checkpoint seals it, once there is another record; `quorate ledger prove ledger/<n>` proves an earlier record";
            ServiceError::configuration(codes::RECORD_UNSEALED, body.help(help))
        }
        ProveError::NotSealed { id } => {
            unsealed_error(session, &format!("cannot prove record {id}: it is not sealed yet"))
        }
        ProveError::UnsignedCheckpoint => {
            let body = Body::new("cannot prove anything: the last checkpoint is unsigned");
            let help =
                "restore the ledger's key; if it is lost, see `quorate explain quorate:ledger_key_missing`";
            ServiceError::configuration(codes::CHECKPOINT_UNSIGNED, body.help(help))
        }
        ProveError::Ledger(error) => error.into(),
    }
}

/// The error for records that no checkpoint covers.
pub(super) fn unsealed_error(session: &LedgerSession, what: &str) -> ServiceError {
    let help = format!("seal the ledger with `quorate ledger checkpoint{}`", session.ledger_flag());
    ServiceError::configuration(codes::RECORD_UNSEALED, Body::new(what).help(help))
}

/// The longest file that is read: a report has its proof in base64, beside the page.
const MAX_FILE_BYTES: u64 = 4 * prove::MAX_PROOF_BYTES as u64;

#[derive(Debug, Clone, Default)]
pub struct CheckProofRequest {
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

/// The result of a check_proof.
pub struct CheckedProof {
    pub proven: VerifiedProof,
    /// Whether the file is a report. A report shows exactly what its proof says.
    pub is_report: bool,
}

/// Checks a proof or a report. If its key is not trusted, [`VerifiedProof::trusted_key`] is `None` and
/// [`unvouched_proof`] warns: the proof is consistent, but a forged one would be as well. Draws a report again from its
/// proof; the result must be equal, byte for byte.
///
/// # Errors
/// If it is not a proof, is invalid, or shows something else than its proof says.
pub fn check_proof(
    environment: &Environment,
    request: &CheckProofRequest,
    reports: Option<&ReportFormat>,
) -> Result<CheckedProof, ServiceError> {
    let trusted = super::ledger_keys(environment, &request.keys)?;
    let signers = super::signer_keys(environment, &request.signers)?;
    let text = read_file(environment, request)?;
    let report = reports.filter(|format| text.starts_with(format.begins));
    let embedded = report.map(|format| (format.embedded)(&text)).transpose();
    let embedded = embedded.map_err(|why| unreadable_proof(request, &why))?;
    let proof = embedded.as_ref().map_or(&*text, |embedded| &*embedded.proof);
    let proven = prove::check_proof(proof, &trusted, &signers).map_err(|failed| invalid(request, failed))?;
    if let (Some(format), Some(embedded)) = (report, embedded) {
        check_drawn(request, &text, format, embedded)?;
    }
    Ok(CheckedProof { proven, is_report: report.is_some() })
}

/// Draws a report again from what it embeds, and compares.
fn check_drawn(
    request: &CheckProofRequest,
    text: &str,
    format: &ReportFormat,
    embedded: Embedded,
) -> Result<(), ServiceError> {
    let Embedded { proof, texts, program, this_program } = embedded;
    let file = ReportFile::read(proof, texts).map_err(|error| match error {
        InvalidContents::Proof(failed) => invalid(request, failed),
        other => differs(request, &other.to_string(), "ask its sender for a new report"),
    })?;
    let drawn = (format.draw)(&file).map_err(|why| unreadable_proof(request, &why))?;
    if drawn == text {
        return Ok(());
    }
    if program != this_program {
        let what = format!("{program} drew it; this program, {this_program}, cannot compare its content");
        let help = format!(
            "check_proof it with {program}, or ask its sender for the proof (`quorate ledger prove`)"
        );
        return Err(differs(request, &what, &help));
    }
    let line = drawn.lines().zip(text.lines()).take_while(|(ours, theirs)| ours == theirs).count() + 1;
    let what = format!("line {line} of the file differs from what its proof says");
    Err(differs(request, &what, "do not rely on it; ask its sender for a new report"))
}

fn differs(request: &CheckProofRequest, what: &str, help: &str) -> ServiceError {
    let body = Body::new(format!("{} was changed: {what}", request.file));
    ServiceError::new(ExitClass::Refused, codes::REPORT_DIFFERS, body.help(help))
}

fn invalid(request: &CheckProofRequest, failed: InvalidProof) -> ServiceError {
    match failed {
        InvalidProof::NotAProof(why) => unreadable_proof(request, &why),
        InvalidProof::InvalidPart { .. } => ServiceError::new(
            ExitClass::Refused,
            codes::PROOF_INVALID,
            Body::new(format!("{} is not proven: {failed}", request.file))
                .help("ask its sender for a new proof, and for the key over another channel"),
        ),
    }
}

fn read_file(environment: &Environment, request: &CheckProofRequest) -> Result<String, ServiceError> {
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
        _ => unreadable_proof(request, &error_chain(&error)),
    })?;
    String::from_utf8(bytes).map_err(|_| unreadable_proof(request, "it is not UTF-8"))
}

/// The warning about a proof whose key is not trusted.
pub fn unvouched_proof(request: &CheckProofRequest, proven: &VerifiedProof) -> ServiceError {
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

fn unreadable_proof(request: &CheckProofRequest, why: &str) -> ServiceError {
    let body = Body::new(format!("cannot read {} as a proof: {why}", request.file));
    let help = "run `quorate ledger prove RUN > proof.json` to write one, and keep the file unchanged, byte for byte";
    ServiceError::configuration(codes::PROOF_UNREADABLE, body.help(help))
}

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
pub fn check_export(
    environment: &Environment,
    request: &CheckProofRequest,
) -> Result<ExportCheck, ServiceError> {
    let trusted = super::ledger_keys(environment, &request.keys)?;
    let signers = super::signer_keys(environment, &request.signers)?;
    let input: Box<dyn BufRead> = match request.file.as_str() {
        "-" => Box::new(BufReader::new(std::io::stdin())),
        file => {
            let opened = disk::open(&absolute(&environment.directory, Path::new(file)));
            Box::new(BufReader::new(opened.map_err(|error| unreadable_export(request, &error))?))
        }
    };
    let refused = |flaw: InvalidExport| match flaw {
        InvalidExport::Io(error) => unreadable_export(request, &error),
        InvalidExport::NotAnExport(_) => invalid_export(request, &flaw.to_string()),
        InvalidExport::InvalidLine { .. } => {
            let body = Body::new(format!("the export {} is invalid: {flaw}", request.file));
            let help = "ask for a new export, and keep the file unchanged, byte for byte";
            ServiceError::new(ExitClass::Refused, codes::EXPORT_INVALID, body.help(help))
        }
    };
    let mut reader = ExportReader::open(input, &signers).map_err(refused)?;
    while reader.next_entry().map_err(refused)?.is_some() {}
    let (header, counted) = (reader.header().clone(), reader.totals().clone());
    Ok(ExportCheck { vouched: reader.trusted_key(&trusted), header, counted })
}

/// The warning about an export whose key is not trusted.
pub fn unvouched_export(request: &CheckProofRequest, checked: &ExportCheck) -> ServiceError {
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

fn unreadable_export(request: &CheckProofRequest, error: &std::io::Error) -> ServiceError {
    match error.kind() {
        std::io::ErrorKind::NotFound => ServiceError::not_found(
            codes::EXPORT_INVALID,
            Body::new(format!("{} does not exist", request.file))
                .help("run `quorate ledger export --out FILE` to write an export"),
        ),
        _ => invalid_export(request, &error_chain(error)),
    }
}

fn invalid_export(request: &CheckProofRequest, why: &str) -> ServiceError {
    let body = Body::new(format!("cannot read {} as an export: {why}", request.file));
    ServiceError::configuration(
        codes::EXPORT_INVALID,
        body.help("run `quorate ledger export --out FILE` to write one"),
    )
}
