//! Bad input through the real binary: each has its exit code and its code, and a wrong flag never looks like HOLD.

use crate::support;
use support::council::{COUNCIL, all_ship};
use support::{CommandOutput, TestDir};

/// The one refusal that a command says, as `--format json` has it: code, line.
#[track_caller]
fn refused(ran: &CommandOutput) -> (String, Option<u64>) {
    let said = ran.json();
    let all = said["diagnostics"].as_array().expect("diagnostics");
    let refusals: Vec<_> = all.iter().filter(|one| one["severity"] == "refusal").collect();
    assert_eq!(refusals.len(), 1, "{said}");
    assert!(!refusals[0]["message"].as_str().expect("a message").is_empty());
    (refusals[0]["code"].as_str().expect("a code").to_owned(), refusals[0]["line"].as_u64())
}

/// A review of `draft.md` that is refused, with its code, in every format; nothing is recorded.
#[track_caller]
fn check(place: &TestDir, arguments: &[&str], exit: i32, code: &str, line: Option<u64>) {
    let with = |format| [&["review"], arguments, &["--format", format]].concat();
    let ran = place.run(&with("json")).assert_code(exit);
    assert_eq!(refused(&ran), (code.to_owned(), line));
    assert!(place.run(&with("human")).assert_code(exit).assert_stderr_contains(code).stdout.is_empty());
    for format in ["markdown", "sarif", "github"] {
        place.run(&with(format)).assert_code(exit);
    }
    assert!(place.log().is_empty());
}

#[test]
fn what_is_mistyped_in_an_executor_is_refused_wherever_the_file_is_read() {
    let place = TestDir::with("draft.md", crate::support::REVISED);
    for (toml, said) in [
        ("[executors.x]\ncommand = \"./x\"\ntimeuot = \"5s\"\n", "did you mean `timeout`?"),
        ("[executors.x]\ncommand = \"./x\"\ncomand = \"5s\"\n", "did you mean `command`?"),
        ("[executors.x]\nkind = \"rubric\"\nretires = 1\n", "did you mean `retries`?"),
        ("[executors.x]\nkind = \"agentcli\"\n", "unknown executor kind `agentcli`"),
        ("[playbooks]\njudge = \"nope\"\n", "unknown executor `nope`"),
        ("[playbooks]\nreflector = \"nope\"\n", "unknown executor `nope`"),
        ("[runtimes.r]\nexecutor = \"nope\"\n", "unknown executor `nope`"),
        ("[mcp.far]\nurll = \"https://example.com/mcp\"\n", "did you mean `url`?"),
        ("[mcp.far]\nurl = \"https://example.com/mcp\"\ntokn = \"T\"\n", "did you mean `token`?"),
        ("[mcp.far]\nurl = \"htps://example.com/mcp\"\n", "`htps:` is not a way to reach an MCP server"),
        ("[mcp.far]\nurl = \"example.com\"\n", "[mcp.far]: `url` is not an address"),
    ] {
        place.write("quorate.toml", toml);
        for command in [
            &["review", "draft.md", "--executor", "rubric"][..],
            &["runs"],
            &["sweep"],
            &["check", "quorate.toml"],
        ] {
            let ran = place.run(command);
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(all.contains(said) && all.contains("quorate.toml:"), "{command:?} {toml}\n{all}");
            assert!(matches!(ran.code, 1 | 5), "{command:?} {toml} {}", ran.code);
        }
    }
    // Other errors of a table stop only the commands that use it.
    place.write(
        "quorate.toml",
        "[executors.x]\nkind = \"script\"\npath = \"none.json\"\n[executors.y]\ncli = \"codex\"\n",
    );
    assert!(place.run(&["review", "draft.md"]).code < 3);
    place.run(&["runs"]).assert_code(0);
    place.write("quorate.toml", "[mcp.far]\nurl = \"https://example.com/mcp\"\nargs = [\"x\"]\n");
    place.run(&["runs"]).assert_code(0);
    for command in [&["check", "quorate.toml"][..], &["doctor"]] {
        let ran = place.run(command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.code != 0 && said.contains("[mcp.far]: `args` is for a server with a `command`"),
            "{said}"
        );
    }
}

#[test]
fn a_mistyped_timeout_is_reported() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    for (runtime, said) in [
        ("{type: rubric, timout: 5}", "did you mean `timeout`?"),
        ("{type: rubric, timeout_seconds: 1e300}", "1e300 seconds is not a usable timeout"),
    ] {
        place.write("council.yaml", format!("{COUNCIL}runtime: {runtime}\n"));
        place.run(&["review", "draft.md"]).assert_code(5).assert_stderr_contains(said);
    }
}

#[test]
fn an_artifact_that_is_not_there_is_4() {
    check(&TestDir::new(), &["nothing.md"], 4, "quorate:artifact_missing", None);
    check(&TestDir::with("a.md", "text"), &["a.md/b.md"], 5, "quorate:artifact_unreadable", None);
}

#[test]
fn an_artifact_that_cannot_be_judged_is_5() {
    let place = TestDir::new();
    for (name, bytes, code) in [
        ("binary.bin", b"\x7fELF\0\0\0".to_vec(), "quorate:artifact_binary"),
        ("nul.md", b"text\0text".to_vec(), "quorate:artifact_binary"),
        ("latin1.md", b"caf\xe9".to_vec(), "quorate:artifact_binary"),
        ("utf16.md", b"\xff\xfeh\0i\0".to_vec(), "quorate:artifact_binary"),
        ("large.md", vec![b'a'; 2 * 1024 * 1024 + 1], "quorate:artifact_too_large"),
    ] {
        place.write(name, bytes);
        check(&place, &[name], 5, code, None);
    }
    place.write("folder/a.md", "text");
    check(&place, &["folder"], 5, "quorate:artifact_unreadable", None);
    let ran = place
        .run_with_stdin(&["review", "-", "--format", "json"], &vec![b'a'; 2 * 1024 * 1024 + 1])
        .assert_code(5);
    assert_eq!(refused(&ran).0, "quorate:artifact_too_large");
    let ran = place.run_with_stdin(&["review", "-", "--format", "json"], b"\xff\xfe").assert_code(5);
    assert_eq!(refused(&ran).0, "quorate:artifact_binary");
}

#[test]
fn the_largest_artifact_is_still_judged() {
    let place = TestDir::scripted(&all_ship());
    place.write("large.md", "word \n".repeat(2 * 1024 * 1024 / 6));
    place.run(&["review", "large.md"]).assert_code(0);
}

#[test]
fn a_broken_configuration_is_5_at_its_line() {
    let place = TestDir::with("draft.md", "text");
    let file = |from: &str, to: &str| {
        assert!(COUNCIL.contains(from));
        COUNCIL.replace(from, to)
    };
    for (council, code, line) in [
        (file("adjudicator:", "adjudicator: ["), "quorate:syntax", Some(6)),
        (format!("{COUNCIL}protocl: {{rounds: 2}}\n"), "quorate:council_invalid", Some(7)),
        (file("builtin:evidence", "./prompts/evidence.md"), "quorate:prompt_missing", Some(4)),
        (file("builtin:evidence", "builtin:evidnce"), "quorate:prompt_missing", Some(4)),
        (
            file("builtin:evidence", "builtin:evidence, context_refs: [./goals.md]"),
            "quorate:context_missing",
            Some(4),
        ),
        (file("id: evidence", "id: skeptic"), "quorate:council_invalid", Some(4)),
        (format!("{COUNCIL}logging: {{redact_patterns: ['[']}}\n"), "quorate:pattern_invalid", Some(7)),
        (
            format!("{COUNCIL}runtime: {{type: gh_models, model: gpt-4o}}\n"),
            "quorate:runtime_unsupported",
            Some(7),
        ),
        (format!("{COUNCIL}runtime: {{type: lmstudio}}\n"), "quorate:executor_invalid", Some(7)),
        (format!("{COUNCIL}runtime: {{type: telepathy}}\n"), "quorate:kind_unknown", Some(7)),
        (format!("{COUNCIL}{COUNCIL}"), "quorate:syntax", Some(7)),
        ("deliberators: []\n".to_owned(), "quorate:council_invalid", Some(1)),
        (String::from("- a\n"), "quorate:council_invalid", Some(1)),
    ] {
        place.write("council.yaml", &council);
        let ran = place.run(&["review", "draft.md", "--format", "json"]).assert_code(5);
        let said = ran.json();
        let found =
            said["diagnostics"].as_array().expect("diagnostics").iter().any(|one| {
                one["code"] == code && one["line"].as_u64() == line && one["file"] == "council.yaml"
            });
        assert!(found, "{code} at {line:?}: {said}");
        place.run(&["sweep"]).assert_code(5);
    }
    place.write("council.yaml", b"\xff\xfe");
    place.run(&["review", "draft.md"]).assert_code(5);
}

#[test]
fn a_runtime_whose_service_was_retired_says_what_to_use() {
    let place = TestDir::with("draft.md", "text");
    place.write("council.yaml", format!("{COUNCIL}runtime: {{type: gh_models, model: gpt-4o}}\n"));
    place
        .run(&["review", "draft.md"])
        .assert_code(5)
        .assert_stderr_contains("retired")
        .assert_stderr_contains("--executor anthropic");
}

#[test]
fn a_broken_host_file_is_5_at_its_line() {
    let place = TestDir::with("draft.md", "text");
    for (host, code, line) in [
        ("\n[defaults\n", "quorate:syntax", 2),
        ("[defaults\n", "quorate:syntax", 1),
        ("\nledgr = \"x.db\"\n", "quorate:host_invalid", 2),
        (
            "[executors.a]\nkind = \"script\"\npath = \"nowhere.json\"\n[defaults]\nexecutor = \"a\"\n",
            "quorate:executor_invalid",
            3,
        ),
        (
            "[executors.a]\nkind = \"agent-cli\"\ncommand = \"x\"\nflags = []\n[defaults]\nexecutor = \"a\"\n",
            "quorate:executor_invalid",
            4,
        ),
        ("[executors.a]\nkind = \"magic\"\n[defaults]\nexecutor = \"a\"\n", "quorate:kind_unknown", 2),
        ("[executors.a]\nkind = \"rubric\"\ntimeout = \"soon\"\n", "quorate:duration", 3),
        ("ledger = \"mysql://x\"\n", "quorate:host_invalid", 1),
    ] {
        place.write("quorate.toml", host);
        let ran = place.run(&["review", "draft.md", "--format", "json"]).assert_code(5);
        assert_eq!(refused(&ran), (code.to_owned(), Some(line)), "{host}");
    }
}

#[test]
fn what_is_named_and_unknown_is_refused() {
    let place = TestDir::with("draft.md", "text");
    check(&place, &["draft.md", "--executor", "nobody"], 5, "quorate:kind_unknown", None);
    check(&place, &["draft.md", "--config", "nowhere.yaml"], 5, "quorate:config_missing", None);
    place.write("folder/a", "");
    place.run(&["review", "draft.md", "--config", "folder"]).assert_code(5);
}

#[test]
fn a_wrong_flag_is_64_and_never_a_verdict() {
    // C5
    let place = TestDir::scripted(&all_ship());
    for arguments in [
        &["review"][..],
        &["review", "-", "-"],
        &["review", "draft.md", "--polcy", "seed"],
        &["review", "draft.md", "--policy", "mild"],
        &["review", "draft.md", "--tier", "0"],
        &["review", "draft.md", "--tier", "4"],
        &["review", "draft.md", "--format", "xml"],
        &["review", "draft.md", "--timeout", "soon"],
        &["review", "draft.md", "--timeout", "0s"],
        &["review", "draft.md", "--max-calls", "-1"],
        &["review", "draft.md", "--max-calls", "many"],
        &["sweep", "--since", "yesterday"],
        &["sweep", "--jobs", "0"],
        &["audit", "--verdict", "maybe"],
        &["audit", "--since", "soon"],
        &["override", "r", "--by", "ada", "--verdict", "incomplete", "--reason", "x"],
        &["override", "r", "--by", "ada", "--verdict", "ship"],
        &["show"],
        &["check"],
        &["reveiw", "draft.md"],
        &[],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 64, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.is_empty(), "{arguments:?}: {}", ran.stdout);
    }
    assert_eq!(place.run(&["--help"]).code, 0);
    assert_eq!(place.run(&["--version"]).code, 0);
}

#[test]
fn every_command_teaches_by_example() {
    let place = TestDir::new();
    for command in [
        "review",
        "sweep",
        "audit",
        "runs",
        "show",
        "resume",
        "replay",
        "override",
        "init",
        "check",
        "doctor",
        "explain",
        "completions",
        "man",
    ] {
        let ran = place.run(&[command, "--help"]).assert_code(0);
        assert!(
            ran.stdout.contains("Example") && ran.stdout.contains(&format!("quorate {command}")),
            "{command}: {}",
            ran.stdout
        );
    }
}

#[test]
fn an_unknown_run_is_4_and_so_is_one_of_several() {
    let place = TestDir::scripted(&all_ship());
    for command in ["show", "replay", "resume"] {
        place.run(&[command, "r0000"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
    }
    place.run(&["override", "r0000", "--by", "ada", "--verdict", "ship", "--reason", "x"]).assert_code(4);
    place.run(&["review", "draft.md"]).assert_code(0);
    place.run(&["review", "draft.md"]).assert_code(0);
    for command in ["show", "replay", "resume"] {
        place.run(&[command, "r"]).assert_code(4).assert_stderr_contains("quorate:run_ambiguous");
        place.run(&[command, "zzz"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
        place.run(&[command, "' OR 1=1 --"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
    }
}

#[test]
fn a_ledger_or_log_that_cannot_be_is_5_before_anybody_is_asked() {
    let place = TestDir::scripted(&all_ship());
    place.write("file", "a file");
    place.write("folder/a", "");
    for ledger in ["file/ledger.db", "folder", "postgres://host/db"] {
        place
            .run(&["review", "draft.md", "--ledger", ledger])
            .assert_code(5)
            .assert_stderr_contains("quorate:ledger_unavailable");
    }
    for log in ["./folder", "./file/log.jsonl", "./file/deeper/log.jsonl", "."] {
        place.write("council.yaml", format!("{COUNCIL}logging: {{log_path: {log}}}\n"));
        let refused = place.run(&["review", "draft.md"]).assert_code(5);
        refused.assert_stderr_contains("quorate:log_unwritable");
        assert!(!refused.stderr.contains("to :"), "{}", refused.stderr);
    }
    place.run(&["audit", "--log", "folder"]).assert_refused(5, "quorate:file_unreadable");
    assert!(!place.path(".quorate").exists(), "no member was asked");
}

#[test]
fn a_file_that_is_no_ledger_is_not_made_into_one() {
    let place = TestDir::scripted(&all_ship());
    let notes = "These are notes.\n".repeat(100);
    place.write("notes.md", &notes);
    for (ledger, code) in
        [("notes.md", "quorate:ledger_unavailable"), ("draft.md", "quorate:file_unwritable")]
    {
        let before = place.read(ledger);
        place.run(&["review", "draft.md", "--ledger", ledger]).assert_code(5).assert_stderr_contains(code);
        assert_eq!(place.read(ledger), before);
    }
    assert!(!place.path("aside").exists());
}

#[test]
fn an_override_needs_a_verdict_to_stand_beside_and_a_reason() {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let run = place.only_run();
    place.run(&["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "  "]).assert_code(64);
    assert_eq!(place.log().len(), 1);
}
