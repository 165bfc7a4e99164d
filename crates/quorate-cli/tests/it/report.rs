//! `quorate report`: one file that proves what it shows, and `quorate ledger check-proof` that holds it to that.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::serve_browser::example_place;
use super::support::reports::{EXAMPLES, ledger_key, report};
use super::support::{CommandOutput, TestDir};

fn check(place: &TestDir, name: &str, key: &str) -> CommandOutput {
    place.run(&["ledger", "check-proof", name, "--key", key])
}

const SHOWS: &str = "The report shows the content of these records";

#[test]
fn a_report_of_every_kind_of_run_is_what_its_proof_says() {
    for (example, command, word) in EXAMPLES {
        let place = example_place(example);
        place.run(&command.split(' ').collect::<Vec<_>>());
        let (key, ..) = ledger_key(&place);
        let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
        assert!(whole.contains(&format!(">{word}</h2>")), "{example}");
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
        let root = place.root().to_str().unwrap().to_owned();
        let disclosed = disclosed(&place.read("short.html"));
        assert!(!disclosed.contains(&root) && disclosed.contains("outcome"), "{example}: a path is left");
        assert!(
            disclosed.contains(&root) || proof_of(&whole).contains(&root),
            "{example}: the test looks for nothing"
        );
    }
}

/// The page and what it embeds, as text.
fn disclosed(html: &str) -> String {
    format!("{html}\n{}", proof_of(html))
}

fn proof_of(html: &str) -> String {
    let encoded = html.split("id=\"proof\">").nth(1).unwrap().split('<').next().unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn the_frame_of_a_report_is_small() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    let whole = std::fs::read_to_string(report(&place, "report.html", &["--outcome-only"])).unwrap();
    let embedded: usize = whole
        .split("application/octet-stream")
        .skip(1)
        .map(|part| part.split("</script>").next().unwrap().len())
        .sum();
    assert!(whole.len() - embedded <= 40_000, "{} bytes besides what is embedded", whole.len() - embedded);
    assert!(whole.contains("default-src 'none'; script-src 'sha256-"), "the policy");
    for forbidden in ["src=", "http://", "https://", "javascript:", "style=", "onload", "@import", "url("] {
        let at = whole.find(forbidden);
        assert_eq!(at.map(|at| &whole[at.saturating_sub(30)..at + 30]), None, "{forbidden}");
    }
}

#[test]
fn no_change_of_a_report_passes() {
    let place = example_place("two-models");
    place.run(&["review", "draft.md"]);
    let (key, ..) = ledger_key(&place);
    let whole = std::fs::read_to_string(report(&place, "report.html", &[])).unwrap();
    let other = example_place("release-board");
    other.run(&EXAMPLES[0].1.split(' ').collect::<Vec<_>>());
    let foreign = proof_of(&std::fs::read_to_string(report(&other, "report.html", &[])).unwrap());
    let text = whole.split("data-input=\"0\">").nth(1).unwrap().split('<').next().unwrap();
    let changes = [
        ("a verdict", whole.replacen(">REVISE</span>", ">SHIP</span>", 1), "quorate:report_differs"),
        (
            "a sentence",
            whole.replacen("<h2 id=\"why\">", "<p>All is well.</p><h2 id=\"why\">", 1),
            "quorate:report_differs",
        ),
        (
            "a style",
            whole.replacen("</style>", "#verdict{display:none}</style>", 1),
            "quorate:report_differs",
        ),
        ("the script", whole.replacen("const find", "const found", 1), "quorate:report_differs"),
        ("the policy", whole.replacen("default-src 'none'", "default-src *", 1), "quorate:report_differs"),
        (
            "a second proof",
            whole.replacen(
                "<main",
                &format!(
                    "<script type=\"application/octet-stream\" id=\"proof\">{}</script><main",
                    STANDARD.encode(&foreign)
                ),
                1,
            ),
            "quorate:report_differs",
        ),
        ("the text", whole.replacen(text, &STANDARD.encode("All is well.\n"), 1), "quorate:report_differs"),
        ("no text", whole.replacen("class=\"text\"", "class=\"txet\"", 1), "quorate:report_differs"),
        (
            "another program",
            whole.replacen("content=\"Quorate ", "content=\"Quorate 9", 1),
            "drew it; this program",
        ),
        ("something behind it", whole.clone() + "<p>x</p>", "quorate:report_differs"),
        ("no proof", whole.replacen("id=\"proof\"", "id=\"other\"", 1), "quorate:proof_unreadable"),
        (
            "a damaged proof",
            whole.replacen("id=\"proof\">ey", "id=\"proof\">eyy", 1),
            "quorate:proof_unreadable",
        ),
    ];
    for (what, changed, code) in changes {
        assert_ne!(changed, whole, "{what}");
        place.write("other.html", changed);
        let said = check(&place, "other.html", &key);
        assert!(matches!(said.code, 1 | 5), "{what}: {}", said.code);
        said.assert_stderr_contains(code);
        assert!(!said.stdout.contains(SHOWS), "{what}");
    }
}

#[test]
fn an_override_is_shown_beside_the_verdict() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.run(&["review", "draft.md"]);
    place
        .run(&["override", "latest", "--verdict", "hold", "--reason", "legal", "--by", "Ada"])
        .assert_code(0);
    for more in [&[][..], &["--outcome-only"][..]] {
        let html = std::fs::read_to_string(report(&place, "report.html", more)).unwrap();
        assert!(
            html.contains(">HOLD</span></span> decided <span") && html.contains(">legal</span>"),
            "{more:?}"
        );
    }
}

#[test]
fn a_report_goes_nowhere_that_matters_and_warns_of_paths() {
    let place = TestDir::with("draft.md", "The meeting moved to Tuesday at ten.\n");
    place.write("quorate.toml", "");
    place.run(&["review", "draft.md"]);
    for path in
        [".quorate/ledger.db", ".quorate/council_log.jsonl", "quorate.toml", ".git/config", "keyring.toml"]
    {
        let before = std::fs::read(place.path(path)).ok();
        let said = place.run(&["report", "latest", "-o", path]).assert_code(5);
        said.assert_stderr_contains("quorate:file_unwritable");
        assert_eq!(std::fs::read(place.path(path)).ok(), before, "{path}");
    }
    let said = place.run(&["report", "latest", "-o", "report.html"]).assert_code(0);
    said.assert_stderr_contains("quorate:report_paths");
    let short = place.run(&["report", "latest", "--outcome-only", "-o", "report.html"]).assert_code(0);
    assert!(!short.stderr.contains("quorate:report_paths"), "{}", short.stderr);
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
