//! Playbooks in `quorate serve`: their list, versions, the evidence of a gate with the runs that count, and what each changes in
//! prompts.

use serde_json::{Value, json};

use super::support::council::all_ship_except;
use super::support::playbooks::workspace::{delta, draft, propose, workspace};
use super::support::serve::Served;
use super::support::{TestDir, assembly};

const SCRIPTED: &str = "defaults.executor = \"script\"\n[executors.script]\nkind = \"script\"\npath = \"answers.json\"\n\
    [playbooks]\nmin_sample = 3\nerror_rate = 0.2\n";

/// A playbook in shadow that has won four pairs.
fn tried() -> TestDir {
    let place = workspace(SCRIPTED);
    assembly::answers(&place, &json!({}));
    propose(&place, &delta("cite", json!({}))).assert_code(0);
    for n in 0..4 {
        for (verdict, producer) in [("SHIP", &["--trying", "cite"][..]), ("HOLD", &[])] {
            place.write("draft.md", draft(2 * n + u32::from(verdict == "SHIP")));
            let adjudication =
                json!({"verdict": verdict, "reasoning": "So it is.", "revision_brief": "Name the day."});
            assembly::answers(&place, &all_ship_except(json!({"adjudicate": adjudication})));
            place.run(&[&["review", "draft.md", "--made-by", "alice"], producer].concat());
        }
    }
    place
}

#[test]
fn the_evidence_of_a_gate_is_shown_with_its_runs() {
    let place = tried();
    let served = Served::start(&place, &[]);
    let listed = place.run(&["playbook", "list", "--format", "json"]).assert_code(0).json();
    assert_eq!(served.get("/api/v1/playbooks").json(), listed);
    let playbook = served.get("/api/v1/playbooks/cite").json();
    let shown = place.run(&["playbook", "show", "cite", "--format", "json"]).assert_code(0).json();
    for key in ["slug", "status", "priority", "operators", "version", "drifted", "intact", "body"] {
        assert_eq!(playbook[key], shown[key], "{key}");
    }
    let history = place.run(&["playbook", "history", "cite", "--format", "json"]).assert_code(0).json();
    assert_eq!(playbook["versions"], history["versions"]);
    let trial = &playbook["trial"];
    let counts = ["with", "without", "wins", "losses", "min_sample"].map(|key| trial[key].as_u64().unwrap());
    assert_eq!(counts, [4, 4, 4, 0, 3], "{trial}");
    assert_eq!((&trial["threshold"], &trial["passes"]), (&json!(5.0), &json!(true)));
    let course: Vec<f64> = trial["course"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(
        course.len() == 4 && course.is_sorted() && Some(course[3]) == trial["evidence"].as_f64(),
        "{course:?}"
    );
    assert_eq!(trial["runs"].as_array().unwrap().len(), 8);
    let diff = playbook["prompts"][0]["diff"].as_array().unwrap();
    let added: String = diff
        .iter()
        .filter(|piece| piece["change"] == "added")
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    assert!(added.contains("Name the shelf when cite comes up."), "{diff:?}");
    let page = served.get("/playbooks/cite").body;
    for said in [
        "<polyline",
        "The gate a-b would open.",
        "4 of at least 3",
        "Runs that count",
        "<td>created</td>",
        "<ins>",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // The gate agrees, and the promotion is a version with its gate.
    place.run(&["playbook", "promote", "cite", "--gate", "a-b"]).assert_code(0);
    let promoted = served.get("/api/v1/playbooks/cite").json();
    let last = promoted["versions"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["gate"], &promoted["status"]),
        (&json!("promoted"), &json!("a-b"), &json!("active"))
    );
    // The page lists what the command line lists, in its order and words.
    let history = place.run(&["playbook", "history", "cite", "--format", "json"]).assert_code(0).json();
    assert_eq!(promoted["versions"], history["versions"]);
    let human = place.run(&["playbook", "history", "cite"]).assert_code(0).stdout;
    let page = served.get("/playbooks/cite").body;
    let mut rest = page.split("id=\"versions\"").nth(1).unwrap();
    let heads =
        ["version", "at", "what", "by", "in words"].map(|head| format!("<th scope=\"col\">{head}</th>"));
    assert!(rest.contains(&heads.concat()), "{rest}");
    for (n, what) in [(1, "created"), (2, "promoted")] {
        assert!(human.contains(what), "{what}: {human}");
        let (_, after) = rest
            .split_once(&format!("<th scope=\"row\"><strong>{n}</strong></th>"))
            .unwrap_or_else(|| panic!("{rest}"));
        assert!(after.split("</tr>").next().unwrap().contains(&format!("<td>{what}</td>")), "{after}");
        rest = after;
    }
    let file = promoted["file"].as_str().unwrap();
    assert!(rest.contains("passed the gate a-b") && human.contains("passed the gate a-b"), "{rest}");
    place.write(file, format!("{}\nBy hand.\n", place.read(file)));
    let page = served.get("/playbooks/cite").body;
    let said = "It was edited by hand since: run `quorate playbook repair` to accept the change.";
    place
        .run(&["playbook", "history", "cite"])
        .assert_code(0)
        .assert_stdout_contains("It was edited by hand since");
    assert!(
        page.contains(said) && page.contains("active, never gated, edited by hand since its last version"),
        "{page}"
    );
    assert!(served.get("/playbooks").body.contains("/playbooks/cite"));
}

#[test]
fn a_playbook_that_is_unknown_edited_or_without_a_ledger_is_told() {
    let place = workspace("");
    let served = Served::start(&place, &[]);
    assert_eq!(served.get("/api/v1/playbooks").json(), json!({"playbooks": []}));
    let unknown = served.get("/api/v1/playbooks/nothing");
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("quorate:playbook_unknown")));
    assert_eq!(served.get("/playbooks/..%2F..%2Fetc").status, 404);
    super::support::playbooks::workspace::write_playbook(
        &place,
        "by-hand",
        "status: shadow",
        "Be <b>kind</b>.",
    );
    let view = served.get("/api/v1/playbooks/by-hand").json();
    assert_eq!((&view["trial"], &view["versions"]), (&Value::Null, &json!([])), "{view}");
    let page = served.get("/playbooks/by-hand").body;
    assert!(page.contains("&#60;b&#62;kind") && !page.contains("<b>kind"), "{page}");
}
