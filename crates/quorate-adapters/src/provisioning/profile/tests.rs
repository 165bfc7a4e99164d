//! Profiles, whole, wrong and hostile.

#![expect(clippy::disallowed_methods, reason = "tests write the profiles that they read")]

use std::path::Path;

use quorate_kernel::ports::provisioning::{FileMode, Strategy};
use quorate_testkit::conformance::provisioning::{
    refuses_unfit_package, reports_missing, returns_current_package, returns_package,
};

use super::*;

const HEAD: &str =
    r#""schema": "agentproto/runtime-profile/v1", "slug": "runtime-profile/standard", "version": "0.1.0""#;

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
    let package = returns_package(&profile).await;
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
    returns_current_package(&profile, "0.2.0", &[changed]).await;
    // Without the folder, the files are beside the manifest.
    std::fs::remove_dir_all(dir.path().join("files")).unwrap();
    write(dir.path(), ".claude/a.md", "C\n");
    assert_eq!(&*returns_package(&profile).await.files()[0].bytes, b"C\n");
    reports_missing(&from_path(dir.path().join("nowhere"), "nowhere")).await;
    reports_missing(&from_path(dir.path().join("profile.json/x"), "x")).await;
}

#[tokio::test]
async fn errors_of_a_manifest_are_reported_at_their_places_at_once() {
    let file = |dest: &str, strategy: &str| {
        format!(r#"{{"src": ".claude/a.md", "dest": "{dest}", "strategy": "{strategy}"}}"#)
    };
    for (files, says) in [
        (file("../x", "append"), "leads out with `..`"),
        (file("/etc/x", "append"), "no path beneath the target"),
        (file(".Quorate/x", "append"), "lies in .quorate"),
        (file("x", "replace"), "there is no strategy `replace`"),
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
        let said = refuses_unfit_package(&profile).await;
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
            "no schema of profiles",
        ),
        (&format!("{{{HEAD}}}"), "`files` is missing"),
        (&manifest(""), "`files` is empty"),
        (&manifest(ONE).replace("\"runtime-profile/", "\"../../../"), "a slug is"),
        (&manifest(ONE).replace("\"runtime-profile/", "\"/"), "a slug is"),
    ] {
        write(dir.path(), "profile.json", text);
        assert!(refuses_unfit_package(&profile).await.contains(says), "{says}");
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
    assert!(refuses_unfit_package(&profile).await.contains("not UTF-8"));
    std::fs::remove_file(dir.path().join("profile.json")).unwrap();
    assert!(refuses_unfit_package(&profile).await.contains("there is no profile.json in it"));
}

#[tokio::test]
async fn a_key_without_effect_is_reported() {
    let (_dir, profile) = folder(&ONE.replace("\"executable\"", "\"executible\""));
    let package = returns_package(&profile).await;
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
    assert_eq!(&*returns_package(&profile).await.files()[0].bytes, b"B\n");
    for target in [elsewhere.path().join("secret"), "../../../../../../../../etc/passwd".into()] {
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(target, &path).unwrap();
        assert!(refuses_unfit_package(&profile).await.contains("is a link that leads out of the profile"));
    }
}

#[tokio::test]
async fn too_large_a_file_is_refused() {
    let (dir, profile) = folder(ONE);
    let file = std::fs::File::create(dir.path().join("files/.claude/a.md")).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    assert!(refuses_unfit_package(&profile).await.contains("is larger than 16 MiB"));
    write(dir.path(), "profile.json", " ".repeat(MAX_MANIFEST_BYTES as usize + 1));
    assert!(refuses_unfit_package(&profile).await.contains("is larger than 1 MiB"));
}

#[tokio::test]
async fn a_file_is_no_profile() {
    let (dir, _) = folder(ONE);
    let said = refuses_unfit_package(&from_path(dir.path().join("profile.json"), "p.tgz")).await;
    assert!(said.contains("p.tgz: it is not a folder"), "{said}");
}
