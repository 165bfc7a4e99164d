//! The setup ledger: the record of each profile's installed files in a folder. It makes drift visible and uninstalling
//! exact.
//!
//! It is in the folder's `.quorate/provisioned/`: `<slug>.json`, with the slug's bytes other than `a-z`, `0-9`, `_` and
//! `-` as `%XX`, so that no two slugs share a file. A folder of the same name has the contents by their SHA-256: `before/`
//! the earlier contents, `installed/` the installed ones. The file is written with the intent before the first change, and
//! again after the last one. [`Setup::recover`] derives the state after a crash from it and from the existing files.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::provisioning::{Destination, FileMode, MAX_FILE_BYTES, Strategy};
use serde::{Deserialize, Serialize};

use super::files::{Access, FileContent, FileError, TargetFiles};

/// The program's own folder.
pub(super) const PROGRAM_DIR: &str = ".quorate";

/// The folder of the setups.
const SETUPS_DIR: &str = ".quorate/provisioned";

/// The version of the file's format.
const VERSION: u32 = 1;

/// The largest size of the file.
const MAX_SETUP_BYTES: u64 = 16 << 20;

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
    /// The created folders, outer ones first.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The finished installation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub installed: Option<InstallRecord>,
    /// The change in progress.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub intent: Option<Intent>,
}

/// How a file was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InstallRecord {
    /// How it combined with the earlier file.
    pub strategy: Strategy,
    /// Whether the file is executable.
    pub mode: FileMode,
    /// The hash of the profile's own content.
    pub source: String,
    /// The content without the profile; `None` for no file.
    pub base: Option<StoredContent>,
    /// The hash of the written content.
    pub text: String,
    /// For `append`, the hash of the added text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub added: Option<String>,
}

/// A content in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredContent {
    pub sha256: String,
    /// The permissions of the file that had it.
    pub mode: u32,
}

/// The change of a file that is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Intent {
    Put {
        /// The hash of the content before the change.
        from: Option<String>,
        fact: InstallRecord,
    },
    /// Removes the profile's part.
    Out {
        /// The hash of the content after the change.
        leaves: Option<String>,
    },
}

/// Why a setup cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    /// A file of the setup was damaged or edited.
    #[error("{path} {what}")]
    Corrupt {
        path: String,
        /// The rest of the sentence.
        what: String,
    },
    /// A path cannot be used.
    #[error("{path} {file_error}")]
    Target { path: String, file_error: FileError },
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

    /// The record of an installed file.
    pub(super) fn install_record(&self, dest: &str) -> Option<&InstallRecord> {
        self.files.get(dest).and_then(|entry| entry.installed.as_ref())
    }

    /// Determines which changes a crashed process finished. Afterwards no entry has an intent.
    ///
    /// A file with neither the content before nor the content after the change was edited meanwhile. It counts as installed,
    /// so that later commands treat it as edited.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn recover(&mut self, files: &dyn TargetFiles) -> Result<(), SetupError> {
        let mut settled = BTreeMap::new();
        for (dest, entry) in std::mem::take(&mut self.files) {
            let Entry { installed, intent } = entry;
            let installed = match intent {
                None => installed,
                Some(intent) => {
                    let now = read_file(files, &dest)?.map(|found| sha256_hex(&found.bytes));
                    match intent {
                        Intent::Put { fact, .. } if now.as_ref() == Some(&fact.text) => Some(fact),
                        Intent::Put { from, .. } if now == from => installed,
                        Intent::Put { fact, .. } => Some(fact),
                        Intent::Out { leaves } if now == leaves => None,
                        Intent::Out { .. } => installed,
                    }
                }
            };
            if let Some(fact) = installed {
                settled.insert(dest, Entry { installed: Some(fact), intent: None });
            }
        }
        self.files = settled;
        Ok(())
    }

    /// The hashes of all contents that the setup names: the earlier ones and the installed ones.
    fn referenced_contents(&self) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let (mut before, mut installed) = (BTreeSet::new(), BTreeSet::new());
        for entry in self.files.values() {
            let put = match &entry.intent {
                Some(Intent::Put { fact, .. }) => Some(fact),
                _ => None,
            };
            for fact in entry.installed.iter().chain(put) {
                before.extend(fact.base.as_ref().map(|held| held.sha256.as_str()));
                installed.extend([fact.text.as_str(), fact.source.as_str()]);
                installed.extend(fact.added.as_deref());
            }
        }
        (before, installed)
    }
}

/// Reads a file of the target folder.
///
/// # Errors
/// If the path exists and cannot be read as a file.
pub(super) fn read_file(files: &dyn TargetFiles, path: &str) -> Result<Option<FileContent>, SetupError> {
    files
        .read(path, MAX_FILE_BYTES)
        .map_err(|file_error| SetupError::Target { path: path.to_owned(), file_error })
}

/// Whether a content is an earlier or an installed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ContentKind {
    Before,
    Installed,
}

impl ContentKind {
    fn folder(self) -> &'static str {
        match self {
            ContentKind::Before => "before",
            ContentKind::Installed => "installed",
        }
    }
}

/// The setup of a profile on the disk, with its contents.
pub(super) struct Store<'f> {
    files: &'f dyn TargetFiles,
    name: String,
}

impl<'f> Store<'f> {
    pub(super) fn new(files: &'f dyn TargetFiles, slug: &str) -> Store<'f> {
        Store { files, name: file_stem(slug) }
    }

    fn path(&self) -> String {
        format!("{SETUPS_DIR}/{}.json", self.name)
    }

    fn contents_dir(&self, part: ContentKind) -> String {
        format!("{SETUPS_DIR}/{}/{}", self.name, part.folder())
    }

    /// The path of a file's backup, which depends only on the file's path and content.
    pub(super) fn aside_path(&self, dest: &str, bytes: &[u8]) -> String {
        let file = dest.rsplit('/').next().unwrap_or(dest);
        let hash = sha256_hex(&[dest.as_bytes(), b"\0", bytes].concat());
        // Shortened, since a name of the maximum length leaves no room for the hash.
        let short: String = file.chars().take(40).collect();
        format!("{PROGRAM_DIR}/aside/{}-{short}", &hash[..12])
    }

    /// Reads the setup; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or is invalid.
    pub(super) fn load(&self) -> Result<Option<Setup>, SetupError> {
        let path = self.path();
        let target_error = |file_error| SetupError::Target { path: path.clone(), file_error };
        let Some(found) = self.files.read(&path, MAX_SETUP_BYTES).map_err(target_error)? else {
            return Ok(None);
        };
        let corrupt = |what: String| SetupError::Corrupt { path: path.clone(), what };
        let setup: Setup = serde_json::from_slice(&found.bytes)
            .map_err(|error| corrupt(format!("is not a setup ledger: {error}")))?;
        if setup.v != VERSION {
            return Err(corrupt(format!("has format version {}; this program reads {VERSION}", setup.v)));
        }
        if file_stem(&setup.slug) != self.name {
            return Err(corrupt(format!("belongs to another profile, `{}`", setup.slug)));
        }
        if let Some(bad) = setup
            .files
            .keys()
            .find(|dest| Destination::parse(dest).map_or(true, |read| read.as_str() != **dest))
        {
            return Err(corrupt(format!("names `{bad}`, which no profile can install")));
        }
        Ok(Some(setup))
    }

    /// Writes the setup.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn save(&self, setup: &Setup) -> Result<(), FileError> {
        let mut text = serde_json::to_string_pretty(setup).map_err(std::io::Error::from)?;
        text.push('\n');
        self.files.replace(&self.path(), text.as_bytes(), Access::Private)
    }

    /// Creates the folders of the setup.
    ///
    /// # Errors
    /// If a folder cannot be created.
    pub(super) fn create_folders(&self) -> Result<(), FileError> {
        self.files.make_folder(PROGRAM_DIR, Access::Private)?;
        let ignore = format!("{PROGRAM_DIR}/.gitignore");
        if self.files.read(&ignore, MAX_SETUP_BYTES)?.is_none() {
            self.files.replace(&ignore, b"*\n", Access::Data)?;
        }
        let folders = [SETUPS_DIR.to_owned(), format!("{SETUPS_DIR}/{}", self.name)];
        for folder in folders
            .into_iter()
            .chain([ContentKind::Before, ContentKind::Installed].map(|part| self.contents_dir(part)))
        {
            self.files.make_folder(&folder, Access::Private)?;
        }
        Ok(())
    }

    /// Stores a content.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn store_content(&self, part: ContentKind, bytes: &[u8]) -> Result<(), FileError> {
        let path = format!("{}/{}", self.contents_dir(part), sha256_hex(bytes));
        match self.files.read(&path, MAX_FILE_BYTES)? {
            Some(found) if found.bytes == bytes => Ok(()),
            _ => self.files.replace(&path, bytes, Access::Private),
        }
    }

    /// Reads a stored content.
    ///
    /// # Errors
    /// If it does not exist, or its hash differs.
    pub(super) fn load_content(&self, part: ContentKind, sha256: &str) -> Result<Vec<u8>, SetupError> {
        let path = format!("{}/{sha256}", self.contents_dir(part));
        let corrupt = |what: &str| SetupError::Corrupt { path: path.clone(), what: what.to_owned() };
        match read_file(self.files, &path)? {
            Some(found) if sha256_hex(&found.bytes) == sha256 => Ok(found.bytes),
            Some(_) => Err(corrupt("does not have the hash in its name")),
            None => Err(corrupt("is missing")),
        }
    }

    /// Removes contents that the setup does not name.
    ///
    /// # Errors
    /// If a content cannot be removed.
    pub(super) fn remove_unreferenced(&self, setup: &Setup) -> Result<(), FileError> {
        let (before, installed) = setup.referenced_contents();
        for (part, needed) in [(ContentKind::Before, before), (ContentKind::Installed, installed)] {
            let folder = self.contents_dir(part);
            for name in self.files.names(&folder)? {
                if !needed.contains(name.as_str()) {
                    self.files.remove(&format!("{folder}/{name}"))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the contents, and then the setup.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub(super) fn remove_all(&self) -> Result<(), FileError> {
        for part in [ContentKind::Before, ContentKind::Installed] {
            let folder = self.contents_dir(part);
            for name in self.files.names(&folder)? {
                self.files.remove(&format!("{folder}/{name}"))?;
            }
            self.files.remove_folder(&folder)?;
        }
        self.files.remove_folder(&format!("{SETUPS_DIR}/{}", self.name))?;
        self.files.remove(&self.path())?;
        self.files.remove_folder(SETUPS_DIR)
    }
}

/// The folders of all setups.
///
/// # Errors
/// If the folder of the setups cannot be read.
pub(super) fn folders(files: &dyn TargetFiles) -> Result<Vec<String>, SetupError> {
    let names = files
        .names(SETUPS_DIR)
        .map_err(|file_error| SetupError::Target { path: SETUPS_DIR.to_owned(), file_error })?;
    let mut folders = vec![PROGRAM_DIR.to_owned(), SETUPS_DIR.to_owned(), format!("{PROGRAM_DIR}/aside")];
    for name in names.iter().filter(|name| !name.ends_with(".json")) {
        let store = Store { files, name: name.clone() };
        folders.extend([
            format!("{SETUPS_DIR}/{name}"),
            store.contents_dir(ContentKind::Before),
            store.contents_dir(ContentKind::Installed),
        ]);
    }
    Ok(folders)
}

/// The setups of a folder, by slug.
///
/// # Errors
/// If a setup cannot be read.
pub(super) fn load_all(files: &dyn TargetFiles) -> Result<Vec<Setup>, SetupError> {
    let names = files
        .names(SETUPS_DIR)
        .map_err(|file_error| SetupError::Target { path: SETUPS_DIR.to_owned(), file_error })?;
    let mut setups = Vec::new();
    for name in names.iter().filter_map(|name| name.strip_suffix(".json")) {
        setups.extend(Store { files, name: name.to_owned() }.load()?);
    }
    setups.sort_by(|a, b| a.slug.cmp(&b.slug));
    Ok(setups)
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
