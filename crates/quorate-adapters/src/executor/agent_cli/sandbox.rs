//! What a member cannot access: it can neither read the keys of the ledgers in use, nor write these ledgers and their logs.
//! A vendor's preset, whose prompt contains untrusted text, cannot read ledger and log either, nor write the workspace.
//!
//! The kernel enforces it by Landlock, which a process imposes on itself and its descendants. Other systems,
//! and kernels without Landlock, have no sandbox. Landlock can only allow, and allowing a directory allows everything below
//! it: so no directory above a protected path gets a rule, and each of its other entries gets one. `sandbox/ruleset.rs`
//! owns the rules in the kernel's form.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "rules are for Landlock alone"))]

#[cfg(target_os = "linux")]
mod ruleset;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::environment;
use quorate_kernel::files::{Resolver, real_path};

/// The files of a ledger, which members may not change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerFiles {
    pub keys: PathBuf,
    /// The ledger's files, or its directory.
    pub ledger: Vec<PathBuf>,
    pub log: PathBuf,
    pub workspace: Option<PathBuf>,
}

/// All ledgers that this process has opened.
static PROTECTED_LEDGERS: Mutex<BTreeSet<LedgerFiles>> = Mutex::new(BTreeSet::new());

/// Protects a ledger from the members that start from now on.
pub fn protect_from_members(files: LedgerFiles) {
    let links = Resolver::default();
    let real = |path: PathBuf| links.resolve(&path);
    let files = LedgerFiles {
        keys: real(files.keys),
        ledger: files.ledger.into_iter().map(real).collect(),
        log: real(files.log),
        workspace: files.workspace.map(real),
    };
    PROTECTED_LEDGERS.lock().unwrap_or_else(PoisonError::into_inner).insert(files);
}

/// Whether this system can confine members.
///
/// # Errors
/// The reason why it cannot.
pub fn can_confine() -> Result<(), &'static str> {
    #[cfg(target_os = "linux")]
    return ruleset::available();
    #[cfg(not(target_os = "linux"))]
    Err("this system has no Landlock")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confinement {
    /// A command of the user's own: keys are hidden, ledger and log are read-only.
    UserCommand,
    /// A preset of a vendor: keys, ledger and log are hidden, the workspace is read-only.
    VendorPreset,
}

#[derive(Debug)]
pub(super) struct Sandbox {
    protected: Protected,
    /// Paths that the member uses, for directories that cannot be listed.
    known_paths: Vec<PathBuf>,
    /// A directory for temporary files, if the system's contains a protected path.
    scratch: Option<TempDir>,
}

impl Sandbox {
    /// The sandbox of a member that starts now; `None` without a ledger to protect, or the system has no sandbox.
    pub(super) fn new(confinement: Confinement, program: &Path, cwd: &Path) -> std::io::Result<Option<Self>> {
        let ledgers = PROTECTED_LEDGERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if ledgers.is_empty() || can_confine().is_err() {
            return Ok(None);
        }
        let (home, temporary) =
            (environment::home_dir().map(|home| real_path(&home)), real_path(&environment::temp_dir()));
        let mut places: Vec<&Path> = home.iter().map(PathBuf::as_path).collect();
        places.push(&temporary);
        let protected = protected_paths(confinement, ledgers, &places);
        let scratch = match protected.has_entries_below(&temporary) {
            true => Some(tempfile::Builder::new().prefix("quorate-tmp-").tempdir_in(&temporary)?),
            false => None,
        };
        let known_paths = [Some(real_path(program)), Some(real_path(cwd)), home, Some(temporary)];
        let known_paths = known_paths
            .into_iter()
            .flatten()
            .chain(scratch.as_ref().map(|dir| dir.path().to_owned()))
            .collect();
        Ok(Some(Sandbox { protected, known_paths, scratch }))
    }

    /// The member's directory for temporary files, unless it is the system's.
    pub(super) fn temp_dir(&self) -> Option<&Path> {
        self.scratch.as_ref().map(TempDir::path)
    }

    /// A hint for the failure of a member to which access was denied: the sandbox may have been the cause.
    pub(super) fn failure_hint(&self, failure: &str) -> Option<&'static str> {
        const SIGNS: [&str; 7] =
            ["ermission denied", "EACCES", "not permitted", "EPERM", "ead-only", "cross-device", "EXDEV"];
        SIGNS.iter().any(|sign| failure.contains(sign)).then_some(
            "it ran in the sandbox, which keeps keys, ledger and log from members and lets them make no files beside \
             these; let it write below TMPDIR or an existing directory, or set `sandbox = false` for its executor",
        )
    }

    /// The rules for the files that exist now; the child imposes them on itself.
    #[cfg(target_os = "linux")]
    pub(super) fn ruleset(&self) -> std::io::Result<ruleset::Ruleset> {
        ruleset::Ruleset::new(&access_rules(&self.protected, |dir| self.entries(dir)))
    }

    #[cfg(target_os = "linux")]
    fn entries(&self, dir: &Path) -> Vec<PathBuf> {
        match ruleset::list(dir) {
            Ok(entries) => entries,
            // A directory may be accessible but not listable: known paths below it are allowed nevertheless.
            Err(_) => {
                let known =
                    self.known_paths.iter().chain(&self.protected.hidden).chain(&self.protected.read_only);
                let next = |path: &PathBuf| Some(dir.join(path.strip_prefix(dir).ok()?.components().next()?));
                known.filter_map(next).collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }
}

/// The protected paths; `places` are those that every program writes to.
fn protected_paths(confinement: Confinement, ledgers: BTreeSet<LedgerFiles>, places: &[&Path]) -> Protected {
    let mut protected = Protected::default();
    for files in ledgers {
        protected.hidden.push(files.keys);
        let journals = files.ledger.into_iter().chain([files.log]);
        match confinement {
            Confinement::UserCommand => protected.read_only.extend(journals),
            Confinement::VendorPreset => {
                protected.hidden.extend(journals);
                // A workspace that contains the home directory stays writable.
                let workspace =
                    files.workspace.filter(|root| !places.iter().any(|place| place.starts_with(root)));
                protected.read_only.extend(workspace);
            }
        }
    }
    protected
}

/// A member's rights on a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    /// Write, create, rename and remove files and directories.
    Write,
    Both,
}

/// The protected paths: absolute and without links; they need not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Protected {
    /// Neither readable nor writable.
    hidden: Vec<PathBuf>,
    /// Readable, not writable.
    read_only: Vec<PathBuf>,
}

impl Protected {
    /// Whether a path contains a protected one, so that it gets no rule for writing itself.
    fn has_entries_below(&self, path: &Path) -> bool {
        below(&self.hidden, path) || below(&self.read_only, path)
    }
}

/// The rules, from the root down. `entries` returns the full paths of a directory's entries.
fn access_rules(protected: &Protected, entries: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<(PathBuf, Access)> {
    let mut rules = Vec::new();
    let mut open = vec![(PathBuf::from("/"), true)];
    while let Some((path, reads)) = open.pop() {
        if within(&protected.hidden, &path) {
            continue;
        }
        let writes = !within(&protected.read_only, &path);
        let (hidden, fixed) = (below(&protected.hidden, &path), below(&protected.read_only, &path));
        let grants_read = reads && !hidden;
        let grants_write = writes && !hidden && !fixed;
        let access = match (grants_read, grants_write) {
            (true, true) => Some(Access::Both),
            (true, false) => Some(Access::Read),
            (false, true) => Some(Access::Write),
            (false, false) => None,
        };
        let complete = (grants_read || !reads) && (grants_write || !writes);
        if !complete {
            open.extend(entries(&path).into_iter().map(|entry| (entry, reads && !grants_read)));
        }
        rules.extend(access.map(|access| (path, access)));
    }
    rules
}

fn within(all: &[PathBuf], path: &Path) -> bool {
    all.iter().any(|protected| path.starts_with(protected))
}

fn below(all: &[PathBuf], path: &Path) -> bool {
    all.iter().any(|protected| protected != path && protected.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> BTreeSet<LedgerFiles> {
        BTreeSet::from([LedgerFiles {
            keys: "/ws/.quorate/keys".into(),
            ledger: vec!["/ws/.quorate".into()],
            log: "/ws/log.jsonl".into(),
            workspace: Some("/ws".into()),
        }])
    }

    #[test]
    fn a_vendor_sees_neither_ledger_nor_log_and_writes_nothing_in_the_workspace() {
        let vendor = protected_paths(Confinement::VendorPreset, kept(), &[Path::new("/srv/ada")]);
        let hidden = ["/ws/.quorate/keys", "/ws/.quorate", "/ws/log.jsonl"].map(PathBuf::from);
        assert_eq!((vendor.hidden, vendor.read_only), (hidden.to_vec(), vec!["/ws".into()]));
        let protected = protected_paths(Confinement::VendorPreset, kept(), &[Path::new("/ws")]);
        assert!(protected.read_only.is_empty());
    }

    #[test]
    fn a_command_of_the_users_own_is_kept_from_the_keys_and_from_writing_ledger_and_log() {
        let protected = protected_paths(Confinement::UserCommand, kept(), &[]);
        assert_eq!(protected.hidden, [PathBuf::from("/ws/.quorate/keys")]);
        assert_eq!(protected.read_only, ["/ws/.quorate", "/ws/log.jsonl"].map(PathBuf::from));
    }

    #[test]
    fn a_path_that_is_not_there_yet_is_real_as_far_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        let real_dir = dir.path().canonicalize().unwrap();
        assert_eq!(real_path(&dir.path().join("link/a/b")), real_dir.join("a/b"));
        assert_eq!(real_path(&dir.path().join("link")), real_dir);
    }
}

#[cfg(test)]
mod rules_tests {
    use std::collections::BTreeMap;

    use super::*;

    const TREE: &[&str] = &[
        "/etc",
        "/srv/ada/.claude.json",
        "/srv/ada/ws/.quorate/keys/ledger.ed25519",
        "/srv/ada/ws/.quorate/ledger.db",
        "/srv/ada/ws/draft.md",
        "/srv/bob/notes",
        "/tmp",
    ];

    fn entries(dir: &Path) -> Vec<PathBuf> {
        let paths = TREE.iter().filter_map(|path| Path::new(path).strip_prefix(dir).ok());
        let mut names: Vec<PathBuf> =
            paths.filter_map(|rest| Some(dir.join(rest.components().next()?))).collect();
        names.dedup();
        names
    }

    fn ruled(hidden: &[&str], fixed: &[&str]) -> BTreeMap<String, Access> {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect();
        let protected = Protected { hidden: paths(hidden), read_only: paths(fixed) };
        access_rules(&protected, entries)
            .into_iter()
            .map(|(path, access)| (path.display().to_string(), access))
            .collect()
    }

    #[test]
    fn every_entry_beside_the_way_down_has_a_rule_and_nothing_on_it() {
        let ruled = ruled(&["/srv/ada/ws/.quorate/keys"], &["/srv/ada/ws/.quorate"]);
        let expected = [
            ("/etc", Access::Both),
            ("/srv/ada/.claude.json", Access::Both),
            ("/srv/ada/ws/.quorate/ledger.db", Access::Read),
            ("/srv/ada/ws/draft.md", Access::Both),
            ("/srv/bob", Access::Both),
            ("/tmp", Access::Both),
        ];
        assert_eq!(ruled, expected.map(|(path, access)| (path.to_owned(), access)).into());
    }

    #[test]
    fn a_fixed_directory_is_read_whole_and_written_nowhere() {
        let ruled = ruled(&["/srv/ada/ws/.quorate"], &["/srv/ada/ws"]);
        assert_eq!(ruled["/srv/ada/ws/draft.md"], Access::Read);
        assert_eq!(ruled["/srv/ada/.claude.json"], Access::Both);
        assert!(!ruled.keys().any(|path| path.contains(".quorate")), "{ruled:?}");
        let rules = super::rules_tests::ruled(&[], &["/srv/ada/ws/draft.md"]);
        assert_eq!(rules["/"], Access::Read);
        assert_eq!(rules["/srv/ada/ws/.quorate"], Access::Write);
        assert!(!rules.contains_key("/srv/ada/ws/draft.md"), "{rules:?}");
    }

    #[test]
    fn what_is_not_there_yet_is_protected_by_the_way_to_it() {
        let ruled = ruled(&["/srv/ada/ws/.quorate/keys"], &["/srv/ada/ws/logs/council.jsonl"]);
        for above in ["/", "/srv", "/srv/ada", "/srv/ada/ws", "/srv/ada/ws/logs"] {
            assert!(!ruled.contains_key(above), "{above}: {ruled:?}");
        }
    }

    #[test]
    fn whatever_is_asked_for_no_rule_is_above_what_is_hidden() {
        for hidden in TREE {
            for fixed in TREE {
                for (path, access) in ruled(&[hidden], &[fixed]) {
                    assert!(!Path::new(hidden).starts_with(&path), "{path} {access:?} reaches {hidden}");
                    let writes = access != Access::Read;
                    assert!(
                        !(writes && Path::new(fixed).starts_with(&path)),
                        "{path} {access:?} over {fixed}"
                    );
                }
            }
        }
    }
}
