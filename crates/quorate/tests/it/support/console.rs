//! What Markdown shows: files, and commands with their output. The commands are run and the output is compared.
//!
//! A fenced block whose info string has a path as its second word is a file. In a ```console block a line `$ command`
//! is run by sh; what stands below it is its output, in which `[..]` stands for anything on a line and a line `...` for
//! any lines. `RUN` stands for the newest run's id. Commands that build or test this project (`cargo …`, `scripts/…`)
//! are not run from here.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use std::path::Path;
use std::process::Command;

/// A fenced block that means something here.
pub enum Part {
    /// A file.
    File { path: String, text: String },
    /// Commands that are run one after the other, in one shell.
    Console(Vec<Shown>),
}

/// A command as it is shown.
pub struct Shown {
    pub command: String,
    /// The lines below it.
    pub output: Vec<String>,
    /// Where it stands.
    pub line: usize,
}

/// A command that was run.
pub struct Said<'s> {
    pub shown: &'s Shown,
    /// Both of its streams.
    pub output: String,
}

/// The parts of a document, in their order.
pub fn parts(markdown: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = markdown.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|(_, line)| line.trim_end() != "```");
        match info.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["console"] => parts.push(Part::Console(commands(block))),
            [_, path] => parts.push(Part::File {
                path: (*path).to_owned(),
                text: block.flat_map(|(_, line)| [line, "\n"]).collect(),
            }),
            _ => block.for_each(drop),
        }
    }
    parts
}

fn commands<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for (at, line) in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => {
                commands.push(Shown { command: command.to_owned(), output: Vec::new(), line: at + 1 });
            }
            (None, Some(shown)) => shown.output.push(line.to_owned()),
            (None, None) => panic!("line {}: output before any command", at + 1),
        }
    }
    commands
}

/// Runs the commands of a block in a directory, with the built binary first on PATH.
pub fn run<'s>(block: &'s [Shown], dir: &Path) -> Vec<Said<'s>> {
    let mut script = PRELUDE.to_owned();
    let mut run = Vec::new();
    for shown in block {
        if let Some(command) = runnable(&shown.command) {
            script.push_str(&format!("s=$?; printf '\\001\\n'; (exit $s)\n{command}\n"));
            run.push(shown);
        }
    }
    let said = sh(&script, dir);
    let outputs: Vec<&str> = said.split("\u{1}\n").skip(1).collect();
    assert_eq!(outputs.len(), run.len(), "{said}");
    run.into_iter().zip(outputs).map(|(shown, output)| Said { shown, output: output.to_owned() }).collect()
}

/// Holds what a command said against what is shown, if anything is shown.
pub fn compare(document: &str, said: &Said<'_>) {
    let Said { shown, output } = said;
    let place = format!("{document}:{}: $ {}", shown.line, shown.command);
    for never in ["panicked at", "unexpected argument", "unrecognized subcommand", "command not found"] {
        assert!(!output.contains(never), "{place}\n{output}");
    }
    let end = shown.output.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let expected: Vec<&str> = shown.output[..end].iter().map(|line| line.trim_end()).collect();
    let actual: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
    if !expected.is_empty() {
        assert!(matches(&expected, &actual), "{place}\nshown:\n{}\n\nsaid:\n{output}", expected.join("\n"));
    }
}

const PRELUDE: &str = r#"newest() { quorate runs --limit 1 --format json | sed -n 's/.*"run": *"\([^"]*\)".*/\1/p' | head -n 1; }
"#;

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
        .env_remove("QUORATE_TRUST")
        .env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("state"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
