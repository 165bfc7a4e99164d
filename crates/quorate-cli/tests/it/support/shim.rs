//! Faults of a real process: a small preloaded library (`shim/shim.c`) between a program and its files below one directory.
//! It counts and traces every call, makes a chosen one fail, or ends the process there.
//!
//! `shim/trace.rs` reads the trace, and `shim/image.rs` derives the disk contents that a power failure could leave.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use quorate_testkit::scripted::Rng;

const SOURCE: &str = include_str!("shim/shim.c");

#[derive(Debug, Clone)]
pub struct Shim {
    library: PathBuf,
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    /// Renaming or linking.
    Rename,
    Unlink,
    Mkdir,
    /// Writing to standard output; only traced.
    Out,
    /// Writing to standard error; only traced.
    Err,
    /// A call of a member; a test's own script writes it into the trace.
    Ask,
}

/// The effect on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultAction {
    /// SIGKILL before the call.
    KillBefore,
    /// SIGKILL after the call.
    KillAfter,
    /// Half of the data is written; then SIGKILL.
    KillTorn,
    /// Half of the data is written, and the caller learns it.
    Short,
    Eio,
    Enospc,
    Erofs,
}

/// A fault: a call, and the effect on it. Written `kind:pattern:at:action`, as in `sync:ledger.db-wal:2:EIO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Calls of this kind; `None` for every kind.
    pub call: Option<Call>,
    /// A shell pattern for the path below the directory.
    pub path: String,
    /// The index of the call among those that match, from 0.
    pub at: u64,
    /// Whether the fault also affects all later calls.
    pub and_later: bool,
    pub action: FaultAction,
}

const CALLS: [(Call, &str); 11] = [
    (Call::Open, "open"),
    (Call::Read, "read"),
    (Call::Write, "write"),
    (Call::Sync, "sync"),
    (Call::Truncate, "truncate"),
    (Call::Rename, "rename"),
    (Call::Unlink, "unlink"),
    (Call::Mkdir, "mkdir"),
    (Call::Out, "out"),
    (Call::Err, "err"),
    (Call::Ask, "ask"),
];

const ACTIONS: [(FaultAction, &str); 7] = [
    (FaultAction::KillBefore, "kill-before"),
    (FaultAction::KillAfter, "kill-after"),
    (FaultAction::KillTorn, "kill-torn"),
    (FaultAction::Short, "short"),
    (FaultAction::Eio, "EIO"),
    (FaultAction::Enospc, "ENOSPC"),
    (FaultAction::Erofs, "EROFS"),
];

fn name_of_value<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(candidate, _)| candidate == value).map_or("", |(_, name)| name)
}

fn value_of_name<T: Copy>(names: &[(T, &'static str)], name: &str) -> Option<T> {
    names.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.map_or("any", |call| name_of_value(&CALLS, &call));
        let (ever, action) = (if self.and_later { "+" } else { "" }, name_of_value(&ACTIONS, &self.action));
        write!(f, "{call}:{}:{}{ever}:{action}", self.path, self.at)
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let wrong = || format!("`{text}` is not a fault such as `sync:ledger.db-wal:2:EIO`");
        let parts: Vec<&str> = text.split(':').collect();
        let [call, path, at, action_name] = parts[..] else { return Err(wrong()) };
        let call = match call {
            "any" => None,
            call => Some(value_of_name(&CALLS, call).ok_or_else(wrong)?),
        };
        let and_later = at.ends_with('+');
        let at = at.trim_end_matches('+').parse().map_err(|_| wrong())?;
        let action = value_of_name(&ACTIONS, action_name).ok_or_else(wrong)?;
        Ok(Fault { call, path: path.to_owned(), at, and_later, action })
    }
}

impl Shim {
    /// Builds the library into a directory, unless it exists.
    ///
    /// # Errors
    /// Why it cannot be built: another system than Linux, or no C compiler.
    pub fn build(into: &Path) -> Result<Shim, String> {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return Err("faults of the real process need 64-bit Linux".to_owned());
        }
        let hash = SOURCE.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let library = into.join(format!("quorate-shim-{hash:016x}.so"));
        if library.is_file() {
            return Ok(Shim { library });
        }
        // Concurrent test processes build it under names of their own.
        let temporary = into.join(format!("quorate-shim-{}", std::process::id()));
        let (source, built) = (temporary.with_extension("c"), temporary.with_extension("so"));
        let io_error = |error: std::io::Error| format!("{}: {error}", into.display());
        compile(&source, &built).map_err(io_error)??;
        install(&source, &built, &library).map_err(io_error)?;
        Ok(Shim { library })
    }

    /// Preloads the shim into a command. `dir` is the directory whose files it watches; it need not exist yet.
    pub fn preload(&self, command: &mut Command, dir: &Path) {
        command.env("LD_PRELOAD", &self.library).env("QUORATE_SHIM_DIR", dir);
    }

    /// Traces every call to a file.
    pub fn trace(command: &mut Command, trace: &Path) {
        command.env("QUORATE_SHIM_TRACE", trace);
    }

    pub fn fault(command: &mut Command, fault: &Fault) {
        command.env("QUORATE_SHIM_FAULT", fault.to_string());
    }

    /// Adds to the wall clock from its `at`-th reading on.
    pub fn clock(command: &mut Command, offset_ms: i64, at: u64) {
        command.env("QUORATE_SHIM_CLOCK", format!("{offset_ms}:{at}"));
    }
}

#[expect(clippy::disallowed_methods, reason = "this module starts the C compiler")]
fn compile(source: &Path, built: &Path) -> std::io::Result<Result<(), String>> {
    std::fs::write(source, SOURCE)?;
    let output = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", "-pthread", "-o"])
        .args([built, source])
        .output();
    Ok(match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("cc cannot build the shim: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("cannot run the C compiler: {error}")),
    })
}

#[expect(clippy::disallowed_methods, reason = "this module puts the library in its place")]
fn install(source: &Path, built: &Path, library: &Path) -> std::io::Result<()> {
    std::fs::remove_file(source)?;
    std::fs::rename(built, library)
}

/// A call, or a traced message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub call: Call,
    /// Offset in the file, in bytes; a truncation's new length; 1 if an opening created the file, 2 if it emptied the file;
    /// 1 for a link.
    pub offset: u64,
    /// The system's error number, 0 for success.
    pub error: i32,
    /// Relative to the directory.
    pub path: String,
    /// The written data; a rename's new path; an opened file's inode; for a synced directory a line for each file, with inode
    /// and name.
    pub bytes: Vec<u8>,
}

impl Event {
    /// Whether it succeeded and created a file.
    pub fn created_file(&self) -> bool {
        self.call == Call::Open && self.offset == 1 && self.error == 0
    }
}

/// Reads a trace. An event that a killed process did not write completely is omitted.
///
/// # Errors
/// When the file cannot be read or is not a trace.
#[expect(clippy::disallowed_methods, reason = "this module reads what the shim wrote")]
pub fn read_trace(file: &Path) -> Result<Vec<Event>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (head, length) = head(&rest[..end])
            .ok_or_else(|| format!("{} has an invalid trace at event {}", file.display(), events.len()))?;
        let Some(bytes) = rest.get(end + 1..end + 1 + length) else { break };
        events.push(Event { bytes: bytes.to_owned(), ..head });
        rest = rest.get(end + 2 + length..).unwrap_or_default();
    }
    Ok(events)
}

/// An event without its bytes, and their number.
fn head(line: &[u8]) -> Option<(Event, usize)> {
    let mut parts = std::str::from_utf8(line).ok()?.splitn(5, ' ');
    let call = value_of_name(&CALLS, parts.next()?)?;
    let offset = parts.next()?.parse().ok()?;
    let length = parts.next()?.parse().ok()?;
    let error = parts.next()?.parse().ok()?;
    let path = parts.next()?.to_owned();
    Some((Event { call, offset, error, path, bytes: Vec::new() }, length))
}

const SECTOR: usize = 512;

/// The files below the directory, by path, with their content.
pub type Image = BTreeMap<String, Vec<u8>>;

/// A file's content on disk, and the changes since.
#[derive(Debug, Clone, Default)]
struct File {
    inode: String,
    synced: Vec<u8>,
    since: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// A change of a directory: the path refers to this file from now on, or to none.
#[derive(Debug, Clone)]
struct DirectoryChange {
    path: String,
    file: Option<usize>,
}

#[derive(Debug, Default)]
struct Disk {
    files: Vec<File>,
    /// The file of each path from the view of the process.
    names: BTreeMap<String, usize>,
    /// The file of each path on disk.
    synced: BTreeMap<String, usize>,
    since: Vec<DirectoryChange>,
}

/// The files that may be found after a power failure that follows these events, starting with an empty directory.
pub fn power_loss(events: &[Event], rng: &mut Rng) -> Image {
    let mut disk = Disk::default();
    for event in events {
        disk.apply_event(event, rng);
    }
    disk.into_image(rng)
}

impl Disk {
    fn apply_event(&mut self, event: &Event, rng: &mut Rng) {
        let file = self.names.get(&event.path).copied();
        match (event.call, event.error) {
            (Call::Sync, error) => {
                self.detect_renames(event);
                self.sync(file, &event.path, error == 0, rng);
            }
            (_, 1..) => {}
            (Call::Open, _) if event.created_file() => {
                let inode = String::from_utf8_lossy(&event.bytes).into_owned();
                self.files.push(File { inode, ..File::default() });
                self.name(&event.path, Some(self.files.len() - 1));
            }
            (Call::Open, _) if event.offset == 2 => self.change(file, Change::Length(0)),
            (Call::Write, _) => self.change(file, Change::Write(size(event.offset), event.bytes.clone())),
            (Call::Truncate, _) => self.change(file, Change::Length(size(event.offset))),
            (Call::Unlink, _) => self.name(&event.path, None),
            (Call::Rename, _) => {
                self.name(&String::from_utf8_lossy(&event.bytes), file);
                if event.offset == 0 {
                    self.name(&event.path, None);
                }
            }
            _ => {}
        }
    }

    fn change(&mut self, file: Option<usize>, change: Change) {
        if let Some(file) = file.and_then(|file| self.files.get_mut(file)) {
            file.since.push(change);
        }
    }

    fn name(&mut self, path: &str, file: Option<usize>) {
        match file {
            Some(file) => self.names.insert(path.to_owned(), file),
            None => self.names.remove(path),
        };
        self.since.push(DirectoryChange { path: path.to_owned(), file });
    }

    /// Detects files whose names in a directory differ from the trace.
    fn detect_renames(&mut self, event: &Event) {
        let lines = String::from_utf8_lossy(&event.bytes).into_owned();
        for (inode, name) in lines.lines().filter_map(|line| line.split_once(' ')) {
            let name = if event.path == "." { name.to_owned() } else { format!("{}/{name}", event.path) };
            let Some(file) = self.files.iter().rposition(|file| file.inode == inode) else { continue };
            if self.names.get(&name) == Some(&file) {
                continue;
            }
            let old = self.names.iter().find(|(_, inode)| **inode == file).map(|(old, _)| old.clone());
            if let Some(old) = old {
                self.name(&name, Some(file));
                self.name(&old, None);
            }
        }
    }

    fn sync(&mut self, file: Option<usize>, path: &str, well: bool, rng: &mut Rng) {
        let Some(file) = file.and_then(|file| self.files.get_mut(file)) else {
            if well {
                self.sync_directory(path);
            }
            return;
        };
        match well {
            true => std::mem::take(&mut file.since).iter().for_each(|change| change.apply(&mut file.synced)),
            false => file.since.retain(|_| rng.percent(50)),
        }
    }

    fn sync_directory(&mut self, path: &str) {
        let is_entry_of_dir = |name: &str| name.rsplit_once('/').map_or(".", |(parent, _)| parent) == path;
        let (completed, remaining) =
            std::mem::take(&mut self.since).into_iter().partition(|change| is_entry_of_dir(&change.path));
        self.since = remaining;
        let completed: Vec<DirectoryChange> = completed;
        completed.into_iter().for_each(|change| change.apply(&mut self.synced));
    }

    /// The files on disk, with a random part of what was not synced.
    fn into_image(mut self, rng: &mut Rng) -> Image {
        // A directory's changes reach the disk in their order.
        let written_changes = rng.below(self.since.len() as u64 + 1);
        let mut names = self.synced;
        self.since.into_iter().take(size(written_changes)).for_each(|change| change.apply(&mut names));
        let mut image = Image::new();
        for (path, file) in names {
            // SQLite recreates its shared memory.
            if !path.ends_with("-shm") {
                image.insert(
                    path,
                    self.files.get_mut(file).map(|file| file.surviving_bytes(rng)).unwrap_or_default(),
                );
            }
        }
        image
    }
}

impl DirectoryChange {
    fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self.file {
            Some(file) => names.insert(self.path, file),
            None => names.remove(&self.path),
        };
    }
}

impl File {
    fn surviving_bytes(&mut self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let all = self.since.len() as u64;
        // All, none, the first ones, or any of them.
        let (first, luck) = match rng.below(4) {
            0 => (all, 100),
            1 => (0, 100),
            2 => (rng.below(all + 1), 100),
            _ => (all, rng.below(101)),
        };
        let mut survivors: Vec<&Change> =
            self.since.iter().take(size(first)).filter(|_| rng.percent(luck)).collect();
        let torn = if rng.percent(50) { survivors.pop() } else { None };
        survivors.into_iter().for_each(|change| change.apply(&mut bytes));
        match torn {
            Some(Change::Write(at, written)) => tear_write(&mut bytes, *at, written, rng),
            Some(change) => change.apply(&mut bytes),
            None => {}
        }
        bytes
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(at, written) => write_at(bytes, *at, written),
            Change::Length(length) => bytes.resize(*length, 0),
        }
    }
}

fn write_at(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    let end = at + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(written);
}

/// Writes some sectors; the file still gets its new length.
fn tear_write(bytes: &mut Vec<u8>, at: usize, written: &[u8], rng: &mut Rng) {
    let end = at + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    let mut start = at;
    while start < end {
        let sector_end = ((start / SECTOR + 1) * SECTOR).min(end);
        if rng.percent(50) {
            bytes[start..sector_end].copy_from_slice(&written[start - at..sector_end - at]);
        }
        start = sector_end;
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_it_is_written() {
        for text in ["sync:ledger.db-wal:2:EIO", "any:*:17:kill-torn", "write:live/*:0+:ENOSPC"] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        for text in ["", "sync:*:2", "synk:*:2:EIO", "sync:*:two:EIO", "sync:*:2:EEK"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}

#[cfg(test)]
mod image_tests {
    use super::*;

    fn event(call: Call, path: &str, offset: u64, bytes: &[u8]) -> Event {
        Event { call, offset, error: 0, path: path.to_owned(), bytes: bytes.to_owned() }
    }

    fn images(events: &[Event]) -> Vec<Image> {
        (0..200).map(|seed| power_loss(events, &mut Rng::new(seed))).collect()
    }

    #[test]
    fn what_was_synced_is_found_and_the_rest_may_be() {
        let written = [
            event(Call::Open, "a", 1, b""),
            event(Call::Write, "a", 0, b"one"),
            event(Call::Sync, "a", 0, b""),
        ];
        let found = images(&written);
        assert!(found.iter().any(Image::is_empty), "its directory was not synced");
        assert!(found.iter().flat_map(Image::values).all(|bytes| bytes == b"one"));
        let more = [event(Call::Sync, ".", 0, b""), event(Call::Write, "a", 3, b"two")];
        let found = images(&[&written[..], &more].concat());
        assert!(found.iter().all(|image| image["a"].starts_with(b"one")));
        for end in [&b"one"[..], b"onetwo"] {
            assert!(found.iter().any(|image| image["a"] == end), "{end:?}");
        }
    }

    #[test]
    fn a_sync_that_failed_keeps_no_promise() {
        let failed = Event { error: 5, ..event(Call::Sync, "a", 0, b"") };
        let found = images(&[
            event(Call::Open, "a", 1, b""),
            event(Call::Sync, ".", 0, b""),
            event(Call::Write, "a", 0, b"one"),
            failed,
            event(Call::Sync, "a", 0, b""),
        ]);
        assert!(found.iter().any(|image| image["a"].is_empty()));
        assert!(found.iter().any(|image| image["a"] == b"one"));
    }

    #[test]
    fn a_rename_that_was_not_traced_shows_when_its_directory_is_synced() {
        let mut events = vec![
            event(Call::Open, "keys/.tmp", 1, b"7"),
            event(Call::Write, "keys/.tmp", 0, b"text"),
            event(Call::Sync, "keys/.tmp", 0, b""),
        ];
        assert!(images(&events).iter().all(|image| !image.contains_key("keys/key")));
        events.push(event(Call::Sync, "keys", 0, b"7 key\n"));
        for image in images(&events) {
            assert_eq!(image, Image::from([("keys/key".to_owned(), b"text".to_vec())]));
        }
    }

    #[test]
    fn a_rename_is_whole_or_not_there() {
        let found = images(&[
            event(Call::Open, "new", 1, b""),
            event(Call::Write, "new", 0, b"text"),
            event(Call::Sync, "new", 0, b""),
            event(Call::Sync, ".", 0, b""),
            event(Call::Rename, "new", 0, b"old"),
        ]);
        assert!(found.iter().any(|image| image.contains_key("old")));
        assert!(found.iter().any(|image| image.contains_key("new")));
        assert!(found.iter().flat_map(Image::values).all(|bytes| bytes == b"text"));
    }
}
