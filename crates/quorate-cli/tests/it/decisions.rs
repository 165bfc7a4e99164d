//! Decision models in commands: they say tiers and vote, with their probabilities in the records, and they are refused where
//! a member writes findings, before any call.

use crate::support;
use quorate_testkit::decisions::{Asked, DecisionServer};
use serde_json::json;
use support::assembly::{self, convene};
use support::council::{COUNCIL, all_ship};
use support::{TestDir, records};

const WIRES: [&str; 2] = ["systemone", "decisions"];

/// The table of a decision model.
fn table(wire: &str, server: &DecisionServer) -> String {
    let url = &server.url;
    format!(
        "[executors.jev]\nkind = \"llm\"\nwire = \"{wire}\"\nmodel = \"jev\"\nbase_url = \"{url}\"\nretries = 0\n"
    )
}

fn with_more(place: &TestDir, more: &str) {
    let before = place.read("quorate.toml");
    place.write("quorate.toml", format!("{before}{more}"));
}

/// A council of scripted members that sorts its drafts by a model.
fn sorting(more: &str) -> TestDir {
    let place = TestDir::scripted(&all_ship());
    place.write(
        "council.yaml",
        format!("{COUNCIL}tier_classifier: {{type: model}}\nwatch: {{paths: [./drafts/]}}\n"),
    );
    place.write("drafts/a.md", "A widget for one team.\n");
    place.write("drafts/b.md", "To our customers.\n");
    place.write("drafts/c.md", "Nobody can tell.\n");
    with_more(&place, more);
    place
}

// C6
#[test]
fn a_decision_model_sorts_texts_and_its_doubt_is_the_strictest_tier() {
    let weigh = |asked: &Asked, option: &str| match (asked.state.contains("widget"), option) {
        (true, "2") => 8.0,
        (false, "1") if asked.state.contains("customers") => 8.0,
        _ => 1.0,
    };
    for wire in WIRES {
        let server = DecisionServer::start(weigh);
        let place = sorting(&format!("{}[council]\ntiers = \"jev\"\n", table(wire, &server)));
        let ran = place.run(&["sweep", "--format", "json", "--trust"]).assert_code(0);
        let files = ran.json()["files"].clone();
        let tiers: Vec<_> =
            files.as_array().unwrap().iter().map(|file| (&file["tier"], &file["fate"])).collect();
        let (skipped, judged) = (json!("tier_skipped"), json!("judged"));
        assert_eq!(tiers, [(&json!(2), &skipped), (&json!(1), &judged), (&json!(1), &judged)], "{wire}");
        ran.assert_stderr_contains("drafts/c.md counts as tier 1").assert_stderr_contains("threshold");
        assert_eq!(server.requests().len(), 3, "one question for each text");
        // A doubt is not an answer: it is asked for again, and the other two are not.
        place.run(&["sweep", "--format", "json", "--trust", "--force"]).assert_code(0);
        assert_eq!(server.requests().len(), 4);
    }
}

#[test]
fn a_vote_follows_the_probability_which_is_recorded() {
    const RULES: &str = "synthesis: {rules: [{id: all, kind: majority}]}\n";
    for wire in WIRES {
        for (probability, vote) in [(0.93, "yes"), (0.5, "abstain"), (0.07, "no")] {
            let server = DecisionServer::start(move |_, _| probability);
            let place = TestDir::new();
            assembly::write(&place, "voting", &[("ana", ""), ("bob", "")], RULES);
            assembly::answers(&place, &json!({"ana": assembly::vote_answer("yes")}));
            with_more(
                &place,
                &format!("{}[assemblies.board.members.bob]\nexecutor = \"jev\"\n", table(wire, &server)),
            );
            let report = convene(&place, "--proposal", &["--trust"]).json();
            let run = place.only_run();
            let records = records::records(&place.path(".quorate/ledger.db"), &run);
            let asked = records::of_kind(&records, "consultation");
            let of = |member: &str| asked.iter().find(|one| one["member"] == member).unwrap().clone();
            assert_eq!(of("bob")["answer"]["vote"], vote, "{wire}: {report}");
            assert_eq!(of("bob")["probabilities"], json!({"yes": probability}), "{wire}");
            assert_eq!(of("ana").get("probabilities"), None, "a script gives none");
            assert!(report.to_string().contains(&format!("{{\"yes\":{probability}}}")), "{report}");
            assert!(server.requests()[0].1["questions"].to_string().contains("You are bob."), "{wire}");
        }
    }
}

#[test]
fn a_decision_model_chooses_who_speaks_next_and_cannot_be_a_participant() {
    let manifest = |bo: &str| {
        format!(
            "schema: agentruntimes/v1\nkind: MultiAgentRuntime\nid: talk\nparticipants:\n\
             \x20 - {{id: ada, executor: script, displayName: Ada, config: {{path: answers.json}}}}\n\
             \x20 - {{id: bo, executor: {bo}, displayName: Bo, config: {{path: answers.json}}}}\n\
             substrate: {{kind: file, path: talk.md}}\ndispatcher: {{kind: llm-router, executor: jev, maxAgentTurns: 1}}\n"
        )
    };
    for wire in WIRES {
        let server = DecisionServer::start(|asked, option| match (asked.state.contains("plan"), option) {
            (true, "bo") => 9.0,
            (false, "(nobody)") if asked.state.contains("bye") => 9.0,
            _ => 1.0,
        });
        let place = TestDir::with("answers.json", r#"{"ada": "I do.", "bo": "Here."}"#);
        place.write("quorate.toml", table(wire, &server));
        place.write("swarm.yaml", manifest("script"));
        let ran = |text: &str| place.run(&["run", "swarm.yaml", "--trust", "--say", text]);
        assert!(ran("Who has the plan?").stdout.contains("Here."), "{wire}");
        assert!(!server.requests()[0].1["questions"].to_string().contains("the plan?"), "{wire}");
    }
    let server = DecisionServer::start(|_, _| 1.0);
    let place = TestDir::with("answers.json", "{}");
    place.write("quorate.toml", table("systemone", &server));
    place.write("swarm.yaml", manifest("jev").replace(", displayName: Bo, config: {path: answers.json}", ""));
    let refused = place.run(&["run", "swarm.yaml", "--trust"]);
    assert!(refused.stderr.contains("it cannot be a participant"), "{}", refused.stderr);
    assert_eq!(server.requests(), []);
}

#[test]
fn a_decision_model_is_refused_as_a_deliberator_before_any_call() {
    const REFUSAL: &str = "a decision model answers closed questions; it cannot be";
    let server = DecisionServer::start(|_, _| 1.0);
    for more in [
        "[council.members.skeptic]\nexecutor = \"jev\"\n",
        "[council.members.adjudicator]\nexecutor = \"jev\"\n",
        "[council.members.evidence]\nfallback = [\"jev\"]\n",
    ] {
        let place = TestDir::scripted(&all_ship());
        place.write("council.yaml", COUNCIL);
        with_more(&place, &format!("{}{more}", table("systemone", &server)));
        let ran = place.run(&["review", "draft.md", "--trust"]);
        assert!(ran.stderr.contains(REFUSAL), "{more}: {}", ran.stderr);
        ran.assert_code(5);
    }
    let place = TestDir::scripted(&all_ship());
    with_more(&place, &table("decisions", &server));
    place
        .run(&["review", "draft.md", "--executor", "jev", "--trust"])
        .assert_code(5)
        .assert_stderr_contains(REFUSAL);
    for (mode, flag) in [("peer", "--topic"), ("hierarchy", "--request")] {
        let place = TestDir::new();
        let rank = if mode == "hierarchy" { ["", "parent: ana"] } else { ["", ""] };
        assembly::write(&place, mode, &[("ana", rank[0]), ("bob", rank[1])], "");
        assembly::answers(&place, &json!({}));
        with_more(
            &place,
            &format!("{}[assemblies.board.members.bob]\nexecutor = \"jev\"\n", table("decisions", &server)),
        );
        let refused = convene(&place, flag, &["--trust"]).assert_code(5);
        assert!(refused.stdout.contains(REFUSAL), "{mode}: {}", refused.stdout);
    }
    assert_eq!(server.requests(), []);
}
