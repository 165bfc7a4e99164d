//! Every command that a message suggests works when it is pasted. `explain.rs` pastes those of the page of each code; here are
//! the refusals of an empty workspace, and what `init` prints. `commands/suggested.rs` parses what the sources suggest.

use std::process::Command;
use std::sync::LazyLock;

use regex::Regex;

use crate::support::{CommandOutput, QUORATE, REVISED, TestDir};

/// Commands that serve or follow until they are interrupted.
const ENDLESS: [&str; 6] =
    ["quorate serve", "quorate mcp", "quorate worker", "quorate watch", "--follow", "--watch"];

/// Texts that stand for others in a suggestion, and what is pasted in their place.
const PLACEHOLDERS: [(&str, &str); 9] = [
    ("FILE", "draft.md"),
    ("RUN", "latest"),
    ("DIR", "new"),
    ("TOOL", "codex"),
    ("GATE", "human"),
    ("TEXT", "hello"),
    ("N", "1"),
    ("TIME", "2026-11-29T09:00:00Z"),
    ("REASON", "reason"),
];

/// The commands in backticks of a message, also those that are wrapped.
fn suggestions(said: &str) -> Vec<String> {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`(quorate\s[^`]{1,200})`").unwrap());
    let one_line = |found: &str| found.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut all: Vec<String> = COMMAND.captures_iter(said).map(|found| one_line(&found[1])).collect();
    all.sort();
    all.dedup();
    all
}

/// Pastes a command into a shell with the binary on its path.
fn paste(command: &str, place: &TestDir) -> CommandOutput {
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        if let Some((_, text)) = PLACEHOLDERS.iter().find(|(name, _)| name == word) {
            *word = (*text).to_owned();
        }
    }
    let mut line = words.join(" ");
    if ENDLESS.iter().any(|endless| command.contains(endless)) {
        line.push_str(" --help");
    }
    let folder = std::path::Path::new(QUORATE).parent().unwrap().display().to_string();
    let output = Command::new("sh")
        .args(["-c", &line])
        .current_dir(place.root())
        .env_clear()
        .env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap_or_default()))
        .env("HOME", place.root())
        .env("USER", "ada")
        .env("NO_COLOR", "1")
        .env("QUORATE_TRUST", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(128),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Pastes all that a message suggests: no command is one that the command line refuses. Gives their number.
#[track_caller]
pub(crate) fn paste_all(said: &str, place: &TestDir) -> usize {
    let commands = suggestions(said);
    for command in &commands {
        let ran = paste(command, place);
        // A command without its arguments is a name in a sentence: `commands/suggested.rs` has the rule.
        let is_name = ran.stderr.contains("required arguments were not provided");
        let is_usage = ran.code == 64 || matches!(ran.code, 70 | 101 | 127 | 128);
        assert!(is_name || !is_usage, "{command}: {ran:?}\nsuggested by:\n{said}");
    }
    commands.len()
}

#[test]
fn the_commands_of_refusals_work_when_they_are_pasted() {
    for (arguments, suggested) in [
        ("review nothing.md", "quorate review --example"),
        ("review drafts", "quorate review 'drafts/**/*.md'"),
        ("review draft.md --executor gpt-5", "quorate models openai"),
        ("draft.md", "quorate review draft.md"),
        ("./draft.md --policy strict", "quorate review ./draft.md"),
        ("show nothing.md", "quorate runs"),
        ("show latest --ledger none.db", "quorate review FILE"),
        ("compare nothing.md draft.md", "quorate runs"),
        ("override nothing --verdict ship --reason r", "quorate runs"),
        ("replay nothing", "quorate runs"),
        ("resume nothing", "quorate runs"),
        ("attest nothing", "quorate runs"),
        ("keys rotate", "quorate keys init"),
        ("keys vouch nothing", "quorate keys list"),
        ("playbook show nothing", "quorate playbook list"),
        ("playbook archive nothing", "quorate playbook list"),
        ("explain nothing", "quorate explain"),
        ("models rubric", "quorate models"),
        ("overlays show nothing", "quorate overlays list"),
        ("init council", "quorate init council DIR"),
        ("hook claude", "quorate init wiring TOOL"),
        ("init assembly --mode vote", ""),
        ("convene board", ""),
        ("run support", ""),
    ] {
        let place = TestDir::with("draft.md", REVISED);
        place.write("drafts/post.md", REVISED);
        place.run(&["init", "council"]).assert_code(0);
        place.review(&["draft.md"]);
        let ran = place.run(&arguments.split(' ').collect::<Vec<_>>());
        assert!(ran.code >= 4, "{arguments}: {ran:?}");
        let said = suggestions(&ran.stderr);
        assert!(
            suggested.is_empty() || said.iter().any(|one| one == suggested),
            "{arguments}: {}",
            ran.stderr
        );
        paste_all(&ran.stderr, &place);
    }
}

/// The command after `next:` on the last line.
fn next(ran: &CommandOutput) -> &str {
    let last = ran.stderr.lines().last().unwrap_or_default();
    last.strip_prefix("next: ").unwrap_or_else(|| panic!("{ran:?}"))
}

#[test]
fn init_ends_with_a_command_that_gives_a_result_on_the_files_that_it_wrote() {
    for (arguments, codes, result) in [
        (&["council"][..], &[1][..], "REVISE"),
        (&["assembly"], &[0], "PASS"),
        (&["assembly", "--mode", "advisory"], &[0], "DONE"),
        (&["assembly", "--mode", "voting"], &[0], "PASS"),
        (&["assembly", "--mode", "peer"], &[0], "DONE"),
        (&["assembly", "--mode", "hierarchy"], &[0], "DONE"),
        (&["persona"], &[0], "0 refusals, 0 warnings"),
        (&["playbook"], &[0], "0 refusals"),
        (&["runtime"], &[0], "Three things I would change"),
        (&["wiring", "claude"], &[0], "council.yaml"),
        (&["wiring", "claude-plugin"], &[0], "council.yaml"),
        (&["wiring", "codex"], &[0], "council.yaml"),
        (&["wiring", "cursor"], &[0], "council.yaml"),
        (&["wiring", "github"], &[0], "council.yaml"),
        (&["wiring", "gitlab"], &[0], "council.yaml"),
        (&["wiring", "pre-commit"], &[0], "council.yaml"),
    ] {
        // The directory's name needs quotes.
        for dir in [".", "it's new"] {
            let place = TestDir::new();
            let written = place.run(&[&["init"], arguments, &[dir]].concat()).assert_code(0);
            let ran = paste(next(&written), &place);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                codes.contains(&ran.code) && said.contains(result),
                "{arguments:?} {dir}: {written:?} {ran:?}"
            );
            if arguments[0] == "assembly" {
                paste_all(&said, &place);
            }
            if arguments[0] == "wiring" {
                // With the council in place, the command lists its draft.
                assert!(place.run(&[&["init"], arguments, &[dir, "--remove"]].concat()).code == 0);
                let again = place.run(&[&["init"], arguments, &[dir]].concat()).assert_code(0);
                let swept = paste(next(&again), &place);
                assert!(
                    swept.code == 0 && swept.stdout.contains("1 due"),
                    "{arguments:?}: {again:?} {swept:?}"
                );
            }
        }
    }
}

#[test]
fn a_name_without_its_folder_is_enough() {
    let place = TestDir::new();
    for (kind, name) in
        [("assembly", "board"), ("persona", "ciso"), ("playbook", "plain-words"), ("runtime", "support")]
    {
        place.run(&["init", kind, "--name", name]).assert_code(0);
        place.run(&["check", name]).assert_code(0).assert_stderr_contains("0 refusals");
    }
    place.run(&["check", "nothing"]).assert_code(4);
    place.run(&["resolve", "board"]).assert_code(0);
    place.run(&["say", "support", "The meeting moved to Tuesday."]).assert_code(0);
    place.run(&["log", "support"]).assert_code(0).assert_stdout_contains("moved to Tuesday");
    place.run(&["run", "nothing"]).assert_code(4);
}
