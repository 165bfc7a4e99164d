//! The provisioning port: the source of files that a runtime needs in a workspace (AIP-48, "Provisioning").
//!
//! # For adapter authors
//!
//! An adapter returns a [`Package`]: which files to install, and how each combines with an existing file. It writes
//! nothing. Writing beneath the target, the setup ledger, drift, crashes and uninstalling belong to the host, whatever the
//! adapter. An adapter must satisfy:
//!
//! - [`Provisioning::package`] returns the same package until its source changes. It is called again for each install, and
//!   a package that differs is an upgrade.
//! - A package is complete: it has the bytes of every file. A partially available package is a [`Failure`].
//! - A package takes no file from outside of the named source: a link, `..` or an absolute path that leads out of the
//!   package is refused, by name.
//! - The limits [`MAX_FILES`], [`MAX_FILE_BYTES`] and [`MAX_PACKAGE_BYTES`] are checked before bytes are read into memory.
//! - Errors in the package's text are [`Failure::Refused`]: coded, with places, all at once.
//!
//! [`Destination`] and [`Package::new`] rule out destinations that lead out, and two files for one place.
//! `quorate_testkit::conformance` checks the rest.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::Report;
use quorate_manifest::workspace::is_device_name;
use serde::{Deserialize, Serialize};

/// How many files a package may have.
pub const MAX_FILES: usize = 1_000;

/// How many bytes one file may have.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// How many bytes all files of a package may have together.
pub const MAX_PACKAGE_BYTES: u64 = 64 << 20;

/// The longest slug, in bytes.
pub const MAX_SLUG_BYTES: usize = 80;

/// How a file combines with an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// It replaces the file.
    Overwrite,
    /// It is written only where nothing is.
    Preserve,
    /// Objects are merged key by key; the package wins on everything else, and arrays get what they lack.
    MergeJsonDeep,
    /// Its text is added at the end of the file.
    Append,
}

quorate_manifest::words!(Strategy {
    Overwrite = "overwrite",
    Preserve = "preserve",
    MergeJsonDeep = "merge-json-deep",
    Append = "append",
});

/// A place beneath the target: names joined with `/`. None of them is empty, `.` or `..`, and the first is not
/// `.quorate`, in any case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination(Box<str>);

impl Destination {
    /// Reads a destination; `./a//b` is `a/b`.
    ///
    /// # Errors
    /// If it leads out of the target, names no file, or is in the host's own directory. The text says which.
    pub fn parse(text: &str) -> Result<Destination, String> {
        let drive = text.len() > 1 && text.as_bytes()[0].is_ascii_alphabetic() && text.as_bytes()[1] == b':';
        if text.starts_with('/') || text.contains('\\') || drive {
            return Err(format!("`{text}` is not a path below the target; write a relative path with `/`"));
        }
        if text.chars().any(char::is_control) {
            return Err(format!("`{}` has control characters", text.escape_debug()));
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(format!("`{text}` leads out with `..`"));
        }
        match parts.first() {
            None => Err(format!("`{text}` names no file")),
            Some(first) if first.eq_ignore_ascii_case(".quorate") => {
                Err(format!("`{text}` lies in .quorate, which is the program's own"))
            }
            Some(_) if text.ends_with('/') => Err(format!("`{text}` names a folder, not a file")),
            Some(_) => Ok(Destination(parts.join("/").into())),
        }
    }

    /// Whether it is in a folder of Git: files there, hooks above all, run without anyone's action.
    pub fn is_in_git_dir(&self) -> bool {
        self.0.split('/').any(is_git_dir)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Why two destinations cannot both be written, if they cannot. Some file systems take `A` and `a` for one name.
    pub fn conflict(&self, other: &Destination) -> Option<&'static str> {
        let (a, b) = (self.0.to_lowercase(), other.0.to_lowercase());
        let below = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'));
        match () {
            () if self == other => Some("is the same place"),
            () if a == b => Some("differs only in case, which many file systems do not tell apart"),
            () if below(&a, &b) || below(&b, &a) => Some("would have to be both a file and a folder"),
            () => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a name is that of Git's own folder, or one that some file systems take for it.
pub fn is_git_dir(name: &str) -> bool {
    let ignored = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(ignored).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_lowercase();
    matches!(name.as_str(), ".git" | "git~1")
}

/// Whether a text can name a package: names joined with `/`, none of them empty, `.`, `..` or a device's. It is not a path,
/// and a name that
/// reads like a way out of somewhere is refused all the same.
pub fn is_slug(text: &str) -> bool {
    text.len() <= MAX_SLUG_BYTES
        && !text.chars().any(|c| c.is_control() || c == '\\')
        && text.split('/').all(|name| !matches!(name.trim(), "" | "." | "..") && !is_device_name(name.trim()))
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    pub dest: Destination,
    /// How it combines with an existing file.
    pub strategy: Strategy,
    /// Whether it can be run.
    pub mode: FileMode,
    /// What is in it.
    pub bytes: Arc<[u8]>,
    /// Where it comes from, as a user would name it.
    pub source: String,
}

/// Whether a file can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileMode {
    Plain,
    /// Readers may execute it.
    Executable,
}

/// The artifacts that an adapter has to install.
#[derive(Debug, Clone)]
pub struct Package {
    /// Its name without a version.
    pub slug: String,
    pub version: String,
    files: Vec<PackageFile>,
    /// Warnings about it, with the texts that they quote.
    pub report: Report,
}

/// Why files are not a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidPackage {
    /// What is wrong, as a message for users.
    pub message: String,
    /// The index of the file at fault, if one is.
    pub file: Option<usize>,
}

impl Package {
    /// A package that can be installed.
    ///
    /// # Errors
    /// If its slug is invalid, two files clash, one is in Git's folder, or it is too large.
    pub fn new(
        slug: impl Into<String>,
        version: impl Into<String>,
        pieces: Vec<PackageFile>,
    ) -> Result<Package, InvalidPackage> {
        let (slug, version) = (slug.into(), version.into());
        let invalid = |file, message| Err(InvalidPackage { message, file });
        if !is_slug(&slug) {
            let rule = "names joined with `/`, none of them empty, `.`, `..` or a device's on Windows (`con`), without \
                        backslashes and control characters";
            return invalid(None, format!("a slug is {rule}; it has at most {MAX_SLUG_BYTES} bytes"));
        }
        if pieces.len() > MAX_FILES {
            return invalid(None, format!("it has {} files, and {MAX_FILES} are the most", pieces.len()));
        }
        let mut total = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let (dest, size) = (&piece.dest, piece.bytes.len() as u64);
            total += size;
            if size > MAX_FILE_BYTES {
                let message = format!("{} is larger than {} MiB", piece.source, MAX_FILE_BYTES >> 20);
                return invalid(Some(at), message);
            }
            if total > MAX_PACKAGE_BYTES {
                let limit = MAX_PACKAGE_BYTES >> 20;
                return invalid(None, format!("its files have more than {limit} MiB together"));
            }
            if dest.is_in_git_dir() {
                return invalid(
                    Some(at),
                    format!("`{dest}` is in .git, where Git runs files without anyone's action"),
                );
            }
            let conflict = |other: &PackageFile| Some((dest.conflict(&other.dest)?, other.dest.clone()));
            if let Some((why, other)) = pieces[..at].iter().find_map(conflict) {
                return invalid(Some(at), format!("`{dest}` {why} as `{other}`"));
            }
        }
        Ok(Package { slug, version, files: pieces, report: Report::new() })
    }

    /// Its files, in its order.
    pub fn files(&self) -> &[PackageFile] {
        &self.files
    }
}

/// The reason for the missing package.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No package was found.
    #[error("{message}")]
    Missing {
        /// What is missing, as a message for users.
        message: String,
    },
    /// The source is not a valid package: the report has the refusals.
    #[error("the package is refused")]
    Refused(Box<Report>),
    /// It could not be read.
    #[error("{message}")]
    Unavailable {
        /// What failed, for a person.
        message: String,
        /// Where it comes from.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// An adapter's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub kind: &'static str,
    /// Where the package comes from, as a user would name it.
    pub from: String,
}

/// A source of packages. See the module's text for the contract.
#[async_trait]
pub trait Provisioning: Send + Sync {
    /// The adapter's description.
    fn about(&self) -> About;

    /// The current package.
    async fn package(&self) -> Result<Package, Failure>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_stays_beneath_the_target() {
        for (text, read) in
            [("a/b", "a/b"), ("./a//b", "a/b"), (".claude/x", ".claude/x"), ("a/.quorate", "a/.quorate")]
        {
            assert_eq!(Destination::parse(text).expect(text).as_str(), read);
        }
        let out = [
            "",
            ".",
            "/etc/x",
            "../x",
            "a/../../x",
            "a\\b",
            "C:/x",
            ".quorate/x",
            ".QUORATE/x",
            "./.quorate",
            "a/",
            "a\nb",
        ];
        for text in out {
            assert!(Destination::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_installed_into_gits_own_folder() {
        let gits = |text: &str| Destination::parse(text).expect(text).is_in_git_dir();
        for text in [
            ".git/hooks/post-checkout",
            ".GIT/config",
            "sub/.git/hooks/x",
            "git~1/x",
            ".git./x",
            ".g\u{200c}it/x",
            ".git::$INDEX/x",
        ] {
            assert!(gits(text), "{text}");
        }
        for text in [".gitignore", ".github/workflows/x.yml", ".gitattributes", "git/x", "x.git/y"] {
            assert!(!gits(text), "{text}");
        }
    }

    #[test]
    fn two_files_for_one_place_are_no_package() {
        let piece = |dest: &str| PackageFile {
            dest: Destination::parse(dest).expect("a destination"),
            strategy: Strategy::Overwrite,
            mode: FileMode::Plain,
            bytes: Arc::from(&b"x"[..]),
            source: dest.to_owned(),
        };
        for (a, b) in [("a", "./a"), ("a", "A"), ("a", "a/b"), ("a/b/c", "A/b")] {
            let invalid = Package::new("s", "1", vec![piece(a), piece(b)]).expect_err(a);
            assert_eq!(invalid.file, Some(1), "{a} {b}");
        }
        assert!(Package::new("s", "1", vec![piece("a"), piece("ab")]).is_ok());
        for slug in ["", "../../../evil", "a/../b", "/a", "a/", "a//b", ".", "a\\b", "a\nb"] {
            assert!(Package::new(slug, "1", Vec::new()).is_err(), "{slug}");
        }
        for slug in ["a", "runtime-profile/standard", "a..b", ".a", "Größe/1.0"] {
            assert!(Package::new(slug, "1", Vec::new()).is_ok(), "{slug}");
        }
    }
}
