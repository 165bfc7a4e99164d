//! A workspace with two operators for tests that run the binary, and what they look at in it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses some of it")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{CommandOutput, QUORATE, TestDir, finish};

/// Two operators: alice has a persona with a block, bob has none. `configuration` is `quorate.toml`.
pub fn workspace(configuration: &str) -> TestDir {
    let place = TestDir::with("quorate.toml", configuration);
    place.write(
        "personas/ada/PERSONA.md",
        "---\nschema: persona/v1\ntitle: Ada\nname: ada\nversion: 1.0.0\ndescription: A librarian.\nvoice: {register: calm}\n---\n\
         You are Ada, who helps people find what they are looking for in a library of many rooms.\n\n\
         <!-- block: tone -->\nBe calm, and speak slowly when somebody is upset about a book that is lost, or late, or torn. \
         Ask what happened before you say what follows from it, and never say whose fault it is.\n<!-- /block -->\n\n\
         Say what you know, and say what you do not know. Nobody is ever in the way here.\n",
    );
    place.write(
        "operators/alice/OPERATOR.md",
        "---\nid: alice\nname: Alice\nrole: role/librarian\npersona: ws://personas/ada\n---\nUnused.\n",
    );
    place.write(
        "operators/bob/OPERATOR.md",
        "---\nid: bob\nname: Bob\nrole: role/engineer\n---\nYou are Bob, and you keep the machines of the library running.\n",
    );
    place
}

/// A delta for alice, with other keys in place of its own.
pub fn delta(slug: &str, more: Value) -> Value {
    let mut delta = json!({
        "op": "add", "slug": slug, "title": format!("About {slug}."), "body": format!("Name the shelf when {slug} comes up."),
        "targets": [{"kind": "operator", "ref": "alice"}],
    });
    for (key, value) in more.as_object().expect("an object") {
        delta[key] = value.clone();
    }
    delta
}

/// Proposes it.
pub fn propose(place: &TestDir, delta: &Value) -> CommandOutput {
    place.run_with_stdin(&["playbook", "propose", "-"], delta.to_string().as_bytes())
}

/// A handwritten playbook for alice in `playbooks/`.
pub fn write_playbook(place: &TestDir, slug: &str, head: &str, body: &str) {
    let text = format!(
        "---\nschema: playbooks/v1\nslug: {slug}\ntitle: About {slug}.\nkind: overlay\nlock_check: []\n\
         evidence: [{{kind: run, ref: r1}}]\ntargets: [{{kind: operator, ref: alice}}]\n{head}\n---\n{body}\n"
    );
    place.write(&format!("playbooks/{slug}.md"), text);
}

/// A gate that always opens: its scorer likes whatever is new.
pub const SCORER: &str = "[playbooks]\nscorer = [\"sh\", \"score.sh\"]\nmin_sample = 2\nerror_rate = 0.2\n";

/// Writes the scorer.
pub fn scorer(place: &TestDir, without: f64, with: f64) {
    let text = format!("read line\nprintf '{{\"without\": {without}, \"with\": {with}}}\\n'\n");
    place.write("score.sh", text);
}

/// Every file below a directory, by its path there.
pub fn files(place: &TestDir, below: &str) -> BTreeMap<String, String> {
    fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).expect("it lies below").to_string_lossy().into_owned();
                let text = std::fs::read(&path).expect("a file");
                found.insert(name, String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(place.root(), &place.path(below), &mut found);
    found
}

/// A draft that says something else than every other one.
pub fn draft(n: u32) -> String {
    let word = |at: u32| -> String {
        let mixed = (n * 31 + at).wrapping_mul(2_654_435_761);
        (0..6)
            .map(|letter| char::from(b'a' + u8::try_from((mixed >> (letter * 5)) % 26).expect("a letter")))
            .collect()
    };
    format!("The {} moved to {} at {}, in {}, where {} is.\n", word(0), word(1), word(2), word(3), word(4))
}

/// The lines of `_log.md` about changes, without those of `weave`.
pub fn log(place: &TestDir) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("playbooks/_log.md")).unwrap_or_default();
    let weaves =
        |line: &str| line.contains(" · playbooks.composed · ") || line.contains(" · playbook.skipped · ");
    text.lines().filter(|line| line.starts_with("- ") && !weaves(line)).map(str::to_owned).collect()
}

/// The records of the ledger that change playbooks, without those of `weave`.
pub fn recorded(place: &TestDir) -> Vec<Value> {
    if !place.path(".quorate/ledger.db").is_file() {
        return Vec::new();
    }
    let said = place.run(&["playbook", "log", "--format", "json"]).assert_code(0).json();
    let events = said["events"].as_array().expect("events").clone();
    // Trials of scorers are in the ledger alone.
    let weaves = |one: &Value| {
        ["playbooks.composed", "playbook.skipped", "playbook.tried"].iter().any(|kind| one["event"] == *kind)
    };
    events.into_iter().filter(|one| !weaves(one)).collect()
}

/// Alice's prompt.
pub fn prompt(place: &TestDir) -> String {
    place.run(&["weave", "alice"]).assert_code(0).stdout
}

/// Holds `quorate check` against what it has to refuse: it says all of these.
#[track_caller]
pub fn assert_all_refused(place: &TestDir, all: &[&str]) {
    let ran = place.run(&["check", "."]).assert_code(1);
    for said in all {
        assert!(ran.stdout.contains(said), "`{said}` is not said: {ran:?}");
    }
}

/// Whether a pseudo terminal is available; prints a note where it is not.
pub fn has_terminal() -> bool {
    let found = ["/usr/bin/script", "/bin/script"].iter().any(|path| Path::new(path).exists());
    if !found {
        eprintln!("SKIPPED: `script` is missing, so no pseudo terminal is available");
    }
    found
}

/// Runs a command at a pseudo terminal with typed input.
pub fn at_a_terminal(place: &TestDir, arguments: &str, answers: &str) -> CommandOutput {
    let typed = format!("(sleep 0.5; printf '{answers}') | script -qec '{} {arguments}' /dev/null", QUORATE);
    let mut command = place.command(&[]);
    let environment: Vec<_> =
        command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = std::process::Command::new("sh");
    command.args(["-c", &typed]).current_dir(place.root()).env_clear().envs(environment);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(command.spawn().expect("it runs"))
}
