//! Disk contents that a power failure could leave: everything that was synced, some of the later writes, and the last of
//! those torn at a sector.
//!
//! The disk is as unreliable as its interface allows: writes since a file's last sync may be present in any part and any
//! order; a file's creation, renaming or removal may be lost until its *directory* is synced; a failed sync drops its
//! writes, and a later one does not restore them.

use std::collections::BTreeMap;

use super::Call;
use super::trace::Event;
use crate::rng::Rng;

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
