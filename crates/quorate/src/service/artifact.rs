//! The artifacts of reviews: their text and origin, several of them by name or pattern, and the path of a file in its
//! git repository, by which code hosts identify it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::files::Resolver;
use quorate_kernel::record::HiddenText;

use super::disk::{self, absolute, entry_exists, find_outermost, shell_quoted};
use super::environment::Environment;
use super::error::Error;
use super::hidden_text;

/// The size limit of an artifact, in bytes.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Artifact {
    /// As the user named it; `-` for standard input.
    pub display_name: String,
    /// The file; `None` for standard input.
    pub path: Option<PathBuf>,
    /// The text without its content credentials.
    pub text: Arc<str>,
    /// SHA-256 of all bytes, hexadecimal.
    pub sha256: String,
    /// The invisible text of the draft.
    pub hidden: HiddenText,
}

/// A text to decide on. A path converts into a file; the file `-` is standard input.
///
/// ```
/// use quorate::Draft;
///
/// assert_eq!(Draft::from("drafts/launch.md"), Draft::File("drafts/launch.md".into()));
/// let text = Draft::of_text("# Launch\n\nOn Tuesday.\n".to_owned(), None);
/// assert!(matches!(text, Draft::Text { name, .. } if name.contains("Launch")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draft {
    /// A file of the workspace.
    File(PathBuf),
    /// A text without a file.
    Text {
        /// Replaces the path in records, in the log and for tier rules; its extension determines the format.
        name: String,
        /// The text itself.
        text: String,
    },
}

impl Draft {
    /// A text with this name; by default its first heading or line.
    pub fn of_text(text: String, name: Option<String>) -> Draft {
        Draft::Text { name: name.unwrap_or_else(|| title_of(&text)), text }
    }
}

impl<P: Into<PathBuf>> From<P> for Draft {
    fn from(file: P) -> Self {
        Draft::File(file.into())
    }
}

/// Reads an artifact. `directory` is where relative paths start.
///
/// # Errors
/// If it does not exist, is unreadable, is not text, or is too large; each has its code.
pub(crate) fn read(draft: &Draft, directory: &Path) -> Result<Artifact, Error> {
    let (shown, path, bytes) = match draft {
        Draft::File(file) if file.as_os_str() == "-" => ("-".to_owned(), None, disk::read_stdin(MAX_BYTES)),
        Draft::Text { name, text } => (name.clone(), None, Ok(text.clone().into_bytes())),
        Draft::File(file) => {
            // Records store a path as UTF-8. A lossy conversion could give two files the same name, and the file could
            // not be found again.
            if file.to_str().is_none() {
                let body = Body::new(format!("the name of {} is not UTF-8", file.display()))
                    .help("rename the file, or pass its text on standard input: `quorate review - < FILE`");
                return Err(Error::configuration(codes::ARTIFACT_UNREADABLE, body));
            }
            let path = directory.join(file);
            refuse_link_out(&path, directory, &file.display().to_string())?;
            let shown = file.display().to_string();
            if path.is_dir() {
                let body = Body::new(format!("cannot read {shown}: it is a directory"));
                let texts = shell_quoted(&file.join("**/*.md").display().to_string());
                let help = format!("run `quorate review {texts}` to review the texts in it");
                return Err(Error::configuration(codes::ARTIFACT_UNREADABLE, body.help(help)));
            }
            (shown, Some(path.clone()), disk::read_up_to(&path, MAX_BYTES))
        }
    };
    from_bytes(shown, path, bytes)
}

/// Refuses a path below the working directory whose links lead out of the workspace. Otherwise the author of a checkout
/// could make a link with an innocent name show the members any file that the user can read.
fn refuse_link_out(path: &Path, directory: &Path, shown: &str) -> Result<(), Error> {
    let root = find_outermost(directory, "quorate.toml").and_then(|file| file.parent().map(Path::to_owned));
    let repository = || directory.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned);
    let root = root.or_else(repository).unwrap_or_else(|| directory.to_owned());
    let is_named_inside = path.strip_prefix(directory).is_ok_and(|below| {
        below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    });
    if !is_named_inside || disk::is_inside(&root, path) {
        return Ok(());
    }
    let target = disk::canonical_or_new(path);
    let body =
        Body::new(format!("{shown} is a link that leads out of the workspace, to {}", target.display()));
    Err(Error::configuration(codes::PATH_OUTSIDE, body.help("pass the path of the file itself")))
}

/// The longest title of a text, in characters.
const MAX_TITLE_CHARS: usize = 80;

/// The title of a text without a name: its first heading, else its first line with words. Quotation marks around it
/// keep it from looking like a file name or matching a tier rule's file pattern.
pub(crate) fn title_of(text: &str) -> String {
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
pub(crate) fn from_bytes(
    shown: String,
    path: Option<PathBuf>,
    bytes: std::io::Result<Vec<u8>>,
) -> Result<Artifact, Error> {
    let too_large = || {
        let body =
            Body::new(format!("{shown} is over {} MiB", MAX_BYTES / 1024 / 1024)).help("review it in parts");
        Error::configuration(codes::ARTIFACT_TOO_LARGE, body)
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => too_large(),
        std::io::ErrorKind::NotFound => Error::not_found(
            codes::ARTIFACT_MISSING,
            Body::new(format!("cannot read {shown}: the file does not exist"))
                .help("pass a file that exists, or try `quorate review --example`"),
        ),
        _ => Error::configuration(
            codes::ARTIFACT_UNREADABLE,
            Body::new(format!("cannot read {shown}: {error}")),
        ),
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    if is_lfs_pointer(&bytes) {
        let body = Body::new(format!("{shown} is a Git LFS pointer, not the text itself"))
            .help("fetch the text with `git lfs pull`, or keep texts in git without LFS");
        return Err(Error::configuration(codes::ARTIFACT_UNREADABLE, body));
    }
    let sha256 = sha256_hex(&bytes);
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            let (visible, hidden) = hidden_text::separate(&text);
            Ok(Artifact { display_name: shown, path, text: visible.into(), sha256, hidden })
        }
        _ => {
            let body = Body::new(format!("{shown} is not text in UTF-8")).help("convert it to text first");
            Err(Error::configuration(codes::ARTIFACT_BINARY, body))
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

/// The named drafts.
#[derive(Debug, Clone)]
pub struct Drafts {
    /// Without duplicates, in the order given; matches of a pattern by path.
    pub drafts: Vec<Draft>,
    /// Whether the caller gave a single name that is not a pattern.
    pub is_single: bool,
}

/// Expands names: `-` is standard input; a name with `*`, `?`, `[` or `{` is a pattern unless a file has that name. As
/// in a shell, `*` stays in its directory and hidden files need a pattern with a dot; `**` descends into all
/// directories.
///
/// # Errors
/// If a pattern is invalid or matches nothing, or standard input is named twice.
pub(crate) fn expand_drafts(
    environment: &Environment,
    names: &[PathBuf],
    report: &mut Report,
) -> Result<Drafts, Error> {
    let mut named = Drafts { drafts: Vec::new(), is_single: true };
    let mut seen = BTreeSet::new();
    for name in names {
        if name.as_os_str() == "-" {
            let stdin = Draft::File(name.clone());
            if named.drafts.contains(&stdin) {
                return Err(usage("standard input is named twice", "pass `-` once"));
            }
            named.drafts.push(stdin);
            continue;
        }
        let files = match pattern(name, &environment.directory) {
            Some(written) => {
                named.is_single = false;
                matching_files(environment, written, report)?
            }
            None => vec![name.clone()],
        };
        let new = files.into_iter().filter(|file| seen.insert(environment.directory.join(file)));
        named.drafts.extend(new.map(Draft::File));
    }
    named.is_single &= names.len() == 1;
    Ok(named)
}

/// A name as a pattern, if it is one.
fn pattern<'n>(name: &'n Path, directory: &Path) -> Option<&'n str> {
    let written = name.to_str()?;
    (is_pattern(written) && !entry_exists(&directory.join(name))).then_some(written)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// The files that a pattern matches, by the names that the user would give them.
fn matching_files(
    environment: &Environment,
    written: &str,
    report: &mut Report,
) -> Result<Vec<PathBuf>, Error> {
    let parts: Vec<Component<'_>> = Path::new(written).components().collect();
    let fixed = parts.iter().take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy())).count();
    let base: PathBuf = parts[..fixed].iter().collect();
    let rest: PathBuf = parts[fixed..].iter().collect();
    let rest = rest.to_string_lossy();
    let matcher = matcher(&rest, written)?;
    let depth = if rest.contains("**") { usize::MAX } else { parts.len() - fixed };
    let root = environment.directory.join(&base);
    let wants_hidden = rest.split('/').any(|part| part.starts_with('.'));
    let mut files = Vec::new();
    for found in disk::walk_to_depth(&root, depth).unwrap_or_default() {
        let below = found.path.strip_prefix(&root).unwrap_or(&found.path).to_owned();
        let hidden = below.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
        if !matcher.is_match(&below) || (hidden && !wants_hidden) {
            continue;
        }
        if disk::is_inside(&root, &found.path) {
            files.push(base.join(below));
            continue;
        }
        let shown = base.join(below);
        let message =
            format!("skipped {}: it is a link that leads out of the folder of `{written}`", shown.display());
        let help = "to review it, pass its path without a pattern";
        report.warn(codes::WATCH_UNREADABLE, Body::new(message).help(help));
    }
    match files.is_empty() {
        true => {
            Err(usage(&format!("no file matches `{written}`"), "pass files that exist, or another pattern"))
        }
        false => Ok(files),
    }
}

/// A pattern for paths that need not exist here, such as those of a commit.
///
/// # Errors
/// If the pattern is invalid.
pub(crate) fn path_matcher(pattern: &str) -> Result<GlobMatcher, Error> {
    matcher(pattern, pattern)
}

/// Compiles a pattern, which is part of `written`.
fn matcher(pattern: &str, written: &str) -> Result<GlobMatcher, Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| {
        let message = format!("`{written}` is not a valid pattern: {}", error.kind());
        usage(&message, "escape a literal `[` or `{`")
    })
}

fn usage(message: &str, help: &str) -> Error {
    Error::usage(Body::new(message).help(help))
}

/// The path of an existing file from the root of the repository, with `/`. As in git, a link to a folder counts as that
/// folder, and a link to a file is a file of its own. Uses the repository of `directory`, else that of the file, so
/// that a file in a submodule has its path in the outer repository. `None` without a repository or a file.
pub(crate) fn repository_path(directory: &Path, named: &Path) -> Option<String> {
    let path = absolute(directory, named);
    let links = Resolver::default();
    let (folder, name) = (links.resolve(path.parent()?), path.file_name()?);
    if !entry_exists(&folder.join(name)) {
        return None;
    }
    let root_of =
        |start: &Path| start.ancestors().find(|dir| entry_exists(&dir.join(".git"))).map(Path::to_owned);
    let below = |root: &Path| folder.strip_prefix(root).ok().map(|below| below.join(name));
    let outer = root_of(&links.resolve(directory));
    let found = outer.as_deref().and_then(below).or_else(|| below(&root_of(&folder)?))?;
    let parts: Option<Vec<&str>> = found.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test needs files")]
mod repository_path_tests {
    use super::*;

    #[test]
    fn a_path_is_from_the_root_of_the_repository() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("repository");
        let write = |path: &str| {
            let path = place.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        };
        for path in
            ["repository/docs/blog/x y.md", "repository/sub/in/a.md", "repository/sub/.git", "outside/b.md"]
        {
            write(path);
        }
        std::fs::create_dir(root.join(".git")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("docs/blog", root.join("link")).unwrap();
            std::os::unix::fs::symlink("x y.md", root.join("docs/blog/other.md")).unwrap();
        }
        let from =
            |directory: &str, named: &str| repository_path(&place.path().join(directory), Path::new(named));
        let blog = Some("docs/blog/x y.md".to_owned());
        assert_eq!(from("repository/docs/blog", "x y.md"), blog);
        assert_eq!(from("repository/docs/blog", "./x y.md"), blog);
        assert_eq!(from("repository/docs", "blog/x y.md"), blog);
        assert_eq!(from("repository/sub/in", "../../docs/blog/x y.md"), blog);
        assert_eq!(from("repository", "docs/blog/x y.md"), blog);
        let absolute = root.join("docs/blog/x y.md");
        assert_eq!(from("repository/docs", absolute.to_str().unwrap()), blog);
        assert_eq!(from("outside", absolute.to_str().unwrap()), blog);
        #[cfg(unix)]
        {
            assert_eq!(from("repository", "link/x y.md"), blog);
            assert_eq!(from("repository/link", "x y.md"), blog);
            assert_eq!(from("repository/docs", "blog/other.md").as_deref(), Some("docs/blog/other.md"));
        }
        // A worktree and a submodule have a file `.git`.
        assert_eq!(from("repository/sub/in", "a.md").as_deref(), Some("in/a.md"));
        assert_eq!(from("repository", "sub/in/a.md").as_deref(), Some("sub/in/a.md"));
        for (directory, named) in [
            ("outside", "b.md"),
            ("repository", "../outside/b.md"),
            ("repository", "no.md"),
            ("repository", "-"),
        ] {
            assert_eq!(from(directory, named), None, "{directory} {named}");
        }
    }
}
