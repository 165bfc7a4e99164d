//! Files in memory: for loaders that go by a path, and as a workspace.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use quorate_manifest::source;
use quorate_manifest::workspace::{self, DirEntry, EntryKind, WorkspacePath};
use quorate_manifest::{Source, Workspace};

/// A source and a workspace that hold what they are given. As a source, paths are compared without `.` and with `..`
/// resolved; as a workspace, only what lies inside is there.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: BTreeMap<PathBuf, Content>,
    workspace: workspace::Memory,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A file that can be read.
    Bytes(Vec<u8>),
    /// A file that cannot be read.
    Unreadable,
    /// A link that leads out of its scope.
    Outside,
    /// A folder with nothing in it.
    Folder,
}

impl Memory {
    pub fn new() -> Self {
        Memory::default()
    }

    /// Adds something, in place of what was there.
    pub fn put(&mut self, path: impl AsRef<Path>, content: Content) {
        let path = normalize(path.as_ref());
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if let (true, Some(name)) = (is_inside, path.to_str()) {
            let bytes = if let Content::Bytes(bytes) = &content { bytes.clone() } else { Vec::new() };
            self.workspace = std::mem::take(&mut self.workspace).with(name, bytes);
        }
        self.files.insert(path, content);
    }

    fn at(&self, spot: &WorkspacePath) -> Option<&Content> {
        self.files.get(Path::new(&spot.workspace_relative()))
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
    fn read(&self, spot: &WorkspacePath) -> Result<Vec<u8>, workspace::Error> {
        match self.at(spot) {
            Some(Content::Unreadable) => Err(workspace::Error::Unreadable(denied())),
            Some(Content::Outside) => Err(workspace::Error::Outside),
            Some(Content::Folder) => Err(workspace::Error::Unreadable(io::ErrorKind::IsADirectory.into())),
            Some(Content::Bytes(_)) | None => self.workspace.read(spot),
        }
    }

    fn list(&self, spot: &WorkspacePath) -> Result<Vec<DirEntry>, workspace::Error> {
        if self.at(spot) == Some(&Content::Folder) {
            return Ok(Vec::new());
        }
        let mut listed = self.workspace.list(spot)?;
        for one in &mut listed {
            match self.at(&spot.child(&one.name)) {
                Some(Content::Outside) => one.kind = EntryKind::Other,
                Some(Content::Folder) => one.kind = EntryKind::Directory,
                _ => {}
            }
        }
        Ok(listed)
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
            other => plain.push(other),
        }
    }
    plain
}
