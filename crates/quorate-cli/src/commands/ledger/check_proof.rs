//! `quorate ledger check-proof`.

use clap::Args;

use crate::arguments::HumanOrJson;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::ledger::check_proof::{self, Request};

/// Check a proof offline: no ledger, no workspace
///
/// Exits with 0 where all holds against a key that you give, 1 where something does not or nobody vouched for the key, 5
/// where the file is no proof.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate ledger check-proof proof.json --key ledger.pub\n  quorate ledger check-proof proof.json --key ledger.pub --signer quorate:ed25519:public:…"
)]
pub(crate) struct Arguments {
    /// The proof, or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The ledger's key, as you have it from its owner: a verifier's line, a public key, or a file of these
    #[arg(long = "key", value_name = "KEY|FILE")]
    keys: Vec<String>,
    /// A key of which one has to have signed each record: a public key, or a file of these
    #[arg(long = "signer", value_name = "KEY|FILE")]
    signers: Vec<String>,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = HumanOrJson::Human)]
    format: HumanOrJson,
}

pub(crate) fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let Arguments { file, keys, signers, format } = arguments;
    let request = Request { file, keys, signers };
    let proven = match check_proof::check(environment, &request) {
        Ok(proven) => proven,
        Err(error) => return exit_with_error(&error, format.into(), terminal),
    };
    terminal.data(&match format {
        HumanOrJson::Human => render::evidence::proven(&proven, terminal.stdout),
        HumanOrJson::Json => render::evidence::proven_json(&proven),
    });
    match proven.trusted_key {
        Some(_) => Exit::DONE,
        None => exit_with_error(&check_proof::unvouched(&request, &proven), Format::Human, terminal),
    }
}
