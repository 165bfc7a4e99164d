//! `quorate ledger prove`, `check-proof`, `export` and `import`, as people use them (D2, D3), beside
//! `scripts/verify_ledger.py`.
#![expect(clippy::disallowed_methods, reason = "tests start processes and look at files")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{Place, Ran};

const TEXT: &str = "The meeting moved to Tuesday at ten.\n";

/// A place with a signed run and the ledger's key in `ledger.pub`.
fn reviewed() -> (Place, String) {
    let place = Place::with("draft.md", TEXT);
    place.write("quorate.toml", "[keys]\nsign = \"required\"\n");
    place.run(&["keys", "init"]).expect(0);
    place.run(&["review", "draft.md"]);
    let key = place.run(&["keys", "export", "ledger", "--format", "note"]).expect(0).stdout;
    place.write("ledger.pub", key);
    let run = place.only_run();
    (place, run)
}

/// The other verifier; `None` where it cannot run here.
fn verify(place: &Place, arguments: &[&str]) -> Option<Ran> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    let mut command = Command::new("python3");
    let ran = command.arg(script).args(arguments).current_dir(place.root()).output();
    let ran = ran.map(Ran::of).ok().filter(|ran| !ran.stderr.contains("needs the package"));
    if ran.is_none() {
        eprintln!("SKIPPED: no python3 with cryptography, so scripts/verify_ledger.py was not asked");
    }
    ran
}

#[test]
fn a_proof_is_checked_where_there_is_no_ledger() {
    // D2, D3
    let (place, run) = reviewed();
    let proof = place.run(&["ledger", "prove", &run[..7]]).expect(0).stdout;
    let elsewhere = Place::with("proof.json", &proof);
    elsewhere.write("ledger.pub", place.read("ledger.pub"));
    let signer = place.run(&["keys", "export"]).expect(0).stdout;
    let check = ["ledger", "check-proof", "proof.json", "--key", "ledger.pub", "--signer", signer.trim()];
    let said = elsewhere.run(&check).expect(0);
    assert!(said.stdout.starts_with("Holds against the key quorate/"), "{}", said.stdout);
    let json = elsewhere.run(&[&check[..], &["--format", "json"]].concat()).expect(0).json();
    assert_eq!((&json["holds"], json["records"][0]["run"].as_str()), (&Value::Bool(true), Some(&*run)));
    assert!(!elsewhere.path(".quorate").exists(), "checking makes nothing");
    if let Some(said) =
        verify(&elsewhere, &["--proof", "proof.json", "--key", "ledger.pub", "--signer", signer.trim()])
    {
        said.expect(0);
    }

    elsewhere.run(&["ledger", "check-proof", "proof.json"]).expect(1).says("quorate:key_unvouched");
    elsewhere.run(&["ledger", "check-proof", "nowhere.json"]).expect(4).says("quorate:proof_unreadable");
    elsewhere
        .run(&["ledger", "check-proof", "proof.json", "--key", "nonsense"])
        .expect(5)
        .says("quorate:key_unusable");
    elsewhere.write("empty.pub", "\n");
    elsewhere
        .run(&["ledger", "check-proof", "proof.json", "--key", "empty.pub"])
        .expect(5)
        .says("quorate:key_unusable");
    elsewhere.write("proof.json", proof.replacen("\"index\":0", "\"index\":1", 1));
    elsewhere
        .run(&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"])
        .expect(1)
        .says("quorate:proof_invalid");
    elsewhere.write("proof.json", "{}");
    elsewhere
        .run(&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"])
        .expect(5)
        .says("quorate:proof_unreadable");
    let one = place.run(&["ledger", "prove", &format!("{run}/3")]).expect(0).json();
    assert_eq!(one["records"].as_array().map(Vec::len), Some(1));
    place.run(&["ledger", "prove", &format!("{run}/999")]).expect(4).says("quorate:run_unknown");
    place.run(&["ledger", "prove", "ledger"]).expect(5).says("quorate:record_unsealed");
}

#[test]
fn an_export_comes_back_as_it_was() {
    // D2
    let (place, run) = reviewed();
    let export = place.run(&["ledger", "export"]).expect(0).stdout;
    assert_eq!(place.run(&["ledger", "export"]).expect(0).stdout, export);
    place.run(&["ledger", "export", "--out", "out.jsonl"]).expect(0);
    assert_eq!(place.read("out.jsonl"), export);
    if let Some(said) = verify(&place, &["out.jsonl", "--key", "ledger.pub"]) {
        said.expect(0);
    }
    if let Some(said) = verify(&place, &["out.jsonl"]) {
        assert!(said.expect(1).stdout.contains("nobody vouched"));
    }

    let ours = Place::with("theirs.jsonl", &export);
    ours.write("their.pub", place.read("ledger.pub"));
    ours.run(&["ledger", "import", "theirs.jsonl"]).expect(5).says("quorate:key_unvouched");
    let import = ["ledger", "import", "theirs.jsonl", "--key", "their.pub", "--format", "json"];
    let done = ours.run(&import).expect(0).json();
    assert_eq!(
        done["runs"].as_object().map(|runs| runs.keys().cloned().collect::<Vec<_>>()),
        Some(vec![run.clone()])
    );
    assert_eq!(ours.run(&import).expect(0).json()["runs"], serde_json::json!({}));
    assert_eq!(ours.runs()[0]["imported"], Value::Bool(true));
    let shown = |place: &Place| place.run(&["show", &run, "--format", "json"]).expect(0).json();
    assert_eq!(shown(&ours)["verdict"], shown(&place)["verdict"]);
    ours.run(&["replay", &run]).expect(0);
    for command in [&["resume", &run][..], &["override", &run, "--verdict", "ship", "--reason", "x"]] {
        ours.run(command).expect(5).says("quorate:run_imported");
    }
    let back = ours.run(&["ledger", "export", "--run", &run]).expect(0).stdout;
    let heads = |text: &str| {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let of_run = lines.filter(|line| line["head"].as_str().is_some_and(|head| head.contains(&run)));
        of_run
            .map(|line| (line["head"].clone(), line["data"].clone(), line["signatures"].clone()))
            .collect::<Vec<_>>()
    };
    let records = heads(&back);
    assert!(records.len() > 20 && records == heads(&export), "records are what they were");
    assert!(ours.log().is_empty(), "no line of the log follows from it");
}

#[test]
fn what_was_spoilt_is_not_merged() {
    let (place, run) = reviewed();
    place.run(&["ledger", "export", "--out", "out.jsonl"]).expect(0);
    let export = place.read("out.jsonl");
    let cut: String = export.lines().take(9).map(|line| format!("{line}\n")).collect();
    for spoilt in
        [cut, export.replacen("\\\"n\\\":4", "\\\"n\\\":5", 1), format!("{export}\n"), String::new()]
    {
        place.write("spoilt.jsonl", spoilt);
        let import = ["ledger", "import", "spoilt.jsonl", "--ledger", "other.db"];
        place.run(&[&import[..], &["--key", "ledger.pub"]].concat()).expect(5).says("quorate:export_invalid");
        place.run(&["show", &run, "--ledger", "other.db"]).expect(4);
    }
    place.run(&["ledger", "import", "nowhere.jsonl"]).expect(4).says("quorate:export_invalid");
    place.run(&["ledger", "export", "--since", "soon"]).expect(64);
    place.run(&["ledger", "export", "--since", "99999"]).expect(5).says("quorate:checkpoint_unknown");
    let note = place.run(&["ledger", "checkpoint"]).expect(0).stdout;
    place.write("note.txt", &note);
    place.run(&["ledger", "export", "--since", "note.txt"]).expect(0);
    place.write("note.txt", note.replacen("quorate/", "quorate/x", 1));
    place.run(&["ledger", "export", "--since", "note.txt"]).expect(5).says("quorate:checkpoint_unknown");
}
