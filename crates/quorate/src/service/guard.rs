//! Protects a workspace's own files from being overwritten: the ledger, its keys, its witness, its log, the keyring,
//! the configuration, and Git's files. Every file that a configuration, a manifest or a person names passes this guard.
//! It follows links and compares existing files by identity, so that it also finds hard links.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::{Body, codes};
use quorate_kernel::files::{Resolver, file_id};
use quorate_kernel::ports::provisioning::is_git_dir;
use quorate_ledger::keys::KeyPurpose;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::{self, Configuration, KeySource};
use quorate_manifest::doctype::COUNCIL_FILES;

use super::artifact::Artifact;
use super::disk::{self, absolute, display_path};
use super::environment::Environment;
use super::error::Error;
use super::witness::Witness;

/// The keyring's default file.
const KEYRING: &str = "keyring.toml";

/// The suffixes of SQLite's auxiliary files.
pub(crate) const SQLITE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The names that are reserved within `.quorate/`.
const OWN_FOLDERS: [&str; 4] = ["keys", "aside", "live", "provisioned"];
const OWN_FILES: [&str; 3] = ["ledger.db", "log_index.db", ".gitignore"];

pub(crate) fn keyring_of(root: &Path, settings: &config::Keys) -> PathBuf {
    root.join(settings.keyring.as_ref().map_or(KEYRING, |(path, _)| path))
}

/// The role of a file in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
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

impl FileRole {
    fn occupies(self) -> &'static str {
        match self {
            FileRole::Ledger => "the ledger is there",
            FileRole::Log => "the log is there",
            FileRole::Witness => "the witness is there",
            FileRole::Keyring => "the keyring is there",
            FileRole::Configuration => "the configuration is there",
            FileRole::Keys => "the ledger's keys are there",
            FileRole::State => "trust decisions and the last checkpoints are kept there",
        }
    }
}

/// The protected files and folders of a workspace.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    files: Vec<(FileRole, PathBuf)>,
    folders: Vec<(FileRole, PathBuf)>,
}

/// A workspace's files, by role.
#[derive(Clone, Copy)]
pub struct GuardedPlaces<'a> {
    /// `quorate.toml`.
    pub config: &'a Configuration,
    /// The files of `quorate.toml` and the council that were read.
    pub configured: [Option<&'a Path>; 2],
    pub root: &'a Path,
    pub ledger: &'a StoreAddress,
    pub log: &'a Path,
    pub witness: Option<&'a Witness>,
    pub links: &'a Resolver,
}

impl Guard {
    /// The guard of a workspace.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`] if the configuration puts two files in one place, or one in Git's folder.
    pub fn of(environment: &Environment, places: GuardedPlaces<'_>) -> Result<Guard, Error> {
        let GuardedPlaces { config, configured, root, ledger, log, witness, links } = places;
        let keyring = keyring_of(root, &config.keys);
        let witness = witness.and_then(Witness::file);
        let mut guard = Guard::default();
        guard.add(FileRole::Log, log);
        guard.add(FileRole::Keyring, &keyring);
        witness.into_iter().for_each(|file| guard.add(FileRole::Witness, file));
        configured.into_iter().flatten().for_each(|file| guard.add(FileRole::Configuration, file));
        if let Some(file) = ledger.file() {
            guard.add(FileRole::Ledger, file);
            SQLITE_SUFFIXES.iter().for_each(|end| guard.add(FileRole::Ledger, &with_suffix(file, end)));
        }
        if let Some((KeySource::File(path), _)) = &config.keys.signing {
            guard.add(FileRole::Keys, &root.join(path));
        }
        let directory = quorate_ledger::keys::KeyDirectory::new(ledger.dir());
        let secrets = directory.key_path(KeyPurpose::Ledger);
        guard.folders.extend(secrets.parent().map(|folder| (FileRole::Keys, folder.to_owned())));
        guard.folders.extend(environment.state_dir.iter().map(|dir| (FileRole::State, dir.clone())));
        let named = [
            (FileRole::Log, Some(log), "the log (`logging.log_path`)"),
            (FileRole::Witness, witness, "the witness (`[ledger] witness`)"),
            (FileRole::Keyring, Some(&*keyring), "the keyring (`[keys] keyring`)"),
            // If two files share a place, the ledger's place is rarely the mistake, so the error names the other.
            (FileRole::Ledger, ledger.file(), "the ledger"),
        ];
        for (role, path, what) in named {
            let Some(path) = path else { continue };
            if let Some(why) = guard.occupant_by(links, path, Some(role)) {
                let shown = display_path(environment, path);
                let body = Body::new(format!("{what} cannot be {shown}: {why}"));
                let help = "choose another file in the configuration";
                return Err(Error::configuration(codes::FILE_UNWRITABLE, body.help(help)));
            }
        }
        Ok(guard)
    }

    /// The guard of a log outside of any workspace.
    pub fn of_log(log: &Path) -> Guard {
        Guard { files: vec![(FileRole::Log, log.to_owned())], folders: Vec::new() }
    }

    fn add(&mut self, role: FileRole, file: &Path) {
        self.files.push((role, file.to_owned()));
    }

    /// Refuses a path if writing to it would overwrite or change a protected file.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`].
    pub fn ensure_free(&self, environment: &Environment, path: &Path) -> Result<(), Error> {
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
    pub fn ensure_output(&self, environment: &Environment, path: &Path) -> Result<PathBuf, Error> {
        let path = absolute(&environment.directory, path);
        self.ensure_free(environment, &path)?;
        match path.metadata() {
            Ok(found) if !found.is_file() => {
                Err(unwritable(&display_path(environment, &path), "it is not a regular file"))
            }
            _ => Ok(path),
        }
    }

    /// Whether recording a run changes this file: it is the ledger, the log or the witness.
    pub fn is_recorded_to(&self, file: &Path) -> bool {
        let is_recorded_to = |role| matches!(role, FileRole::Ledger | FileRole::Log | FileRole::Witness);
        self.files.iter().any(|(role, own)| is_recorded_to(*role) && disk::is_same_file(own, file))
    }

    /// Refuses to judge a file that recording the run would change.
    ///
    /// # Errors
    /// [`codes::FILE_UNWRITABLE`] if it is the ledger, the log or the witness.
    pub(crate) fn ensure_unrecorded(&self, artifact: &Artifact) -> Result<(), Error> {
        if !artifact.path.as_deref().is_some_and(|path| self.is_recorded_to(path)) {
            return Ok(());
        }
        let message = format!("cannot judge {}: recording the run would change it", artifact.display_name);
        let help = "judge a copy, or configure another file for the ledger, the log or the witness";
        Err(Error::configuration(codes::FILE_UNWRITABLE, Body::new(message).help(help)))
    }

    /// Why an absolute path is protected from writes by `role`, or by a file without a role.
    pub fn occupant(&self, path: &Path, role: Option<FileRole>) -> Option<&'static str> {
        self.occupant_by(&Resolver::default(), path, role)
    }

    fn occupant_by(&self, links: &Resolver, path: &Path, role: Option<FileRole>) -> Option<&'static str> {
        let place = &links.resolve(path);
        if let Some(why) = place_of_others(path, place) {
            return Some(why);
        }
        let above: Vec<_> = place.ancestors().map(|dir| (dir, file_id(dir))).collect();
        let (_, id) = above.first()?;
        // Whether the path, whose file has the identity `id`, is that file, or would be if it were created.
        let is_at = |file: &Path, place: &Path, id: Option<(u64, u64)>| {
            links.resolve(file) == place || (id.is_some() && file_id(file) == id)
        };
        let mut others = self.files.iter().filter(|(kept, _)| Some(*kept) != role);
        if let Some((kept, _)) = others.find(|(_, file)| is_at(file, place, *id)) {
            return Some(kept.occupies());
        }
        let is_linked = disk::has_other_names(place);
        let in_folder = |folder: &Path| {
            let files = || disk::walk(folder).unwrap_or_default();
            above.iter().any(|(dir, id)| is_at(folder, dir, *id))
                || (is_linked && files().iter().any(|file| disk::is_same_file(&file.path, place)))
        };
        if let Some((kept, _)) = self.folders.iter().find(|(_, folder)| in_folder(folder)) {
            return Some(kept.occupies());
        }
        let name = place.file_name()?.to_str()?;
        if role != Some(FileRole::Configuration) && (name == "quorate.toml" || COUNCIL_FILES.contains(&name))
        {
            return Some("a configuration belongs there");
        }
        if role != Some(FileRole::Keyring) && name == KEYRING {
            return Some("a keyring belongs there");
        }
        let own = |name: &str| {
            let of_sqlite = |own: &&str| {
                name.strip_prefix(*own).is_some_and(|end| end.is_empty() || SQLITE_SUFFIXES.contains(&end))
            };
            OWN_FILES.iter().any(of_sqlite) && !(role == Some(FileRole::Ledger) && name == OWN_FILES[0])
        };
        match below_quorate(place)?.as_slice() {
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
pub(crate) fn ensure_folder_free(folder: &Path, shown: &str) -> Result<(), Error> {
    let place = disk::canonical_or_new(folder);
    match place_of_others(folder, &place).or_else(|| below_quorate(&place).map(|_| "a ledger is there")) {
        Some(why) => Err(unwritable(shown, why)),
        None => Ok(()),
    }
}

fn unwritable(shown: &str, why: &str) -> Error {
    let body = Body::new(format!("cannot write to {shown}: {why}"));
    Error::configuration(codes::FILE_UNWRITABLE, body.help("choose another name"))
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
pub(crate) fn with_suffix(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use std::path::Path;

    use super::{FileRole, Guard};

    /// A workspace with a ledger, its keys, a log, and a repository's folder.
    fn workspace() -> (tempfile::TempDir, Guard) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("there");
        for folder in [".quorate/keys", ".git/hooks", "sub"] {
            std::fs::create_dir_all(root.join(folder)).expect("made");
        }
        for file in
            [".quorate/ledger.db", ".quorate/keys/ledger.ed25519", "log.jsonl", "quorate.toml", "notes.txt"]
        {
            crate::service::disk::write_new(&root.join(file), "").expect("written");
        }
        let guard = Guard {
            files: vec![
                (FileRole::Ledger, root.join(".quorate/ledger.db")),
                (FileRole::Ledger, root.join(".quorate/ledger.db-wal")),
                (FileRole::Log, root.join("log.jsonl")),
                (FileRole::Configuration, root.join("quorate.toml")),
                (FileRole::Keyring, root.join("keyring.toml")),
            ],
            folders: vec![(FileRole::Keys, root.join(".quorate/keys"))],
        };
        (dir, guard)
    }

    fn why(guard: &Guard, root: &Path, path: &str) -> Option<&'static str> {
        guard.occupant(&root.join(path), None)
    }

    #[test]
    fn what_is_kept_is_taken_however_it_is_spelled() {
        let (dir, guard) = workspace();
        for (path, taken) in [
            (".quorate/ledger.db", "the ledger is there"),
            ("sub/../.quorate/ledger.db", "the ledger is there"),
            (".quorate/ledger.db-wal", "the ledger is there"),
            (".quorate/ledger.db-shm", "a ledger is there"),
            (".quorate/.gitignore", "a ledger is there"),
            (".quorate/aside/piece", "a ledger is there"),
            ("elsewhere/.quorate/keys/new", "a ledger is there"),
            (".quorate/keys/new", "the ledger's keys are there"),
            ("keyring.toml", "the keyring is there"),
            ("sub/quorate.toml", "a configuration belongs there"),
            ("sub/council.yml", "a configuration belongs there"),
            (".git/config", "that is Git's own folder"),
            (".GIT/hooks/pre-commit", "that is Git's own folder"),
            ("sub/.git", "that is Git's own folder"),
        ] {
            assert_eq!(why(&guard, dir.path(), path), Some(taken), "{path}");
        }
        for free in
            ["notes.txt", "sub/log.jsonl", ".quorate/council_log.jsonl", ".gitignore", "new/a/b", "ledger.db"]
        {
            assert_eq!(why(&guard, dir.path(), free), None, "{free}");
        }
    }

    #[test]
    fn what_is_kept_is_free_for_what_it_is_alone() {
        let (dir, guard) = workspace();
        let occupant = |path: &str, role| guard.occupant(&dir.path().join(path), Some(role));
        assert_eq!(occupant("log.jsonl", FileRole::Log), None);
        assert_eq!(occupant("log.jsonl", FileRole::Witness), Some("the log is there"));
        assert_eq!(occupant(".quorate/ledger.db", FileRole::Ledger), None);
        assert_eq!(occupant(".quorate/ledger.db", FileRole::Log), Some("the ledger is there"));
        assert_eq!(occupant("quorate.toml", FileRole::Configuration), None);
    }

    #[cfg(unix)]
    #[test]
    fn links_of_both_kinds_are_found() {
        use std::os::unix::fs::symlink;
        let (dir, guard) = workspace();
        let root = dir.path();
        for (to, name, taken) in [
            (".quorate/ledger.db", "ledger", "the ledger is there"),
            (".quorate/keys/ledger.ed25519", "key", "the ledger's keys are there"),
            ("quorate.toml", "config", "the configuration is there"),
        ] {
            std::fs::hard_link(root.join(to), root.join(format!("{name}.hard"))).expect("linked");
            symlink(root.join(to), root.join(format!("{name}.soft"))).expect("linked");
            for end in ["hard", "soft"] {
                assert_eq!(why(&guard, root, &format!("{name}.{end}")), Some(taken), "{name}.{end}");
            }
        }
        symlink(".git/hooks", root.join("hooks")).expect("linked");
        assert_eq!(why(&guard, root, "hooks/pre-commit"), Some("that is Git's own folder"));
        // A dangling link.
        symlink(".quorate/ledger.db-wal", root.join("dangling")).expect("linked");
        assert_eq!(why(&guard, root, "dangling"), Some("the ledger is there"));
        std::fs::hard_link(root.join("notes.txt"), root.join("sub/notes")).expect("linked");
        assert_eq!(why(&guard, root, "sub/notes"), None);
    }
}
