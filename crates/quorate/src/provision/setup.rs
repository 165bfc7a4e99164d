//! The setup files: the record of each profile's installed files in a folder, with backups of the earlier ones. They make
//! drift visible and uninstalling exact.
//!
//! They are in the folder's `.quorate/provisioned/`: `<slug>.json`, with the slug's bytes other than `a-z`, `0-9`, `_` and
//! `-` as `%XX`, so that no two slugs share a file. A folder of the same name has contents by their SHA-256: `before/` the
//! backups, `installed/` the installed contents. The file is written before the first change, with the state `installing`
//! or `removing`, and again after the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{Destination, Strategy};
use serde::{Deserialize, Serialize};

use super::target::{Access, FileContent, Step, Target};
use crate::error::Error;

/// The program's own folder.
pub(super) const PROGRAM_DIR: &str = ".quorate";

/// The folder of the setups.
pub(super) const SETUPS_DIR: &str = ".quorate/provisioned";

/// The folder of replaced contents.
pub(super) const ASIDE_DIR: &str = ".quorate/aside";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The installation of a profile in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setup {
    v: u32,
    pub slug: String,
    pub version: String,
    /// The source of the profile, as the user named it.
    pub from: String,
    /// The time of the last install, also of an interrupted one.
    pub at: String,
    pub state: State,
    /// The created folders, sorted.
    pub folders: Vec<String>,
    /// The files, by path.
    pub files: BTreeMap<String, Entry>,
}

/// Whether an install or uninstall is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// An install has begun.
    Installing,
    /// Everything is installed.
    Installed,
    /// An uninstall has begun.
    Removing,
}

/// A file of a setup. Unknown keys are refused: they may describe a change that was interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub installed: Record,
}

/// How a file was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// How it combined with the earlier file.
    pub strategy: Strategy,
    /// The hash of the profile's own content.
    pub source: String,
    /// The content without the profile; `None` for no file.
    pub base: Option<StoredContent>,
    /// The hash of the written content.
    pub text: String,
    /// The position among the profiles of this file: a later one has a greater number.
    #[serde(default)]
    pub layer: u32,
    /// While the state is `installing`: the hash of the content that the install finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// A content in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredContent {
    pub sha256: String,
    /// The permissions of the file that had it.
    pub mode: u32,
}

impl Setup {
    pub(super) fn new(slug: &str) -> Setup {
        Setup {
            v: VERSION,
            slug: slug.to_owned(),
            version: String::new(),
            from: String::new(),
            at: String::new(),
            state: State::Installed,
            folders: Vec::new(),
            files: BTreeMap::new(),
        }
    }

    pub(super) fn record(&self, dest: &str) -> Option<&Record> {
        self.files.get(dest).map(|entry| &entry.installed)
    }

    /// Whether an interrupted command has not changed a file with this hash.
    pub(super) fn is_pending(&self, record: &Record, found: &str) -> bool {
        let base = record.base.as_ref().map(|base| base.sha256.as_str());
        self.state != State::Installed && [record.found.as_deref(), base].contains(&Some(found))
    }

    /// The path of the file.
    pub(super) fn path(&self) -> String {
        format!("{SETUPS_DIR}/{}.json", file_stem(&self.slug))
    }

    /// The folder of the contents.
    pub(super) fn contents_dir(&self) -> String {
        format!("{SETUPS_DIR}/{}", file_stem(&self.slug))
    }

    /// Writes the file.
    pub(super) fn save(&self) -> Step {
        let mut text = serde_json::to_string_pretty(self).expect("a setup is JSON");
        text.push('\n');
        Step::Write(self.path(), text.into_bytes().into(), Access::Private)
    }

    /// Writes a content.
    pub(super) fn store(&self, kind: ContentKind, bytes: &Arc<[u8]>) -> Step {
        Step::Write(self.content_path(kind, &sha256_hex(bytes)), Arc::clone(bytes), Access::Private)
    }

    fn content_path(&self, kind: ContentKind, sha256: &str) -> String {
        format!("{}/{}/{sha256}", self.contents_dir(), kind.folder())
    }

    /// The paths of all contents that the setup names.
    pub(super) fn contents(&self) -> BTreeSet<String> {
        let records = self.files.values().map(|entry| &entry.installed);
        let paths = records.flat_map(|record| {
            let base = record.base.as_ref().map(|base| self.content_path(ContentKind::Before, &base.sha256));
            [Some(self.content_path(ContentKind::Installed, &record.text)), base]
        });
        paths.flatten().collect()
    }
}

/// Whether a content is a backup or an installed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Before,
    Installed,
}

impl ContentKind {
    pub(super) const ALL: [ContentKind; 2] = [ContentKind::Before, ContentKind::Installed];

    pub(super) fn folder(self) -> &'static str {
        match self {
            ContentKind::Before => "before",
            ContentKind::Installed => "installed",
        }
    }
}

/// The setups of a folder, by slug.
pub(super) struct Setups<'t> {
    pub target: &'t Target,
    pub all: Vec<Setup>,
}

impl<'t> Setups<'t> {
    /// Reads the setups of a folder.
    ///
    /// # Errors
    /// If one cannot be read, or is invalid.
    pub(super) fn load(target: &'t Target) -> Result<Setups<'t>, Error> {
        let mut all = Vec::new();
        for name in target.names(SETUPS_DIR)?.iter().filter(|name| name.ends_with(".json")) {
            let path = format!("{SETUPS_DIR}/{name}");
            if let Some(found) = target.read(&path)? {
                all.push(parse(&path, &found.bytes)?);
            }
        }
        all.sort_by(|a: &Setup, b| a.slug.cmp(&b.slug));
        Ok(Setups { target, all })
    }

    pub(super) fn get(&self, slug: &str) -> Option<&Setup> {
        self.all.iter().find(|setup| setup.slug == slug)
    }

    /// The other profiles with a part in a file.
    pub(super) fn others(&self, slug: &str, dest: &str) -> impl Iterator<Item = (&Setup, &Record)> {
        let others = self.all.iter().filter(move |setup| setup.slug != slug);
        others.filter_map(move |setup| Some((setup, setup.record(dest)?)))
    }

    /// The profiles that changed a file after the profile of `record`, the last one first.
    pub(super) fn later(&self, slug: &str, dest: &str, record: &Record) -> Vec<(&Setup, &Record)> {
        let mut later: Vec<_> =
            self.others(slug, dest).filter(|(_, other)| other.layer > record.layer).collect();
        later.sort_by_key(|(_, other)| std::cmp::Reverse(other.layer));
        later
    }

    /// The backup of a file: its content without the profile.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub(super) fn backup(&self, setup: &Setup, record: &Record) -> Result<Option<FileContent>, Error> {
        let Some(StoredContent { sha256, mode }) = &record.base else { return Ok(None) };
        Ok(Some(FileContent { bytes: self.content(setup, ContentKind::Before, sha256)?, mode: *mode }))
    }

    /// The installed content of a file.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub(super) fn installed(&self, setup: &Setup, record: &Record) -> Result<Arc<[u8]>, Error> {
        self.content(setup, ContentKind::Installed, &record.text)
    }

    fn content(&self, setup: &Setup, kind: ContentKind, sha256: &str) -> Result<Arc<[u8]>, Error> {
        let path = setup.content_path(kind, sha256);
        match self.target.read(&path)? {
            Some(found) if sha256_hex(&found.bytes) == sha256 => Ok(found.bytes),
            Some(_) => Err(corrupt(&path, "does not have the hash in its name")),
            None => Err(corrupt(&path, "is missing")),
        }
    }
}

fn parse(path: &str, bytes: &[u8]) -> Result<Setup, Error> {
    let setup: Setup = serde_json::from_slice(bytes)
        .map_err(|error| corrupt(path, &format!("is not a setup ledger: {error}")))?;
    if setup.v != VERSION {
        return Err(corrupt(path, &format!("has format version {}; this program reads {VERSION}", setup.v)));
    }
    if setup.path() != path {
        return Err(corrupt(path, &format!("belongs to another profile, `{}`", setup.slug)));
    }
    let is_path = |dest: &String| Destination::parse(dest).is_ok_and(|read| read.as_str() == *dest);
    if let Some(bad) =
        setup.files.keys().chain(&setup.folders).find(|path| !is_path(path) && *path != PROGRAM_DIR)
    {
        return Err(corrupt(path, &format!("names `{bad}`, which no profile can install")));
    }
    Ok(setup)
}

fn corrupt(path: &str, what: &str) -> Error {
    let help = "restore the file from a copy; `quorate explain setup_corrupt` describes it";
    Error::configuration(codes::SETUP_CORRUPT, Body::new(format!("{path} {what}")).help(help))
}

/// The name of a slug's file, without its extension. No two slugs share a name, even if the file system ignores case.
fn file_stem(slug: &str) -> String {
    let mut name = String::new();
    for byte in slug.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::file_stem;

    #[test]
    fn no_two_slugs_share_a_name() {
        let slugs = ["a/b", "a%2Fb", "a-b", "a_b", "A/b", "a/B", ".a", "a.json", "a"];
        let mut names: Vec<String> = slugs.iter().map(|slug| file_stem(slug).to_lowercase()).collect();
        assert_eq!(file_stem("runtime-profile/standard"), "runtime-profile%2Fstandard");
        assert!(names.iter().all(|name| !name.contains(['/', '.'])));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), slugs.len());
    }
}
