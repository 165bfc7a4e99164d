//! What `quorate serve` shows of runs besides their reports: how far an open one is, an end for it, two of them compared, and
//! what deliberators changed.

use std::io::{BufRead as _, BufReader};
use std::slice;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::council::{COUNCIL, all_ship, all_ship_except};
use super::support::serve::Served;
use super::support::{TestDir, wait_until};

/// The data of the events of a stream with this name, until `enough`.
fn data_of(served: &Served, path: &str, name: &str, mut enough: impl FnMut(&Value) -> bool) -> Vec<Value> {
    let stream = served.open("GET", path, &[("Authorization", &served.bearer())], "");
    let (mut all, mut event) = (Vec::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(said) = line.strip_prefix("event: ") {
            event = said.to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ").filter(|_| event == name) {
            all.push(serde_json::from_str(data).unwrap());
            if enough(all.last().unwrap()) {
                return all;
            }
        }
    }
    panic!("{path} ended: {all:?}")
}

fn question<'s>(state: &'s Value, member: &str, step: &str) -> &'s Value {
    let members = state["members"].as_array().unwrap();
    let found =
        members.iter().find(|one| one["member"] == member).unwrap_or_else(|| panic!("{member}: {state}"));
    let questions = found["questions"].as_array().unwrap();
    questions.iter().find(|one| one["step"] == step).unwrap_or_else(|| panic!("{step}: {state}"))
}

#[test]
fn a_run_of_this_server_is_watched_and_cancelled() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"600s\"\ntimeout = \"10m\"");
    let served = Served::start(&place, &[]);
    let body = json!({"name": "draft.md", "text": "A draft.\n", "budget": {"calls": 20}});
    let started = served.post("/api/v1/reviews", &body).json();
    let run = started["run"].as_str().unwrap();
    let asked = |state: &Value| question(state, "skeptic", "r1")["state"] == "asked";
    let states = data_of(&served, &format!("/api/v1/runs/{run}/live/events"), "state", asked);
    let state = states.last().unwrap();
    assert_eq!(
        (&state["job"], &state["budget"]["calls"], &state["done"]),
        (&started["job"], &json!(20), &json!(0))
    );
    assert_eq!(state["steps"], json!(["r1", "r2", "adjudicate"]));
    assert_eq!(question(state, "skeptic", "r2")["state"], "waiting");
    assert_eq!(question(state, "adjudicator", "adjudicate")["state"], "waiting");
    assert_eq!(question(state, "skeptic", "r1")["limit_ms"], 600_000);
    let page = served.get(&format!("/runs/{run}")).body;
    for shown in [
        "data-of=\" of 10:00\"",
        "waits for skeptic, voice_identity and 2 more",
        ">0 of 9 answers<",
        "of 20 · <time",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains("Cancel the run") && !page.contains("Continue the run"), "{page}");
    let cancelled = served.post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!((cancelled.status, &cancelled.json()["cancelled"]), (200, &json!(true)));
    let again = served.post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!((again.status, &again.json()["code"]), (409, &json!("quorate:run_not_held")));
    let live = format!("/api/v1/runs/{run}/live");
    let interrupted = || served.get(&live).json()["state"] == "interrupted";
    wait_until(Duration::from_secs(20), "its members are gone", interrupted);
    let page = served.get(&format!("/runs/{run}/live")).body;
    assert!(page.contains("no process works on it") && !page.contains("Cancel the run"), "{page}");
    assert!(served.get(&format!("/runs/{run}")).body.contains("Continue the run"));
}

/// The answers of cancel, resume and override, which need a run in a certain state.
fn conflicts(served: &Served, run: &str) -> [(Value, String); 3] {
    let decision = json!({"verdict": "SHIP", "reason": "so be it", "by": "Ada"});
    [("cancel", json!({})), ("resume", json!({})), ("override", decision)].map(|(route, body)| {
        let answered = served.post(&format!("/api/v1/runs/{run}/{route}"), &body);
        assert_eq!(answered.status, 409, "{route}: {}", answered.body);
        let problem = answered.json();
        let said = format!("{} {}", problem["message"].as_str().unwrap(), problem["help"].as_str().unwrap());
        (problem["code"].clone(), said)
    })
}

#[test]
fn pages_and_answers_say_which_process_works_on_a_run_and_what_to_do() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"600s\"");
    let served = Served::start(&place, &[]);
    let mut review = Some(place.start(&["review", "draft.md"]));
    let listed = || served.get("/api/v1/runs").json()["runs"].as_array().unwrap().len() == 1;
    wait_until(Duration::from_secs(60), "the run is listed", listed);
    let run = served.get("/api/v1/runs/latest").json()["run"].as_str().unwrap().to_owned();
    assert_eq!(served.get("/api/v1/runs/latest/live").json()["state"], "elsewhere");
    for path in ["/runs/latest", "/runs/latest/live"] {
        let page = served.get(path).body;
        let says =
            page.contains("In progress") && page.contains("Another process of this machine works on it");
        assert!(says && !page.contains("Continue the run") && !page.contains("nterrupted"), "{path}: {page}");
    }
    let [cancelled, resumed, overridden] = conflicts(&served, &run);
    assert!(cancelled.1.contains("another process of this machine works on it"), "{cancelled:?}");
    assert_eq!(resumed.0, "quorate:run_moved");
    assert!(
        overridden.1.contains("works on it") && overridden.1.contains("wait until it ends"),
        "{overridden:?}"
    );
    // A watching page learns that the process is gone.
    data_of(&served, "/api/v1/runs/latest/live/events", "state", |state| {
        if let Some(mut review) = review.take() {
            review.kill().unwrap();
            review.wait().unwrap();
        }
        state["state"] == "interrupted"
    });
    for path in ["/runs/latest", "/runs/latest/live"] {
        let page = served.get(path).body;
        assert!(
            page.contains("Interrupted</h2>") && page.contains("no process works on it"),
            "{path}: {page}"
        );
        assert!(page.contains(&format!("quorate resume {run}")), "{path}: {page}");
        assert!(!page.contains("In progress") && !page.contains("Ctrl-C"), "{path}: {page}");
    }
    assert!(served.get("/runs/latest").body.contains("Continue the run"));
    let decision = json!({"verdict": "SHIP", "reason": "so be it", "by": "Ada"});
    for (route, body) in [("cancel", json!({})), ("override", decision)] {
        let answered = served.post(&format!("/api/v1/runs/{run}/{route}"), &body);
        let said = answered.json();
        let message = said["message"].as_str().unwrap();
        assert_eq!(answered.status, 409, "{said}");
        assert!(message.contains("it was interrupted, and no process works on it"), "{route}: {said}");
        assert!(said["help"].as_str().unwrap().contains(&format!("quorate resume {run}")), "{route}: {said}");
    }
    // The server resumes the run and reports it.
    let resumed = served.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    assert_eq!(resumed.status, 202, "{}", resumed.body);
    let here = || served.get("/api/v1/runs/latest/live").json()["state"] == "here";
    wait_until(Duration::from_secs(20), "this server works on it", here);
    let again = served.post(&format!("/api/v1/runs/{run}/resume"), &json!({}));
    let said = again.json();
    assert_eq!((again.status, &said["code"]), (409, &json!("quorate:run_moved")));
    assert!(said["message"].as_str().unwrap().contains("this server works on run"), "{said}");
    let page = served.get("/runs/latest").body;
    assert!(page.contains("This server works on it.") && page.contains("Cancel the run"), "{page}");
}

#[test]
fn a_run_of_another_process_is_seen_within_a_second_from_the_ledger_alone() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"1500ms\"");
    let served = Served::start(&place, &[]);
    let mut review = place.start(&["review", "draft.md"]);
    let listed = || served.get("/api/v1/runs").json()["runs"].as_array().unwrap().len() == 1;
    wait_until(Duration::from_secs(60), "the run is listed", listed);
    let states = data_of(&served, "/api/v1/runs/latest/live/events", "state", |state| state["ended"] == true);
    let seen = Instant::now();
    review.wait().unwrap();
    // The process ends after its last record.
    assert!(seen.elapsed() < Duration::from_secs(20));
    assert!(states.iter().all(|state| state["job"].is_null()));
    let last = states.last().unwrap();
    assert_eq!((&last["verdict"], &last["asked"], &last["done"]), (&json!("SHIP"), &json!(9), &json!(9)));
    assert_eq!(question(last, "evidence", "r2")["state"], "answered");
    assert_eq!(last["spent"]["calls"], 9);
    assert_eq!(&served.get("/api/v1/runs/latest/live").json(), last);
    let refused = served.post("/api/v1/runs/latest/cancel", &json!({}));
    assert_eq!(refused.status, 409, "{}", refused.body);
}

#[test]
fn a_member_that_is_asked_again_says_why() {
    let answers = all_ship_except(json!({"r1/skeptic": "no JSON at all"}));
    let place = TestDir::scripted(&answers);
    place.run(&["review", "draft.md"]);
    let served = Served::start(&place, &[]);
    let live = served.get("/api/v1/runs/latest/live").json();
    let skeptic = question(&live, "skeptic", "r1");
    assert_eq!(skeptic["state"], "missing", "{live}");
    assert!(skeptic["why"].as_str().unwrap().starts_with("schema failed"), "{skeptic}");
    assert!(skeptic["attempts"].as_u64().unwrap() > 1, "{skeptic}");
    let page = served.get("/runs/latest/live").body;
    assert!(
        page.contains("Members and steps") && page.contains("<span class=\"sub\">schema failed"),
        "{page}"
    );
}

/// Two reviews of one draft, the second of which finds something else.
fn reviewed_twice() -> (TestDir, Vec<String>) {
    let finding = |quote: &str, issue: &str| json!({"quote": quote, "issue": issue, "fix": "Say who."});
    let council = |first: Value, block: bool, verdict: &str| {
        all_ship_except(json!({
            "r1": {"would_block": true, "score": 2, "findings": first, "revision_brief": "Name the first source."},
            "r2": {"would_block": block, "irreducible": false, "score": 3, "findings": first, "revision_brief": "Name the second source."},
            "adjudicate": {"verdict": verdict, "reasoning": "So it is.", "revision_brief": "Name the source."},
        }))
    };
    let place = TestDir::scripted(&council(
        json!([finding("the best", "unproven"), finding("everybody", "who?")]),
        true,
        "REVISE",
    ));
    place.write("draft.md", "We are the best, says everybody.\n");
    place.run(&["review", "draft.md"]);
    place.answers(&council(json!([finding("the best", "a boast"), finding("soon", "vague")]), false, "SHIP"));
    place.write("draft.md", "We are the best, and it comes soon.\n");
    place.run(&["review", "draft.md"]);
    let runs: Vec<String> = place.runs().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect();
    assert_eq!(runs.len(), 2);
    (place, runs)
}

#[test]
fn two_runs_of_a_text_are_compared_the_same_everywhere() {
    let (place, runs) = reviewed_twice();
    let (b, a) = (&runs[0], &runs[1]);
    let served = Served::start(&place, &[]);
    let compared = served.get(&format!("/api/v1/compare?a={a}&b={b}")).json();
    assert_eq!(compared, place.run(&["compare", a, b, "--format", "json"]).assert_code(0).json());
    assert_eq!(compared, served.get("/api/v1/compare?b=latest").json(), "the run before is found");
    assert_eq!(compared, place.run(&["compare", "latest", "--format", "json"]).assert_code(0).json());
    let issues = |list: &Value| -> Vec<String> {
        let all = list.as_array().unwrap().iter().map(|one| one["issue"].as_str().unwrap().to_owned());
        let mut all: Vec<String> = all.collect();
        all.dedup();
        all
    };
    let findings = &compared["findings"];
    assert_eq!(
        (issues(&findings["new"]), issues(&findings["gone"])),
        (vec!["vague".into()], vec!["who?".into()])
    );
    let kept = &findings["kept"][0];
    assert_eq!((&kept["a"]["issue"], &kept["b"]["issue"]), (&json!("unproven"), &json!("a boast")));
    assert_eq!((&compared["same_text"], &compared["verdict_changed"]), (&json!(false), &json!(true)));
    let first = &compared["positions"][0];
    assert_eq!((&first["changed"], &first["b"]), (&json!(true), &json!("passes, score 3.0")));
    let human = place.run(&["compare", a, b]).assert_code(0).stdout;
    for said in ["; the text changed.", "Gone (", "New (", "Kept (", "vague"] {
        assert!(human.contains(said), "{said}: {human}");
    }
    let page = served.get(&format!("/compare?a={a}&b={b}")).body;
    for said in ["; the text changed.", "before: unproven", "Changed positions"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let run = served.get(&format!("/runs/{b}")).body;
    assert!(
        run.contains(&format!("/compare?a={a}&#38;b={b}"))
            || run.contains(&format!("/compare?a={a}&amp;b={b}")),
        "{run}"
    );
    assert!(run.contains("<del>first</del>") && run.contains("<ins>second</ins>"), "{run}");
    assert!(served.get("/compare").body.contains("name=\"b\""));
}

#[test]
fn a_page_says_what_a_reviewer_took_from_whom_as_far_as_the_records_do() {
    let finding = |quote: &str, issue: &str| json!({"quote": quote, "issue": issue, "fix": "Say who."});
    let answer = |block: bool, findings: &[Value]| json!({"would_block": block, "irreducible": false, "score": 3, "findings": findings});
    let (best, soon) = (finding("the best", "unproven"), finding("soon", "vague"));
    let mut answers = all_ship();
    (answers["r1/evidence"], answers["r2/evidence"]) =
        (answer(true, slice::from_ref(&best)), answer(true, slice::from_ref(&best)));
    answers["r1/skeptic"] = answer(false, slice::from_ref(&soon));
    answers["r2/skeptic"] = answer(true, &[soon, finding("the best", "as evidence says")]);
    answers["r2/skeptic"]["escalations"] = json!(["voice_identity is <b>wrong</b>."]);
    for (cross_read, sentence, is_taken) in [
        ("verdicts", "read the first positions and findings of all", true),
        ("findings", "without their positions", true),
        ("none", "No reviewer read another one&#39;s answer", false),
    ] {
        let place = TestDir::scripted(&answers);
        place.write("council.yaml", format!("{COUNCIL}protocol: {{cross_read: {cross_read}}}\n"));
        place.write("draft.md", "We are the best, and it comes soon.\n");
        place.run(&["review", "draft.md"]);
        let served = Served::start(&place, &[]);
        let page = served.get("/runs/latest").body;
        let flow = page.split("<h2 id=\"moves\">").nth(1).unwrap_or_else(|| panic!("{page}"));
        let flow = flow.split("</section>").next().unwrap();
        assert!(flow.contains(sentence), "{cross_read}: {flow}");
        let taken = flow.contains("from <strong>evidence</strong>: <q>unproven</q>");
        assert_eq!(taken, is_taken, "{cross_read}: {flow}");
        // A name in a member's own words proves nothing.
        assert!(
            !flow.contains("<strong>voice_identity</strong>")
                && flow.contains("says <q>voice_identity is &#60;b&#62;")
        );
        assert!(flow.contains("blocks: 1 of 4</td>") && flow.contains("blocks: 2 of 4, so"), "{flow}");
    }
}

#[test]
fn runs_that_have_nothing_in_common_are_not_compared() {
    let (place, runs) = reviewed_twice();
    place.write("note.md", "Another text.\n");
    place.run(&["review", "note.md"]);
    let served = Served::start(&place, &[]);
    let refused = served.get(&format!("/api/v1/compare?a={}&b=latest", runs[0]));
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("quorate:runs_incomparable")));
    place
        .run(&["compare", &runs[0], "latest"])
        .assert_code(5)
        .assert_stderr_contains("quorate:runs_incomparable");
    for (path, status) in [
        ("/api/v1/compare", 400),
        ("/api/v1/compare?b=nothing", 404),
        ("/api/v1/compare?b=latest", 404),
        ("/api/v1/compare?b=latest&c=1", 400),
        ("/compare?b=nothing", 404),
        ("/compare?c=1", 400),
    ] {
        assert_eq!(served.get(path).status, status, "{path}");
    }
    // A text has to be the same where it has no name.
    for text in ["One.\n", "Two.\n"] {
        place.run_with_stdin(&["review", "-"], text.as_bytes());
    }
    let unnamed: Vec<String> =
        place.runs()[..2].iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect();
    place.run(&["compare", &unnamed[1], &unnamed[0]]).assert_code(5);
    place.run(&["compare", "latest"]).assert_code(4).assert_stderr_contains("quorate:run_unknown");
}
