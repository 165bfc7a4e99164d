//! The list of runs and the audit, as pages and as JSON: filters, order, pages, charts with their tables.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::council::all_ship;
use super::support::serve::Served;
use super::support::{TestDir, wait_until};

fn ids(served: &Served, path: &str) -> Vec<String> {
    let listed = served.get(path);
    assert_eq!(listed.status, 200, "{path}: {}", listed.body);
    let listed = listed.json();
    listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

/// A decided run by Ada, then an open one whose process is gone, then a decided one.
fn three_runs() -> (TestDir, [String; 3]) {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"60s\"");
    place.write("operators/ada/OPERATOR.md", "---\nid: ada\nname: Ada\n---\nYou are Ada.\n");
    let decided = |text: &str, more: &[&str]| {
        place.write("draft.md", text);
        let review = place.review(&[&["draft.md", "--executor", "rubric"], more].concat());
        review["run"].as_str().unwrap().to_owned()
    };
    let first = decided("We are the best in the world.\n", &["--made-by", "ada"]);
    place.write("slow.md", "We meet at ten.\n");
    let mut slow = place.start(&["review", "slow.md"]);
    wait_until(Duration::from_secs(60), "the run is open", || place.runs().len() == 2);
    let is_open = |run: &&Value| run["open"] == true;
    let open = place.runs().iter().find(is_open).unwrap()["run"].as_str().unwrap().to_owned();
    slow.kill().unwrap();
    slow.wait().unwrap();
    let last = decided("We moved the meeting to ten.\n", &[]);
    (place, [first, open, last])
}

#[test]
fn open_runs_come_first_and_filters_hold_over_pages() {
    let (place, [first, open, last]) = three_runs();
    let served = Served::start(&place, &[]);
    let all = [open.clone(), last.clone(), first.clone()];
    assert_eq!(ids(&served, "/api/v1/runs"), all);
    let listed = place.run(&["runs", "--format", "json"]).assert_code(0).json();
    let said: Vec<&str> =
        listed["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(said, all);
    for (query, expected) in [
        ("mode=council", &all[..]),
        ("mode=voting", &[]),
        ("producer=ada", &all[2..]),
        ("producer=bob", &[]),
        ("producer=ada&mode=council&verdict=", &all[2..]),
        ("verdict=open", &all[..1]),
        ("since=7d&type=unclassified", &all[..]),
    ] {
        assert_eq!(ids(&served, &format!("/api/v1/runs?{query}")), expected, "{query}");
        // One by one, the pages have each run once.
        let (mut paged, mut next) = (Vec::new(), Some(String::new()));
        while let Some(before) = next {
            let page = served.get(&format!("/api/v1/runs?{query}&limit=1&before={before}")).json();
            paged.extend(
                page["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()),
            );
            next = page["next"].as_str().map(str::to_owned);
        }
        assert_eq!(paged, expected, "{query}");
        let shown = served.get(&format!("/?{query}")).body;
        for run in &all {
            assert_eq!(shown.contains(&format!("/runs/{run}\"")), expected.contains(run), "{query}: {run}");
        }
    }
    let flags = ["runs", "--producer", "ada", "--mode", "council", "--format", "json"];
    assert_eq!(place.run(&flags).assert_code(0).json()["runs"][0]["run"], *first);
    let refused = served.get("/api/v1/runs?mode=nonsense");
    assert_eq!((refused.status, refused.json()["message"].as_str().unwrap()), (400, "`mode` is nonsense"));
    place.run(&["runs", "--mode", "nonsense"]).assert_code(64);
    // The page of a filter leads to the next one with the filter.
    let page = served.get("/?mode=council&limit=1").body;
    assert!(page.contains(&format!("mode=council&#38;limit=1&#38;before=open%3A{open}")), "{page}");
}

#[test]
fn a_list_that_is_cut_says_how_many_more_there_are() {
    let (place, _) = three_runs();
    let cut = place.run(&["runs", "--limit", "1"]).assert_code(0);
    assert!(cut.stderr.contains("2 more runs are not shown: `--limit 3` shows all"), "{}", cut.stderr);
    let json = place.run(&["runs", "--limit", "2", "--format", "json"]).assert_code(0);
    assert!(json.stderr.contains("1 more run is not shown: `--limit 3` shows all"), "{}", json.stderr);
    assert_eq!(json.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["runs", "schema"]);
    for arguments in [&["runs", "--limit", "3"][..], &["runs", "--producer", "ada", "--limit", "1"]] {
        let whole = place.run(arguments).assert_code(0);
        assert!(!whole.stderr.contains("not shown"), "{arguments:?}: {}", whole.stderr);
    }
}

#[test]
fn a_list_says_who_blocks_who_is_missing_and_what_is_sealed() {
    let mut answers = all_ship();
    answers["r1/skeptic"] = json!({"would_block": true, "irreducible": false, "score": 2});
    answers["r2/skeptic"] = answers["r1/skeptic"].clone();
    answers["r1/evidence"] = json!("no JSON");
    answers["r2/evidence"] = json!("no JSON");
    let place = TestDir::scripted(&answers);
    place.review(&["draft.md"]);
    let served = Served::start(&place, &[]);
    let run = &served.get("/api/v1/runs").json()["runs"][0];
    assert_eq!((&run["blockers"], &run["missing"]), (&json!(["skeptic"]), &json!(["evidence"])), "{run}");
    assert_eq!(
        (&run["mode"], &run["producer"], &run["sealed"]),
        (&json!("council"), &Value::Null, &json!(true))
    );
    let page = served.get("/").body;
    assert!(page.contains("<td>skeptic blocks; no answer from evidence</td>"), "{page}");
    assert!(!page.contains(">Who</th>") && !page.contains(">Override</th>"), "no column is empty: {page}");
}

#[test]
fn what_no_checkpoint_covers_is_not_sealed() {
    let place = TestDir::scripted_slowly(&all_ship(), "delay = \"60s\"");
    let mut slow = place.start(&["review", "draft.md"]);
    wait_until(Duration::from_secs(60), "the run is open", || {
        place.path(".quorate/ledger.db").exists() && place.runs().len() == 1
    });
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!((&place.runs()[0]["sealed"], &place.runs()[0]["open"]), (&json!(false), &json!(true)));
    place.run(&["ledger", "checkpoint"]).assert_code(0);
    assert_eq!(place.runs()[0]["sealed"], true);
}

/// Reviews of several weeks by two producers: one gets stricter verdicts each week.
fn logged() -> TestDir {
    let place = TestDir::new();
    place.write("draft.md", "We moved the meeting to ten.\n");
    place.review(&["draft.md", "--executor", "rubric"]);
    let mut lines = place.read(".quorate/council_log.jsonl");
    let mut number = 0;
    for (week, ships) in [(0, 6), (1, 4), (2, 1)] {
        for review in 0..6 {
            number += 1;
            let verdict = if review < ships { "SHIP" } else { "HOLD" };
            let entry = |name: &str, block: bool| json!({"deliberator": name, "would_block": block, "status": "answered", "score": 4});
            let mut round =
                vec![entry("ann", review % 2 == 0), entry("ben", review % 2 == 0), entry("<i>cy</i>", false)];
            if number > 21 {
                round.pop();
            }
            if number > 7 {
                round.push(entry("dee", true));
            }
            let line = json!({
                "v": 2, "event": "verdict", "run": format!("x{number}"), "span_id": format!("x{number}"), "verdict": verdict,
                "artifact_type": "post", "ts": format!("2026-03-{:02}T10:00:00Z", 2 + week * 7 + review % 5),
                "round1": round, "round2": round, "producer": "ada",
            });
            lines.push_str(&format!("{line}\n"));
        }
    }
    for number in 0..3 {
        let round = [
            json!({"deliberator": "ann", "would_block": true}),
            json!({"deliberator": "ben", "would_block": false}),
        ];
        let line = json!({
            "v": 2, "event": "verdict", "span_id": format!("y{number}"), "verdict": "REVISE", "artifact_type": "memo",
            "ts": "2026-03-03T10:00:00Z", "round1": round, "producer": "<b>bob</b>",
        });
        lines.push_str(&format!("{line}\n"));
    }
    place.write(".quorate/council_log.jsonl", lines);
    place
}

#[test]
fn the_audit_has_producers_and_agreement_in_every_form() {
    let place = logged();
    let audit = place.run(&["audit", "--format", "json"]).assert_code(0).json();
    let served = Served::start(&place, &[]);
    assert_eq!(served.get("/api/v1/audit").json(), audit);
    let ada = audit["producers"].as_array().unwrap().iter().find(|one| one["producer"] == "ada").unwrap();
    assert_eq!((&ada["reviews"], &ada["verdicts"]), (&json!(18), &json!({"SHIP": 11, "HOLD": 7})));
    assert_eq!(ada["drift"]["direction"], "tightening", "{ada:#}");
    assert_eq!(ada["weeks"].as_array().unwrap().len(), 3);
    let pair = |first: &str, second: &str| {
        let pairs = audit["agreement"]["pairs"].as_array().unwrap();
        pairs
            .iter()
            .find(|pair| pair["members"] == json!([first, second]))
            .unwrap_or_else(|| panic!("{pairs:?}"))
            .clone()
    };
    let together = pair("ann", "ben");
    assert_eq!((&together["shared"], &together["agreement"]), (&json!(21), &json!(0.8571)));
    let rare = pair("ann", "dee");
    assert_eq!(
        (&rare["shared"], &rare["agreement"], &rare["kappa"]),
        (&json!(11), &Value::Null, &Value::Null)
    );
    let human = place.run(&["audit"]).assert_code(0).stdout;
    for said in [
        "Agreement of deliberators",
        "86% of 21",
        "too few: 18",
        "Producers by week",
        "what is made by ada is tightening",
    ] {
        assert!(human.contains(said) || human.replace('\n', " ").contains(said), "{said}: {human}");
    }
    let page = served.get("/audit").body;
    for said in [
        "86% of 21",
        "too few: 11",
        "<h2>Producers</h2>",
        "<th scope=\"row\">ada</th>",
        "<th scope=\"row\">&lt;b&gt;bob&lt;/b&gt;</th>",
        "<h2>Drift by week",
        "tightening",
        "role=\"img\"",
        "&#60;b&#62;bob&#60;/b&#62;",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // The page shows the same percentages as the command line.
    let shares = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '%');
        words.filter(|word| word.len() > 1 && word.ends_with('%')).map(str::to_owned).collect()
    };
    let deliberators = human.split("Deliberators").nth(1).unwrap().split("Drift by week").next().unwrap();
    let missing: Vec<String> = shares(deliberators).difference(&shares(&page)).cloned().collect();
    assert_eq!(missing, [] as [String; 0], "{page}");
    assert!(!page.contains("<b>bob") && !page.contains("<i>cy"), "{page}");
    // One type alone.
    let memos = served.get("/api/v1/audit?type=memo").json();
    assert_eq!((memos["producers"].as_array().unwrap().len(), &memos["reviews"]), (1, &json!(3)));
    assert_eq!(place.run(&["audit", "--type", "memo", "--format", "json"]).assert_code(0).json(), memos);
}
