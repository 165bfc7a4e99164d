//! Files in memory: as a source for loaders that take paths, and as a workspace.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use quorate_manifest::source;
use quorate_manifest::workspace::{self, DirEntry, EntryKind, WorkspacePath};
use quorate_manifest::{Source, Workspace};

/// A source and a workspace with given files. As a source it compares paths without `.` and with `..` resolved; as a
/// workspace it contains only paths inside of it.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Content>,
    workspace: workspace::Memory,
}

/// The content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    Unreadable,
    /// A link that leads out of its scope.
    Outside,
    Folder,
}

impl Memory {
    pub fn new() -> Self {
        Memory::default()
    }

    /// Adds content, replacing what the path had.
    pub fn put(&mut self, path: impl AsRef<Path>, content: Content) {
        let path = normalize(path.as_ref());
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if let (true, Some(name)) = (is_inside, path.to_str()) {
            let bytes = if let Content::Bytes(bytes) = &content { bytes.clone() } else { Vec::new() };
            self.workspace = std::mem::take(&mut self.workspace).with(name, bytes);
        }
        self.files.insert(path, content);
    }

    fn at(&self, path: &WorkspacePath) -> Option<&Content> {
        self.files.get(Path::new(&path.workspace_relative()))
    }
}

impl Source for Memory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, source::Error> {
        match self.files.get(&normalize(path)) {
            Some(Content::Bytes(bytes)) => Ok(bytes.clone()),
            Some(_) => Err(source::Error::Unreadable(denied())),
            None => Err(source::Error::Missing),
        }
    }
}

impl Workspace for Memory {
    fn read(&self, path: &WorkspacePath) -> Result<Vec<u8>, workspace::Error> {
        match self.at(path) {
            Some(Content::Unreadable) => Err(workspace::Error::Unreadable(denied())),
            Some(Content::Outside) => Err(workspace::Error::Outside),
            Some(Content::Folder) => Err(workspace::Error::Unreadable(io::ErrorKind::IsADirectory.into())),
            Some(Content::Bytes(_)) | None => self.workspace.read(path),
        }
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<DirEntry>, workspace::Error> {
        if self.at(path) == Some(&Content::Folder) {
            return Ok(Vec::new());
        }
        let mut entries = self.workspace.list(path)?;
        for entry in &mut entries {
            match self.at(&path.child(&entry.name)) {
                Some(Content::Outside) => entry.kind = EntryKind::Other,
                Some(Content::Folder) => entry.kind = EntryKind::Directory,
                _ => {}
            }
        }
        Ok(entries)
    }
}

fn denied() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "permission denied")
}

fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            component => plain.push(component),
        }
    }
    plain
}
