//! `quorate check`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use quorate_diagnostics::{Report as Diagnostics, render as diagnostic};
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::MAX_BYTES;

use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::check::{self, Outcome, Request};
use quorate::service::environment::Environment;
use quorate::service::repository_path::repository_path;
use quorate::service::{disk, modularity};

/// Check manifests, and report every problem
///
/// Reads assemblies, personas, playbooks, operators, runtimes, council.yaml and quorate.toml: named files, files below a
/// directory, globs, or standard input for `-`. The kind of a file follows from its `schema`, else its name, else its
/// keys; other files in a directory are skipped and counted.
///
/// Refs resolve in the workspace: the outermost directory with a quorate.toml, else the named directory, else the
/// working directory.
///
/// Exits with 0 when nothing is refused, with 1 when something is (with --strict also for warnings), with 4 when a named
/// file does not exist or --modularity finds no file to scan, and with 5 when one cannot be read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate check .\n  quorate check 'assemblies/**/ASSEMBLY.md' --format github\n  quorate check --no-refs ASSEMBLY.md\n  quorate check --modularity ../our-agents --exempt dispatcher"
)]
pub(super) struct Arguments {
    /// Files, directories or globs; `-` reads standard input
    #[arg(value_name = "PATH", required_unless_present = "modularity")]
    paths: Vec<PathBuf>,
    /// Count warnings as refusals in the exit code
    #[arg(long)]
    strict: bool,
    /// Check the form of refs, and not whether their targets exist
    #[arg(long)]
    no_refs: bool,
    /// The workspace that refs resolve in
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Check instead that no producer of artifacts mentions the council: scans `agents/*/prompt.md`, OPERATOR.md, PERSONA.md
    /// and playbooks below a directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["paths", "strict", "no_refs", "root"])]
    modularity: Option<PathBuf>,
    /// With --modularity: an agent that may mention the council, because it routes artifacts to it; the name of its folder;
    /// repeatable
    #[arg(long, value_name = "AGENT", requires = "modularity", conflicts_with = "paths")]
    exempt: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text to read, with the source underlined
    Human,
    /// One line for each diagnostic
    Concise,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
}

impl OutputFormat {
    fn format(self) -> Format {
        match self {
            OutputFormat::Human | OutputFormat::Concise => Format::Human,
            OutputFormat::Json => Format::Json,
            OutputFormat::Sarif => Format::Sarif,
            OutputFormat::Github => Format::Github,
        }
    }
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match &arguments.modularity {
        Some(dir) => scan_modularity(dir, &arguments.exempt, arguments.format, environment, terminal),
        None => check_manifests(arguments, environment, terminal),
    }
}

fn check_manifests(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = arguments.format;
    let (stdin, paths): (Vec<_>, Vec<_>) =
        arguments.paths.into_iter().partition(|path| path == Path::new("-"));
    let stdin = match stdin.first().map(|_| disk::read_stdin(MAX_BYTES as u64)).transpose() {
        Ok(stdin) => stdin,
        Err(error) => {
            terminal.status(&format!("cannot read standard input: {error}"));
            return Exit::UNUSABLE;
        }
    };
    let refs = if arguments.no_refs { Refs::ShapeOnly } else { Refs::Followed };
    let request = Request { paths, root: arguments.root, refs };
    let outcome = match check::check(environment, &request, stdin) {
        Ok(outcome) => outcome,
        Err(error) => return exit_with_error(&error, format.format(), terminal),
    };
    let Outcome { files, skipped: passed_over, unreadable, notes, mut report } = outcome;
    name_for_hosts(&mut report, format, environment);
    let text = match format {
        OutputFormat::Json => format!("{:#}\n", diagnostic::json::check(&report, files)),
        OutputFormat::Concise => diagnostic::concise(&report),
        format => render::diagnostics(&report, format.format(), terminal.stdout),
    };
    terminal.data_as(format.format(), &text);
    let (refusals, warnings) = (report.refusals.len(), report.warnings.len());
    if format == OutputFormat::Human {
        notes.iter().for_each(|note| terminal.hint(note));
    }
    let skipped = if passed_over == 0 { String::new() } else { format!(", {passed_over} passed over") };
    terminal.hint(&format!(
        "{} checked{skipped}: {}, {}",
        count_of(files, "file"),
        count_of(refusals, "refusal"),
        count_of(warnings, "warning")
    ));
    if unreadable > 0 {
        return Exit::UNUSABLE;
    }
    if refusals > 0 || (arguments.strict && warnings > 0) { Exit::CHECK_FAILED } else { Exit::DONE }
}

/// Names files from the root of their repository in the formats that code hosts read.
fn name_for_hosts(report: &mut Diagnostics, format: OutputFormat, environment: &Environment) {
    if matches!(format, OutputFormat::Sarif | OutputFormat::Github) {
        report.rename_files(|file| repository_path(&environment.directory, Path::new(file)));
    }
}

fn count_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn scan_modularity(
    dir: &Path,
    exempt: &[String],
    format: OutputFormat,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let mut scanned = match modularity::scan(&environment.directory.join(dir), dir, exempt) {
        Ok(scanned) => scanned,
        Err(error) => return exit_with_error(&error, format.format(), terminal),
    };
    name_for_hosts(&mut scanned.report, format, environment);
    terminal
        .data_as(format.format(), &render::diagnostics(&scanned.report, format.format(), terminal.stdout));
    let hits = scanned.report.refusals.len();
    let exempt = if scanned.exempt == 0 { String::new() } else { format!(", {} exempt", scanned.exempt) };
    let files = count_of(scanned.files, "file");
    terminal.hint(&format!("{files} scanned{exempt}, {}", count_of(hits, "reference")));
    if scanned.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}
