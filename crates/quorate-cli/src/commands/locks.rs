//! `quorate locks`: `test` compares a text with locked traits, `list` shows those of an operator.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use quorate::service::artifact::Subject;
use quorate::service::environment::Environment;
use quorate::service::resolve;
use quorate::service::resolve::{LocksRequest, TextSource};

use crate::arguments::{HumanOrJson, PathArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render;
use crate::render::Format;
use crate::terminal::Terminal;

/// Test a text against the locked traits of an assembly, and list the locked traits of an operator
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate locks test ASSEMBLY.md --text 'Drop the warmth.'\n  quorate locks test operators/lead --file draft.md --format json\n  quorate locks list alice"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Test(TestArguments),
    List(ListArguments),
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.verb {
        Verb::Test(arguments) => run_test(arguments, environment, terminal),
        Verb::List(arguments) => run_list(arguments, environment, terminal),
    }
}

/// List the locked traits of an operator: a playbook that violates one is neither accepted nor woven
///
/// These are the built-in ones, those of quorate.toml, and those of the operator and its persona, each with its meaning and
/// its number of words and phrases; --format json has the words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate locks list alice\n  quorate locks list alice --format json")]
struct ListArguments {
    /// The operator: its folder's name in operators/, or a ws:// ref
    #[arg(value_name = "OPERATOR")]
    operator: String,
    /// The workspace, or the tenant's folder in it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
    #[command(flatten)]
    places: PathArguments,
}

fn run_list(arguments: ListArguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (places, root) = (arguments.places.path_overrides(), arguments.root.as_deref());
    match resolve::operator_traits(environment, &places, root, &arguments.operator, &*environment.registries)
    {
        Ok(traits) => {
            terminal.data(&render::locks::list(
                &arguments.operator,
                &traits,
                arguments.format,
                terminal.stdout,
            ));
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, arguments.format.into(), terminal),
    }
}

/// Test a text against the locked traits of an assembly, and show each hit with its place and method
///
/// For each hit it shows how far the text had to be normalized for the trait to match: `as-given` not at all, `folded`,
/// `unmarked`, `skeleton` and `set-apart` more and more, `regex` and `regex-folded` by a pattern. Nothing is recorded.
///
/// Exits with 0 with or without hits, with 4 if the assembly or the text is missing, and with 5 if one of them is
/// unusable.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("material").required(true).args(["text", "file"])),
    after_help = "Examples:\n  quorate locks test ASSEMBLY.md --text 'Drop the warmth.'\n  quorate locks test operators/lead --file draft.md\n  git show HEAD:draft.md | quorate locks test ASSEMBLY.md --file - --format json"
)]
struct TestArguments {
    /// The ASSEMBLY.md, or the directory that holds it
    #[arg(value_name = "ASSEMBLY.md")]
    path: PathBuf,
    /// The text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// The file with the text; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The assembly's workspace
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text to read
    Human,
    /// One JSON object
    Json,
}

fn run_test(arguments: TestArguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = if arguments.format == OutputFormat::Json { Format::Json } else { Format::Human };
    let material = match (arguments.text, arguments.file) {
        (Some(text), _) => TextSource::Text(text),
        (None, Some(file)) if file != Path::new("-") => TextSource::Subject(Subject::File(file)),
        (None, _) => TextSource::Subject(Subject::Stdin),
    };
    let request = LocksRequest { path: arguments.path, root: arguments.root, material };
    let result = match resolve::test_locks(environment, &request, &*environment.registries) {
        Ok(result) => result,
        Err(error) => return exit_with_error(&error, format, terminal),
    };
    match arguments.format {
        OutputFormat::Human => {
            terminal.status(&render::diagnostics(&result.report, Format::Human, terminal.stderr));
            terminal.data(&render::locks::human(&result, terminal.stdout));
        }
        OutputFormat::Json => terminal.data(&render::locks::json(&result)),
    }
    Exit::DONE
}
