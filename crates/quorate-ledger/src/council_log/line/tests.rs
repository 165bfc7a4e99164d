//! Lines in either form, and what is kept of them.

use super::*;

#[test]
fn a_line_of_the_published_schema_is_read() {
    // D6
    let line = Line::parse(
        br#"{"v":2,"ts":"2026-05-18T14:23:11.504Z","artifact":"a.md","artifact_type":"post",
            "round1":[{"deliberator":"skeptic","verdict":"revise","would_block":true,"irreducible":false},{"deliberator":"voice","status":"timed_out"}],
            "round2":[{"deliberator":"skeptic","would_block":false,"irreducible":false},{"deliberator":"voice","schema_failed":true}],
            "adjudicator":{"final_verdict":"REVISE","reasoning":"r"},"elapsed_seconds":312.4}"#,
    )
    .expect("read");
    assert_eq!((line.event, &*line.verdict, &*line.artifact_type), (Event::Verdict, "REVISE", "post"));
    assert_eq!(line.elapsed_ms, 312_400);
    assert_eq!(
        line.deliberators[0],
        ("skeptic".into(), Behavior { flipped: true, position: Some(false), ..Behavior::default() })
    );
    assert_eq!(
        line.deliberators[1].1,
        Behavior { schema_failed: true, timed_out: true, ..Behavior::default() }
    );
}

#[test]
fn a_line_of_the_public_tool_is_read() {
    // D6
    let line = Line::parse(
        br#"{"v":2,"span_id":"council-ab12","event":"verdict","ts":"2026-05-15T10:23:11Z","artifact_type":"memo","verdict":"HOLD",
            "deliberators":{"skeptic":{"r1_score":2,"r1_would_block":true,"r2_score":2,"r2_would_block":true,"r2_irreducible":true,"schema_failed":false,"error":null},
            "evidence":{"r1_would_block":true,"r2_score":null,"r2_would_block":false,"error":"TimeoutError: "}}}"#,
    )
    .expect("read");
    assert!(line.is_prior());
    let skeptic = Behavior {
        blocks: true,
        irreducible: true,
        first_score: 200,
        last_score: 200,
        position: Some(true),
        ..Behavior::default()
    };
    assert_eq!(line.deliberators[1].1, skeptic);
    assert_eq!(line.deliberators[0].1, Behavior { blocks: true, timed_out: true, ..Behavior::default() });
}

#[test]
fn scores_reprompts_and_tokens_are_read_in_either_form() {
    let public = Line::parse(
        br#"{"verdict":"SHIP","tokens":{"total":1200},"deliberators":{"a":{"r1_score":3,"r2_score":4.5,"reprompts":2}}}"#,
    );
    let marks = Behavior {
        first_score: 300,
        last_score: 450,
        reprompts: 2,
        position: Some(false),
        ..Behavior::default()
    };
    let public = public.expect("read");
    assert_eq!((public.tokens, public.deliberators), (1200, vec![("a".to_owned(), marks)]));
    let published = Line::parse(
        br#"{"round1":[{"deliberator":"a","would_block":false,"scores":{"x":2,"y":4}}],
            "round2":[{"deliberator":"a","would_block":false,"score":4.5}],
            "deliberators":{"a":{"reprompts":2}},"tokens_total":7}"#,
    );
    let published = published.expect("read");
    assert_eq!((published.tokens, published.deliberators), (7, vec![("a".to_owned(), marks)]));
    // Nothing that a line says is more than a sum can hold.
    for said in ["1e300", "-5", "\"many\"", "{\"total\": null}"] {
        let line = Line::parse(format!("{{\"tokens\": {said}}}").as_bytes()).expect("read");
        assert!((-1..=MAX_COUNT).contains(&line.tokens), "{said}");
    }
}

#[test]
fn a_position_is_the_answer_that_counts() {
    // C4
    let positions = |text: &str| {
        let line = Line::parse(text.as_bytes()).expect("read");
        line.positions()
            .into_iter()
            .map(|(name, block)| format!("{name}{}", u8::from(block)))
            .collect::<Vec<_>>()
    };
    let two_rounds = r#"{"verdict": "HOLD", "round1": [
        {"deliberator": "a", "would_block": true, "status": "answered"}, {"deliberator": "b", "would_block": false},
        {"deliberator": "c", "would_block": true}, {"deliberator": "d", "would_block": true, "schema_failed": true},
        {"deliberator": "e", "would_block": true}, {"deliberator": "e", "would_block": true}],
        "round2": [{"deliberator": "a", "would_block": false, "status": "answered"},
        {"deliberator": "b", "status": "timed_out"}, {"deliberator": "c", "would_block": false, "status": "schema_failed"},
        {"deliberator": "d", "status": "failed"}]}"#;
    assert_eq!(positions(two_rounds), ["a0", "c1"]);
    let one_round = r#"{"round1": [{"deliberator": "a", "would_block": true}, {"deliberator": "b", "would_block": false}], "round2": []}"#;
    assert_eq!(positions(one_round), ["a1", "b0"]);
    let public = r#"{"deliberators": {
        "a": {"r1_score": 2, "r1_would_block": true, "r2_score": null, "r2_would_block": false},
        "b": {"r1_score": 4, "r1_would_block": false, "r2_score": null, "r2_would_block": false},
        "c": {"r1_score": 4, "r1_would_block": false, "r2_score": 2, "r2_would_block": true},
        "d": {"r1_score": null, "r1_would_block": false, "error": "down"}}}"#;
    assert_eq!(positions(public), ["a1", "c1"]);
    let many: Vec<Value> = (0..=MAX_POSITIONS)
        .map(|n| serde_json::json!({"deliberator": format!("m{n}"), "would_block": true}))
        .collect();
    assert!(positions(&serde_json::json!({"round1": many}).to_string()).is_empty());
}

#[test]
fn odd_fields_cost_their_meaning_and_not_the_line() {
    let line =
        Line::parse(br#"{"artifact_type": 5, "verdict": "SHIP", "round1": "none"}"#).expect("an object");
    assert_eq!((&*line.artifact_type, &*line.verdict), ("unknown_type", "SHIP"));
    assert_eq!(Line::parse(b"[1]"), None);
    assert_eq!(Line::parse(b"{\"verdict\": \"SH"), None);
}

#[test]
fn a_line_that_follows_up_on_a_run_names_it() {
    // D6
    for line in [
        &br#"{"event": "override"}"#[..],
        br#"{"event": "override", "verdict": "SHIP"}"#,
        br#"{"event": "override", "run": "r1", "verdict": "SHIP"}"#,
        br#"{"event": "override", "run": "r1", "span_id": "r2", "verdict": "SHIP"}"#,
        br#"{"event": "override", "run": "r1", "span_id": "r1"}"#,
        br#"{"event": "override", "run": "r1", "span_id": "r1", "verdict": "MAYBE"}"#,
        br#"{"event": "resumed", "span_id": "r1", "verdict": "SHIP"}"#,
    ] {
        assert_eq!(Line::parse(line), None, "{}", String::from_utf8_lossy(line));
    }
    // The public tool has another word for it.
    let theirs =
        br#"{"event": "verdict", "parth_override": true, "span_id": "council-1", "verdict": "SHIP"}"#;
    let theirs = Line::parse(theirs).expect("read");
    assert_eq!((theirs.event, &*theirs.verdict, theirs.is_prior()), (Event::Overridden, "SHIP", true));
}

#[test]
fn incomplete_and_overrides_are_no_priors() {
    // C10
    assert!(!Line::parse(br#"{"verdict": "INCOMPLETE"}"#).expect("read").is_prior());
    let person = br#"{"event": "override", "run": "r1", "span_id": "r1", "verdict": "SHIP"}"#;
    assert!(!Line::parse(person).expect("read").is_prior());
    assert!(!Line::parse(br#"{"event": "sweep_complete", "verdict": "SHIP"}"#).expect("read").is_prior());
}
