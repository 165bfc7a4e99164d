//! `quorate attest`: what was decided, verified by libraries that others wrote, as a gate would.
//!
//! Needs what `scripts/services install attest` and `install sigstore` install, in the folders that `QUORATE_TEST_ATTEST` and
//! `QUORATE_TEST_SIGSTORE` name, as each test states.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::assembly;
use crate::support::council::{all_ship, all_ship_except};
use crate::support::{TestDir, records};

/// A place with keys and a review of `draft.md`.
fn reviewed(answers: &Value, arguments: &[&str]) -> TestDir {
    let place = TestDir::scripted(answers);
    place.run(&["keys", "init"]).assert_code(0);
    place.run(&[&["review", "draft.md"], arguments].concat());
    place
}

fn revised() -> Value {
    let block = json!({"would_block": true, "score": 2, "block_reason": "It has no source."});
    let again =
        json!({"would_block": true, "irreducible": false, "score": 2, "block_reason": "It has no source."});
    all_ship_except(json!({
        "r1/evidence": block, "r2/evidence": again,
        "adjudicate": {"verdict": "REVISE", "reasoning": "A source is missing."},
    }))
}

/// The bundles in a directory, by kind.
fn bundle(place: &TestDir, kind: &str) -> PathBuf {
    let files = place.path("out").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains(kind)).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.pop().unwrap()
}

fn statement(bundle: &Path) -> Value {
    let bundle: Value = serde_json::from_str(&std::fs::read_to_string(bundle).unwrap()).unwrap();
    let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

/// Writes another bundle, changed.
fn changed(place: &TestDir, bundle: &Path, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(bundle).unwrap()).unwrap();
    change(&mut value);
    place.write(name, value.to_string());
    place.path(name)
}

/// The libraries of others.
struct Libraries {
    python: PathBuf,
    node: PathBuf,
}

impl Libraries {
    fn find() -> Option<Libraries> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let found = folder("QUORATE_TEST_ATTEST").zip(folder("QUORATE_TEST_SIGSTORE"));
        if found.is_none() {
            eprintln!("SKIPPED: attestations (scripts/services install attest and sigstore)");
        }
        found.map(|(python, node)| Libraries { python, node })
    }

    /// Whether a gate of ten minutes lets a file through; why not, otherwise.
    fn gate(&self, bundle: &Path, file: &Path, key: &Path, more: &[&str]) -> Result<(), String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/attest/gate.py");
        let mut command = Command::new(self.python.join("bin/python"));
        command.arg(script).arg(bundle).arg(file).arg(key).args(more);
        outcome(&mut command)
    }

    /// Whether the signature holds.
    fn verify(&self, bundle: &Path, key: &Path) -> Result<(), String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/attest/verify.mjs");
        outcome(Command::new("node").arg(script).arg(&self.node).arg(bundle).arg(key))
    }
}

fn outcome(command: &mut Command) -> Result<(), String> {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

fn key(place: &TestDir, name: &str) -> PathBuf {
    place.write(name, &*place.run(&["keys", "export", "--format", "pem"]).assert_code(0).stdout);
    place.path(name)
}

#[test]
fn a_gate_opens_for_what_ships_and_for_nothing_else() {
    let Some(libraries) = Libraries::find() else { return };
    let place = TestDir::scripted(&all_ship());
    let settings = place.read("quorate.toml");
    place.write("quorate.toml", format!("{settings}\n[keys]\nsign = \"required\"\n"));
    place.run(&["keys", "init"]).assert_code(0);
    place.run(&["review", "draft.md", "--policy", "strict"]).assert_code(0);
    let attested = place.run(&["attest", "latest", "--out", "out"]).assert_code(0);
    assert_eq!(attested.stdout.lines().count(), 2);
    let (decision, result) = (bundle(&place, "decision"), bundle(&place, "svr"));
    let (own, draft) = (key(&place, "own.pem"), place.path("draft.md"));
    let wanted = ["600", "QUORATE_REVIEW_SHIP", "QUORATE_POLICY_STRICT_1"];
    libraries.gate(&result, &draft, &own, &wanted).unwrap();
    for bundle in [&decision, &result] {
        libraries.verify(bundle, &own).unwrap();
    }
    // The gate refuses each of these with its own reason.
    let refused = |bundle: &Path, file: &Path, key: &Path, more: &[&str], why: &str| {
        let error = libraries.gate(bundle, file, key, more).expect_err(why);
        assert!(error.contains(why), "{why}: {error}");
    };
    refused(&decision, &draft, &own, &wanted, "another kind of statement");
    refused(&result, &draft, &own, &["0"], "s old");
    refused(&result, &draft, &own, &["600", "QUORATE_MODELS_ASKED"], "not said");
    place.write("other.md", "The meeting moved to Tuesday at eleven.\n");
    refused(&result, &place.path("other.md"), &own, &wanted, "another file");
    let stranger = TestDir::new();
    stranger.run(&["keys", "init"]).assert_code(0);
    let strange = key(&stranger, "strange.pem");
    refused(&result, &draft, &strange, &wanted, "another key");
    libraries.verify(&result, &strange).unwrap_err();
    let flipped = changed(&place, &result, "flipped.json", |bundle| {
        let payload = STANDARD.decode(bundle["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
        let text = String::from_utf8(payload).unwrap().replace("STRICT", "SEED_2");
        bundle["dsseEnvelope"]["payload"] = json!(STANDARD.encode(text));
    });
    refused(&flipped, &draft, &own, &["600"], "VerificationError");
    libraries.verify(&flipped, &own).unwrap_err();
    let twice = changed(&place, &result, "twice.json", |bundle| {
        let signatures = bundle["dsseEnvelope"]["signatures"].as_array_mut().unwrap();
        signatures.push(signatures[0].clone());
    });
    refused(&twice, &draft, &own, &wanted, "not one signature");
    libraries.verify(&twice, &own).unwrap_err();
    // A signature over a record is none over a statement: no envelope of a proof passes.
    let proof: Value =
        serde_json::from_str(&place.run(&["ledger", "prove", "latest"]).assert_code(0).stdout).unwrap();
    let envelope = proof["records"][0]["signatures"][0].clone();
    assert!(envelope.is_object(), "{proof}");
    let record = changed(&place, &result, "record.json", |bundle| bundle["dsseEnvelope"] = envelope.clone());
    refused(&record, &draft, &own, &wanted, "another payload");
}

#[test]
fn a_result_is_made_only_for_what_ships_as_it_is() {
    // Any other verdict has a decision and no result.
    let place = reviewed(&revised(), &[]);
    let attested = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(
        attested.stderr.contains("no simple verification result: the verdict is REVISE"),
        "{}",
        attested.stderr
    );
    let predicate = &statement(&bundle(&place, "decision"))["predicate"];
    assert_eq!((&predicate["verdict"], &predicate["policy"]), (&json!("REVISE"), &json!("seed/2")));
    place.run(&["attest", "latest", "--predicate-only", "result"]).assert_code(1);
    // A person's decision makes no result, in either direction, and one that was made before goes.
    place
        .run(&["override", "latest", "--verdict", "ship", "--reason", "It is known.", "--by", "Ada"])
        .assert_code(0);
    let attested = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(attested.stderr.contains("a person decided SHIP on this text"), "{}", attested.stderr);
    assert_eq!(statement(&bundle(&place, "decision"))["predicate"]["override"]["by"], "Ada");

    let place = reviewed(&all_ship(), &[]);
    place.run(&["attest", "latest", "--out", "out"]).assert_code(0);
    let first = std::fs::read(bundle(&place, "svr")).unwrap();
    place.run(&["attest", "latest", "--out", "out"]).assert_code(0);
    assert_eq!(std::fs::read(bundle(&place, "svr")).unwrap(), first, "it is as old as the verdict");
    place
        .run(&["override", "latest", "--verdict", "hold", "--reason", "Not yet.", "--by", "Ada"])
        .assert_code(0);
    place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert_eq!(place.path("out").read_dir().unwrap().count(), 1);

    // Neither does another review of the same bytes lift it, nor is an older verdict attested beside a newer one.
    place.run(&["review", "draft.md"]).assert_code(0);
    place.run(&["attest", "latest", "--out", "again"]).assert_code(1);
    let place = reviewed(&all_ship(), &[]);
    let first = place.only_run();
    place.run(&["review", "draft.md"]).assert_code(0);
    let attested = place.run(&["attest", &first, "--out", "out"]).assert_code(1);
    assert!(attested.stderr.contains("is newer and on the same text"), "{}", attested.stderr);

    // A member that is missing.
    let partial =
        all_ship_except(json!({"r1/strategy": {"$timeout": true}, "r2/strategy": {"$timeout": true}}));
    let place = reviewed(&partial, &["--timeout", "400ms"]);
    let attested = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(attested.stderr.contains("no output from strategy"), "{}", attested.stderr);

    // Another text than the bytes: a secret was taken out.
    let place = TestDir::scripted(&all_ship());
    place.run(&["keys", "init"]).assert_code(0);
    place.write("draft.md", "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a, keep it.\n");
    place.run(&["review", "draft.md"]).assert_code(0);
    let attested = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(attested.stderr.contains("the members saw a redacted text"), "{}", attested.stderr);
    assert_eq!(statement(&bundle(&place, "decision"))["predicate"]["judgedBytes"], false);
}

#[test]
fn nothing_is_attested_into_a_place_of_the_workspace() {
    let place = reviewed(&all_ship(), &[]);
    let run = place.only_run();
    std::fs::create_dir_all(place.path(".git/hooks")).unwrap();
    std::fs::create_dir_all(place.path(format!("folder/{run}.svr.sigstore.json").as_str())).unwrap();
    let planted = format!("linked/{run}.svr.sigstore.json");
    std::fs::create_dir_all(place.path("linked")).unwrap();
    std::os::unix::fs::symlink(place.path("keyring.toml"), place.path(&planted)).unwrap();
    for out in [".git", ".git/hooks", ".quorate/keys", ".quorate/aside", "folder", "linked"] {
        let attested = place.run(&["attest", "latest", "--out", out]);
        let exported = place.run(&["ledger", "export", "--out", &format!("{out}/{run}.svr.sigstore.json")]);
        for refused in [attested, exported] {
            assert_eq!(refused.code, 5, "{out}: {refused:?}");
            assert!(refused.stderr.contains("quorate:file_unwritable"), "{out}: {}", refused.stderr);
        }
        assert!(!place.path(&format!("{out}/{run}.decision.sigstore.json")).exists(), "{out}");
    }
    // Nothing was removed either.
    assert!(place.path(&planted).is_symlink() && place.path("keyring.toml").is_file());
    place.run(&["attest", "latest", "--out", "out"]).assert_code(0);
}

#[test]
fn later_verdicts_of_other_executors_are_listed() {
    let place = reviewed(&all_ship(), &[]);
    let first = place.only_run();
    // Another executor is another council: it does not take the result away.
    let settings = place.read("quorate.toml");
    let other = "[executors.other]\nkind = \"script\"\npath = \"answers.json\"\ndelay = \"1ms\"\n";
    place.write("quorate.toml", format!("{settings}{other}"));
    place.answers(&revised());
    place.run(&["review", "draft.md", "--executor", "other"]).assert_code(1);
    let incomplete = json!({"r1": {"would_block": false, "score": 4}});
    place.answers(&incomplete);
    place.run(&["review", "draft.md", "--policy", "strict"]).assert_code(3);
    let attested = place.run(&["attest", &first, "--out", "out"]).assert_code(0);
    assert!(attested.stderr.contains("later verdict on this text: "), "{}", attested.stderr);
    assert!(attested.stderr.contains("REVISE by other (run "), "{}", attested.stderr);
    let predicate = &statement(&bundle(&place, "decision"))["predicate"];
    let later = predicate["laterVerdicts"].as_array().unwrap();
    assert_eq!((later.len(), &later[0]["executor"]), (1, &json!("other")), "{predicate}");
    let other = later[0]["run"].as_str().unwrap();
    let of_other = place.run(&["attest", other, "--predicate-only", "decision"]).assert_code(0).json();
    assert_eq!(of_other["laterVerdicts"], json!([]));
}

#[test]
fn a_run_whose_input_is_not_its_artifact_counts_nowhere() {
    // D14: the record that a worker of an earlier version made of an exchanged text.
    let place = reviewed(&all_ship(), &[]);
    let evil = "Wire the money to the account below.\n";
    place.write("evil.md", evil);
    let forged = records::repeat_as(&place.path(".quorate/ledger.db"), &place.only_run(), |opened| {
        opened["subject"] = json!("evil.md");
        opened["artifact_sha256"] = json!(quorate_kernel::entropy::sha256_hex(evil.as_bytes()));
    });
    // Content credentials do not excuse it: the text without them has a hash as well.
    let marked = records::repeat_as(&place.path(".quorate/ledger.db"), &forged, |opened| {
        opened["subject"] = json!("marked.md");
        opened["hidden"] = json!({"credentials": 14, "visible_sha256": opened["artifact_sha256"]});
    });
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    let why = "although nothing was redacted";
    let verified = place.run(&["ledger", "verify"]).assert_code(1);
    for run in [&forged, &marked] {
        let is_named = verified.stdout.contains(&format!("{run}/0"));
        assert!(is_named && verified.stdout.contains(why), "{run}: {verified:?}");
    }
    for command in [
        vec!["hook", "pre-commit", "evil.md"],
        vec!["attest", &*forged, "--out", "out"],
        vec!["attest", &*forged, "--predicate-only", "result"],
    ] {
        let refused = place.run(&command).assert_code(1);
        assert!(refused.stderr.contains("quorate:input_not_artifact"), "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(why), "{command:?}: {}", refused.stderr);
    }
    // Nothing was altered: the ledger can be exported, and other runs can be attested.
    place.run(&["ledger", "export", "--out", "ledger.jsonl"]).assert_code(0);
    // The text is judged again by a review, whose run counts.
    place.run(&["review", "evil.md"]).assert_code(0);
    place.run(&["hook", "pre-commit", "evil.md"]).assert_code(0);
}

#[test]
fn votes_are_attested_by_what_they_decided() {
    for (vote, code, property) in [("yes", 0, Some("QUORATE_VOTE_PASS")), ("no", 1, None)] {
        let place = TestDir::new();
        assembly::write(&place, "voting", &[("ana", "voteClass: [release]"), ("bea", ""), ("cyd", "")], "");
        assembly::answers(&place, &json!({"_": assembly::vote_answer(vote)}));
        place.run(&["keys", "init"]).assert_code(0);
        let convened = assembly::convene(&place, "--proposal", &[]);
        assert!(convened.code <= 1, "{}", convened.stderr);
        place.run(&["attest", "latest", "--out", "out"]).assert_code(code);
        let verdict = if property.is_some() { "pass" } else { "fail" };
        assert_eq!(statement(&bundle(&place, "decision"))["predicate"]["verdict"], verdict);
        if let Some(property) = property {
            assert_eq!(statement(&bundle(&place, "svr"))["predicate"]["properties"][0], property);
            // Which rules count follows from the class, so a gate can ask for one.
            assembly::convene(&place, "--proposal", &["--class", "release"]);
            let predicate = ["attest", "latest", "--predicate-only", "result"];
            let predicate = place.run(&predicate).assert_code(0).json();
            assert_eq!(predicate["properties"][2], "QUORATE_CLASS_RELEASE");
        }
    }
}

#[test]
fn what_does_not_hold_is_not_attested() {
    // No verdict.
    let place = reviewed(&json!({"r1": {"would_block": false, "score": 4}}), &[]);
    let refused = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(refused.stderr.contains("quorate:not_attestable"), "{}", refused.stderr);
    // No key.
    let place = TestDir::scripted(&all_ship());
    place.run(&["review", "draft.md"]).assert_code(0);
    place.run(&["attest", "latest", "--out", "out"]).assert_code(4);
    let unsigned = place.run(&["attest", "latest", "--predicate-only", "decision"]).assert_code(0).json();
    assert_eq!(unsigned["verdict"], "SHIP");
    // A verdict that was written over.
    let place = reviewed(&revised(), &[]);
    let run = place.only_run();
    let ledger = place.path(".quorate/ledger.db");
    let change = "UPDATE record SET data = replace(data, 'REVISE', 'SHIP') WHERE kind = 'outcome'";
    records::execute_sql(&ledger, change);
    // Nothing that was made before is left, however it fails.
    place.write(&format!("out/{run}.svr.sigstore.json"), "{}");
    let refused = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(refused.stderr.contains("quorate:run_altered"), "{}", refused.stderr);
    assert_eq!(place.path("out").read_dir().unwrap().count(), 0);
    // A key that may not sign.
    let place = reviewed(&all_ship(), &[]);
    let key = place.run(&["keys", "export"]).assert_code(0).stdout;
    place.run(&["keys", "revoke", key.trim()]).assert_code(0);
    let refused = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(refused.stderr.contains("quorate:not_attestable"), "{}", refused.stderr);
    assert!(refused.stderr.contains("revoked"), "{}", refused.stderr);
    let place = reviewed(&all_ship(), &[]);
    std::fs::remove_file(place.path("keyring.toml")).unwrap();
    place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    // A run that was written into the file has no line in the log.
    let place = reviewed(&all_ship(), &[]);
    place.write(".quorate/council_log.jsonl", "");
    let refused = place.run(&["attest", "latest", "--out", "out"]).assert_code(1);
    assert!(refused.stderr.contains("the log"), "{}", refused.stderr);
}

#[test]
fn a_decision_that_was_taken_out_of_the_ledger_leaves_no_result() {
    for change in [
        "DELETE FROM run WHERE run = '{}'",
        "UPDATE run SET artifact_sha256 = 'x' WHERE run = '{}'",
        "DELETE FROM record WHERE run = '{}' AND kind = 'override'",
    ] {
        let place = reviewed(&all_ship(), &[]);
        let first = place.only_run();
        place
            .run(&["override", "latest", "--verdict", "hold", "--reason", "no", "--by", "Ada"])
            .assert_code(0);
        place.run(&["review", "draft.md"]).assert_code(0);
        let mut later = place.runs().into_iter().map(|run| run["run"].as_str().unwrap().to_owned());
        let later = later.find(|run| *run != first).unwrap();
        place.run(&["attest", &later, "--out", "out"]).assert_stderr_contains("a person decided");
        records::execute_sql(&place.path(".quorate/ledger.db"), &change.replace("{}", &first));
        let left = place.run(&["attest", &later, "--out", "out"]);
        let made = place.path("out").read_dir().map_or(0, |files| {
            files.flatten().filter(|file| file.file_name().to_string_lossy().contains(".svr.")).count()
        });
        assert_eq!(made, 0, "{change}: {}", left.stderr);
    }
}
