//! The `profile` provisioning: `runtime-profile/v1`, a folder with a `profile.json`. Files are opened
//! beneath the folder from an open handle, so that no link and no `..` leads out. All problems of a `profile.json` are
//! reported at once, with their places. Unknown keys at its root may belong to other programs and are ignored; an unknown
//! key of a file is reported, since it would have no effect.
//!
//! A `src` is relative to `files/` where the profile has such a folder, else to the profile itself.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::files::Root;
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::provisioning::{
    About, Destination, Failure, FileMode, MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES, Package,
    PackageFile, Provisioning, Strategy,
};
use quorate_kernel::registry::BuildContext;
use quorate_manifest::json_schema::CompiledSchema;
use quorate_manifest::tree::{self, Field, Kind, SourceFile};
use quorate_manifest::workspace::WorkspaceError;
use serde_json::{Value, json};

use crate::block::{Block, nearest, quoted_list};

/// The kind that manifests name.
pub const KIND: &str = "profile";

const MANIFEST_NAME: &str = "profile.json";

/// Where the public packages keep their files.
const FILES_FOLDER: &str = "files";

/// How many bytes a manifest may have.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// The only supported schema.
const SCHEMA: &str = "agentproto/runtime-profile/v1";

/// The keys of a file.
const FILE_KEYS: &[&str] = &["src", "dest", "strategy", "executable"];

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

#[async_trait]
impl Provisioning for Profile {
    fn about(&self) -> About {
        About { kind: KIND, from: self.display_name.clone() }
    }

    async fn package(&self) -> Result<Package, Failure> {
        let dir = self.open()?;
        let bytes = read(&dir, MANIFEST_NAME, MAX_MANIFEST_BYTES).map_err(|why| self.refusal(&why))?;
        let text = String::from_utf8(bytes).map_err(|_| self.refusal("profile.json is not UTF-8"))?;
        let manifest_name = format!("{}/{MANIFEST_NAME}", self.display_name);
        // Editors on Windows write a byte order mark.
        let text = text.trim_start_matches('\u{feff}').into();
        let source = SourceFile::new(&manifest_name, text, codes::PROFILE_INVALID);
        let package = self.read_package(&dir, &source);
        let mut report = source.into_report();
        let Some(mut package) = package.filter(|_| !report.has_refusals()) else {
            return Err(Failure::Refused(Box::new(report)));
        };
        if report.warnings.is_empty() {
            report.retain_sources(|_| false);
        }
        package.report = report;
        Ok(package)
    }
}

impl Profile {
    fn open(&self) -> Result<Root, Failure> {
        let unavailable = |error: io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Failure::Missing { message: format!("no profile {}", self.display_name) }
            }
            _ => Failure::Unavailable {
                message: format!("cannot read {}: {error}", self.display_name),
                source: Some(Box::new(error)),
            },
        };
        if !std::fs::metadata(&self.path).map_err(unavailable)?.is_dir() {
            return Err(self.refusal("it is not a folder; unpack an archive and name its folder"));
        }
        Root::open(&self.path).map_err(unavailable)
    }

    fn refusal(&self, why: &str) -> Failure {
        let mut report = Report::new();
        report.refuse(codes::PROFILE_INVALID, Body::new(format!("{}: {why}", self.display_name)));
        Failure::Refused(Box::new(report))
    }

    /// The valid part of a manifest as a package. Reports every problem to `source`.
    fn read_package(&self, dir: &Root, source: &SourceFile) -> Option<Package> {
        let text = source.text();
        if let Err(error) = serde_json::from_str::<Value>(text) {
            let line: usize = text.split_inclusive('\n').take(error.line() - 1).map(str::len).sum();
            let at = (line + error.column().saturating_sub(1)).min(text.len());
            let body = Body::new(format!("this is not JSON: {error}"));
            source.refuse(codes::PROFILE_INVALID, body.at(source.place(at..at, "")));
            return None;
        }
        // JSON is YAML, whose parser also gives the place of each value, and refuses a duplicate key.
        let (root, problems) = tree::yaml::parse(text);
        for problem in problems {
            source.refuse(codes::PROFILE_INVALID, problem.body(|span| source.place(span, "")));
        }
        let root = root?;
        let text = json!({"type": "string", "pattern": "[^\\s]"});
        let file = json!({
            "type": "object",
            "required": ["src", "dest", "strategy"],
            "properties": {"src": text, "dest": text, "strategy": text, "executable": {"type": "boolean"}}
        });
        let schema = CompiledSchema::parse(&json!({
            "type": "object",
            "required": ["schema", "slug", "version", "files"],
            "properties": {
                "schema": text, "slug": text, "version": text, "files": {"type": "array", "items": file}
            }
        }));
        let mut package = None;
        let read: Option<Value> = source.read(&root, &schema?, |root| package = self.package_of(dir, root));
        read.and(package)
    }

    /// The valid part of a manifest's root as a package.
    fn package_of(&self, dir: &Root, root: &Field<'_>) -> Option<Package> {
        if let Some((schema, field)) = text_of(root, "schema").filter(|(schema, _)| *schema != SCHEMA) {
            let message = format!("`{schema}` is not a supported schema of profiles");
            field.invalid_with(message, format!("use `{SCHEMA}`"));
        }
        let files = root.get("files")?;
        let items = files.items();
        if matches!(files.kind(), Kind::Seq(_)) && items.is_empty() {
            let help = "`quorate provision uninstall SLUG` removes what is installed already";
            files.invalid_with("`files` is empty, so nothing would be installed", help);
        }
        let below = match dir.list(Path::new(FILES_FOLDER)) {
            Ok(_) => format!("{FILES_FOLDER}/"),
            Err(_) => String::new(),
        };
        // Goes through all files before it gives up, so that all problems are reported.
        let mut pieces = Vec::new();
        let mut total = 0;
        for item in items.iter().take(MAX_FILES + 1) {
            let piece = self.read_piece(dir, &below, item);
            total += piece.as_ref().map_or(0, |piece| piece.bytes.len() as u64);
            pieces.push(piece);
            if total > MAX_PACKAGE_BYTES {
                break;
            }
        }
        let pieces: Vec<PackageFile> = pieces.into_iter().collect::<Option<_>>()?;
        let ((slug, slug_field), (version, _)) = (text_of(root, "slug")?, text_of(root, "version")?);
        Package::new(slug, version, pieces)
            .map_err(|unfit| match unfit.file.and_then(|at| items[at].get("dest")) {
                Some(dest) => dest.invalid(unfit.message),
                None => slug_field.invalid(unfit.message),
            })
            .ok()
    }

    /// The file of a list's item.
    fn read_piece(&self, dir: &Root, below: &str, item: &Field<'_>) -> Option<PackageFile> {
        for (key, field) in item.entries().iter().filter(|(key, _)| !FILE_KEYS.contains(key)) {
            let mut body = Body::new(format!("`{key}` of a file is not read here"));
            body.help = nearest(key, FILE_KEYS).map(|near| format!("did you mean `{near}`?"));
            field.warn(codes::FIELD_WITHOUT_EFFECT, body);
        }
        let dest = text_of(item, "dest").and_then(|(dest, field)| {
            Destination::parse(dest).map_err(|problem| field.invalid(format!("dest {problem}"))).ok()
        });
        let strategy = text_of(item, "strategy").and_then(|(word, field)| {
            let known = Strategy::ALL.into_iter().find(|strategy| strategy.as_str() == word);
            if known.is_none() {
                let help =
                    format!("the strategies are {}", quoted_list(&Strategy::ALL.map(Strategy::as_str)));
                field.invalid_with(format!("unknown strategy `{word}`"), help);
            }
            known
        });
        let (src, bytes) = text_of(item, "src").and_then(|(src, field)| {
            let src = format!("{below}{src}");
            let bytes = read(dir, &src, MAX_FILE_BYTES).map_err(|why| field.invalid(why)).ok()?;
            Some((src, bytes))
        })?;
        let is_executable = item.get("executable").is_some_and(|field| *field.kind() == Kind::Bool(true));
        Some(PackageFile {
            dest: dest?,
            strategy: strategy?,
            mode: if is_executable { FileMode::Executable } else { FileMode::Plain },
            bytes: bytes.into(),
            source: format!("{}/{src}", self.display_name),
        })
    }
}

/// The text of a key that is not blank, with its field.
fn text_of<'d>(mapping: &Field<'d>, key: &str) -> Option<(&'d str, Field<'d>)> {
    let field = mapping.get(key)?;
    Some((field.text()?, field))
}

/// A file of the profile.
///
/// # Errors
/// If it is not a file, leads out of the folder, or has more than `limit` bytes. The text says which.
fn read(dir: &Root, path: &str, limit: u64) -> Result<Vec<u8>, String> {
    dir.read_regular(Path::new(path), limit).map_err(|error| match error {
        WorkspaceError::Missing => format!("{path} is not in the profile"),
        WorkspaceError::Outside => format!("{path} leads out of the profile"),
        WorkspaceError::TooLarge => format!("{path} is larger than {} MiB", limit >> 20),
        WorkspaceError::Unreadable(error)
            if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::InvalidInput) =>
        {
            format!("{path} is not a file")
        }
        WorkspaceError::Unreadable(error) => format!("{path} cannot be read: {error}"),
    })
}

#[cfg(test)]
mod tests {
    //! Profiles, whole, wrong and hostile.

    #![expect(clippy::disallowed_methods, reason = "tests write the profiles that they read")]

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
        write(dir.path(), "profile.json", format!("\u{feff}{}", manifest(ONE).replace(", ", ",\r\n\t\t")));
        provisioning_returns_package(&profile).await;
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
            (file(".git/hooks/x", "append"), "is in .git"),
            (file("/etc/x", "append"), "not a path below the target"),
            (file(".Quorate/x", "append"), "lies in .quorate"),
            (file("x", "replace"), "unknown strategy `replace`"),
            (format!("{}, {}", file("a/b", "append"), file("./a//b", "append")), "is the same place"),
            (format!("{}, {}", file("a", "append"), file("A", "append")), "differs only in case"),
            (format!("{}, {}", file("a", "append"), file("a/b", "append")), "both a file and a folder"),
            (ONE.replace(".claude/a.md\", \"dest", "../../x\", \"dest"), "leads out of the profile"),
            (ONE.replace(".claude/a.md\", \"dest", "/etc/x\", \"dest"), "is not in the profile"),
            (ONE.replace(".claude/a.md\", \"dest", "b.md\", \"dest"), "files/b.md is not in the profile"),
            (ONE.replace(".claude/a.md\", \"dest", ".claude\", \"dest"), "is not a file"),
            (ONE.replace("true", "\"yes\""), "`files[0].executable` has to be true or false"),
            (ONE.replace("\"src\"", "\"scr\""), "`src` is missing"),
            ("3".to_owned(), "has to be a mapping"),
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
            ("[]", "has to be a mapping"),
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
            assert!(shown.contains("files") || shown.contains("../"), "{shown}");
        }
        write(dir.path(), "profile.json", b"\xff");
        assert!(provisioning_refuses_unfit_package(&profile).await.contains("not UTF-8"));
        std::fs::remove_file(dir.path().join("profile.json")).unwrap();
        assert!(
            provisioning_refuses_unfit_package(&profile).await.contains("profile.json is not in the profile")
        );
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
            assert!(provisioning_refuses_unfit_package(&profile).await.contains("leads out of the profile"));
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
