//! The commands on the files and services of a workspace: `quorate provision`, `doctor` and `models`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use quorate::doctor::{DoctorRequest, ModelService};
use quorate::provision::ProvisionRequest;
use quorate::view::Doc;
use quorate::{Error, Quorate, Report};
use quorate_diagnostics::text::shell_quoted;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::{EventsArguments, HumanOrJson, PathArguments};
use crate::exit::{Exit, end, warn};
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
) -> Exit {
    let (Verb::Install(Install { all, .. })
    | Verb::Uninstall(Uninstall { all, .. })
    | Verb::Status(StatusArguments { all, .. })
    | Verb::List(all)) = &arguments.verb;
    end(run_verb(&arguments.verb, all, quorate, terminal).await, all.format.into(), terminal)
}

async fn run_verb(
    verb: &Verb,
    all: &TargetArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Result<Exit, Error> {
    let format = all.format;
    Ok(match verb {
        Verb::Install(install) => {
            let done = quorate.install_profile(&install.profile, install.how.request(all)).await?;
            print_changes(&done, || done.doc(), &done.report, format, terminal)
        }
        Verb::Uninstall(uninstall) => {
            let done = quorate.uninstall_profile(&uninstall.slug, uninstall.how.request(all))?;
            print_changes(&done, || done.doc(), &done.report, format, terminal)
        }
        Verb::Status(status) => {
            let found = quorate.profiles(all.into.clone(), status.slug.as_deref())?;
            print_changes(&found, || found.doc(), &found.report, format, terminal)
        }
        Verb::List(_) => {
            let found = quorate.profiles(all.into.clone(), None)?;
            print(&json!({"profiles": found.profiles}), || found.list(), format, terminal);
            Exit::DONE
        }
    })
}

/// Prints an outcome with its report, which JSON contains.
fn print_changes(
    outcome: &impl Serialize,
    doc: impl FnOnce() -> Doc,
    report: &Report,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Exit {
    print(&json!(outcome), doc, format, terminal);
    if format == HumanOrJson::Human {
        warn(report, terminal);
    }
    if report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}

fn print(json: &Value, doc: impl FnOnce() -> Doc, format: HumanOrJson, terminal: &Terminal) {
    terminal.data(&match format {
        HumanOrJson::Human => doc().text(terminal.stdout),
        HumanOrJson::Json => format!("{json:#}\n"),
    });
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

pub(super) async fn run_doctor(arguments: DoctorArguments, quorate: &Quorate, terminal: &Terminal) -> Exit {
    let DoctorArguments { seconds, ask, format, events, places } = arguments;
    let request = DoctorRequest { timeout: Duration::from_secs(seconds), ask, events: events.servers() };
    let diagnosis = places.apply(quorate).doctor(request).await.map(|diagnosis| {
        print(&json!(diagnosis), || diagnosis.doc(), format, terminal);
        if diagnosis.has_failed() { Exit::UNUSABLE } else { Exit::DONE }
    });
    end(diagnosis, format.into(), terminal)
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
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

pub(super) async fn run_models(arguments: ModelsArguments, quorate: &Quorate, terminal: &Terminal) -> Exit {
    let ModelsArguments { executor, format, places } = arguments;
    let Some(executor) = executor else {
        let services = places.apply(quorate).model_services().map(|services| {
            print(&json!({"executors": services}), || ModelService::doc(&services), format, terminal);
            Exit::DONE
        });
        return end(services, format.into(), terminal);
    };
    let listed = places.apply(quorate).models(&executor, TIMEOUT).await.map(|models| {
        terminal.data(&match format {
            HumanOrJson::Human => models.iter().map(|model| format!("{model}\n")).collect(),
            HumanOrJson::Json => format!("{:#}\n", json!({"executor": executor, "models": models})),
        });
        if let Some(model) = models.first().filter(|_| format == HumanOrJson::Human) {
            let service = executor.split('#').next().unwrap_or(&executor);
            let asks = match service.contains("://") {
                true => shell_quoted(&format!("{service}#{model}")),
                false => format!("{service} --model {}", shell_quoted(model)),
            };
            terminal.hint(&format!("`quorate review FILE --executor {asks}` asks one of them"));
        }
        Exit::DONE
    });
    end(listed, format.into(), terminal)
}
