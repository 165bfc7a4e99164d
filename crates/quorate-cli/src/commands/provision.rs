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

/// Put the files of a profile into a folder, see whether they are still so, and take them out again
///
/// A profile is a folder with a profile.json. What was there before is kept, and uninstall puts it back.
///
/// Exits with 1 when a file was edited since it was installed, is missing, or cannot be written over; then nothing is.
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
    /// Install a profile, or its next version; a second time changes nothing
    Install(Install),
    /// Say which files were edited since or are missing
    Status(Status),
    /// Take a profile out: what was there before comes back
    Uninstall(Uninstall),
    /// List what is installed
    List(TargetArguments),
}

#[derive(Debug, Args)]
struct Install {
    /// A folder with a profile.json, or a runtime's manifest that says where its profile is
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
    /// The profile's slug; without it all that are installed
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
    /// Replace or take out what was edited since; the file as it was is kept in .quorate/aside
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct TargetArguments {
    /// The folder; without it the workspace's root, which is where the outermost quorate.toml lies
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// How it is printed
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
    let look = terminal.stdout;
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
            let standings = provision::status(&target, status.slug.as_deref())?;
            let mut report = Report::new();
            standings.iter().for_each(|standing| report.absorb(standing.report()));
            terminal.data(&render::provision::status(&standings, &report, all.format, look));
            print_diagnostics(&report, all.format, terminal);
            Ok(if report.has_refusals() { Exit::REFUSED } else { Exit::DONE })
        }
        Verb::List(_) => {
            let standings = provision::status(&target, None)?;
            terminal.data(&render::provision::list(&standings, all.format, look));
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
    if outcome.report.has_refusals() { Exit::REFUSED } else { Exit::DONE }
}

/// Diagnostics for people; a machine has them in its object.
fn print_diagnostics(report: &Report, format: HumanOrJson, terminal: &Terminal) {
    if format == HumanOrJson::Human {
        terminal.status(&render::diagnostics(report, Format::Human, terminal.stderr));
    }
}
