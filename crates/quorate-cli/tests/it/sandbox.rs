//! Access of members to the ledger in use: a vendor's preset has none, a user's own command has the access that its table
//! grants.

#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt as _;

use crate::support;
use serde_json::Value;
use support::{CommandOutput, TestDir, finish};

/// Tries what a member should not do, and says in its answer which of it worked.
const BURGLAR: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '2.1.197 (Claude Code)'; exit; }
cat > /dev/null
# A judge starts in a directory of its own; the attempts target the workspace.
cd WORKSPACE
did=
try() { what=$1; shift; if "$@" >/dev/null 2>>"$TMPDIR/refusals"; then did="$did $what"; fi; }
write() { printf x >> "$1"; }
make() { printf x > "$1/made-$$"; }
try keys sh -c 'cat .quorate/keys/*.ed25519 >/dev/null'
try link sh -c 'ln -s "$PWD/.quorate/keys" "$TMPDIR/k-$$"; cat "$TMPDIR/k-$$"/*.ed25519 >/dev/null'
try move sh -c 'mv .quorate/keys "$TMPDIR/keys"'
try rename sh -c 'mv .quorate quorate'
try parent sh -c 'cat "/proc/$PPID/environ" > /dev/null' # its own shell's, for comparison
try guard sh -c 'exec 3< "/proc/$0/mem"' "$PPID"
try host readlink "/proc/$(cut -d' ' -f4 "/proc/$PPID/stat")/fd/0"
try ledger-read sh -c 'head -c 16 .quorate/ledger.db >/dev/null'
try ledger-write write .quorate/ledger.db
try ledger-cut truncate -s 0 .quorate/ledger.db
try ledger-remove rm .quorate/ledger.db
try ledger-journal sh -c 'printf x > .quorate/ledger.db-journal'
try log-read sh -c 'cat .quorate/council_log.jsonl >/dev/null'
try log-write write .quorate/council_log.jsonl
try draft-read sh -c 'cat draft.md >/dev/null'
try draft-write write draft.md
try folder-write make notes
try home-write make "$HOME/.cache"
try tmp-write make "$TMPDIR"
try null sh -c 'echo > /dev/null'
printf '{"is_error": false, "structured_output": {"would_block": false, "irreducible": false, "verdict": "SHIP",'
printf ' "reasoning": "r", "notes": "%s."}}\n' "$did"
"#;

/// The script of a place.
fn burglar(place: &TestDir, script: &str) -> String {
    script.replace("WORKSPACE", &place.path("ws").display().to_string())
}

/// Without Landlock there is nothing to see.
fn confines() -> bool {
    let can = quorate_adapters::process::can_confine();
    if let Err(why) = can {
        eprintln!("SKIPPED: {why}");
    }
    can.is_ok()
}

/// A workspace with a home beside it, and a first review that has made ledger, keys and log.
fn place(table: &str) -> TestDir {
    let place = TestDir::new();
    place.write("ws/draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write("ws/notes/note.md", "Mine.\n");
    place.write("home/.cache/there", "");
    place.write("tmp/there", "");
    place.write("bin/claude", burglar(&place, BURGLAR));
    std::fs::set_permissions(place.path("bin/claude"), std::fs::Permissions::from_mode(0o755)).expect("ours");
    place.write("ws/quorate.toml", format!("[executors.member]\nkind = \"agent-cli\"\n{table}"));
    review(&place, "rubric").expect_any();
    place
}

fn review(place: &TestDir, executor: &str) -> CommandOutput {
    let mut command =
        place.command_in("ws", &["review", "draft.md", "--executor", executor, "--format", "json"]);
    command.env("HOME", place.path("home")).env("TMPDIR", place.path("tmp")).env("QUORATE_TRUST", "1");
    finish(command.spawn().expect("the binary runs"))
}

trait Any {
    fn expect_any(self) -> Value;
}

impl Any for CommandOutput {
    /// The report, whatever the verdict.
    fn expect_any(self) -> Value {
        assert!(self.code <= 3, "{self:?}");
        self.json()
    }
}

/// The actions that the first member reports.
fn did(report: &Value) -> Vec<String> {
    let notes = report["deliberators"][0]["round1"]["answer"]["notes"].as_str();
    let notes = notes.unwrap_or_else(|| panic!("{report:#}"));
    notes.trim_end_matches('.').split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_preset_reaches_neither_keys_nor_ledger_nor_log_and_writes_no_workspace() {
    if !confines() {
        return;
    }
    let place = place("preset = \"claude\"\ncommand = \"../bin/claude\"\n");
    let before = std::fs::read(place.path("ws/draft.md")).expect("it is there");
    let report = review(&place, "member").expect_any();
    assert_eq!(did(&report), ["parent", "draft-read", "home-write", "tmp-write", "null"]);
    assert_eq!(std::fs::read(place.path("ws/draft.md")).expect("it is there"), before);
    let verified = place.command_in("ws", &["ledger", "verify"]).output().expect("the binary runs");
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}

#[test]
fn a_sandbox_can_be_switched_off() {
    let place = place("preset = \"claude\"\ncommand = \"../bin/claude\"\nsandbox = false\n");
    // It would move the keys away, and cut the ledger.
    let harmless =
        BURGLAR.lines().filter(|line| !["move", "rename", "ledger-"].iter().any(|word| line.contains(word)));
    place.write("bin/claude", burglar(&place, &harmless.collect::<Vec<_>>().join("\n")));
    let report = review(&place, "member").expect_any();
    for what in ["keys", "guard", "host", "draft-write", "folder-write"] {
        assert!(did(&report).iter().any(|did| did == what), "{what}: {report:#}");
    }
}

#[test]
fn a_command_of_the_users_own_is_confined_where_its_table_says_so() {
    if !confines() {
        return;
    }
    let own = "command = \"../bin/claude\"\noutput = \"claude-json\"\n";
    let place = place(&format!("{own}sandbox = true\n"));
    let report = review(&place, "member").expect_any();
    let reached = [
        "parent",
        "ledger-read",
        "log-read",
        "draft-read",
        "draft-write",
        "folder-write",
        "home-write",
        "tmp-write",
        "null",
    ];
    assert_eq!(did(&report), reached);
    // The failure names the sandbox as a possible cause.
    place.write("bin/claude", "#!/bin/sh\ncat >/dev/null; echo x > new-file || exit 3\n");
    review(&place, "member").expect_any();
    let log = place.read("ws/.quorate/council_log.jsonl");
    assert!(log.contains("Permission denied") && log.contains("sandbox = false"), "{log}");
}

#[test]
fn a_workspace_below_the_directory_of_temporary_files_leaves_room_for_them() {
    if !confines() {
        return;
    }
    let place = place("preset = \"claude\"\ncommand = \"../bin/claude\"\n");
    let mut command =
        place.command_in("ws", &["review", "draft.md", "--executor", "member", "--format", "json"]);
    command.env("HOME", place.path("home")).env("TMPDIR", place.root()).env("QUORATE_TRUST", "1");
    let report = finish(command.spawn().expect("the binary runs")).expect_any();
    assert!(did(&report).contains(&"tmp-write".to_owned()), "{report:#}");
    let left = std::fs::read_dir(place.root()).expect("it is there").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("a name")).collect();
    assert!(!left.iter().any(|name| name.starts_with("quorate-")), "{left:?}");
}

#[test]
fn the_version_of_a_preset_stands_in_the_record() {
    let place = place("preset = \"claude\"\ncommand = \"../bin/claude\"\nsandbox = false\n");
    place.write(
        "bin/claude",
        "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.197 (Claude Code)'; exit; }\ncat >/dev/null\n\
         echo '{\"structured_output\": {\"would_block\": false, \"irreducible\": false, \"verdict\": \"SHIP\", \
         \"reasoning\": \"r\"}, \"modelUsage\": {\"big-1\": {\"outputTokens\": 1}}}'\n",
    );
    let report = review(&place, "member").expect_any();
    let run = report["run"].as_str().expect("a run").to_owned();
    let exported = place.command_in("ws", &["ledger", "export", "--run", &run, "--format", "jsonl"]).output();
    let exported = exported.expect("the binary runs");
    let text = String::from_utf8(exported.stdout).expect("text");
    assert!(text.contains("2.1.197 (Claude Code)") && text.contains("big-1"), "{text} {:?}", exported.stderr);
}
