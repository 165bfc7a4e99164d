//! The rules in the kernel's form. The set is created before the fork, since that allocates; the child only imposes it
//! on itself.

#![expect(clippy::disallowed_methods, reason = "rules are about existing files")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, Ruleset as Unmade, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, make_bitflags,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::Access;

#[derive(Debug)]
pub(in crate::executor::agent_cli) struct Ruleset(Option<RulesetCreated>);

impl Ruleset {
    /// Creates the set. A path that was removed since it was listed needs no rule.
    pub(super) fn new(rules: &[(PathBuf, Access)]) -> io::Result<Self> {
        let mut ruleset = base_ruleset().and_then(Unmade::create).map_err(io::Error::other)?;
        for (path, access) in rules {
            // A link gets no rule: its target has one, or must have none.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(file) = openat(CWD, path, flags, Mode::empty()) else { continue };
            let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
            if kind == FileType::Symlink {
                continue;
            }
            let rights = match kind {
                FileType::Directory => rights(*access),
                _ => rights(*access) & AccessFs::from_file(ABI::V3),
            };
            ruleset = ruleset.add_rule(PathBeneath::new(file, rights)).map_err(io::Error::other)?;
        }
        Ok(Ruleset(Some(ruleset)))
    }

    /// Imposes the rules on the calling process, irrevocably. For the child of a fork: it makes two system calls, and neither
    /// allocates nor takes a lock.
    pub(in crate::executor::agent_cli) fn impose(&mut self) -> io::Result<()> {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let imposed = self.0.take().ok_or_else(denied)?.restrict_self().map_err(|_| denied())?;
        match imposed.ruleset {
            landlock::RulesetStatus::NotEnforced => Err(denied()),
            _ => Ok(()),
        }
    }
}

/// Whether the kernel has Landlock.
pub(super) fn available() -> Result<(), &'static str> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        use landlock::{CompatLevel, Compatible as _};
        let first = Unmade::default().set_compatibility(CompatLevel::HardRequirement);
        // Versions 2 and 3 added renaming across directories and truncating; without them a file that must not be
        // opened for writing can be changed nevertheless.
        first.handle_access(AccessFs::from_write(ABI::V3)).and_then(Unmade::create).is_ok()
    });
    match found {
        true => Ok(()),
        false => Err("the kernel has no Landlock, or an older one than version 3 (Linux 6.2)"),
    }
}

/// The entries of a directory, links included.
pub(super) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
}

/// Denies all access that a rule does not allow. Executing programs and listing directories stay allowed.
fn base_ruleset() -> Result<Unmade, landlock::RulesetError> {
    Unmade::default().handle_access(rights(Access::Both))
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile});
    match access {
        Access::Read => read,
        Access::Write => AccessFs::from_write(ABI::V3),
        Access::Both => read | AccessFs::from_write(ABI::V3),
    }
}
