//! `quorate ledger export`.

use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate_ledger::export::{ExportFormat, ExportSummary};

use crate::arguments::PathArguments;
use crate::exit::Exit;
use crate::render::{self, Format};
use crate::session::{print_warnings, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::ledger::export::{self, Request, StagedFile};
use quorate::service::runs;
use quorate::service::session::LedgerSession;

/// Write what the ledger has sealed, for other programs
///
/// What is not sealed yet is sealed first. The same ledger gives the same bytes. As JSON Lines it has everything that proves
/// it, and `quorate ledger import` or `scripts/verify_ledger.py` check that.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger export > ledger.jsonl\n  quorate ledger export --run r7k2 --out run.jsonl\n  quorate ledger export --since 30d --format csv > records.csv"
)]
pub(crate) struct Arguments {
    /// This run alone: its id, the beginning of it, or `latest`; may be given several times
    #[arg(long = "run", value_name = "RUN")]
    runs: Vec<String>,
    /// What came after a checkpoint (its size, `ledger/<n>`, a note's file) or since a time (7d, 2026-05-18)
    #[arg(long, value_name = "CHECKPOINT|TIME")]
    since: Option<String>,
    /// How it is written
    #[arg(long, value_enum, default_value_t = FormatArgument::Jsonl)]
    format: FormatArgument,
    /// Write it to this file, which takes its place once it is whole; without it to standard output. Never over the ledger,
    /// its keys, its log or the configuration, nor to what is no regular file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    /// JSON Lines with proofs
    Jsonl,
    /// OpenTelemetry traces: one OTLP/JSON document, without texts
    Otel,
    /// One line for each record, without texts
    Csv,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let form = match arguments.format {
        FormatArgument::Jsonl => ExportFormat::Jsonl,
        FormatArgument::Otel => ExportFormat::Otel,
        FormatArgument::Csv => ExportFormat::Csv,
    };
    let request = Request { runs: arguments.runs, since: arguments.since, form };
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, Format::Human, terminal, async |session| {
        let written = write(session, &request, arguments.out.as_deref()).await?;
        print_warnings(session, terminal);
        if let (Some(written), Some(out)) = (written, &arguments.out) {
            terminal.hint(&render::evidence::written(&written, &out.display().to_string()));
        }
        Ok(Exit::DONE)
    })
    .await
}

async fn write(
    session: &LedgerSession,
    request: &Request,
    out: Option<&std::path::Path>,
) -> Result<Option<ExportSummary>, ServiceError> {
    let Some(path) = out else {
        let mut out = BufWriter::new(std::io::stdout());
        return export::export(session, request, &mut out).await;
    };
    let mut staged = BufWriter::new(StagedFile::create(session, path)?);
    let written = export::export(session, request, &mut staged).await?;
    match staged.into_inner() {
        Ok(staged) => staged.persist()?,
        Err(error) => return Err(export::unwritable(path, error.error())),
    }
    Ok(written)
}
