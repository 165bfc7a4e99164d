//! Every command that README.md and docs/ show is run, in a temporary directory that has `examples/` and the files that
//! the document shows, and output that they show is compared; the README of an example workspace is run in its own folder there. `support/console.rs` says how.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::console;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Runs a document in a folder of a directory that has a copy of `examples/`; gives the number of its commands.
fn run_document(path: &Path, folder: &str) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &dir.path().join("examples"));
    let parts = console::parts(&text);
    if !console::can_run(&parts) {
        return 1;
    }
    let all = console::run(&parts, &dir.path().join(folder));
    for said in &all {
        console::compare(&path.display().to_string(), said);
    }
    all.len()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        // Files of a developer's own runs are not part of the example.
        if path.file_name().is_some_and(|name| name == ".quorate") {
            continue;
        }
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// The files of `docs/` and of its folders.
fn documents() -> Vec<PathBuf> {
    let mut documents = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    documents
}

/// The names of the workspaces in `examples/`.
fn workspaces() -> Vec<String> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("quorate.toml").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_readme_shows_what_happens() {
    assert!(run_document(&root().join("README.md"), ".") > 0);
}

#[test]
fn the_example_workspaces_show_what_happens() {
    let names = workspaces();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        let folder = format!("examples/{name}");
        let readme = root().join(&folder).join("README.md");
        assert!(run_document(&readme, &folder) > 0, "{folder} shows no command");
    }
}

#[test]
fn the_docs_show_what_happens() {
    let mut documents = documents();
    // Its commands need the feature.
    documents.retain(|path| cfg!(feature = "mcp") || !path.ends_with("mcp.md"));
    // It needs a database: `queue.rs` runs it.
    documents.retain(|path| !path.ends_with("workers.md"));
    let commands: usize = documents.iter().map(|path| run_document(path, ".")).sum();
    assert!(commands > 0, "the docs show no command");
}

#[test]
fn the_example_workspaces_are_clean() {
    for name in workspaces() {
        for command in
            [&["check", "--strict", "."][..], &["fmt", "--check", "."], &["check", "--modularity", "."]]
        {
            let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
                .args(command)
                .current_dir(root().join("examples").join(&name))
                .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
                .output()
                .unwrap();
            // Some have no agents that a scan could read.
            let has_none = String::from_utf8_lossy(&output.stderr).contains("instructs an agent");
            assert!(output.status.success() || has_none, "{name}: {command:?}: {output:?}");
        }
    }
}

#[test]
fn relative_links_lead_somewhere() {
    let mut all: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|name| root().join(name)).collect();
    all.extend(documents());
    all.extend(workspaces().iter().map(|name| root().join("examples").join(name).join("README.md")));
    for document in all {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(document.parent().unwrap().join(target).exists(), "{}: {link}", document.display());
            }
        }
    }
}
