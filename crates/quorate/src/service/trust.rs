//! Workspace trust (X14): Quorate runs a command or contacts a server that a workspace file names only after a person
//! has trusted the file. Decisions are stored in the user's state directory, which no workspace can name, by the
//! canonical path and the hash of each file, so trust ends when the file changes or moves.
//!
//! As with git's `safe.directory`, a directory that another user owns or can write to configures nothing.

pub(crate) mod decide;
pub(crate) mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::clock::rfc3339;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::executor::SideEffect;
use serde::{Deserialize, Serialize};

use self::requests::{ConsentAnswer, Inventory, TrustRequest};
use super::disk::{self, Attributes, display_path, shell_quoted};
use super::environment::Environment;
use super::error::{Error, ErrorKind};

/// The variable that trusts for one process: `1`, or the hash that `quorate trust --show` prints.
pub(crate) const VARIABLE: &str = "QUORATE_TRUST";

/// Proof that side effects were admitted. Only [`admit`] returns one, so that no code path can skip the check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permit(());

impl Permit {
    /// For executors that are built now and admitted before their first call.
    pub(super) const DEFERRED: Permit = Permit(());
}

/// Admits side effects.
///
/// # Errors
/// [`codes::WORKSPACE_UNTRUSTED`] if a file is not trusted, with its side effects.
pub(crate) fn admit(environment: &Environment, needs: Vec<TrustRequest>) -> Result<Permit, Error> {
    let needs = merge_by_file(needs);
    if needs.is_empty() || environment.trust.all {
        return Ok(Permit(()));
    }
    let store = TrustStore::of(environment)?;
    let trusted = store.as_ref().map(TrustStore::read).transpose()?.unwrap_or_default();
    let trusted_once = environment.trust.trusted_once();
    let known = |(file, hash): &(&PathBuf, &String)| {
        *hash != UNREADABLE
            && (trusted.trusts(file, hash) || trusted_once.contains(&((*file).clone(), (*hash).clone())))
    };
    let is_open =
        |need: &TrustRequest| !file_hashes(std::slice::from_ref(need)).iter().all(|file| known(&file));
    let needs: Vec<TrustRequest> = needs.into_iter().filter(is_open).collect();
    if needs.is_empty() {
        return Ok(Permit(()));
    }
    let files = file_hashes(&needs);
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
pub(crate) fn admit_silently(environment: &Environment, needs: Vec<TrustRequest>) -> Result<Permit, Error> {
    admit(&Environment { trust: environment.trust.without_asking(), ..environment.clone() }, needs)
}

/// Asks a person.
fn ask_person(
    environment: &Environment,
    needs: &[TrustRequest],
    files: &BTreeMap<PathBuf, String>,
    store: Option<&TrustStore>,
) -> Result<Permit, Error> {
    let Some(consent) = &environment.trust.consent else { return Err(untrusted(environment, needs)) };
    let lines = needs.iter().flat_map(|need| act_lines(environment, need));
    let lines: Vec<String> = lines.map(|line| environment.redactor.redact(&line).0).collect();
    let answer = consent.ask(&lines);
    if matches!(answer, Ok(ConsentAnswer::Always | ConsentAnswer::Once)) && file_hashes(needs) != *files {
        let body = Body::new("a file changed while its trust was being decided");
        let help = "nothing was done; run the command again and review its plan";
        return Err(Error::new(ErrorKind::Untrusted, codes::WORKSPACE_UNTRUSTED, body.help(help)));
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
) -> Result<Permit, Error> {
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

fn untrusted(environment: &Environment, needs: &[TrustRequest]) -> Error {
    let mut report = Report::new();
    for need in needs {
        let file = display_path(environment, &need.file);
        let more = need.acts.len().saturating_sub(MAX_LISTED_ACTS);
        let more = (more > 0).then(|| format!("{more} more"));
        let acts = need.acts.iter().take(MAX_LISTED_ACTS).map(|act| act.what.as_str());
        let acts: Vec<&str> = acts.chain(more.as_deref()).collect();
        let body = Body::new(format!("{file} is not trusted; it would {}", acts.join("; ")));
        let help = format!(
            "read it, then run `quorate trust {}`; `--trust` does it for one command, {VARIABLE} in CI",
            shell_quoted(&file)
        );
        report.refuse(codes::WORKSPACE_UNTRUSTED, body.help(help));
    }
    Error::from_report(ErrorKind::Untrusted, report)
}

impl Inventory {
    /// One hash over all files by their paths below the root; the same in every checkout.
    pub fn hash(&self) -> String {
        let root = disk::canonical(&self.root).unwrap_or_else(|| self.root.clone());
        let lines = self.files.iter().map(|(file, hash)| {
            let below = file.strip_prefix(&root).unwrap_or(file);
            format!("{hash}  {}\n", below.to_string_lossy())
        });
        sha256_hex(lines.collect::<String>().as_bytes())
    }

    fn new(root: PathBuf, needs: Vec<TrustRequest>) -> Self {
        let needs = merge_by_file(needs);
        let files = file_hashes(&needs);
        Inventory { root, requests: needs, files }
    }
}

/// One request for each file, in the order of the files.
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

/// The files of these requests, each with the hash of its bytes. An unreadable file gets no hash that a user could have
/// trusted.
fn file_hashes(needs: &[TrustRequest]) -> BTreeMap<PathBuf, String> {
    let acts = needs.iter().flat_map(|need| &need.acts).flat_map(|act| &act.files);
    let files = needs.iter().map(|need| &need.file).chain(acts);
    files.map(|file| (canonical(file), hash(file))).collect()
}

fn hash(file: &Path) -> String {
    disk::read(file).map_or_else(|_| UNREADABLE.to_owned(), |bytes| sha256_hex(&bytes))
}

pub(crate) fn canonical(file: &Path) -> PathBuf {
    disk::canonical(file).unwrap_or_else(|| file.to_owned())
}

/// In place of the hash of a file that cannot be read; it is never trusted.
const UNREADABLE: &str = "unreadable";

const FILE_NAME: &str = "trust.json";
const VERSION: u32 = 1;

/// The recorded trust of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    v: u32,
    /// By canonical path.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, TrustedFile>,
    /// Directories of other owners that a person has allowed.
    #[serde(default)]
    pub safe_directories: BTreeSet<PathBuf>,
}

/// A trusted file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustedFile {
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
    pub at: String,
}

impl Default for TrustRecord {
    fn default() -> Self {
        TrustRecord { v: VERSION, files: BTreeMap::new(), safe_directories: BTreeSet::new() }
    }
}

impl TrustRecord {
    /// Whether a file with these bytes is trusted.
    pub(crate) fn trusts(&self, file: &Path, sha256: &str) -> bool {
        self.files.get(file).is_some_and(|known| known.sha256 == sha256)
    }

    /// Whether a person has allowed this directory, or one above it.
    pub(crate) fn is_safe(&self, directory: &Path) -> bool {
        directory.ancestors().any(|above| self.safe_directories.contains(above))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TrustStore {
    path: PathBuf,
}

impl TrustStore {
    /// The store of this user; `None` if the environment has no state directory.
    ///
    /// # Errors
    /// If it belongs to another user, or every user can write to it.
    pub(crate) fn of(environment: &Environment) -> Result<Option<TrustStore>, Error> {
        let Some(directory) = &environment.state_dir else { return Ok(None) };
        let path = directory.join(FILE_NAME);
        // A user who can write to one of them could record trust in another user's name.
        for there in [&path, directory.as_path()] {
            let Some(attributes) = Attributes::of(there) else { continue };
            if !environment.trusts_owner(attributes.owner) {
                return Err(unusable(there, &format!("it belongs to user {}", attributes.owner)));
            }
            if attributes.is_world_writable() {
                return Err(unusable(there, "every user can write to it"));
            }
        }
        Ok(Some(TrustStore { path }))
    }

    /// Its content; empty if it does not exist yet.
    ///
    /// # Errors
    /// If it cannot be read or is malformed: then nothing is trusted.
    pub(crate) fn read(&self) -> Result<TrustRecord, Error> {
        let bytes = match disk::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(TrustRecord::default()),
            Err(error) => return Err(unusable(&self.path, &error.to_string())),
        };
        match serde_json::from_slice::<TrustRecord>(&bytes) {
            Ok(trusted) if trusted.v == VERSION => Ok(trusted),
            Ok(other) => Err(unusable(&self.path, &format!("it has version {}, not {VERSION}", other.v))),
            Err(error) => Err(unusable(&self.path, &error.to_string())),
        }
    }

    /// Adds files by their hashes.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn add(&self, files: &BTreeMap<PathBuf, String>, now_ms: i64) -> Result<(), Error> {
        if let Some((file, _)) = files.iter().find(|(_, hash)| *hash == UNREADABLE) {
            let body = Body::new(format!("cannot read {}, so it cannot be trusted", file.display()));
            let help = "make it a readable file of at most 64 MiB";
            return Err(Error::configuration(codes::FILE_UNREADABLE, body.help(help)));
        }
        self.change(|trusted| {
            let at = rfc3339(now_ms);
            let new = files
                .iter()
                .map(|(file, hash)| (file.clone(), TrustedFile { sha256: hash.clone(), at: at.clone() }));
            trusted.files.extend(new);
        })
    }

    /// Changes the record under a lock, so that processes take turns.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(crate) fn change(&self, change: impl FnOnce(&mut TrustRecord)) -> Result<(), Error> {
        let to_error = |error: std::io::Error| unusable(&self.path, &error.to_string());
        let _lock = disk::lock_with_sidecar(&self.path).map_err(to_error)?;
        let mut trusted = self.read()?;
        change(&mut trusted);
        let text =
            serde_json::to_vec_pretty(&trusted).map_err(|error| unusable(&self.path, &error.to_string()))?;
        disk::write_private(&self.path, &text).map_err(to_error)
    }
}

fn unusable(path: &Path, why: &str) -> Error {
    let body = Body::new(format!("cannot use the record of trusted files {}: {why}", path.display()));
    let help = "move it away and run `quorate trust` again in each workspace that you trust";
    Error::configuration(codes::TRUST_UNREADABLE, body.help(help))
}

/// Refuses a file or directory that belongs to another user, and one in a directory that every user can write to,
/// unless a person has named the directory with `quorate trust --safe-directory`. A missing one has no owner.
///
/// # Errors
/// [`codes::OWNERSHIP_DUBIOUS`].
pub(crate) fn check_owner(environment: &Environment, path: &Path) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(path);
    let Some(why) = dubious(environment, path).or_else(|| dubious_directory(environment, directory)) else {
        return Ok(());
    };
    if let Some(store) = TrustStore::of(environment)?
        && store.read()?.is_safe(&canonical(directory))
    {
        return Ok(());
    }
    let body =
        Body::new(format!("detected dubious ownership in workspace at `{}`: {why}", directory.display()));
    let help = format!(
        "to add an exception for this directory, call: quorate trust --safe-directory {}",
        shell_quoted(&directory.display().to_string())
    );
    Err(Error::configuration(codes::OWNERSHIP_DUBIOUS, body.help(help)))
}

/// Whether a directory is this user's alone: no other user owns it or can add a file to it.
pub(crate) fn is_own(environment: &Environment, directory: &Path) -> bool {
    let is_own = |there: Attributes| environment.trusts_owner(there.owner) && !there.is_world_writable();
    cfg!(not(unix)) || Attributes::of(directory).is_some_and(is_own)
}

fn dubious(environment: &Environment, path: &Path) -> Option<String> {
    let there = Attributes::of(path)?;
    if !environment.trusts_owner(there.owner) {
        return Some(format!("`{}` belongs to user {}", path.display(), there.owner));
    }
    let writable = there.is_world_writable() && !there.is_dir;
    writable.then(|| format!("every user can write to `{}`", path.display()))
}

/// In a sticky directory, such as `/tmp`, other users cannot replace our files, and files that they add belong to them.
fn dubious_directory(environment: &Environment, directory: &Path) -> Option<String> {
    let there = Attributes::of(directory)?;
    let sticky = there.mode & 0o1000 != 0;
    if there.is_world_writable() && !sticky {
        return Some(format!("every user can write to `{}`", directory.display()));
    }
    // A sticky directory is the system's; the owner of any other directory can replace its files.
    (!environment.trusts_owner(there.owner) && there.owner != 0)
        .then(|| format!("`{}` belongs to user {}", directory.display(), there.owner))
}
