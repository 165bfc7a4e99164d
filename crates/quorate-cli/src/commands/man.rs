//! `quorate man`.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory as _};
use quorate_diagnostics::{Body, codes};

use crate::exit::{Exit, exit_with_error};
use crate::render::Format;
use crate::terminal::Terminal;
use quorate::service::disk;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::guard;
use quorate::service::paths::absolute;

/// Print the man page, or write one for each command into a directory
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  quorate man | man -l -\n  quorate man --out target/man")]
pub(super) struct Arguments {
    /// Write quorate.1, quorate-review.1, quorate-ledger-verify.1, … here; existing files are not changed
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let command = super::Arguments::command();
    let Some(dir) = &arguments.out else {
        terminal.verbatim(&page(command));
        return Exit::DONE;
    };
    let mut pages = Vec::new();
    add_pages(&command, "quorate".to_owned(), &mut pages);
    if let Err(error) =
        guard::ensure_folder_free(&absolute(&environment.directory, dir), &dir.display().to_string())
    {
        return exit_with_error(&error, Format::Human, terminal);
    }
    for (name, text) in pages {
        if let Err(error) = disk::write_new(&dir.join(&name), &text) {
            let body = Body::new(format!("cannot write {}: {error}", dir.join(name).display()));
            return exit_with_error(
                &ServiceError::configuration(codes::USAGE, body),
                Format::Human,
                terminal,
            );
        }
    }
    Exit::DONE
}

/// The page of a command, and those of its subcommands.
fn add_pages(command: &Command, name: String, pages: &mut Vec<(String, String)>) {
    for sub in command.get_subcommands() {
        add_pages(sub, format!("{name}-{}", sub.get_name()), pages);
    }
    pages.push((format!("{name}.1"), page(command.clone().name(name))));
}

fn page(command: Command) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = clap_mangen::Man::new(command).render(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
