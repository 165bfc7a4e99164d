//! `quorate fmt`.

use std::path::{Path, PathBuf};

use clap::Args;
use quorate_manifest::loader::Refs;
use quorate_manifest::tree::MAX_BYTES;

use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::check::Request;
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::fmt::{self, Mode};

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
pub(super) struct Arguments {
    /// Files, directories or globs; `-` reads standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only list the files that are not formatted
    #[arg(long)]
    check: bool,
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    if arguments.paths.iter().any(|path| path == Path::new("-")) {
        return stdin(&arguments, terminal);
    }
    let request = Request { paths: arguments.paths, root: None, refs: Refs::ShapeOnly };
    let mode = if arguments.check { Mode::Check } else { Mode::Write };
    let outcome = match fmt::fmt(environment, &request, mode) {
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

fn stdin(arguments: &Arguments, terminal: &Terminal) -> Exit {
    let bytes = match disk::read_stdin(MAX_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => {
            terminal.status(&format!("cannot read standard input: {error}"));
            return Exit::UNUSABLE;
        }
    };
    match fmt::fmt_text(bytes.clone()) {
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
