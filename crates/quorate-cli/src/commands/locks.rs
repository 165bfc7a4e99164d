//! `quorate locks`: one file for each subcommand.

mod list;
mod test;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;

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
    Test(test::Arguments),
    List(list::Arguments),
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.verb {
        Verb::Test(arguments) => test::run(arguments, environment, terminal),
        Verb::List(arguments) => list::run(arguments, environment, terminal),
    }
}
