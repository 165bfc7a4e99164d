//! Exports sealed records, and imports runs of another ledger from its export.

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::ledger::Ledger as _;
use quorate_kernel::record;
use quorate_ledger::export::{ExportError, ExportFormat, ExportSummary, Selection};
use quorate_ledger::import::{self, ImportError, ImportOptions, ImportSummary};
use quorate_ledger::note::Checkpoint;
use quorate_ledger::store::STREAM;
use quorate_protocol::Name;
use serde::Serialize;

use super::super::disk::{self, absolute};
use super::super::environment::Environment;
use super::super::error::{Error, ErrorKind, error_chain};
use super::super::keys::WorkspaceKeys;
use super::super::session::LedgerSession;
use super::super::time_text;
use super::super::workspace::Workspace;
use super::{prove, verify};

/// The records of an export, and its format.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// Runs, by prefixes of their ids, or streams; empty for all.
    pub runs: Vec<String>,
    /// A checkpoint (`<size>`, `ledger/<n>`, a note's file) or a time.
    pub since: Option<String>,
    /// The format.
    pub format: ExportFormat,
}

/// A temporary file that replaces its target when it is complete.
pub(crate) struct StagedFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl StagedFile {
    /// Creates the file beside its target, readable only by its owner. If the target is a link, the linked file is
    /// replaced.
    ///
    /// # Errors
    /// If the folder is not writable, or the target belongs to the ledger or the workspace, or is not a regular file.
    pub(crate) fn create(session: &LedgerSession, path: &Path) -> Result<StagedFile, Error> {
        let named = session.workspace.guard.ensure_output(&session.environment, path)?;
        let path = resolve_target(&named).map_err(|error| unwritable(&named, &error))?;
        let file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")));
        let file = file.map_err(|error| unwritable(&path, &error))?;
        Ok(StagedFile { file, path })
    }

    /// Moves it to its target, durably.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn persist(self) -> Result<(), Error> {
        let StagedFile { file, path } = self;
        file.as_file().sync_all().map_err(|error| unwritable(&path, &error))?;
        file.persist(&path).map_err(|error| unwritable(&path, &error.error)).map(drop)
    }
}

/// The path with links resolved, whether or not the file exists.
fn resolve_target(path: &Path) -> std::io::Result<PathBuf> {
    if path.symlink_metadata().is_ok() {
        return std::fs::canonicalize(path);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(std::fs::canonicalize(parent)?.join(name)),
        _ => Err(std::io::Error::from(std::io::ErrorKind::InvalidInput)),
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Seals the ledger and writes the export. A reader that closes the pipe ends it without an error: `None`.
///
/// # Errors
/// If there is nothing to export, the ledger is inconsistent, or the export cannot be written.
#[crate::boxed]
pub(crate) async fn export(
    session: &LedgerSession,
    request: &ExportRequest,
    out: &mut (dyn Write + Send),
) -> Result<Option<ExportSummary>, Error> {
    if session.store.read_only_reason().is_none() {
        super::checkpoint(session).await?;
    }
    // Writing checks each record against its checkpoint again, and is the only step that notices missing records.
    verify::ensure_unaltered(session, |_| true).await?;
    let mut selection = Selection::default();
    for run in &request.runs {
        selection.runs.push(match prove::is_stream(session, run).await? {
            true => run.as_str().into(),
            false => session.find_run(run).await?.run,
        });
    }
    if let Some(since) = &request.since {
        selection.since = checkpoint_size(session, since).await?;
    }
    let known = super::known_signers(session).await;
    let written = match session.store.export(&selection, request.format, &known, out).await {
        Err(ExportError::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(None),
        done => done.map_err(|error| export_error(session, error))?,
    };
    if !written.unknown_keys.is_empty() {
        let body = Body::new(format!(
            "the public key of {} is unknown here: send it to the readers of the export",
            written.unknown_keys.join(" and ")
        ));
        session.warn(codes::SIGNER_UNKNOWN, body.help("add it to the keyring and export again"));
    }
    Ok(Some(written))
}

/// The number of records before `--since`.
async fn checkpoint_size(session: &LedgerSession, since: &str) -> Result<u64, Error> {
    if let Ok(size) = since.parse() {
        return Ok(size);
    }
    if let Some(n) = since.strip_prefix(STREAM).and_then(|rest| rest.strip_prefix('/')?.parse::<u64>().ok()) {
        let records = session.store.records(&Name::from(STREAM)).await?;
        let record = records.into_iter().find(|record| record.n == n);
        let sealed: Option<record::Checkpoint> = record.and_then(|record| record.read().ok().flatten());
        return sealed
            .map(|sealed| sealed.size)
            .ok_or_else(|| unknown_checkpoint(format!("{since} is not a checkpoint of this ledger")));
    }
    let path = absolute(&session.environment.directory, Path::new(since));
    if path.is_file() {
        return size_of_note(session, since, &path).await;
    }
    match time_text::parse_since(since, session.environment.clock.now_ms()) {
        Ok(None) => Ok(0),
        Ok(Some(at_ms)) => Ok(session.store.records_before(at_ms).await?),
        Err(error) => {
            let help = "give a time, or a checkpoint: its size, `ledger/<n>`, or the file of a note";
            Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, Body::new(error.to_string()).help(help)))
        }
    }
}

/// The size of a checkpoint's note, which must belong to this ledger.
async fn size_of_note(session: &LedgerSession, since: &str, path: &Path) -> Result<u64, Error> {
    let text = match disk::read_text(path) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(unknown_checkpoint(format!("{since} does not exist"))),
        Err(error) => return Err(unknown_checkpoint(format!("cannot read {since}: {error}"))),
    };
    let noted =
        Checkpoint::from_note(&text).map_err(|error| unknown_checkpoint(format!("{since}: {error}")))?;
    let tree = noted.tree();
    let ours = session.store.last_checkpoint().await?.filter(|sealed| sealed.origin == noted.origin());
    let root = session.store.root_at(tree.size).await?;
    match ours.is_some() && root == Some(tree.root) {
        true => Ok(tree.size),
        false => Err(unknown_checkpoint(format!("this ledger does not extend the checkpoint {since}"))),
    }
}

fn unknown_checkpoint(what: String) -> Error {
    let help = "run `quorate ledger checkpoint` to print the last one; `quorate ledger verify --since CHECKPOINT` checks that the ledger extends one";
    Error::configuration(codes::CHECKPOINT_UNKNOWN, Body::new(what).help(help))
}

fn export_error(session: &LedgerSession, error: ExportError) -> Error {
    match error {
        ExportError::NoCheckpoint => prove::unsealed_error(session, "cannot export: nothing is sealed yet"),
        ExportError::UnknownRun { run } => {
            Error::not_found(codes::RUN_UNKNOWN, Body::new(format!("the ledger has no run {run}")))
        }
        ExportError::SinceTooLarge { .. } => unknown_checkpoint(error.to_string()),
        ExportError::Ledger(error) => error.into(),
        ExportError::Write(error) => Error::configuration(
            codes::FILE_UNWRITABLE,
            Body::new(format!("cannot write the export: {}", error_chain(&error))),
        ),
    }
}

/// A write error.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    Error::configuration(
        codes::FILE_UNWRITABLE,
        Body::new(format!("cannot write {}: {error}", path.display())),
    )
}

/// An export to import.
#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    /// The file of the export.
    pub file: String,
    /// The other ledger's keys that a person has from its owner: verifiers' lines, public keys, or files of these.
    pub keys: Vec<String>,
    /// Keys that may sign records: public keys, or files of these; empty for any.
    pub signers: Vec<String>,
    /// Whether it is a dry run.
    pub dry_run: bool,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// The runs, and the verified export.
    #[serde(flatten)]
    pub summary: ImportSummary,
}

/// The export to import, and the terms. The ledger's key is missing.
fn prepare_import(
    environment: &Environment,
    keys: &WorkspaceKeys,
    request: &ImportRequest,
) -> Result<(PathBuf, ImportOptions), Error> {
    let mut trusted = super::own_keys(keys)?;
    trusted.extend(super::ledger_keys(environment, &request.keys)?);
    let signers = super::signer_keys(environment, &request.signers)?;
    let path = absolute(&environment.directory, Path::new(&request.file));
    let unusable = |what: &str| {
        let body = Body::new(format!("cannot import {}: {what}", request.file));
        body.help("run `quorate ledger export --out FILE` to write an export")
    };
    let why = match std::fs::metadata(&path) {
        Ok(found) if found.is_file() => {
            let (at_ms, dry_run) = (environment.clock.now_ms(), request.dry_run);
            return Ok((path, ImportOptions { trusted, signers, key: None, at_ms, dry_run }));
        }
        // The export is read twice, so a pipe cannot be used.
        Ok(_) => "it is not a regular file".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::not_found(codes::EXPORT_INVALID, unusable("the file does not exist")));
        }
        Err(error) => format!("cannot read it: {error}"),
    };
    Err(Error::configuration(codes::EXPORT_INVALID, unusable(&why)))
}

fn open_export(path: &Path) -> std::io::Result<BufReader<std::fs::File>> {
    disk::open(path).map(BufReader::new)
}

/// Verifies an export if no ledger exists yet, and lists the records that an import would merge. A dry run and a
/// refusal create no ledger.
///
/// # Errors
/// As [`import()`].
#[crate::boxed]
pub(crate) async fn preview(
    environment: &Environment,
    workspace: &Workspace,
    request: &ImportRequest,
) -> Result<Import, Error> {
    let (path, terms) = prepare_import(environment, &WorkspaceKeys::of(environment, workspace), request)?;
    let file = open_export(&path)
        .map_err(|error| import_error(request, ImportError::InvalidExport(error.into())))?;
    let imported = import::preview(file, &terms).await;
    imported
        .map(|summary| Import { dry_run: request.dry_run, summary })
        .map_err(|error| import_error(request, error))
}

/// Verifies an export, merges records that this ledger lacks, then seals.
///
/// # Errors
/// If the file is not an export, is invalid, has no trusted signer, or contradicts this ledger; then nothing is merged.
#[crate::boxed]
pub(crate) async fn import(session: &LedgerSession, request: &ImportRequest) -> Result<Import, Error> {
    let (path, mut terms) = prepare_import(&session.environment, session.keys(), request)?;
    if !request.dry_run {
        terms.key = Some(session.sealer().required_key().await?);
    }
    let imported = session.store.import(|| open_export(&path), &terms).await;
    let imported = imported.map_err(|error| import_error(request, error))?;
    if !request.dry_run && !imported.runs.is_empty() {
        super::checkpoint(session).await?;
    }
    Ok(Import { dry_run: request.dry_run, summary: imported })
}

fn import_error(request: &ImportRequest, error: ImportError) -> Error {
    let file = &request.file;
    match error {
        ImportError::InvalidExport(flaw) => Error::configuration(
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
            Error::configuration(
                codes::KEY_UNVOUCHED,
                Body::new(format!("cannot import {file}: {why}")).help(help),
            )
        }
        ImportError::Conflict { .. } => Error::configuration(
            codes::IMPORT_CONFLICT,
            Body::new(format!("cannot import {file}: {error}")).help(
                "import it into a new ledger with `--ledger`, and compare the run with `quorate show RUN`",
            ),
        ),
        ImportError::Ledger(error) => error.into(),
    }
}
