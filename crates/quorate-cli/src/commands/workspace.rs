//! The commands on the files and services of a workspace: `quorate provision`, `doctor` and `models`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorate::service::doctor::{self, CheckStatus, DoctorCheck};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::provision::{
    self, EditPolicy, ProvisionOptions, ProvisionOutcome, ProvisionTarget, WriteMode,
};
use quorate::service::models;
use quorate_diagnostics::Report;
use serde_json::json;

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments};
use crate::events;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;

/// Install the files of a profile into a folder, check them, and uninstall them
///
/// A profile is a folder with a profile.json. Replaced files are kept, and uninstall restores them.
///
/// Exits with 1 when a file was edited since it was installed, is missing, or cannot be replaced; then nothing changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate provision install profiles/standard --dry-run\n  quorate provision status\n  quorate provision uninstall runtime-profile/standard"
)]
pub(super) struct ProvisionArguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Install a profile, or its next version; a repetition changes nothing
    Install(Install),
    /// List files that were edited or are missing
    Status(StatusArguments),
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
struct StatusArguments {
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
    fn options(&self) -> ProvisionOptions {
        ProvisionOptions {
            run: if self.dry_run { WriteMode::DryRun } else { WriteMode::Apply },
            policy: if self.force { EditPolicy::Override } else { EditPolicy::Protect },
        }
    }
}

pub(super) async fn run_provision(
    arguments: ProvisionArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let (Verb::Install(Install { all, .. })
    | Verb::Uninstall(Uninstall { all, .. })
    | Verb::Status(StatusArguments { all, .. })
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
    let target = ProvisionTarget::open(environment, all.into.as_deref())?;
    let options = terminal.stdout;
    match verb {
        Verb::Install(install) => {
            let source = provision::source(environment, &install.profile, &environment.registries)?;
            let outcome = provision::install(environment, &*source, &target, install.how.options()).await?;
            Ok(print_outcome(&outcome, render::workspace::Verb::Install, all.format, terminal))
        }
        Verb::Uninstall(uninstall) => {
            let outcome = provision::uninstall(&target, &uninstall.slug, uninstall.how.options())?;
            Ok(print_outcome(&outcome, render::workspace::Verb::Uninstall, all.format, terminal))
        }
        Verb::Status(status) => {
            let statuses = provision::status(&target, status.slug.as_deref())?;
            let mut report = Report::new();
            statuses.iter().for_each(|status| report.absorb(status.report()));
            terminal.data(&render::workspace::status(&statuses, &report, all.format, options));
            print_diagnostics(&report, all.format, terminal);
            Ok(if report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE })
        }
        Verb::List(_) => {
            let statuses = provision::status(&target, None)?;
            terminal.data(&render::workspace::list(&statuses, all.format, options));
            Ok(Exit::DONE)
        }
    }
}

fn print_outcome(
    outcome: &ProvisionOutcome,
    verb: render::workspace::Verb,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Exit {
    terminal.data(&render::workspace::outcome(outcome, verb, format, terminal.stdout));
    print_diagnostics(&outcome.report, format, terminal);
    if outcome.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}

/// Prints diagnostics for people; JSON output includes them.
fn print_diagnostics(report: &Report, format: HumanOrJson, terminal: &Terminal) {
    if format == HumanOrJson::Human {
        terminal.status(&render::diagnostics(report, Format::Human, terminal.stderr));
    }
}

/// Check that everything that a review needs is in place
///
/// Calls each executor once, with a harmless text; one that is paid for each question only with --ask. Exits with 0 if all is well and with 5 if something does not work.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate doctor --seconds 30")]
pub(super) struct DoctorArguments {
    /// The timeout of each executor, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Also ask executors that are paid for each question
    #[arg(long)]
    ask: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    events: EventsArguments,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_doctor(
    arguments: DoctorArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = arguments.format.into();
    let timeout = Duration::from_secs(arguments.seconds);
    let mut checks =
        match doctor::doctor(environment, &arguments.places.path_overrides(), timeout, arguments.ask).await {
            Ok(checks) => checks,
            Err(error) => return exit_with_error(&error, format, terminal),
        };
    checks.extend(events::check(arguments.events).await);
    let text = match arguments.format {
        HumanOrJson::Human => render::workspace::doctor_checks(&checks, terminal.stdout),
        HumanOrJson::Json => {
            let check_json = |check: &DoctorCheck| json!({"name": check.name, "state": status_word(check.status), "detail": check.detail});
            format!("{:#}\n", json!({"checks": checks.iter().map(check_json).collect::<Vec<_>>()}))
        }
    };
    terminal.data(&text);
    match checks.iter().any(|check| check.status == CheckStatus::Failed) {
        true => Exit::UNUSABLE,
        false => Exit::DONE,
    }
}

fn status_word(state: CheckStatus) -> &'static str {
    match state {
        CheckStatus::Passed => "good",
        CheckStatus::Warning => "noted",
        CheckStatus::Failed => "bad",
    }
}

const TIMEOUT: Duration = Duration::from_secs(30);

/// List the models that an executor can ask
///
/// Asks the service for its list, one model a line. No model is asked.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate models anthropic\n  quorate models ollama\n  quorate models http://localhost:8080/v1"
)]
pub(super) struct ModelsArguments {
    /// A table `[executors.<name>]` of quorate.toml, a preset, or the address of a server
    #[arg(value_name = "EXECUTOR")]
    executor: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_models(
    arguments: ModelsArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let places = arguments.places.path_overrides();
    match models::models(environment, &places, &arguments.executor, TIMEOUT).await {
        Ok(models) => {
            terminal.data(&match arguments.format {
                HumanOrJson::Human => models.iter().map(|model| format!("{model}\n")).collect::<String>(),
                HumanOrJson::Json => {
                    format!("{:#}\n", json!({"executor": arguments.executor, "models": models}))
                }
            });
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, arguments.format.into(), terminal),
    }
}
