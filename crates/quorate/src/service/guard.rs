//! Protects a workspace's own files from being overwritten: the ledger, its keys, its witness, its log, the keyring, the
//! configuration, and Git's files. Every file that a configuration, a manifest or a person names passes this guard. It
//! follows links and compares existing files by identity, so that it also finds hard links.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::ports::provisioning::is_git_dir;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::{self, Configuration, KeySource};
use quorate_manifest::doctype::COUNCIL_FILES;

use super::artifact::Artifact;
use super::disk::{self, FileIdentity};
use super::environment::Environment;
use super::error::ServiceError;
use super::paths::{absolute, display_path};
use super::witness::Witness;

/// The keyring's default file.
const KEYRING: &str = "keyring.toml";

/// The suffixes of SQLite's auxiliary files.
pub const SQLITE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The names that are reserved within `.quorate/`.
const OWN_FOLDERS: [&str; 4] = ["keys", "aside", "live", "provisioned"];
const OWN_FILES: [&str; 3] = ["ledger.db", "log_index.db", ".gitignore"];

pub fn keyring_of(root: &Path, settings: &config::Keys) -> PathBuf {
    root.join(settings.keyring.as_ref().map_or(KEYRING, |(path, _)| path))
}

/// The role of a file in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The ledger and SQLite's auxiliary files.
    Ledger,
    /// The log of verdicts.
    Log,
    /// The file that checkpoints are appended to.
    Witness,
    /// `keyring.toml`.
    Keyring,
    /// `quorate.toml` or the council's file.
    Configuration,
    Keys,
    /// Data outside of workspaces: trust decisions, the last checkpoints.
    State,
}

impl Role {
    fn occupies(self) -> &'static str {
        match self {
            Role::Ledger => "the ledger is there",
            Role::Log => "the log is there",
            Role::Witness => "the witness is there",
            Role::Keyring => "the keyring is there",
            Role::Configuration => "the configuration is there",
            Role::Keys => "the ledger's keys are there",
            Role::State => "trust decisions and the last checkpoints are kept there",
        }
    }
}

/// The protected files and folders of a workspace.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    files: Vec<(Role, PathBuf)>,
    folders: Vec<(Role, PathBuf)>,
}

/// A workspace's files, by role.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    /// `quorate.toml`.
    pub host: &'a Configuration,
    /// The files of `quorate.toml` and the council that were read.
    pub configured: [Option<&'a Path>; 2],
    pub root: &'a Path,
    pub ledger: &'a StoreAddress,
    pub log: &'a Path,
    pub witness: Option<&'a Witness>,
}

impl Guard {
    /// The guard of a workspace.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`] if the configuration puts two files in one place, or one in Git's folder.
    pub fn of(environment: &Environment, places: Places<'_>) -> Result<Guard, ServiceError> {
        let Places { host, configured, root, ledger, log, witness } = places;
        let keyring = keyring_of(root, &host.keys);
        let witness = witness.and_then(Witness::file);
        let mut guard = Guard::default();
        guard.add(Role::Log, log);
        guard.add(Role::Keyring, &keyring);
        witness.into_iter().for_each(|file| guard.add(Role::Witness, file));
        configured.into_iter().flatten().for_each(|file| guard.add(Role::Configuration, file));
        if let Some(file) = ledger.file() {
            guard.add(Role::Ledger, file);
            SQLITE_SUFFIXES.iter().for_each(|end| guard.add(Role::Ledger, &with_suffix(file, end)));
        }
        if let Some((KeySource::File(path), _)) = &host.keys.signing {
            guard.add(Role::Keys, &root.join(path));
        }
        let directory = quorate_ledger::keys::KeyDirectory::new(ledger.dir());
        let secrets = directory.key_path(KeyPurpose::Ledger);
        guard.folders.extend(secrets.parent().map(|folder| (Role::Keys, folder.to_owned())));
        guard.folders.extend(environment.state_dir.iter().map(|dir| (Role::State, dir.clone())));
        let named = [
            (Role::Log, Some(log), "the log (`logging.log_path`)"),
            (Role::Witness, witness, "the witness (`[ledger] witness`)"),
            (Role::Keyring, Some(&*keyring), "the keyring (`[keys] keyring`)"),
                // If two files share a place, the ledger's place is rarely the mistake, so the error names the other.
            (Role::Ledger, ledger.file(), "the ledger"),
        ];
        let resolved = guard.resolve();
        for (role, path, what) in named {
            let Some(path) = path else { continue };
            if let Some(why) = resolved.occupant(path, Some(role)) {
                let shown = display_path(environment, path);
                let body = Body::new(format!("{what} cannot be {shown}: {why}"));
                let help = "choose another file in the configuration";
                return Err(ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help)));
            }
        }
        Ok(guard)
    }

    /// The guard of a log outside of any workspace.
    pub fn of_log(log: &Path) -> Guard {
        Guard { files: vec![(Role::Log, log.to_owned())], folders: Vec::new() }
    }

    fn add(&mut self, role: Role, file: &Path) {
        self.files.push((role, file.to_owned()));
    }

    /// Refuses a path if writing to it would overwrite or change a protected file.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`].
    pub fn ensure_free(&self, environment: &Environment, path: &Path) -> Result<(), ServiceError> {
        let path = absolute(&environment.directory, path);
        match self.occupant(&path, None).or_else(|| kept_content(&path)) {
            Some(why) => Err(unwritable(&display_path(environment, &path), why)),
            None => Ok(()),
        }
    }

    /// The absolute path of a file that a person has named for an output. Refuses protected paths and anything but a
    /// regular file.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`].
    pub fn ensure_output(&self, environment: &Environment, path: &Path) -> Result<PathBuf, ServiceError> {
        let path = absolute(&environment.directory, path);
        self.ensure_free(environment, &path)?;
        match path.metadata() {
            Ok(found) if !found.is_file() => {
                Err(unwritable(&display_path(environment, &path), "it is not a regular file"))
            }
            _ => Ok(path),
        }
    }

    /// Refuses to review a file that recording the review would change.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`] if it is the ledger, the log or the witness.
    pub fn ensure_unrecorded(&self, artifact: &Artifact) -> Result<(), ServiceError> {
        let Some(place) = artifact.path.as_deref().map(disk::canonical_or_new) else { return Ok(()) };
        let is_recorded_to = |role| matches!(role, Role::Ledger | Role::Log | Role::Witness);
        let id = FileIdentity::of(&place);
        let found = self
            .files
            .iter()
            .find(|(role, file)| is_recorded_to(*role) && Resolved::of(*role, file).is(&place, id.as_ref()));
        let Some((role, _)) = found else { return Ok(()) };
        let why = format!("{}, and recording the review would change it", role.occupies());
        let body = Body::new(format!("cannot judge {}: {why}", artifact.display_name));
        let help = "judge a copy, or configure another file for it";
        Err(ServiceError::configuration(codes::FILE_UNWRITABLE, body.help(help)))
    }

    /// Why an absolute path is protected from writes by `role`, or by a file without a role.
    pub fn occupant(&self, path: &Path, role: Option<Role>) -> Option<&'static str> {
        self.resolve().occupant(path, role)
    }

    fn resolve(&self) -> ResolvedGuard {
        let all =
            |named: &[(Role, PathBuf)]| named.iter().map(|(role, path)| Resolved::of(*role, path)).collect();
        ResolvedGuard { files: all(&self.files), folders: all(&self.folders) }
    }
}

/// A guard with resolved paths, for several checks at one time.
struct ResolvedGuard {
    files: Vec<Resolved>,
    folders: Vec<Resolved>,
}

/// A protected file or folder, with its location on disk.
struct Resolved {
    role: Role,
    /// Its path without links.
    place: PathBuf,
    id: Option<FileIdentity>,
}

impl Resolved {
    fn of(role: Role, path: &Path) -> Resolved {
        Resolved { role, place: disk::canonical_or_new(path), id: FileIdentity::of(path) }
    }

    /// Whether a path without links, whose file has the identity `id`, is this one, or would be if it were created.
    fn is(&self, place: &Path, id: Option<&FileIdentity>) -> bool {
        self.place == place || (self.id.is_some() && self.id.as_ref() == id)
    }
}

impl ResolvedGuard {
    fn occupant(&self, path: &Path, role: Option<Role>) -> Option<&'static str> {
        let place = disk::canonical_or_new(path);
        if let Some(why) = place_of_others(path, &place) {
            return Some(why);
        }
        let above: Vec<_> = place.ancestors().map(|dir| (dir, FileIdentity::of(dir))).collect();
        let (_, id) = above.first()?;
        let mut others = self.files.iter().filter(|file| Some(file.role) != role);
        if let Some(found) = others.find(|file| file.is(&place, id.as_ref())) {
            return Some(found.role.occupies());
        }
        let is_linked = disk::has_other_names(&place);
        let in_folder = |folder: &Resolved| {
            let files = || disk::walk(&folder.place).unwrap_or_default();
            above.iter().any(|(dir, id)| folder.is(dir, id.as_ref()))
                || (is_linked && files().iter().any(|file| disk::is_same_file(&file.path, &place)))
        };
        if let Some(found) = self.folders.iter().find(|folder| in_folder(folder)) {
            return Some(found.role.occupies());
        }
        let name = place.file_name()?.to_str()?;
        if role != Some(Role::Configuration) && (name == "quorate.toml" || COUNCIL_FILES.contains(&name)) {
            return Some("a configuration belongs there");
        }
        if role != Some(Role::Keyring) && name == KEYRING {
            return Some("a keyring belongs there");
        }
        let own = |name: &str| {
            let of_sqlite = |own: &&str| {
                name.strip_prefix(*own).is_some_and(|end| end.is_empty() || SQLITE_SUFFIXES.contains(&end))
            };
            OWN_FILES.iter().any(of_sqlite) && !(role == Some(Role::Ledger) && name == OWN_FILES[0])
        };
        match below_quorate(&place)?.as_slice() {
            [file] if own(file) => Some("a ledger is there"),
            [folder, ..] if OWN_FOLDERS.contains(folder) => Some("a ledger is there"),
            _ => None,
        }
    }
}

/// Refuses a target folder that is Git's or holds a ledger.
///
/// # Errors
/// [`codes::FILE_UNWRITABLE`].
pub fn ensure_folder_free(folder: &Path, shown: &str) -> Result<(), ServiceError> {
    let place = disk::canonical_or_new(folder);
    match place_of_others(folder, &place).or_else(|| below_quorate(&place).map(|_| "a ledger is there")) {
        Some(why) => Err(unwritable(shown, why)),
        None => Ok(()),
    }
}

fn unwritable(shown: &str, why: &str) -> ServiceError {
    let body = Body::new(format!("cannot write to {shown}: {why}"));
    ServiceError::configuration(codes::FILE_UNWRITABLE, body.help("choose another name"))
}

/// Why a path is protected in every workspace.
fn place_of_others(path: &Path, place: &Path) -> Option<&'static str> {
    [path, place].into_iter().any(is_in_git_dir).then_some("that is Git's own folder")
}

/// Why an existing file is protected by its content.
fn kept_content(path: &Path) -> Option<&'static str> {
    /// Longer than the text of a key.
    const BEGINNING: u64 = 256;
    let bytes = path.is_file().then(|| disk::read_up_to(path, BEGINNING).ok()).flatten()?;
    let is_key = |text: &str| SecretKey::from_text(text.trim()).is_ok();
    match std::str::from_utf8(&bytes) {
        _ if bytes.starts_with(b"SQLite format 3\0") => Some("a database is there"),
        Ok(text) if is_key(text) => Some("a secret key is there"),
        _ => None,
    }
}

/// Whether a path leads through Git's folder.
fn is_in_git_dir(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().to_str().is_some_and(is_git_dir))
}

/// The names below the last `.quorate` of a path.
fn below_quorate(place: &Path) -> Option<Vec<&str>> {
    let names: Vec<&str> = place
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let at = names.iter().rposition(|name| name.eq_ignore_ascii_case(".quorate"))?;
    Some(names[at + 1..].to_vec())
}

/// Appends a suffix to a path's name.
pub fn with_suffix(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests;
