//! `quorate ledger export`, `import` and `prove`.

use std::io::BufWriter;
use std::path::Path;

use clap::ValueEnum;
use quorate_diagnostics::{Body, codes};
use quorate_ledger::export::{ExportFormat, ExportSummary};
use quorate_ledger::import::ImportSummary;

use crate::arguments::{HumanOrJson, OutputArguments, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::session::{print_result, print_warnings, with_session};
use crate::terminal::Terminal;
use crate::workflow;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::ledger::export::{Request, StagedFile};
use quorate::service::ledger::{export as exporting, import as importing, prove as proving};
use quorate::service::open_session;
use quorate::service::session::LedgerSession;
use quorate::service::{runs, workspace};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArgument {
    /// JSON Lines with proofs
    Jsonl,
    /// OpenTelemetry traces: one OTLP/JSON document, without texts
    Otel,
    /// One line for each record, without texts
    Csv,
}

pub(super) fn request(runs: Vec<String>, since: Option<String>, format: FormatArgument) -> Request {
    let form = match format {
        FormatArgument::Jsonl => ExportFormat::Jsonl,
        FormatArgument::Otel => ExportFormat::Otel,
        FormatArgument::Csv => ExportFormat::Csv,
    };
    Request { runs, since, form }
}

pub(super) async fn export(
    request: &Request,
    out: Option<&Path>,
    places: &PathArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened = runs::open_read_only(environment, &places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let written = write(session, request, out, terminal).await?;
        print_warnings(session, terminal);
        if let (Some(written), Some(out)) = (written, out) {
            terminal.hint(&render::evidence::written(&written, &out.display().to_string()));
        }
        Ok(Exit::DONE)
    })
    .await
}

async fn write(
    session: &LedgerSession,
    request: &Request,
    out: Option<&Path>,
    terminal: &Terminal,
) -> Result<Option<ExportSummary>, ServiceError> {
    let Some(path) = out else {
        if workflow::is_read_by_runner() {
            let mut text = Vec::new();
            let written = exporting::export(session, request, &mut text).await?;
            terminal.exact(&String::from_utf8_lossy(&text))?;
            return Ok(written);
        }
        return exporting::export(session, request, &mut BufWriter::new(std::io::stdout())).await;
    };
    let mut staged = BufWriter::new(StagedFile::create(session, path)?);
    let written = exporting::export(session, request, &mut staged).await?;
    match staged.into_inner() {
        Ok(staged) => staged.persist()?,
        Err(error) => return Err(exporting::unwritable(path, error.error())),
    }
    Ok(written)
}

pub(super) async fn import(
    request: &importing::Request,
    shape: &OutputArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let OutputArguments { format, places } = shape;
    let shown = |imported: &ImportSummary| match format {
        HumanOrJson::Human => render::evidence::imported(imported, request.dry_run),
        HumanOrJson::Json => render::evidence::imported_json(imported, request.dry_run),
    };
    let workspace = match workspace::load(environment, &places.path_overrides(), &environment.directory) {
        Ok(workspace) => workspace,
        Err(error) => return exit_with_error(&error, (*format).into(), terminal),
    };
    if !workspace.ledger.may_exist() {
        match importing::preview(environment, &workspace, request).await {
            Err(error) => return exit_with_error(&error, (*format).into(), terminal),
            Ok(imported) if request.dry_run || imported.runs.is_empty() => {
                terminal.data(&shown(&imported));
                return Exit::DONE;
            }
            Ok(_) => {}
        }
    }
    let opened = open_session::open(environment.clone(), workspace).await;
    with_session(opened, (*format).into(), terminal, async |session| {
        let imported = importing::import(session, request).await?;
        Ok(print_result(&shown(&imported), session, terminal))
    })
    .await
}

pub(super) async fn prove(
    what: &str,
    places: &PathArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let opened = runs::open_read_only(environment, &places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let proof = proving::prove(session, what).await?;
        let text = proof.text().map_err(|error| {
            ServiceError::new(ExitClass::Bug, codes::LEDGER_CORRUPT, Body::new(error.to_string()))
        })?;
        print_warnings(session, terminal);
        terminal.exact(&text)?;
        Ok(Exit::DONE)
    })
    .await
}
