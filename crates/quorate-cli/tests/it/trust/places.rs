//! Paths by which a checkout tries to write or read outside of itself: names, links, and paths that do not exist yet.

use std::os::unix::fs::symlink;

use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::support::TestDir;
use super::{checkout, refused, run};

/// A runtime of a checkout, whose one participant says what a script has.
fn swarm(script: &str, conversation: &str, state: &str) -> String {
    format!(
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: talk
participants:
  - {{id: ada, executor: script, role: Help., config: {{path: {script}}}}}
substrate: {{kind: file, path: {conversation}}}
dispatcher: {{kind: round-robin}}
state: {{kind: fs, dir: {state}}}
"
    )
}

const SAYS: &str = r#"{"_": {"content": "hi", "stateUpdate": {"v": 1, "files": {}}}}"#;
const SAY: [&str; 5] = ["run", "swarm.yaml", "--once", "--say", "hello"];

fn outside(place: &TestDir) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("outside")).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn with_swarm(script: &str, conversation: &str, state: &str) -> TestDir {
    let place = checkout(&[("swarm.yaml", &swarm(script, conversation, state)), ("a.json", SAYS)]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    place.write("outside/secret.md", "The reader's own.\n");
    place
}

#[test]
fn a_runtime_writes_nothing_outside_of_a_checkout() {
    for (conversation, state) in [
        ("../outside/talk.md", "st"),
        ("talk.md", "../outside"),
        ("new/../../outside/talk.md", "st"),
        ("talk.md", "new/../../outside/st"),
    ] {
        let place = with_swarm("a.json", conversation, state);
        refused(&place, &SAY, "swarm.yaml");
        if state == "st" {
            refused(&place, &["say", "swarm.yaml", "hello"], "swarm.yaml");
        }
        assert_eq!(outside(&place), ["secret.md"], "{conversation}, {state}");
        // With trust it is allowed.
        run(&place, &["run", "swarm.yaml", "--once", "--say", "hello", "--trust"]).assert_code(0);
        assert_ne!(outside(&place), ["secret.md"], "{conversation}, {state}");
    }
}

#[test]
fn a_link_leads_no_conversation_and_no_state_out_of_a_checkout() {
    for (link, to) in [("talk.md", "../outside/talk.md"), ("st", "../outside")] {
        let place = with_swarm("a.json", "talk.md", "st");
        symlink(to, place.path(&format!("repo/{link}"))).expect("a link");
        for arguments in [&SAY[..], &["say", "swarm.yaml", "hello"], &["check", "swarm.yaml"]] {
            let refused = run(&place, arguments);
            let said = refused.stdout + &refused.stderr;
            assert!(said.contains("path_outside") && said.contains("by a link"), "{arguments:?}: {said}");
        }
        assert_eq!(outside(&place), ["secret.md"], "{link}");
    }
}

#[test]
fn a_script_takes_no_answers_from_outside() {
    for script in ["../outside", "link", "new/../../outside"] {
        let place = with_swarm(script, "talk.md", "st");
        std::fs::create_dir(place.path("repo/new")).expect("a directory");
        symlink("../outside", place.path("repo/link")).expect("a link");
        refused(&place, &SAY, "swarm.yaml");
    }
    let place = with_swarm("answers", "talk.md", "st");
    std::fs::create_dir(place.path("repo/answers")).expect("a directory");
    symlink("../../outside/secret.md", place.path("repo/answers/_.md")).expect("a link");
    run(&place, &SAY);
    assert!(!place.read("repo/talk.md").contains("The reader's own"));
}

#[test]
fn a_ledger_leads_nowhere_by_a_directory_that_is_not_there_yet() {
    let place = checkout(&[("quorate.toml", "ledger = \"new/../link/l.db\"\n")]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    symlink("../outside", place.path("repo/link")).expect("a link");
    refused(&place, &["review", "draft.md"], "quorate.toml");
    assert_eq!(outside(&place), [""; 0]);
}

/// More `..` than a path has directories lead to the root, and on from there; a link of the checkout must not make
/// the rest of such a path relative to the working directory.
#[test]
fn a_path_through_the_root_leads_out_like_any_other() {
    let up = "../".repeat(40);
    let place = checkout(&[]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    place.write("outside/secret.md", "The reader's own words about the meeting.\n");
    let council = "deliberators:
  - {id: skeptic, prompt: builtin:skeptic}
  - {id: evidence, prompt: builtin:evidence}
  - {id: strategy, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator}
";
    let outside_dir = place.path("outside").canonicalize().expect("a directory");
    let first = outside_dir.components().nth(1).expect("a name");
    symlink("/proc/self/cwd", place.path("repo").join(first)).expect("a link");
    let through_root = format!("{up}{}", outside_dir.strip_prefix("/").expect("absolute").display());
    for prompt in [
        format!("builtin:skeptic, context_refs: [\"{through_root}/secret.md\"]"),
        format!("\"{through_root}/secret.md\""),
    ] {
        place.write("repo/council.yaml", council.replacen("builtin:skeptic", &prompt, 1));
        refused(&place, &["review", "draft.md"], "council.yaml");
    }
    place.write(
        "repo/council.yaml",
        format!("{council}logging: {{log_path: \"{through_root}/log.jsonl\"}}\n"),
    );
    refused(&place, &["review", "draft.md"], "council.yaml");
    place.write("repo/council.yaml", council);
    place.write("repo/quorate.toml", format!("ledger = \"{through_root}/l.db\"\n"));
    refused(&place, &["review", "draft.md"], "quorate.toml");
    assert_eq!(outside(&place), ["secret.md"]);
}

/// A chain of more links than the system follows, which ends at another link, hides nothing about that one.
#[test]
fn a_long_chain_of_links_hides_no_other_link() {
    let council = "deliberators:
  - {id: skeptic, prompt: p/secret.md}
  - {id: evidence, prompt: builtin:evidence}
  - {id: strategy, prompt: builtin:strategy}
adjudicator: {prompt: builtin:adjudicator}
";
    for length in [39, 40, 41, 60] {
        let place = checkout(&[
            ("council.yaml", council),
            ("quorate.toml", "[ledger]\nwitness = \"c/a0\"\n"),
            ("c/keep", ""),
        ]);
        std::fs::create_dir(place.path("outside")).expect("a directory");
        place.write("outside/secret.md", "The reader's own words about the meeting.\n");
        symlink("../outside", place.path("repo/p")).expect("a link");
        for at in 0..length {
            let target = if at + 1 == length { "../p".to_owned() } else { format!("a{}", at + 1) };
            symlink(target, place.path("repo").join(format!("c/a{at}"))).expect("a link");
        }
        run(&place, &["review", "draft.md"]).assert_code(5);
        run(&place, &["review", "draft.md", "--ledger", "own.db"]).assert_code(5);
        assert_eq!(outside(&place), ["secret.md"], "{length}");
    }
}

#[test]
fn a_link_leads_no_key_out_of_a_checkout() {
    let place = checkout(&[("quorate.toml", "")]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    std::fs::create_dir(place.path("repo/.quorate")).expect("a directory");
    symlink("../../outside", place.path("repo/.quorate/keys")).expect("a link");
    for arguments in [&["keys", "init"][..], &["review", "draft.md"]] {
        run(&place, arguments).assert_code(5).assert_stderr_contains("a link leads out of the workspace");
    }
    assert_eq!(outside(&place), [""; 0]);
}

#[test]
fn a_sweep_shows_members_nothing_from_outside() {
    let place = checkout(&[("drafts/own_blog_post.md", "The meeting moved to Tuesday at ten.\n")]);
    place.write("outside/secret.md", "The reader's own words about the meeting.\n");
    run(&place, &["init", "council", "."]).assert_code(0);
    let council = place.read("repo/council.yaml");
    let head = council.split("watch:").next().unwrap_or_default().to_owned();
    let watching = |folder: &str| format!("{head}watch: {{paths: [{folder}]}}\n");
    place.write("repo/council.yaml", watching("../outside"));
    refused(&place, &["sweep", "--since", "all", "--dry-run"], "council.yaml");
    place.write("repo/council.yaml", watching("drafts"));
    symlink("../../outside/secret.md", place.path("repo/drafts/link_blog_post.md")).expect("a link");
    let swept = run(&place, &["sweep", "--since", "all", "--dry-run"]);
    assert!(
        swept.stdout.contains("own_blog_post.md") && !swept.stdout.contains("link_blog_post.md"),
        "{}",
        swept.stdout
    );
    swept.assert_stderr_contains("leads out of the watched folder");
}

/// A foreign ledger, whose one run died before its line was logged, and names another user's file as its log.
fn with_a_run_that_logs_to(log: &str) -> TestDir {
    let place = checkout(&[
        ("quorate.toml", ""),
        ("council.yaml", &format!("{}logging: {{log_path: {log}}}\n", super::support::council::COUNCIL)),
    ]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    run(&place, &["review", "draft.md", "--executor", "rubric", "--trust"]);
    std::fs::remove_file(place.path("repo/council.yaml")).expect("it was there");
    for made in ["keys", "live"] {
        std::fs::remove_dir_all(place.path(&format!("repo/.quorate/{made}"))).ok();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let url = format!("sqlite://{}", place.path("repo/.quorate/ledger.db").display());
        let mut ledger = SqliteConnection::connect(&url).await.expect("a ledger");
        let triggers = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'trigger'");
        for row in triggers.fetch_all(&mut ledger).await.expect("triggers") {
            let drop = format!("DROP TRIGGER {}", row.get::<String, _>(0));
            sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut ledger).await.expect("dropped");
        }
        let undone = "DELETE FROM tile; DELETE FROM checkpoint; DELETE FROM record WHERE kind IN ('checkpoint', 'run.ended'); UPDATE run SET ended = 0";
        sqlx::raw_sql(undone).execute(&mut ledger).await.expect("undone");
    });
    place
}

#[test]
fn a_ledger_of_a_checkout_has_no_file_elsewhere_appended_to() {
    let log = "../outside/rc";
    for arguments in [
        &["runs"][..],
        &["audit"],
        &["doctor"],
        &["ledger", "stats"],
        &["overlays", "list"],
        &["review", "draft.md"],
    ] {
        let place = with_a_run_that_logs_to(log);
        place.write("outside/rc", "the reader's own\n");
        run(&place, arguments);
        assert_eq!(place.read("outside/rc"), "the reader's own\n", "{arguments:?}");
        // Nor is one made.
        let place = with_a_run_that_logs_to("../outside/new");
        std::fs::remove_file(place.path("outside/new")).expect("the attacker's");
        run(&place, arguments);
        assert_eq!(outside(&place), [""; 0], "{arguments:?}");
    }
    // Where that log is configured, and trusted, the line is restored.
    let place = with_a_run_that_logs_to(log);
    place.write("outside/rc", "");
    let council = format!("{}logging: {{log_path: {log}}}\n", super::support::council::COUNCIL);
    place.write("repo/council.yaml", council);
    run(&place, &["runs", "--trust"]).assert_code(0);
    assert!(place.read("outside/rc").contains("draft.md"));
}

#[test]
fn looking_at_a_runtime_outside_of_a_checkout_needs_trust_too() {
    for (conversation, state) in [("../outside/talk.md", "st"), ("talk.md", "../outside")] {
        let place = with_swarm("a.json", conversation, state);
        place.write("outside/settings.json", "{\"own\": 1}");
        for arguments in [
            &["log", "swarm.yaml"][..],
            &["state", "swarm.yaml", "settings"],
            &["mcp", "--manifest", "swarm.yaml"],
            &["mcp", "--read-only", "--manifest", "swarm.yaml"],
        ] {
            refused(&place, arguments, "swarm.yaml");
        }
    }
}

#[test]
fn a_link_is_no_state_and_no_lock() {
    let place = with_swarm("a.json", "talk.md", "st");
    place.write("outside/settings.json", "{\"own\": \"secret\"}");
    std::fs::create_dir(place.path("repo/st")).expect("a directory");
    symlink("../../outside/settings.json", place.path("repo/st/ada.json")).expect("a link");
    let said = run(&place, &["state", "swarm.yaml", "ada"]).assert_code(5);
    assert!(!said.stdout.contains("secret") && said.stderr.contains("it is a link"), "{}", said.stderr);
    run(&place, &SAY);
    assert!(!place.read("repo/talk.md").contains("secret"));
    std::fs::remove_file(place.path("repo/talk.md.lock")).expect("a lock");
    symlink("../outside/made", place.path("repo/talk.md.lock")).expect("a link");
    run(&place, &["say", "swarm.yaml", "hello"]).assert_code(5).assert_stderr_contains("it is a link");
    assert_eq!(outside(&place).len(), 2);
}

#[test]
fn no_link_in_the_ledgers_directory_leads_out() {
    for link in
        [".gitignore", "keys/.gitignore", "keys/checkpoints", "keys/signing.ed25519", "council_log.jsonl"]
    {
        let place = checkout(&[("quorate.toml", "")]);
        std::fs::create_dir(place.path("outside")).expect("a directory");
        std::fs::create_dir_all(place.path("repo/.quorate/keys")).expect("a directory");
        symlink(place.path("outside/made"), place.path(&format!("repo/.quorate/{link}"))).expect("a link");
        run(&place, &["review", "draft.md"])
            .assert_code(5)
            .assert_stderr_contains("a link leads out of the workspace");
        // A person who names the ledger has not seen what is in its directory.
        run(&place, &["review", "draft.md", "--ledger", ".quorate/ledger.db"]).assert_code(5);
        assert_eq!(outside(&place), [""; 0], "{link}");
    }
}

#[test]
fn another_key_of_the_readers_signs_nothing_of_a_checkout() {
    let own = TestDir::with("own/draft.md", "The meeting moved to Tuesday at ten.\n");
    own.write("own/quorate.toml", "");
    own.run_in("own", &["keys", "init"]).assert_code(0);
    let key = own.path("own/.quorate/keys/signing.ed25519");
    let settings = format!("[keys]\nsign = \"required\"\nsigning = {{file = \"{}\"}}\n", key.display());
    let place = checkout(&[("quorate.toml", &settings), ("keyring.toml", &own.read("own/keyring.toml"))]);
    run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("sign with the key");
    run(&place, &["review", "draft.md", "--trust"]).assert_code(1);
}

#[test]
fn init_and_fmt_write_nothing_by_a_link() {
    let place = checkout(&[("quorate.toml", ""), ("p/note.txt", "")]);
    std::fs::create_dir(place.path("outside")).expect("a directory");
    place.write("outside/PERSONA.md", "---\nslug:   ada\n---\nYou read.\n");
    for link in ["personas", "editorial", "drafts"] {
        symlink("../outside", place.path(&format!("repo/{link}"))).expect("a link");
    }
    symlink("../../outside/PERSONA.md", place.path("repo/p/PERSONA.md")).expect("a link");
    for arguments in [&["init", "assembly", "--mode", "voting", "--name", "board"][..], &["init", "council"]]
    {
        run(&place, arguments).assert_code(5).assert_stderr_contains("path_outside");
    }
    run(&place, &["fmt", "p"]);
    assert_eq!(place.read("outside/PERSONA.md"), "---\nslug:   ada\n---\nYou read.\n");
    assert_eq!(outside(&place), ["PERSONA.md"]);
}

#[test]
fn a_configuration_that_is_a_link_out_of_the_workspace_is_not_read() {
    let secret = "PRIVATE-LINE\nmore: [x\n";
    for name in ["quorate.toml", "council.yaml"] {
        let place = checkout(&[]);
        place.write("outside/secret.txt", secret);
        for target in ["../outside/secret.txt".into(), place.path("outside/secret.txt")] {
            let link = place.path(&format!("repo/{name}"));
            symlink(&target, &link).expect("a link");
            for command in [
                &["review", "draft.md"][..],
                &["doctor"],
                &["sweep"],
                &["runs"],
                &["check", name],
                &["check", "."],
                &["trust", "--show"],
                &["keys", "list"],
                &["resolve", "."],
                &["weave", "ada"],
            ] {
                let ran = run(&place, command);
                let said = format!("{}{}", ran.stdout, ran.stderr);
                assert!(!said.contains("PRIVATE"), "{command:?} {said}");
                let looks = matches!(command[0], "resolve" | "weave" | "trust");
                assert!(looks || said.contains("leads out of its workspace"), "{command:?} {said}");
                assert!(ran.code >= 4 || command[0] == "trust", "{command:?} {} {said}", ran.code);
            }
            std::fs::remove_file(link).expect("the link");
        }
    }
    // A link to another file of the workspace is followed, and so is one that a person names.
    let place = checkout(&[("conf/council.yaml", "version: 3\n")]);
    symlink("conf/council.yaml", place.path("repo/council.yaml")).expect("a link");
    run(&place, &["review", "draft.md"]).assert_code(5).assert_stderr_contains("council_invalid");
    let place = checkout(&[]);
    place.write("outside/council.yaml", "version: 3\n");
    symlink("../outside/council.yaml", place.path("repo/mine.yaml")).expect("a link");
    run(&place, &["review", "draft.md", "--config", "mine.yaml"])
        .assert_code(5)
        .assert_stderr_contains("council_invalid");
}

#[test]
fn a_keyring_that_is_a_link_out_of_the_workspace_is_not_read() {
    let place = checkout(&[("quorate.toml", "")]);
    place.write("outside/keyring.toml", "PRIVATE-LINE\n");
    symlink("../outside/keyring.toml", place.path("repo/keyring.toml")).expect("a link");
    let ran = run(&place, &["keys", "list"]).assert_code(5);
    ran.assert_stderr_contains("leads out of its workspace");
    assert!(!ran.stderr.contains("PRIVATE"), "{}", ran.stderr);
}
