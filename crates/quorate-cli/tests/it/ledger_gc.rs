//! `quorate ledger gc`, `hold` and `release` through the real binary: what is erased is in no file any more, what is left
//! can be shown, and a kill at any time leaves all or nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::records;
use quorate_kernel::clock::{parse_rfc3339, rfc3339};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, Record};
use quorate_ledger::Store;
use quorate_protocol::Name;
use records::block_on;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use support::assembly::{self, vote_answer};
use support::council::all_ship_except;
use support::{TestDir, files};

const DAY_MS: i64 = 24 * 3_600_000;
const LEDGER: &str = ".quorate/ledger.db";
const LOG: &str = ".quorate/council_log.jsonl";

/// All kinds of records that a review or an assembly run has.
const KINDS: [Kind; 10] = [
    Kind::RunOpened,
    Kind::RunIntent,
    Kind::Attempt,
    Kind::Consultation,
    Kind::Rule,
    Kind::LockCheck,
    Kind::Violation,
    Kind::Outcome,
    Kind::Override,
    Kind::RunEnded,
];

/// Rewrites the ledger and the log as if everything in them had happened so many days earlier.
fn age(place: &TestDir, days: i64) {
    let (old, path) = (place.path("old.db"), place.path(LEDGER));
    std::fs::rename(&path, &old).expect("renamed");
    block_on(async {
        let from = Store::open(&old).await.expect("it opens").store;
        let to = Store::open(&path).await.expect("it opens").store;
        for run in from.runs(1000).await.expect("it answers").into_iter().rev() {
            let records = from.records(&run.run).await.expect("the chain holds");
            let mut bodies = Vec::new();
            for input in records[0].data.as_ref().expect("kept")["inputs"].as_array().expect("a list") {
                let sha256 = input["sha256"].as_str().expect("a hash").to_owned();
                let text = from.body(&sha256).await.expect("it answers").expect("kept");
                bodies.push(Body { sha256, text });
            }
            let entries = records.iter().map(|one| earlier(one, days)).collect();
            let append = Append { run: run.run, from: 0, entries, bodies, durability: Durability::Synced };
            to.append(append).await.expect("appended");
        }
        from.close().await;
        to.close().await;
    });
    std::fs::remove_file(old).expect("removed");
    if place.path(LOG).exists() {
        let lines = place
            .read(LOG)
            .lines()
            .map(|line| {
                let mut line: Value = serde_json::from_str(line).expect("a line of JSON");
                let at_ms = parse_rfc3339(line["ts"].as_str().expect("a time")).expect("a time");
                line["ts"] = rfc3339(at_ms - days * DAY_MS).into();
                format!("{line}\n")
            })
            .collect::<String>();
        place.write(LOG, &lines);
    }
}

fn earlier(record: &Record, days: i64) -> Entry {
    let kind = KINDS.into_iter().find(|kind| record.is(*kind)).expect("a kind of a run");
    Entry { kind, at_ms: record.at_ms - days * DAY_MS, data: record.data.clone().expect("kept") }
}

/// The files that have a text in them.
fn having(dir: &Path, text: &str) -> BTreeSet<String> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    files(dir).iter().filter(|(_, bytes)| has(bytes)).map(|(path, _)| name(path)).collect()
}

/// A reviewed draft whose answers are kept for 90 days, and an override of it.
fn reviewed() -> TestDir {
    let place = TestDir::scripted(&all_ship_except(json!({
        "r1/skeptic": {"would_block": false, "notes": "the word QUERCUS-7731 and no other"},
    })));
    place.write("quorate.toml", format!("ledger.retention = \"days:90\"\n{}", place.read("quorate.toml")));
    place.run(&["review", "draft.md"]).assert_code(0);
    place
}

#[test]
fn what_was_said_goes_and_what_it_came_to_stays() {
    // D4, X11
    let place = reviewed();
    let run = place.only_run();
    age(&place, 89);
    place
        .run(&["ledger", "gc"])
        .assert_code(0)
        .stdout
        .find("nothing to erase")
        .expect("its days are not over");
    age(&place, 1);

    let before = files(place.root());
    let would = place.run(&["ledger", "gc", "--dry-run", "--format", "json"]).assert_code(0).json();
    assert_eq!((&would["dry_run"], would["erased"].as_array().map(Vec::len)), (&json!(true), Some(1)));
    assert_eq!(files(place.root()), before, "a dry run changes nothing");
    assert!(having(place.root(), "QUERCUS-7731").contains("ledger.db"));

    let erased = place.run(&["ledger", "gc", "--format", "json"]).assert_code(0).json();
    assert_eq!(erased["erased"], would["erased"]);
    assert_eq!((&erased["erased"][0]["run"], &erased["erased"][0]["days"]), (&json!(run), &json!(90)));
    let texts = erased["erased"][0]["bodies"].as_array().expect("a list");
    assert_eq!(texts, &[json!(sha256_hex(place.read("draft.md").as_bytes()))]);
    // The log is a file of its own, and the script is what the members are made of.
    assert_eq!(
        having(place.root(), "QUERCUS-7731"),
        ["answers.json", "council_log.jsonl"].map(str::to_owned).into()
    );

    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown["verdict"], json!("SHIP"));
    let erased = json!({"kind": "erased", "message": "the record was erased", "retries": 0});
    assert_eq!(
        shown["deliberators"][0]["round1"],
        json!({"status": "erased", "answer": null, "failure": erased})
    );
    assert_eq!(shown["adjudicator"]["status"], json!("erased"));
    assert!(shown["notes"].to_string().contains("were erased"), "{shown}");
    for format in ["human", "markdown", "sarif", "github"] {
        place.run(&["show", &run, "--format", format]).assert_code(0);
    }
    place.run(&["replay", &run]).assert_code(5).assert_stderr_contains("quorate:body_evicted");
    place.run(&["resume", &run]).assert_code(5).assert_stderr_contains("quorate:run_decided");
    place
        .run(&["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "We know better now."])
        .assert_code(0);
    place.run(&["runs"]).assert_code(0);
    place.run(&["audit"]).assert_code(0);
    place.run(&["ledger", "stats"]).assert_code(0);
    place.run(&["ledger", "gc"]).assert_code(0).stdout.find("nothing to erase").expect("all is done");
    place.run(&["review", "draft.md"]).assert_code(0);
}

#[test]
fn a_run_on_hold_is_left_alone() {
    // D4
    let place = reviewed();
    let run = place.only_run();
    place.run(&["ledger", "hold", &run, "--reason", "claim 14"]).assert_code(0);
    place.run(&["ledger", "hold", "nobody"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
    place.run(&["ledger", "hold", &run, "--reason", " "]).assert_code(64);
    place.run(&["ledger", "hold"]).assert_code(64);
    let list = place.run(&["ledger", "hold", "--list", "--format", "json"]).assert_code(0).json();
    let hold = &list["holds"][0];
    assert_eq!(
        (&hold["run"], &hold["reason"], &hold["by"]),
        (&json!(run), &json!("claim 14"), &json!("ada"))
    );
    place.run(&["ledger", "hold", "--list"]).assert_code(0).stdout.find("claim 14").expect("it is listed");
    age(&place, 200);
    // Aging takes runs along, and not what is beside them.
    place.run(&["ledger", "hold", &run]).assert_code(0);
    let left = place.run(&["ledger", "gc", "--format", "json"]).assert_code(0).json();
    assert_eq!((&left["erased"], &left["held"]), (&json!([]), &json!([run])));
    place.run(&["replay", &run]).assert_code(0);
    let again = place.run(&["ledger", "hold", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(again, json!({"run": run, "held": true, "fresh": false}));
    let released = place.run(&["ledger", "release", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(released, json!({"run": run, "held": false, "fresh": true}));
    place.run(&["ledger", "gc"]).assert_code(0).stdout.find("erased: the bodies").expect("it is erased");
    place.run(&["replay", &run]).assert_code(5).assert_stderr_contains("quorate:body_evicted");
}

#[test]
fn what_others_recorded_is_not_kept_by_this_workspaces_days() {
    // D4
    let theirs = reviewed();
    age(&theirs, 200);
    // Another ledger was begun on purpose.
    theirs.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
    theirs.run(&["ledger", "accept-rollback", "--reason", "It was made older."]).assert_code(0);
    let export = theirs.run(&["ledger", "export"]).assert_code(0).stdout;
    let ours = TestDir::with("theirs.jsonl", &export);
    ours.write(
        "their.pub",
        theirs.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout,
    );
    ours.write("quorate.toml", "ledger.retention = \"days:90\"\n");
    ours.run(&["ledger", "import", "theirs.jsonl", "--key", "their.pub"]).assert_code(0);
    let left = ours.run(&["ledger", "gc", "--format", "json"]).assert_code(0).json();
    assert_eq!(left["erased"], json!([]));
    ours.run(&["replay", &ours.only_run()]).assert_code(0);
    let gone = theirs.run(&["ledger", "gc"]).assert_code(0);
    gone.stdout.find("has lines of these runs").expect("it is its own log");
}

/// An assembly that keeps no answers.
fn silent(answers: &Value) -> TestDir {
    let place = TestDir::new();
    let more = "audit:\n  consultations: {enabled: false}\nsynthesis:\n  rules:\n    \
                - {id: most, kind: majority}\n";
    assembly::write(&place, "voting", &[("ana", ""), ("bo", ""), ("cy", "")], more);
    assembly::answers(&place, answers);
    place
}

fn said(answer: &str) -> Value {
    json!({"vote": answer, "rationale": "the word QUERCUS-7731 and no other"})
}

#[test]
fn answers_that_are_not_kept_are_shown_once() {
    // D5
    let place = silent(&json!({"ana": said("yes"), "bo": vote_answer("yes"), "cy": vote_answer("no")}));
    let report = assembly::convene(&place, "--proposal", &[]).assert_code(0).json();
    assert_eq!(report["members"][0]["answer"]["rationale"], json!("the word QUERCUS-7731 and no other"));
    assert_eq!(having(&place.path(".quorate"), "QUERCUS-7731"), BTreeSet::new());
    assert_eq!(
        having(&place.path(".quorate"), "Resolution: open it."),
        ["ledger.db".to_owned()].into(),
        "D7: the decision names it"
    );
    let run = place.only_run();
    let records = records::records(&place.path(LEDGER), &run);
    assert!(records.last().expect("records").is(Kind::RunEnded));
    let shown = place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(
        (&shown["outcome"]["result"], &shown["members"][0]["status"]),
        (&json!("pass"), &json!("erased"))
    );
    assert_eq!(shown["decision"]["votes"][0]["vote"], json!("yes"), "a vote is part of the decision");
    for format in ["human", "markdown"] {
        place.run(&["show", &run, "--format", format]).assert_code(0);
    }
    place.run(&["replay", &run]).assert_code(5).assert_stderr_contains("quorate:body_evicted");
    place
        .run(&["ledger", "gc"])
        .assert_code(0)
        .stdout
        .find("nothing to erase")
        .expect("it was erased at its end");
    let records = records::records(&place.path(LEDGER), "ledger");
    let erased = records.iter().find(|one| one.is(Kind::Erased)).expect("it is recorded");
    assert_eq!(erased.data.as_ref().expect("kept")["reason"], json!("consultations_off"));
}

#[test]
fn a_run_without_answers_that_came_to_nothing_cannot_be_resumed() {
    // D5
    let place = silent(&json!({"ana": said("yes"), "bo": vote_answer("yes"), "cy": vote_answer("no")}));
    let report = assembly::convene(&place, "--proposal", &["--max-calls", "1"]).assert_code(3).json();
    assert!(report["notes"].to_string().contains("convene it again"), "{report}");
    assert_eq!(having(&place.path(".quorate"), "QUERCUS-7731"), BTreeSet::new());
    place.run(&["resume", &place.only_run()]).assert_code(5).assert_stderr_contains("quorate:body_evicted");
}

#[test]
fn a_dead_process_leaves_erasure_to_the_next_one() {
    // D5
    let place = silent(&json!({"ana": said("yes"), "bo": vote_answer("yes"), "cy": vote_answer("no")}));
    place.write("subject.md", "# A new region\n\nResolution: open it.\n");
    let convene = ["convene", "ASSEMBLY.md", "--proposal", "subject.md"];
    let started = Instant::now();
    place.run(&convene).assert_code(0);
    let took = u64::try_from(started.elapsed().as_millis()).expect("not so long");
    for ms in (0..16).map(|point| point * took / 15) {
        let mut child = place.start(&convene);
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        for run in place.runs().iter().filter(|run| run["verdict"].is_null()) {
            place.run(&["resume", run["run"].as_str().expect("an id")]).assert_code(0);
        }
        assert_eq!(having(&place.path(".quorate"), "QUERCUS-7731"), BTreeSet::new(), "after {ms} ms");
    }
    for run in place.runs() {
        let records = records::records(&place.path(LEDGER), run["run"].as_str().expect("an id"));
        assert!(records.last().expect("records").is(Kind::RunEnded));
    }
}

/// A ledger with runs of age.
fn many(path: &Path, runs: usize) {
    block_on(async {
        let store = Store::open(path).await.expect("it opens").store;
        for at in 0..runs {
            let entry = |kind, data| Entry { kind, at_ms: 0, data: quorate_kernel::attempts::object(data) };
            let artifact = format!("artifact {at} QUERCUS-7731 ").repeat(300);
            let sha256 = sha256_hex(artifact.as_bytes());
            let audit = json!({"retention_days": 1, "keep_consultations": true});
            let opened = json!({"protocol": "voting/1", "audit": audit, "inputs": [{"sha256": sha256}]});
            let mut entries = vec![entry(Kind::RunOpened, opened)];
            let said = |n| json!({"text": format!("answer {n} QUERCUS-7731 ").repeat(60)});
            entries.extend((0..6).map(|n| entry(Kind::Consultation, said(n))));
            entries.push(entry(Kind::Outcome, json!({"verdict": "pass"})));
            entries.push(entry(Kind::RunEnded, json!({"logged": false})));
            let bodies = vec![Body { sha256, text: artifact.into() }];
            let run: Name = format!("r{at}").into();
            let append = Append { run, from: 0, entries, bodies, durability: Durability::Written };
            store.append(append).await.expect("appended");
        }
        store.close().await;
    });
}

/// How many records of the runs have no body, and how many texts are left.
fn left(path: &Path, runs: usize) -> (usize, usize) {
    block_on(async {
        let store = Store::open(path).await.expect("it opens").store;
        let (mut without, mut texts) = (0, 0);
        for at in 0..runs {
            let records = store.records(&format!("r{at}").into()).await.expect("the chain holds");
            assert_eq!(records.len(), 9);
            without += records.iter().filter(|one| one.data.is_none()).count();
            let sha256 = records[0].data.as_ref().expect("kept")["inputs"][0]["sha256"].clone();
            let text = store.body(sha256.as_str().expect("a hash")).await.expect("it answers");
            texts += usize::from(text.is_some());
        }
        let sealed = store.seal(&[], 1, true, Durability::Written).await;
        sealed.expect("the records continue the tree");
        store.close().await;
        (without, texts)
    })
}

#[test]
fn a_kill_leaves_all_or_nothing() {
    // D4
    const RUNS: usize = 20;
    let aged = || {
        let place = TestDir::new();
        std::fs::create_dir(place.path(".quorate")).expect("made");
        many(&place.path(LEDGER), RUNS);
        place
    };
    let undisturbed = aged();
    let started = Instant::now();
    undisturbed.run(&["ledger", "gc"]).assert_code(0);
    let took = u64::try_from(started.elapsed().as_millis()).expect("not so long");
    let (mut whole, mut erased) = (0, 0);
    for ms in (0..12).map(|point| point * took / 11) {
        let place = aged();
        let mut child = place.start(&["ledger", "gc"]);
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        match left(&place.path(LEDGER), RUNS) {
            (0, RUNS) => whole += 1,
            (without, 0) => {
                assert_eq!(without, 6 * RUNS);
                erased += 1;
            }
            other => panic!("after {ms} ms: {other:?}"),
        }
        place.run(&["ledger", "gc"]).assert_code(0);
        assert_eq!(having(place.root(), "QUERCUS-7731"), BTreeSet::new(), "after {ms} ms");
        assert_eq!(left(&place.path(LEDGER), RUNS), (6 * RUNS, 0));
    }
    assert_eq!((whole > 0, whole + erased), (true, 12), "{whole} whole, {erased} erased");
}

#[test]
fn a_forged_erasure_erases_nothing() {
    // D11: with write access to the file and without its key, on hold or not.
    let place = reviewed();
    let run = place.only_run();
    place.run(&["ledger", "hold", &run, "--reason", "claim 14"]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
    let sealed = place.run(&["ledger", "checkpoint"]).assert_code(0).stdout;
    block_on(async {
        let mut ledger = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(place.path(LEDGER))
            .connect()
            .await
            .expect("it opens");
        let last: (i64, String) =
            sqlx::query_as("SELECT n, head FROM record WHERE run = 'ledger' ORDER BY n DESC LIMIT 1")
                .fetch_one(&mut ledger)
                .await
                .expect("a record");
        let data = json!({"run": run, "records": [[0, 99]], "bodies": [], "reason": "retention", "days": 0});
        let entry = Entry { kind: Kind::Erased, at_ms: 0, data: quorate_kernel::attempts::object(data) };
        let (n, prev) = (last.0.unsigned_abs() + 1, quorate_ledger::record::leaf(&last.1));
        let forged = quorate_ledger::record::PreparedEntry::prepare(entry)
            .and_then(|entry| entry.encode("ledger", n, Some(&prev)))
            .expect("sealed");
        sqlx::query(
            "INSERT INTO record (run, n, kind, head, data) VALUES ('ledger', ?, 'ledger.erased', ?, ?)",
        )
        .bind(last.0 + 1)
        .bind(&forged.head)
        .bind(&forged.data)
        .execute(&mut ledger)
        .await
        .expect("written");
        sqlx::query("UPDATE record SET data = NULL WHERE run = ? AND kind = 'consultation'")
            .bind(&run)
            .execute(&mut ledger)
            .await
            .expect("written");
    });
    place.run(&["ledger", "verify"]).assert_code(1).assert_stderr_contains("quorate:ledger_diverges");
    // The next run does not vouch for it.
    place.write("other.md", "The meeting is off.\n");
    place.run(&["review", "other.md"]).assert_stderr_contains("quorate:checkpoint_missing");
    place.run(&["ledger", "checkpoint"]).assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
    // Nor does a person who accepts what is unsigned without a look at what it says.
    let accepted = place.run(&["ledger", "checkpoint", "--accept-unsigned"]);
    accepted.assert_code(5).assert_stderr_contains("quorate:ledger_corrupt");
    assert_ne!(sealed, "");
    place.run(&["ledger", "verify"]).assert_code(1);
}

#[test]
fn without_the_ledgers_key_nothing_is_done_to_it() {
    // D11
    let place = reviewed();
    let run = place.only_run();
    let key = place.path(".quorate/keys/ledger.ed25519");
    std::fs::rename(&key, place.path("elsewhere")).expect("moved");
    place.run(&["ledger", "hold", &run]).assert_code(5).assert_stderr_contains("quorate:ledger_unsigned");
    assert!(!records::records(&place.path(LEDGER), "ledger").iter().any(|one| one.is(Kind::Held)));
    std::fs::rename(place.path("elsewhere"), &key).expect("moved");
    place.run(&["ledger", "hold", &run]).assert_code(0);
    place.run(&["ledger", "verify"]).assert_code(0);
}

#[test]
fn what_was_erased_is_believed() {
    // D11
    let place = reviewed();
    age(&place, 200);
    place.run(&["ledger", "gc"]).assert_code(0).stdout.find("erased: the bodies").expect("it is erased");
    // What was erased so holds. Checkpoints and log are those of the ledger that this one was made of.
    let found = place.run(&["ledger", "verify", "--format", "json"]).json();
    let about = |one: &Value| one["part"] == "record" || one["part"] == "signature";
    assert!(!found["divergences"].as_array().expect("a list").iter().any(about), "{found}");
}
