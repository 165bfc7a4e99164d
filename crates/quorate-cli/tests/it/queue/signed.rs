//! Tasks that someone with the database exchanges (D14): where keys are configured a worker takes only what a queuer signed,
//! and it never judges another text than the artifact.

use serde_json::{Value, json};

use super::{Machine, database, wait};
use crate::support::assembly;
use crate::support::council::all_ship;

/// A machine that has a key, and a keyring with it, and has queued so many drafts.
fn signing(database: &super::Database, drafts: usize) -> Machine<'_> {
    let machine = Machine::with_drafts(database, drafts);
    machine.run(&["keys", "init"]).assert_code(0);
    machine.enqueue(&[]);
    machine
}

/// How each task of a worker ended: subject to end and reason.
fn ends(worker: &Machine<'_>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let end = |end: &Value| (text(&end["subject"]), format!("{} {}", text(&end["end"]), text(&end["why"])));
    worker.work(&[]).iter().map(end).collect()
}

fn set_body(draft: usize, path: &str, value: &str) -> String {
    format!(
        "UPDATE task SET body = jsonb_set(CAST(body AS JSONB), '{{{path}}}', {value}) WHERE subject = 'drafts/{draft:02}.md'"
    )
}

#[test]
fn a_signed_task_is_held_as_it_was_queued_or_not_at_all() {
    // D14
    let Some(database) = database() else { return };
    let machine = signing(&database, 13);
    let of_other = |path: &str| {
        format!("(SELECT CAST(body AS JSONB) -> '{path}' FROM task WHERE subject = 'drafts/00.md')")
    };
    let bundle = "INSERT INTO task_text SELECT repeat('a', 64), text FROM task_text LIMIT 1";
    wait(database.run(bundle));
    let of_draft = |draft: usize, change: &str| {
        format!("UPDATE task SET {change} WHERE subject = 'drafts/{draft:02}.md'")
    };
    let changes = [
        set_body(1, "text", &of_other("text")),
        format!("{}; {}", set_body(2, "text", &of_other("text")), set_body(2, "redactions", "'1'")),
        set_body(3, "bundle", &format!("'\"{}\"'", "a".repeat(64))),
        set_body(4, "priors", &of_other("text")),
        set_body(5, "artifact_type", "'\"memo\"'"),
        set_body(6, "signature", &of_other("signature")),
        of_draft(7, "body = CAST(CAST(body AS JSONB) - 'signature' AS TEXT)"),
        of_draft(8, "body = (SELECT body FROM task WHERE subject = 'drafts/00.md')"),
        of_draft(9, "tenant = 'other'"),
        of_draft(10, "run = 'r0000000000000'"),
        set_body(11, "artifact_sha256", &of_other("artifact_sha256")),
        of_draft(12, "subject = 'drafts/good.md'"),
    ];
    for change in changes {
        wait(database.run(&change));
    }
    wait(database.run("INSERT INTO tenant (name, weight, paused, served) VALUES ('other', 1, 0, 0)"));
    let ends = ends(&machine);
    assert_eq!(ends.len(), 13, "{ends:?}");
    for (subject, end) in ends {
        match subject.as_str() {
            "drafts/00.md" => assert_eq!(end, "done "),
            _ => assert!(end.starts_with("dead quorate:task_unsigned"), "{subject}: {end}"),
        }
    }
    assert_eq!(wait(database.count("run")), 1);
    machine.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn only_a_queuer_whose_key_counts_here_gives_a_worker_work() {
    // D14
    let Some(database) = database() else { return };
    // Nobody signed this, and a worker with a keyring does not take it.
    let bare = Machine::with_drafts(&database, 1);
    bare.enqueue(&[]);
    let worker = Machine::new(&database, &all_ship(), "");
    worker.run(&["keys", "init"]).assert_code(0);
    let refused = ends(&worker);
    assert!(refused[0].1.contains("quorate:task_unsigned"), "{refused:?}");
    assert!(refused[0].1.contains("it is unsigned"), "{refused:?}");
    // Another key than those of its keyring.
    let stranger = Machine::with_drafts(&database, 1);
    stranger.run(&["keys", "init"]).assert_code(0);
    let sweep = ["sweep", "--since", "all", "--enqueue", "--force"];
    stranger.run(&sweep).assert_code(0);
    let refused = ends(&worker);
    assert!(refused[0].1.contains("is not in the keyring"), "{refused:?}");
    // A key of the keyring, until it is revoked. The task that it signed before is not taken either.
    worker.place.write("keyring.toml", stranger.place.read("keyring.toml"));
    stranger.run(&sweep).assert_code(0);
    let ended = ends(&worker);
    assert_eq!(ended[0].1, "done ", "{ended:?}");
    stranger.run(&sweep).assert_code(0);
    let key = stranger.run(&["keys", "export"]).assert_code(0).stdout;
    stranger.run(&["keys", "revoke", key.trim()]).assert_code(0);
    worker.place.write("keyring.toml", stranger.place.read("keyring.toml"));
    let refused = ends(&worker);
    assert!(refused[0].1.contains("revoked"), "{refused:?}");
    // A workspace with a keyring and without a key that may sign queues nothing.
    let queued = wait(database.count("task"));
    stranger.run(&sweep).assert_code(5).assert_stderr_contains("quorate:signing_key_missing");
    assert_eq!(wait(database.count("task")), queued);
}

#[test]
fn a_queued_convening_is_signed_too() {
    // D14
    let Some(database) = database() else { return };
    let answers = json!({"ada": assembly::vote_answer("yes"), "ben": assembly::vote_answer("yes")});
    let machine = Machine::new(&database, &answers, "");
    assembly::write(&machine.place, "voting", &[("ada", ""), ("ben", "")], "");
    for name in ["a", "b"] {
        machine.place.write(&format!("proposals/{name}.md"), format!("Resolution: open office {name}.\n"));
    }
    machine.run(&["keys", "init"]).assert_code(0);
    let convene = ["convene", "ASSEMBLY.md", "--proposal", "proposals", "--enqueue"];
    machine.run(&convene).assert_code(0);
    wait(database.run(
        "UPDATE task SET body = (SELECT body FROM task WHERE subject = 'proposals/a.md') WHERE subject = 'proposals/b.md'",
    ));
    for (subject, end) in ends(&machine) {
        match subject.as_str() {
            "proposals/a.md" => assert_eq!(end, "done "),
            _ => assert!(end.starts_with("dead quorate:task_unsigned"), "{subject}: {end}"),
        }
    }
}

#[test]
fn without_a_key_another_text_than_the_artifact_is_not_judged() {
    // D14
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 9);
    machine.enqueue(&[]);
    let of_other = "(SELECT CAST(body AS JSONB) -> 'text' FROM task WHERE subject = 'drafts/00.md')";
    wait(database.run(
        "INSERT INTO task_text SELECT encode(sha256(convert_to(changed, 'UTF8')), 'hex'), changed FROM \
         (SELECT replace(text, '\"rounds\":\"two\"', '\"rounds\":\"one\"') AS changed FROM task_text \
         WHERE text LIKE '%\"rounds\":\"two\"%') AS one",
    ));
    let bundle = "(SELECT to_jsonb(sha256) FROM task_text WHERE text LIKE '%\"rounds\":\"one\"%')";
    for change in [
        set_body(1, "text", of_other),
        set_body(2, "artifact_sha256", "'\"abc\"'"),
        set_body(3, "bundle", "'\"../../etc/passwd\"'"),
        set_body(4, "artifact_type", &format!("'\"{}\"'", "t".repeat(201))),
        set_body(5, "artifact_type", &format!("'\"{}\"'", "t".repeat(90_000))),
        set_body(6, "bundle", bundle),
        format!("UPDATE task SET subject = repeat('s', 5000) WHERE subject = 'drafts/{:02}.md'", 7),
    ] {
        wait(database.run(&change));
    }
    let ends = ends(&machine);
    assert_eq!(ends.len(), 9, "{ends:?}");
    for (subject, end) in ends {
        let expected = match subject.as_str() {
            "drafts/00.md" | "drafts/08.md" => "done ",
            "drafts/01.md" => {
                "dead quorate:input_not_artifact: cannot judge drafts/01.md: the queued text is not the artifact"
            }
            "drafts/02.md" => "dead quorate:queue_invalid: cannot read the task: `abc` is not a SHA-256",
            "drafts/03.md" => {
                "dead quorate:queue_invalid: cannot read the task: `../../etc/passwd` is not a SHA-256"
            }
            "drafts/04.md" | "drafts/05.md" => {
                "dead quorate:queue_invalid: cannot read the task: its type has more than 200 characters"
            }
            "drafts/06.md" => "dead quorate:fingerprint_changed",
            _ => "dead quorate:artifact_unreadable",
        };
        assert!(end.starts_with(expected), "{subject}: {end}");
    }
    assert_eq!(wait(database.count("run")), 2);
}

#[test]
fn a_ready_task_whose_run_has_ended_is_settled_once() {
    // D14: and one that names the run of another text does not get its verdict.
    let Some(database) = database() else { return };
    let machine = Machine::with_drafts(&database, 2);
    machine.enqueue(&[]);
    assert_eq!(ends(&machine).len(), 2);
    wait(database.run("UPDATE task SET state = 'ready' WHERE subject = 'drafts/00.md'"));
    wait(database.run(
        "UPDATE task SET state = 'ready', run = 'r' WHERE subject = 'drafts/01.md'; \
         UPDATE task SET run = (SELECT run FROM run WHERE subject = 'drafts/01.md') WHERE subject = 'drafts/00.md'",
    ));
    let (settled, other): (Vec<_>, Vec<_>) =
        ends(&machine).into_iter().partition(|(_, end)| end.starts_with("done"));
    assert!(settled.is_empty(), "{settled:?}");
    assert!(other.iter().any(|(_, end)| end.contains("was started for another task")), "{other:?}");

    wait(database.run(
        "UPDATE task SET state = 'ready', attempts = 1, run = (SELECT run FROM run WHERE subject = 'drafts/00.md') \
         WHERE subject = 'drafts/00.md'",
    ));
    assert_eq!(ends(&machine), [("drafts/00.md".to_owned(), "done ".to_owned())]);
    assert_eq!(wait(database.count("task WHERE state = 'done' AND attempts = 2")), 1);
    assert_eq!(wait(database.count("lease")), 0);
    assert!(ends(&machine).is_empty());
    // The queue names another run than the one that follows from the text.
    wait(database.run("UPDATE task SET run = 'r1' WHERE subject = 'drafts/00.md'; DELETE FROM run WHERE subject = 'drafts/00.md'"));
    let swept = machine.run(&["sweep", "--since", "all", "--enqueue"]).assert_code(5);
    swept.assert_stderr_contains("the queue names another run than");
}
