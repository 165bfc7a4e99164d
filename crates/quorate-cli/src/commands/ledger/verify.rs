//! `quorate ledger verify`.

use clap::Args;

use crate::arguments::{HumanOrJson, OutputArguments};
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::verify::{self, Request};

/// Hold the ledger against its hashes, signatures, checkpoints, witness and log
///
/// Nothing is written. Exits with 0 where all holds, 1 where something is not what it was, 4 where there is no ledger or no
/// such checkpoint, 5 where it cannot be read.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger verify\n  quorate ledger verify --witness ledger-witness.txt --key ledger.pub\n  quorate ledger verify --since checkpoint.txt --format json"
)]
pub(crate) struct Arguments {
    /// Trust this checkpoint, and look only at what stands after it: how many records it is over, `ledger/<n>`, or a file
    /// with its signed note
    #[arg(long, value_name = "CHECKPOINT")]
    since: Option<String>,
    /// A file of checkpoints that was kept elsewhere; else the one of quorate.toml
    #[arg(long, value_name = "FILE")]
    witness: Option<String>,
    /// A key that has to have signed a checkpoint, as you have it from the ledger's owner: a verifier's line, a public key,
    /// or a file of these
    #[arg(long = "key", value_name = "KEY|FILE")]
    keys: Vec<String>,
    /// Exit with 1 where no checkpoint of this ledger is kept on this machine, so that a rollback could not be told, and where
    /// records are neither signed nor under a signed checkpoint, as a crash leaves them until `quorate ledger checkpoint`
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(crate) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let Arguments { since, witness, keys, strict, shape: OutputArguments { format, places } } = arguments;
    let request = Request { since, witness, keys, strict, places: places.path_overrides() };
    let verified = match verify::verify(environment, &request).await {
        Ok(verified) => verified,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    if !verified.warnings.is_empty() {
        terminal.status(&render::diagnostics(&verified.warnings, Format::Human, terminal.stderr));
    }
    terminal.data(&match format {
        HumanOrJson::Human => render::verification::human(&verified, terminal.stdout),
        HumanOrJson::Json => verify::json::json(&verified),
    });
    match verified.report.is_clean() {
        true => Exit::DONE,
        false => exit_with_error(&verify::divergence_error(&verified), Format::Human, terminal),
    }
}
