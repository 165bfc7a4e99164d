//! What Markdown shows: files, and commands with their output. A document is run from its beginning to its end in one shell,
//! as a user who pastes its blocks in order, and what it shows of the output is compared.
//!
//! - A fenced block whose info string has a path as its second word is a file, for the directory where the document begins.
//! - In an ```sh block each line is a command; a ```text block right below it is what the last one says. A block ```sh no-run
//!   needs something that is not here. In a ```console block `$ command` is above its own output, as in a terminal.
//! - In output a line `...` stands for any lines and `…` for anything on a line. Values that differ between runs (ids, keys, hashes,
//!   times, ports) are compared by their form.
//! - Commands that build or test this project (`cargo …`, `scripts/…`) are not run from here.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A fenced block that means something here.
pub enum Part {
    /// A file.
    File { path: String, text: String },
    /// Commands.
    Console(Vec<Example>),
}

/// A documented command.
pub struct Example {
    pub command: String,
    /// The lines below it.
    pub output: Vec<String>,
    /// Where it stands.
    pub line: usize,
}

/// A command that was run.
pub struct ExampleRun<'s> {
    pub shown: &'s Example,
    /// Both of its streams.
    pub output: String,
}

/// The parts of a document, in their order.
pub fn parts(markdown: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = markdown.lines().enumerate();
    // Whether nothing is between the line and the commands that were shown last.
    let mut right_below = false;
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            right_below &= line.trim().is_empty();
            continue;
        };
        let block: Vec<(usize, &str)> =
            lines.by_ref().take_while(|(_, line)| line.trim_end() != "```").collect();
        let was_right_below = std::mem::replace(&mut right_below, info == "sh");
        match info.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["console"] => parts.push(Part::Console(examples_in(&block))),
            ["sh"] => parts.push(Part::Console(block.iter().map(|(at, line)| example(line, *at)).collect())),
            ["text"] => {
                if let (true, Some(Part::Console(commands))) = (was_right_below, parts.last_mut()) {
                    let last = commands.last_mut().unwrap_or_else(|| panic!("line {at}: no command"));
                    last.output = block.iter().map(|(_, line)| (*line).to_owned()).collect();
                }
            }
            [_, "no-run"] => {}
            [_, path] => parts.push(Part::File {
                path: (*path).to_owned(),
                text: block.iter().flat_map(|(_, line)| [*line, "\n"]).collect(),
            }),
            _ => {}
        }
    }
    parts
}

fn example(command: &str, at: usize) -> Example {
    Example { command: command.to_owned(), output: Vec::new(), line: at + 1 }
}

fn examples_in(lines: &[(usize, &str)]) -> Vec<Example> {
    let mut commands: Vec<Example> = Vec::new();
    for (at, line) in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push(example(command, *at)),
            (None, Some(shown)) => shown.output.push((*line).to_owned()),
            (None, None) => panic!("line {}: output before any command", at + 1),
        }
    }
    commands
}

/// Programs that documents show and that a machine with a compiler may lack.
const OTHER_PROGRAMS: [&str; 4] = ["curl", "git", "python3", "sqlite3"];

/// Whether this machine has the programs that a document's commands start; says what is missing.
pub fn can_run(parts: &[Part]) -> bool {
    let commands = parts.iter().flat_map(|part| match part {
        Part::Console(block) => &block[..],
        Part::File { .. } => &[],
    });
    let commands: Vec<String> = commands.filter_map(|shown| runnable(&shown.command)).collect();
    let starts = |program: &&&str| {
        let mut words = commands.iter().flat_map(|command| command.split([' ', '|', ';', '&', '(', '\n']));
        words.any(|word| word == **program)
    };
    OTHER_PROGRAMS.iter().filter(starts).all(|program| super::has_program(program))
}

/// Runs a document in a directory, with the built binary first on PATH.
pub fn run<'s>(parts: &'s [Part], dir: &Path) -> Vec<ExampleRun<'s>> {
    let mut script = String::new();
    let mut run = Vec::new();
    for part in parts {
        match part {
            Part::File { path, text } => {
                let path = dir.join(path);
                let (folder, path) = (path.parent().expect("a folder").display(), path.display());
                script.push_str(&format!(
                    "mkdir -p '{folder}'\ncat > '{path}' <<'{FILE_END_MARKER}'\n{text}{FILE_END_MARKER}\n"
                ));
            }
            Part::Console(block) => {
                for shown in block {
                    if let Some(command) = runnable(&shown.command) {
                        script.push_str(&format!("s=$?; printf '\\001\\n'; (exit $s)\n{command}\n"));
                        run.push(shown);
                    }
                }
            }
        }
    }
    let said = sh(&script, dir);
    let outputs: Vec<&str> = said.split("\u{1}\n").skip(1).collect();
    assert_eq!(outputs.len(), run.len(), "{said}");
    run.into_iter()
        .zip(outputs)
        .map(|(shown, output)| ExampleRun { shown, output: output.to_owned() })
        .collect()
}

const FILE_END_MARKER: &str = "END_OF_THE_FILE_THAT_IS_SHOWN";

/// Checks what a command said against what is shown, if anything is shown.
pub fn compare(document: &str, said: &ExampleRun<'_>) {
    let ExampleRun { shown, output } = said;
    let place = format!("{document}:{}: $ {}", shown.line, shown.command);
    for never in ["panicked at", "unexpected argument", "unrecognized subcommand", "command not found"] {
        assert!(!output.contains(never), "{place}\n{output}");
    }
    let end = shown.output.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let expected: Vec<&str> = shown.output[..end].iter().map(|line| line.trim_end()).collect();
    // A slow machine reports what lasts.
    let actual = output.trim_end().lines().map(str::trim_end);
    let actual: Vec<&str> = actual.filter(|line| !line.contains("still waiting for ")).collect();
    if !expected.is_empty() {
        assert!(matches(&expected, &actual), "{place}\nshown:\n{}\n\nsaid:\n{output}", expected.join("\n"));
    }
}

/// The shell line for a documented command; `None` if this test does not run it.
fn runnable(command: &str) -> Option<String> {
    let command = command.split("  #").next().unwrap_or(command).trim();
    let command = command.replace("cargo run --profile quick -- ", "quorate ");
    let is_ours = ["scripts/", "cargo ", "git clone"].iter().any(|start| command.starts_with(start));
    (!is_ours && !command.is_empty()).then_some(command)
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
    matches_pattern(expected, actual) || matches_pattern(&normalize(expected), &normalize(actual))
}

/// Whether a line is what is expected, with anything in place of each `…`.
fn matches_pattern(expected: &str, actual: &str) -> bool {
    let pieces: Vec<&str> = expected.split('…').collect();
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

/// A line with a mark for each thing that differs from run to run, and one blank for several.
fn normalize(line: &str) -> String {
    static FORMS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?x) (?<time> \d{4}-\d\d-\d\d (?: [T\ ] \d\d:\d\d (?: :\d\d (?: \.\d+ )? )? Z? )? )
                 | (?<port> 127\.0\.0\.1:\d+ )
                 | (?<blank> \ {2,} | ─+ )
                 | (?<key> \+ [0-9a-f]{8} \+ [A-Za-z0-9+/]{44} )
                 | (?<id> \b [ort]_? [0-9a-hjkmnp-tv-z]{6} (?: [0-9a-hjkmnp-tv-z]{6} )? \b )
                 | (?<fingerprint> \b (?: [0-9a-f]{64} | [0-9a-f]{16} | [0-9a-f]{12} | [0-9a-f]{8} ) \b )
                 | (?<mixed> \b [A-Za-z0-9]{8,} )",
        )
        .expect("a pattern")
    });
    let mark = |found: &Captures<'_>| {
        let text = &found[0];
        let mixed = || text.contains(char::is_numeric) && text.contains(char::is_alphabetic);
        match () {
            () if found.name("time").is_some() => "TIME".to_owned(),
            () if found.name("port").is_some() => "PORT".to_owned(),
            () if found.name("key").is_some() => "KEY".to_owned(),
            () if found.name("blank").is_some() => text.chars().take(1).collect(),
            // One in three hundred fingerprints has digits alone.
            () if found.name("fingerprint").is_some() => "ID".to_owned(),
            () if found.name("id").is_some() || mixed() => "ID".to_owned(),
            () => text.to_owned(),
        }
    };
    FORMS.replace_all(line, mark).into_owned()
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
