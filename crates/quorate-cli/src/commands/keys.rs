//! `quorate keys`: one variant for each subcommand.

use clap::{Args, Subcommand};
use quorate::Quorate;
use quorate::keys::{
    KeyFormat, KeyInit, KeyList, KeyPurpose, KeyRevocation, KeyRotation, KeySelector, KeyVouch,
};

use crate::arguments::{OutputArguments, PathArguments, one_of, since};
use crate::exit::{Ended, print_outcome, show};
use crate::terminal::Terminal;

/// Create, list and replace the keys that sign the ledger and the records of runs
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate keys init\n  quorate keys list --format json\n  quorate keys rotate ledger\n  quorate keys export > ada.pub\n\nThe key that signs records is taken from QUORATE_SIGNING_KEY, else from where `[keys] signing` of quorate.toml says, else from keys/signing.ed25519 beside the ledger."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create missing keys, and add the public half of the one that signs records to the keyring
    Init(OutputArguments),
    /// List the ledger's key, the one that signs records, and those of the keyring, each with its state
    List(OutputArguments),
    /// Replace a key by a new one; signatures of the old key stay valid, up to its revocation
    Rotate(Rotate),
    /// Vouch for another key of the keyring with the signing key of this machine, so that it can resume the same runs
    Vouch(Vouch),
    /// Print a public key
    Export(Export),
    /// Revoke a key of the keyring: its later signatures are invalid
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Rotate {
    /// The purpose of the key
    #[arg(value_name = "KEY", value_parser = one_of(PURPOSES), default_value = "signing")]
    key: KeyPurpose,
    #[command(flatten)]
    shape: OutputArguments,
}

/// The purposes of keys, with their help.
const PURPOSES: [(&str, KeyPurpose, &str); 2] = [
    ("signing", KeyPurpose::Signing, "Signs the records of runs"),
    ("ledger", KeyPurpose::Ledger, "Signs the ledger's checkpoints"),
];

#[derive(Debug, Args)]
struct Export {
    /// signing, ledger, or a key of the keyring: its name or a prefix of it, or its text in the keyring
    #[arg(value_name = "KEY", default_value = "signing")]
    key: String,
    /// Output format
    #[arg(long, value_parser = one_of(FORMATS), default_value = "text")]
    format: KeyFormat,
    #[command(flatten)]
    places: PathArguments,
}

/// The formats of `--format`, with their help.
const FORMATS: [(&str, KeyFormat, &str); 3] = [
    ("text", KeyFormat::Text, "The form of keyrings"),
    (
        "note",
        KeyFormat::Note,
        "The form of tools for signed notes, for the ledger's key: a name, an id, and the key",
    ),
    ("pem", KeyFormat::Pem, "PEM, as tools for attestations read it"),
];

#[derive(Debug, Args)]
struct Vouch {
    /// A key of the keyring: its name or a prefix of it, or its text in the keyring
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    shape: OutputArguments,
}

#[derive(Debug, Args)]
struct Revoke {
    /// A key of the keyring: its name or a prefix of it, or its text in the keyring
    #[arg(value_name = "KEY")]
    key: String,
    /// Start of the revocation: a date, a time, or a span back from now in minutes (30m), hours (24h), days (7d) or weeks (2w);
    /// default now. What the key signed since a past time becomes invalid, and `quorate ledger verify` exits with 1 if there is
    /// any
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    #[command(flatten)]
    shape: OutputArguments,
}

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    match arguments.verb {
        Verb::Init(shape) => show(shape.apply(quorate).init_keys().await, KeyInit::doc, terminal),
        Verb::List(shape) => show(shape.apply(quorate).keys().await, KeyList::doc, terminal),
        Verb::Rotate(Rotate { key, shape }) => {
            show(shape.apply(quorate).rotate_key(key).await, KeyRotation::doc, terminal)
        }
        Verb::Vouch(Vouch { key, shape }) => {
            show(shape.apply(quorate).vouch_for_key(&key).await, KeyVouch::doc, terminal)
        }
        Verb::Revoke(Revoke { key, at, shape }) => {
            let at_ms = at.as_deref().map(|at| since(at, quorate.now_ms())).transpose()?;
            let revoked = shape.apply(quorate).revoke_key(&key, at_ms.map(|at_ms| at_ms.unwrap_or(0)));
            show(revoked, KeyRevocation::doc, terminal)
        }
        Verb::Export(Export { key, format, places }) => {
            let key = match key.as_str() {
                "signing" => KeySelector::Signing,
                "ledger" => KeySelector::Ledger,
                _ => KeySelector::Prefix(key),
            };
            let exported = places.apply(quorate).export_key(key, format).await?;
            print_outcome(&exported, &exported.value, terminal)
        }
    }
}
