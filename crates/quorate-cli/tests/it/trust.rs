//! Workspace trust (X14): commands and destinations that a checkout's files name are used only after a person trusts the
//! content of each of those files.

mod places;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use crate::support;
use support::{CommandOutput, TestDir, finish};

/// A script that leaves a trace when it runs.
const TRACE: &str = "#!/bin/sh\necho ran >> \"$(dirname \"$0\")/trace\"\necho '{\"would_block\": false, \"irreducible\": false, \"verdict\": \"SHIP\", \"reasoning\": \"x\"}'\n";

/// A checkout from elsewhere: nothing is trusted, and every command in it leaves a trace.
fn checkout(files: &[(&str, &str)]) -> TestDir {
    let place = TestDir::with("repo/draft.md", crate::support::REVISED);
    place.write("repo/evil.sh", TRACE);
    let path = place.path("repo/evil.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    for (name, text) in files {
        place.write(&format!("repo/{name}"), text);
    }
    place
}

fn run_with(place: &TestDir, arguments: &[&str], trust: Option<&str>) -> CommandOutput {
    let mut command = place.command_in("repo", arguments);
    command.env_remove("QUORATE_TRUST");
    if let Some(trust) = trust {
        command.env("QUORATE_TRUST", trust);
    }
    finish(command.spawn().expect("the binary runs"))
}

fn run(place: &TestDir, arguments: &[&str]) -> CommandOutput {
    run_with(place, arguments, None)
}

fn ran(place: &TestDir) -> bool {
    place.path("repo/trace").exists()
}

/// Nothing runs, the refusal has its code, and the file that is at fault is named.
#[track_caller]
fn refused(place: &TestDir, arguments: &[&str], file: &str) {
    let refused = run(place, arguments).assert_code(5);
    assert!(!ran(place), "{arguments:?} ran a command of the checkout\n{}", refused.stderr);
    let said = refused.stdout.clone() + &refused.stderr;
    assert!(said.contains("workspace_untrusted"), "{arguments:?}\n{said}");
    assert!(said.contains(file), "{arguments:?} does not name {file}\n{said}");
}

const EXECUTOR: &str = "[executors.evil]\ncommand = \"./evil.sh\"\n";
const DEFAULT: &str = "[defaults]\nexecutor = \"evil\"\n[executors.evil]\ncommand = \"./evil.sh\"\n";

#[test]
fn an_executor_of_a_checkout_runs_for_no_command() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    refused(&place, &["review", "draft.md"], "quorate.toml");
    refused(&place, &["review", "draft.md", "--executor", "evil"], "quorate.toml");
    refused(&place, &["sweep", "--since", "all"], "quorate.toml");
    // Doctor continues with everything else, and calls nothing.
    let doctor = run(&place, &["doctor"]);
    assert!(
        doctor.stdout.contains("workspace_untrusted") && !ran(&place),
        "{}{}",
        doctor.stdout,
        doctor.stderr
    );
}

#[test]
fn a_ready_made_executor_that_a_file_chooses_is_the_files_choice() {
    // A `claude` of the test's own on PATH, so that no real CLI is asked.
    let place = checkout(&[("quorate.toml", "[defaults]\nexecutor = \"claude\"\n")]);
    place.write("bin/claude", "#!/bin/sh\ntouch repo/trace\n");
    refused(&place, &["review", "draft.md"], "quorate.toml");
    // Shadowing the name of a ready-made one makes it the file's, also where a person names it.
    place.write("repo/quorate.toml", "[executors.claude]\ncommand = \"./evil.sh\"\n");
    refused(&place, &["review", "draft.md", "--executor", "claude"], "quorate.toml");
    place.write("repo/quorate.toml", "[executors.rubric]\ncommand = \"./evil.sh\"\n");
    refused(&place, &["review", "draft.md", "--executor", "rubric"], "quorate.toml");
    refused(&place, &["review", "draft.md"], "quorate.toml");
}

#[test]
fn the_runtime_of_a_council_is_the_councils() {
    let place = checkout(&[]);
    run(&place, &["init", "council", "."]).assert_code(0);
    let council = place.read("repo/council.yaml");
    assert!(!council.contains("\nruntime:"), "the test adds one");
    place.write(
        "repo/council.yaml",
        format!("{council}\nruntime:\n  type: claude_cli\n  binary: ./evil.sh\n"),
    );
    refused(&place, &["review", "draft.md"], "council.yaml");
}

#[test]
fn the_command_of_a_signing_key_runs_neither_for_reviews_nor_for_lists() {
    let optional = "[keys]\nsign = \"optional\"\nsigning = {command = [\"./evil.sh\"]}\n";
    let place = checkout(&[("quorate.toml", optional)]);
    run(&place, &["keys", "list"]).assert_code(0);
    run(&place, &["review", "draft.md", "--executor", "rubric"]);
    assert!(!ran(&place));
    place.write("repo/quorate.toml", optional.replace("optional", "required"));
    let refused = run(&place, &["review", "draft.md"]).assert_code(5);
    refused
        .assert_stderr_contains("signing_key_missing")
        .assert_stderr_contains("quorate.toml is not trusted");
    assert!(!ran(&place));
}

#[test]
fn hooks_and_participants_of_an_untrusted_runtime_do_not_run() {
    let manifest = |rest: &str| {
        format!(
            "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nsubstrate: {{kind: file, path: talk.txt}}\n\
             dispatcher: {{kind: mention}}\nparticipants:\n{rest}\n"
        )
    };
    let participant = "  - {id: ada, executor: agent-cli, config: {command: ./evil.sh}}";
    let place = checkout(&[("talk.yaml", &manifest(participant))]);
    refused(&place, &["run", "talk.yaml", "--say", "@ada hello"], "talk.yaml");
    let hooks =
        format!("{}hooks:\n  onIdle: {{command: ./evil.sh}}\n", manifest("  - {id: ada, executor: rubric}"));
    place.write("repo/talk.yaml", hooks);
    refused(&place, &["run", "talk.yaml", "--say", "hello"], "talk.yaml");
    // Talking and looking start nothing.
    run(&place, &["say", "talk.yaml", "hello"]).assert_code(0);
    run(&place, &["log", "talk.yaml"]).assert_code(0);
    run(&place, &["check", "talk.yaml"]).assert_code(0);
    assert!(!ran(&place));
}

#[test]
fn records_stay_in_the_workspace() {
    for (toml, outside) in [
        ("ledger = \"../outside/ledger.db\"\n", "ledger.db"),
        ("[ledger]\nwitness = \"../outside/witness.txt\"\n", "witness.txt"),
    ] {
        let place = checkout(&[("quorate.toml", toml)]);
        std::fs::create_dir(place.path("outside")).unwrap();
        refused(&place, &["review", "draft.md"], "quorate.toml");
        assert!(!place.path(&format!("outside/{outside}")).exists());
        // A person's `--trust` allows it.
        run(&place, &["review", "draft.md", "--trust"]);
        assert!(place.path(&format!("outside/{outside}")).exists());
    }
    let place = checkout(&[]);
    run(&place, &["init", "council", "."]).assert_code(0);
    let council = place.read("repo/council.yaml");
    let elsewhere = council.replace("logging:", "logging:\n  log_path: ../bashrc");
    let elsewhere =
        if elsewhere == council { council + "\nlogging:\n  log_path: ../bashrc\n" } else { elsewhere };
    let once = elsewhere.lines().filter(|line| line.trim_start().starts_with("log_path:")).count();
    let elsewhere: String = match once {
        1 => elsewhere,
        _ => elsewhere
            .lines()
            .filter(|line| !line.contains("log_path:") || line.contains("bashrc"))
            .map(|line| format!("{line}\n"))
            .collect(),
    };
    place.write("repo/council.yaml", elsewhere);
    refused(&place, &["review", "draft.md"], "council.yaml");
    assert!(!place.path("bashrc").exists());
}

#[test]
fn a_council_shows_members_no_file_from_outside() {
    for outside in ["../secret.txt", "link.txt"] {
        let place = checkout(&[]);
        place.write("secret.txt", "The reader's own.\n");
        symlink("../secret.txt", place.path("repo/link.txt")).unwrap();
        run(&place, &["init", "council", "."]).assert_code(0);
        let council = place.read("repo/council.yaml");
        let prompt = council.lines().find(|line| line.contains("prompt:")).unwrap();
        let other = format!("{}prompt: {outside}", &prompt[..prompt.find("prompt:").unwrap()]);
        place.write("repo/council.yaml", council.replacen(prompt, &other, 1));
        refused(&place, &["review", "draft.md", "--executor", "rubric"], "council.yaml");
    }
}

#[test]
fn goals_of_the_rubric_are_quoted_from_inside_of_the_workspace_alone() {
    let goals = "# Goals\n\n- The secret garden project ships in spring\n";
    for (path, link) in [("../outside.md", None), ("goals.md", Some("../outside.md"))] {
        let settings = format!("[executors.rubric]\nkind = \"rubric\"\ngoals = \"{path}\"\n");
        let place = checkout(&[("quorate.toml", &settings)]);
        place.write("outside.md", goals);
        if let Some(target) = link {
            symlink(target, place.path("repo/goals.md")).unwrap();
        }
        refused(&place, &["review", "draft.md", "--executor", "rubric"], "quorate.toml");
        let shown = run(&place, &["trust", "--show"]);
        assert!(shown.stdout.contains("quote goals from"), "{}", shown.stdout);
        run_with(&place, &["review", "draft.md", "--executor", "rubric"], Some("1"));
        assert_eq!(
            place.run_in("repo", &["runs", "--format", "json"]).json()["runs"].as_array().unwrap().len(),
            1
        );
    }
    let place =
        checkout(&[("quorate.toml", "[executors.rubric]\nkind = \"rubric\"\ngoals = \"goals.md\"\n")]);
    place.write("repo/goals.md", goals);
    assert!(run(&place, &["review", "draft.md", "--executor", "rubric"]).code < 4);
}

#[test]
fn a_text_that_a_link_leads_out_of_the_workspace_to_is_shown_to_no_member() {
    let place = checkout(&[]);
    place.write("outside.md", "The secret garden project.\n");
    place.write("repo/inside.md", "The meeting moved to Tuesday at ten.\n");
    place.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    symlink("../outside.md", place.path("repo/z.md")).unwrap();
    symlink("inside.md", place.path("repo/y.md")).unwrap();
    symlink("..", place.path("repo/up")).unwrap();
    for text in ["z.md", "up/outside.md"] {
        let refused = run(&place, &["review", text]).assert_code(5);
        refused.assert_stderr_contains("quorate:path_outside").assert_stderr_contains("outside.md");
    }
    // A link that stays inside is a file of the checkout, and a path outside is the reader's own word.
    for text in ["y.md", "../outside.md"] {
        assert!(run(&place, &["review", text]).code < 4, "{text}");
    }
}

#[test]
fn a_link_of_the_checkout_leads_no_record_out_of_it() {
    let place = checkout(&[]);
    std::fs::create_dir(place.path("outside")).unwrap();
    symlink("../outside", place.path("repo/.quorate")).unwrap();
    let said = run(&place, &["review", "draft.md"]).assert_code(5);
    said.assert_stderr_contains("workspace_untrusted")
        .assert_stderr_contains("a link leads out of the workspace");
    assert_eq!(std::fs::read_dir(place.path("outside")).unwrap().count(), 0);
    std::fs::remove_file(place.path("repo/.quorate")).unwrap();
    std::fs::create_dir(place.path("repo/.quorate")).unwrap();
    symlink("../../bashrc", place.path("repo/.quorate/council_log.jsonl")).unwrap();
    run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("workspace_untrusted");
    assert!(!place.path("bashrc").exists());
    // A person may keep the ledger anywhere.
    run(&place, &["review", "draft.md", "--ledger", "../outside/l.db"]);
    assert!(place.path("outside/l.db").exists());
}

#[test]
fn a_ledger_in_a_database_is_sent_nothing() {
    let place = checkout(&[("quorate.toml", "ledger = \"postgres://quorate@127.0.0.1:9/quorate\"\n")]);
    for command in [&["review", "draft.md"][..], &["runs"], &["keys", "list"]] {
        let said = run(&place, command);
        let text = said.stdout + &said.stderr;
        // Without the feature the address is refused first.
        assert!(text.contains("workspace_untrusted") || text.contains("feature_missing"), "{text}");
    }
}

#[test]
fn trust_holds_until_a_file_or_its_script_changes() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    let shown = run(&place, &["trust", "--show"]).assert_code(0);
    assert!(
        shown.stdout.contains("run `./evil.sh`") && shown.stdout.contains("not trusted  evil.sh"),
        "{}",
        shown.stdout
    );
    refused(&place, &["review", "draft.md"], "quorate.toml");
    run(&place, &["trust"]).assert_code(0);
    run(&place, &["review", "draft.md"]).assert_code(0);
    assert!(ran(&place));
    // It is kept outside of the workspace.
    let kept = place.read(".local/state/quorate/trust.json");
    assert!(kept.contains("repo/quorate.toml") && kept.contains("repo/evil.sh"), "{kept}");

    std::fs::remove_file(place.path("repo/trace")).unwrap();
    place.write("repo/evil.sh", TRACE.replace("ran", "ran again"));
    refused(&place, &["review", "draft.md"], "quorate.toml");
    run(&place, &["trust"]).assert_code(0);
    run(&place, &["review", "draft.md"]).assert_code(0);
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    place.write("repo/quorate.toml", format!("{DEFAULT}args = [\"x\"]\n"));
    refused(&place, &["review", "draft.md"], "quorate.toml");

    place.write("repo/quorate.toml", DEFAULT);
    run(&place, &["review", "draft.md"]).assert_code(0);
    run(&place, &["trust", "--revoke"]).assert_code(0);
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    refused(&place, &["review", "draft.md"], "quorate.toml");
}

#[test]
fn a_file_that_is_an_argument_belongs_to_its_command() {
    let table = "[defaults]\nexecutor = \"evil\"\n[executors.evil]\ncommand = \"sh\"\nargs = [\"evil.sh\"]\n";
    let place = checkout(&[("quorate.toml", table)]);
    refused(&place, &["review", "draft.md"], "quorate.toml");
    run(&place, &["trust"]).assert_code(0);
    run(&place, &["review", "draft.md"]).assert_code(0);
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    place.write("repo/evil.sh", TRACE.replace("ran", "ran again"));
    refused(&place, &["review", "draft.md"], "quorate.toml");
}

#[test]
fn trust_of_one_command_is_not_kept() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    run(&place, &["review", "draft.md", "--trust"]).assert_code(0);
    assert!(ran(&place));
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    refused(&place, &["review", "draft.md"], "quorate.toml");
    run_with(&place, &["review", "draft.md"], Some("1")).assert_code(0);
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    for nothing in ["", "0"] {
        assert_eq!(run_with(&place, &["review", "draft.md"], Some(nothing)).code, 5);
    }
    assert!(!ran(&place));
}

#[test]
fn a_hash_trusts_one_state_of_the_workspace() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    let shown = run(&place, &["trust", "--show", "--format", "json"]).assert_code(0).json();
    let hash = shown["hash"].as_str().unwrap();
    run_with(&place, &["review", "draft.md"], Some(hash)).assert_code(0);
    assert!(ran(&place));
    std::fs::remove_file(place.path("repo/trace")).unwrap();
    for other in ["yes", &hash.replace(|c: char| c.is_ascii_digit(), "0"), &hash[..12]] {
        run_with(&place, &["review", "draft.md"], Some(other))
            .assert_code(5)
            .assert_stderr_contains("is not the hash of this workspace");
    }
    // The hash covers everything that the workspace names, not only what this command would use.
    place.write("repo/other.yaml", "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nsubstrate: {kind: memory}\ndispatcher: {kind: mention}\nparticipants:\n  - {id: ada, executor: agent-cli, config: {command: sh}}\n");
    assert_eq!(run_with(&place, &["review", "draft.md"], Some(hash)).code, 5);
    assert!(!ran(&place));
}

#[test]
fn what_needs_no_trust_goes_on_without() {
    let place = checkout(&[("quorate.toml", EXECUTOR)]);
    let judged = run(&place, &["review", "draft.md", "--executor", "rubric"]);
    assert!(judged.code < 3, "{}", judged.stderr);
    for command in [
        &["runs"][..],
        &["check", "."],
        &["ledger", "verify"],
        &["audit"],
        &["keys", "list"],
        &["trust", "--show"],
    ] {
        let said = run(&place, command);
        assert!(said.code <= 1, "{command:?}\n{}{}", said.stdout, said.stderr);
    }
    assert!(!ran(&place));
}

#[test]
fn an_answer_from_a_pipe_is_no_consent() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    let mut command = place.command_in("repo", &["review", "draft.md"]);
    let mut child = command.env_remove("QUORATE_TRUST").stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"y\ny\n").ok();
    assert_eq!(finish(child).code, 5);
    assert!(!ran(&place));
}

#[test]
fn a_record_of_trust_that_is_garbage_trusts_nothing() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    for garbage in ["", "{}", "[]", "{\"v\": 2, \"files\": {}}", "{\"v\": 1, \"files\": {\"x\": 1}}"] {
        place.write(".local/state/quorate/trust.json", garbage);
        run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("trust_unreadable");
        assert!(!ran(&place), "{garbage}");
    }
}

#[test]
fn a_record_of_trust_that_every_user_can_write_to_trusts_nothing() {
    let place = checkout(&[("quorate.toml", DEFAULT)]);
    run(&place, &["trust"]).assert_code(0);
    let shown = run(&place, &["trust", "--show"]).assert_code(0);
    assert!(shown.stdout.contains("quorate.toml"));
    let state = place.path(".local/state/quorate");
    for (path, mode) in [(state.join("trust.json"), 0o666), (state, 0o777)] {
        let before = std::fs::metadata(&path).expect("it is there").permissions();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
        run(&place, &["review", "draft.md"])
            .assert_code(5)
            .assert_stderr_contains("every user can write to it");
        std::fs::set_permissions(&path, before).expect("a mode");
    }
    assert!(!ran(&place));
}

#[test]
fn configuration_that_every_user_can_write_is_refused() {
    let place = checkout(&[("quorate.toml", "strict_chain = true\n")]);
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("repo/quorate.toml", 0o666);
    run(&place, &["review", "draft.md"])
        .assert_code(5)
        .assert_stderr_contains("ownership_dubious")
        .assert_stderr_contains("trust --safe-directory");
    mode("repo/quorate.toml", 0o644);
    mode("repo", 0o777);
    run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("ownership_dubious");
    // As in /tmp, where users cannot replace each other's files.
    mode("repo", 0o1777);
    assert!(run(&place, &["review", "draft.md"]).code < 3);
    mode("repo", 0o777);
    run(&place, &["trust", "--safe-directory", "."]).assert_code(0);
    assert!(run(&place, &["review", "draft.md"]).code < 3);
    run(&place, &["trust", "--revoke", "--safe-directory", "."]).assert_code(0);
    run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("ownership_dubious");
    run(&place, &["trust", "--revoke", "--safe-directory", "."]).assert_code(4);
}

/// Only root can give a file away.
#[test]
fn configuration_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can give a file to another user");
        return;
    }
    let place =
        checkout(&[("sub/draft.md", "The meeting moved to Tuesday at ten.\n"), ("quorate.toml", DEFAULT)]);
    let give = |name: &str, user: u32| std::os::unix::fs::chown(place.path(name), Some(user), None).unwrap();
    give("repo/quorate.toml", 4242);
    for command in [
        &["review", "sub/draft.md"][..],
        &["review", "sub/draft.md", "--trust"],
        &["keys", "list"],
        &["runs"],
    ] {
        let said = run(&place, command).assert_code(5);
        said.assert_stderr_contains("detected dubious ownership in workspace");
    }
    assert!(!ran(&place));
    // The one who called sudo is trusted as root is.
    let mut command = place.command_in("repo", &["runs"]);
    command.env("SUDO_UID", "4242").env_remove("QUORATE_TRUST");
    assert_ne!(finish(command.spawn().unwrap()).code, 5);
    run(&place, &["trust", "--safe-directory", "."]).assert_code(0);
    refused(&place, &["review", "sub/draft.md"], "quorate.toml");
    // A records directory of another user is refused as well.
    give("repo/quorate.toml", 0);
    place.write("repo/.quorate/x", "");
    give("repo/.quorate", 4242);
    std::fs::remove_dir_all(place.path(".local")).unwrap();
    run(&place, &["runs"]).assert_code(5).assert_stderr_contains("detected dubious ownership");
}
