//! `quorate runs`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use quorate_ledger::runs::Filter;

use crate::arguments::{HumanOrJson, PathArguments, since};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::runs;

/// List the runs of the ledger: open ones first, in each part the newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate runs\n  quorate runs --limit 5 --format json\n  quorate runs --verdict hold --type linkedin_post --since 30d\n  quorate runs --mode voting\n  quorate runs --producer copywriter"
)]
pub(super) struct Arguments {
    /// The most runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only this verdict or outcome, for example hold or pass; open for undecided runs
    #[arg(long, value_name = "VERDICT", ignore_case = true, value_parser = PossibleValuesParser::new(runs::VERDICTS))]
    verdict: Option<String>,
    /// Only this type of artifact
    #[arg(long = "type", value_name = "TYPE")]
    artifact_type: Option<String>,
    /// Only reviews (council), or assemblies of this mode
    #[arg(long, value_name = "MODE", ignore_case = true, value_parser = PossibleValuesParser::new(runs::MODES))]
    mode: Option<String>,
    /// Only runs on what this operator made: `--made-by` of review and convene
    #[arg(long, value_name = "OPERATOR")]
    producer: Option<String>,
    /// Only runs opened since then: 24h, 7d, a date, or all
    #[arg(long, value_name = "WHEN", default_value = "all")]
    since: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format.into();
    let since_ms = match since(&arguments.since, environment) {
        Ok(since_ms) => since_ms,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    let filter = Filter {
        since_ms,
        verdict: arguments.verdict,
        artifact_type: arguments.artifact_type,
        mode: arguments.mode.map(|mode| mode.to_lowercase()),
        producer: arguments.producer,
        after: None,
    };
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, format, terminal, async |session| {
        let page = runs::list(session, &filter, arguments.limit).await?;
        let count = match page.next {
            Some(_) => runs::count(session, &filter).await?,
            None => 0,
        };
        let is_altered = page.is_altered();
        let all = page.runs;
        let text = match arguments.format {
            HumanOrJson::Human if all.is_empty() && filter != Filter::default() => {
                "No run fits.\n".to_owned()
            }
            HumanOrJson::Human => render::runs::human(&all, terminal.stdout),
            HumanOrJson::Json => render::runs::json(&all),
        };
        let exit = print_result(&text, session, terminal);
        let more = count.saturating_sub(all.len() as u64);
        if more > 0 {
            let (runs, are) = if more == 1 { ("run", "is") } else { ("runs", "are") };
            terminal.hint(&format!("{more} more {runs} {are} not shown: `--limit {count}` shows all"));
        }
        Ok(if is_altered { Exit::CHECK_FAILED } else { exit })
    })
    .await
}
