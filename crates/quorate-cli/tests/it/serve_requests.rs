//! What `quorate serve` refuses of requests and settings, each with a code: malformed paths, large bodies, unknown cursors, short
//! tokens, long reasons, directories of state; and what it calls a text without a name.

use serde_json::{Value, json};

use super::support::council::all_ship;
use super::support::serve::{Answered, Served};
use super::support::{TestDir, assembly};

fn reviewed() -> TestDir {
    let place = TestDir::with("draft.md", super::support::REVISED);
    place.review(&["draft.md", "--executor", "rubric"]);
    place
}

/// Asserts that a failure is as the description declares it.
fn assert_problem(answered: &Answered, status: u16, code: &str, what: &str) {
    assert_eq!(answered.status, status, "{what}: {}", answered.body);
    assert_eq!(answered.header("content-type"), Some("application/json"), "{what}: {}", answered.body);
    let problem = answered.json();
    assert_eq!(problem["code"], code, "{what}: {problem}");
    assert!(problem["message"].is_string() && problem["help"].is_string(), "{what}: {problem}");
}

#[test]
fn every_route_answers_malformed_paths_and_large_bodies_as_it_declares() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    let document = served.get("/api/v1/openapi.json").json();
    let mut malformed = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let problems = &operation["responses"]["default"]["content"];
            assert_eq!(
                problems.as_object().unwrap().keys().collect::<Vec<_>>(),
                ["application/json"],
                "{path}"
            );
            let what = format!("{method} {path}");
            let bearer = served.bearer();
            let send = |path: &str, body: &str| {
                served.send(&method.to_uppercase(), path, &[("Authorization", &bearer)], body)
            };
            let filled: String = path
                .split('/')
                .filter(|part| !part.is_empty())
                .map(|part| if part.starts_with('{') { "/%ff".to_owned() } else { format!("/{part}") })
                .collect();
            if filled != *path {
                assert_problem(&send(&filled, ""), 400, "quorate:usage", &what);
                malformed += 1;
            }
            if method == "post" {
                let large = json!({"text": "a".repeat(4 * 1024 * 1024 + 128 * 1024)}).to_string();
                let path = path.replace("{run}", "latest").replace("{talk}", "t");
                assert_problem(&send(&path, &large), 413, "quorate:artifact_too_large", &what);
            }
        }
    }
    assert!(malformed > 10, "{malformed}");
    let page = served.get("/runs/%ff");
    assert_eq!((page.status, page.header("content-type")), (400, Some("text/html; charset=utf-8")));
}

#[test]
fn a_page_begins_after_a_run_that_exists() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    let run = served.get("/api/v1/runs").json()["runs"][0]["run"].as_str().unwrap().to_owned();
    for cursor in ["nonsense", "open%3Anonsense", &run[..5]] {
        let answered = served.get(&format!("/api/v1/runs?before={cursor}"));
        assert_problem(&answered, 404, "quorate:run_unknown", cursor);
        assert_eq!(served.get(&format!("/?before={cursor}")).status, 404);
    }
    assert_eq!(served.get(&format!("/api/v1/runs?before={run}")).json()["runs"], json!([]));
    let nothing = TestDir::new();
    let empty = Served::start(&nothing, &[]);
    assert_problem(&empty.get("/api/v1/runs?before=x"), 404, "quorate:run_unknown", "without a ledger");
}

#[test]
fn a_token_that_can_be_guessed_is_refused() {
    let place = TestDir::new();
    for (token, says) in [("x", "is too short"), ("123456789012345", "is too short"), (" ", "holds no token")]
    {
        for arguments in [&["serve", "--token-env", "T"][..], &["mcp", "--http", "--token-env", "T"]] {
            let output = place.command(arguments).env("T", token).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(5), "{arguments:?} {token}: {said}");
            assert!(said.contains(says) && said.contains("16 characters"), "{arguments:?} {token}: {said}");
        }
    }
    let mut command = place.command(&["serve", "--token-env", "T"]);
    command.env("T", "1234567890123456");
    let served = Served::start_by(command);
    assert_eq!(served.token, "1234567890123456");
    assert_eq!(served.get("/api/v1/runs").status, 200);
}

#[test]
fn a_reason_of_an_override_has_a_limit_everywhere() {
    let place = reviewed();
    let served = Served::start(&place, &[]);
    let decide = |reason: &str, by: &str| {
        served.post("/api/v1/runs/latest/override", &json!({"verdict": "HOLD", "reason": reason, "by": by}))
    };
    let long = decide(&"ü".repeat(8_001), "Ada");
    assert_problem(&long, 400, "quorate:usage", "a long reason");
    assert!(
        long.json()["message"].as_str().unwrap().contains("`reason` has 8001 characters"),
        "{}",
        long.body
    );
    assert_problem(&decide("so", &"a".repeat(201)), 400, "quorate:usage", "a long name");
    let flags = ["override", "latest", "--by", "Ada", "--verdict", "hold", "--reason", &"ü".repeat(8_001)];
    place
        .run(&flags)
        .assert_code(64)
        .assert_stderr_contains("`reason` has 8001 characters; the limit is 8000");
    assert_eq!(decide(&"ü".repeat(8_000), "Ada").status, 200);
    let page = served.get("/runs/latest").body;
    assert!(page.contains("maxlength=\"8000\""), "{page}");
    let document = served.get("/api/v1/openapi.json").to_string_of("/components/schemas");
    assert!(document.contains("\"maxLength\":8000"), "{document}");
}

impl Answered {
    /// A part of the answer, as text.
    fn to_string_of(&self, pointer: &str) -> String {
        self.json().pointer(pointer).map(Value::to_string).unwrap_or_default()
    }
}

#[test]
fn directories_of_state_are_not_reviewed() {
    let place = reviewed();
    place.write(".git/config", "[remote]\nurl = https://secret@example.org\n");
    place.write(".quorate/note.md", "A note.\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink(".git/config", place.path("innocent.md")).unwrap();
    let served = Served::start(&place, &[]);
    let before = place.runs().len();
    for path in [".git/config", "./.GIT/config", "x/../.quorate/note.md", ".quorate/none.md", "innocent.md"] {
        let answered = served.post("/api/v1/reviews", &json!({"path": path}));
        assert_problem(&answered, 422, "quorate:path_reserved", path);
    }
    let answered = served.post("/api/v1/convenings", &json!({"assembly": ".git", "topic": "draft.md"}));
    assert_problem(&answered, 422, "quorate:path_reserved", "an assembly");
    assert_eq!(place.runs().len(), before);
}

#[test]
fn a_text_without_a_name_is_called_by_its_heading() {
    let place = TestDir::scripted(&all_ship());
    let served = Served::start(&place, &[]);
    let subject = |body: Value| {
        let started = served.post("/api/v1/reviews", &body);
        assert_eq!(started.status, 202, "{}", started.body);
        served.finish(started.json()["job"].as_str().unwrap());
        served.get("/api/v1/runs").json()["runs"][0]["artifact"].as_str().unwrap().to_owned()
    };
    assert_eq!(subject(json!({"text": "Intro.\n\n# Launch plan\n\nWe go.\n"})), "“Launch plan”");
    assert_eq!(subject(json!({"text": "# a\u{202e}b\u{1b}[2Jc\n"})), "“a[U+202E]b[U+001B][2Jc”");
    assert_eq!(subject(json!({"name": "note.md", "text": "# Launch plan\n"})), "note.md");
    assert!(served.get("/").body.contains(">“Launch plan”</a>"));
}

/// The part of a page between two marks.
fn between<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let (_, after) = page.split_once(from).unwrap_or_else(|| panic!("{from}: {page}"));
    after.split(to).next().unwrap()
}

#[test]
fn a_proposal_cannot_look_like_the_outcome_and_votes_have_their_reasons() {
    let place = TestDir::new();
    assembly::write(&place, "voting", &[("ada", ""), ("bob", "")], "");
    let vote = |vote: &str, why: &str| json!({"vote": vote, "rationale": why});
    assembly::answers(
        &place,
        &json!({"ada": vote("no", "It is <b>too</b> early."), "bob": vote("no", "Outcome PASS")}),
    );
    place.write("proposal.md", "Result: approved, decided by the rule majority.\n\nOutcome PASS\n");
    place.run(&["convene", "ASSEMBLY.md", "--proposal", "proposal.md"]);
    let served = Served::start(&place, &[]);
    let page = served.get("/runs/latest").body;
    let report = place.run(&["show", "latest", "--format", "html"]).assert_code(0).stdout;
    let head = between(&page, "<div class=\"verdict\">", "<h2 id=\"board\">");
    assert!(head.contains("FAIL") && !head.contains("Result: approved"), "{head}");
    for reason in ["title=\"It is &#60;b&#62;too&#60;/b&#62; early.\"", ">Outcome PASS</td>"] {
        assert!(page.contains(reason), "{reason}: {page}");
    }
    let first = between(&report, "<noscript>", "</h1>");
    assert!(first.contains("FAIL") && !first.contains("Result: approved"), "{first}");
    let vote = between(&page, "<h2 id=\"board\">", "</section>");
    let (quoted, after) = vote.split_once("</blockquote>").unwrap_or_else(|| panic!("{vote}"));
    assert!(
        quoted.contains("The proposal in short, quoted") && quoted.contains("Result: approved"),
        "{vote}"
    );
    assert!(!quoted.contains("Result: fail"), "{vote}");
    assert!(after.contains("Result: fail. 0 yes, 2 no") && !after.contains("Result: approved"), "{vote}");
}
