//! `quorate trust`.

use std::path::PathBuf;

use clap::Args;
use quorate::trust::{SafeDirectory, TrustAction, TrustReport};
use quorate::{Outcome, Quorate};

use crate::arguments::HumanOrJson;
use crate::exit::{Ended, show};
use crate::terminal::Terminal;

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

pub(super) fn run(arguments: &Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    if let Some(directory) = &arguments.safe_directory {
        let decided = match arguments.revoke {
            true => quorate.remove_safe_directory(directory),
            false => quorate.add_safe_directory(directory),
        };
        return show(decided.map(Outcome::from), SafeDirectory::doc, terminal);
    }
    let action = match (arguments.show, arguments.revoke) {
        (true, _) => TrustAction::Inspected,
        (_, true) => TrustAction::Revoked,
        _ => TrustAction::Trusted,
    };
    show(quorate.decide_trust(&arguments.files, action).map(Outcome::from), TrustReport::doc, terminal)
}
