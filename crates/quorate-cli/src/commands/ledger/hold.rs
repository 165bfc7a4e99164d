//! `quorate ledger hold` and `quorate ledger release`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::hold::{self, HoldChange};
use quorate::service::runs;

/// Put a run on legal hold: nothing of it is erased, whatever its age
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger hold r7k2 --reason \"claim 2026-14\"\n  quorate ledger hold --list"
)]
pub(crate) struct Arguments {
    /// The run's id, the beginning of it, or `latest`; a conversation's stream by its whole name
    #[arg(value_name = "RUN", required_unless_present = "list")]
    run: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", requires = "run")]
    reason: Option<String>,
    /// List the runs on hold
    #[arg(long, conflicts_with_all = ["run", "reason"])]
    list: bool,
    #[command(flatten)]
    shape: OutputArguments,
}

/// Release a run from legal hold: once it is of age it may be erased
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate ledger release r7k2")]
pub(crate) struct ReleaseArguments {
    /// The run's id, the beginning of it, or `latest`; a conversation's stream by its whole name
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.shape.format;
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format.into(), terminal, async |session| {
        let text = match (&arguments.run, format) {
            (Some(run), _) => {
                render_change(&hold::hold(session, run, arguments.reason.as_deref()).await?, format)
            }
            (None, HumanOrJson::Human) => {
                render::retention::holds(&hold::holds(session).await?, terminal.stdout)
            }
            (None, HumanOrJson::Json) => render::retention::holds_json(&hold::holds(session).await?),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}

pub(crate) async fn release(
    arguments: ReleaseArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.shape.format;
    let opened = runs::open_read_only(environment, &arguments.shape.places.path_overrides()).await;
    with_session(opened, format.into(), terminal, async |session| {
        let changed = hold::release(session, &arguments.run).await?;
        Ok(print_result(&render_change(&changed, format), session, terminal))
    })
    .await
}

fn render_change(changed: &HoldChange, format: HumanOrJson) -> String {
    match format {
        HumanOrJson::Human => render::retention::changed(changed),
        HumanOrJson::Json => render::retention::changed_json(changed),
    }
}
