//! The wheel in an environment without anything else, and the tests and types of its Python package.

use std::path::{Path, PathBuf};

use super::{TestDir, clean, pack, root, text, tools};

/// An environment with the wheel alone: its folder, and where its packages are.
fn installed(place: &TestDir, tools: &Path, wheel: &Path) -> (PathBuf, PathBuf) {
    let folder = place.path("environment");
    text(clean(place, tools.join("bin/python")).args(["-m", "venv"]).arg(&folder).output().unwrap());
    let mut pip = clean(place, folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(wheel);
    text(pip.output().unwrap());
    let mut asked = clean(place, folder.join("bin/python"));
    let packages =
        text(asked.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).output().unwrap());
    (folder, PathBuf::from(packages.trim()))
}

#[test]
fn a_wheel_brings_the_program_and_functions_that_call_it() {
    let Some(tools) = tools() else { return };
    let place = TestDir::new();
    let packages = pack(&place, "wheel");
    let [wheel] = &packages[..] else { panic!("{packages:?}") };
    let python = |arguments: &[&str]| {
        let mut command = clean(&place, tools.join("bin/python"));
        command.args(arguments);
        command
    };
    text(python(&["-m", "twine", "check", "--strict"]).arg(wheel).output().unwrap());
    let (folder, packages) = installed(&place, &tools, wheel);
    for part in
        ["licenses/LICENSE-MIT", "licenses/THIRD-PARTY-LICENSES.txt", "sboms/quorate-cli.cyclonedx.json"]
    {
        let file = packages.join(format!("quorate-{}.dist-info/{part}", env!("CARGO_PKG_VERSION")));
        assert!(file.is_file(), "{}", file.display());
    }

    // No other program is on the path: the functions find the one that came with them.
    std::fs::copy(root().join("examples/incident-report.md"), place.path("draft.md")).unwrap();
    let in_it = |program: &str, arguments: &[&str]| {
        text(clean(&place, folder.join("bin").join(program)).args(arguments).output().unwrap())
    };
    let version = format!("quorate {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(in_it("quorate", &["--version"]), version);
    assert_eq!(in_it("python", &["-m", "quorate", "--version"]), version);
    let script = "import quorate; print(quorate.program(), quorate.review('draft.md').verdict)";
    assert_eq!(in_it("python", &["-c", script]), format!("{} SHIP\n", folder.join("bin/quorate").display()));

    // The package's own tests, on what was installed; the plugin is found as pytest finds plugins.
    let mut tests = python(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]);
    tests.arg(format!("--rootdir={}", place.root().display())).arg("-c").arg("/dev/null");
    tests.arg(root().join("packages/python/tests"));
    tests.env("PYTHONPATH", &packages).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("QUORATE_PROGRAM", folder.join("bin/quorate"));
    let said = text(tests.output().unwrap());
    assert!(said.contains(" passed"), "{said}");
}

#[test]
fn types_of_the_python_package_are_checked_strictly() {
    let Some(tools) = tools() else { return };
    let place = TestDir::new();
    let check = |folder: &Path| {
        let mut mypy = clean(&place, tools.join("bin/python"));
        mypy.args(["-m", "mypy", "--strict", "--python-version=3.10", "--no-error-summary", "--cache-dir"]);
        mypy.arg(place.path("cache")).arg(folder);
        mypy.env("MYPYPATH", root().join("packages/python/src")).output().unwrap()
    };
    text(check(&root().join("packages/python/src")));
    text(check(&root().join("packages/python/tests")));
    place.write("wrong/use.py", "import quorate\n\nprint(quorate.review(\"draft.md\").verdikt)\n");
    let refused = check(&place.path("wrong"));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("verdikt"), "{refused:?}");
}
