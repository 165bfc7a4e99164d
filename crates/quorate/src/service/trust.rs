//! Workspace trust (X14): Quorate runs a command or contacts a server that a workspace file names only after a person has
//! trusted the file. `trust/store.rs` stores decisions outside of any workspace, by the hash of each file;
//! `trust/inventory.rs` lists side effects; `trust/owner.rs` refuses files that belong to another user.

pub mod consent;
pub mod decide;
pub mod inventory;
mod owner;
pub mod requests;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;

use quorate_diagnostics::{Body, Report, codes};

use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::paths::display_path;

use super::paths::shell_quoted;
pub use consent::{Consent, ConsentAnswer, Trust};
pub use owner::{check as owned, is_own};
pub use requests::{Inventory, TrustRequest};
use requests::{file_hashes, merge_by_file};
pub use store::{Store, TrustRecord};

/// The variable that trusts for one process: `1`, or the hash that `quorate trust --show` prints.
pub const VARIABLE: &str = "QUORATE_TRUST";

/// Proof that side effects were admitted. Only [`admit`] returns one, so that no code path can skip the check.
#[derive(Debug, Clone, Copy)]
pub struct Permit(());

impl Permit {
    /// For executors that are built now and admitted before their first call.
    pub(super) const DEFERRED: Permit = Permit(());
}

/// Admits side effects.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`] if a file is not trusted, with its side effects.
pub fn admit(environment: &Environment, needs: Vec<TrustRequest>) -> Result<Permit, ServiceError> {
    let needs = merge_by_file(needs);
    if needs.is_empty() || environment.trust.all {
        return Ok(Permit(()));
    }
    let files = file_hashes(&needs);
    let store = Store::of(environment)?;
    let trusted = store.as_ref().map(Store::read).transpose()?.unwrap_or_default();
    let trusted_once = environment.trust.trusted_once();
    let known = |(file, hash): &(&PathBuf, &String)| {
        trusted.trusts(file, hash) || trusted_once.contains(&((*file).clone(), (*hash).clone()))
    };
    if files.iter().all(|file| known(&file)) {
        return Ok(Permit(()));
    }
    match environment.variables.get(VARIABLE) {
        None | Some("" | "0") => ask_person(environment, &needs, &files, store.as_ref()),
        Some("1") => Ok(Permit(())),
        Some(hash) => admit_by_hash(environment, hash, &needs, &files),
    }
}

/// As [`admit`], without prompting a person.
///
/// # Errors
/// As [`admit`].
pub fn admit_silently(environment: &Environment, needs: Vec<TrustRequest>) -> Result<Permit, ServiceError> {
    admit(&Environment { trust: environment.trust.without_asking(), ..environment.clone() }, needs)
}

/// Asks a person.
fn ask_person(
    environment: &Environment,
    needs: &[TrustRequest],
    files: &BTreeMap<PathBuf, String>,
    store: Option<&Store>,
) -> Result<Permit, ServiceError> {
    let Some(consent) = &environment.trust.consent else { return Err(untrusted(environment, needs)) };
    let lines: Vec<String> = needs.iter().flat_map(|need| act_lines(environment, need)).collect();
    let answer = consent.ask(&lines);
    if matches!(answer, Ok(ConsentAnswer::Always | ConsentAnswer::Once)) && file_hashes(needs) != *files {
        let body = Body::new("a file changed while its trust was being decided");
        let help = "nothing was done; run the command again and review its plan";
        return Err(ServiceError::configuration(codes::WORKSPACE_UNTRUSTED, body.help(help)));
    }
    match (answer, store) {
        (Ok(ConsentAnswer::Always), Some(store)) => {
            store.add(files, environment.clock.now_ms())?;
            Ok(Permit(()))
        }
        (Ok(ConsentAnswer::Once | ConsentAnswer::Always), _) => {
            environment.trust.trust_once(files);
            Ok(Permit(()))
        }
        (Ok(ConsentAnswer::No) | Err(_), _) => Err(untrusted(environment, needs)),
    }
}

/// Whether `QUORATE_TRUST` is the hash of the workspace that these files are in.
fn admit_by_hash(
    environment: &Environment,
    expected: &str,
    needs: &[TrustRequest],
    files: &BTreeMap<PathBuf, String>,
) -> Result<Permit, ServiceError> {
    let start = needs.first().and_then(|need| need.file.parent()).unwrap_or(&environment.directory);
    let Some(inventory) = environment.inventory else {
        return Err(untrusted(environment, needs));
    };
    let inventory = inventory(environment, start)?;
    let covers = files.iter().all(|(file, hash)| inventory.files.get(file) == Some(hash));
    if covers && inventory.hash() == expected {
        return Ok(Permit(()));
    }
    let mut error = untrusted(environment, needs);
    let message = match covers {
        true => format!("{VARIABLE} is not the hash of this workspace, which is {}", inventory.hash()),
        false => {
            format!("{VARIABLE} cannot cover a file outside of the workspace {}", inventory.root.display())
        }
    };
    let help = "run `quorate trust --show` to see what changed and the hash to set";
    error.report.refuse(codes::WORKSPACE_UNTRUSTED, Body::new(message).help(help));
    Err(error)
}

/// One line for each side effect of a file.
fn act_lines(environment: &Environment, need: &TrustRequest) -> Vec<String> {
    let file = display_path(environment, &need.file);
    need.acts.iter().map(|act| format!("{file}: {}", act.what)).collect()
}

/// The maximum number of side effects of a file that a message lists.
const MAX_LISTED_ACTS: usize = 6;

fn untrusted(environment: &Environment, needs: &[TrustRequest]) -> ServiceError {
    let mut report = Report::new();
    for need in needs {
        let file = display_path(environment, &need.file);
        let mut acts: Vec<&str> =
            need.acts.iter().take(MAX_LISTED_ACTS).map(|act| act.what.as_str()).collect();
        let more = format!("{} more", need.acts.len().saturating_sub(MAX_LISTED_ACTS));
        if need.acts.len() > MAX_LISTED_ACTS {
            acts.push(&more);
        }
        let body = Body::new(format!("{file} is not trusted; it would {}", acts.join("; ")));
        let help = format!(
            "read it, then run `quorate trust {}`; `--trust` does it for one command, {VARIABLE} in CI",
            shell_quoted(&file)
        );
        report.refuse(codes::WORKSPACE_UNTRUSTED, body.help(help));
    }
    ServiceError::from_report(ExitClass::Configuration, report)
}
