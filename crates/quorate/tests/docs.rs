//! Every command that README.md and docs/ show is run, and output that they show is compared.
//!
//! In a ```console block a line `$ command` is run by sh, in a temporary directory that has `examples/`; what stands
//! below it is its output, in which `[..]` stands for anything on a line and a line `...` for any lines. `RUN` stands
//! for the newest run's id. Commands that build or test this project (`cargo …`, `scripts/…`) are not run from here.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes and look at files"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

struct Shown {
    command: String,
    output: Vec<String>,
    line: usize,
}

/// The ```console blocks of a document, each a list of commands.
fn blocks(text: &str) -> Vec<Vec<Shown>> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<Shown>> = None;
    for (at, line) in text.lines().enumerate() {
        match &mut open {
            None if line.trim() == "```console" => open = Some(Vec::new()),
            None => {}
            Some(_) if line.trim() == "```" => blocks.extend(open.take()),
            Some(block) => match (line.strip_prefix("$ "), block.last_mut()) {
                (Some(command), _) => {
                    block.push(Shown { command: command.to_owned(), output: Vec::new(), line: at + 1 });
                }
                (None, Some(shown)) => shown.output.push(line.to_owned()),
                (None, None) => panic!("line {}: output before any command", at + 1),
            },
        }
    }
    blocks
}

/// What sh is to run for a command that is shown; `None` where it is not run from here.
fn runnable(command: &str) -> Option<String> {
    let command = command.split("  #").next().unwrap_or(command).trim();
    let command = command.replace("cargo run --release -- ", "quorate ");
    if ["scripts/", "cargo ", "git clone"].iter().any(|start| command.starts_with(start)) {
        return None;
    }
    let words = command.split(' ').map(|word| if word == "RUN" { "\"$(newest)\"" } else { word });
    Some(words.collect::<Vec<_>>().join(" "))
}

const PRELUDE: &str = r#"newest() { quorate runs --limit 1 --format json | sed -n 's/.*"run": *"\([^"]*\)".*/\1/p' | head -n 1; }
"#;

fn run_document(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &dir.path().join("examples"));
    let mut count = 0;
    for block in blocks(&text) {
        let mut script = PRELUDE.to_owned();
        let mut run = Vec::new();
        for shown in &block {
            if let Some(command) = runnable(&shown.command) {
                script.push_str(&format!("s=$?; printf '\\001\\n'; (exit $s)\n{command}\n"));
                run.push(shown);
            }
        }
        let said = sh(&script, dir.path());
        let outputs: Vec<&str> = said.split("\u{1}\n").skip(1).collect();
        assert_eq!(outputs.len(), run.len(), "{}: {said}", path.display());
        for (shown, output) in run.into_iter().zip(outputs) {
            compare(
                &format!("{}:{}: $ {}", path.display(), shown.line, shown.command),
                &shown.output,
                output,
            );
            count += 1;
        }
    }
    count
}

fn compare(place: &str, shown: &[String], output: &str) {
    for never in ["panicked at", "unexpected argument", "unrecognized subcommand", "command not found"] {
        assert!(!output.contains(never), "{place}\n{output}");
    }
    let end = shown.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let expected: Vec<&str> = shown[..end].iter().map(|line| line.trim_end()).collect();
    let actual: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    if !expected.is_empty() {
        assert!(matches(&expected, &actual), "{place}\nshown:\n{}\n\nsaid:\n{output}", expected.join("\n"));
    }
}

fn matches(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"...", rest)) => (0..=actual.len()).any(|skip| matches(rest, &actual[skip..])),
        Some((line, rest)) => actual
            .split_first()
            .is_some_and(|(first, others)| line_matches(line, first) && matches(rest, others)),
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let pieces: Vec<&str> = expected.split("[..]").collect();
    let [first, middle @ .., last] = &pieces[..] else { return expected == actual };
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    for piece in middle {
        match rest.find(piece) {
            Some(found) => rest = &rest[found + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn sh(script: &str, dir: &Path) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{script}"))
        .current_dir(dir)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env_remove("QUORATE_LEDGER")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn documents() -> Vec<PathBuf> {
    let mut documents: Vec<PathBuf> =
        std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    documents.retain(|path| path.extension().is_some_and(|end| end == "md"));
    documents.sort();
    documents
}

#[test]
fn the_readme_shows_what_happens() {
    assert!(run_document(&root().join("README.md")) > 0);
}

#[test]
fn the_docs_show_what_happens() {
    let commands: usize = documents().iter().map(|path| run_document(path)).sum();
    assert!(commands > 0, "the docs show no command");
}

#[test]
fn relative_links_lead_somewhere() {
    let mut all: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|name| root().join(name)).collect();
    all.extend(documents());
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
