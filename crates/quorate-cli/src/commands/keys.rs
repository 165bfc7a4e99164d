//! `quorate keys`: one variant for each subcommand.

use clap::{Args, Subcommand, ValueEnum};
use quorate_diagnostics::{Body, codes};

use crate::arguments::{HumanOrJson, OutputArguments, PathArguments, since};
use crate::exit::print_warnings;
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::keys;
use quorate::service::keys::KeySelector as Wanted;
use quorate::service::keys::{WorkspaceKeys, change};
use quorate::service::runs;
use quorate::service::workspace::{self, PathOverrides, Workspace};

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
    #[arg(value_name = "KEY", value_enum, default_value_t = KeyPurpose::Signing)]
    key: KeyPurpose,
    #[command(flatten)]
    shape: OutputArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyPurpose {
    /// Signs the records of runs
    Signing,
    /// Signs the ledger's checkpoints
    Ledger,
}

#[derive(Debug, Args)]
struct Export {
    /// signing, ledger, or a key of the keyring: its name or a prefix of it, or its text in the keyring
    #[arg(value_name = "KEY", default_value = "signing")]
    key: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = KeyFormat::Text)]
    format: KeyFormat,
    #[command(flatten)]
    places: PathArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeyFormat {
    /// The form of keyrings
    Text,
    /// The form of tools for signed notes, for the ledger's key: a name, an id, and the key
    Note,
    /// PEM, as tools for attestations read it
    Pem,
}

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

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    let (format, places) = match &arguments.verb {
        Verb::Init(shape)
        | Verb::List(shape)
        | Verb::Rotate(Rotate { shape, .. })
        | Verb::Vouch(Vouch { shape, .. })
        | Verb::Revoke(Revoke { shape, .. }) => (shape.format, shape.places.path_overrides()),
        Verb::Export(export) => (HumanOrJson::Human, export.places.path_overrides()),
    };
    let text = match workspace::load(environment, &places, &environment.directory) {
        Ok(workspace) => {
            if !workspace.report.is_empty() {
                terminal.status(&render::diagnostics(&workspace.report, Format::Human, terminal.stderr));
            }
            run_verb(arguments.verb, &workspace, &places, environment, format, terminal).await
        }
        Err(error) => Err(error),
    };
    match text {
        Ok(text) => {
            terminal.data(&text);
            Exit::DONE
        }
        Err(error) => exit_with_error(&error, format.into(), terminal),
    }
}

async fn run_verb(
    verb: Verb,
    workspace: &Workspace,
    places: &PathOverrides,
    environment: &Environment,
    format: HumanOrJson,
    terminal: &Terminal,
) -> Result<String, ServiceError> {
    let keys = WorkspaceKeys::of(environment, workspace);
    match verb {
        Verb::Init(_) => {
            let done = change::init(&keys).await?;
            Ok(render::keys::init(&done, &keys.display_path(&done.keyring), format))
        }
        Verb::List(_) => Ok(render::keys::list(&keys::list(&keys).await?, format, terminal.stdout)),
        Verb::Rotate(rotate) => {
            let replaced = match rotate.key {
                KeyPurpose::Ledger => {
                    let session = runs::open(environment, places).await?;
                    let replaced = change::rotate_ledger(&keys, &session).await;
                    print_warnings(&session, terminal);
                    session.close().await;
                    replaced?
                }
                KeyPurpose::Signing => change::rotate_signing(&keys).await?,
            };
            Ok(render::keys::rotate(&replaced, &keys.display_path(&keys.keyring_path()), format))
        }
        Verb::Vouch(vouch) => {
            let done = change::vouch(&keys, &vouch.key).await?;
            Ok(render::keys::vouch(&done, &keys.display_path(&keys.keyring_path()), format))
        }
        Verb::Export(export) => export_key(&export, &keys, workspace).await,
        Verb::Revoke(revoke) => {
            let now_ms = environment.clock.now_ms();
            let at = revoke.at.as_deref().map(|at| since(at, environment)).transpose()?;
            let at_ms = at.map_or(now_ms, |at| at.unwrap_or(0));
            let reaches_back = change::backdating_warning(&keys, &revoke.key, at_ms, now_ms)?;
            if !reaches_back.is_empty() {
                terminal.status(&render::diagnostics(&reaches_back, Format::Human, terminal.stderr));
            }
            let id = change::revoke(&keys, &revoke.key, at_ms)?;
            Ok(render::keys::revoke(id, at_ms, &keys.display_path(&keys.keyring_path()), format))
        }
    }
}

async fn export_key(
    export: &Export,
    keys: &WorkspaceKeys,
    workspace: &Workspace,
) -> Result<String, ServiceError> {
    let key = match export.key.as_str() {
        "signing" => Wanted::Signing,
        "ledger" => Wanted::Ledger,
        name => Wanted::Prefix(name.to_owned()),
    };
    match export.format {
        KeyFormat::Text => Ok(format!("{}\n", keys::export(keys, &key).await?)),
        KeyFormat::Pem => Ok(keys::export(keys, &key).await?.to_pem()),
        KeyFormat::Note if key == Wanted::Ledger => {
            Ok(format!("{}\n", keys::export_note(keys, &workspace.ledger).await?))
        }
        KeyFormat::Note => {
            let body = Body::new("only the ledger's key signs notes");
            let help = "write `quorate keys export ledger --format note`";
            Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body.help(help)))
        }
    }
}
