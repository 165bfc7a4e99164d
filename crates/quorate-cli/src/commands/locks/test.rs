//! `quorate locks test`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};

use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::artifact::Subject;
use quorate::service::environment::Environment;
use quorate::service::locks::{self, Request, TextSource};

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
pub(super) struct Arguments {
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

pub(super) fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let format = if arguments.format == OutputFormat::Json { Format::Json } else { Format::Human };
    let material = match (arguments.text, arguments.file) {
        (Some(text), _) => TextSource::Text(text),
        (None, Some(file)) if file != Path::new("-") => TextSource::Subject(Subject::File(file)),
        (None, _) => TextSource::Subject(Subject::Stdin),
    };
    let request = Request { path: arguments.path, root: arguments.root, material };
    let result = match locks::test(environment, &request, &*environment.host) {
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
