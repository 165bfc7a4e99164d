//! `quorate trust`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::HumanOrJson;
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::trust::requests::Inventory;
use quorate::service::trust::{decide, inventory};

/// Trust what files of a workspace would run or send
///
/// Files of a workspace name commands, hooks, servers and addresses. They take effect only after you have trusted these
/// files, by their content: a changed file needs trust again. Trust is stored outside of the workspace.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate trust --show\n  quorate trust\n  quorate trust swarm.yaml\n  quorate trust --revoke\n  quorate trust --safe-directory /srv/shared\n  quorate trust --revoke --safe-directory /srv/shared\n\nWithout it: --trust for one command; QUORATE_TRUST=1 in CI, or QUORATE_TRUST=HASH with the hash that --show prints."
)]
pub(super) struct Arguments {
    /// The files to trust; by default all files of the workspace that need it
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only show what would be trusted, and its hash
    #[arg(long, conflicts_with_all = ["revoke", "safe_directory"])]
    show: bool,
    /// Revoke trust; with --safe-directory, revoke that exception
    #[arg(long)]
    revoke: bool,
    /// Use configuration in and below this directory although another user owns it
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    safe_directory: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match perform(arguments, environment) {
        Ok(text) => {
            terminal.data(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, arguments.format.into(), terminal),
    }
}

fn perform(arguments: &Arguments, environment: &Environment) -> Result<String, ServiceError> {
    if let Some(directory) = &arguments.safe_directory {
        let directory = match arguments.revoke {
            true => decide::revoke_safe_directory(environment, directory)?,
            false => decide::safe_directory(environment, directory)?,
        };
        return Ok(render::trust::safe_directory(&directory, arguments.revoke, arguments.format.into()));
    }
    let inventory: Inventory = match arguments.files.is_empty() {
        true => inventory::of_workspace(environment, &environment.directory)?,
        false => decide::inventory_of(environment, &arguments.files)?,
    };
    let done = match (arguments.show, arguments.revoke) {
        (true, _) => decide::inspect(environment, &inventory)?,
        (_, true) => decide::revoke(environment, &inventory)?,
        _ => decide::trust(environment, &inventory)?,
    };
    Ok(render::trust::inventory(environment, &inventory, &done, arguments.format.into()))
}
