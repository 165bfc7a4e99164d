//! Reports as files in a real browser: they check themselves without a single request, name what was changed, vouch for
//! nothing without the reader's key, can be read without scripts, and show hostile texts as text.
//!
//! Needs the same programs as `serve_browser.rs`; without them it prints SKIPPED.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::serve_browser::{BROWSER, example_place, hostile_place, shots};
use super::support::TestDir;
use super::support::reports::{EXAMPLES, ledger_key, report};

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
    assert!(seen["bare"].as_str().unwrap().contains("Not checked"), "{file}: without scripts");
}

fn text<'a>(seen: &'a Value, field: &str) -> &'a str {
    seen[field].as_str().unwrap_or_else(|| panic!("{field} of {seen}"))
}

#[test]
fn a_report_of_every_kind_of_run_checks_itself() {
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
        ledger_keys.push(key);
    }
    let Some(seen) = looked(&files) else { return };
    for (((example, _, word), key), seen) in EXAMPLES.iter().zip(&ledger_keys).zip(seen.chunks(2)) {
        for seen in seen {
            check(seen);
            assert_eq!(seen["flaws"], json!([]), "{example}");
            assert!(text(seen, "stand").starts_with("▲ Key not given"), "{example}: {}", seen["stand"]);
            let keys: Vec<&str> = seen["keys"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(keys.len(), 6);
            for (at, said) in keys.iter().enumerate() {
                let mark = if at % 2 == 0 { "■ Signed by another key" } else { "● Valid" };
                assert!(said.starts_with(mark), "{example}: {said}");
            }
            let print = text(seen, "print");
            assert!(print.contains(key) && print.contains("Root"), "{example}: {print}");
        }
        assert!(text(&seen[0], "bare").contains(word), "{example} without scripts: {}", seen[0]["bare"]);
        assert_eq!(seen[0]["cards"], 0, "{example}: cards are endnotes in print");
        if *word == "Positions" {
            assert!(seen[0]["endnotes"].as_u64().unwrap() > 0, "{example}");
        }
    }
}

#[test]
fn what_was_changed_is_named() {
    let place = example_place("two-models");
    place.run(&["review", "draft.md"]);
    let decision = ["override", "latest", "--by", "Ada", "--verdict", "ship", "--reason", "legal agreed"];
    place.run(&decision).assert_code(0);
    let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
    let outcome = whole.split("id=\"verdict\"").nth(1).unwrap();
    let verdict = outcome.split(['>', '<']).nth(1).unwrap();
    assert_eq!(verdict, "REVISE");
    let document = "<span class=\"code\">";
    let cut = |from: &str, to: &str| {
        let at = whole.find(from).unwrap();
        let end = at + whole[at..].find(to).unwrap() + to.len();
        format!("{}{}", &whole[..at], &whole[end..])
    };
    let proof = whole.split("id=\"proof\">").nth(1).unwrap();
    let attribute =
        |text: &str| text.split("data-at=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let (heading, person) =
        (attribute(outcome), attribute(whole.split("<p class=\"override\"").nth(1).unwrap()));
    let swapped = whole.replacen(&heading, &person, 1).replacen(">REVISE</span>", ">SHIP</span>", 1);
    let count = whole.split("data-facts=\"").nth(1).unwrap().split('"').next().unwrap();
    let fewer = format!("data-facts=\"{}\"", count.parse::<usize>().unwrap() - 3);
    let undecided =
        cut("<p class=\"override\">", "</p>").replacen(&format!("data-facts=\"{count}\""), &fewer, 1);
    let changes = [
        ("verdict.html", whole.replacen(">REVISE</span>", ">SHIP</span>", 1), "“SHIP” is shown, and record"),
        ("line.html", whole.replacen(document, &format!("{document}Do not "), 1), "line 1 of"),
        ("card.html", cut("<article class=\"finding\"", "</article>"), "facts were added or removed"),
        (
            "text.html",
            cut("<script type=\"application/octet-stream\" class=\"text\"", "</script>"),
            "not embedded",
        ),
        ("swapped.html", swapped, "something else than the decision"),
        ("undecided.html", undecided, "a person's decision is not shown"),
        (
            "hidden.html",
            whole.replacen("<p class=\"override\">", "<p class=\"override\" hidden>", 1),
            "is hidden",
        ),
        (
            "main.html",
            whole.replacen("<main", "<main><h1>● SHIP</h1></main><main", 1),
            "parts that no report has",
        ),
        (
            "mark.html",
            whole.replacen("class=\"mark fair\"", "class=\"mark good\"", 1),
            "marked as another one",
        ),
        ("proof.html", whole.replacen(&proof[..40], &format!("{}AAAA", &proof[..36]), 1), ""),
    ];
    let mut files = Vec::new();
    for (name, changed, _) in &changes {
        assert_ne!(*changed, whole, "{name}");
        place.write(name, changed);
        files.push(file(&place.path(name), &[], &[]));
        let checked = place.run(&["ledger", "check-proof", name]);
        assert!(checked.code != 0, "{name}: {}", checked.stdout);
        assert!(
            !checked.stdout.contains("The report shows the content of these records"),
            "{name}: {}",
            checked.stdout
        );
    }
    let Some(seen) = looked(&files) else { return };
    for ((name, _, flaw), seen) in changes.iter().zip(&seen) {
        assert_eq!(seen["requests"], json!([]), "{name}");
        assert!(text(seen, "stand").starts_with('■'), "{name}: {}", seen["stand"]);
        assert!(seen["flaws"].to_string().contains(flaw), "{name}: {}", seen["flaws"]);
    }
}

#[test]
fn hostile_texts_stay_text_in_a_report() {
    let (place, count) = hostile_place();
    assert!(count >= 300, "{count}");
    let Some(seen) = looked(&[file(&report(&place, "report.html", &[]), &[], &["light"])]) else { return };
    check(&seen[0]);
    assert!(
        text(&seen[0], "stand").starts_with("▲ Key not given"),
        "{} {}",
        seen[0]["stand"],
        seen[0]["flaws"]
    );
    let bare = text(&seen[0], "bare");
    for visible in
        ["<script onload=alert(1)>alert(2)</script>", "[U+202E]", "<img src=x onerror=alert(1)>.md"]
    {
        assert!(bare.contains(visible), "{visible}");
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
    assert!(text(&seen[1], "text").contains("▲ Key not given: the proof is intact"), "{}", seen[1]["text"]);
    let stands: Vec<&str> = seen[2]["stands"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(seen[2]["requests"], json!([]), "nothing is uploaded");
    for (stand, mark) in
        stands.iter().zip(["▲ Key not given", "● Valid", "▲ Key not given", "● Valid", "■ Proves nothing"])
    {
        assert!(stand.starts_with(mark), "{stands:?}");
    }
    assert_eq!(stands.len(), 5, "{stands:?}");
}
