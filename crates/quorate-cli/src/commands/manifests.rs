//! The commands on manifests: `quorate check`, `fmt`, `resolve`, `schema` and `explain`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use quorate::service::artifact::repository_path;
use quorate::service::check::{self, CheckOutcome, CheckRequest, FormatMode};
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::resolve::{self, ResolveRequest};
use quorate::service::schemas::{ANSWERS, Output, answer};
use quorate_diagnostics::{Body, Report as Diagnostics, codes, render as diagnostic};
use quorate_manifest::doctype::{self, Doctype};
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::MAX_BYTES;
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::Json;

use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;

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

pub(super) async fn run_check(
    arguments: CheckArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    match &arguments.modularity {
        Some(dir) => scan_modularity(dir, &arguments.exempt, arguments.format, environment, terminal),
        None => check_manifests(arguments, environment, terminal),
    }
}

fn check_manifests(arguments: CheckArguments, environment: &Environment, terminal: &Terminal) -> Exit {
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
    let request = CheckRequest { paths, root: arguments.root, refs };
    let outcome = match check::check(environment, &request, stdin) {
        Ok(outcome) => outcome,
        Err(error) => return exit_with_error(&error, format.format(), terminal),
    };
    let CheckOutcome { files, skipped: passed_over, unreadable, notes, mut report } = outcome;
    name_for_hosts(&mut report, format, environment);
    let text = match format {
        OutputFormat::Json => format!("{:#}\n", diagnostic::machine::check_json(&report, files)),
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
    let mut scanned = match check::scan_modularity(&environment.directory.join(dir), dir, exempt) {
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
    /// Files, directories or globs; `-` reads standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only list the files that are not formatted
    #[arg(long)]
    check: bool,
}

pub(super) async fn run_fmt(arguments: FmtArguments, environment: &Environment, terminal: &Terminal) -> Exit {
    if arguments.paths.iter().any(|path| path == Path::new("-")) {
        return stdin(&arguments, terminal);
    }
    let request = CheckRequest { paths: arguments.paths, root: None, refs: Refs::ShapeOnly };
    let mode = if arguments.check { FormatMode::Check } else { FormatMode::Write };
    let outcome = match check::fmt(environment, &request, mode) {
        Ok(outcome) => outcome,
        Err(error) => return exit_with_error(&error, Format::Human, terminal),
    };
    for file in &outcome.changed {
        terminal.data(&format!("{file}\n"));
    }
    terminal.status(&render::diagnostics(&outcome.report, Format::Human, terminal.stderr));
    let done = if arguments.check { "not formatted" } else { "formatted" };
    terminal.hint(&format!("{} looked at, {} {done}", outcome.files, outcome.changed.len()));
    let unformatted = arguments.check && !outcome.changed.is_empty();
    if unformatted || outcome.report.has_refusals() { Exit::CHECK_FAILED } else { Exit::DONE }
}

fn stdin(arguments: &FmtArguments, terminal: &Terminal) -> Exit {
    let bytes = match disk::read_stdin(MAX_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => {
            terminal.status(&format!("cannot read standard input: {error}"));
            return Exit::UNUSABLE;
        }
    };
    match check::fmt_text(bytes.clone()) {
        Ok(text) if arguments.check => {
            if text.as_bytes() == bytes {
                Exit::DONE
            } else {
                Exit::CHECK_FAILED
            }
        }
        Ok(text) => {
            terminal.verbatim(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, Format::Human, terminal),
    }
}

/// Show an assembly with its chain merged, and the origin of each part
///
/// Exits with 1 if the assembly is refused; the refusals say why.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate resolve operators/lead/ASSEMBLY.md\n  quorate resolve . --explain audit.signing\n  quorate resolve ASSEMBLY.md --explain 'members[ciso]' --format json"
)]
pub(super) struct ResolveArguments {
    /// The ASSEMBLY.md, or the directory that holds it
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

pub(super) async fn run_resolve(
    arguments: ResolveArguments,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let format = if arguments.format == ResolveOutputFormat::Json { Format::Json } else { Format::Human };
    let refs = if arguments.no_refs { Refs::ShapeOnly } else { Refs::Followed };
    let request = ResolveRequest { path: arguments.path, root: arguments.root, refs };
    let view = match resolve::resolve(environment, &request, &*environment.registries) {
        Ok(view) => view,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    if arguments.format != ResolveOutputFormat::Json {
        terminal.status(&render::diagnostics(&view.report, Format::Human, terminal.stderr));
    }
    let text = match &arguments.explain {
        None => match arguments.format {
            ResolveOutputFormat::Human => render::resolve::human(&view, terminal.stdout),
            ResolveOutputFormat::Yaml => match view.flatten() {
                Ok(standalone) => render::resolve::yaml(&view, &standalone),
                Err(error) => return exit_with_error(&error, format, terminal),
            },
            ResolveOutputFormat::Json => render::resolve::json(&view),
        },
        Some(field) => {
            let origins = view.explain(field);
            if origins.is_empty() {
                let body = Body::new(format!("`{field}` has no value in this assembly"));
                let body = match view.nearest(field) {
                    Some(near) => body.help(format!("did you mean `{near}`?")),
                    None => body.help("`quorate resolve --format json` lists all fields"),
                };
                return exit_with_error(&ServiceError::not_found(codes::USAGE, body), format, terminal);
            }
            match arguments.format {
                ResolveOutputFormat::Json => render::resolve::explain_json(&origins),
                _ => render::resolve::explain(&origins, terminal.stdout),
            }
        }
    };
    match (arguments.format, &arguments.explain) {
        (ResolveOutputFormat::Yaml, None) => terminal.raw_data(&text),
        _ => terminal.data(&text),
    }
    Exit::DONE
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

pub(super) fn run_schema(arguments: &SchemaArguments, terminal: &Terminal) -> Exit {
    match schema_text(arguments.what.as_deref(), arguments.form.as_deref()) {
        Ok(text) => {
            terminal.verbatim(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, Format::Human, terminal),
    }
}

fn schema_text(kind: Option<&str>, form: Option<&str>) -> Result<String, ServiceError> {
    match (kind, form) {
        (None, _) => Ok(all_schemas()),
        (Some(ANSWER), None) => {
            Ok(ANSWERS.iter().map(|(word, _, description)| format!("{word:<18} {description}\n")).collect())
        }
        (Some(ANSWER), Some(word)) => match answer(word) {
            Some(schema) => Ok(format!("{schema:#}\n")),
            None => Err(unknown_schema("answer", word, &ANSWERS.map(|(word, ..)| word))),
        },
        (Some(word), None) => match schema(word) {
            Some(schema) => Ok(format!("{schema:#}\n")),
            None => {
                let doctypes = doctypes().map(Doctype::as_str);
                let words: Vec<&str> =
                    doctypes.chain(Output::ALL.map(Output::word)).chain([ANSWER]).collect();
                Err(unknown_schema("doctype or output", word, &words))
            }
        },
        (Some(word), Some(form)) => {
            let body = Body::new(format!("unexpected `{form}` after `{word}`"));
            let help = "only `answer` is followed by a word: `quorate schema answer deliberator`";
            Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
        }
    }
}

fn doctypes() -> impl Iterator<Item = Doctype> {
    Doctype::ALL.into_iter().filter(|doctype| doctype::schema(*doctype).is_some())
}

/// All schemas, one line each.
fn all_schemas() -> String {
    let doctypes = doctypes().map(|doctype| {
        let id = doctype.schema_id().or_else(|| doctype.file_name()).unwrap_or_default();
        (doctype.as_str(), id)
    });
    let outputs = Output::ALL.map(|output| (output.word(), output.id()));
    let answers = [(ANSWER, "a member's answer: `quorate schema answer` lists the forms")];
    doctypes.chain(outputs).chain(answers).map(|(word, id)| format!("{word:<14} {id}\n")).collect()
}

fn schema(word: &str) -> Option<Json> {
    let matches = |doctype: &Doctype| {
        [Some(doctype.as_str()), doctype.schema_id(), doctype.file_name()].contains(&Some(word))
    };
    let output = Output::ALL.into_iter().find(|output| [output.word(), output.id()].contains(&word));
    doctypes().find(matches).and_then(doctype::schema).or_else(|| output.map(Output::json))
}

fn unknown_schema(noun: &str, word: &str, known: &[&str]) -> ServiceError {
    let body = Body::new(format!("unknown {noun} `{word}`"));
    let help = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", known.join(", ")),
    };
    ServiceError::not_found(codes::USAGE, body.help(help))
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

/// The codes of outcomes, which `--format json` prints as `code` (assemblies) and `incomplete` (councils), with what each
/// means; the first sentence is its line in the list. `lock_unchecked` and `out_of_reach` are codes of refused texts.
const OUTCOMES: [(&str, &str); 16] = [
    ("all_refused", "Every message of the peers was refused. `quorate show RUN` says why."),
    (
        "budget_exhausted",
        "The calls, tokens, money or time of the run (`[budget]`) were spent before it was decided.\n\
         What was answered is kept: `quorate resume RUN` with `--max-calls`, `--max-tokens` or `--max-money` goes on from it.",
    ),
    (
        "fail_fast",
        "A deliberator failed, and the council has `fail_fast_on_runtime_error: true`.\n\
         `quorate resume RUN` asks those again that did not answer.",
    ),
    (
        "first_round",
        "Fewer deliberators than `min_deliberators_for_verdict` gave a valid answer in round 1.\n\
         `quorate show RUN` says why; `quorate resume RUN` asks those again that did not answer.",
    ),
    (
        "lock_unchecked",
        "A text could not be compared with the locked traits by its meaning, and was refused.\n\
         The `[embedder]` gave no answer: `quorate show RUN` says why. Once it answers, convene again.",
    ),
    ("locked", "The result would violate a locked trait. `quorate show RUN` names the trait."),
    (
        "missing_could_block",
        "The verdict would be SHIP, but blocks by those who gave no answer could change that.\n\
         `quorate resume RUN` asks them again.",
    ),
    (
        "missing_votes",
        "It would pass, but a missing vote could change that. `quorate resume RUN` asks those members again.",
    ),
    ("no_adjudication", "The adjudicator gave no valid answer. `quorate resume RUN` asks it again."),
    ("no_answer", "No member that was asked gave a valid answer. `quorate resume RUN` asks again."),
    (
        "no_output",
        "The root of the hierarchy gave no output, and neither did any node below it. `quorate show RUN` says why.",
    ),
    ("no_voters", "No member votes on proposals of this class."),
    ("no_votes", "No member cast a valid vote. `quorate resume RUN` asks again."),
    ("out_of_reach", "A message was addressed to members whom its author cannot reach, and was refused."),
    (
        "rule_failed",
        "A custom rule of the embedding program could not be applied, and nothing is decided without it.\n\
         `quorate show RUN` says why. Once it is mended, convene again.",
    ),
    (
        "second_round",
        "Fewer deliberators than `min_deliberators_for_verdict` gave a valid answer in round 2.\n\
         `quorate show RUN` says why; `quorate resume RUN` asks those again that did not answer.",
    ),
];

/// The meaning of an outcome's code.
fn outcome_meaning(code: &str) -> Option<&'static str> {
    OUTCOMES.iter().find(|(listed, _)| *listed == code.trim()).map(|(_, meaning)| *meaning)
}

pub(super) fn run_explain(arguments: &ExplainArguments, terminal: &Terminal) -> Exit {
    let Some(code) = &arguments.code else {
        let width = codes::all().iter().map(|page| page.code.len()).max().unwrap_or_default();
        let line = |page: &codes::Page| {
            format!("{:<width$}  {:<8} {}\n", page.code, page.severity.as_str(), page.summary())
        };
        let outcomes = OUTCOMES.iter().map(|(code, meaning)| {
            let summary = meaning.split_inclusive('.').next().unwrap_or(meaning);
            format!("{code:<width$}  outcome  {summary}\n")
        });
        terminal.verbatim(&codes::all().iter().map(line).chain(outcomes).collect::<String>());
        return Exit::DONE;
    };
    match codes::explain(code) {
        Some(page) => {
            terminal.verbatim(page.markdown);
            Exit::DONE
        }
        None if outcome_meaning(code).is_some() => {
            terminal.verbatim(&format!("`{code}` is the code of an outcome, not of a diagnostic.\n\n"));
            terminal.verbatim(&format!("{}\n", outcome_meaning(code).unwrap_or_default()));
            Exit::DONE
        }
        None => {
            let body = Body::new(format!("unknown code `{code}`"));
            let body = match codes::nearest(code) {
                Some(near) => body.help(format!("did you mean `{near}`?")),
                None => body.help("run `quorate explain` to list all codes"),
            };
            exit_with_error(&ServiceError::not_found(codes::USAGE, body), Format::Human, terminal)
        }
    }
}
