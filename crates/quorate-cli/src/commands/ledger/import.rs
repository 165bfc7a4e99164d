//! `quorate ledger import`.

use clap::Args;
use quorate_ledger::import::ImportSummary;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::session::{print_result, with_session};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::import::{self, Request};
use quorate::service::open_session;
use quorate::service::workspace;

/// Take in the runs of another ledger from its export, verified first
///
/// Records are merged byte for byte as they were, and only if all of the file holds. Runs that are here already stay; a run
/// that contradicts what is here, or adds to one that this ledger recorded itself, refuses the file. Overlays, playbooks and conversations are not merged.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger import theirs.jsonl --key their-ledger.pub --dry-run\n  quorate ledger import theirs.jsonl --key their-ledger.pub"
)]
pub(crate) struct Arguments {
    /// What `quorate ledger export` wrote
    #[arg(value_name = "FILE")]
    file: String,
    /// The other ledger's key, as you have it from its owner: a verifier's line, a public key, or a file of these. This
    /// ledger's own keys need not be given
    #[arg(long = "key", value_name = "KEY|FILE")]
    keys: Vec<String>,
    /// A key of which one has to have signed each record that is signed: a public key, or a file of these
    #[arg(long = "signer", value_name = "KEY|FILE")]
    signers: Vec<String>,
    /// Say what would be merged, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let Arguments { file, keys, signers, dry_run, shape: OutputArguments { format, places } } = arguments;
    let request = Request { file, keys, signers, dry_run };
    let shown = |imported: &ImportSummary| match format {
        HumanOrJson::Human => render::evidence::imported(imported, dry_run),
        HumanOrJson::Json => render::evidence::imported_json(imported, dry_run),
    };
    let workspace = match workspace::load(environment, &places.path_overrides(), &environment.directory) {
        Ok(workspace) => workspace,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    if !workspace.ledger.may_exist() {
        match import::preview(environment, &workspace, &request).await {
            Err(error) => return exit_with_error(&error, format.into(), terminal),
            Ok(imported) if dry_run || imported.runs.is_empty() => {
                terminal.data(&shown(&imported));
                return Exit::DONE;
            }
            Ok(_) => {}
        }
    }
    let opened = open_session::open(environment.clone(), workspace).await;
    with_session(opened, format.into(), terminal, async |session| {
        let imported = import::import(session, &request).await?;
        Ok(print_result(&shown(&imported), session, terminal))
    })
    .await
}
