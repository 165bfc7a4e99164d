//! Proves records to a reader without the ledger, and checks an export from its file and keys alone, without a ledger
//! or a workspace. `reports.rs` checks a proof.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_ledger::export::jsonl::{ExportReader, InvalidExport};
use quorate_ledger::prove::{Proof, ProveError};
use quorate_ledger::store::STREAM;
use quorate_ledger::verify::{Divergence, LedgerPart};
use quorate_protocol::Name;
use serde::Serialize;

use super::super::disk::{self, absolute};
use super::super::environment::Environment;
use super::super::error::{Error, ErrorKind, error_chain};
use super::super::session::LedgerSession;
use super::verify;

/// The proof of a record (`<run>/<n>`), or of all records of a run or a stream. A prefix of a run's id suffices.
///
/// # Errors
/// If the record does not exist or is not sealed, the last checkpoint is unsigned, or the record was altered.
#[crate::boxed]
pub(crate) async fn prove(session: &LedgerSession, what: &str) -> Result<Proof, Error> {
    try_prove(session, what).await.map_err(Error::corrupt_as_refused)
}

async fn try_prove(session: &LedgerSession, what: &str) -> Result<Proof, Error> {
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
pub(in crate::service) async fn ensure_run_holds(session: &LedgerSession, run: &Name) -> Result<bool, Error> {
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
async fn parse_target(session: &LedgerSession, what: &str) -> Result<(Name, Option<u64>), Error> {
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
pub(super) async fn is_stream(session: &LedgerSession, name: &str) -> Result<bool, Error> {
    Ok(!session.store.tail(&name.into(), 1).await?.is_empty())
}

/// `is_checkpoint` tells whether the unsealed record is that of the last checkpoint.
fn prove_error(session: &LedgerSession, run: &Name, error: ProveError, is_checkpoint: bool) -> Error {
    match error {
        ProveError::UnknownRecord { id } => {
            let body = Body::new(format!("the ledger has no record {id}"));
            let help = format!("run `quorate show {run}` to see the records of the run");
            Error::not_found(codes::RUN_UNKNOWN, body.help(help))
        }
        ProveError::NotSealed { id } if is_checkpoint => {
            let body = Body::new(format!(
                "cannot prove record {id}: it belongs to the last checkpoint, which does not cover it"
            ));
            let help = "the next checkpoint seals it, once there is another record; `quorate ledger prove ledger/<n>` proves an earlier record";
            Error::configuration(codes::RECORD_UNSEALED, body.help(help))
        }
        ProveError::NotSealed { id } => {
            unsealed_error(session, &format!("cannot prove record {id}: it is not sealed yet"))
        }
        ProveError::UnsignedCheckpoint => {
            let body = Body::new("cannot prove anything: the last checkpoint is unsigned");
            let help =
                "restore the ledger's key; if it is lost, see `quorate explain quorate:ledger_key_missing`";
            Error::configuration(codes::CHECKPOINT_UNSIGNED, body.help(help))
        }
        ProveError::Ledger(error) => error.into(),
    }
}

/// The error for records that no checkpoint covers.
pub(super) fn unsealed_error(session: &LedgerSession, what: &str) -> Error {
    let help = format!("seal the ledger with `quorate ledger checkpoint{}`", session.ledger_flag());
    Error::configuration(codes::RECORD_UNSEALED, Body::new(what).help(help))
}

/// A file to check without ledger or workspace.
#[derive(Debug, Clone, Default)]
pub struct CheckRequest {
    /// The file, or `-` for standard input.
    pub file: String,
    /// The ledger's keys that a person has from its owner: verifiers' lines, public keys, or files of these.
    pub keys: Vec<String>,
    /// Keys that may sign records: public keys, or files of these; empty for any.
    pub signers: Vec<String>,
}

/// A verified export.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExportCheck {
    /// Whether a trusted key signed its checkpoint; otherwise it proves nothing.
    pub holds: bool,
    /// That key.
    pub key: Option<String>,
    /// The ledger's name.
    pub origin: String,
    /// The number of records of the ledger's tree.
    pub size: u64,
    /// The root of the tree, in hexadecimal digits.
    pub root: String,
    /// The number of records before those of the export; `None` if it starts at the first one.
    pub from: Option<u64>,
    /// The selected runs; `None` for all.
    pub runs: Option<Vec<String>>,
    /// The number of records in it.
    pub records: u64,
    /// The number of texts.
    pub texts: u64,
    /// The number of signatures over records.
    pub signatures: u64,
    #[serde(skip)]
    distrust: Option<String>,
}

impl ExportCheck {
    /// The error of an export whose key is not trusted.
    pub fn distrust(&self) -> Option<Error> {
        self.distrust.as_deref().map(untrusted)
    }
}

/// The error of a proof or an export whose key is not trusted.
pub(crate) fn untrusted(why: &str) -> Error {
    let help = "get the ledger's key from its owner over another channel (`quorate keys export ledger`) and pass it with `--key`";
    Error::new(ErrorKind::Refused, codes::KEY_UNVOUCHED, Body::new(why).help(help))
}

/// Checks an export, line by line.
///
/// # Errors
/// If it is not an export, or is invalid.
pub(crate) fn check_export(environment: &Environment, request: &CheckRequest) -> Result<ExportCheck, Error> {
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
            Error::new(ErrorKind::Refused, codes::EXPORT_INVALID, body.help(help))
        }
    };
    let mut reader = ExportReader::open(input, &signers).map_err(refused)?;
    while reader.next_entry().map_err(refused)?.is_some() {}
    let (header, counted) = (reader.header.clone(), reader.totals.clone());
    let key = reader.trusted_key(&trusted);
    let keys = header.keys.join(" and ");
    let why = match (header.keys.is_empty(), request.keys.is_empty()) {
        (true, _) => "its checkpoint is unsigned, so it proves nothing".to_owned(),
        (_, true) => format!("it verifies against {keys}, but that key is not trusted"),
        (_, false) => format!("it verifies against {keys}, which is not one of the given keys"),
    };
    Ok(ExportCheck {
        holds: key.is_some(),
        distrust: key.is_none().then(|| format!("{}: {why}", request.file)),
        key,
        origin: header.origin,
        size: header.size,
        root: header.root,
        from: header.from.map(|from| from.size),
        runs: header.runs,
        records: counted.records,
        texts: counted.bodies,
        signatures: counted.signatures,
    })
}

fn unreadable_export(request: &CheckRequest, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(
            codes::EXPORT_INVALID,
            Body::new(format!("{} does not exist", request.file))
                .help("run `quorate ledger export --out FILE` to write an export"),
        ),
        _ => invalid_export(request, &error_chain(error)),
    }
}

fn invalid_export(request: &CheckRequest, why: &str) -> Error {
    let body = Body::new(format!("cannot read {} as an export: {why}", request.file));
    Error::configuration(
        codes::EXPORT_INVALID,
        body.help("run `quorate ledger export --out FILE` to write one"),
    )
}
