//! The rules as the kernel takes them. The set is made before the fork, since that allocates; the child only imposes it on
//! itself.

#![expect(clippy::disallowed_methods, reason = "rules are about the files that there are")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, Ruleset as Unmade, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, make_bitflags,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::rules::Access;

/// Rules, ready to be imposed.
#[derive(Debug)]
pub(in crate::executor::agent_cli) struct Ruleset(Option<RulesetCreated>);

impl Ruleset {
    /// Makes the set. What went away since it was listed needs no rule.
    pub(super) fn new(rules: &[(PathBuf, Access)]) -> io::Result<Self> {
        let mut made = base_ruleset().and_then(Unmade::create).map_err(io::Error::other)?;
        for (path, access) in rules {
            // A link gets no rule: where it leads to has one, or is to have none.
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
            made = made.add_rule(PathBeneath::new(file, rights)).map_err(io::Error::other)?;
        }
        Ok(Ruleset(Some(made)))
    }

    /// Imposes the rules on the calling process, for good. For the child of a fork: it makes two system calls, and neither
    /// allocates nor takes a lock.
    pub(in crate::executor::agent_cli) fn impose(&mut self) -> io::Result<()> {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let imposed = self.0.take().ok_or_else(refused)?.restrict_self().map_err(|_| refused())?;
        match imposed.ruleset {
            landlock::RulesetStatus::NotEnforced => Err(refused()),
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
        // Renaming across directories and truncating came with versions 2 and 3; without them a file that must not be
        // opened for writing can be changed all the same.
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

/// What is refused unless a rule allows it. Programs are run, and directories are listed, as ever.
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
