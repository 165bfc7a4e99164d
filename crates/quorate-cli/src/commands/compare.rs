//! `quorate compare`.

use clap::Args;

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::Exit;
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::{compare, runs};

/// Compare two runs on one artifact: findings kept, new and gone, and who changed position
///
/// With one run, compares the run before it on the same artifact with it. `quorate schema compare` describes the JSON.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate compare latest\n  quorate compare r7k2 r9m4\n  quorate compare r7k2 latest --format json"
)]
pub(super) struct Arguments {
    /// One run: its id, a prefix of it, or `latest`. Two runs: the earlier one, then the later one
    #[arg(value_name = "RUN", num_args = 1..=2, required = true)]
    runs: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let opened = runs::open_read_only(environment, &arguments.places.path_overrides()).await;
    with_session(opened, arguments.format.into(), terminal, async |session| {
        let (a, b) = match &arguments.runs[..] {
            [a, b] => (Some(&**a), &**b),
            runs => (None, runs.first().map_or("", String::as_str)),
        };
        let compared = compare::compare_named(session, a, b).await?;
        let text = match arguments.format {
            HumanOrJson::Human => render::compare::human(&compared, terminal.stdout),
            HumanOrJson::Json => format!("{:#}\n", serde_json::json!(compared)),
        };
        Ok(print_result(&text, session, terminal))
    })
    .await
}
