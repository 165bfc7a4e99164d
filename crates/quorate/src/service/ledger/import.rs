//! Taking in runs of another ledger from its export.

use std::io::BufReader;
use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_ledger::import::{Imported, Refused, Terms};

use super::{checkpoint, trust};
use crate::service::desk::Desk;
use crate::service::disk;
use crate::service::stop::{Stop, chain};
use crate::service::workspace::absolute;

/// What is imported.
#[derive(Debug, Clone)]
pub struct Request {
    /// The export's file.
    pub file: String,
    /// `--key`.
    pub keys: Vec<String>,
    /// `--signer`.
    pub signers: Vec<String>,
    /// Whether nothing is to be written.
    pub dry_run: bool,
}

/// Verifies an export and merges what this ledger does not have, then seals.
///
/// # Errors
/// When the file is no export, does not hold, is signed by nobody that is trusted, or contradicts this ledger; then nothing
/// is merged.
pub async fn import(desk: &Desk, request: &Request) -> Result<Imported, Stop> {
    let environment = &desk.environment;
    let mut trusted = trust::own(desk)?;
    trusted.extend(trust::trusted(environment, &request.keys)?);
    let signers = trust::signers(environment, &request.signers)?;
    let path = absolute(&environment.directory, Path::new(&request.file));
    if !path.is_file() {
        let body = Body::new(format!("{} is not there, or is no file", request.file));
        return Err(Stop::not_found(
            codes::EXPORT_INVALID,
            body.help("`quorate ledger export --out FILE` writes one"),
        ));
    }
    let terms = Terms {
        trusted: &trusted,
        signers: &signers,
        at_ms: environment.clock.now_ms(),
        dry_run: request.dry_run,
    };
    let open = || disk::open(&path).map(BufReader::new);
    let imported = desk.store.import(open, &terms).await.map_err(|error| refused(request, error))?;
    if !request.dry_run && !imported.runs.is_empty() {
        desk.absorb(checkpoint::checkpoint(desk).await?.report);
    }
    Ok(imported)
}

fn refused(request: &Request, error: Refused) -> Stop {
    let file = &request.file;
    match error {
        Refused::Flaw(flaw) => Stop::configuration(
            codes::EXPORT_INVALID,
            Body::new(format!("nothing of {file} is merged: {}", chain(&flaw)))
                .help("have it exported again; it has to stay as it is, byte for byte"),
        ),
        Refused::Unvouched { keys } => {
            let why = match keys.is_empty() {
                true => "nobody signed it".to_owned(),
                false => format!("it is signed by {}, and nobody vouched for that key", keys.join(" and ")),
            };
            let help = "get the ledger's key from its owner over another way (`quorate keys export ledger`) and give it with `--key`";
            Stop::configuration(
                codes::KEY_UNVOUCHED,
                Body::new(format!("nothing of {file} is merged: {why}")).help(help),
            )
        }
        Refused::Contradicts { .. } => Stop::configuration(
            codes::IMPORT_CONFLICT,
            Body::new(format!("nothing of {file} is merged: {error}")).help(
                "import it into a ledger of its own with `--ledger`, and compare the run with `quorate show`",
            ),
        ),
        Refused::Ledger(error) => error.into(),
    }
}
