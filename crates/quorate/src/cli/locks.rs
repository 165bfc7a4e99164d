//! `quorate locks`: one file for each verb.

mod test;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::terminal::Terminal;
use crate::service::environment::Environment;

/// See what the locked traits of an assembly forbid
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate locks test ASSEMBLY.md --text 'Drop the warmth.'\n  quorate locks test operators/lead --file draft.md --format json"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Test(test::Arguments),
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.verb {
        Verb::Test(arguments) => test::run(arguments, environment, terminal),
    }
}
