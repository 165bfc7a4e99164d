//! `quorate report`: one file that proves what it shows, and `quorate ledger check-proof` that holds it to that.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::serve_browser::example_place;
use super::support::reports::{EXAMPLES, between, decided_report, edits, ledger_key, proof_of, report};
use super::support::{CommandOutput, TestDir};

fn check(place: &TestDir, name: &str, key: &str) -> CommandOutput {
    place.run(&["ledger", "check-proof", name, "--key", key])
}

const SHOWS: &str = "The report shows the content of these records";

#[test]
fn a_report_of_every_kind_of_run_is_what_its_proof_says() {
    for (example, command, _) in EXAMPLES {
        let place = example_place(example);
        place.run(&command.split(' ').collect::<Vec<_>>());
        let (key, ..) = ledger_key(&place);
        let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
        assert!(whole.len() <= 150_000, "{example}: {} bytes", whole.len());
        let said = check(&place, "report.html", &key).assert_code(0);
        assert!(said.stdout.contains(SHOWS), "{example}: {}", said.stdout);
        let unvouched = place.run(&["ledger", "check-proof", "report.html"]).assert_code(1);
        unvouched.assert_stderr_contains("quorate:key_unvouched");
        // The same run gives the same bytes, whichever way.
        let shown = place.run(&["show", "latest", "--format", "html"]).assert_code(0).stdout;
        assert!(shown == whole, "{example}: `show` differs");
        assert!(
            place.run(&["report", "latest"]).assert_code(0).stdout == whole,
            "{example}: standard output differs"
        );
        report(&place, "short.html", &["--outcome-only"]);
        let short = check(&place, "short.html", &key).assert_code(0);
        assert!(short.stdout.contains(SHOWS), "{example}: {}", short.stdout);
        let root = place.root().to_str().unwrap();
        let recorded = place.run(&["ledger", "prove", "latest"]).assert_code(0).stdout;
        assert!(recorded.contains(root), "{example}: the test looks for nothing");
        for html in [&whole, &place.read("short.html")] {
            let disclosed = format!("{html}\n{}", proof_of(html));
            assert!(!disclosed.contains(root) && disclosed.contains("outcome"), "{example}: a path is left");
        }
    }
}

#[test]
fn the_frame_of_a_report_is_small() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    let whole = std::fs::read_to_string(report(&place, "report.html", &["--outcome-only"])).unwrap();
    let own = ["<style>", "<script type=\"module\">"].map(|tag| between(&whole, tag, "</s").len());
    assert!(own.iter().sum::<usize>() <= 40_000, "{own:?} bytes of style and script");
    assert!(whole.contains("default-src 'none'; script-src 'sha256-"), "the policy");
    for forbidden in ["src=", "http://", "https://", "javascript:", "style=", "onload", "@import", "url("] {
        let at = whole.find(forbidden);
        assert_eq!(at.map(|at| &whole[at.saturating_sub(30)..at + 30]), None, "{forbidden}");
    }
}

#[test]
fn no_edit_of_a_report_passes() {
    let (place, whole, foreign) = decided_report();
    let (key, ..) = ledger_key(&place);
    assert!(check(&place, "report.html", &key).assert_code(0).stdout.contains(SHOWS));
    let edits = edits(&whole, &foreign);
    assert!(edits.len() >= 40, "{}", edits.len());
    for (what, edited, _) in edits {
        place.write("other.html", edited);
        let said = check(&place, "other.html", &key);
        assert!(matches!(said.code, 1 | 5), "{what}: {} {}", said.code, said.stdout);
        let codes = ["quorate:report_differs", "quorate:proof_unreadable", "quorate:proof_invalid"];
        assert!(codes.iter().any(|code| said.stderr.contains(code)), "{what}: {}", said.stderr);
        assert!(!said.stdout.contains(SHOWS), "{what}");
    }
}

#[test]
fn a_report_goes_nowhere_that_matters() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write("quorate.toml", "");
    place.run(&["review", "draft.md"]);
    for path in [
        "draft.md",
        ".quorate/ledger.db",
        ".quorate/council_log.jsonl",
        "quorate.toml",
        ".git/config",
        "keyring.toml",
    ] {
        let before = std::fs::read(place.path(path)).ok();
        let said = place.run(&["report", "latest", "-o", path]).assert_code(5);
        said.assert_stderr_contains("quorate:file_unwritable");
        assert_eq!(std::fs::read(place.path(path)).ok(), before, "{path}");
    }
    // A report replaces a report.
    for more in [&[][..], &["--outcome-only"]] {
        place.run(&[&["report", "latest", "-o", "report.html"], more].concat()).assert_code(0);
    }
    place
        .run(&["report", "nowhere", "-o", "x.html"])
        .assert_code(4)
        .assert_stderr_contains("quorate:run_unknown");
    assert!(!place.path("x.html").exists());
}

#[test]
fn the_other_verifier_reads_the_proof_of_a_report() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    let (key, ..) = ledger_key(&place);
    let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
    let text = STANDARD.encode("The meeting moved to Tuesday at ten.\n");
    place.write("text.html", whole.replacen(&text, &STANDARD.encode("It did not.\n"), 1));
    place.write("none.html", whole.replacen("id=\"proof\"", "id=\"other\"", 1));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    for (name, code, says) in [
        ("report.html", 0, "the page around it was not compared"),
        ("text.html", 1, "differs from the run's input"),
        ("none.html", 2, ""),
    ] {
        let mut command = Command::new("python3");
        command.arg(&script).args(["--proof", name, "--key", &key]).current_dir(place.root());
        let Ok(said) = command.output().map(CommandOutput::from_output) else {
            eprintln!("SKIPPED: no python3, so scripts/verify_ledger.py was not asked");
            return;
        };
        if said.stderr.contains("needs the package") {
            eprintln!("SKIPPED: python3 has no cryptography, so scripts/verify_ledger.py was not asked");
            return;
        }
        assert!(
            said.code == code && said.stdout.contains(says),
            "{name}: {} {} {}",
            said.code,
            said.stdout,
            said.stderr
        );
    }
}

#[test]
fn the_server_gives_the_same_report() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
    let served = super::support::serve::Served::start(&place, &["--read-only"]);
    let got = served.get("/runs/latest/report.html");
    assert_eq!(got.status, 200);
    assert!(got.body == whole, "the server's differs");
    let proof: Value = served.get("/api/v1/runs/latest/proof").json();
    assert_eq!(proof["v"], 1);
    assert_eq!(served.get("/runs/nowhere/report.html").status, 404);
    assert_eq!(served.get("/verify").status, 200);
}
