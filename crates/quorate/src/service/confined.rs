//! Reads a workspace's files: resolves every path beneath the folder of its scope, from an open handle, so that no
//! `..`, absolute path or symlink leads out, even if the tree changes meanwhile (M10). [`Root`] confines the paths of
//! clients.

use std::path::{Component, Path, PathBuf};

use quorate_diagnostics::invisible::is_invisible;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::files;
use quorate_manifest::Workspace;
use quorate_manifest::doctype::Doctype;
use quorate_manifest::tree::MAX_BYTES;
use quorate_manifest::workspace::{DirEntry, Scope, WorkspaceError, WorkspacePath};

use super::artifact::{self, Artifact};
use super::disk;
use super::environment::Environment;
use super::error::Error;
use super::workspace::{find_root, search_start};

/// A workspace on the disk.
///
/// It holds the workspace's folder open instead of remembering its name, and opens a tenant's folder beneath it for each
/// read. Use one for a single operation, not for the life of a process.
#[derive(Debug)]
pub(crate) struct Confined(files::Root);

impl Confined {
    /// The workspace whose folder is `root`, which may itself be reached through symlinks.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be opened.
    pub(crate) fn open(root: &Path) -> std::io::Result<Confined> {
        files::Root::open(root).map(Confined)
    }

    /// Calls `see` with the folder of a location's scope and the path in it; the system has no empty paths.
    fn at<T>(
        &self,
        location: &WorkspacePath,
        see: impl FnOnce(&files::Root, &Path) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let path = Path::new(if location.as_str().is_empty() { "." } else { location.as_str() });
        let Scope::Tenant(slug) = location.scope() else { return see(&self.0, path) };
        if !is_single_component(slug) {
            return Err(WorkspaceError::Outside);
        }
        see(&self.0.folder(&location.scope().folder())?, path)
    }
}

impl Workspace for Confined {
    fn read(&self, location: &WorkspacePath) -> Result<Vec<u8>, WorkspaceError> {
        self.at(location, |folder, path| folder.read_regular(path, MAX_BYTES as u64))
    }

    fn list(&self, location: &WorkspacePath) -> Result<Vec<DirEntry>, WorkspaceError> {
        self.at(location, files::Root::list)
    }
}

/// Whether a slug is a single path component.
fn is_single_component(slug: &str) -> bool {
    let mut parts = Path::new(slug).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == slug)
}

/// Directories without drafts: the ledger's with its keys, and the repository's, also by its short name on Windows.
const STATE: [&str; 3] = [".quorate", ".git", "git~1"];

/// The directory that confines all paths of clients.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    dir: PathBuf,
}

impl Root {
    /// The root at `dir`, an absolute path.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be opened.
    pub(crate) fn open(dir: PathBuf) -> Result<Root, Error> {
        // It is opened again for each call, so a directory that replaces it later becomes the root.
        Confined::open(&dir).map_err(|error| {
            let body = Body::new(format!("cannot open the workspace {}: {error}", dir.display()));
            Error::not_found(codes::FILE_UNREADABLE, body.help("pass a directory with `--root`"))
        })?;
        Ok(Root { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads a text below the root, for a review.
    pub(crate) fn artifact(&self, path: &Path) -> Result<Artifact, Error> {
        let relative = self.relative(path)?;
        let bytes = match self.read(&relative) {
            Err(WorkspaceError::Outside) => return Err(self.outside_error(path)),
            Err(WorkspaceError::Missing) => Err(std::io::ErrorKind::NotFound.into()),
            Err(WorkspaceError::TooLarge) => Err(std::io::ErrorKind::FileTooLarge.into()),
            Err(error) => Err(std::io::Error::other(error)),
            Ok(bytes) => Ok(bytes),
        };
        artifact::from_bytes(relative.clone(), Some(self.dir.join(relative)), bytes)
    }

    /// A path below the root.
    ///
    /// # Errors
    /// If it leads out, or into a directory of state.
    pub(crate) fn path(&self, requested: &Path) -> Result<PathBuf, Error> {
        let relative = self.relative(requested)?;
        // Only a path that leads out is refused here, not other failures of reading, such as a directory.
        match self.read(&relative) {
            Err(WorkspaceError::Outside) => Err(self.outside_error(requested)),
            _ => Ok(self.dir.join(relative)),
        }
    }

    /// A manifest below the root, or the directory that holds one, and the workspace in which its refs resolve.
    pub(crate) fn manifest(
        &self,
        environment: &Environment,
        requested: &Path,
    ) -> Result<(PathBuf, PathBuf), Error> {
        let path = self.path(requested)?;
        let file = match path.is_dir() {
            true => path.join(Doctype::Assembly.file_name().unwrap_or_default()),
            false => path.clone(),
        };
        let found = find_root(environment, None, &search_start(environment, &file));
        let root = if found.starts_with(&self.dir) { found } else { self.dir.clone() };
        Ok((path, root))
    }

    /// Refuses files in a directory of state, whether by name or by a link.
    fn ensure_no_state(&self, relative: &str, requested: &Path) -> Result<(), Error> {
        let target = disk::canonical_or_new(&self.dir.join(relative));
        let root = disk::canonical_or_new(&self.dir);
        let below = target.strip_prefix(&root).unwrap_or(Path::new(""));
        let names = Path::new(relative).components().chain(below.components());
        match names.into_iter().any(|part| is_state(&part.as_os_str().to_string_lossy())) {
            false => Ok(()),
            true => {
                let body = Body::new(format!(
                    "{} is in a directory that holds the state of a program",
                    requested.display()
                ));
                let help = "pass a file outside of `.quorate` and `.git`";
                Err(Error::configuration(codes::PATH_RESERVED, body.help(help)))
            }
        }
    }

    fn read(&self, relative: &str) -> Result<Vec<u8>, WorkspaceError> {
        let relative = if relative.is_empty() { "." } else { relative };
        let folder = files::Root::open(&self.dir).map_err(WorkspaceError::Unreadable)?;
        folder.read_regular(Path::new(relative), artifact::MAX_BYTES)
    }

    /// The path relative to the root, with `/`; `..` is resolved by name, without the file system.
    fn relative(&self, requested: &Path) -> Result<String, Error> {
        let path = requested.strip_prefix(&self.dir).unwrap_or(requested);
        let mut names: Vec<&str> = Vec::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => {
                    names.push(name.to_str().ok_or_else(|| self.outside_error(requested))?)
                }
                Component::ParentDir => drop(names.pop().ok_or_else(|| self.outside_error(requested))?),
                Component::RootDir | Component::Prefix(_) => return Err(self.outside_error(requested)),
            }
        }
        let relative = names.join("/");
        self.ensure_no_state(&relative, requested)?;
        Ok(relative)
    }

    fn outside_error(&self, path: &Path) -> Error {
        let body = Body::new(format!("{} leads out of the served workspace", path.display()));
        Error::configuration(codes::PATH_OUTSIDE, body.help("pass a path below the root, relative to it"))
    }
}

/// Whether a name is `.quorate` or `.git` to any file system: ignores case, the trailing dots and blanks that Windows
/// drops, and the invisible characters that macOS drops.
fn is_state(name: &str) -> bool {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    let name = visible.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    STATE.iter().any(|state| name.eq_ignore_ascii_case(state))
}

#[cfg(test)]
mod root_tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn place() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["root/in", "out"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["root/in/draft.md", "out/secret.md", "out/ASSEMBLY.md"] {
            std::fs::write(dir.path().join(file), "text").unwrap();
        }
        let root = Root::open(dir.path().join("root")).unwrap();
        (dir, root)
    }

    #[test]
    fn what_lies_below_is_read_however_it_is_written() {
        let (dir, root) = place();
        for path in ["in/draft.md", "./in/draft.md", "in/../in/draft.md"] {
            let artifact = root.artifact(Path::new(path)).unwrap();
            assert_eq!((&*artifact.display_name, &*artifact.text), ("in/draft.md", "text"), "{path}");
        }
        assert!(root.artifact(&dir.path().join("root/in/draft.md")).is_ok());
        let missing = root.artifact(Path::new("in/none.md")).unwrap_err();
        assert!(missing.first_message().contains("does not exist"), "{}", missing.first_message());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_else_is() {
        let (dir, root) = place();
        let link = |at: &str, to: &str| {
            std::os::unix::fs::symlink(dir.path().join(to), dir.path().join("root").join(at)).unwrap();
        };
        link("file.md", "out/secret.md");
        link("folder", "out");
        let absolute = dir.path().join("out/secret.md");
        for path in
            ["../out/secret.md", "in/../../out/secret.md", "file.md", "folder/secret.md", "/etc/hosts"]
        {
            let error = root.artifact(Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{path}");
        }
        assert!(root.artifact(&absolute).is_err());
        let environment = Environment::new(root.dir());
        for path in ["../out", "folder", "folder/ASSEMBLY.md"] {
            let error = root.manifest(&environment, Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_OUTSIDE, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn no_draft_is_read_from_a_directory_of_state() {
        let (dir, root) = place();
        for folder in [".quorate", ".git", ".Quorate/keys", "in/.git"] {
            std::fs::create_dir_all(dir.path().join("root").join(folder)).unwrap();
        }
        for file in
            [".quorate/note.md", ".git/config", ".Quorate/keys/note.md", "in/.git/config", ".github.md"]
        {
            std::fs::write(dir.path().join("root").join(file), "text").unwrap();
        }
        let link = |at: &str, to: &str| std::os::unix::fs::symlink(to, root.dir().join(at)).unwrap();
        link("innocent.md", ".git/config");
        link("folder", ".quorate");
        for path in [
            ".git/config",
            "./.git/config",
            "in/../.git/config",
            "in/.git/config",
            ".GIT/config",
            ".git./config",
            ".g\u{200c}it/config",
            "GIT~1/config",
            ".quorate/note.md",
            ".Quorate/keys/note.md",
            ".quorate/none.md",
            "innocent.md",
            "folder/note.md",
        ] {
            let error = root.artifact(Path::new(path)).unwrap_err();
            assert_eq!(error.report.refusals[0].code, codes::PATH_RESERVED, "{path}");
        }
        let environment = Environment::new(root.dir());
        assert!(root.manifest(&environment, Path::new("folder")).is_err());
        assert!(root.artifact(Path::new(".github.md")).is_ok());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the workspaces are made here, and races end after a time")]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use quorate_manifest::workspace::EntryKind;
    use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

    use super::*;

    const INSIDE: &str = "inside";
    const OUTSIDE: &str = "outside";

    /// A folder with a workspace in `ws/`, and beside it files that must stay unreadable.
    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Place {
            let place = Place { dir: tempfile::tempdir().unwrap() };
            place.file("ws/note.md", INSIDE);
            place.file("ws/folder/note.md", INSIDE);
            place.file("ws/tenants/acme/note.md", INSIDE);
            place.file("ws/tenants/acme/folder/note.md", INSIDE);
            place.file("ws/tenants/other/note.md", OUTSIDE);
            place.file("beside/note.md", OUTSIDE);
            place.file("note.md", OUTSIDE);
            place
        }

        fn path(&self, path: &str) -> PathBuf {
            self.dir.path().join(path)
        }

        fn file(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, target: impl AsRef<Path>) {
            symlink(target, self.path(path)).unwrap();
        }

        fn open(&self) -> Confined {
            Confined::open(&self.path("ws")).unwrap()
        }

        fn kinds(&self, path: &str) -> BTreeMap<String, EntryKind> {
            let listed = self.open().list(&at(path)).unwrap();
            listed.into_iter().map(|entry| (entry.name, entry.kind)).collect()
        }
    }

    /// A path's location; that of a tenant's own folder is in the tenant.
    fn at(path: &str) -> WorkspacePath {
        match path.trim_end_matches('/').strip_prefix("tenants/") {
            Some(slug) if !slug.contains('/') => {
                WorkspacePath::in_scope(&Scope::Tenant(slug.into()), "").unwrap()
            }
            _ => WorkspacePath::new(path).unwrap(),
        }
    }

    /// A path that no text can produce: [`Spot`] removes what leads out, and these tests check the reader without it.
    fn raw(scope: &Scope, path: &str) -> WorkspacePath {
        WorkspacePath::in_scope(scope, "").unwrap().child(path)
    }

    #[track_caller]
    fn leads_out(workspace: &Confined, location: &WorkspacePath) {
        let read = workspace.read(location);
        assert!(matches!(read, Err(WorkspaceError::Outside)), "reading {location}: {read:?}");
        let listed = workspace.list(location);
        assert!(matches!(listed, Err(WorkspaceError::Outside)), "listing {location}: {listed:?}");
    }

    #[track_caller]
    fn is_inside(workspace: &Confined, path: &str) {
        let read = workspace.read(&at(path));
        assert!(matches!(&read, Ok(bytes) if bytes == INSIDE.as_bytes()), "reading {path}: {read:?}");
    }

    #[test]
    fn what_is_there_is_read_and_listed() {
        let place = Place::new();
        place.file("ws/empty.md", "");
        let workspace = place.open();
        is_inside(&workspace, "note.md");
        is_inside(&workspace, "tenants/acme/folder/note.md");
        assert_eq!(workspace.read(&at("empty.md")).unwrap(), b"");
        let kinds = [
            ("empty.md".to_owned(), EntryKind::File),
            ("folder".to_owned(), EntryKind::Directory),
            ("note.md".to_owned(), EntryKind::File),
            ("tenants".to_owned(), EntryKind::Directory),
        ];
        assert_eq!(place.kinds(""), BTreeMap::from(kinds));
        assert_eq!(place.kinds("tenants/acme").into_keys().collect::<Vec<_>>(), ["folder", "note.md"]);
    }

    #[test]
    fn what_is_not_there_is_missing() {
        let place = Place::new();
        let workspace = place.open();
        for path in ["no.md", "no/note.md", "note.md/no.md", "tenants/no/note.md", "tenants/acme/no.md"] {
            assert!(matches!(workspace.read(&at(path)), Err(WorkspaceError::Missing)), "{path}");
            assert!(matches!(workspace.list(&at(path)), Err(WorkspaceError::Missing)), "{path}");
        }
        assert!(matches!(workspace.list(&at("note.md")), Err(WorkspaceError::Missing)));
        assert!(matches!(workspace.read(&at("folder")), Err(WorkspaceError::Unreadable(_))));
        assert!(matches!(workspace.read(&at("")), Err(WorkspaceError::Unreadable(_))));
        assert_eq!(
            Confined::open(Path::new("no/such/workspace")).unwrap_err().kind(),
            std::io::ErrorKind::NotFound
        );
    }

    #[test]
    fn parents_and_absolute_paths_lead_out() {
        let place = Place::new();
        let workspace = place.open();
        let absolute = place.path("ws/note.md");
        for scope in [Scope::Workspace, Scope::Tenant("acme".into())] {
            for path in ["..", "../note.md", "folder/../../note.md", "/", absolute.to_str().unwrap()] {
                leads_out(&workspace, &raw(&scope, path));
            }
        }
        leads_out(&workspace, &raw(&Scope::Tenant("acme".into()), "../other/note.md"));
    }

    #[test]
    fn a_symlink_that_leads_out_is_not_followed() {
        let place = Place::new();
        for (scope, up) in [("ws", ".."), ("ws/tenants/acme", "../../..")] {
            place.link(&format!("{scope}/absolute"), place.path("beside/note.md"));
            place.link(&format!("{scope}/absolute-but-inside"), place.path(scope).join("note.md"));
            place.link(&format!("{scope}/root"), "/");
            place.link(&format!("{scope}/file"), format!("{up}/beside/note.md"));
            place.link(&format!("{scope}/directory"), format!("{up}/beside"));
            place.link(&format!("{scope}/nowhere"), format!("{up}/beside/no.md"));
            place.link(&format!("{scope}/chain"), "folder/chain");
            place.link(&format!("{scope}/folder/chain"), "../file");
            let parent = format!("../{}", Path::new(scope).file_name().unwrap().to_str().unwrap());
            place.link(&format!("{scope}/out-and-back"), format!("{parent}/note.md"));
        }
        let workspace = place.open();
        for scope in ["", "tenants/acme/"] {
            let kinds = place.kinds(scope);
            for name in [
                "absolute",
                "absolute-but-inside",
                "root",
                "file",
                "directory",
                "nowhere",
                "chain",
                "out-and-back",
                "folder/chain",
            ] {
                leads_out(&workspace, &at(&format!("{scope}{name}")));
                assert_eq!(*kinds.get(name).unwrap_or(&EntryKind::Other), EntryKind::Other, "{name}");
            }
            leads_out(&workspace, &at(&format!("{scope}directory/note.md")));
            leads_out(&workspace, &at(&format!("{scope}directory/no.md")));
        }
    }

    #[test]
    fn a_tenant_sees_neither_another_nor_the_workspace() {
        let place = Place::new();
        place.link("ws/tenants/acme/other", "../other");
        place.link("ws/tenants/acme/other.md", "../other/note.md");
        place.link("ws/tenants/acme/workspace.md", "../../note.md");
        place.link("ws/into.md", "tenants/acme/note.md");
        let workspace = place.open();
        for path in ["other", "other/note.md", "other.md", "workspace.md"] {
            leads_out(&workspace, &at(&format!("tenants/acme/{path}")));
        }
        let kinds = place.kinds("tenants/acme");
        assert!(["other", "other.md", "workspace.md"].iter().all(|name| kinds[*name] == EntryKind::Other));
        // The workspace holds its tenants, so this stays inside.
        is_inside(&workspace, "into.md");
    }

    #[test]
    fn a_tenants_folder_is_no_symlink() {
        let place = Place::new();
        place.link("ws/tenants/neighbour", "acme");
        place.link("ws/tenants/above", "../folder");
        place.link("ws/tenants/beside", "../../beside");
        place.link("ws/tenants/absolute", place.path("beside"));
        place.link("ws/tenants/nowhere", "no");
        place.file("ws/tenants/file", INSIDE);
        let workspace = place.open();
        for slug in ["neighbour", "above", "beside", "absolute", "nowhere"] {
            leads_out(&workspace, &at(&format!("tenants/{slug}")));
            leads_out(&workspace, &at(&format!("tenants/{slug}/note.md")));
        }
        assert!(matches!(workspace.read(&at("tenants/file/note.md")), Err(WorkspaceError::Missing)));
        for slug in ["", ".", "..", "../beside", "acme/folder", "acme/", "/", "neighbour/"] {
            leads_out(&workspace, &raw(&Scope::Tenant(slug.into()), "note.md"));
        }
    }

    #[test]
    fn a_folder_of_tenants_outside_is_not_followed() {
        let place = Place::new();
        std::fs::rename(place.path("ws/tenants"), place.path("tenants")).unwrap();
        place.link("ws/tenants", "../tenants");
        leads_out(&place.open(), &at("tenants/acme/note.md"));
    }

    #[test]
    fn a_symlink_that_stays_inside_is_followed() {
        let place = Place::new();
        for scope in ["ws", "ws/tenants/acme"] {
            place.link(&format!("{scope}/link.md"), "note.md");
            place.link(&format!("{scope}/linked"), "folder");
            place.link(&format!("{scope}/folder/up.md"), "../note.md");
            place.link(&format!("{scope}/chain.md"), "linked/up.md");
        }
        let workspace = place.open();
        for scope in ["", "tenants/acme/"] {
            for path in ["link.md", "linked/note.md", "folder/up.md", "linked/up.md", "chain.md"] {
                is_inside(&workspace, &format!("{scope}{path}"));
            }
            let kinds = place.kinds(scope);
            assert_eq!((kinds["link.md"], kinds["linked"]), (EntryKind::File, EntryKind::Directory));
            assert_eq!(kinds["chain.md"], EntryKind::File);
            let linked = place.kinds(&format!("{scope}linked"));
            assert_eq!((linked["note.md"], linked["up.md"]), (EntryKind::File, EntryKind::File));
        }
    }

    #[test]
    fn a_loop_and_a_link_to_nowhere_are_other() {
        let place = Place::new();
        place.link("ws/dangling", "no");
        place.link("ws/one", "two");
        place.link("ws/two", "one");
        let workspace = place.open();
        assert!(matches!(workspace.read(&at("dangling")), Err(WorkspaceError::Missing)));
        assert!(matches!(workspace.read(&at("one")), Err(WorkspaceError::Unreadable(_))));
        assert!(matches!(workspace.list(&at("one")), Err(WorkspaceError::Unreadable(_))));
        let kinds = place.kinds("");
        assert!(["dangling", "one", "two"].iter().all(|name| kinds[*name] == EntryKind::Other));
    }

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let place = Place::new();
        mknodat(CWD, place.path("ws/fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path("ws/socket")).unwrap();
        place.link("ws/link", "fifo");
        let kinds = place.kinds("");
        assert!(["fifo", "socket", "link"].iter().all(|name| kinds[*name] == EntryKind::Other));
        let workspace = place.open();
        let (send, received) = mpsc::channel();
        // The thread is not joined: if it waits, it waits forever.
        std::thread::spawn(move || {
            let all = ["fifo", "socket", "link"].map(|path| workspace.read(&at(path)));
            send.send(all).unwrap();
        });
        let all = received.recv_timeout(Duration::from_secs(20)).expect("an answer without waiting");
        assert!(all.iter().all(|read| matches!(read, Err(WorkspaceError::Unreadable(_)))), "{all:?}");
    }

    #[test]
    fn what_is_longer_than_the_limit_is_not_read() {
        let place = Place::new();
        place.file("ws/full", vec![b'a'; MAX_BYTES]);
        place.file("ws/over", vec![b'a'; MAX_BYTES + 1]);
        std::fs::File::create(place.path("ws/huge")).unwrap().set_len(1 << 40).unwrap();
        let workspace = place.open();
        assert_eq!(workspace.read(&at("full")).unwrap().len(), MAX_BYTES);
        assert!(matches!(workspace.read(&at("over")), Err(WorkspaceError::TooLarge)));
        assert!(matches!(workspace.read(&at("huge")), Err(WorkspaceError::TooLarge)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_name_that_no_ref_can_name_is_left_out() {
        use std::os::unix::ffi::OsStrExt as _;
        let place = Place::new();
        std::fs::write(place.path("ws/folder").join(std::ffi::OsStr::from_bytes(b"n\xffte.md")), INSIDE)
            .unwrap();
        place.file("ws/folder/n\u{f6}te.md", INSIDE);
        assert_eq!(place.kinds("folder").into_keys().collect::<Vec<_>>(), ["note.md", "n\u{f6}te.md"]);
    }

    /// Exchanges two paths thousands of times while `look` looks, and then calls it once in each state. Starts and ends
    /// in the state in which `look` finds the inside; in the other state, `look` must find nothing.
    fn race(one: &Path, two: &Path, look: impl Fn() -> Option<bool> + Sync) {
        const SWAPS: usize = 20_000;
        let swap = || renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).unwrap();
        let done = AtomicBool::new(false);
        let until = Instant::now() + Duration::from_millis(150);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in (0..SWAPS).take_while(|_| Instant::now() < until) {
                    swap();
                    swap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                assert_ne!(look(), Some(false), "a file outside was read");
            }
        });
        assert_eq!(look(), Some(true));
        swap();
        assert_eq!(look(), None);
    }

    /// Whether the read bytes are those of the inside; `None` if nothing was read.
    fn seen(read: Result<Vec<u8>, WorkspaceError>) -> Option<bool> {
        read.ok().map(|bytes| bytes == INSIDE.as_bytes())
    }

    #[test]
    fn a_link_that_is_swapped_shows_nothing_outside() {
        let place = Place::new();
        place.link("ws/link.md", "note.md");
        place.link("ws/spare.md", "../beside/note.md");
        let workspace = place.open();
        let (one, two) = (place.path("ws/link.md"), place.path("ws/spare.md"));
        race(&one, &two, || seen(workspace.read(&at("link.md"))));
    }

    #[test]
    fn a_directory_that_is_swapped_for_a_link_shows_nothing_outside() {
        let place = Place::new();
        place.link("ws/spare", "../beside");
        let workspace = place.open();
        let (one, two) = (place.path("ws/folder"), place.path("ws/spare"));
        race(&one, &two, || seen(workspace.read(&at("folder/note.md"))));
    }

    #[test]
    fn a_listing_of_a_directory_that_is_swapped_shows_nothing_outside() {
        let place = Place::new();
        place.file("beside/secret.md", OUTSIDE);
        place.link("ws/spare", "../beside");
        let workspace = place.open();
        let (one, two) = (place.path("ws/folder"), place.path("ws/spare"));
        race(&one, &two, || {
            let listed = workspace.list(&at("folder")).ok()?;
            Some(listed == [DirEntry { name: "note.md".into(), kind: EntryKind::File }])
        });
    }

    #[test]
    fn a_tenant_that_is_swapped_for_a_link_shows_nothing_outside() {
        let place = Place::new();
        place.link("ws/tenants/spare", "other");
        let (one, two) = (place.path("ws/tenants/acme"), place.path("ws/tenants/spare"));
        // Opened again each time: a folder that is held open is not looked up by name again.
        race(&one, &two, || seen(place.open().read(&at("tenants/acme/note.md"))));
    }

    #[test]
    fn a_directory_that_is_moved_away_is_not_followed() {
        // The link's last two steps up end outside if they are resolved below `away/`; the many steps before them give
        // the directory time to move there.
        let place = Place::new();
        place.file("away/note.md", OUTSIDE);
        place.file("away/a/deep/note.md", OUTSIDE);
        place.file("ws/a/deep/note.md", INSIDE);
        place.link("ws/a/deep/up.md", format!("{}../../note.md", "../deep/".repeat(100)));
        let workspace = place.open();
        let (one, two) = (place.path("ws/a/deep"), place.path("away/a/deep"));
        race(&one, &two, || seen(workspace.read(&at("a/deep/up.md"))));
    }
}
