//! `quorate audit`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate::audit::{AuditRequest, ReviewFilter};
use quorate::{Quorate, Verdict};
use quorate_diagnostics::render::TextOptions;

use crate::arguments::{PathArguments, since, verdict_parser};
use crate::exit::{Ended, Exit, warn};
use crate::render::json_text;
use crate::terminal::Terminal;

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

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let Arguments { since: start, verdict, artifact_type, log, output, reindex, format, places } = arguments;
    let quorate = places.apply(quorate);
    let since_ms = since(&start, quorate.now_ms())?;
    let verdict = verdict.map(|verdict| verdict.as_str().to_owned());
    let filter = ReviewFilter { since_ms, verdict, artifact_type };
    let request = AuditRequest { filter, log, reindex, output: output.clone(), read_only: false };
    let audit = quorate.audit(request).await?;
    let options = if output.is_some() { TextOptions::default() } else { terminal.stdout };
    let text = match format {
        AuditFormat::Human => audit.doc().text(options),
        AuditFormat::Markdown => audit.doc().markdown(),
        AuditFormat::Json => json_text(&audit.value),
    };
    warn(&audit.warnings, terminal);
    match &output {
        Some(file) => quorate.write_audit(&audit, file, &text)?,
        None => terminal.data(&text),
    }
    Ok(if audit.altered.is_empty() { Exit::DONE } else { Exit::CHECK_FAILED })
}
