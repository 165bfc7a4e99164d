//! `quorate weave OPERATOR`: playbooks that are for an operator are in its prompt, in a fixed order; the others do not.

use crate::support;
use serde_json::Value;
use support::TestDir;

fn playbook(place: &TestDir, path: &str, head: &str, body: &str) {
    let slug = path.rsplit('/').next().unwrap().trim_end_matches(".md");
    let text = format!(
        "---
schema: playbooks/v1
slug: {slug}
title: About {slug}.
lock_check: []
evidence: [{{kind: run, ref: r1}}]
{head}
---
{body}
"
    );
    place.write(&format!("playbooks/{path}"), text);
}

/// An operator with a persona, and playbooks for it and for others.
fn workspace() -> TestDir {
    let place = TestDir::with("quorate.toml", "");
    place.write(
        "personas/ada/PERSONA.md",
        "---\nschema: persona/v1\ntitle: Ada\nname: ada\nversion: 1.0.0\ndescription: A librarian.\nvoice: {register: calm}\n---\nYou are Ada.\n",
    );
    place.write(
        "operators/alice/OPERATOR.md",
        "---\nid: alice\nname: Alice\nrole: role/librarian\npersona: ws://personas/ada\n---\nUnused.\n",
    );
    let overlay = "kind: overlay\nstatus: active\ncreated_at: \"2026-01-01T00:00:00Z\"";
    playbook(
        &place,
        "role/cite.md",
        &format!("{overlay}\ntargets: [{{kind: role, ref: librarian}}]"),
        "Cite.",
    );
    playbook(
        &place,
        "operator/first.md",
        &format!("{overlay}\npriority: 70\nselector: {{identity: alice}}"),
        "Ask first.",
    );
    playbook(
        &place,
        "operator/brisk.md",
        "kind: block-replacement\nblock: voice\nstatus: active\ntargets: [{kind: operator, ref: \"operator/al*\"}]",
        "## Voice\n\nBe brisk.",
    );
    playbook(
        &place,
        "shade.md",
        "kind: overlay\nstatus: shadow\ntargets: [{kind: role, ref: librarian}]",
        "Private: do not read.",
    );
    playbook(
        &place,
        "over.md",
        &format!("{overlay}\nttl: P1D\nselector: {{role: librarian}}"),
        "It is over.",
    );
    playbook(
        &place,
        "skilled.md",
        &format!("{overlay}\ntargets: [{{kind: skill, ref: \"re*\"}}]"),
        "Research.",
    );
    playbook(&place, "other.md", &format!("{overlay}\nselector: {{role: engineer}}"), "For engineers.");
    playbook(&place, "_draft.md", overlay, "No playbook at all.");
    place
}

const WOVEN: &str = "You are Ada.\n\n## Voice\n\nBe brisk.\n\nAsk first.\n\nCite.\n";

#[test]
fn what_is_for_an_operator_is_woven_in_order() {
    // B1, B2, B3, B9, B11
    let place = workspace();
    let ran = place.run(&["weave", "alice"]).assert_code(0);
    assert_eq!(ran.stdout, WOVEN);
    for said in [
        "woven    first at priority 70, never gated\n",
        "woven    brisk at priority 50 in place of `voice`, never gated\n",
        "skipped  over: it has expired\n",
        "skipped  shade: it is in shadow\n",
    ] {
        ran.assert_stderr_contains(said);
    }
    assert_eq!(place.run(&["weave", "ws://operators/alice"]).assert_code(0).stdout, WOVEN);
    // Skills are read at the time; the playbooks of other operators are ignored.
    let skilled = place.run(&["weave", "alice", "--skill", "research"]).assert_code(0).stdout;
    assert_eq!(skilled, format!("{}\n\nResearch.\n", WOVEN.trim_end()));
    assert!(!ran.stderr.contains("other"), "{}", ran.stderr);
}

#[test]
fn a_shadow_leaves_no_trace_in_the_prompt() {
    // B6
    let place = workspace();
    let with = place.run(&["weave", "alice"]).assert_code(0).stdout;
    std::fs::remove_file(place.path("playbooks/shade.md")).unwrap();
    std::fs::remove_file(place.path("playbooks/over.md")).unwrap();
    assert_eq!(place.run(&["weave", "alice"]).assert_code(0).stdout, with);
}

#[test]
fn it_is_shown_in_words_as_json_and_as_a_diff() {
    let place = workspace();
    let explained = place.run(&["weave", "alice", "--explain"]).assert_code(0).stdout;
    assert!(
        explained.contains("skipped  shade: it is in shadow\n") && explained.contains("about 13 tokens"),
        "{explained}"
    );
    let json = place.run(&["weave", "alice", "--format", "json"]).assert_code(0).json();
    let woven: Vec<&str> =
        json["woven"].as_array().unwrap().iter().filter_map(|one| one["playbook"].as_str()).collect();
    assert_eq!(woven, ["first", "cite", "brisk"]);
    assert_eq!(
        (&json["operator"], &json["prompt"]),
        (&Value::from("ws://operators/alice"), &Value::from(WOVEN.trim_end()))
    );
    let diff = place.run(&["weave", "alice", "--format", "diff"]).assert_code(0).stdout;
    for line in ["+Be brisk.", "+Ask first.", "+Cite."] {
        assert!(diff.lines().any(|one| one == line), "{line} in {diff}");
    }
}

#[test]
fn a_playbook_that_is_refused_is_not_woven_and_named() {
    let place = workspace();
    playbook(
        &place,
        "broken.md",
        "kind: overlay\nstatus: active\npriority: 200\nselector: {role: librarian}",
        "Broken.",
    );
    let ran = place.run(&["weave", "alice"]).assert_code(0);
    assert_eq!(ran.stdout, WOVEN);
    ran.assert_stderr_contains("playbook_invalid").assert_stderr_contains("broken.md");
    place.run(&["weave", "nobody"]).assert_code(4);
    place.run(&["weave"]).assert_code(64);
    place.run(&["weave", "alice", "--persona", "ada"]).assert_code(64);
}
