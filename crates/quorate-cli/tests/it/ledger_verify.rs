//! `quorate ledger verify` through the real binary: what holds after real runs, the log against the ledger, keys, witness,
//! and files that are not ledgers.

use crate::support;
use crate::support::records;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use records::execute_sql;
use serde_json::{Value, json};
use support::council::{all_ship, all_ship_except};
use support::{CommandOutput, TestDir, finish};

const LOG: &str = ".quorate/council_log.jsonl";

fn verify(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(&[&["ledger", "verify", "--format", "json"], more].concat())
}

/// Has it refused with a code: with a machine's format that stands on standard output.
fn refuses(ran: CommandOutput, code: i32, word: &str) {
    let ran = ran.assert_code(code);
    assert_eq!(ran.json()["diagnostics"][0]["code"], word, "{}", ran.stderr);
}

/// Kind, part and run of the first divergence.
fn first(ran: &CommandOutput) -> (String, String, String) {
    let first = &ran.json()["divergences"][0];
    let text = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("part"), text("run"))
}

/// Two reviews, one of them overridden.
fn reviewed() -> (TestDir, String) {
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    let run = place.only_run();
    place.run(&["override", &run, "--by", "ada", "--verdict", "hold", "--reason", "Not yet."]).assert_code(0);
    place.answers(&all_ship_except(json!({"adjudicate": {"verdict": "REVISE", "reasoning": "Once more."}})));
    place.run(&["review", "draft.md"]);
    (place, run)
}

#[test]
fn what_is_neither_signed_nor_sealed_is_said() {
    // D3: a crash leaves such records, and who can write the file can add them.
    let (place, run) = reviewed();
    let last = |ran: &CommandOutput| ran.stdout.trim_end().lines().last().unwrap_or_default().to_owned();
    let sealed = place.run(&["ledger", "verify", "--strict"]).assert_code(0);
    assert!(!sealed.stdout.contains("nothing proves who wrote them"), "{}", sealed.stdout);
    records::block_on(async {
        let store =
            quorate_ledger::Store::open(&place.path(".quorate/ledger.db")).await.expect("it opens").store;
        let n = store.records(&run.as_str().into()).await.expect("it reads").len() as u64;
        let data = json!({"verdict": "REVISE", "reason": "Forged.", "by": "ada", "logged": true, "ts": "2026-01-01T00:00:00.000Z"});
        let data = data.as_object().expect("an object").clone();
        let entry = Entry { kind: Kind::Override, at_ms: 1_795_000_000_000, data };
        store
            .append(Append::one(&run.as_str().into(), n, entry, Durability::Synced))
            .await
            .expect("appended");
        store.close().await;
    });
    let json = verify(&place, &["--strict"]).assert_code(1).json();
    assert_eq!(json["checkpoints"]["unproven"], 1, "{json}");
    assert!(json.to_string().contains("`quorate ledger checkpoint` to seal them"), "{json}");
    let human = place.run(&["ledger", "verify"]);
    assert!(
        human.stdout.contains("1 records are neither signed nor under a signed checkpoint"),
        "{}",
        human.stdout
    );
    assert!(human.stdout.contains("added any of the 53 unsigned records"), "{}", last(&human));
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    assert_eq!(verify(&place, &["--strict"]).json()["checkpoints"]["unproven"], 0);
}

#[test]
fn an_untouched_ledger_verifies() {
    // D2, D6
    let (place, _) = reviewed();
    let before = std::fs::read(place.path(".quorate/ledger.db")).unwrap();
    let report = verify(&place, &[]).assert_code(0).json();
    assert_eq!(report["holds"], true);
    assert_eq!(report["keys"]["own"], true);
    assert_eq!(report["log"]["ours"], 3, "two verdicts and an override");
    assert_eq!(report["open"]["count"], 0);
    let human = place.run(&["ledger", "verify"]).assert_code(0);
    assert!(human.stdout.starts_with(".quorate/ledger.db holds"), "{}", human.stdout);
    assert!(human.stdout.contains("the ledger's own key"), "{}", human.stdout);
    assert_eq!(std::fs::read(place.path(".quorate/ledger.db")).unwrap(), before);
}

#[test]
fn a_review_that_was_taken_up_again_holds() {
    // D6, C10
    let place = TestDir::scripted(&all_ship_except(
        json!({"r1": {"fails": true}, "r1/skeptic": "no JSON", "r2/skeptic": "no JSON"}),
    ));
    place.run(&["review", "draft.md"]);
    verify(&place, &[]).assert_code(0);
    place.answers(&all_ship());
    place.run(&["resume", &place.only_run()]);
    let report = verify(&place, &[]).assert_code(0).json();
    assert_eq!(report["log"]["ours"], place.log().len(), "{:?}", place.log());
}

#[test]
fn a_log_that_was_touched_diverges() {
    // D6
    let (place, run) = reviewed();
    let log = place.read(LOG);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3);
    let with = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let is = |text: &str, kind: &str| {
        place.write(LOG, text);
        let ran = verify(&place, &[]).assert_code(1);
        assert_eq!(first(&ran), (kind.to_owned(), "log".to_owned(), run.clone()), "{}", ran.stdout);
        ran.assert_stderr_contains("quorate:ledger_diverges");
    };
    is(&with(&lines[1..]), "removed");
    is(&with(&[lines[0], lines[2]]), "removed");
    is(&with(&[lines[0], lines[0], lines[1], lines[2]]), "inserted");
    is(&log.replacen("SHIP", "HOLD", 1), "changed");
    is(&log.replacen("Not yet.", "Never.", 1), "changed");
    // Who reads the first of two values reads another line, and so does who looks for words.
    is(&log.replacen('{', r#"{"adjudicator":{"final_verdict":"HOLD"},"#, 1), "changed");
    is(&log.replacen(',', ", ", 1), "changed");
    // A line was there before the next run came to anything, and so is before that run's.
    is(&with(&[lines[0], lines[2], lines[1]]), "reordered");
    is(&with(&[lines[2], lines[0], lines[1]]), "reordered");
    std::fs::remove_file(place.path(LOG)).unwrap();
    is("", "removed");
    // Foreign lines are ignored, and so is an incomplete last line.
    let theirs = r#"{"v":2,"span_id":"council-ab12","event":"verdict","verdict":"HOLD"}"#;
    let another = lines[0].replace(&run, "rzzzzzzzzzzzz");
    place.write(LOG, format!("{theirs}\n\n{log}{another}\nno JSON\n{{\"v\":2,\"ru"));
    let report = verify(&place, &[]).assert_code(0).json();
    assert_eq!((&report["log"]["unknown"], &report["log"]["unreadable"]), (&json!(1), &json!(1)));
    assert_eq!(report["log"]["first_unknown"], json!({"line": 6, "run": "rzzzzzzzzzzzz"}));
}

#[test]
fn a_line_is_compared_with_its_line_feed() {
    // D6
    let (place, run) = reviewed();
    let log = place.read(LOG);
    for changed in [log.replacen('\n', "\r\n", 1), log.replacen('\n', " \n", 1)] {
        place.write(LOG, changed);
        assert_eq!(first(&verify(&place, &[]).assert_code(1)), ("changed".into(), "log".into(), run.clone()));
    }
    // One without a line feed is not counted by `audit`.
    place.write(LOG, log.trim_end());
    let (kind, part, _) = first(&verify(&place, &[]).assert_code(1));
    assert_eq!((&*kind, &*part), ("changed", "log"));
    // Empty lines are ignored.
    place.write(LOG, format!("\n{}", log.replacen('\n', "\n\n", 1)));
    place.run(&["audit", "--reindex"]).assert_code(0);
    verify(&place, &[]).assert_code(0);
}

#[test]
fn what_is_counted_of_the_log_is_held_against_it() {
    // D6
    let (place, _) = reviewed();
    let theirs = r#"{"v":2,"span_id":"council-ab12","event":"verdict","verdict":"HOLD"}"#;
    place.write(LOG, format!("{}{theirs}\n", place.read(LOG)));
    let counted = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    for statement in [
        "UPDATE log_line SET verdict = 'REVISE' WHERE span = 'council-ab12'",
        "UPDATE log_line SET at_byte = at_byte + 1 WHERE id = 2",
        "UPDATE log_line SET calls = 'many' WHERE id = 2",
        "DELETE FROM log_line WHERE id = 1",
        "DELETE FROM log_line WHERE id = 4",
        "INSERT INTO log_line SELECT 9, log, at_byte, bytes, event, prior, span, artifact_type, verdict, at_ms, elapsed_ms, calls, tokens, \
         producer, positions, positioned, blocking, scored, scores FROM log_line WHERE id = 1",
        "UPDATE log_line SET tokens = 5 WHERE id = 2",
        "UPDATE log_seat SET last_score = 500 WHERE member = 'skeptic' AND line = 1",
        "UPDATE log_seat SET reprompts = 1 WHERE member = 'skeptic' AND line = 1",
        "UPDATE log_seat SET blocks = 2 WHERE member = 'skeptic' AND line = 1",
        "DELETE FROM log_seat WHERE member = 'skeptic'",
        "UPDATE log SET corrupt = 1",
        "UPDATE log SET corrupt = -1",
        "DELETE FROM log",
    ] {
        execute_sql(&place.path(".quorate/ledger.db"), statement);
        let ran = verify(&place, &[]).assert_code(1);
        let found = ("changed".to_owned(), "log index".to_owned(), String::new());
        assert_eq!((first(&ran), &ran.json()["found"]), (found, &json!(1)), "{statement}");
        assert_eq!(
            place.run(&["audit", "--reindex", "--format", "json"]).assert_code(0).json(),
            counted,
            "{statement}"
        );
        verify(&place, &[]).assert_code(0);
    }
    // The index is compared with the indexed part of the log, even after later lines.
    place.write(LOG, format!("{}{theirs}\nno JSON\n", place.read(LOG)));
    verify(&place, &[]).assert_code(0);
    execute_sql(&place.path(".quorate/ledger.db"), "UPDATE log SET corrupt = 1");
    assert_eq!(first(&verify(&place, &[]).assert_code(1)).1, "log index");
    place.run(&["audit", "--reindex"]).assert_code(0);
    // A replaced log gets a new index.
    place.write(LOG, format!("{theirs}\n{}", place.read(LOG)));
    verify(&place, &[]).assert_code(0);
}

#[test]
fn a_line_that_claims_an_override_is_one_or_is_reported() {
    // D6
    let (place, run) = reviewed();
    let log = place.read(LOG);
    let counted = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    // Of no run, of none that it names whole, without a verdict: reported, and not counted.
    let shapes = [
        r#"{"v":2,"event":"override","verdict":"SHIP"}"#,
        r#"{"v":2,"event":"override","run":"rzzzzzzzzzzzz","verdict":"SHIP"}"#,
        r#"{"v":2,"event":"override","span_id":"council-1","verdict":"SHIP"}"#,
        r#"{"v":2,"event":"override","run":"rzzzzzzzzzzzz","span_id":"rzzzzzzzzzzzz"}"#,
        r#"{"v":2,"event":"resumed","span_id":"council-1","verdict":"SHIP"}"#,
    ];
    place.write(LOG, format!("{log}{}\n", shapes.join("\n")));
    let report = verify(&place, &[]).assert_code(0).json();
    assert_eq!(report["log"]["unreadable"], json!(shapes.len()));
    place.run(&["ledger", "verify"]).assert_code(0).stdout.find("are not counted").expect("it is reported");
    let audit = place.run(&["audit", "--reindex", "--format", "json"]).assert_code(0);
    audit.assert_stderr_contains("skipped 5 unreadable lines");
    let counts = audit.json();
    assert_eq!((&counts["overrides"], &counts["reviews"]), (&counted["overrides"], &counted["reviews"]));
    // Lines of any shape about a run of this ledger must follow from its records.
    for shape in [
        json!({"v": 2, "event": "override", "run": run, "verdict": "SHIP"}),
        json!({"v": 2, "event": "override", "span_id": run, "verdict": "SHIP"}),
        json!({"v": 2, "event": "verdict", "parth_override": true, "span_id": run, "verdict": "SHIP"}),
        json!({"v": 2, "span_id": run, "verdict": "SHIP"}),
        json!({"v": 2, "event": "override", "run": "rzzzzzzzzzzzz", "span_id": run, "verdict": "SHIP"}),
    ] {
        place.write(LOG, format!("{log}{shape}\n"));
        let ran = verify(&place, &[]).assert_code(1);
        assert_eq!(first(&ran), ("inserted".to_owned(), "log".to_owned(), run.clone()), "{shape}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_the_log_does_not_block() {
    let (place, run) = reviewed();
    std::fs::remove_file(place.path(LOG)).unwrap();
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(place.path(name)).status().unwrap();
        assert!(made.success());
    };
    pipe(LOG);
    let why = "not a regular file";
    place.run(&["ledger", "verify"]).assert_code(5).assert_stderr_contains(why);
    place
        .run(&["review", "draft.md"])
        .assert_code(5)
        .assert_stderr_contains("quorate:log_unwritable")
        .assert_stderr_contains(why);
    let decides = ["override", &run, "--by", "ada", "--verdict", "ship", "--reason", "After all."];
    place
        .run(&decides)
        .assert_code(0)
        .assert_stderr_contains("quorate:log_behind")
        .assert_stderr_contains(why);
    for (name, arguments) in [
        ("quorate.toml", &["runs"][..]),
        ("keyring.toml", &["keys", "list"]),
        ("witness.txt", &["ledger", "verify", "--witness", "witness.txt"]),
    ] {
        let before = std::fs::read(place.path(name)).ok();
        let _ = std::fs::remove_file(place.path(name));
        pipe(name);
        place.run(arguments).assert_code(5).assert_stderr_contains(why);
        std::fs::remove_file(place.path(name)).unwrap();
        before.into_iter().for_each(|bytes| place.write(name, bytes));
    }
    // What is missing in it follows once there is one.
    std::fs::remove_file(place.path(LOG)).unwrap();
    place.run(&["runs"]).assert_code(0);
    assert_eq!(place.log().last().expect("a line")["reason"], "After all.");
}

#[test]
fn people_who_decide_at_the_same_time_are_all_heard() {
    // D2, D6
    let (place, run) = reviewed();
    let reasons: Vec<String> = (0..6).map(|who| format!("Says {who}.")).collect();
    let decides =
        |reason| place.start(&["override", &run, "--by", "ada", "--verdict", "hold", "--reason", reason]);
    let all: Vec<_> = reasons.iter().map(|reason| decides(reason)).collect();
    all.into_iter().for_each(|one| drop(finish(one).assert_code(0)));
    let log = place.log();
    let mut said: Vec<&str> = log.iter().filter_map(|line| line["reason"].as_str()).collect();
    said.sort_unstable();
    assert_eq!(said, ["Not yet.", "Says 0.", "Says 1.", "Says 2.", "Says 3.", "Says 4.", "Says 5."]);
    verify(&place, &[]).assert_code(0);
}

#[test]
fn keys_and_checkpoints_are_given_by_hand() {
    // D2, D3
    let (place, _) = reviewed();
    let checkpoint = place.run(&["ledger", "checkpoint"]).assert_code(0).stdout;
    place.write("checkpoint.txt", &checkpoint);
    let key = place.run(&["keys", "export", "ledger"]).assert_code(0).stdout;
    place.write("ledger.pub", &key);
    let report = verify(&place, &["--key", "ledger.pub", "--since", "checkpoint.txt"]).assert_code(0).json();
    assert_eq!(report["keys"]["given"], json!([true]));
    assert!(report["since"].as_u64().unwrap() > 0);
    let stranger = "quorate:ed25519:public:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    assert_eq!(first(&verify(&place, &["--key", stranger]).assert_code(1)).1, "checkpoint");
    refuses(verify(&place, &["--key", "no key"]), 5, "quorate:key_unusable");
    refuses(verify(&place, &["--since", "3"]), 4, "quorate:checkpoint_unknown");
    // A remembered size that the ledger is too short for.
    assert_eq!(first(&verify(&place, &["--since", "7000"]).assert_code(1)).0, "cut");
    refuses(verify(&place, &["--since", "ledger/99"]), 4, "quorate:checkpoint_unknown");
    refuses(verify(&place, &["--since", "draft.md"]), 5, "quorate:checkpoint_unknown");
    // Another ledger's checkpoint is not trusted.
    let (other, _) = reviewed();
    place.write("theirs.txt", other.run(&["ledger", "checkpoint"]).assert_code(0).stdout);
    refuses(verify(&place, &["--since", "theirs.txt"]), 1, "quorate:key_unvouched");
}

#[test]
fn the_witness_knows_what_was_cut_off() {
    // D2
    let place = TestDir::scripted(&all_ship());
    place.write(
        "quorate.toml",
        format!("ledger = {{ witness = \"witness.txt\" }}\n{}", place.read("quorate.toml")),
    );
    place.run(&["review", "draft.md"]).assert_code(0);
    let copy = std::fs::read(place.path(".quorate/ledger.db")).unwrap();
    let log = place.read(LOG);
    place.write("other.md", "The meeting is off.\n");
    place.run(&["review", "other.md"]).assert_code(0);
    let report = verify(&place, &[]).assert_code(0).json();
    assert_eq!(report["witness"]["checkpoints"], 2);
    // An hour-old copy of the ledger and its log.
    for file in ["ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(place.path(&format!(".quorate/{file}")));
    }
    std::fs::write(place.path(".quorate/ledger.db"), copy).unwrap();
    place.write(LOG, log);
    let ran = verify(&place, &[]).assert_code(1);
    assert_eq!((first(&ran).0.as_str(), first(&ran).1.as_str()), ("cut", "witness"), "{}", ran.stdout);
    refuses(verify(&place, &["--witness", "nowhere.txt"]), 4, "quorate:witness_unreadable");
    std::fs::remove_file(place.path("witness.txt")).unwrap();
    // Without it, what the key signed last still tells.
    verify(&place, &[]).assert_code(1).assert_stderr_contains("quorate:witness_behind");
}

#[test]
fn a_witness_without_a_checkpoint_of_this_ledger_is_none() {
    // D2
    let (place, _) = reviewed();
    place.write("ledger.pub", place.run(&["keys", "export", "ledger"]).assert_code(0).stdout);
    place.write("empty.txt", "");
    for witness in ["empty.txt", "ledger.pub", "draft.md", "/dev/null", "."] {
        refuses(verify(&place, &["--witness", witness]), 5, "quorate:witness_unreadable");
    }
    place
        .run(&["ledger", "verify", "--witness", "."])
        .assert_code(5)
        .assert_stderr_contains("cannot read the witness .");
    let checkpoint = place.run(&["ledger", "checkpoint"]).assert_code(0).stdout;
    place.write("torn.txt", format!("{checkpoint}\nAnd more.\n"));
    verify(&place, &["--witness", "torn.txt"])
        .assert_code(0)
        .assert_stderr_contains("quorate:witness_behind");
    let (other, _) = reviewed();
    place.write("theirs.txt", other.run(&["ledger", "checkpoint"]).assert_code(0).stdout);
    verify(&place, &["--witness", "theirs.txt"])
        .assert_code(1)
        .assert_stderr_contains("is of another ledger");
}

#[test]
fn a_log_goes_along_with_its_workspace() {
    // D6
    let (place, _) = reviewed();
    let log = place.read(LOG);
    let moved = TestDir::scripted(&all_ship());
    let copy = |moved: &TestDir| {
        std::fs::create_dir_all(moved.path(".quorate")).unwrap();
        std::fs::copy(place.path(".quorate/ledger.db"), moved.path(".quorate/ledger.db")).unwrap();
        moved.write(LOG, log.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    };
    // A copy: the log of the second run is where it was.
    copy(&moved);
    let ran = moved.run(&["ledger", "verify"]).assert_code(0);
    assert!(ran.stdout.contains("1 runs log elsewhere ("), "{}", ran.stdout);
    assert_eq!(verify(&moved, &[]).assert_code(0).json()["log"]["elsewhere"]["runs"], 1);
    // Without the other log, only the log here counts.
    std::fs::remove_file(place.path(LOG)).unwrap();
    assert_eq!(first(&verify(&moved, &[]).assert_code(1)).0, "removed");
    // Nor can it be emptied, where it lay beside the ledger as this one does.
    moved.write(LOG, "");
    assert_eq!(first(&verify(&moved, &[]).assert_code(1)).0, "removed");
    // With neither, it is said.
    std::fs::remove_file(moved.path(LOG)).unwrap();
    assert_eq!(verify(&moved, &[]).assert_code(0).json()["log"]["elsewhere"]["runs"], 2);
}

#[test]
fn a_ledger_that_is_only_read_has_its_log_counted() {
    // D6
    let (place, _) = reviewed();
    // The version of its schema, as SQLite keeps it.
    let mut file = std::fs::read(place.path(".quorate/ledger.db")).unwrap();
    file[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(place.path(".quorate/ledger.db"), file).unwrap();
    let audit = place.run(&["audit"]);
    assert!(audit.stdout.contains("2 reviews"), "{} {}", audit.stdout, audit.stderr);
    let doctor = place.run(&["doctor"]);
    assert!(!doctor.stdout.contains(" 0 bytes"), "{}", doctor.stdout);
}

#[test]
fn what_is_no_ledger_stays_where_it_is() {
    let place = TestDir::scripted(&all_ship());
    refuses(verify(&place, &[]), 4, "quorate:run_unknown");
    assert!(!place.path(".quorate").exists(), "looking makes nothing");
    place.write(".quorate/ledger.db", "This is not a database, and must not be removed. ".repeat(200));
    refuses(verify(&place, &[]), 5, "quorate:ledger_unavailable");
    assert!(!place.path(".quorate/aside").exists());
    place.write(".quorate/ledger.db", "");
    refuses(verify(&place, &[]), 5, "quorate:ledger_unavailable");
    assert_eq!(place.read(".quorate/ledger.db"), "");
}

#[test]
fn the_output_is_one_object() {
    let (place, _) = reviewed();
    let report = verify(&place, &[]).assert_code(0).json();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert!(keys.len() > 10);
    assert_eq!(report["divergences"], Value::Array(Vec::new()));
    assert_eq!(report["size"], report["records"]);
}
