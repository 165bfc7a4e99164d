//! Paths that lead out of a scope are never read, whichever way they lead out and whatever is swapped meanwhile.

#![expect(clippy::disallowed_methods, reason = "the workspaces are made here, and races end after a time")]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

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
    assert!(matches!(read, Err(Error::Outside)), "reading {location}: {read:?}");
    let listed = workspace.list(location);
    assert!(matches!(listed, Err(Error::Outside)), "listing {location}: {listed:?}");
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
        assert!(matches!(workspace.read(&at(path)), Err(Error::Missing)), "{path}");
        assert!(matches!(workspace.list(&at(path)), Err(Error::Missing)), "{path}");
    }
    assert!(matches!(workspace.list(&at("note.md")), Err(Error::Missing)));
    assert!(matches!(workspace.read(&at("folder")), Err(Error::Unreadable(_))));
    assert!(matches!(workspace.read(&at("")), Err(Error::Unreadable(_))));
    assert_eq!(Confined::open(Path::new("no/such/workspace")).unwrap_err().kind(), io::ErrorKind::NotFound);
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
    assert!(matches!(workspace.read(&at("tenants/file/note.md")), Err(Error::Missing)));
    for slug in ["", ".", "..", "../beside", "acme/folder", "acme/", "/", "neighbour/"] {
        leads_out(&workspace, &raw(&Scope::Tenant(slug.into()), "note.md"));
    }
    assert!(workspace.lock_tenants().is_empty());
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
    assert!(matches!(workspace.read(&at("dangling")), Err(Error::Missing)));
    assert!(matches!(workspace.read(&at("one")), Err(Error::Unreadable(_))));
    assert!(matches!(workspace.list(&at("one")), Err(Error::Unreadable(_))));
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
    assert!(all.iter().all(|read| matches!(read, Err(Error::Unreadable(_)))), "{all:?}");
}

#[test]
fn a_refusal_of_the_system_does_not_lead_out() {
    // A file without permissions would not do: tests that run as root may read it.
    let refused = classify_open_error(io::Error::from_raw_os_error(libc::EACCES));
    assert!(matches!(refused, Error::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied));
}

#[test]
fn what_is_longer_than_the_limit_is_not_read() {
    let place = Place::new();
    place.file("ws/full", vec![b'a'; MAX_BYTES]);
    place.file("ws/over", vec![b'a'; MAX_BYTES + 1]);
    std::fs::File::create(place.path("ws/huge")).unwrap().set_len(1 << 40).unwrap();
    let workspace = place.open();
    assert_eq!(workspace.read(&at("full")).unwrap().len(), MAX_BYTES);
    assert!(matches!(workspace.read(&at("over")), Err(Error::TooLarge)));
    assert!(matches!(workspace.read(&at("huge")), Err(Error::TooLarge)));
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_that_no_ref_can_name_is_left_out() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::new();
    std::fs::write(place.path("ws/folder").join(std::ffi::OsStr::from_bytes(b"n\xffte.md")), INSIDE).unwrap();
    place.file("ws/folder/n\u{f6}te.md", INSIDE);
    assert_eq!(place.kinds("folder").into_keys().collect::<Vec<_>>(), ["note.md", "n\u{f6}te.md"]);
}

#[test]
fn only_so_many_tenants_are_held_open() {
    let place = Place::new();
    let paths: Vec<String> = (0..MAX_OPEN_TENANTS * 2 + 1).map(|n| format!("tenants/t{n}/note.md")).collect();
    paths.iter().for_each(|path| place.file(&format!("ws/{path}"), INSIDE));
    let workspace = place.open();
    for path in &paths {
        is_inside(&workspace, path);
        is_inside(&workspace, path);
        assert!(workspace.lock_tenants().len() <= MAX_OPEN_TENANTS);
    }
}

/// Exchanges two paths thousands of times while `look` looks, and then calls it once in each state. Starts and ends in the
/// state in which `look` finds the inside; in the other state, `look` must find nothing.
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
fn seen(read: Result<Vec<u8>, Error>) -> Option<bool> {
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
    // The link's last two steps up end outside if they are resolved below `away/`; the many steps before them give the
    // directory time to move there.
    let place = Place::new();
    place.file("away/note.md", OUTSIDE);
    place.file("away/a/deep/note.md", OUTSIDE);
    place.file("ws/a/deep/note.md", INSIDE);
    place.link("ws/a/deep/up.md", format!("{}../../note.md", "../deep/".repeat(100)));
    let workspace = place.open();
    let (one, two) = (place.path("ws/a/deep"), place.path("away/a/deep"));
    race(&one, &two, || seen(workspace.read(&at("a/deep/up.md"))));
}
