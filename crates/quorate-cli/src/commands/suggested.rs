//! Every command in backticks of the sources, of the pages of codes and of the docs is one that this command line accepts.
//! `tests/it/suggestions.rs` pastes those that a refusal prints.

#![expect(clippy::disallowed_methods, reason = "the test reads the sources")]

use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;
use regex::Regex;

use super::Arguments;

/// Commands that a sentence may name without their arguments, unless it begins with `run`.
const NAMED: [&str; 10] = [
    "convene --dry-run --format json",
    "convene --format json",
    "keys",
    "ledger check-proof",
    "override",
    "playbook",
    "report",
    "review --dry-run --format json",
    "review --format json",
    "run",
];

/// A command in backticks, and where it is.
struct Suggestion {
    file: PathBuf,
    /// It follows the word `run`.
    is_instruction: bool,
    /// It is in a text that the program prints, not in a comment or a document.
    is_message: bool,
    command: String,
}

fn files_below(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path, extension),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .collect()
}

fn suggestions() -> Vec<Suggestion> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let is_shipped = |path: &PathBuf| {
        let below = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        below.contains("/src/")
            && !below.ends_with("tests.rs")
            && !below.ends_with("suggested.rs")
            && !below.contains("/tests/")
    };
    let joined = Regex::new(r"\\\n\s*").unwrap();
    let command = Regex::new(r"([^`]{0,20})`quorate ([^`\n]+)`").unwrap();
    let mut all = Vec::new();
    let mut add = |file: &Path, text: &str, is_message: bool| {
        all.extend(command.captures_iter(text).map(|found| Suggestion {
            file: file.strip_prefix(root).unwrap().to_owned(),
            is_instruction: found[1].to_lowercase().ends_with("run "),
            is_message,
            command: found[2].replace("\\\"", "\""),
        }));
    };
    for file in files_below(&root.join("crates"), "rs").into_iter().filter(is_shipped) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        let (comments, code): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.trim_start().starts_with("//"));
        add(&file, &comments.join("\n"), false);
        add(&file, &joined.replace_all(&code.join("\n"), ""), true);
    }
    for (folder, extension) in
        [("docs", "md"), ("crates/quorate-diagnostics/codes", "md"), ("crates/quorate-cli/src", "txt")]
    {
        for file in files_below(&root.join(folder), extension) {
            add(&file, &std::fs::read_to_string(&file).unwrap(), false);
        }
    }
    all
}

/// The words of a command line; a text in quotes is one.
fn words(line: &str) -> Vec<String> {
    let word = Regex::new(r#"'([^']*)'|"([^"]*)"|(\S+)"#).unwrap();
    let of = |found: &regex::Captures<'_>| found.iter().skip(1).flatten().map(|part| part.as_str()).collect();
    word.captures_iter(line).map(|found| of(&found)).collect()
}

/// The command with its placeholders filled in: all of them, none, or the first.
fn filled(command: &str) -> [String; 3] {
    let line = command.split(" > ").next().and_then(|line| line.split(" < ").next()).unwrap_or_default();
    // A placeholder right behind a word may be empty.
    let line = Regex::new(r"(\S)\{[^}]*\}").unwrap().replace_all(line, "$1").into_owned();
    let line = Regex::new(r"<[^>]*>|\bN\b").unwrap().replace_all(&line, "1").replace('…', "x");
    let hole = Regex::new(r"\{[^}]*\}").unwrap();
    let first = hole.replace(&line, "x").into_owned();
    [hole.replace_all(&line, "x"), hole.replace_all(&line, ""), hole.replace_all(&first, "")].map(Into::into)
}

/// Why the command line refuses a suggestion.
fn problem(suggestion: &Suggestion) -> Option<String> {
    let command = &*suggestion.command;
    let has_placeholder =
        command.contains(['{', '<', '…']) || command.chars().any(|c| c.is_ascii_uppercase());
    let may_be_name = !suggestion.is_message || (!suggestion.is_instruction && NAMED.contains(&command));
    let refused = filled(command).map(|line| {
        let all = [vec!["quorate".to_owned()], words(&line)].concat();
        Arguments::try_parse_from(all).err().map(|error| error.kind())
    });
    let fits = |kind: &Option<ErrorKind>| match kind {
        None | Some(ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => true,
        Some(ErrorKind::InvalidValue | ErrorKind::ValueValidation) => has_placeholder || may_be_name,
        Some(
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ) => may_be_name,
        Some(_) => false,
    };
    (!refused.iter().any(fits))
        .then(|| format!("{}: `quorate {command}`: {:?}", suggestion.file.display(), refused[0]))
}

#[test]
fn every_command_in_backticks_is_one() {
    // The definition of all commands needs more stack than a test's thread has.
    let checked = std::thread::Builder::new().stack_size(32 << 20).spawn(|| {
        let all = suggestions();
        assert!(all.iter().filter(|one| one.is_message).count() > 150, "{} commands", all.len());
        let problems: Vec<String> = all.iter().filter_map(problem).collect();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        let wrong = |command: &str| {
            let command = command.to_owned();
            problem(&Suggestion { file: PathBuf::new(), is_instruction: true, is_message: true, command })
        };
        for command in ["review", "reviews FILE", "show --fully {run}", "keys rotate --now", "show"] {
            assert!(wrong(command).is_some(), "{command}");
        }
        for command in
            ["show {run}{flag}", "ledger prove RUN > proof.json", "resume RUN --max-money \"1 USD\""]
        {
            assert_eq!(wrong(command), None);
        }
    });
    checked.unwrap().join().unwrap();
}
