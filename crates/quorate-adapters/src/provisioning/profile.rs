//! The `profile` provisioning: `runtime-profile/v1`, a folder with a `profile.json`. This file owns how a profile is
//! found; `profile/manifest.rs` what its `profile.json` may say, `profile/folder.rs` how its files are read.
//!
//! A `src` is relative to `files/` where the profile has such a folder, else to the profile itself.

mod folder;
mod manifest;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::provisioning::{
    About, Failure, MAX_FILE_BYTES, Package, PackageFile, Provisioning,
};
use quorate_kernel::registry::BuildContext;

use crate::block::Block;
use folder::Folder;

/// The kind that manifests name.
pub const KIND: &str = "profile";

const MANIFEST_NAME: &str = "profile.json";

/// Where the public packages keep their files.
const FILES_FOLDER: &str = "files";

/// How many bytes a manifest may have.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Builds it from its block: `path`, relative to the manifest that has the block.
///
/// # Errors
/// When the block has another key, or no `path`.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Provisioning>, ConfigError> {
    let block = Block::parse(build.block, &["kind", "path"])?;
    let path = block.text("path")?.ok_or_else(|| {
        ConfigError::for_key("path", "`path` is missing").with_help("the folder of the profile")
    })?;
    Ok(Arc::new(from_path(build.dir.join(path), path)))
}

/// The profile of a path, which a user would call `shown`.
pub fn from_path(path: impl Into<PathBuf>, shown: impl Into<String>) -> Profile {
    let display_name: String = shown.into();
    Profile { path: path.into(), display_name: display_name.trim_end_matches('/').to_owned() }
}

/// A profile somewhere on the disk. Nothing of it is read before it is asked for.
#[derive(Debug)]
pub struct Profile {
    path: PathBuf,
    display_name: String,
}

/// Why a file of a profile was not read.
#[derive(Debug)]
enum ReadError {
    Missing,
    /// The rest of a sentence that begins with the file's name.
    Refused(String),
}

impl Profile {
    fn open(&self) -> Result<Folder, Failure> {
        let opened = std::fs::metadata(&self.path).and_then(|found| match found.is_dir() {
            true => Folder::open(&self.path).map(Some),
            false => Ok(None),
        });
        match opened {
            Ok(Some(folder)) => Ok(folder),
            Ok(None) => {
                Err(self.refusal("it is not a folder", Some("unpack an archive and name its folder")))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(Failure::Missing { message: format!("there is no profile {}", self.display_name) })
            }
            Err(error) => Err(Failure::Unavailable {
                message: format!("cannot read {}: {error}", self.display_name),
                source: Some(Box::new(error)),
            }),
        }
    }

    fn refusal(&self, message: &str, help: Option<&str>) -> Failure {
        let mut body = Body::new(format!("{}: {message}", self.display_name));
        body.help = help.map(str::to_owned);
        let mut report = Report::new();
        report.refuse(codes::PROFILE_INVALID, body);
        Failure::Refused(Box::new(report))
    }
}

#[async_trait]
impl Provisioning for Profile {
    fn about(&self) -> About {
        About { kind: KIND, from: self.display_name.clone() }
    }

    async fn package(&self) -> Result<Package, Failure> {
        let files = self.open()?;
        let bytes = files.read(MANIFEST_NAME, MAX_MANIFEST_BYTES).map_err(|unread| match unread {
            ReadError::Missing => self.refusal(
                "there is no profile.json in it",
                Some("a profile is a folder with a profile.json at its top"),
            ),
            ReadError::Refused(why) => self.refusal(&format!("{MANIFEST_NAME} {why}"), None),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| self.refusal("profile.json is not UTF-8", Some("save it as UTF-8")))?;
        let manifest_name = format!("{}/{MANIFEST_NAME}", self.display_name);
        self.build_package(&files, &text, &manifest_name)
    }
}

impl Profile {
    fn build_package(&self, files: &Folder, text: &str, shown: &str) -> Result<Package, Failure> {
        let mut report = Report::new();
        report.add_source(shown, text);
        let manifest = manifest::parse(text, shown, &mut report);
        let below = if files.has_folder(FILES_FOLDER) { format!("{FILES_FOLDER}/") } else { String::new() };
        let mut pieces = Vec::new();
        for file in manifest.files {
            let source = format!("{below}{}", file.src);
            match files.read(&source, MAX_FILE_BYTES) {
                Ok(bytes) => pieces.push(PackageFile {
                    dest: file.dest,
                    strategy: file.strategy,
                    mode: file.mode,
                    bytes: bytes.into(),
                    source: format!("{}/{source}", self.display_name),
                }),
                Err(unread) => {
                    let why = match unread {
                        ReadError::Missing => "is not in the profile".to_owned(),
                        ReadError::Refused(why) => why,
                    };
                    let place = Place { file: shown.into(), span: file.src_span, path: file.path };
                    report.refuse(codes::PROFILE_INVALID, Body::new(format!("{source} {why}")).at(place));
                }
            }
        }
        if report.has_refusals() {
            return Err(Failure::Refused(Box::new(report)));
        }
        let mut package = Package::new(manifest.slug, manifest.version, pieces)
            .map_err(|unfit| self.refusal(&unfit.to_string(), None))?;
        if report.warnings.is_empty() {
            report.retain_sources(|_| false);
        }
        package.report = report;
        Ok(package)
    }
}

/// A path within a profile: its names, none of them `..`.
///
/// # Errors
/// When it leads out. The text says how.
fn check_relative_path(path: &str) -> Result<String, String> {
    let drive = path.len() > 1 && path.as_bytes()[0].is_ascii_alphabetic() && path.as_bytes()[1] == b':';
    if path.starts_with('/') || drive {
        return Err(format!("`{path}` is absolute and leads out of the profile"));
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return Err(format!("`{}` has characters that no path of a profile has", path.escape_debug()));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(format!("`{path}` leads out of the profile with `..`"));
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests;
