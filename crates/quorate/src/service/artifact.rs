//! The artifact of a review: its text, and where it came from.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;

use super::disk;
use super::error::ServiceError;
use super::paths::find_outermost;
use super::workspace::boundary;

/// The size limit of an artifact, in bytes.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// Where an artifact comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    File(PathBuf),
    Stdin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// As the user named it; `-` for standard input.
    pub display_name: String,
    /// The file; `None` for standard input.
    pub path: Option<PathBuf>,
    pub text: Arc<str>,
    /// SHA-256 of the bytes, hexadecimal.
    pub sha256: String,
}

/// Reads an artifact. `directory` is where relative paths start.
///
/// # Errors
/// If it does not exist, is unreadable, is not text, or is too large; each has its code.
pub fn read(subject: &Subject, directory: &Path) -> Result<Artifact, ServiceError> {
    let (shown, path, bytes) = match subject {
        Subject::Stdin => ("-".to_owned(), None, disk::read_stdin(MAX_BYTES)),
        Subject::File(file) => {
            // Records store a path as UTF-8. A lossy conversion could give two files the same name, and the file could not be found again.
            if file.to_str().is_none() {
                let body = Body::new(format!("the name of {} is not UTF-8", file.display()))
                    .help("rename the file, or pass its text on standard input: `quorate review - < FILE`");
                return Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body));
            }
            let path = directory.join(file);
            refuse_link_out(&path, directory, &file.display().to_string())?;
            let bytes = match path.is_dir() {
                true => Err(std::io::Error::other("it is a directory")),
                false => disk::read_up_to(&path, MAX_BYTES),
            };
            (file.display().to_string(), Some(path), bytes)
        }
    };
    from_bytes(shown, path, bytes)
}

/// Refuses a path below the working directory whose links lead out of the workspace. Otherwise the author of a checkout
/// could make a link with an innocent name show the members any file that the user can read.
fn refuse_link_out(path: &Path, directory: &Path, shown: &str) -> Result<(), ServiceError> {
    let root = find_outermost(directory, "quorate.toml").and_then(|file| file.parent().map(Path::to_owned));
    let repository = || directory.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned);
    let root = root.or_else(repository).unwrap_or_else(|| directory.to_owned());
    let is_named_inside = path.strip_prefix(directory).is_ok_and(|below| {
        below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    });
    if !is_named_inside || boundary::is_inside(&root, path) {
        return Ok(());
    }
    let target = disk::canonical_or_new(path);
    let body = Body::new(format!("{shown} is a link that leads out of the workspace, to {}", target.display()));
    Err(ServiceError::configuration(codes::PATH_OUTSIDE, body.help("pass the path of the file itself")))
}

/// The longest title of a text, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// The title of a text without a name: its first heading, else its first line with words. Quotation marks around it keep
/// it from looking like a file name or matching a tier rule's file pattern.
pub fn title_of(text: &str) -> String {
    let heading = |line: &str| {
        let rest = line.trim_start_matches('#');
        (rest.len() < line.len() && line.len() - rest.len() <= 6 && rest.starts_with(' '))
            .then(|| words(rest))
    };
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        fenced ^= is_fence;
        if !fenced && !is_fence && line.chars().any(char::is_alphanumeric) {
            lines.push(line);
        }
    }
    let found = lines.iter().find_map(|line| heading(line)).or_else(|| lines.first().map(|line| words(line)));
    found
        .filter(|title| !title.is_empty())
        .map_or_else(|| "pasted text".to_owned(), |title| format!("“{title}”"))
}

/// A line as a title: makes invisible characters visible and removes path separators.
fn words(line: &str) -> String {
    let separated = line.replace(['/', '\\'], " ");
    let visible = escape_invisible(&separated);
    let title = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() > MAX_TITLE_CHARS {
        true => format!("{}…", title.chars().take(MAX_TITLE_CHARS - 1).collect::<String>().trim_end()),
        false => title,
    }
}

/// Makes an artifact from bytes, or an error from the failure to read them. `path` is the file, if there is one.
///
/// # Errors
/// As [`read`].
pub fn from_bytes(
    shown: String,
    path: Option<PathBuf>,
    bytes: std::io::Result<Vec<u8>>,
) -> Result<Artifact, ServiceError> {
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ServiceError::not_found(
            codes::ARTIFACT_MISSING,
            Body::new(format!("cannot read {shown}: the file does not exist"))
                .help("pass a file that exists, or `-` for standard input"),
        ),
        _ => ServiceError::configuration(
            codes::ARTIFACT_UNREADABLE,
            Body::new(format!("cannot read {shown}: {error}")),
        ),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        let body =
            Body::new(format!("{shown} is over {} MiB", MAX_BYTES / 1024 / 1024)).help("review it in parts");
        return Err(ServiceError::configuration(codes::ARTIFACT_TOO_LARGE, body));
    }
    if is_lfs_pointer(&bytes) {
        let body = Body::new(format!("{shown} is a Git LFS pointer, not the text itself"))
            .help("fetch the text with `git lfs pull`, or keep texts in git without LFS");
        return Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body));
    }
    let sha256 = sha256_hex(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            Ok(Artifact { display_name: shown, path, text: text.into(), sha256 })
        }
        _ => {
            let body = Body::new(format!("{shown} is not text in UTF-8")).help("convert it to text first");
            Err(ServiceError::configuration(codes::ARTIFACT_BINARY, body))
        }
    }
}

/// Whether a file is a Git LFS pointer: <https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>.
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    const VERSIONS: [&[u8]; 2] =
        [b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/"];
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    bytes.len() < 1024
        && VERSIONS.iter().any(|version| bytes.starts_with(version))
        && has(b"\noid ")
        && has(b"\nsize ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_not_the_text() {
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
        let read = |text: &str| from_bytes("a.md".to_owned(), None, Ok(text.as_bytes().to_vec()));
        let error = read(pointer).expect_err("a pointer is not the text");
        assert_eq!(error.report.refusals[0].code, codes::ARTIFACT_UNREADABLE);
        for text in
            [&*format!("# LFS\n\n{pointer}"), "version https://git-lfs.github.com/spec/v1 is how it begins"]
        {
            assert!(read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_text_without_a_name_is_called_by_its_heading_or_its_first_line() {
        for (text, title) in [
            ("Intro.\n\n## Launch plan\n", "“Launch plan”"),
            ("\n\n---\nWe moved   the meeting.\nTo ten.\n", "“We moved the meeting.”"),
            ("```sh\n# a comment\n```\nThe text\n", "“The text”"),
            ("#hashtag first\n", "“#hashtag first”"),
            ("# ../legal/contract.md\n", "“.. legal contract.md”"),
            ("# a\u{202e}b\u{1b}[31mc\n", "“a[U+202E]b[U+001B][31mc”"),
            ("", "pasted text"),
            ("---\n\n***\n", "pasted text"),
        ] {
            assert_eq!(title_of(text), title, "{text:?}");
        }
        let long = title_of(&"word ".repeat(1_000));
        assert!(long.chars().count() <= MAX_TITLE_CHARS + 2 && long.ends_with("…”"), "{long}");
    }
}
