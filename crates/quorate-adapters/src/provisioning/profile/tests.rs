//! Profiles as folders and archives, whole, wrong and hostile.

#![expect(clippy::disallowed_methods, reason = "tests write the profiles that they read")]

use std::io::Write as _;
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

/// What a tar holds: a name, what it is, and its content or its target.
type Entries<'e> = &'e [(&'e str, tar::EntryType, &'e [u8])];

fn tar_of(entries: Entries<'_>) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let link = matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link);
        if link {
            header.set_link_name_literal(content).unwrap();
        }
        // The builder refuses names that lead out, so they are put into the header as they are.
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(if link { 0 } else { content.len() as u64 });
        header.set_cksum();
        builder.append(&header, if link { &[][..] } else { content }).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in entries {
        let options = zip::write::SimpleFileOptions::default();
        if let Some(target) = name.strip_suffix('@') {
            writer.add_symlink(target, std::str::from_utf8(content).unwrap(), options).unwrap();
        } else {
            writer.start_file(*name, options).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn archive(dir: &Path, bytes: &[u8]) -> Profile {
    write(dir, "p.archive", bytes);
    from_path(dir.join("p.archive"), "p.archive")
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
    // Without the folder, the files lie beside the manifest.
    std::fs::remove_dir_all(dir.path().join("files")).unwrap();
    write(dir.path(), ".claude/a.md", "C\n");
    assert_eq!(&*returns_package(&profile).await.files()[0].bytes, b"C\n");
    reports_missing(&from_path(dir.path().join("nowhere"), "nowhere")).await;
    reports_missing(&from_path(dir.path().join("profile.json/x"), "x")).await;
}

#[tokio::test]
async fn archives_hold_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (text, file) = (manifest(ONE), tar::EntryType::Regular);
    for top in ["", "./", "package/"] {
        let (json, content) = (format!("{top}profile.json"), format!("{top}files/.claude/a.md"));
        let mut entries = vec![(json.as_str(), file, text.as_bytes()), (content.as_str(), file, &b"A\n"[..])];
        if !top.is_empty() {
            entries.insert(0, (top, tar::EntryType::Directory, &b""[..]));
        }
        let plain = tar_of(&entries);
        let zipped = zip_of(&[(&json, text.as_bytes()), (&content, b"A\n")]);
        for bytes in [plain.clone(), gzipped(&plain), zipped] {
            let package = returns_package(&archive(dir.path(), &bytes)).await;
            assert_eq!(&*package.files()[0].bytes, b"A\n", "{top}");
        }
    }
}

#[tokio::test]
async fn what_a_manifest_says_wrong_is_told_at_its_place_and_at_once() {
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
async fn a_key_without_effect_is_told() {
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
async fn hostile_archives_are_refused_by_name() {
    use tar::EntryType::{Fifo, Link, Regular, Symlink};
    let dir = tempfile::tempdir().unwrap();
    let text = manifest(ONE);
    let json = ("profile.json", Regular, text.as_bytes());
    let large = vec![0; MAX_FILE_BYTES as usize + 1];
    let many: Vec<String> = (0..5_000).map(|at| format!("f{at}")).collect();
    let mut flood = vec![json];
    flood.extend(many.iter().map(|name| (name.as_str(), Regular, &b""[..])));
    let filling = vec![0; MAX_FILE_BYTES as usize];
    let heavy: Vec<_> = many[..5].iter().map(|name| (name.as_str(), Regular, &filling[..])).collect();
    let cases: [(Vec<u8>, &str); 10] = [
        (tar_of(&[json, ("../x", Regular, b"x")]), "the entry `../x` leads out of the profile with `..`"),
        (tar_of(&[json, ("a/../../x", Regular, b"x")]), "`a/../../x` leads out"),
        (tar_of(&[json, ("/etc/x", Regular, b"x")]), "`/etc/x` is absolute"),
        (tar_of(&[json, ("files/l", Symlink, b"/etc")]), "the entry `files/l` is a link"),
        (tar_of(&[json, ("files/l", Link, b"profile.json")]), "the entry `files/l` is a link"),
        (tar_of(&[json, ("files/p", Fifo, b"")]), "neither a file nor a folder"),
        (tar_of(&[json, ("./profile.json", Regular, b"{}")]), "`profile.json` is there twice"),
        (tar_of(&[json, ("files/big", Regular, &large)]), "`files/big` is larger than 16 MiB"),
        (tar_of(&flood), "more than 4000 entries"),
        (tar_of(&heavy), "more than 64 MiB together"),
    ];
    for (bytes, says) in cases {
        for bytes in [gzipped(&bytes), bytes].into_iter().filter(|bytes| bytes.len() < 64 << 20) {
            let said = refuses_unfit_package(&archive(dir.path(), &bytes)).await;
            assert!(said.contains(says), "{says}: {said}");
        }
    }
    for (bytes, says) in [
        (zip_of(&[("profile.json", text.as_bytes()), ("../x", b"x")]), "`../x` leads out"),
        (zip_of(&[("profile.json", text.as_bytes()), ("files/l@", b"/etc/passwd")]), "`files/l` is a link"),
        (zip_of(&[("files/big", &large)]), "`files/big` is larger than 16 MiB"),
        (b"PK\x03\x04 and no more".to_vec(), "the archive cannot be read"),
        (b"\x1f\x8b and no more".to_vec(), "the archive cannot be read"),
        (b"nothing of the kind".to_vec(), "it is no archive"),
        (Vec::new(), "it is no archive"),
    ] {
        let said = refuses_unfit_package(&archive(dir.path(), &bytes)).await;
        assert!(said.contains(says), "{says}: {said}");
    }
}
