//! The commands on manifests: `quorate check`, `fmt`, `resolve`, `schema` and `explain`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use quorate::manifests::{self, CheckRequest, FormatRequest, Refs, ResolveRequest};
use quorate::schemas;
use quorate::{Error, ErrorKind, Quorate};
use quorate_diagnostics::{Body, Report, codes, render as diagnostic};
use serde_json::json;

use crate::exit::{Ended, Exit, warn};
use crate::render::{self, Format, json_text};
use crate::terminal::{Terminal, read_stdin};

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
pub(super) struct CheckArguments {
    /// Files, directories, globs, or names of manifests without their folder; `-` reads standard input
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

pub(super) fn run_check(arguments: CheckArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match arguments.modularity.clone() {
        Some(directory) => scan_modularity(directory, &arguments, quorate, terminal),
        None => check_manifests(arguments, quorate, terminal),
    }
}

/// Standard input, if it is one of the paths, and the other paths.
fn take_stdin(paths: Vec<PathBuf>) -> Result<(Option<Vec<u8>>, Vec<PathBuf>), Error> {
    let (stdin, paths): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path == Path::new("-"));
    Ok((stdin.first().map(|_| read_stdin(manifests::MAX_BYTES)).transpose()?, paths))
}

fn check_manifests(arguments: CheckArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let format = arguments.format;
    let (text, paths) = take_stdin(arguments.paths)?;
    let refs = if arguments.no_refs { Refs::ShapeOnly } else { Refs::Followed };
    let mut outcome = quorate.check(CheckRequest { paths, text, root: arguments.root, refs })?;
    let is_concise = format == OutputFormat::Concise;
    print_report(&mut outcome.report, is_concise, quorate, terminal, |report| {
        format!("{:#}\n", diagnostic::machine::check_json(report, outcome.files))
    });
    if format == OutputFormat::Human {
        outcome.notes.iter().for_each(|note| terminal.hint(note));
    }
    terminal.hint(&outcome.summary());
    let has_failed =
        outcome.report.has_refusals() || (arguments.strict && !outcome.report.warnings.is_empty());
    Ok(match outcome.unreadable {
        0 if has_failed => Exit::CHECK_FAILED,
        0 => Exit::DONE,
        _ => Exit::UNUSABLE,
    })
}

/// Prints a report. Code hosts read the names of files from the root of their repository.
fn print_report(
    report: &mut Report,
    is_concise: bool,
    quorate: &Quorate,
    terminal: &Terminal,
    json: impl FnOnce(&Report) -> String,
) {
    if matches!(terminal.format, Format::Sarif | Format::Github) {
        quorate.name_for_code_hosts(report);
    }
    let text = match terminal.format {
        Format::Json => json(report),
        _ if is_concise => diagnostic::concise(report),
        format => render::diagnostics(report, format, terminal.stdout),
    };
    terminal.data_as(terminal.format, &text);
}

fn scan_modularity(
    directory: PathBuf,
    arguments: &CheckArguments,
    quorate: &Quorate,
    terminal: &Terminal,
) -> Ended {
    let mut scanned = quorate.scan_modularity(directory, &arguments.exempt)?;
    // The scan has no concise format.
    print_report(&mut scanned.report, false, quorate, terminal, diagnostic::json);
    terminal.hint(&scanned.summary());
    Ok(if scanned.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE })
}

/// Format manifests: canonical key order and spacing; comments stay
///
/// The meaning of a file never changes: the command parses the result before it writes it, and keeps the file unchanged if
/// the meaning differs. Bodies are not formatted. `-` reads standard input and writes standard output.
///
/// Exits with 1 when `--check` finds a file that is not formatted, or a file cannot be read as a manifest.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate fmt .\n  quorate fmt --check 'assemblies/**/*.md'\n  quorate fmt - < ASSEMBLY.md"
)]
pub(super) struct FmtArguments {
    /// Files, directories, globs, or names of manifests without their folder; `-` reads standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only list the files that are not formatted
    #[arg(long)]
    check: bool,
}

pub(super) fn run_fmt(arguments: FmtArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let dry_run = arguments.check;
    let (text, paths) = take_stdin(arguments.paths)?;
    if let Some(text) = text {
        let formatted = manifests::format_text(text.clone())?;
        if !dry_run {
            terminal.verbatim(&formatted);
        }
        return Ok(if dry_run && formatted.as_bytes() != text { Exit::CHECK_FAILED } else { Exit::DONE });
    }
    let outcome = quorate.format(FormatRequest { paths, dry_run })?;
    for file in &outcome.changed {
        terminal.data(&format!("{file}\n"));
    }
    warn(&outcome.report, terminal);
    let done = if dry_run { "not formatted" } else { "formatted" };
    terminal.hint(&format!("{} looked at, {} {done}", outcome.files, outcome.changed.len()));
    let is_unformatted = dry_run && !outcome.changed.is_empty();
    Ok(if is_unformatted || outcome.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE })
}

/// Show an assembly with its chain merged, and the origin of each part
///
/// Exits with 1 if the assembly is refused; the refusals say why.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resolve operators/lead/ASSEMBLY.md\n  quorate resolve . --explain audit.signing\n  quorate resolve ASSEMBLY.md --explain 'members[ciso]' --format json"
)]
pub(super) struct ResolveArguments {
    /// The ASSEMBLY.md, its directory, or the name of its directory in assemblies/
    #[arg(value_name = "ASSEMBLY.md")]
    path: PathBuf,
    /// Only this field, with the line that sets it and what that line overrides
    #[arg(long, value_name = "FIELD")]
    explain: Option<String>,
    /// Check the form of refs, and not whether their targets exist
    #[arg(long)]
    no_refs: bool,
    /// The workspace in which refs resolve
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResolveOutputFormat::Human)]
    format: ResolveOutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ResolveOutputFormat {
    /// Text to read
    Human,
    /// The merged manifest, as a root manifest that can replace the leaf
    Yaml,
    /// One JSON object
    Json,
}

pub(super) fn run_resolve(arguments: ResolveArguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let ResolveArguments { path, explain, no_refs, root, format } = arguments;
    let refs = if no_refs { Refs::ShapeOnly } else { Refs::Followed };
    let view = quorate.resolve(ResolveRequest { path, root, refs })?;
    if format != ResolveOutputFormat::Json {
        warn(&view.report, terminal);
    }
    match (explain, format) {
        (None, ResolveOutputFormat::Human) => terminal.data(&view.doc().text(terminal.stdout)),
        (None, ResolveOutputFormat::Yaml) => terminal.raw_data(&view.yaml()?),
        (None, ResolveOutputFormat::Json) => terminal.data(&json_text(&view.json())),
        (Some(field), format) => {
            let origins = view.explain(&field)?;
            terminal.data(&match format {
                ResolveOutputFormat::Json => json_text(&json!({ "fields": origins })),
                _ => manifests::origins(&origins).text(terminal.stdout),
            });
        }
    }
    Ok(Exit::DONE)
}

/// The word before the name of an answer's schema.
const ANSWER: &str = "answer";

/// Print the JSON Schema of a doctype, of a command's output, or of a member's answer
///
/// Editors complete and check manifests with it: `# yaml-language-server: $schema=assembly.schema.json` as the first
/// line of the frontmatter. `review`, `reviews`, `convene` and `audit` are the output of these commands with --format json, `estimate` that of
/// `review --dry-run`, `plan`
/// is the output of `convene --dry-run`, `compare` that of `quorate compare`, `runs` that of `quorate runs`, `verify` that of `quorate ledger verify`, and `answer FORM` is the output of an executor.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate schema assembly > assembly.schema.json\n  quorate schema review\n  quorate schema answer deliberator\n  quorate schema             lists what has a schema\n  quorate schema answer      lists the answers"
)]
pub(super) struct SchemaArguments {
    /// The doctype, `review`, `reviews`, `estimate`, `convene`, `plan`, `compare`, `audit`, `runs`, `verify`, or `answer`; without it all schemas are listed
    #[arg(value_name = "WHAT")]
    what: Option<String>,
    /// After `answer`: the form; without it all are listed
    #[arg(value_name = "FORM")]
    form: Option<String>,
}

pub(super) fn run_schema(arguments: &SchemaArguments, terminal: &Terminal) -> Ended {
    terminal.verbatim(&schema_text(arguments.what.as_deref(), arguments.form.as_deref())?);
    Ok(Exit::DONE)
}

fn schema_text(kind: Option<&str>, form: Option<&str>) -> Result<String, Error> {
    match (kind, form) {
        (None, _) => {
            let documents = schemas::doctypes().into_iter().chain(schemas::reports());
            let answers = (ANSWER, "a member's answer: `quorate schema answer` lists the forms");
            let all = documents.map(|schema| (schema.name, schema.of)).chain([answers]);
            Ok(all.map(|(word, of)| format!("{word:<14} {of}\n")).collect())
        }
        (Some(ANSWER), None) => {
            let answers = schemas::answers().into_iter();
            Ok(answers.map(|schema| format!("{:<18} {}\n", schema.name, schema.of)).collect())
        }
        (Some(ANSWER), Some(word)) => Ok(format!("{:#}\n", schemas::answer(word)?)),
        (Some(word), None) => Ok(format!("{:#}\n", schemas::document(word)?)),
        (Some(word), Some(form)) => {
            let body = Body::new(format!("unexpected `{form}` after `{word}`"));
            let help = "only `answer` is followed by a word: `quorate schema answer deliberator`";
            Err(Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help)))
        }
    }
}

/// Explain the code of a diagnostic or an outcome
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate explain quorate:prompt_missing\n  quorate explain            lists all codes"
)]
pub(super) struct ExplainArguments {
    /// The code, with or without its prefix; without it all codes are listed
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// The verdicts of councils, and the codes of outcomes, which `--format json` prints as `code` (assemblies) and `incomplete`
/// (councils), with what each means: a code on a line of its own, then the text, whose first sentence is its line in the list. `lock_unchecked` and `out_of_reach` are codes of refused texts.
const OUTCOMES: &str = include_str!("outcomes.txt");

fn outcomes() -> impl Iterator<Item = (&'static str, &'static str)> {
    OUTCOMES.trim_end().split("\n\n").filter_map(|entry| entry.split_once('\n'))
}

/// The meaning of an outcome's code.
fn outcome_meaning(code: &str) -> Option<&'static str> {
    outcomes().find(|(listed, _)| listed.eq_ignore_ascii_case(code.trim())).map(|(_, meaning)| meaning)
}

pub(super) fn run_explain(arguments: &ExplainArguments, terminal: &Terminal) -> Ended {
    let Some(code) = &arguments.code else {
        let width = codes::all().iter().map(|page| page.code.len()).max().unwrap_or_default();
        let line = |page: &codes::Page| {
            format!("{:<width$}  {:<8} {}\n", page.code, page.severity.as_str(), page.summary())
        };
        let outcomes = outcomes().map(|(code, meaning)| {
            let summary = meaning.split_inclusive('.').next().unwrap_or(meaning);
            format!("{code:<width$}  outcome  {summary}\n")
        });
        terminal.verbatim(&codes::all().iter().map(line).chain(outcomes).collect::<String>());
        return Ok(Exit::DONE);
    };
    match (codes::explain(code), outcome_meaning(code)) {
        (Some(page), _) => terminal.verbatim(page.markdown),
        (None, Some(meaning)) => {
            terminal.verbatim(&format!("`{code}` is an outcome, not a diagnostic.\n\n{meaning}\n"));
        }
        (None, None) => {
            let help = match codes::nearest(code) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "run `quorate explain` to list all codes".to_owned(),
            };
            let body = Body::new(format!("unknown code `{code}`")).help(help);
            return Err(Error::new(ErrorKind::NotFound, codes::USAGE, body));
        }
    }
    Ok(Exit::DONE)
}
