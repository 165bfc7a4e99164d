//! What a member cannot reach: the keys of the ledgers in use; and it cannot write these ledgers, nor their logs. A preset
//! of a vendor, which is given an untrusted text, cannot even read ledger and log, and cannot write the workspace.
//!
//! The kernel holds it to that, by Landlock, which a process imposes on itself and on all that it starts. Elsewhere, and
//! on kernels without it, there is no sandbox.

#[cfg(target_os = "linux")]
mod landlocked;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "rules are for Landlock alone"))]
mod rules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rules::Protected;
use tempfile::TempDir;

use super::environment;

/// The files of one ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept {
    /// The directory of its keys.
    pub keys: PathBuf,
    /// The ledger: files, or a directory of its own.
    pub ledger: Vec<PathBuf>,
    pub log: PathBuf,
    /// The workspace, where there is one.
    pub workspace: Option<PathBuf>,
}

/// All ledgers that this process has in use or had.
static KEPT: Mutex<BTreeSet<Kept>> = Mutex::new(BTreeSet::new());

/// Keeps a ledger from the members that are started from now on.
pub fn keep(kept: Kept) {
    let real = |path: PathBuf| real(&path);
    let kept = Kept {
        keys: real(kept.keys),
        ledger: kept.ledger.into_iter().map(real).collect(),
        log: real(kept.log),
        workspace: kept.workspace.map(real),
    };
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(kept);
}

/// Whether members can be confined here.
///
/// # Errors
/// Why not, for a person.
pub fn available() -> Result<(), &'static str> {
    #[cfg(target_os = "linux")]
    return landlocked::available();
    #[cfg(not(target_os = "linux"))]
    Err("this system has no Landlock")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// A command of the user's own: keys are hidden, ledger and log are read-only.
    Own,
    /// A preset of a vendor: keys, ledger and log are hidden, the workspace is read-only.
    Vendor,
}

/// How one attempt is confined.
#[derive(Debug)]
pub(super) struct Sandbox {
    protected: Protected,
    /// Paths that are known to be used, for directories that cannot be listed.
    used: Vec<PathBuf>,
    /// A directory for temporary files, where those of the system are beside a protected path.
    scratch: Option<TempDir>,
}

impl Sandbox {
    /// The sandbox of a member that starts now; `None` where there is nothing to protect, or no way to.
    pub(super) fn of(whose: Whose, program: &Path, cwd: &Path) -> std::io::Result<Option<Self>> {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if kept.is_empty() || available().is_err() {
            return Ok(None);
        }
        let (home, temporary) =
            (environment::home().map(|home| real(&home)), real(&environment::temporary()));
        let mut places: Vec<&Path> = home.iter().map(PathBuf::as_path).collect();
        places.push(&temporary);
        let protected = protected(whose, kept, &places);
        let scratch = match protected.is_below(&temporary) {
            true => Some(tempfile::Builder::new().prefix("quorate-tmp-").tempdir_in(&temporary)?),
            false => None,
        };
        let used = [Some(real(program)), Some(real(cwd)), home, Some(temporary)];
        let used =
            used.into_iter().flatten().chain(scratch.as_ref().map(|dir| dir.path().to_owned())).collect();
        Ok(Some(Sandbox { protected, used, scratch }))
    }

    /// Where the member puts temporary files, if not where it would anyway.
    pub(super) fn temporary(&self) -> Option<&Path> {
        self.scratch.as_ref().map(TempDir::path)
    }

    /// What the failure of a member adds that was refused something: it may have been the sandbox.
    pub(super) fn explains(&self, failure: &str) -> Option<&'static str> {
        const SIGNS: [&str; 7] =
            ["ermission denied", "EACCES", "not permitted", "EPERM", "ead-only", "cross-device", "EXDEV"];
        SIGNS.iter().any(|sign| failure.contains(sign)).then_some(
            "it ran in the sandbox, which keeps keys, ledger and log from members and lets them make no files beside \
             these; let it write below TMPDIR or an existing directory, or set `sandbox = false` for its executor",
        )
    }

    /// The rules as they are for the files of this moment, to be imposed by the child.
    #[cfg(target_os = "linux")]
    pub(super) fn ruleset(&self) -> std::io::Result<landlocked::Ruleset> {
        landlocked::Ruleset::of(&rules::rules(&self.protected, |dir| self.entries(dir)))
    }

    #[cfg(target_os = "linux")]
    fn entries(&self, dir: &Path) -> Vec<PathBuf> {
        match landlocked::list(dir) {
            Ok(entries) => entries,
            // A directory may be entered and not listed: what is known to be used below it is allowed all the same.
            Err(_) => {
                let known = self.used.iter().chain(&self.protected.hidden).chain(&self.protected.fixed);
                let next = |path: &PathBuf| Some(dir.join(path.strip_prefix(dir).ok()?.components().next()?));
                known.filter_map(next).collect::<BTreeSet<_>>().into_iter().collect()
            }
        }
    }
}

/// What is protected from whom; `places` are those that every program writes to.
fn protected(whose: Whose, kept: BTreeSet<Kept>, places: &[&Path]) -> Protected {
    let mut protected = Protected::default();
    for kept in kept {
        protected.hidden.push(kept.keys);
        let journals = kept.ledger.into_iter().chain([kept.log]);
        match whose {
            Whose::Own => protected.fixed.extend(journals),
            Whose::Vendor => {
                protected.hidden.extend(journals);
                // Who has a home for a workspace goes on writing to it.
                let workspace =
                    kept.workspace.filter(|root| !places.iter().any(|place| place.starts_with(root)));
                protected.fixed.extend(workspace);
            }
        }
    }
    protected
}

/// A path without links, also where its end is not there yet.
fn real(path: &Path) -> PathBuf {
    for there in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (there.canonicalize(), path.strip_prefix(there)) {
            return match rest.as_os_str().is_empty() {
                true => real,
                false => real.join(rest),
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> BTreeSet<Kept> {
        BTreeSet::from([Kept {
            keys: "/ws/.quorate/keys".into(),
            ledger: vec!["/ws/.quorate".into()],
            log: "/ws/log.jsonl".into(),
            workspace: Some("/ws".into()),
        }])
    }

    #[test]
    fn a_vendor_sees_neither_ledger_nor_log_and_writes_nothing_in_the_workspace() {
        let vendor = protected(Whose::Vendor, kept(), &[Path::new("/srv/ada")]);
        let hidden = ["/ws/.quorate/keys", "/ws/.quorate", "/ws/log.jsonl"].map(PathBuf::from);
        assert_eq!((vendor.hidden, vendor.fixed), (hidden.to_vec(), vec!["/ws".into()]));
        let at_home = protected(Whose::Vendor, kept(), &[Path::new("/ws")]);
        assert!(at_home.fixed.is_empty());
    }

    #[test]
    fn a_command_of_the_users_own_is_kept_from_the_keys_and_from_writing_ledger_and_log() {
        let own = protected(Whose::Own, kept(), &[]);
        assert_eq!(own.hidden, [PathBuf::from("/ws/.quorate/keys")]);
        assert_eq!(own.fixed, ["/ws/.quorate", "/ws/log.jsonl"].map(PathBuf::from));
    }

    #[test]
    fn a_path_that_is_not_there_yet_is_real_as_far_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        let real_dir = dir.path().canonicalize().unwrap();
        assert_eq!(real(&dir.path().join("link/a/b")), real_dir.join("a/b"));
        assert_eq!(real(&dir.path().join("link")), real_dir);
    }
}
