//! A profile that is an archive: tar, gzipped tar or zip, told apart by their first bytes. It is read once into memory,
//! within limits that hold before anything is taken in; nothing is unpacked onto the disk. An entry that leads out, a
//! link and anything that is neither file nor folder refuse the whole archive, by name.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use quorate_kernel::ports::provisioning::{MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES};

use super::folder::too_large;
use super::{FileSource, MANIFEST_NAME, OpenError, ReadError, check_relative_path};
use crate::regular_file;

/// How many entries an archive may have, folders included.
const MAX_ENTRIES: usize = 4 * MAX_FILES;

/// How many bytes may come out of an archive: its files, and what the format puts around them.
const MAX_UNPACKED_BYTES: u64 = MAX_PACKAGE_BYTES + (MAX_PACKAGE_BYTES / 2);

/// An archive in memory.
pub(super) struct Archive {
    files: BTreeMap<String, Vec<u8>>,
    /// The one folder that everything lies in, with its `/`; empty where the manifest is at the top.
    root_folder: String,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Archive, OpenError> {
        let unreadable = OpenError::Unreadable;
        let mut bytes = Vec::new();
        let file = regular_file::open(path).map_err(unreadable)?;
        BufReader::new(file).take(MAX_PACKAGE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_PACKAGE_BYTES {
            return Err(OpenError::Refused(format!(
                "the archive is larger than {} MiB",
                MAX_PACKAGE_BYTES >> 20
            )));
        }
        let files = if bytes.starts_with(&[0x1f, 0x8b]) {
            tar(MultiGzDecoder::new(&bytes[..]).take(MAX_UNPACKED_BYTES))
        } else if bytes.starts_with(b"PK") {
            zip(&bytes)
        } else if bytes.get(257..262) == Some(&b"ustar"[..]) {
            tar(&bytes[..])
        } else {
            Err("it is no archive that can be read: .tar, .tar.gz, .tgz and .zip are".to_owned())
        };
        let files = files.map_err(OpenError::Refused)?;
        let root_folder = root_folder(&files);
        Ok(Archive { files, root_folder })
    }
}

/// Archives usually hold the folder that they were made of, and those of npm one that is called `package`.
fn root_folder(files: &BTreeMap<String, Vec<u8>>) -> String {
    let one =
        files.keys().next().and_then(|path| path.split_once('/')).map(|(folder, _)| format!("{folder}/"));
    one.filter(|top| {
        files.contains_key(&format!("{top}{MANIFEST_NAME}")) && files.keys().all(|path| path.starts_with(top))
    })
    .unwrap_or_default()
}

impl FileSource for Archive {
    fn has_folder(&self, name: &str) -> bool {
        let start = format!("{}{name}/", self.root_folder);
        self.files.range(start.clone()..).next().is_some_and(|(path, _)| path.starts_with(&start))
    }

    fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let bytes = self.files.get(&format!("{}{path}", self.root_folder)).ok_or(ReadError::Missing)?;
        if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes.clone()) }
    }
}

/// What has been taken in so far.
#[derive(Default)]
struct Extractor {
    files: BTreeMap<String, Vec<u8>>,
    entries: usize,
    bytes: u64,
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    File,
    Folder,
    Link,
    Other,
}

impl Extractor {
    fn add_entry(&mut self, name: &str, entry: Entry, size: u64, content: impl Read) -> Result<(), String> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(format!("the archive has more than {MAX_ENTRIES} entries"));
        }
        let path = check_relative_path(name).map_err(|why| format!("the entry {why}"))?;
        match entry {
            Entry::Folder => return Ok(()),
            Entry::Link => return Err(format!("the entry `{path}` is a link, and profiles have none")),
            Entry::Other => return Err(format!("the entry `{path}` is neither a file nor a folder")),
            Entry::File => {}
        }
        if size > MAX_FILE_BYTES {
            return Err(format!("the entry `{path}` is larger than {} MiB", MAX_FILE_BYTES >> 20));
        }
        let mut bytes = Vec::new();
        // What a header says of a size is not to be trusted, so the reading is bounded besides.
        content
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("the entry `{path}` cannot be read: {error}"))?;
        self.bytes += bytes.len() as u64;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("the entry `{path}` is larger than {} MiB", MAX_FILE_BYTES >> 20));
        }
        if self.bytes > MAX_PACKAGE_BYTES {
            return Err(format!(
                "the archive's files have more than {} MiB together",
                MAX_PACKAGE_BYTES >> 20
            ));
        }
        match self.files.insert(path.clone(), bytes) {
            None => Ok(()),
            Some(_) => Err(format!("the entry `{path}` is there twice")),
        }
    }
}

fn tar(reader: impl Read) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let broken = |error: io::Error| format!("the archive cannot be read: {error}");
    let mut taken = Extractor::default();
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let kind = match () {
            () if kind.is_file() || kind.is_contiguous() => Entry::File,
            () if kind.is_dir() => Entry::Folder,
            () if kind.is_symlink() || kind.is_hard_link() => Entry::Link,
            // Archives of git begin with one; it says something about the archive and is nothing in it.
            () if kind.is_pax_global_extensions() => continue,
            () => Entry::Other,
        };
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|_| "the name of an entry is not UTF-8".to_owned())?;
        let size = entry.size();
        taken.add_entry(&name, kind, size, entry)?;
    }
    Ok(taken.files)
}

fn zip(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let broken = |error: zip::result::ZipError| format!("the archive cannot be read: {error}");
    let mut taken = Extractor::default();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    for at in 0..archive.len() {
        let entry = archive.by_index(at).map_err(broken)?;
        let kind = match () {
            () if entry.is_symlink() => Entry::Link,
            () if entry.is_dir() => Entry::Folder,
            () => Entry::File,
        };
        let name = std::str::from_utf8(entry.name_raw());
        let name = name.map_err(|_| "the name of an entry is not UTF-8".to_owned())?.to_owned();
        let size = entry.size();
        taken.add_entry(&name, kind, size, entry)?;
    }
    Ok(taken.files)
}
