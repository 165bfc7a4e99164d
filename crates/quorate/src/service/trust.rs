//! Workspace trust (X14): what a file of a workspace names and would be started, or sent somewhere, acts only after a
//! person has said so. `trust/store.rs` keeps what was said, outside of any workspace, by the hash of each file;
//! `trust/inventory.rs` lists what a workspace names; `trust/owner.rs` refuses files that belong to somebody else.

pub mod decide;
pub mod inventory;
mod owner;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::SideEffect;

use super::disk;
use super::environment::Environment;
use super::error::{ExitClass, ServiceError};
use super::workspace::display_path;

pub use owner::{check as owned, is_own};
pub use store::{Store, TrustRecord};

/// The variable that trusts for one process: `1`, or the hash that `quorate trust --show` prints.
pub const VARIABLE: &str = "QUORATE_TRUST";

/// What a file of a workspace names and would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    pub file: PathBuf,
    /// What would be done.
    pub acts: Vec<SideEffect>,
}

/// That everything which is about to be done may be done. Only [`Trust::admit`] gives one, so that nothing is asked by
/// a path that forgot the question.
#[derive(Debug, Clone, Copy)]
pub struct Permit(());

impl Permit {
    /// For what is set up now and admitted before it is asked.
    pub(super) const DEFERRED: Permit = Permit(());
}

/// What a person answers who is shown what would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentAnswer {
    /// It is trusted until one of the files changes.
    Always,
    /// It is trusted by this process.
    Once,
    No,
}

/// Asks a person at a terminal.
pub trait Consent: Send + Sync {
    /// Shows what would be done, one line each, and asks.
    ///
    /// # Errors
    /// When there is no answer to be had.
    fn ask(&self, lines: &[String]) -> std::io::Result<ConsentAnswer>;
}

/// What this process trusts.
#[derive(Clone, Default)]
pub struct Trust {
    /// `--trust`.
    all: bool,
    /// The person who is asked, where there is one.
    consent: Option<Arc<dyn Consent>>,
    /// What was trusted by this process alone.
    trusted_once: Arc<Mutex<BTreeSet<(PathBuf, String)>>>,
}

impl Trust {
    /// Trusts everything for this process: `--trust`, or a program that embeds the library and vouches for its files.
    #[must_use]
    pub fn trusting_all(self) -> Self {
        Trust { all: true, ..self }
    }

    /// Has a person asked where something is not trusted.
    #[must_use]
    pub fn with_consent(self, consent: Arc<dyn Consent>) -> Self {
        Trust { consent: Some(consent), ..self }
    }

    /// The same, and no person is asked.
    #[must_use]
    pub fn without_asking(&self) -> Self {
        Trust { consent: None, ..self.clone() }
    }

    /// Whether everything may be done.
    ///
    /// # Errors
    /// [`codes::WORKSPACE_UNTRUSTED`] when a file that needs trust has none, with what it would do.
    pub fn admit(&self, environment: &Environment, needs: Vec<TrustRequest>) -> Result<Permit, ServiceError> {
        let needs = merge_by_file(needs);
        if needs.is_empty() || self.all {
            return Ok(Permit(()));
        }
        let files = file_hashes(&needs);
        let store = Store::of(environment)?;
        let trusted = store.as_ref().map(Store::read).transpose()?.unwrap_or_default();
        let trusted_once = self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = |(file, hash): &(&PathBuf, &String)| {
            trusted.trusts(file, hash) || trusted_once.contains(&((*file).clone(), (*hash).clone()))
        };
        if files.iter().all(|one| known(&one)) {
            return Ok(Permit(()));
        }
        match environment.variables.get(VARIABLE) {
            None | Some("" | "0") => self.ask_person(environment, &needs, &files, store.as_ref()),
            Some("1") => Ok(Permit(())),
            Some(hash) => admit_by_hash(environment, hash, &needs, &files),
        }
    }

    /// Has a person say it.
    fn ask_person(
        &self,
        environment: &Environment,
        needs: &[TrustRequest],
        files: &BTreeMap<PathBuf, String>,
        store: Option<&Store>,
    ) -> Result<Permit, ServiceError> {
        let Some(consent) = &self.consent else { return Err(untrusted(environment, needs)) };
        let lines: Vec<String> = needs.iter().flat_map(|need| act_lines(environment, need)).collect();
        let answer = consent.ask(&lines);
        if matches!(answer, Ok(ConsentAnswer::Always | ConsentAnswer::Once)) && file_hashes(needs) != *files {
            let body = Body::new("a file changed while it was being asked for");
            let help = "nothing was done; run the command again, and look at what is shown then";
            return Err(ServiceError::configuration(codes::WORKSPACE_UNTRUSTED, body.help(help)));
        }
        match (answer, store) {
            (Ok(ConsentAnswer::Always), Some(store)) => {
                store.add(files, environment.clock.now_ms())?;
                Ok(Permit(()))
            }
            (Ok(ConsentAnswer::Once | ConsentAnswer::Always), _) => {
                let mut trusted_once = self.trusted_once.lock().unwrap_or_else(PoisonError::into_inner);
                trusted_once.extend(files.iter().map(|(file, hash)| (file.clone(), hash.clone())));
                Ok(Permit(()))
            }
            (Ok(ConsentAnswer::No) | Err(_), _) => Err(untrusted(environment, needs)),
        }
    }
}

/// One need for each file, in the order of the files.
fn merge_by_file(needs: Vec<TrustRequest>) -> Vec<TrustRequest> {
    let mut by_file: BTreeMap<PathBuf, Vec<SideEffect>> = BTreeMap::new();
    for need in needs.into_iter().filter(|need| !need.acts.is_empty()) {
        let acts = by_file.entry(canonical(&need.file)).or_default();
        for act in need.acts {
            if !acts.contains(&act) {
                acts.push(act);
            }
        }
    }
    by_file.into_iter().map(|(file, acts)| TrustRequest { file, acts }).collect()
}

/// The files that needs cover, each with the hash of its bytes. One that cannot be read has no hash that anybody could
/// have trusted.
pub(super) fn file_hashes(needs: &[TrustRequest]) -> BTreeMap<PathBuf, String> {
    let acts = needs.iter().flat_map(|need| &need.acts).flat_map(|act| &act.files);
    let files = needs.iter().map(|need| &need.file).chain(acts);
    files.map(|file| (canonical(file), hash(file))).collect()
}

fn hash(file: &Path) -> String {
    disk::read(file).map_or_else(|_| "unreadable".to_owned(), |bytes| sha256_hex(&bytes))
}

fn canonical(file: &Path) -> PathBuf {
    disk::canonical(file).unwrap_or_else(|| file.to_owned())
}

/// Whether `QUORATE_TRUST` names the state that the workspace of these files is in.
fn admit_by_hash(
    environment: &Environment,
    expected: &str,
    needs: &[TrustRequest],
    files: &BTreeMap<PathBuf, String>,
) -> Result<Permit, ServiceError> {
    let start = needs.first().and_then(|need| need.file.parent()).unwrap_or(&environment.directory);
    let inventory = inventory::of_workspace(environment, start)?;
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
    let help = "look at what changed with `quorate trust --show`, which prints the hash to set";
    error.report.refuse(codes::WORKSPACE_UNTRUSTED, Body::new(message).help(help));
    Err(error)
}

/// One line for each thing that a file would do.
fn act_lines(environment: &Environment, need: &TrustRequest) -> Vec<String> {
    let file = display_path(environment, &need.file);
    need.acts.iter().map(|act| format!("{file}: {}", act.what)).collect()
}

/// How many acts of a file a message names.
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

/// A path as a shell takes it.
fn shell_quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@');
    match !path.is_empty() && path.chars().all(plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}
