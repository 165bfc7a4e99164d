//! Computes the rules that protect some paths. Landlock can only allow, and allowing a directory allows everything below
//! it: so no directory above a protected path gets a rule, and each of its other entries gets one.

use std::path::{Path, PathBuf};

/// What a member may do with a path and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// Write, create, rename and remove files and directories.
    Write,
    Both,
}

/// The protected paths: absolute and without links; they need not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Protected {
    /// Neither readable nor writable.
    pub(super) hidden: Vec<PathBuf>,
    /// Readable, not writable.
    pub(super) read_only: Vec<PathBuf>,
}

impl Protected {
    /// Whether a path contains a protected one, so that it gets no rule for writing itself.
    pub(super) fn has_entries_below(&self, path: &Path) -> bool {
        below(&self.hidden, path) || below(&self.read_only, path)
    }
}

/// The rules, from the root down. `entries` returns the full paths of a directory's entries.
pub(super) fn access_rules(
    protected: &Protected,
    entries: impl Fn(&Path) -> Vec<PathBuf>,
) -> Vec<(PathBuf, Access)> {
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
        let rules = super::tests::ruled(&[], &["/srv/ada/ws/draft.md"]);
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
