//! The commands on the files and services of a workspace: `quorate provision`, `doctor` and `models`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorate::doctor::{DoctorRequest, ModelService};
use quorate::provision::ProvisionRequest;
use quorate::view::Doc;
use quorate::{Quorate, Report};
use quorate_diagnostics::text::shell_quoted;
use serde::Serialize;
use serde_json::json;

use crate::arguments::{EventsArguments, HumanOrJson, OutputArguments, PathArguments};
use crate::exit::{Ended, Exit, warn};
use crate::render::{Format, human_or_json, json_text};
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
    fn request(&self, all: &TargetArguments) -> ProvisionRequest {
        ProvisionRequest { into: all.into.clone(), dry_run: self.dry_run, force: self.force }
    }
}

pub(super) async fn run_provision(
    arguments: ProvisionArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    Ok(match arguments.verb {
        Verb::Install(Install { profile, how, all }) => {
            let done = quorate.install_profile(&profile, how.request(&all)).await?;
            print_changes(&done, || done.doc(), &done.report, terminal)
        }
        Verb::Uninstall(Uninstall { slug, how, all }) => {
            let done = quorate.uninstall_profile(&slug, how.request(&all))?;
            print_changes(&done, || done.doc(), &done.report, terminal)
        }
        Verb::Status(StatusArguments { slug, all }) => {
            let found = quorate.profiles(all.into, slug.as_deref())?;
            print_changes(&found, || found.doc(), &found.report, terminal)
        }
        Verb::List(all) => {
            let found = quorate.profiles(all.into, None)?;
            print(&json!({"profiles": found.profiles}), || found.list(), terminal);
            Exit::DONE
        }
    })
}

/// Prints an outcome with its report, which JSON contains.
fn print_changes(
    outcome: &impl Serialize,
    doc: impl FnOnce() -> Doc,
    report: &Report,
    terminal: &Terminal,
) -> Exit {
    print(outcome, doc, terminal);
    if terminal.format == Format::Human {
        warn(report, terminal);
    }
    if report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}

fn print(json: &impl Serialize, doc: impl FnOnce() -> Doc, terminal: &Terminal) {
    terminal.data(&human_or_json(json, |_| doc(), terminal));
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

pub(super) async fn run_doctor(arguments: DoctorArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let DoctorArguments { seconds, ask, events, places, .. } = arguments;
    let request = DoctorRequest { timeout: Duration::from_secs(seconds), ask, events: events.servers() };
    let diagnosis = places.apply(quorate).doctor(request).await?;
    print(&diagnosis, || diagnosis.doc(), terminal);
    Ok(if diagnosis.has_failed() { Exit::UNUSABLE } else { Exit::DONE })
}

const TIMEOUT: Duration = Duration::from_secs(30);

/// List the models that an executor can ask
///
/// Asks the service for its list, one model a line. No model is asked. Without an executor: those that have models.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate models\n  quorate models anthropic\n  quorate models ollama\n  quorate models http://localhost:8080/v1"
)]
pub(super) struct ModelsArguments {
    /// A table `[executors.<name>]` of quorate.toml, a preset, or the address of a server
    #[arg(value_name = "EXECUTOR")]
    executor: Option<String>,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run_models(arguments: ModelsArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let quorate = arguments.shape.apply(quorate);
    let Some(executor) = arguments.executor else {
        let services = quorate.model_services()?;
        print(&json!({"executors": services}), || ModelService::doc(&services), terminal);
        return Ok(Exit::DONE);
    };
    let models = quorate.models(&executor, TIMEOUT).await?;
    if terminal.format == Format::Json {
        terminal.data(&json_text(&json!({"executor": executor, "models": models})));
        return Ok(Exit::DONE);
    }
    terminal.data(&models.iter().map(|model| format!("{model}\n")).collect::<String>());
    if let Some(model) = models.first() {
        let service = executor.split('#').next().unwrap_or(&executor);
        let asks = match service.contains("://") {
            true => shell_quoted(&format!("{service}#{model}")),
            false => format!("{service} --model {}", shell_quoted(model)),
        };
        terminal.hint(&format!("`quorate review FILE --executor {asks}` asks one of them"));
    }
    Ok(Exit::DONE)
}
