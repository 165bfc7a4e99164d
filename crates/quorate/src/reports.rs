//! Runs for readers without the ledger: reports, which prove what they show, and attestations of decisions for tools that
//! deploy or publish a text.
//!
//! A report file has the proof of a run and the texts of the run. A reader without the ledger gets the same contents from the
//! file alone, so that drawing the report again checks the file. A proof or a report is checked with keys alone, without a
//! ledger or a workspace.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::ledger::{Kind, Ledger as _, Record};
use quorate_ledger::prove::{InvalidProof, VerifiedProof};
use quorate_protocol::{Json, Name};
use serde::Serialize;
use serde_json::Map;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::service::disk::{self, absolute};
use super::service::environment::Environment;
use super::service::error::error_chain;
use super::service::ledger::export::{StagedFile, unwritable};
use super::service::ledger::prove::{self, CheckRequest};
use super::service::report::Review;
use super::service::runs::Recorded;
use super::service::session::LedgerSession;
use super::service::{attest, convene, ledger, run_opened};
use super::session::Outcome;

pub use super::service::attest::{Attestation, LaterVerdict};
pub use quorate_kernel::entropy::{hex, sha256_hex, unhex};

/// A report to draw.
#[derive(Debug, Clone, Default)]
pub struct ReportRequest {
    /// The run's id, a prefix of it, or `latest`.
    pub run: String,
    /// The parts of the run that the report holds.
    pub scope: ReportScope,
    /// The file to write. It must be a regular file, and not the ledger, its keys, its log or the configuration.
    pub out: Option<PathBuf>,
}

impl Quorate {
    /// The contents of a run's report: its proof, its texts, and what both say. Seals new records first.
    ///
    /// # Errors
    /// If the run does not exist, was changed or cannot be proven, or the ledger does not answer.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Quorate, reports::ReportScope};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").await?;
    /// let report = quorate.report_file("latest", ReportScope::Everything).await?;
    /// assert_eq!(&*report.texts[0].text, "The meeting moved to Tuesday at ten.\n");
    /// assert!(report.content.report.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn report_file(&self, run: &str, scope: ReportScope) -> Result<Outcome<ReportFile>, Error> {
        let session = self.open_existing().await?;
        let file = collect(&session, run, scope).await;
        session.finish(file).await
    }

    /// Draws a run's report in a format, and writes it if the request names a file. Returns the page.
    ///
    /// # Errors
    /// As [`Quorate::report_file`], and if the page cannot be drawn or written.
    #[crate::boxed]
    pub async fn report(
        &self,
        request: &ReportRequest,
        format: &ReportFormat,
    ) -> Result<Outcome<String>, Error> {
        let out = request.out.clone().map(|out| self.named_path(out)).transpose()?;
        let session = self.open_existing().await?;
        let page = report(&session, request, out.as_deref(), format).await;
        session.finish(page).await
    }

    /// Attests the decision of a run on a text, for a gate that deploys or publishes it. Verifies the run's records, and
    /// seals them. Writes signed bundles into `directory`, if it is given: the decision, and the simple verification
    /// result, which exists only if the text may ship unchanged. Bundles of an earlier call are removed first.
    ///
    /// # Errors
    /// If the run has no verdict or was changed, the workspace has no key that may sign, or a file cannot be written.
    #[crate::boxed]
    pub async fn attest(&self, run: &str, directory: Option<&Path>) -> Result<Outcome<Attestation>, Error> {
        let directory = directory.map(|directory| self.named_path(directory.to_owned())).transpose()?;
        let session = self.open_existing().await?;
        let attested = attest::attest(&session, run, directory.as_deref()).await;
        session.finish(attested).await
    }
}

async fn collect(session: &LedgerSession, run: &str, scope: ReportScope) -> Result<ReportFile, Error> {
    let run = session.find_run(run).await.map_err(Error::corrupt_as_refused)?.run;
    session.ensure_unaltered(&run).await.map_err(Error::corrupt_as_refused)?;
    collect_run(session, &run, scope).await
}

async fn report(
    session: &LedgerSession,
    request: &ReportRequest,
    out: Option<&Path>,
    format: &ReportFormat,
) -> Result<String, Error> {
    let stage = |path| -> Result<_, Error> {
        ensure_replaceable(path, format)?;
        Ok((path, StagedFile::create(session, path)?))
    };
    let staged = out.map(stage).transpose()?;
    let file = collect(session, &request.run, request.scope).await?;
    let page = draw(&file, format)?;
    if let Some((path, mut staged)) = staged {
        staged.write_all(page.as_bytes()).map_err(|error| unwritable(path, &error))?;
        staged.persist()?;
    }
    Ok(page)
}

/// A report replaces an earlier report and no other file, such as the reviewed text.
fn ensure_replaceable(path: &Path, format: &ReportFormat) -> Result<(), Error> {
    let begins = format.begins.as_bytes();
    match disk::read_up_to(path, begins.len() as u64) {
        Ok(bytes) if !bytes.is_empty() && !bytes.starts_with(begins) => {
            let body = Body::new(format!("{} exists and is not a report", path.display()));
            Err(Error::configuration(
                codes::FILE_UNWRITABLE,
                body.help("name another file, or remove this one"),
            ))
        }
        // Staging reports what else is wrong with the path.
        _ => Ok(()),
    }
}

/// The contents of a report file.
pub struct ReportFile {
    /// The proof, as `quorate ledger prove` writes it; with [`ReportScope::OutcomeOnly`] without the data of other
    /// records.
    pub proof: String,
    /// The texts, as the ledger keeps them, in the order of the run's inputs.
    pub texts: Vec<InputText>,
    /// The proof, checked; its key may be unknown.
    pub proven: VerifiedProof,
    /// The content of proof and texts.
    pub content: ReportContent,
}

/// A text of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputText {
    /// Its place among the run's inputs.
    pub input: usize,
    /// Its name in the run.
    pub name: String,
    /// The text, as the ledger keeps it.
    pub text: Arc<str>,
}

/// Why a file's contents do not make a report.
#[derive(Debug, thiserror::Error)]
pub enum InvalidContents {
    /// The proof is invalid.
    #[error(transparent)]
    Proof(#[from] quorate_ledger::prove::InvalidProof),
    /// The proof covers something else than a run.
    #[error("the proof does not cover one run from its first record on")]
    NotARun,
    /// A decision is not there.
    #[error("the data of a decision is left out")]
    DecisionOmitted,
    /// The text at this place is not the run's.
    #[error("text {0} differs from the run's input")]
    ForeignText(usize),
    /// The records cannot be read.
    #[error("cannot read its records: {0}")]
    Records(#[from] quorate_kernel::history::HistoryError),
}

impl ReportFile {
    /// The contents of a proof and the texts beside it, each with its place among the run's inputs. Does not check the
    /// proof's key.
    ///
    /// # Errors
    /// [`InvalidContents`].
    pub fn read(proof: String, texts: Vec<(usize, Arc<str>)>) -> Result<ReportFile, InvalidContents> {
        let proven = quorate_ledger::prove::check_proof(&proof, &[], &[])?;
        let content = ReportContent::of(&proven)?;
        let texts = content.named(texts)?;
        Ok(ReportFile { content: content.with_report(&texts), proof, texts, proven })
    }
}

/// The parts of a run that leave the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportScope {
    /// All records of the run, with its texts.
    #[default]
    Everything,
    /// The data of outcomes and of people's decisions; only the heads of other records.
    OutcomeOnly,
}

/// Seals unsealed records, and collects the contents of a run's report file.
///
/// # Errors
/// If the run does not exist or cannot be proven, or the ledger does not answer.
pub(crate) async fn collect_run(
    session: &LedgerSession,
    run: &Name,
    scope: ReportScope,
) -> Result<ReportFile, Error> {
    if session.store.read_only_reason().is_none() {
        ledger::checkpoint(session).await?;
    }
    let mut proof = prove::prove(session, run).await?;
    let full = ReportFile::read(text_of(&proof)?, Vec::new()).map_err(|error| unreadable(run, &error))?;
    let restated = restated_opening(&full.proven).is_some();
    for (record, proved) in proof.records.iter_mut().zip(&full.proven.records) {
        let is_kept = match scope {
            ReportScope::OutcomeOnly => is_decision(&proved.kind),
            ReportScope::Everything => !restated || proved.kind != Kind::RunOpened.as_str(),
        };
        if !is_kept {
            record.record.data = None;
        }
    }
    let mut texts = Vec::new();
    if scope == ReportScope::Everything {
        let opened = session.partial_history(run).await?.opened;
        for (at, input) in opened.inputs.iter().enumerate() {
            texts.extend(session.store.body(&input.sha256).await?.map(|text| (at, text)));
        }
    }
    ReportFile::read(text_of(&proof)?, texts).map_err(|error| unreadable(run, &error))
}

fn text_of(proof: &quorate_ledger::prove::Proof) -> Result<String, Error> {
    proof.text().map_err(|error| Error::bug(error.to_string()))
}

fn unreadable(run: &Name, error: &InvalidContents) -> Error {
    let body = Body::new(format!("cannot report run {run}: {error}"));
    Error::new(ErrorKind::Altered, codes::LEDGER_CORRUPT, body.help("see `quorate ledger verify`"))
}

/// Draws a report.
///
/// # Errors
/// If the format cannot draw it.
pub(crate) fn draw(file: &ReportFile, format: &ReportFormat) -> Result<String, Error> {
    (format.draw)(file).map_err(|why| {
        let body = Body::new(format!("cannot draw the report: {why}"));
        Error::new(ErrorKind::Bug, codes::PROOF_INVALID, body)
    })
}

/// The field that prevents guessing short data from its hash.
const SALT: &str = "salt";

/// The content of a run's records, as far as the proof has their data.
pub struct ReportContent {
    /// The run's id.
    pub run: Name,
    /// The report of the run; `None` if the proof omits how it was started.
    pub report: Option<Recorded>,
    history: Option<History>,
}

/// Whether records of this kind have decisions, which no report omits.
fn is_decision(kind: &str) -> bool {
    [Kind::Outcome, Kind::Override].iter().any(|decision| decision.as_str() == kind)
}

/// How the run was opened, as its end restates it without directories.
fn restated_opening(proven: &VerifiedProof) -> Option<&Map<String, Json>> {
    let ended = proven.records.iter().rev().find(|record| record.kind == Kind::RunEnded.as_str())?;
    ended.data.as_ref()?.get("opened")?.as_object()
}

impl ReportContent {
    /// Reads the records of a verified proof.
    ///
    /// # Errors
    /// If they are not those of one run, or cannot be read.
    fn of(proven: &VerifiedProof) -> Result<ReportContent, InvalidContents> {
        let first = proven.records.first().filter(|record| record.kind == Kind::RunOpened.as_str());
        let first = first.ok_or(InvalidContents::NotARun)?;
        let mut next = 0..;
        if proven.records.iter().any(|record| record.run != first.run || Some(record.n) != next.next()) {
            return Err(InvalidContents::NotARun);
        }
        if proven.records.iter().any(|record| record.data.is_none() && is_decision(&record.kind)) {
            return Err(InvalidContents::DecisionOmitted);
        }
        let run = Name::from(&*first.run);
        let mut records = Vec::new();
        for proved in &proven.records {
            let mut data = proved.data.clone();
            if let Some(data) = &mut data {
                data.remove(SALT);
            }
            records.push(Record { n: proved.n, kind: proved.kind.clone(), at_ms: proved.at_ms, data });
        }
        if records[0].data.is_none() {
            records[0].data = restated_opening(proven).cloned();
        }
        let has_more = records.iter().any(|record| record.data.is_some() && !is_decision(&record.kind));
        let history = has_more.then(|| History::from_remaining_records(&run, records)).transpose()?;
        Ok(ReportContent { run, report: None, history })
    }

    /// Texts with their names in the run.
    ///
    /// # Errors
    /// If one is not the text of its input, or they are not in order.
    fn named(&self, texts: Vec<(usize, Arc<str>)>) -> Result<Vec<InputText>, InvalidContents> {
        let inputs = self.history.as_ref().map(|history| &*history.opened.inputs).unwrap_or_default();
        let mut named: Vec<InputText> = Vec::new();
        for (input, text) in texts {
            let found = inputs.get(input).filter(|found| found.sha256 == sha256_hex(text.as_bytes()));
            let is_next = named.last().is_none_or(|before| before.input < input);
            let found = found.filter(|_| is_next).ok_or(InvalidContents::ForeignText(input))?;
            named.push(InputText { input, name: found.name.clone(), text });
        }
        Ok(named)
    }

    /// Adds the report; that of a review needs its text.
    fn with_report(mut self, texts: &[InputText]) -> ReportContent {
        self.report = self.history.as_ref().and_then(|history| {
            if run_opened::is_assembly(history) {
                return convene::report::Decision::of(history)
                    .map(|report| Recorded::Decision(Box::new(report)));
            }
            let text = texts.first().map(|text| text.text.clone());
            Some(Recorded::Review(Box::new(Review::of(history, text))))
        });
        self
    }
}

/// The longest file that is read: a report has its proof in base64, beside the page.
const MAX_FILE_BYTES: u64 = 4 * quorate_ledger::prove::MAX_PROOF_BYTES as u64;

/// How a report file is read and drawn; the front end with pages supplies it.
#[derive(Debug, Clone, Copy)]
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
    /// The proof.
    pub proof: String,
    /// The texts, each with its place among the run's inputs.
    pub texts: Vec<(usize, Arc<str>)>,
    /// The program that drew the report.
    pub program: String,
    /// This program, which draws it again.
    pub this_program: String,
}

/// A checked proof, or a report with its proof.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedProof {
    /// Whether a trusted key signed it; otherwise a forger could have made it.
    pub holds: bool,
    /// Whether the file is a report. A report shows exactly what its proof says.
    #[serde(rename = "report")]
    pub is_report: bool,
    /// The content of the proof.
    #[serde(flatten)]
    pub proven: VerifiedProof,
    #[serde(skip)]
    distrust: Option<String>,
}

impl CheckedProof {
    /// The error of a proof whose key is not trusted.
    pub fn distrust(&self) -> Option<Error> {
        self.distrust.as_deref().map(prove::untrusted)
    }
}

/// Checks a proof or a report. If its key is not trusted, [`CheckedProof::distrust`] is an error: the proof is consistent,
/// but a forged one would be as well. Draws a report again from its proof; the result must be equal, byte for byte.
///
/// # Errors
/// If it is not a proof, is invalid, or shows something else than its proof says.
pub(crate) fn check_proof(
    environment: &Environment,
    request: &CheckRequest,
    reports: Option<&ReportFormat>,
) -> Result<CheckedProof, Error> {
    let trusted = ledger::ledger_keys(environment, &request.keys)?;
    let signers = ledger::signer_keys(environment, &request.signers)?;
    let text = read_file(environment, request)?;
    let report = reports.filter(|format| text.starts_with(format.begins));
    let embedded = report.map(|format| (format.embedded)(&text)).transpose();
    let embedded = embedded.map_err(|why| unreadable_proof(request, &why))?;
    let proof = embedded.as_ref().map_or(&*text, |embedded| &*embedded.proof);
    let proven = quorate_ledger::prove::check_proof(proof, &trusted, &signers)
        .map_err(|failed| invalid(request, failed))?;
    if let (Some(format), Some(embedded)) = (report, embedded) {
        check_drawn(request, &text, format, embedded)?;
    }
    let holds = proven.trusted_key.is_some();
    let distrust = (!holds).then(|| {
        let keys: Vec<String> = proven.keys.iter().map(ToString::to_string).collect();
        let why = match request.keys.is_empty() {
            true => "but that key is not trusted",
            false => "which is not one of the given keys",
        };
        format!("{} verifies against {}, {why}", request.file, keys.join(" and "))
    });
    Ok(CheckedProof { holds, is_report: report.is_some(), proven, distrust })
}

/// Draws a report again from what it embeds, and compares.
fn check_drawn(
    request: &CheckRequest,
    text: &str,
    format: &ReportFormat,
    embedded: Embedded,
) -> Result<(), Error> {
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
        let help =
            format!("check it with {program}, or ask its sender for the proof (`quorate ledger prove RUN`)");
        return Err(differs(request, &what, &help));
    }
    let line = drawn.lines().zip(text.lines()).take_while(|(ours, theirs)| ours == theirs).count() + 1;
    let what = format!("line {line} of the file differs from what its proof says");
    Err(differs(request, &what, "do not rely on it; ask its sender for a new report"))
}

fn differs(request: &CheckRequest, what: &str, help: &str) -> Error {
    let body = Body::new(format!("{} was changed: {what}", request.file));
    Error::new(ErrorKind::Refused, codes::REPORT_DIFFERS, body.help(help))
}

fn invalid(request: &CheckRequest, failed: InvalidProof) -> Error {
    match failed {
        InvalidProof::NotAProof(why) => unreadable_proof(request, &why),
        InvalidProof::InvalidPart { .. } => Error::new(
            ErrorKind::Refused,
            codes::PROOF_INVALID,
            Body::new(format!("{} proves nothing: {failed}", request.file))
                .help("ask its sender for a new proof, and for the key over another channel"),
        ),
    }
}

fn read_file(environment: &Environment, request: &CheckRequest) -> Result<String, Error> {
    let limit = MAX_FILE_BYTES;
    let bytes = match request.file.as_str() {
        "-" => disk::read_stdin(limit),
        file => disk::read_up_to(&absolute(&environment.directory, Path::new(file)), limit),
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(
            codes::PROOF_UNREADABLE,
            Body::new(format!("{} does not exist", request.file))
                .help("run `quorate ledger prove RUN` to write a proof"),
        ),
        _ => unreadable_proof(request, &error_chain(&error)),
    })?;
    String::from_utf8(bytes).map_err(|_| unreadable_proof(request, "it is not UTF-8"))
}

fn unreadable_proof(request: &CheckRequest, why: &str) -> Error {
    let body = Body::new(format!("cannot read {} as a proof: {why}", request.file));
    let help = "run `quorate ledger prove RUN > proof.json` to write one, and keep the file unchanged, byte for byte";
    Error::configuration(codes::PROOF_UNREADABLE, body.help(help))
}
