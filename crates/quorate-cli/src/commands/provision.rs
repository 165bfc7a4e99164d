//! `quorate provision`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use quorate_diagnostics::Report;

use crate::arguments::HumanOrJson;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::provision::{self, Force, Options, Outcome, Target, WriteMode};

/// Install the files of a profile into a folder, check them, and uninstall them
///
/// A profile is a folder with a profile.json. Replaced files are kept, and uninstall restores them.
///
/// Exits with 1 when a file was edited since it was installed, is missing, or cannot be replaced; then nothing changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate provision install profiles/standard --dry-run\n  quorate provision status\n  quorate provision uninstall runtime-profile/standard"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Install a profile, or its next version; a repetition changes nothing
    Install(Install),
    /// List files that were edited or are missing
    Status(Status),
    /// Uninstall a profile and restore the files that it replaced
    Uninstall(Uninstall),
    /// List installed profiles
    List(TargetArguments),
}

#[derive(Debug, Args)]
struct Install {
    /// A folder with a profile.json, or a runtime's manifest that names its profile
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,
    #[command(flatten)]
    how: WriteArguments,
    #[command(flatten)]
    all: TargetArguments,
}

#[derive(Debug, Args)]
struct Uninstall {
    /// The profile's slug, as `quorate provision list` shows it
    #[arg(value_name = "SLUG")]
    slug: String,
    #[command(flatten)]
    how: WriteArguments,
    #[command(flatten)]
    all: TargetArguments,
}

#[derive(Debug, Args)]
struct Status {
    /// The profile's slug; by default all installed ones
    #[arg(value_name = "SLUG")]
    slug: Option<String>,
    #[command(flatten)]
    all: TargetArguments,
}

#[derive(Debug, Args)]
struct WriteArguments {
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Replace or remove edited files; their content is kept in .quorate/aside
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct TargetArguments {
    /// The folder; by default the workspace's root, which is the directory of the outermost quorate.toml
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
}

impl WriteArguments {
    fn options(&self) -> Options {
        Options {
            run: if self.dry_run { WriteMode::DryRun } else { WriteMode::Apply },
            force: if self.force { Force::Yes } else { Force::No },
        }
    }
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (Verb::Install(Install { all, .. })
    | Verb::Uninstall(Uninstall { all, .. })
    | Verb::Status(Status { all, .. })
    | Verb::List(all)) = &arguments.verb;
    let format = all.format;
    match run_verb(&arguments.verb, all, environment, terminal).await {
        Ok(exit) => exit,
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn run_verb(
    verb: &Verb,
    all: &TargetArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let target = Target::open(environment, all.into.as_deref())?;
    let options = terminal.stdout;
    match verb {
        Verb::Install(install) => {
            let source = provision::source(environment, &install.profile, &environment.host)?;
            let outcome = provision::install(environment, &*source, &target, install.how.options()).await?;
            Ok(print_outcome(&outcome, render::provision::Verb::Install, all.format, terminal))
        }
        Verb::Uninstall(uninstall) => {
            let outcome = provision::uninstall(&target, &uninstall.slug, uninstall.how.options())?;
            Ok(print_outcome(&outcome, render::provision::Verb::Uninstall, all.format, terminal))
        }
        Verb::Status(status) => {
            let statuses = provision::status(&target, status.slug.as_deref())?;
            let mut report = Report::new();
            statuses.iter().for_each(|status| report.absorb(status.report()));
            terminal.data(&render::provision::status(&statuses, &report, all.format, options));
            print_diagnostics(&report, all.format, terminal);
            Ok(if report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE })
        }
        Verb::List(_) => {
            let statuses = provision::status(&target, None)?;
            terminal.data(&render::provision::list(&statuses, all.format, options));
            Ok(Exit::DONE)
        }
    }
}

fn print_outcome(
    outcome: &Outcome,
    verb: render::provision::Verb,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Exit {
    terminal.data(&render::provision::outcome(outcome, verb, format, terminal.stdout));
    print_diagnostics(&outcome.report, format, terminal);
    if outcome.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}

/// Prints diagnostics for people; JSON output includes them.
fn print_diagnostics(report: &Report, format: HumanOrJson, terminal: &Terminal) {
    if format == HumanOrJson::Human {
        terminal.status(&render::diagnostics(report, Format::Human, terminal.stderr));
    }
}
