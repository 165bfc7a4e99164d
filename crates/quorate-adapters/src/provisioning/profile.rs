//! The `profile` provisioning: `runtime-profile/v1`, a folder with a `profile.json`. Files are opened
//! beneath the folder from an open handle, so that no link leads out. All problems of a `profile.json` are reported at once,
//! with their places. Unknown keys at its root may belong to other programs and are ignored; an unknown key of a file is
//! reported, since it would have no effect.
//!
//! A `src` is relative to `files/` where the profile has such a folder, else to the profile itself.

use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cap_fs_ext::OpenOptionsSyncExt as _;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::provisioning::{
    About, Destination, Failure, FileMode, MAX_FILE_BYTES, MAX_FILES, Package, PackageError, PackageFile,
    Provisioning, Strategy, is_slug,
};
use quorate_kernel::registry::BuildContext;
use quorate_manifest::tree::{Kind, Node, json};

use crate::block::{Block, nearest, quoted_list};

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
                Err(Failure::Missing { message: format!("no profile {}", self.display_name) })
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
                "it contains no profile.json",
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
        let manifest = parse(text, shown, &mut report);
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

struct Folder {
    dir: Dir,
}

impl Folder {
    fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder { dir: Dir::open_ambient_dir(path, ambient_authority())? })
    }

    /// Whether there is a folder of that name at the top.
    fn has_folder(&self, name: &str) -> bool {
        self.dir.metadata(name).is_ok_and(|found| found.is_dir())
    }

    /// A file of the profile, if it has no more than so many bytes.
    fn read(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut options = OpenOptions::new();
        // Without this, opening a FIFO waits for a writer.
        options.read(true).nonblock(true);
        let file = self.dir.open_with(path, &options).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ReadError::Missing,
            // The refusal of a path that leads out is made by cap-std, and has no error number of the system.
            ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                ReadError::Refused("is a link that leads out of the profile".to_owned())
            }
            _ => ReadError::Refused(format!("cannot be read: {error}")),
        })?;
        let unreadable = |error: io::Error| ReadError::Refused(format!("cannot be read: {error}"));
        let found = file.metadata().map_err(unreadable)?;
        if !found.is_file() {
            return Err(ReadError::Refused("is not a file".to_owned()));
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read, so its reported size does not limit it.
        file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > limit {
            return Err(ReadError::Refused(format!("is larger than {} MiB", limit >> 20)));
        }
        Ok(bytes)
    }
}

/// The only supported schema.
const SCHEMA: &str = "agentproto/runtime-profile/v1";

const KEYS: &[&str] = &["src", "dest", "strategy", "executable"];

#[derive(Default)]
struct Manifest {
    slug: String,
    version: String,
    files: Vec<File>,
}

struct File {
    src: String,
    src_span: Range<usize>,
    path: String,
    dest: Destination,
    strategy: Strategy,
    mode: FileMode,
}

/// Reads a manifest. If it adds to the report, the result is incomplete.
fn parse(text: &str, display_name: &str, report: &mut Report) -> Manifest {
    let mut parser = Parser { shown: display_name, report };
    let root = match json::parse(text) {
        Ok(root) => root,
        Err(problem) => {
            let mut body = Body::new(format!("this is not JSON: {}", problem.message));
            body.help = problem.help;
            parser.refuse(problem.span, "", body);
            return Manifest::default();
        }
    };
    if !matches!(root.kind, Kind::Map(_)) {
        parser.refuse(root.span.clone(), "", Body::new(format!("it is {}, not an object", root.kind.name())));
        return Manifest::default();
    }
    parser.schema(&root);
    let slug = parser.text(&root, "slug", "").unwrap_or_default();
    if !slug.is_empty() && !is_slug(&slug) {
        let span = root.key("slug").map_or(0..0, |node| node.span.clone());
        parser.refuse(span, "slug", Body::new(PackageError::Slug.to_string()));
    }
    let version = parser.text(&root, "version", "").unwrap_or_default();
    for key in ["name", "description"] {
        if let Some(node) = root.key(key).filter(|node| node.as_str().is_none()) {
            parser.refuse(node.span.clone(), key, wrong(key, "text", node));
        }
    }
    let files = parser.files(&root);
    Manifest { slug, version, files }
}

struct Parser<'r> {
    shown: &'r str,
    report: &'r mut Report,
}

impl Parser<'_> {
    fn place(&self, span: Range<usize>, path: &str) -> Place {
        Place { file: self.shown.into(), span, path: path.to_owned() }
    }

    fn refuse(&mut self, span: Range<usize>, path: &str, body: Body) {
        let place = self.place(span, path);
        self.report.refuse(codes::PROFILE_INVALID, body.at(place));
    }

    /// A string that is required and not empty.
    fn text(&mut self, object: &Node, key: &str, prefix: &str) -> Option<String> {
        let path = format!("{prefix}{key}");
        match object.key(key) {
            None => self.refuse(brace(object), &path, Body::new(format!("`{key}` is missing"))),
            Some(node) => match node.as_str() {
                Some(text) if !text.trim().is_empty() => return Some(text.to_owned()),
                Some(_) => self.refuse(node.span.clone(), &path, Body::new(format!("`{key}` is empty"))),
                None => self.refuse(node.span.clone(), &path, wrong(key, "text", node)),
            },
        }
        None
    }

    fn schema(&mut self, root: &Node) {
        if let Some(found) = self.text(root, "schema", "").filter(|found| found != SCHEMA) {
            let span = root.key("schema").map_or(0..0, |node| node.span.clone());
            let body = Body::new(format!("`{found}` is not a supported schema of profiles"));
            self.refuse(span, "schema", body.help(format!("use `{SCHEMA}`")));
        }
    }

    fn files(&mut self, root: &Node) -> Vec<File> {
        let Some(list) = root.key("files") else {
            self.refuse(brace(root), "files", Body::new("`files` is missing"));
            return Vec::new();
        };
        let Kind::Seq(items) = &list.kind else {
            self.refuse(list.span.clone(), "files", wrong("files", "a list", list));
            return Vec::new();
        };
        if items.is_empty() {
            let body = Body::new("`files` is empty, so nothing would be installed");
            let help = "`quorate provision uninstall SLUG` removes what is installed already";
            self.refuse(list.span.clone(), "files", body.help(help));
        }
        if items.len() > MAX_FILES {
            let body = Body::new(format!("there are {} files, and {MAX_FILES} are the most", items.len()));
            self.refuse(list.span.start..list.span.start + 1, "files", body);
            return Vec::new();
        }
        let mut files: Vec<(File, Range<usize>)> = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let path = format!("files[{at}]");
            let Some(file) = self.file(item, &path) else { continue };
            let span = item.key("dest").map_or(0..0, |node| node.span.clone());
            match files.iter().find_map(|(first, span)| Some((file.dest.conflict(&first.dest)?, first, span)))
            {
                Some((why, first, first_span)) => {
                    let body = Body::new(format!("`{}` {why} as `{}`", file.dest, first.dest));
                    let related = self.place(first_span.clone(), "");
                    self.refuse(span, &format!("{path}.dest"), body.related(related, "first here"));
                }
                None => files.push((file, span)),
            }
        }
        files.into_iter().map(|(file, _)| file).collect()
    }

    fn file(&mut self, item: &Node, path: &str) -> Option<File> {
        let Kind::Map(entries) = &item.kind else {
            self.refuse(item.span.clone(), path, wrong(path, "an object", item));
            return None;
        };
        for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
            let mut body = Body::new(format!("`{}` of a file is not read here", entry.key))
                .at(self.place(entry.key_span.clone(), &format!("{path}.{}", entry.key)));
            body.help = nearest(&entry.key, KEYS).map(|near| format!("did you mean `{near}`?"));
            self.report.warn(codes::FIELD_WITHOUT_EFFECT, body);
        }
        let prefix = format!("{path}.");
        let src = self.text(item, "src", &prefix);
        let dest = self.text(item, "dest", &prefix);
        let strategy = self.strategy(item, path);
        let mode = self.mode(item, path);
        let src_span = item.key("src").map_or(0..0, |node| node.span.clone());
        let src = src.and_then(|src| match check_relative_path(&src) {
            Ok(src) => Some(src),
            Err(problem) => {
                self.refuse(src_span.clone(), &format!("{path}.src"), Body::new(format!("src {problem}")));
                None
            }
        });
        let dest = dest.and_then(|dest| match Destination::parse(&dest) {
            Ok(dest) if dest.is_in_git_dir() => {
                let span = item.key("dest").map_or(0..0, |node| node.span.clone());
                let body = Body::new(format!(
                    "dest `{dest}` lies in .git, which is Git's own: what is put there runs by itself"
                ));
                let help =
                    "install a script elsewhere, and have people set `core.hooksPath` or a hook of theirs";
                self.refuse(span, &format!("{path}.dest"), body.help(help));
                None
            }
            Ok(dest) => Some(dest),
            Err(problem) => {
                let span = item.key("dest").map_or(0..0, |node| node.span.clone());
                self.refuse(span, &format!("{path}.dest"), Body::new(format!("dest {problem}")));
                None
            }
        });
        Some(File {
            src: src?,
            src_span,
            path: format!("{path}.src"),
            dest: dest?,
            strategy: strategy?,
            mode: mode?,
        })
    }

    fn strategy(&mut self, item: &Node, path: &str) -> Option<Strategy> {
        let word = self.text(item, "strategy", &format!("{path}."))?;
        let strategy = Strategy::parse(&word);
        if strategy.is_none() {
            let words = Strategy::ALL.map(Strategy::as_str);
            let span = item.key("strategy").map_or(0..0, |node| node.span.clone());
            let body = Body::new(format!("unknown strategy `{word}`"));
            let help = format!("the strategies are {}", quoted_list(&words));
            self.refuse(span, &format!("{path}.strategy"), body.help(help));
        }
        strategy
    }

    fn mode(&mut self, item: &Node, path: &str) -> Option<FileMode> {
        match item.key("executable").map(|node| (&node.kind, node)) {
            None | Some((Kind::Bool(false), _)) => Some(FileMode::Plain),
            Some((Kind::Bool(true), _)) => Some(FileMode::Executable),
            Some((_, node)) => {
                let path = format!("{path}.executable");
                self.refuse(node.span.clone(), &path, wrong("executable", "true or false", node));
                None
            }
        }
    }
}

/// The place of an object's opening brace, for missing keys.
fn brace(node: &Node) -> Range<usize> {
    node.span.start..node.span.start + 1
}

fn wrong(key: &str, wanted: &str, found: &Node) -> Body {
    Body::new(format!("`{key}` is {}, not {wanted}", found.kind.name()))
}

#[cfg(test)]
mod tests {
    //! Profiles, whole, wrong and hostile.

    #![expect(clippy::disallowed_methods, reason = "tests write the profiles that they read")]

    use std::path::Path;

    use quorate_kernel::ports::provisioning::{FileMode, Strategy};
    use quorate_testkit::conformance::{
        provisioning_refuses_unfit_package, provisioning_reports_missing,
        provisioning_returns_current_package, provisioning_returns_package,
    };

    use super::*;

    const HEAD: &str = r#""schema": "agentproto/runtime-profile/v1", "slug": "runtime-profile/standard", "version": "0.1.0""#;

    fn manifest(files: &str) -> String {
        format!("{{{HEAD}, \"name\": \"Standard\", \"extra\": {{}}, \"files\": [{files}]}}")
    }

    const ONE: &str =
        r#"{"src": ".claude/a.md", "dest": ".claude/./a.md", "strategy": "overwrite", "executable": true}"#;

    fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn folder(files: &str) -> (tempfile::TempDir, Profile) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "profile.json", manifest(files));
        write(dir.path(), "files/.claude/a.md", "A\n");
        let profile = from_path(dir.path(), "p/");
        (dir, profile)
    }

    #[tokio::test]
    async fn a_folder_is_read_as_it_is_now() {
        let (dir, profile) = folder(ONE);
        let package = provisioning_returns_package(&profile).await;
        assert_eq!((package.slug.as_str(), package.version.as_str()), ("runtime-profile/standard", "0.1.0"));
        let piece = package.files()[0].clone();
        assert_eq!(
            (piece.dest.as_str(), piece.strategy, piece.mode),
            (".claude/a.md", Strategy::Overwrite, FileMode::Executable)
        );
        assert_eq!((&*piece.bytes, piece.source.as_str()), (&b"A\n"[..], "p/files/.claude/a.md"));
        write(dir.path(), "files/.claude/a.md", "B\n");
        write(dir.path(), "profile.json", manifest(ONE).replace("0.1.0", "0.2.0"));
        let changed = PackageFile { bytes: Arc::from(&b"B\n"[..]), ..piece };
        provisioning_returns_current_package(&profile, "0.2.0", &[changed]).await;
        // Without the folder, the files are beside the manifest.
        std::fs::remove_dir_all(dir.path().join("files")).unwrap();
        write(dir.path(), ".claude/a.md", "C\n");
        assert_eq!(&*provisioning_returns_package(&profile).await.files()[0].bytes, b"C\n");
        provisioning_reports_missing(&from_path(dir.path().join("nowhere"), "nowhere")).await;
        provisioning_reports_missing(&from_path(dir.path().join("profile.json/x"), "x")).await;
    }

    #[tokio::test]
    async fn errors_of_a_manifest_are_reported_at_their_places_at_once() {
        let file = |dest: &str, strategy: &str| {
            format!(r#"{{"src": ".claude/a.md", "dest": "{dest}", "strategy": "{strategy}"}}"#)
        };
        for (files, says) in [
            (file("../x", "append"), "leads out with `..`"),
            (file("/etc/x", "append"), "not a path below the target"),
            (file(".Quorate/x", "append"), "lies in .quorate"),
            (file("x", "replace"), "unknown strategy `replace`"),
            (format!("{}, {}", file("a/b", "append"), file("./a//b", "append")), "is the same place"),
            (format!("{}, {}", file("a", "append"), file("A", "append")), "differs only in case"),
            (format!("{}, {}", file("a", "append"), file("a/b", "append")), "both a file and a folder"),
            (ONE.replace(".claude/a.md\", \"dest", "../x\", \"dest"), "leads out of the profile"),
            (ONE.replace(".claude/a.md\", \"dest", "/etc/x\", \"dest"), "is absolute"),
            (ONE.replace(".claude/a.md\", \"dest", "b.md\", \"dest"), "files/b.md is not in the profile"),
            (ONE.replace(".claude/a.md\", \"dest", ".claude\", \"dest"), "is not a file"),
            (ONE.replace("true", "\"yes\""), "`executable` is text"),
            (ONE.replace("\"src\"", "\"scr\""), "`src` is missing"),
            ("3".to_owned(), "is a whole number, not an object"),
            ("{".to_owned(), "this is not JSON"),
        ] {
            let (_dir, profile) = folder(&files);
            let said = provisioning_refuses_unfit_package(&profile).await;
            assert!(said.contains(says), "{says}: {said}");
        }
        let (dir, profile) = folder(&format!("{}, {}", file("../x", "append"), file("y", "replace")));
        let Err(Failure::Refused(report)) = profile.package().await else { panic!("it is refused") };
        let places: Vec<&str> =
            report.refusals.iter().map(|one| one.body.place.as_ref().unwrap().path.as_str()).collect();
        assert_eq!(places, ["files[0].dest", "files[1].strategy"]);
        assert!(
            report.refusals[1]
                .body
                .help
                .as_ref()
                .unwrap()
                .contains("`overwrite`, `preserve`, `merge-json-deep`, `append`")
        );
        for (text, says) in [
            ("[]", "not an object"),
            ("{}", "`schema` is missing"),
            (
                r#"{"schema": "agentproto/runtime-profile/v2", "slug": "s", "version": "1", "files": []}"#,
                "not a supported schema of profiles",
            ),
            (&format!("{{{HEAD}}}"), "`files` is missing"),
            (&manifest(""), "`files` is empty"),
            (&manifest(ONE).replace("\"runtime-profile/", "\"../../../"), "a slug is"),
            (&manifest(ONE).replace("\"runtime-profile/", "\"/"), "a slug is"),
        ] {
            write(dir.path(), "profile.json", text);
            assert!(provisioning_refuses_unfit_package(&profile).await.contains(says), "{says}");
        }
        for (text, path) in
            [(manifest(""), "files"), (manifest(ONE).replace("\"runtime-profile/", "\"../"), "slug")]
        {
            write(dir.path(), "profile.json", &text);
            let Err(Failure::Refused(report)) = profile.package().await else { panic!("it is refused") };
            let place = report.refusals[0].body.place.as_ref().unwrap();
            let shown = &text[place.span.clone()];
            assert_eq!(place.path, path);
            assert!(shown == "[]" || shown.contains("../"), "{shown}");
        }
        write(dir.path(), "profile.json", b"\xff");
        assert!(provisioning_refuses_unfit_package(&profile).await.contains("not UTF-8"));
        std::fs::remove_file(dir.path().join("profile.json")).unwrap();
        assert!(provisioning_refuses_unfit_package(&profile).await.contains("it contains no profile.json"));
    }

    #[tokio::test]
    async fn a_key_without_effect_is_reported() {
        let (_dir, profile) = folder(&ONE.replace("\"executable\"", "\"executible\""));
        let package = provisioning_returns_package(&profile).await;
        assert_eq!(package.report.warnings[0].body.help.as_deref(), Some("did you mean `executable`?"));
    }

    #[tokio::test]
    async fn links_of_a_folder_stay_within_it() {
        let (dir, profile) = folder(ONE);
        let elsewhere = tempfile::tempdir().unwrap();
        write(elsewhere.path(), "secret", "s");
        let path = dir.path().join("files/.claude/a.md");
        write(dir.path(), "files/b.md", "B\n");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("../b.md", &path).unwrap();
        assert_eq!(&*provisioning_returns_package(&profile).await.files()[0].bytes, b"B\n");
        for target in [elsewhere.path().join("secret"), "../../../../../../../../etc/passwd".into()] {
            std::fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(target, &path).unwrap();
            assert!(
                provisioning_refuses_unfit_package(&profile)
                    .await
                    .contains("is a link that leads out of the profile")
            );
        }
    }

    #[tokio::test]
    async fn too_large_a_file_is_refused() {
        let (dir, profile) = folder(ONE);
        let file = std::fs::File::create(dir.path().join("files/.claude/a.md")).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(provisioning_refuses_unfit_package(&profile).await.contains("is larger than 16 MiB"));
        write(dir.path(), "profile.json", " ".repeat(MAX_MANIFEST_BYTES as usize + 1));
        assert!(provisioning_refuses_unfit_package(&profile).await.contains("is larger than 1 MiB"));
    }

    #[tokio::test]
    async fn a_file_is_no_profile() {
        let (dir, _) = folder(ONE);
        let said =
            provisioning_refuses_unfit_package(&from_path(dir.path().join("profile.json"), "p.tgz")).await;
        assert!(said.contains("p.tgz: it is not a folder"), "{said}");
    }
}
