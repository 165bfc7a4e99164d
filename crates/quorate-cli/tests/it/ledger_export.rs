//! `quorate ledger prove`, `check-proof`, `export` and `import`, as people use them (D2, D3), beside
//! `scripts/verify_ledger.py`.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::records;
use serde_json::Value;
use support::{CommandOutput, TestDir};

const TEXT: &str = crate::support::REVISED;

/// A place with a signed run and the ledger's key in `ledger.pub`.
fn reviewed() -> (TestDir, String) {
    let place = TestDir::with("draft.md", TEXT);
    place.write("quorate.toml", "[keys]\nsign = \"required\"\n");
    place.run(&["keys", "init"]).assert_code(0);
    place.run(&["review", "draft.md"]);
    let key = place.run(&["keys", "export", "ledger", "--format", "note"]).assert_code(0).stdout;
    place.write("ledger.pub", key);
    let run = place.only_run();
    (place, run)
}

#[test]
fn a_proof_of_an_overridden_hold_says_hold() {
    // C10
    let (place, run) = reviewed();
    let council = place.run(&["show", &run, "--format", "json"]).assert_code(0).json()["verdict"].clone();
    let council = council.as_str().expect("a verdict");
    let other = if council == "SHIP" { "hold" } else { "ship" };
    place.run(&["override", &run, "--by", "Ada", "--verdict", other, "--reason", "legal"]).assert_code(0);
    let check = |more: &[&str]| {
        place
            .run(&[&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"], more].concat())
            .assert_code(0)
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    place.write("proof.json", place.run(&["ledger", "prove", &run]).assert_code(0).stdout);
    let decided = format!("Ada decided {} over {council} on ", other.to_uppercase());
    let said = words(&check(&[]).stdout);
    assert!(said.contains(&format!("verdict {council}; {decided}")), "{said}");
    let json = check(&["--format", "json"]).json();
    let of = |kind: &str| {
        let mut all = json["records"].as_array().expect("records").iter();
        all.find(|one| one["kind"] == kind).expect("one of that kind").clone()
    };
    assert_eq!((&of("outcome")["verdict"], &of("outcome")["override"]), (&council.into(), &Value::Null));
    let over = of("override");
    let override_json =
        serde_json::json!({"verdict": other.to_uppercase(), "by": "Ada", "council_verdict": council});
    assert_eq!((&over["verdict"], &over["override"]), (&Value::Null, &override_json));
    // A decision whose data is left out is told.
    let mut proof: Value = serde_json::from_str(&place.read("proof.json")).expect("JSON");
    let records = proof["records"].as_array_mut().expect("records");
    let head = |record: &Value| record["head"].as_str().is_some_and(|head| head.contains("\"override\""));
    records.iter_mut().find(|record| head(record)).expect("an override")["data"] = Value::Null;
    place.write("proof.json", format!("{proof}\n"));
    let said = words(&check(&[]).stdout);
    assert!(said.contains(&format!("verdict {council}; a person's decision is left out")), "{said}");
    // The override alone proves no verdict.
    let alone = format!("{run}/{}", over["n"]);
    place.write("proof.json", place.run(&["ledger", "prove", &alone]).assert_code(0).stdout);
    let said = words(&check(&[]).stdout);
    assert!(said.contains("its outcome is missing; missing records: 0 to "), "{said}");
    assert!(said.contains(&decided), "{said}");
    // Nor does it take the verdict's place in traces.
    let traces = place.run(&["ledger", "export", "--format", "otel"]).assert_code(0).json();
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone();
    let root = spans.iter().find(|one| one["name"] == format!("run.opened {run}")).expect("the run's");
    let verdict =
        root["attributes"].as_array().expect("some").iter().find(|one| one["key"] == "quorate.verdict");
    assert_eq!(verdict.expect("one")["value"]["stringValue"], council);
}

/// The other verifier; `None` where it cannot run here.
fn verify(place: &TestDir, arguments: &[&str]) -> Option<CommandOutput> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    let mut command = Command::new("python3");
    let ran = command.arg(script).args(arguments).current_dir(place.root()).output();
    let ran =
        ran.map(CommandOutput::from_output).ok().filter(|ran| !ran.stderr.contains("needs the package"));
    if ran.is_none() {
        eprintln!("SKIPPED: no python3 with cryptography, so scripts/verify_ledger.py was not asked");
    }
    ran
}

#[test]
fn a_proof_is_checked_where_there_is_no_ledger() {
    // D2, D3
    let (place, run) = reviewed();
    let proof = place.run(&["ledger", "prove", &run[..7]]).assert_code(0).stdout;
    let elsewhere = TestDir::with("proof.json", &proof);
    elsewhere.write("ledger.pub", place.read("ledger.pub"));
    let signer = place.run(&["keys", "export"]).assert_code(0).stdout;
    let check = ["ledger", "check-proof", "proof.json", "--key", "ledger.pub", "--signer", signer.trim()];
    let said = elsewhere.run(&check).assert_code(0);
    assert!(said.stdout.starts_with("Holds against the key quorate/"), "{}", said.stdout);
    let json = elsewhere.run(&[&check[..], &["--format", "json"]].concat()).assert_code(0).json();
    assert_eq!((&json["holds"], json["records"][0]["run"].as_str()), (&Value::Bool(true), Some(&*run)));
    assert!(!elsewhere.path(".quorate").exists(), "checking makes nothing");
    if let Some(said) =
        verify(&elsewhere, &["--proof", "proof.json", "--key", "ledger.pub", "--signer", signer.trim()])
    {
        said.assert_code(0);
    }

    let refuses = |arguments: &[&str], exit: i32, code: &str| {
        let ran = elsewhere.run(&[&["ledger", "check-proof"], arguments].concat());
        ran.assert_code(exit).assert_stderr_contains(code);
    };
    refuses(&["proof.json"], 1, "quorate:key_unvouched");
    refuses(&["nowhere.json"], 4, "quorate:proof_unreadable");
    refuses(&["proof.json", "--key", "nonsense"], 5, "quorate:key_unusable");
    elsewhere.write("empty.pub", "\n");
    refuses(&["proof.json", "--key", "empty.pub"], 5, "quorate:key_unusable");
    elsewhere.write("proof.json", proof.replacen("\"index\":0", "\"index\":1", 1));
    refuses(&["proof.json", "--key", "ledger.pub"], 1, "quorate:proof_invalid");
    elsewhere.write("proof.json", "{}");
    refuses(&["proof.json", "--key", "ledger.pub"], 5, "quorate:proof_unreadable");
    let one = place.run(&["ledger", "prove", &format!("{run}/3")]).assert_code(0).json();
    assert_eq!(one["records"].as_array().map(Vec::len), Some(1));
    place
        .run(&["ledger", "prove", &format!("{run}/999")])
        .assert_code(4)
        .assert_stderr_contains("quorate:run_unknown");
    place
        .run(&["ledger", "prove", "ledger"])
        .assert_code(5)
        .assert_stderr_contains("quorate:record_unsealed");
    let last = last_of_ledger(&place);
    let refused = place.run(&["ledger", "prove", &last]).assert_code(5);
    refused.assert_stderr_contains("the next checkpoint seals it");
    assert!(
        !refused.stderr.contains("quorate ledger checkpoint"),
        "that would seal nothing: {}",
        refused.stderr
    );
}

/// The ledger's own last record, a checkpoint's.
fn last_of_ledger(place: &TestDir) -> String {
    let refused = place.run(&["ledger", "prove", "ledger"]).assert_code(5);
    let at = refused.stderr.find("record ledger/").expect("it is named") + "record ".len();
    refused.stderr[at..].split_whitespace().next().expect("an id").trim_end_matches(':').to_owned()
}

#[test]
fn a_body_that_a_proof_leaves_out_is_not_called_erased() {
    // D2
    let (place, run) = reviewed();
    let mut proof = place.run(&["ledger", "prove", &format!("{run}/3")]).assert_code(0).json();
    proof["records"][0]["data"] = Value::Null;
    place.write("proof.json", format!("{proof}\n"));
    let said =
        place.run(&["ledger", "check-proof", "proof.json", "--key", "ledger.pub"]).assert_code(0).stdout;
    assert!(said.contains("  not ") && !said.contains("erased"), "{said}");
}

#[test]
fn what_was_altered_is_neither_exported_nor_proven() {
    // D2
    let (place, run) = reviewed();
    let ledger = place.path(".quorate/ledger.db");
    let whole = std::fs::read(&ledger).expect("readable");
    for (change, n) in [
        ("UPDATE record SET data = '{}' WHERE n = 3 AND run LIKE 'r%'", 3),
        ("UPDATE record SET head = replace(head, 'Z\"', '0\"') WHERE n = 2 AND run LIKE 'r%'", 2),
        ("UPDATE signature SET signature = (SELECT signature FROM signature WHERE n = 1) WHERE n = 4", 4),
    ] {
        records::execute_sql(&ledger, change);
        for form in ["jsonl", "csv", "otel"] {
            let ran = place.run(&["ledger", "export", "--format", form, "--out", "out"]).assert_code(1);
            ran.assert_stderr_contains("quorate:ledger_corrupt")
                .assert_stderr_contains(&format!("{run}/{n}"));
            assert!(!place.path("out").exists(), "{form}");
        }
        let all = place.run(&["ledger", "prove", &run]).assert_code(1);
        all.assert_stderr_contains("quorate:ledger_corrupt").assert_stderr_contains(&format!("{run}/{n}"));
        for n in [n, 0] {
            place.run(&["ledger", "prove", &format!("{run}/{n}")]).assert_code(1);
        }
        std::fs::write(&ledger, &whole).expect("writable");
    }
    records::execute_sql(&ledger, "UPDATE body SET text = text || ' Or not.'");
    place
        .run(&["ledger", "export", "--out", "out"])
        .assert_code(1)
        .assert_stderr_contains("quorate:ledger_corrupt");
}

#[test]
fn what_was_removed_or_added_is_neither_exported_nor_proven() {
    // D2, D3: everything that `verify` finds, also where each record that is left holds by itself.
    let (place, run) = reviewed();
    place.write("quorate.toml", "[keys]\nsign = \"optional\"\n");
    place.run(&["review", "draft.md", "--type", "blog_post"]);
    let signed = place.runs()[0]["run"].as_str().expect("a run").to_owned();
    assert_ne!(signed, run);
    place.run(&["ledger", "hold", &signed]).assert_code(0);
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    let ledger = place.path(".quorate/ledger.db");
    let whole = std::fs::read(&ledger).expect("readable");
    let junk = "'00000000000000000000000000000000', signature FROM signature LIMIT 1";
    for change in [
        format!("DELETE FROM signature WHERE run = '{signed}'"),
        format!("UPDATE record SET data = NULL WHERE kind = 'outcome' AND run = '{signed}'"),
        "DELETE FROM body".to_owned(),
        format!("INSERT INTO signature SELECT '{signed}', 2, {junk}"),
        format!(
            "INSERT INTO signature SELECT 'ledger', (SELECT n FROM record WHERE kind = 'ledger.held'), {junk}"
        ),
        format!("INSERT INTO signature SELECT 'ledger', 0, {junk}"),
    ] {
        records::execute_sql(&ledger, &change);
        place.run(&["ledger", "verify"]).assert_code(1);
        for form in ["jsonl", "csv", "otel"] {
            let ran = place.run(&["ledger", "export", "--format", form, "--out", "out"]).assert_code(1);
            ran.assert_stderr_contains("quorate:ledger_corrupt").assert_stderr_contains("ledger verify");
            assert!(!place.path("out").exists(), "{form}: {change}");
        }
        place
            .run(&["ledger", "prove", &signed])
            .assert_code(1)
            .assert_stderr_contains("quorate:ledger_corrupt");
        std::fs::write(&ledger, &whole).expect("writable");
    }
    // What is wrong with one run leaves the proof of another.
    records::execute_sql(&ledger, &format!("DELETE FROM signature WHERE run = '{signed}'"));
    place.run(&["ledger", "prove", &run]).assert_code(0);
}

#[test]
fn an_export_is_checked_where_there_is_no_ledger() {
    // D2, D3
    let (place, _) = reviewed();
    let text = place.run(&["ledger", "export"]).assert_code(0).stdout;
    let elsewhere = TestDir::with("ledger.jsonl", &text);
    elsewhere.write("ledger.pub", place.read("ledger.pub"));
    let signer = place.run(&["keys", "export"]).assert_code(0).stdout;
    let check = ["ledger", "check-export", "ledger.jsonl", "--key", "ledger.pub", "--signer", signer.trim()];
    let said = elsewhere.run(&check).assert_code(0);
    assert!(said.stdout.starts_with("Holds against the key quorate/"), "{}", said.stdout);
    let json = elsewhere.run(&[&check[..], &["--format", "json"]].concat()).assert_code(0).json();
    assert_eq!((&json["holds"], &json["records"]), (&Value::Bool(true), &json["size"]));
    let given = ["ledger", "check-export", "-", "--key", "ledger.pub"];
    elsewhere.run_with_stdin(&given, text.as_bytes()).assert_code(0);
    assert!(!elsewhere.path(".quorate").exists(), "checking makes nothing");
    let refuses = |arguments: &[&str], exit: i32, code: &str| {
        elsewhere
            .run(&[&["ledger", "check-export"], arguments].concat())
            .assert_code(exit)
            .assert_stderr_contains(code);
    };
    refuses(&["ledger.jsonl"], 1, "quorate:key_unvouched");
    refuses(&["nowhere.jsonl"], 4, "quorate:export_invalid");
    refuses(&["ledger.pub", "--key", "ledger.pub"], 5, "quorate:export_invalid");
    refuses(&[".", "--key", "ledger.pub"], 5, "quorate:export_invalid");
    for (from, to) in [("\"from\":null,", ""), ("\"runs\":null,", ""), ("\"data\":", "\"date\":")] {
        elsewhere.write("other.jsonl", text.replacen(from, to, 1));
        let ran = elsewhere.run(&["ledger", "check-export", "other.jsonl", "--key", "ledger.pub"]);
        assert!(matches!(ran.code, 1 | 5), "{from}: {} {}", ran.stdout, ran.stderr);
        if let Some(other) = verify(&elsewhere, &["other.jsonl", "--key", "ledger.pub"]) {
            assert!(matches!(other.code, 1 | 2), "{from}: {}", other.stdout);
        }
    }
}

#[test]
fn an_export_replaces_no_other_file() {
    // D2
    let (place, _) = reviewed();
    let config = "[keys]\nsign = \"required\"\n[ledger]\nwitness = \"witness.txt\"\n";
    place.write("quorate.toml", config);
    place.write("council_log.jsonl", "x");
    let mut taken = vec!["quorate.toml", "keyring.toml", "witness.txt", "./sub/../quorate.toml"];
    taken.extend([".quorate/ledger.db", ".quorate/ledger.db-wal", ".quorate/ledger.db-shm"]);
    taken.extend([".quorate/council_log.jsonl", ".quorate/keys/ledger.ed25519", ".quorate/keys/new"]);
    std::fs::create_dir(place.path("sub")).expect("made");
    let bytes = |name: &str| std::fs::read(place.path(name)).ok();
    for name in taken {
        let before = bytes(name);
        place
            .run(&["ledger", "export", "--out", name])
            .assert_code(5)
            .assert_stderr_contains("quorate:file_unwritable");
        // SQLite may change its own files.
        if !name.contains("ledger.db") {
            assert_eq!(bytes(name), before, "{name}");
        }
    }
    place.run(&["runs"]).assert_code(0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(place.path(".quorate/ledger.db"), place.path("link")).expect("linked");
        place.run(&["ledger", "export", "--out", "link"]).assert_refused(5, "quorate:file_unwritable");
        symlink(place.path("nowhere"), place.path("dangling")).expect("linked");
        place
            .run(&["ledger", "export", "--out", "dangling"])
            .assert_code(5)
            .assert_stderr_contains("quorate:file_unwritable");
        for name in ["/dev/null", "sub"] {
            place.run(&["ledger", "export", "--out", name]).assert_refused(5, "quorate:file_unwritable");
        }
        place.write("sub/real.jsonl", "old");
        symlink(place.path("sub/real.jsonl"), place.path("to.jsonl")).expect("linked");
        place.run(&["ledger", "export", "--out", "to.jsonl"]).assert_code(0);
        assert!(place.path("to.jsonl").is_symlink());
        assert!(place.read("sub/real.jsonl").starts_with('{'));
    }
}

#[test]
fn an_import_that_comes_to_nothing_makes_nothing() {
    // D2
    let (place, run) = reviewed();
    let export = place.run(&["ledger", "export"]).assert_code(0).stdout;
    let ours = TestDir::with("theirs.jsonl", &export);
    ours.write("their.pub", place.read("ledger.pub"));
    ours.write("spoilt.jsonl", &export[..export.len() / 2]);
    let import = |file: &str, more: &[&str]| ours.run(&[&["ledger", "import", file], more].concat());
    let key = ["--key", "their.pub"];
    import("theirs.jsonl", &[]).assert_code(5).assert_stderr_contains("quorate:key_unvouched");
    import("spoilt.jsonl", &key).assert_code(5).assert_stderr_contains("quorate:export_invalid");
    import("nowhere.jsonl", &key).assert_refused(4, "quorate:export_invalid");
    for name in [".", "/dev/null"] {
        import(name, &key).assert_refused(5, "quorate:export_invalid");
    }
    let would = import("theirs.jsonl", &["--key", "their.pub", "--dry-run", "--format", "json"])
        .assert_code(0)
        .json();
    assert!(would["runs"][&run].as_u64().is_some_and(|records| records > 20), "{would}");
    assert!(!ours.path(".quorate").exists(), "nothing is made");
    let done = import("theirs.jsonl", &["--key", "their.pub", "--format", "json"]).assert_code(0).json();
    assert_eq!(done["runs"], would["runs"]);
}

#[test]
fn the_other_verifier_tells_what_is_unusable_from_what_does_not_hold() {
    // D2
    let (place, run) = reviewed();
    place.run(&["ledger", "export", "--out", "out.jsonl"]).assert_code(0);
    let proof = place.run(&["ledger", "prove", &run]).assert_code(0).stdout;
    place.write("proof.json", &proof);
    place.write("empty", "");
    place.write("object", "{}\n");
    place.write("text", "no JSON\n");
    std::fs::write(place.path("random"), [0xff, 0xfe, 0, 10, 0x80]).expect("written");
    let Some(whole) = verify(&place, &["out.jsonl", "--key", "ledger.pub"]) else { return };
    whole.assert_code(0);
    let ran = |arguments: &[&str]| verify(&place, arguments).expect("it ran before");
    // For an unusable document the script exits with 2 and Quorate with 5.
    place.write("endless", "garbage");
    place.write("half", "\u{fffd}\n".as_bytes().get(1..).expect("bytes"));
    let export = place.read("out.jsonl");
    place.write("typed", export.replacen("\"from\":null", "\"from\":{}", 1));
    place.write("typed.json", proof.replacen("\"leaf_path\":[", "\"leaf_path\":[1,", 1));
    #[cfg(unix)]
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("it runs").success());
    let mut none =
        vec!["empty", "object", "text", "random", "nowhere", ".", "endless", "half", "typed", "typed.json"];
    none.extend(cfg!(unix).then_some("pipe"));
    let ours = |check: &str, name: &str| {
        let code = if name == "nowhere" { 4 } else { 5 };
        place.run(&["ledger", check, name, "--key", "ledger.pub"]).assert_code(code);
    };
    for name in none.iter().chain(&["proof.json"]) {
        ran(&[name, "--key", "ledger.pub"]).assert_code(2);
        ours("check-export", name);
    }
    for name in none.iter().chain(&["out.jsonl"]) {
        ran(&["--proof", name, "--key", "ledger.pub"]).assert_code(2);
        ours("check-proof", name);
    }
    for name in ["empty", "text", "random"] {
        ran(&["out.jsonl", "--key", name]).assert_code(2).assert_stderr_contains(name);
    }
    place.write("proof.json", proof.replacen("\"index\":0", "\"index\":1", 1));
    ran(&["--proof", "proof.json", "--key", "ledger.pub"]).assert_code(1);
    place.write("out.jsonl", &export[..export.len() / 2]);
    ran(&["out.jsonl", "--key", "ledger.pub"]).assert_code(1);
}

#[test]
fn an_export_comes_back_as_it_was() {
    // D2
    let (place, run) = reviewed();
    let export = place.run(&["ledger", "export"]).assert_code(0).stdout;
    assert_eq!(place.run(&["ledger", "export"]).assert_code(0).stdout, export);
    place.run(&["ledger", "export", "--out", "out.jsonl"]).assert_code(0);
    assert_eq!(place.read("out.jsonl"), export);
    if let Some(said) = verify(&place, &["out.jsonl", "--key", "ledger.pub"]) {
        said.assert_code(0);
    }
    if let Some(said) = verify(&place, &["out.jsonl"]) {
        assert!(said.assert_code(1).stdout.contains("not trusted"));
    }

    let ours = TestDir::with("theirs.jsonl", &export);
    ours.write("their.pub", place.read("ledger.pub"));
    ours.run(&["ledger", "import", "theirs.jsonl"])
        .assert_code(5)
        .assert_stderr_contains("quorate:key_unvouched");
    let import = ["ledger", "import", "theirs.jsonl", "--key", "their.pub", "--format", "json"];
    let done = ours.run(&import).assert_code(0).json();
    assert_eq!(
        done["runs"].as_object().map(|runs| runs.keys().cloned().collect::<Vec<_>>()),
        Some(vec![run.clone()])
    );
    assert_eq!(ours.run(&import).assert_code(0).json()["runs"], serde_json::json!({}));
    assert_eq!(ours.runs()[0]["imported"], Value::Bool(true));
    let shown = |place: &TestDir| place.run(&["show", &run, "--format", "json"]).assert_code(0).json();
    assert_eq!(shown(&ours)["verdict"], shown(&place)["verdict"]);
    ours.run(&["replay", &run]).assert_code(0);
    for command in
        [&["resume", &run][..], &["override", &run, "--by", "ada", "--verdict", "ship", "--reason", "x"]]
    {
        ours.run(command).assert_code(5).assert_stderr_contains("quorate:run_imported");
    }
    let back = ours.run(&["ledger", "export", "--run", &run]).assert_code(0).stdout;
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
    place.run(&["ledger", "export", "--out", "out.jsonl"]).assert_code(0);
    let export = place.read("out.jsonl");
    let cut: String = export.lines().take(9).map(|line| format!("{line}\n")).collect();
    for spoilt in
        [cut, export.replacen("\\\"n\\\":4", "\\\"n\\\":5", 1), format!("{export}\n"), String::new()]
    {
        place.write("spoilt.jsonl", spoilt);
        let import = ["ledger", "import", "spoilt.jsonl", "--ledger", "other.db"];
        place
            .run(&[&import[..], &["--key", "ledger.pub"]].concat())
            .assert_code(5)
            .assert_stderr_contains("quorate:export_invalid");
        place.run(&["show", &run, "--ledger", "other.db"]).assert_code(4);
    }
    place
        .run(&["ledger", "import", "nowhere.jsonl"])
        .assert_code(4)
        .assert_stderr_contains("quorate:export_invalid");
    place.run(&["ledger", "export", "--since", "soon"]).assert_code(64);
    place
        .run(&["ledger", "export", "--since", "99999"])
        .assert_code(5)
        .assert_stderr_contains("quorate:checkpoint_unknown");
    let note = place.run(&["ledger", "checkpoint"]).assert_code(0).stdout;
    place.write("note.txt", &note);
    place.run(&["ledger", "export", "--since", "note.txt"]).assert_code(0);
    place.write("note.txt", note.replacen("quorate/", "quorate/x", 1));
    place
        .run(&["ledger", "export", "--since", "note.txt"])
        .assert_code(5)
        .assert_stderr_contains("quorate:checkpoint_unknown");
}
