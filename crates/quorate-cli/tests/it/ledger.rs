//! The ledger and the log through the real binary: showing, replaying, tampering, corruption, many processes at once,
//! overrides, and what a crash between outcome and log line leaves.

use std::path::Path;
use std::time::Duration;

use crate::support;
use crate::support::records;
use quorate_kernel::canonical::object as canonical;
use quorate_ledger::record::leaf;
use records::{block_on, execute_sql, of_kind};
use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};
use support::council::{COUNCIL, all_ship, all_ship_except};
use support::{TestDir, finish, has_program, wait_until};

const SOON: Duration = Duration::from_secs(20);

fn reviewed() -> (TestDir, String) {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md", "--type", "memo"]).assert_code(0);
    let run = place.only_run();
    (place, run)
}

#[test]
fn a_run_is_shown_by_any_unique_beginning_of_its_id() {
    let (place, run) = reviewed();
    for prefix in [&run[..], &run[..2], &run.to_uppercase()] {
        let shown = place.run(&["show", prefix, "--format", "json"]).assert_code(0).json();
        assert_eq!((&shown["run"], &shown["verdict"]), (&json!(run), &json!("SHIP")));
    }
    let review = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    let shown =
        place.run(&["show", review["run"].as_str().unwrap(), "--format", "json"]).assert_code(0).json();
    assert_eq!(shown, review, "a report is made from the records alone");
    place.answers(&all_ship_except(json!({"adjudicate": {"verdict": "HOLD", "reasoning": "No."}})));
    let held = place.run(&["review", "draft.md", "--format", "json"]).assert_code(2).json();
    place.run(&["show", held["run"].as_str().unwrap()]).assert_code(0);
}

#[test]
fn a_replay_needs_nothing_but_the_ledger() {
    // X11
    let (place, run) = reviewed();
    for file in ["answers.json", "quorate.toml", "draft.md"] {
        std::fs::remove_file(place.path(file)).unwrap();
    }
    let replay = place.run(&["replay", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!((&replay["identical"], &replay["recorded"]), (&json!(true), &json!("SHIP")));
    assert!(place.run(&["replay", &run]).assert_code(0).stdout.starts_with("identical"));
}

/// Runs statements on a ledger.
fn with_sqlite<T>(ledger: &Path, work: impl AsyncFnOnce(&mut SqliteConnection) -> T) -> T {
    block_on(async {
        let url = format!("sqlite://{}", ledger.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let done = work(&mut connection).await;
        connection.close().await.expect("it closes");
        done
    })
}

/// Changes the data of a run's records and, where asked to, all hashes with them.
fn tamper(ledger: &Path, hashes: bool, change: impl Fn(&str, &mut Value)) {
    with_sqlite(ledger, async |connection| {
        let rows = sqlx::query("SELECT n, kind, head, data FROM record WHERE run <> 'ledger' ORDER BY n")
            .fetch_all(&mut *connection)
            .await
            .expect("the records");
        let mut prev = Value::Null;
        for row in rows {
            let (n, kind, head, data): (i64, String, String, String) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            let mut head: Value = serde_json::from_str(&head).expect("a head");
            let mut data: Value = serde_json::from_str(&data).expect("data");
            change(&kind, &mut data);
            let data = canonical(data.as_object().expect("an object"));
            if hashes {
                head["data_sha256"] = json!(quorate_kernel::entropy::sha256_hex(data.as_bytes()));
                head["prev"] = prev;
            }
            let head = canonical(head.as_object().expect("an object"));
            prev = json!(leaf(&head));
            let update = sqlx::query("UPDATE record SET head = ?, data = ? WHERE n = ? AND run <> 'ledger'")
                .bind(head)
                .bind(data)
                .bind(n);
            update.execute(&mut *connection).await.expect("it is written");
        }
    });
}

/// Takes away everything that a checkpoint left: then the chain alone covers the records.
fn unseal(place: &TestDir) {
    let undone = "DELETE FROM tile; DELETE FROM checkpoint; DELETE FROM record WHERE run = 'ledger'";
    execute_sql(&place.path(".quorate/ledger.db"), undone);
}

#[test]
fn a_changed_record_is_found() {
    // D2, X11
    let to_hold = |kind: &str, data: &mut Value| {
        if kind == "outcome" {
            data["verdict"] = json!("HOLD");
        }
    };
    let to_block = |kind: &str, data: &mut Value| {
        if kind == "consultation" && data["step"] == "r2" {
            data["answer"]["would_block"] = json!(true);
        }
    };
    let (place, run) = reviewed();
    tamper(&place.path(".quorate/ledger.db"), false, to_hold);
    // D13: a view exits with 1; resume exits with 5, since 1 is its code for REVISE.
    for (command, code) in [("show", 1), ("replay", 5), ("resume", 5)] {
        place.run(&[command, &run]).assert_code(code).assert_stderr_contains("quorate:run_altered");
    }
    // With all hashes made to fit, the verdict does not follow from the answers any more.
    let (place, run) = reviewed();
    tamper(&place.path(".quorate/ledger.db"), true, to_hold);
    place.run(&["show", &run]).assert_code(1).assert_stderr_contains("quorate:run_altered");
    unseal(&place);
    execute_sql(&place.path(".quorate/ledger.db"), "UPDATE run SET verdict = 'HOLD'");
    assert_eq!(place.run(&["show", &run, "--format", "json"]).assert_code(0).json()["verdict"], "HOLD");
    let replay = place.run(&["replay", &run, "--format", "json"]).assert_code(1).json();
    assert_eq!((&replay["recorded"], &replay["replayed"]), (&json!("HOLD"), &json!("SHIP")));
    let (place, run) = reviewed();
    tamper(&place.path(".quorate/ledger.db"), true, to_block);
    unseal(&place);
    assert!(place.run(&["replay", &run]).assert_code(1).stdout.contains("different"));
}

#[test]
fn one_corrupt_run_costs_the_others_nothing() {
    let (place, run) = reviewed();
    tamper(&place.path(".quorate/ledger.db"), false, |kind, data| {
        if kind == "run.opened" {
            data["subject"] = json!("another.md");
        }
    });
    place.run(&["show", &run]).assert_code(1).assert_stderr_contains("quorate:run_altered");
    let next = place.run(&["review", "draft.md", "--format", "json"]).assert_code(0).json();
    place.run(&["replay", next["run"].as_str().unwrap()]).assert_code(0);
    let listed = place.run(&["runs", "--format", "json"]).assert_code(1).json();
    let verdicts = [&listed["runs"][0]["verdict"], &listed["runs"][1]["verdict"]];
    assert_eq!(verdicts, ["SHIP", "altered"], "the other run keeps its verdict");
}

#[test]
fn a_corrupt_ledger_is_set_aside_once_and_said() {
    let place = TestDir::scripted(&all_ship());
    let broken: Vec<u8> = (0..9000_u32).map(|n| (n % 251) as u8).collect();
    place.write(".quorate/ledger.db", &broken);
    let children: Vec<_> = (0..5).map(|_| place.start(&["review", "draft.md"])).collect();
    let said: Vec<_> = children.into_iter().map(|child| finish(child).assert_code(0).stderr).collect();
    assert_eq!(said.iter().filter(|said| said.contains("quorate:ledger_set_aside")).count(), 1, "{said:?}");
    assert_eq!((place.runs().len(), place.log().len()), (5, 5));
    let aside: Vec<_> =
        std::fs::read_dir(place.path(".quorate/aside")).unwrap().flatten().map(|one| one.path()).collect();
    assert_eq!(aside.len(), 1, "{aside:?}");
    assert_eq!(std::fs::read(&aside[0]).unwrap(), broken);
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let place = TestDir::scripted(&all_ship());
    place.write("places.sqlite", "");
    with_sqlite(&place.path("places.sqlite"), async |connection| {
        sqlx::raw_sql("CREATE TABLE places (url TEXT)").execute(connection).await.unwrap();
    });
    place
        .run(&["review", "draft.md", "--ledger", "places.sqlite"])
        .assert_code(5)
        .assert_stderr_contains("quorate:ledger_unavailable");
    let tables: i64 = with_sqlite(&place.path("places.sqlite"), async |connection| {
        sqlx::query("SELECT COUNT(*) FROM sqlite_master").fetch_one(connection).await.unwrap().get(0)
    });
    assert_eq!(tables, 1);
}

#[test]
fn a_torn_line_is_set_aside_and_a_corrupt_one_is_passed_over() {
    // D6
    let (place, _) = reviewed();
    let log = place.read(".quorate/council_log.jsonl");
    place.write(".quorate/council_log.jsonl", log.trim_end());
    let cut = place.run(&["audit"]).assert_code(0);
    cut.assert_stderr_contains("skipped the last line of .quorate/council_log.jsonl: it has no line end");
    let torn = &log[..log.len() / 2];
    place.write(".quorate/council_log.jsonl", format!("{log}not json at all\n\u{0}\u{1}\n\n{torn}"));
    place
        .run(&["review", "draft.md"])
        .assert_code(0)
        .assert_stderr_contains("quorate:log_torn")
        .assert_stderr_contains("quorate:log_corrupt");
    let text = place.read(".quorate/council_log.jsonl");
    assert!(text.starts_with(&format!("{log}not json at all\n")), "existing lines are unchanged");
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["verdict"], "SHIP", "nothing is glued to it");
    let aside = std::fs::read_dir(place.path(".quorate/aside")).unwrap().flatten().next().unwrap().path();
    assert_eq!(std::fs::read_to_string(aside).unwrap(), torn);
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!((&audit["reviews"], &audit["corrupt_lines"]), (&json!(2), &json!(2)));
}

#[test]
fn a_log_that_is_deleted_or_rotated_starts_again() {
    let (place, _) = reviewed();
    let consulted =
        || place.review(&["draft.md", "--type", "memo"])["prior_verdicts_consulted"].as_u64().unwrap();
    assert_eq!(consulted(), 1);
    std::fs::rename(place.path(".quorate/council_log.jsonl"), place.path(".quorate/council_log.jsonl.1"))
        .unwrap();
    assert_eq!(consulted(), 0);
    assert_eq!((consulted(), place.log().len()), (1, 2));
    std::fs::remove_file(place.path(".quorate/council_log.jsonl")).unwrap();
    place.run(&["runs"]).assert_code(0);
    assert!(place.log().is_empty(), "ended runs are not logged again");
    // Another log of more bytes in its place
    let line = json!({"artifact_type": "memo", "verdict": "HOLD", "notes": "x".repeat(50_000)});
    place.write(".quorate/council_log.jsonl", format!("{line}\n{line}\n{line}\n"));
    assert_eq!(consulted(), 3);
    assert_eq!(
        place.run(&["audit", "--format", "json"]).assert_code(0).json()["verdicts"]["memo"]["HOLD"],
        3
    );
}

#[test]
fn six_reviews_at_once_on_one_new_ledger_all_complete() {
    for _ in 0..2 {
        let place = TestDir::scripted_slowly(&all_ship(), "delay = \"5ms\"");
        let names: Vec<String> = (0..6).map(|number| format!("{number}.md")).collect();
        for name in &names {
            place.write(name, format!("Text {name}.\n"));
        }
        let children: Vec<_> =
            names.iter().map(|name| place.start(&["review", name, "--format", "json"])).collect();
        let mut runs: Vec<String> = children
            .into_iter()
            .map(|child| finish(child).assert_code(0).json()["run"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(place.runs().len(), 6);
        let mut logged: Vec<String> =
            place.log().iter().map(|line| line["run"].as_str().unwrap().to_owned()).collect();
        runs.sort();
        logged.sort();
        assert_eq!(runs, logged, "C10: a line each");
        for run in &runs {
            place.run(&["replay", run]).assert_code(0);
        }
    }
}

#[test]
fn a_run_that_is_being_driven_cannot_be_resumed() {
    let place = TestDir::scripted(&all_ship_except(
        json!({"r2/skeptic": {"$delay_ms": 60_000, "answer": {"would_block": false}}}),
    ));
    let mut child = place.start(&["review", "draft.md"]);
    let ledger = place.path(".quorate/ledger.db");
    wait_until(SOON, "an open run", || records::runs(&ledger).len() == 1);
    place.run(&["resume", &place.only_run()]).assert_code(5).assert_stderr_contains("quorate:run_moved");
    child.kill().unwrap();
    child.wait().unwrap();
    place.answers(&all_ship());
    place.run(&["resume", &place.only_run()]).assert_code(0);
}

#[test]
fn who_decides_is_said_or_known_to_git() {
    let (place, run) = reviewed();
    let decides = |more: &[&str]| {
        place.run(&[&["override", &run, "--verdict", "hold", "--reason", "no"], more].concat())
    };
    let by =
        || place.run(&["show", &run, "--format", "json"]).assert_code(0).json()["override"]["by"].clone();
    for by in [&[][..], &["--by", " "], &["--by", "Ada\u{200b}"], &["--by", "Ada\nHOLD"]] {
        decides(by).assert_code(64).assert_stderr_contains("quorate:usage").assert_stderr_contains("--by");
    }
    assert_eq!(by(), Value::Null, "nothing was recorded");
    decides(&["--by", "Ada Lovelace"]).assert_code(0);
    assert_eq!(by(), "Ada Lovelace");
    if !has_program("git") {
        return;
    }
    place.write(".gitconfig", "[include]\n\tpath = me\n");
    place.write("me", "[user]\n\tname = Ada\n\temail = ada@example.org\n");
    decides(&[]).assert_code(0);
    assert_eq!(by(), "Ada <ada@example.org>");
    // A checkout's configuration is untrusted text: no command of it runs, no file that it names is read, and what
    // is not seen in it is taken out.
    let evil = "[core]\n\tfsmonitor = touch ran\n\tpager = touch ran\n\thooksPath = .\n[alias]\n\tconfig = !touch ran\n\
        [include]\n\tpath = ../evil\n[user]\n\tname = \"Grace\u{202e}\\n <Hopper>\u{e0041}\"\n";
    place.write(".git/config", evil);
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(place.path(&format!(".git/{folder}"))).unwrap();
    }
    place.write("evil", "[user]\n\temail = ceo@example.org\n");
    decides(&[]).assert_code(0);
    assert_eq!(by(), "Grace Hopper <ada@example.org>");
    assert!(!place.path("ran").exists(), "no command ran");
    // Where Git cannot read the checkout's, a person's own counts.
    std::fs::remove_file(place.path(".git/config")).unwrap();
    std::os::unix::net::UnixListener::bind(place.path(".git/config")).unwrap();
    decides(&[]).assert_code(0);
    assert_eq!(by(), "Ada <ada@example.org>");
}

#[test]
fn an_override_stands_beside_the_verdict() {
    // C10
    let (place, run) = reviewed();
    let shown = place
        .run(&["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "legal says no"])
        .assert_code(0);
    assert!(shown.stdout.contains("\nSHIP  ") && shown.stdout.contains("legal says no"), "{}", shown.stdout);
    let report = place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(report["verdict"], "SHIP");
    assert_eq!(report["override"], json!({"verdict": "HOLD", "reason": "legal says no", "by": "ada"}));
    place
        .run(&["override", &run, "--by", "ada", "--verdict", "SHIP", "--reason", "legal says yes"])
        .assert_code(0);
    let log = place.log();
    let events: Vec<_> = log.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["verdict", "override", "override"], "a line for each decision");
    assert_eq!(
        (&log[1]["verdict"], &log[1]["council_verdict"], &log[1]["reason"]),
        (&json!("HOLD"), &json!("SHIP"), &json!("legal says no"))
    );
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    assert_eq!(
        (&audit["reviews"], &audit["overrides"], &audit["override_rate"]),
        (&json!(1), &json!(1), &json!(1.0)),
        "a review that is overridden twice counts once"
    );
    assert_eq!(place.runs()[0]["override"], "SHIP");
    assert_eq!(
        place.review(&["draft.md", "--type", "memo"])["prior_verdicts_consulted"],
        1,
        "an override does not count as a prior"
    );
    place.run(&["replay", &run]).assert_code(0);
}

#[test]
fn a_resume_is_refused_when_something_else_would_be_asked() {
    // X7: it names the component
    let down = all_ship_except(json!({"adjudicate": {"$fail": "down"}}));
    type Change = fn(&TestDir);
    let changes: [(&str, Change, &[&str]); 6] = [
        ("input", |place| place.write("draft.md", "Another text.\n"), &[]),
        ("prompts", |place| place.write("skeptic.md", "# Skeptic\n\nBe kind.\n"), &[]),
        ("setup", |_| {}, &["--policy", "strict"]),
        (
            "setup",
            |place| {
                place.write("council.yaml", place.read("council.yaml") + "protocol: {cross_read: findings}\n")
            },
            &[],
        ),
        ("executor", |_| {}, &["--executor", "rubric"]),
        (
            "redaction",
            |place| {
                place.write("council.yaml", place.read("council.yaml") + "logging: {redact_patterns: [x]}\n")
            },
            &[],
        ),
    ];
    for (component, change, arguments) in changes {
        let place = TestDir::scripted(&down);
        place.write("skeptic.md", "# Skeptic\n\nDoubt.\n");
        place.write("council.yaml", COUNCIL.replace("builtin:skeptic", "skeptic.md"));
        place.run(&["review", "draft.md"]).assert_code(3);
        let run = place.only_run();
        change(&place);
        let resume = [&["resume", &run], arguments].concat();
        place
            .run(&resume)
            .assert_code(5)
            .assert_stderr_contains("quorate:fingerprint_changed")
            .assert_stderr_contains(component);
    }
}

#[test]
fn a_run_is_resumed_from_wherever_it_was_started() {
    let place = TestDir::new();
    let inner = TestDir::scripted(&all_ship_except(json!({"adjudicate": {"$fail": "down"}})));
    std::fs::rename(inner.root(), place.path("project")).unwrap();
    place.write("project/council.yaml", COUNCIL);
    let run = place.run(&["review", "project/draft.md", "--format", "json"]).assert_code(3).json()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place.write("project/answers.json", all_ship().to_string());
    place.run(&["resume", &run, "--ledger", "project/.quorate/ledger.db"]).assert_code(0);
}

#[test]
fn a_crash_between_outcome_and_line_leaves_the_line_to_the_next_start() {
    // D6, C10
    let place = TestDir::scripted(&all_ship());
    place.write(".quorate/council_log.jsonl", "");
    let log = std::fs::File::open(place.path(".quorate/council_log.jsonl")).unwrap();
    log.lock().unwrap();
    let mut child = place.start(&["review", "draft.md"]);
    let ledger = place.path(".quorate/ledger.db");
    wait_until(SOON, "an outcome", || records::runs(&ledger).iter().any(|(_, verdict)| verdict.is_some()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.log().is_empty());
    log.unlock().unwrap();
    let starts: Vec<_> = (0..3).map(|_| place.start(&["runs"])).collect();
    for start in starts {
        finish(start).assert_code(0);
    }
    assert_eq!(place.log().len(), 1);
    let run = place.only_run();
    let ended = of_kind(&records::records(&ledger, &run), "run.ended");
    assert_eq!((place.log().len(), ended.len()), (1, 1));
    place.run(&["resume", &run]).assert_code(5).assert_stderr_contains("quorate:run_decided");
    place.run(&["replay", &run]).assert_code(0);
}
