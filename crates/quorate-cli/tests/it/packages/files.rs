//! Archive, Debian package, formula, flake and Containerfile.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{TestDir, clean, has, pack, root, script, text, tools};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Whether a program that was unpacked reviews a draft.
fn reviews(place: &TestDir, program: &Path) {
    std::fs::copy(root().join("examples/incident-report.md"), place.path("draft.md")).unwrap();
    let said = text(clean(place, program).args(["review", "draft.md", "--format", "json"]).output().unwrap());
    let review: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(review["verdict"], "SHIP", "{review}");
}

fn unpack(place: &TestDir, archive: &Path) {
    text(clean(place, "tar").arg("-xzf").arg(archive).output().unwrap());
}

#[test]
fn an_archive_has_all_that_an_installation_needs() {
    if tools().is_none() {
        return;
    }
    let place = TestDir::new();
    let packages = pack(&place, "archive");
    let [sbom, archive] = &packages[..] else { panic!("{packages:?}") };
    for package in &packages {
        let name = package.file_name().unwrap().to_str().unwrap();
        let sums = place.path("packages");
        text(
            clean(&place, "sha256sum")
                .args(["--check", &format!("{name}.sha256")])
                .current_dir(sums)
                .output()
                .unwrap(),
        );
    }
    unpack(&place, archive);
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap().to_owned();
    let details = text(Command::new(env!("CARGO_BIN_EXE_quorate")).args(["-vV"]).output().unwrap());
    let target = details.lines().find_map(|line| line.strip_prefix("target: ")).unwrap();
    assert_eq!(name, format!("quorate-{VERSION}-{target}"));
    let read = |file: &str| place.read(&format!("{name}/{file}"));
    for (file, words) in [
        ("completions/quorate.bash", "max-calls"),
        ("completions/quorate.zsh", "max-calls"),
        ("completions/quorate.fish", "max-calls"),
        ("man/quorate.1", "quorate"),
        ("man/quorate-review.1", "review"),
        ("LICENSE-MIT", "MIT License"),
        ("LICENSE-APACHE", "Apache License"),
        ("README.md", "# Quorate"),
    ] {
        assert!(read(file).contains(words), "{file}");
    }
    reviews(&place, &place.path(&format!("{name}/quorate")));
    components(&place, sbom, &read("THIRD-PARTY-LICENSES.txt"));
    formula(&place, archive);
    super::action::installs_and_reviews(&place, archive);
}

/// The list of components is CycloneDX, and has the versions of the lock; each has its licence.
fn components(place: &TestDir, sbom: &Path, licences: &str) {
    let sbom: Value = serde_json::from_slice(&std::fs::read(sbom).unwrap()).unwrap();
    assert_eq!((&sbom["bomFormat"], &sbom["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    assert_eq!(sbom["metadata"]["component"]["version"], VERSION);
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let listed = sbom["components"].as_array().unwrap();
    let names: BTreeSet<&str> = listed.iter().filter_map(|component| component["name"].as_str()).collect();
    for name in ["tokio", "rustls", "sqlx-postgres", "rmcp", "axum", "libsqlite3-sys"] {
        assert!(names.contains(name), "{name} is in the binary: {names:?}");
        assert!(licences.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}");
    }
    for name in ["insta", "proptest", "cc"] {
        assert!(!names.contains(name), "{name} is in no binary");
    }
    for component in listed
        .iter()
        .filter(|component| component["purl"].as_str().is_some_and(|purl| !purl.contains("file:")))
    {
        let (name, version) = (component["name"].as_str().unwrap(), component["version"].as_str().unwrap());
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")), "{component}");
    }
    assert!(licences.contains("Permission is hereby granted") && licences.contains("Apache License"));
    let left = text(
        clean(place, "git").args(["-C", root().to_str().unwrap(), "status", "--porcelain"]).output().unwrap(),
    );
    assert!(!left.contains("quorate-sbom"), "nothing is left in the sources: {left}");
}

/// The formula downloads the archive that was packed, and nothing else.
fn formula(place: &TestDir, archive: &Path) {
    let out = place.path("packages");
    let url = "https://example.org/download/";
    let mut command = Command::new(root().join("scripts/package"));
    text(command.args(["homebrew", url, "--out"]).arg(&out).output().unwrap());
    let formula = place.read("packages/quorate.rb");
    let sum = place.read(&format!("packages/{}.sha256", archive.file_name().unwrap().to_str().unwrap()));
    let name = archive.file_name().unwrap().to_str().unwrap();
    assert!(formula.contains(&format!("url \"{url}{name}\"")), "{formula}");
    assert!(formula.contains(&format!("sha256 \"{}\"", sum.split(' ').next().unwrap())), "{formula}");
    assert!(!formula.contains('@') && formula.matches("sha256").count() == 1, "{formula}");
    if has("ruby") {
        text(clean(place, "ruby").arg("-c").arg(out.join("quorate.rb")).output().unwrap());
    }
    let empty = place.path("empty");
    let output =
        Command::new(root().join("scripts/package")).args(["homebrew", url, "--out"]).arg(&empty).output();
    assert_eq!(output.unwrap().status.code(), Some(1), "a formula needs an archive");
}

#[test]
fn a_debian_package_has_the_program_where_debian_looks() {
    if tools().is_none() {
        return;
    }
    if !has("dpkg-deb") {
        eprintln!("SKIPPED: the Debian package (dpkg-deb is missing)");
        return;
    }
    let place = TestDir::new();
    let packages = pack(&place, "deb");
    let [package] = &packages[..] else { panic!("{packages:?}") };
    let field =
        |name: &str| text(clean(&place, "dpkg-deb").arg("--field").arg(package).arg(name).output().unwrap());
    assert_eq!(field("Package"), "quorate\n");
    assert!(field("Version").starts_with(VERSION));
    assert!(field("Depends").contains("libc6"), "{}", field("Depends"));
    text(clean(&place, "dpkg-deb").arg("--extract").arg(package).arg("root").output().unwrap());
    for file in [
        "man/man1/quorate-review.1.gz",
        "bash-completion/completions/quorate",
        "zsh/vendor-completions/_quorate",
        "fish/vendor_completions.d/quorate.fish",
        "doc/quorate/copyright",
        "doc/quorate/THIRD-PARTY-LICENSES.txt",
    ] {
        assert!(place.path(&format!("root/usr/share/{file}")).is_file(), "{file}");
    }
    reviews(&place, &place.path("root/usr/bin/quorate"));
}

#[test]
fn the_image_has_no_root_and_no_distribution() {
    let file = std::fs::read_to_string(root().join("Containerfile")).unwrap();
    let (_, last) = file.rsplit_once("\nFROM ").unwrap();
    assert!(last.starts_with("scratch\n"), "{last}");
    let user = last.lines().find_map(|line| line.strip_prefix("USER ")).expect("a user");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
    for command in ["--locked", "--profile dist", "--all-features", "-linux-musl"] {
        assert!(file.contains(command), "{command}");
    }
    let Some(tools) = tools() else { return };
    let place = TestDir::new();
    let bad = "FROM debian\nRUN cd /tmp && apt-get install curl\n";
    place.write("Containerfile", bad);
    let hadolint = |file: &Path| clean(&place, tools.join("bin/hadolint")).arg(file).output().unwrap();
    text(hadolint(&root().join("Containerfile")));
    assert!(!hadolint(&place.path("Containerfile")).status.success(), "it finds what is wrong");
}

#[test]
fn the_flake_is_nix_and_builds_what_is_released() {
    let flake = std::fs::read_to_string(root().join("flake.nix")).unwrap();
    for words in [
        "cargoLock.lockFile = ./Cargo.lock",
        "buildType = \"dist\"",
        "--all-features",
        "--package=quorate-cli",
    ] {
        assert!(flake.contains(words), "{words}");
    }
    let Some(tools) = tools() else { return };
    let place = TestDir::new();
    let parses = |file: &Path| {
        let script = "import sys, tree_sitter as t, tree_sitter_nix as n\n\
                      tree = t.Parser(t.Language(n.language())).parse(open(sys.argv[1], 'rb').read())\n\
                      sys.exit(tree.root_node.has_error)";
        clean(&place, tools.join("bin/python"))
            .args(["-c", script])
            .arg(file)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(parses(&root().join("flake.nix")));
    place.write("flake.nix", flake.replacen("};", "}", 1));
    assert!(!parses(&place.path("flake.nix")), "it finds what is wrong");
}

#[test]
fn only_what_is_known_is_packed() {
    for arguments in
        [&["zip"][..], &["archive", "--profile", "fast"], &["archive", "file"], &["homebrew"], &["action"]]
    {
        let output = script(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {output:?}");
    }
    let place = TestDir::new();
    place.write("other", "#!/bin/sh\necho quorate 9.9.9\n");
    text(clean(&place, "chmod").args(["+x", "other"]).output().unwrap());
    let mut command = Command::new(root().join("scripts/package"));
    command.args(["archive", "--out"]).arg(place.path("out")).arg("--binary").arg(place.path("other"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "another version: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not quorate"), "{output:?}");
}
