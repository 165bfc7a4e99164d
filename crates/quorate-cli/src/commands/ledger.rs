//! `quorate ledger`: one file for each verb.

mod accept_rollback;
mod check_export;
mod check_proof;
mod checkpoint;
mod export;
mod gc;
mod hold;
mod import;
mod prove;
mod stats;
mod verify;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::terminal::Terminal;
use quorate::service::environment::Environment;

/// Seal the ledger, verify and prove what it holds, hand it on, and erase what is of age
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger verify --witness checkpoints.txt\n  quorate ledger prove RUN > proof.json\n  quorate ledger export > ledger.jsonl\n  quorate ledger gc --dry-run"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Checkpoint(checkpoint::Arguments),
    Stats(stats::Arguments),
    Verify(verify::Arguments),
    Gc(gc::Arguments),
    Hold(hold::Arguments),
    Release(hold::ReleaseArguments),
    CheckProof(check_proof::Arguments),
    CheckExport(check_export::Arguments),
    AcceptRollback(accept_rollback::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Prove(prove::Arguments),
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.verb {
        Verb::Checkpoint(arguments) => checkpoint::run(arguments, environment, terminal).await,
        Verb::Stats(arguments) => stats::run(arguments, environment, terminal).await,
        Verb::Verify(arguments) => verify::run(arguments, environment, terminal).await,
        Verb::Gc(arguments) => gc::run(arguments, environment, terminal).await,
        Verb::Hold(arguments) => hold::run(arguments, environment, terminal).await,
        Verb::Release(arguments) => hold::release(arguments, environment, terminal).await,
        Verb::CheckProof(arguments) => check_proof::run(arguments, environment, terminal),
        Verb::CheckExport(arguments) => check_export::run(arguments, environment, terminal),
        Verb::AcceptRollback(arguments) => accept_rollback::run(arguments, environment, terminal).await,
        Verb::Export(arguments) => export::run(arguments, environment, terminal).await,
        Verb::Import(arguments) => Box::pin(import::run(arguments, environment, terminal)).await,
        Verb::Prove(arguments) => prove::run(arguments, environment, terminal).await,
    }
}
