//! Reports as files in a real browser: they draw themselves from their proof without a single request, refuse edits or stay as
//! they are, vouch for nothing without the reader's key, can be read without scripts, and show hostile texts as text.
//!
//! Needs the same programs as `serve_browser.rs`; without them it prints SKIPPED.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::serve_browser::{BROWSER, example_place, hostile_place, shots};
use super::support::TestDir;
use super::support::reports::{EXAMPLES, Effect, decided_report, edits, ledger_key, report};

/// A file to look at, the keys that are entered in it in turn, and the themes in which axe judges it.
fn file(path: &Path, keys: &[&str], themes: &[&str]) -> Value {
    json!({"path": path, "keys": keys, "themes": themes})
}

/// The browser's observations of each [`file`]; `None` without a browser.
fn looked(files: &[Value]) -> Option<Vec<Value>> {
    let Ok(folder) = std::env::var(BROWSER) else {
        eprintln!("SKIPPED: Chromium (scripts/services install browser prints {BROWSER})");
        return None;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let told = json!({"files": files, "shots": shots()});
    let mut command = Command::new("node");
    command.arg(here.join("tests/it/support/report.mjs")).arg(folder).arg(told.to_string());
    let output = command.stderr(Stdio::inherit()).output().expect("Node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stdout).unwrap();
    let seen: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(seen.len(), files.len());
    Some(seen)
}

/// What holds of every report.
fn check(seen: &Value) {
    let file = &seen["file"];
    assert_eq!(seen["events"], json!([]), "{file}: dialogs, errors, breaches of the policy");
    assert_eq!(seen["requests"], json!([]), "{file}: requests");
    assert_eq!(seen["axe"], json!([]), "{file}");
    assert_eq!(seen["foreign"], 0, "{file}: markup of a text");
    assert_eq!(seen["overflow"], 0, "{file}: at 320 pixels");
    assert_eq!(seen["secure"], true, "{file}: file:// is a secure context");
    assert!(text(seen, "bare").contains("nothing on this page was checked"), "{file}: without scripts");
}

fn text<'a>(seen: &'a Value, field: &str) -> &'a str {
    seen[field].as_str().unwrap_or_else(|| panic!("{field} of {seen}"))
}

const UNSIGNED: &str = "▲ Proof valid: these records say ";

#[test]
fn a_report_of_every_kind_of_run_draws_itself_from_its_proof() {
    let other = "quorate:ed25519:public:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let (mut places, mut files, mut ledger_keys) = (Vec::new(), Vec::new(), Vec::new());
    for (example, command, _) in EXAMPLES {
        let place = example_place(example);
        place.run(&command.split(' ').collect::<Vec<_>>());
        let (key, public, fingerprint) = ledger_key(&place);
        // Colours are those of one sheet: the dark ones are judged in the reports of the first.
        let themes = if example == EXAMPLES[0].0 { &["light", "dark"][..] } else { &["light"] };
        let keys = [other, &key, other, &public, other, &fingerprint];
        for (name, options) in [("report.html", &[][..]), ("short.html", &["--outcome-only"])] {
            files.push(file(&report(&place, name, options), &keys, themes));
        }
        places.push(place);
        ledger_keys.push((key, fingerprint));
    }
    let Some(seen) = looked(&files) else { return };
    for (((example, _, heading), (key, fingerprint)), seen) in
        EXAMPLES.iter().zip(&ledger_keys).zip(seen.chunks(2))
    {
        for seen in seen {
            check(seen);
            let said = text(seen, "stand");
            let word = said
                .strip_prefix(UNSIGNED)
                .and_then(|said| said.split(';').next())
                .unwrap_or_else(|| panic!("{example}: {said}"));
            assert!(said.ends_with("; not signed by a key that you entered."), "{example}: {said}");
            assert!(text(seen, "title").starts_with(&format!("{word} ")), "{example}: {}", seen["title"]);
            let keys: Vec<&str> = seen["keys"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(keys.len(), 6);
            for pair in keys.chunks(2) {
                assert!(pair[0].starts_with("■ Proof of another key"), "{example}: {pair:?}");
                let signed = format!("● Proof valid: these records say {word}; signed by key {fingerprint}");
                assert!(pair[1].starts_with(&signed), "{example}: {pair:?}");
            }
            assert_eq!(seen["withheld"], "", "{example}: what another key signed is not shown");
            let print = text(seen, "print");
            assert!(print.contains(key) && print.contains("Root"), "{example}: {print}");
        }
        assert!(text(&seen[0], "drawn").contains(heading), "{example}: {}", seen[0]["drawn"]);
    }
}

#[test]
fn a_page_shows_its_own_policy_and_the_row_that_decided() {
    let place = example_place("two-models");
    let council = place.read("council.yaml").replace(", verdict_policy: strict", "");
    let rows = "policy:\n  - {if: {block_by: [evidence]}, then: HOLD}\n  - {if: {block: 1}, then: REVISE}\n  - {then: SHIP}\n";
    place.write("council.yaml", council + rows);
    place.run(&["review", "draft.md"]);
    let Some(seen) = looked(&[file(&report(&place, "report.html", &[]), &[], &[])]) else { return };
    let drawn = text(&seen[0], "drawn");
    for part in ["block by evidence", "otherwise", "1 (decided)"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
}

#[test]
fn an_edit_of_a_report_is_refused_or_has_no_effect() {
    let (place, whole, foreign) = decided_report();
    let edits = edits(&whole, &foreign);
    let mut files = vec![file(&place.path("report.html"), &[], &[])];
    for (at, (_, edited, _)) in edits.iter().enumerate() {
        let name = format!("edit-{at}.html");
        place.write(&name, edited);
        files.push(file(&place.path(&name), &[], &[]));
    }
    let Some(seen) = looked(&files) else { return };
    let (original, seen) = seen.split_first().unwrap();
    check_decided(original);
    for ((what, _, effect), seen) in edits.iter().zip(seen) {
        let (stand, drawn) = (text(seen, "stand"), text(seen, "drawn"));
        assert_eq!(seen["stays"], true, "{what}: it went elsewhere");
        match effect {
            Effect::None => assert_eq!(seen["page"], original["page"], "{what}"),
            Effect::Refused => {
                assert!(stand.starts_with("■ Proof not valid: "), "{what}: {stand}");
                assert_eq!(drawn, "", "{what}");
                assert_eq!(seen["title"], "Quorate report", "{what}");
            }
            Effect::Unchecked => {
                assert!(stand.starts_with("Proof: not checked yet"), "{what}: {stand}");
                assert!(drawn.is_empty() && !text(seen, "shown").contains("REVISE"), "{what}: {seen}");
            }
            Effect::Outside => {}
        }
    }
}

/// The report that is edited has all that an edit could hide.
fn check_decided(seen: &Value) {
    let (stand, drawn) = (text(seen, "stand"), text(seen, "drawn"));
    assert_eq!(
        stand,
        format!("{UNSIGNED}REVISE, and that Ada decided HOLD; not signed by a key that you entered.")
    );
    assert_eq!(seen["title"], "REVISE draft.md · Quorate report");
    for part in [
        "◆ REVISE draft.md",
        "2 of 3 reviewers object",
        "■ HOLD decided Ada: legal asks",
        "every book will be",
        "Proven",
    ] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
}

#[test]
fn hostile_texts_stay_text_in_a_report() {
    let (place, count) = hostile_place();
    assert!(count >= 300, "{count}");
    let Some(seen) = looked(&[file(&report(&place, "report.html", &[]), &[], &["light"])]) else { return };
    check(&seen[0]);
    assert!(text(&seen[0], "stand").starts_with(UNSIGNED), "{}", seen[0]["stand"]);
    let drawn = text(&seen[0], "drawn");
    for visible in
        ["<script onload=alert(1)>alert(2)</script>", "[U+202E]", "<img src=x onerror=alert(1)>.md"]
    {
        assert!(drawn.contains(visible), "{visible}");
    }
}

#[test]
fn the_verify_page_takes_proofs_and_reports() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    place.write("proof.json", place.run(&["ledger", "prove", "latest"]).assert_code(0).stdout);
    report(&place, "report.html", &[]);
    place.write("bad.json", place.read("proof.json").replacen("\"index\":0", "\"index\":1", 1));
    let (key, ..) = ledger_key(&place);
    let served = super::support::serve::Served::start(&place, &["--read-only"]);
    let files: Vec<PathBuf> = ["proof.json", "report.html", "bad.json"].map(|name| place.path(name)).into();
    let drop = json!({"path": "/verify", "files": files, "key": key});
    let told = json!({"paths": ["/verify", "/runs/latest/proof"], "themes": ["light", "dark"], "drop": drop});
    let Some(seen) = super::serve_browser::browse(&served, told) else { return };
    for page in &seen[..2] {
        super::serve_browser::check(page);
    }
    assert!(
        text(&seen[1], "text").contains("▲ Proof valid: the proof is intact; not signed by"),
        "{}",
        seen[1]["text"]
    );
    let stands: Vec<&str> = seen[2]["stands"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(seen[2]["requests"], json!([]), "nothing is uploaded");
    for (stand, mark) in stands.iter().zip([
        "▲ Proof valid",
        "● Proof valid",
        "▲ Proof valid",
        "● Proof valid",
        "■ Proof not valid",
    ]) {
        assert!(stand.starts_with(mark), "{stands:?}");
    }
    assert_eq!(stands.len(), 5, "{stands:?}");
}
