//! `quorate audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate_diagnostics::render::TextOptions;
use quorate_ledger::stats::ReviewFilter;
use quorate_protocol::policy::Verdict;

use crate::arguments::{PathArguments, since, verdict_parser};
use crate::exit::{Exit, exit_with_error};
use crate::exit::{print_warnings, with_session};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::audit::{self, Audit, AuditRequest};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::runs;

/// Summarize a council's log: verdicts, members' behaviour, drift, overrides
///
/// Reads `council_log.jsonl`, including lines of the public Agent Council.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate audit --since 30d\n  quorate audit --type linkedin_post --format markdown\n  quorate audit --log council_log.jsonl --format markdown --output audit.md"
)]
pub(super) struct Arguments {
    /// Start of the period: 24h, 7d, 2w, a date, or all
    #[arg(long, value_name = "WHEN", default_value = "all")]
    since: String,
    /// Only this verdict
    #[arg(long, ignore_case = true, value_parser = verdict_parser(VERDICTS))]
    verdict: Option<Verdict>,
    /// Only this type of artifact
    #[arg(long = "type", value_name = "TYPE")]
    artifact_type: Option<String>,
    /// Only this log, in any place: no ledger or configuration is read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reindex", "config", "ledger"])]
    log: Option<PathBuf>,
    /// Write to a file, replacing it
    #[arg(long, value_name = "FILE", visible_alias = "out")]
    output: Option<PathBuf>,
    /// Read the whole log again, if `quorate ledger verify` reports that its index does not match it
    #[arg(long)]
    reindex: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = AuditFormat::Human)]
    format: AuditFormat,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuditFormat {
    /// Text to read
    Human,
    /// Markdown for other documents
    Markdown,
    /// One JSON object
    Json,
}

/// The verdicts of `--verdict`, with their help.
const VERDICTS: [(Verdict, &str); 4] = [
    (Verdict::Ship, "May be published"),
    (Verdict::Revise, "May be published after changes"),
    (Verdict::Hold, "Must not be published"),
    (Verdict::Incomplete, "Too few answers to decide"),
];

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = match arguments.format {
        AuditFormat::Json => Format::Json,
        AuditFormat::Human | AuditFormat::Markdown => Format::Human,
    };
    let since_ms = match since(&arguments.since, environment.clock.now_ms()) {
        Ok(since_ms) => since_ms,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let verdict = arguments.verdict.map(|verdict| verdict.as_str().to_owned());
    let filter = ReviewFilter { since_ms, verdict, artifact_type: arguments.artifact_type };
    let places = arguments.places.path_overrides();
    let request = AuditRequest { filter, reindex: arguments.reindex };
    let print = |audit: &Audit| -> Result<Exit, ServiceError> {
        let options = if arguments.output.is_some() { TextOptions::default() } else { terminal.stdout };
        let text = match arguments.format {
            AuditFormat::Human => render::audit::human(audit, options),
            AuditFormat::Markdown => render::audit::markdown(audit),
            AuditFormat::Json => format!("{:#}\n", audit::json(audit)),
        };
        match &arguments.output {
            Some(path) => audit::write(environment, audit, path, &text)?,
            None => terminal.data(&text),
        }
        Ok(if audit.altered.is_empty() { Exit::DONE } else { Exit::CHECK_FAILED })
    };
    let by_itself = match &arguments.log {
        Some(log) => Some(audit::audit_file(environment, log, request.filter.clone()).await),
        None => audit::empty(environment, &places, &request).transpose(),
    };
    if let Some(audit) = by_itself {
        return audit
            .and_then(|audit| print(&audit))
            .unwrap_or_else(|error| exit_with_error(&error, format, terminal));
    }
    let opened = runs::open(environment, &places).await;
    with_session(opened, format, terminal, async |session| {
        let output = arguments.output.as_deref();
        output.map_or(Ok(()), |path| session.workspace.guard.ensure_free(environment, path))?;
        let audit = audit::audit(session, request).await?;
        print_warnings(session, terminal);
        print(&audit)
    })
    .await
}
