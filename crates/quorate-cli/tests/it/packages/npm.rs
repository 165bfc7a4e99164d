//! The npm packages in a folder without anything else, and the tests and types of the one with functions.

use std::path::Path;

use serde_json::Value;

use super::{TestDir, clean, has, pack, root, text};

const TYPESCRIPT: &str = "QUORATE_TEST_TYPESCRIPT";

#[test]
fn npm_packages_bring_the_program_and_functions_that_call_it() {
    if !has("npm") || !has("node") {
        eprintln!("SKIPPED: the npm packages (Node with npm is missing)");
        return;
    }
    let place = TestDir::new();
    let packages = pack(&place, "npm");
    let [platform, functions] = &packages[..] else { panic!("{packages:?}") };
    place.write("package.json", "{\"private\": true, \"type\": \"module\"}\n");
    std::fs::copy(root().join("examples/incident-report.md"), place.path("draft.md")).unwrap();
    // Without a network: what other platforms would need is left out.
    let mut install = clean(&place, "npm");
    install
        .args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"])
        .arg(platform)
        .arg(functions);
    text(install.output().unwrap());

    let npx = |arguments: &[&str]| {
        clean(&place, "npx").args(["--offline", "quorate"]).args(arguments).output().unwrap()
    };
    assert_eq!(text(npx(&["--version"])), format!("quorate {}\n", env!("CARGO_PKG_VERSION")));
    let reviewed: Value =
        serde_json::from_str(&text(npx(&["review", "draft.md", "--format", "json"]))).unwrap();
    assert_eq!(reviewed["verdict"], "SHIP");
    assert_eq!(npx(&["review", "absent.md"]).status.code(), Some(4), "the exit code is the program's");

    let tests = root().join("packages/npm/tests");
    std::fs::copy(tests.join("calls.test.js"), place.path("calls.test.js")).unwrap();
    let mut node = clean(&place, "node");
    node.args(["--test", "calls.test.js"]).env("QUORATE_EXAMPLES", root().join("examples"));
    text(node.output().unwrap());
    types(&place, &tests.join("types.ts"));

    std::fs::remove_dir_all(place.path("node_modules/@quorate")).unwrap();
    let missing = npx(&["--version"]);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(5) && said.contains("@quorate/"), "{said}");
}

/// The output of TypeScript's strict type check.
fn types(place: &TestDir, source: &Path) {
    let Ok(folder) = std::env::var(TYPESCRIPT) else {
        eprintln!(
            "SKIPPED: the types of the npm package (scripts/services install typescript prints {TYPESCRIPT})"
        );
        return;
    };
    std::fs::copy(source, place.path("types.ts")).unwrap();
    let compiler = Path::new(&folder).join("node_modules/typescript/bin/tsc");
    let types = Path::new(&folder).join("node_modules/@types");
    let mut check = clean(place, "node");
    check.arg(compiler).args([
        "--strict",
        "--noEmit",
        "--noUncheckedIndexedAccess",
        "--exactOptionalPropertyTypes",
    ]);
    check
        .args(["--module", "nodenext", "--target", "es2022", "--types", "node", "--typeRoots"])
        .arg(types)
        .arg("types.ts");
    text(check.output().unwrap());
}

#[test]
fn the_npm_package_is_packed_with_all_that_it_needs() {
    if !has("npm") {
        eprintln!("SKIPPED: the npm packages (npm is missing)");
        return;
    }
    let place = TestDir::new();
    let folder = root().join("packages/npm");
    let mut pack = clean(&place, "npm");
    pack.args(["pack", "--dry-run", "--json", "--loglevel=error"]).current_dir(&folder);
    let said: Value = serde_json::from_str(&text(pack.output().unwrap())).unwrap();
    // Newer versions of npm name the packages.
    let packed = said.get(0).or_else(|| said.get("quorate")).unwrap_or_else(|| panic!("{said}"));
    let files: Vec<&str> =
        packed["files"].as_array().unwrap().iter().filter_map(|file| file["path"].as_str()).collect();
    for file in ["bin/quorate.js", "index.js", "index.d.ts", "models.d.ts", "program.js", "README.md"] {
        assert!(files.contains(&file), "{file}: {files:?}");
    }
    assert!(!files.iter().any(|file| file.contains("test")), "{files:?}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("package.json")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(manifest["version"], version);
    let platforms = manifest["optionalDependencies"].as_object().unwrap();
    assert!(platforms.values().all(|wanted| wanted == version), "{platforms:?}");
    // Each platform that the script can pack is one that npm looks for, and the other way round.
    let script = std::fs::read_to_string(root().join("scripts/package")).unwrap();
    let packed = script.lines().filter_map(|line| line.split_once(") echo ")?.1.strip_suffix(" ;;"));
    let mut packed: Vec<String> = packed.map(|platform| format!("@quorate/{platform}")).collect();
    packed.sort();
    assert_eq!(packed, platforms.keys().cloned().collect::<Vec<_>>());
}
