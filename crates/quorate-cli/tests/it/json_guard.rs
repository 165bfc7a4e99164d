//! Freezes what `--format json` prints for the examples: structure, codes, numbers, verdicts and exit codes.
//!
//! Each file in `golden/json/` lists commands that run in order in one copy of an example. Ids, times, hashes and messages for
//! people are replaced before comparing, so a reworded message does not fail the test. `QUORATE_WRITE_GOLDEN=1` rewrites the
//! files.
//!
//! `copy` names the paths below `examples/` to copy, `words` further keys whose strings are messages. A step has `run` (the command
//! line, with `{name}` for a saved value), `exit`, `output` or `lines` (JSON on stdout), `codes` (the diagnostics on stderr), and
//! where it needs them `save` (names with JSON pointers into the output), `write` (files to write first), `out` (a file for stdout),
//! `words`, `situation` (what the command meets), and `varies` (pointers to values that depend on the machine).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::golden_records::normalize;
use crate::support;
use support::{CommandOutput, TestDir};

/// Keys whose strings are messages for people.
const PROSE: [&str; 9] = ["message", "help", "notes", "summary", "hint", "detail", "because", "why", "said"];

/// Keys whose numbers depend on the clock or on the length of random ids.
const MEASURED: [&str; 6] =
    ["elapsed_ms", "elapsed_ms_per_review", "bytes", "record_bytes", "file_bytes", "body_bytes"];

static CODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:refusal|warning)\[[a-z_:]+\]").expect("a valid pattern"));

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/json")
}

/// Splits a command line at spaces; single quotes keep an argument together.
fn arguments(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().expect("a string")).collect()
}

/// Replaces messages under the keys of `PROSE` and `more`, and measured numbers.
fn without_words(key: &str, value: &mut Value, more: &[&str]) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| without_words(key, value, more)),
        Value::Array(items) => items.iter_mut().for_each(|item| without_words(key, item, more)),
        Value::String(text) if !text.is_empty() && (PROSE.contains(&key) || more.contains(&key)) => {
            *value = "<words>".into();
        }
        Value::Number(_) if MEASURED.contains(&key) => *value = 0.into(),
        _ => {}
    }
}

/// The JSON on stdout: `output` for one value, `lines` for one value on each line.
fn printed(ran: &CommandOutput, command: &str) -> (&'static str, Value) {
    if let Ok(value) = serde_json::from_str(&ran.stdout) {
        return ("output", value);
    }
    let lines: Result<Vec<Value>, _> = ran.stdout.lines().map(serde_json::from_str).collect();
    match lines {
        Ok(lines) if !lines.is_empty() => ("lines", lines.into()),
        _ => panic!("`{command}` prints no JSON (exit code {}): {}{}", ran.code, ran.stdout, ran.stderr),
    }
}

/// Runs a step and returns it with the results of this run.
fn step(
    place: &TestDir,
    step: &Map<String, Value>,
    words: &[&str],
    saved: &mut BTreeMap<String, String>,
) -> Map<String, Value> {
    for (path, text) in step.get("write").and_then(Value::as_object).into_iter().flatten() {
        place.write(path, text.as_str().expect("a string"));
    }
    let written = step["run"].as_str().expect("a command line");
    let command =
        saved.iter().fold(written.to_owned(), |line, (name, is)| line.replace(&format!("{{{name}}}"), is));
    let ran = place.run(&arguments(&command));
    if let Some(file) = step.get("out") {
        place.write(file.as_str().expect("a path"), &ran.stdout);
    }
    let mut now = step.clone();
    for result in ["output", "lines", "codes"] {
        now.remove(result);
    }
    now.insert("exit".into(), ran.code.into());
    let codes: Vec<Value> = CODE.find_iter(&ran.stderr).map(|code| code.as_str().into()).collect();
    if !codes.is_empty() {
        now.insert("codes".into(), codes.into());
    }
    if ["json", "sarif", "gitlab"].iter().any(|format| command.ends_with(&format!("--format {format}"))) {
        let (key, mut value) = printed(&ran, &command);
        for (name, pointer) in step.get("save").and_then(Value::as_object).into_iter().flatten() {
            let found = value.pointer(pointer.as_str().expect("a pointer")).and_then(Value::as_str);
            let found = found.unwrap_or_else(|| panic!("`{command}` prints no {pointer}: {value}"));
            saved.insert(name.clone(), found.to_owned());
        }
        value = normalize::value("", value, place.root());
        without_words("", &mut value, words);
        for pointer in step.get("varies").map(strings).unwrap_or_default() {
            if let Some(varying) = value.pointer_mut(pointer) {
                *varying = "<varies>".into();
            }
        }
        now.insert(key.into(), value);
    }
    now
}

/// The pointer and both values of each difference.
fn differences(at: &str, then: &Value, now: &Value, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
            for key in keys {
                let [then, now] = [then, now].map(|fields| fields.get(key).unwrap_or(&Value::Null));
                differences(&format!("{at}/{key}"), then, now, found);
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                differences(&format!("{at}/{index}"), then, now, found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{at}: was {then}, is {now}")),
    }
}

/// Runs the commands of a file in a copy of its example and compares the results, or rewrites the file.
#[track_caller]
fn same(name: &str) {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).expect("the golden file is readable");
    let golden: Value = serde_json::from_str(&text).expect("the golden file is JSON");
    let place = TestDir::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for source in strings(&golden["copy"]) {
        let copied =
            std::process::Command::new("cp").arg("-r").arg(examples.join(source)).arg(place.root()).status();
        assert!(copied.expect("cp starts").success());
    }
    let mut saved = BTreeMap::new();
    let (mut steps, mut found) = (Vec::new(), Vec::new());
    for then in golden["steps"].as_array().expect("steps") {
        let fields = then.as_object().expect("a step");
        let words =
            [strings(&golden["words"]), fields.get("words").map(strings).unwrap_or_default()].concat();
        let now = Value::Object(step(&place, fields, &words, &mut saved));
        differences(&format!("{name}: `{}`: ", fields["run"]), then, &now, &mut found);
        steps.push(now.to_string());
    }
    if std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        let head = format!("{{\"copy\":{},\"words\":{},\"steps\":[\n", golden["copy"], golden["words"]);
        std::fs::write(&path, format!("{head}{}\n]}}\n", steps.join(",\n")))
            .expect("the golden file is written");
        return;
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

/// The commands that a help text lists.
fn commands_in(help: &str) -> Vec<String> {
    let lines = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words = lines.filter_map(|line| line.split_whitespace().next());
    words
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .filter(|word| !word.starts_with('-') && !["help", "quorate"].contains(word))
        .map(str::to_owned)
        .collect()
}

#[test]
fn release_board() {
    same("release-board");
}

#[test]
fn design_critique() {
    same("design-critique");
}

#[test]
fn incident_review() {
    same("incident-review");
}

#[test]
fn council_of_mentors() {
    same("council-of-mentors");
}

#[test]
fn two_models() {
    same("two-models");
}

#[test]
fn drafts() {
    same("drafts");
}

#[test]
fn review_swarm() {
    same("review-swarm");
}

#[test]
fn tool_library_letters() {
    same("tool-library-letters");
}

#[test]
fn own_adapters() {
    same("own-adapters");
}

#[cfg(feature = "postgres")]
#[test]
fn queue() {
    same("queue");
}

/// The matrix of exit codes: `situation` says what each command meets.
#[cfg(all(feature = "mcp", feature = "postgres", feature = "serve"))]
#[test]
fn exit_codes() {
    same("exit-codes");
}

#[test]
fn every_command_and_exit_code_is_in_the_matrix() {
    let text = std::fs::read_to_string(folder().join("exit-codes.json")).expect("the matrix is readable");
    let matrix: Value = serde_json::from_str(&text).expect("the matrix is JSON");
    let steps = matrix["steps"].as_array().expect("steps");
    let exits: BTreeSet<i64> = steps.iter().filter_map(|step| step["exit"].as_i64()).collect();
    // Other tests interrupt a run and expect 130.
    assert_eq!(exits, BTreeSet::from([0, 1, 2, 3, 4, 5, 6, 64]));
    let help = TestDir::new().run(&["--help"]).assert_code(0).stdout;
    let seen: BTreeSet<&str> =
        steps.iter().filter_map(|step| step["run"].as_str()?.split_whitespace().next()).collect();
    let missing: Vec<String> =
        commands_in(&help).into_iter().filter(|command| !seen.contains(&**command)).collect();
    assert_eq!(missing, [""; 0], "add a step to golden/json/exit-codes.json");
}

#[test]
fn every_command_with_json_output_is_frozen() {
    let mut frozen = String::new();
    for file in std::fs::read_dir(folder()).expect("the folder is readable").flatten() {
        frozen.push_str(&std::fs::read_to_string(file.path()).expect("the golden file is readable"));
    }
    let place = TestDir::new();
    let mut missing = Vec::new();
    for command in commands_in(&place.run(&["--help"]).assert_code(0).stdout) {
        let help = place.run(&[&*command, "--help"]).assert_code(0).stdout;
        let below: Vec<String> = match help.contains("<COMMAND>") {
            true => commands_in(&help),
            false => Vec::new(),
        };
        let lines = match below.is_empty() {
            true => vec![command],
            false => below.iter().map(|below| format!("{command} {below}")).collect(),
        };
        for line in lines {
            let help = place.run(&[arguments(&line), vec!["--help"]].concat()).stdout;
            let writes_json = help.contains("- json:");
            if writes_json && !frozen.contains(&format!("\"run\":\"{line} ")) {
                missing.push(line);
            }
        }
    }
    assert_eq!(missing, [""; 0], "add a step to a file of golden/json");
}
