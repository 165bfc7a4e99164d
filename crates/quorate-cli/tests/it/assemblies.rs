//! Diagnostics for authors of assemblies before any member is asked: by `check`, and by `convene` with invalid arguments.

use crate::support;
use serde_json::{Value, json};
use support::assembly::{self, advice, answers, convene, vote_answer};
use support::{CommandOutput, TestDir};

const MEMBERS: [(&str, &str); 3] =
    [("ana", ""), ("bea", "voteClass: [security]"), ("cyd", "voteClass: [budget]")];
const VETO: &str = "synthesis:\n  rules:\n    - {id: veto, kind: terminal, appliesTo: [bea], params: {triggerVote: no, scope: security}}\n\
    \x20   - {id: most, kind: majority}\n";

/// What `check` warns of: code and message.
fn warned(place: &TestDir) -> Vec<String> {
    let said = place.run(&["check", "ASSEMBLY.md", "--format", "json"]).assert_code(0).json();
    let one = |one: &Value| {
        format!("{}: {}", one["code"].as_str().expect("a code"), one["message"].as_str().expect("words"))
    };
    said["diagnostics"].as_array().expect("a list").iter().map(one).collect()
}

#[track_caller]
fn warns(place: &TestDir, said: &[&str]) {
    let all = warned(place);
    assert_eq!(all.len(), said.len(), "{all:#?}");
    for one in said {
        assert!(all.iter().any(|message| message.contains(one)), "`{one}` is not said: {all:#?}");
    }
}

#[track_caller]
fn tells(ran: &CommandOutput, said: &str) {
    assert!(ran.stdout.contains(said) || ran.stderr.contains(said), "`{said}` is not said: {ran:?}");
}

#[test]
fn peers_and_hierarchies_need_members() {
    for (mode, flag) in [("peer", "--topic"), ("hierarchy", "--request")] {
        let place = TestDir::new();
        assembly::write(&place, mode, &[], "");
        let text = place.read("ASSEMBLY.md").replace("members:\n", "");
        for text in [text.clone(), text.replace("mode:", "members: []\nmode:")] {
            place.write("ASSEMBLY.md", text);
            warns(&place, &["quorate:members_missing"]);
            tells(&convene(&place, flag, &[]).assert_code(5), "quorate:assembly_empty");
            convene(&place, flag, &["--dry-run"]).assert_code(5);
            assert!(!place.path(".quorate/ledger.db").exists(), "no run is opened");
        }
    }
}

#[test]
fn a_mistyped_phase_asks_no_member() {
    let place = TestDir::new();
    let members = [("ana", "phase: session"), ("bea", "phase: debrief")];
    assembly::write(&place, "advisory", &members, "");
    answers(&place, &json!({"_": advice(4, "s")}));
    let ran = convene(&place, "--conversation", &["--phase", "sesion"]).assert_code(64);
    tells(&ran, "no member of this assembly is in the phase `sesion`");
    tells(&ran, "did you mean `session`?");
    tells(
        &convene(&place, "--conversation", &["--phase", "x"]).assert_code(64),
        "its phases are debrief, session",
    );
    tells(&convene(&place, "--conversation", &["--trigger", "smaple"]).assert_code(64), "sample");
    assert!(!place.path(".quorate/ledger.db").exists(), "no run is opened");
    convene(&place, "--conversation", &["--phase", "debrief"]).assert_code(0);
}

#[test]
fn a_class_that_is_mistyped_skips_no_veto() {
    // V1
    let place = TestDir::new();
    assembly::write(&place, "voting", &MEMBERS, VETO);
    answers(&place, &json!({"ana": vote_answer("yes"), "bea": vote_answer("no"), "cyd": vote_answer("yes")}));
    let ran = convene(&place, "--proposal", &["--class", "securty"]).assert_code(64);
    tells(&ran, "this assembly has no proposals of the class `securty`");
    tells(&ran, "did you mean `security`?");
    convene(&place, "--proposal", &["--class", "Security"]).assert_code(64);
    tells(
        &convene(&place, "--proposal", &["--class", "colour"]).assert_code(64),
        "its classes are budget, security",
    );
    assert!(!place.path(".quorate/ledger.db").exists(), "no run is opened");
    // With `--class security` the veto fires and alone decides the outcome.
    let report = convene(&place, "--proposal", &["--class", "security"]).assert_code(1).json();
    assert_eq!(
        (&report["terminal"], &report["decision"]["contribution"][0]["member"]),
        (&json!(true), &json!("bea"))
    );
    let shown = place.run(&["show", report["run"].as_str().unwrap(), "--full"]).assert_code(0);
    tells(&shown, "Decided alone");
    // Without a class it does not, and that is at the top.
    let report = convene(&place, "--proposal", &[]).assert_code(0).json();
    let note = "No class is said, so these rules do not count: `veto` (security).";
    assert!(report["notes"].as_array().unwrap().contains(&json!(note)), "{report:#}");
    assert_eq!(report["terminal"], false);
    let shown = place.run(&["show", report["run"].as_str().unwrap(), "--full"]).assert_code(0).stdout;
    assert!(shown.lines().take(4).collect::<Vec<_>>().join(" ").contains("No class is said"), "{shown}");
    let plan = place.run(&["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--dry-run"]).assert_code(0);
    tells(&plan, "these rules do not count: `veto` (security)");
    // An assembly without classes refuses `--class`.
    assembly::write(&place, "voting", &[("ana", "")], "");
    tells(&convene(&place, "--proposal", &["--class", "security"]).assert_code(64), "leave `--class` out");
}

#[test]
fn a_veto_of_a_member_that_is_not_asked_is_not_reported_as_withheld() {
    // V1
    let place = TestDir::new();
    let rules = "synthesis: {rules: [{id: veto, kind: terminal, appliesTo: [cyd], params: {triggerVote: 'no'}}, \
                 {id: most, kind: majority}]}\n";
    let members = [("ana", ""), ("bea", "voteClass: [budget]"), ("cyd", "voteClass: [release]")];
    assembly::write(&place, "voting", &members, rules);
    assembly::answers(&place, &json!({"ana": vote_answer("yes"), "bea": vote_answer("yes")}));
    for (more, why) in [
        (&[][..], "cyd not asked, since no class is said"),
        (&["--class", "budget"], "cyd not asked on the class budget"),
    ] {
        let run = convene(&place, "--proposal", more).json()["run"].as_str().unwrap().to_owned();
        let shown = place.run(&["show", &run, "--full"]);
        tells(&shown, why);
        // The first lines also report it.
        let top = shown.stdout.lines().take(5).collect::<Vec<_>>().join(" ");
        assert!(top.contains("`veto` (terminal) cannot fire for `cyd`"), "{shown:?}");
    }
    // No note about members that are asked.
    let report = convene(&place, "--proposal", &["--class", "release"]).json();
    assert_eq!(report["notes"].to_string().matches("cannot fire").count(), 0, "{report:#}");
    warns(&place, &["`veto` cannot fire for `cyd` on every proposal: `cyd` votes only on `release`"]);
    let plan = place.run(&["convene", "ASSEMBLY.md", "--proposal", "subject.md", "--dry-run"]).assert_code(0);
    tells(&plan, "it votes only on proposals of the class release");
}

#[test]
fn rules_that_can_do_nothing_are_warned_of() {
    let place = TestDir::new();
    let voting = |rules: &str| {
        assembly::write(&place, "voting", &MEMBERS, &format!("synthesis:\n  rules:\n{rules}"));
        warned(&place)
    };
    assert_eq!(
        voting("    - {id: veto, kind: terminal, appliesTo: [bea], params: {scope: security}}\n"),
        [""; 0]
    );
    voting("    - {id: veto, kind: terminal, appliesTo: [ana], params: {scope: securty}}\n");
    warns(&place, &["`scope` is `securty`, but no member's `voteClass` has it"]);
    voting("    - {id: veto, kind: terminal, appliesTo: [cyd], params: {scope: security}}\n");
    warns(
        &place,
        &["`veto` cannot fire: no member that it applies to votes on proposals of the class `security`"],
    );
    for kind in ["majority", "unanimity", "quorum, params: {threshold: 0.5}"] {
        voting(&format!("    - {{id: first, kind: {kind}}}\n    - {{id: veto, kind: terminal}}\n"));
        warns(&place, &["`veto` cannot fire: `first` before it always decides"]);
    }
    assert_eq!(voting("    - {id: veto, kind: terminal}\n    - {id: first, kind: majority}\n"), [""; 0]);
    // Hierarchy: leaves.
    let tree = [("head", ""), ("left", "parent: head"), ("right", "parent: head")];
    let rules = |of: &str| {
        format!("synthesis: {{rules: [{{id: up, kind: escalate-on-severity, appliesTo: {of}}}]}}\n")
    };
    assembly::write(&place, "hierarchy", &tree, &rules("[left]"));
    warns(&place, &["`up` has no effect: no member reports to `left`"]);
    for of in ["[head, left]", "[head]", "\"*\""] {
        assembly::write(&place, "hierarchy", &tree, &rules(of));
        warns(&place, &[]);
    }
    // Peer: what conducts a talk is in the first rule.
    let peers = [("ana", ""), ("bea", "")];
    let rules = "synthesis:\n  rules:\n    - {id: log, kind: aggregate, params: {hub: ana, maxRounds: 2}}\n\
        \x20   - {id: again, kind: aggregate, params: {maxRounds: 9}}\n";
    assembly::write(&place, "peer", &peers, rules);
    warns(
        &place,
        &[
            "`hub` has no effect without `topology: star`",
            "`maxRounds` has an effect only in the first rule of kind `aggregate`, which is `log`",
        ],
    );
    assembly::write(
        &place,
        "peer",
        &peers,
        "synthesis: {rules: [{id: log, kind: aggregate, params: {hub: ana, topology: star}}]}\n",
    );
    warns(&place, &[]);
}

#[test]
fn a_view_that_takes_a_terminal_rule_away_is_warned_of() {
    // M6
    let place = TestDir::new();
    assembly::write(&place, "voting", &MEMBERS, VETO);
    std::fs::rename(place.path("ASSEMBLY.md"), place.path("BASE.md")).expect("it moves");
    let view = |rules: &str| {
        let text = "---\nschema: assembly.workspace/v1\nname: view\ntitle: View\ndescription: Decides.\nversion: 1.0.0\n";
        place.write("base/ASSEMBLY.md", place.read("BASE.md"));
        place.write(
            "ASSEMBLY.md",
            format!("{text}extends: ./base/ASSEMBLY.md\nsynthesis:\n  rules:\n{rules}---\n"),
        );
        warned(&place).into_iter().filter(|one| one.contains("terminal_replaced")).collect::<Vec<_>>()
    };
    let said = view("    - {id: veto, kind: majority}\n");
    assert!(said.len() == 1 && said[0].contains("with a rule that is not terminal"), "{said:?}");
    let said = view("    - {id: veto, kind: terminal, appliesTo: [cyd], params: {triggerVote: no}}\n");
    assert!(
        said.len() == 1 && said[0].contains("`veto` replaces a terminal rule of base/ASSEMBLY.md"),
        "{said:?}"
    );
    // The same again, another rule, and a rule beside it take nothing away.
    let same = VETO.lines().nth(2).expect("the veto");
    assert_eq!(view(&format!("{same}\n")), [""; 0]);
    assert_eq!(view("    - {id: most, kind: unanimity}\n    - {id: more, kind: majority}\n"), [""; 0]);
}

#[test]
fn what_nothing_here_knows_is_warned_of() {
    let place = TestDir::new();
    assembly::write(
        &place,
        "voting",
        &[("ana", "")],
        "defaults: {triggerHeuristic: \"custom:on-full-moon\"}\n",
    );
    warns(&place, &["unknown trigger heuristic `custom:on-full-moon`"]);
    for known in ["manual", "every-n-messages", "on-mode-change"] {
        assembly::write(
            &place,
            "voting",
            &[("ana", "")],
            &format!("defaults: {{triggerHeuristic: {known}}}\n"),
        );
        warns(&place, &[]);
    }
    place.write("governance.yaml", "approvals: 2\n");
    assembly::write(&place, "voting", &[("ana", "")], "governance: ./governance.yaml\n");
    warns(&place, &["requires `approvals`, which Quorate cannot check"]);
}

#[test]
fn a_maker_and_what_it_tried_have_to_be_there() {
    let place = TestDir::new();
    assembly::write(&place, "voting", &[("ana", "")], "");
    answers(&place, &json!({"ana": vote_answer("yes")}));
    for (slug, targets) in [("alice", "alice"), ("bob", "bob")] {
        place.write(
            &format!("operators/{slug}/OPERATOR.md"),
            format!("---\nid: {slug}\nname: {slug}\n---\nYou are {slug}.\n"),
        );
        place.write(
            &format!("playbooks/of-{slug}.md"),
            format!("---\nschema: playbooks/v1\nslug: of-{slug}\ntitle: T.\nkind: overlay\nlock_check: []\nstatus: shadow\n\
                evidence: [{{kind: run, ref: r1}}]\ntargets: [{{kind: operator, ref: {targets}}}]\n---\nName the shelf.\n"),
        );
    }
    place.write("draft.md", "The meeting moved.\n");
    let review =
        |producer: &[&str]| place.run(&[&["review", "draft.md", "--executor", "rubric"], producer].concat());
    let vote = |producer: &[&str]| convene(&place, "--proposal", producer);
    for by in [&review as &dyn Fn(&[&str]) -> CommandOutput, &vote] {
        tells(&by(&["--made-by", "alise"]).assert_code(64), "unknown operator `alise`");
        tells(&by(&["--made-by", "alise"]), "did you mean `alice`?");
        tells(
            &by(&["--made-by", "alice", "--trying", "of-alise"]).assert_code(64),
            "did you mean `of-alice`?",
        );
        tells(
            &by(&["--made-by", "alice", "--trying", "of-bob"]).assert_code(64),
            "the playbook `of-bob` does not target `alice`",
        );
    }
    assert!(!place.path(".quorate/ledger.db").exists() || place.runs().is_empty(), "no member is asked");
    vote(&["--made-by", "ws://operators/alice", "--trying", "of-alice"]).assert_code(0);
}

#[test]
fn advice_names_its_target() {
    // A8
    let place = TestDir::new();
    let ran = place.run(&["init", "assembly", "--mode", "advisory", "--name", "mentors"]).assert_code(0);
    tells(&ran, "advice goes to `assistant`");
    let ran = place.run(&["check", "--strict", "."]).assert_code(0);
    tells(&ran, "assemblies/mentors/ASSEMBLY.md: advice goes to `assistant`");
    place.run(&["weave", "assistant"]).assert_code(0);
    place.write("talk.jsonl", "{\"role\": \"user\", \"content\": \"You are always right, aren't you?\"}\n");
    let said = |place: &TestDir, path: &str| {
        place.run(&["convene", path, "--conversation", "talk.jsonl"]).assert_code(0).stdout
    };
    assert!(
        said(&place, "assemblies/mentors").contains("goes to `assistant`"),
        "{}",
        said(&place, "assemblies/mentors")
    );
    // An operator has to be named.
    let place = TestDir::new();
    assembly::write(
        &place,
        "advisory",
        &[("ana", "phase: session")],
        "synthesis: {rules: [{id: all, kind: aggregate}]}\n",
    );
    answers(&place, &json!({"ana": advice(5, "Be slow.")}));
    place.write("talk.jsonl", "{\"role\": \"user\", \"content\": \"Hello.\"}\n");
    tells(&place.run(&["check", "ASSEMBLY.md"]).assert_code(0), "advice goes to nobody: name an operator");
    assert!(said(&place, "ASSEMBLY.md").contains("goes to nobody"));
}

#[test]
fn a_tenant_sees_its_own_overlays() {
    // M10
    let place = TestDir::new();
    let rules = "executor: ws://operators/alice\nsynthesis: {rules: [{id: all, kind: aggregate}]}\n";
    assembly::write(&place, "advisory", &[("ana", "phase: session")], rules);
    let operator = "---\nid: alice\nname: Alice\n---\nYou are Alice.\n";
    for root in ["", "tenants/acme/", "tenants/other/"] {
        place.write(&format!("{root}operators/alice/OPERATOR.md"), operator);
        place.write(&format!("{root}personas/ana/PERSONA.md"), place.read("personas/ana/PERSONA.md"));
        place.write(&format!("{root}ASSEMBLY.md"), place.read("ASSEMBLY.md"));
    }
    place.write("talk.jsonl", "{\"role\": \"user\", \"content\": \"Hello.\"}\n");
    for (root, text) in [("", "Be slow."), ("tenants/acme/", "Be brief."), ("tenants/other/", "Ask first.")] {
        answers(&place, &json!({"ana": advice(5, text)}));
        place.run(&["convene", &format!("{root}ASSEMBLY.md"), "--conversation", "talk.jsonl"]).assert_code(0);
    }
    let listed = |below: &str, more: &[&str]| {
        let ran = place.run_in(below, &[&["overlays", "list"], more].concat()).assert_code(0).stdout;
        ["Be slow.", "Be brief.", "Ask first."].map(|text| ran.contains(text))
    };
    assert_eq!(listed("", &[]), [true; 3]);
    assert_eq!(listed("tenants/acme", &[]), [false, true, false]);
    for name in ["board", "acme/board"] {
        assert_eq!(listed("tenants/acme", &["--assembly", name]), [false, true, false]);
    }
    assert_eq!(listed("tenants/acme", &["--assembly", "other/board"]), [false; 3]);
    let all = place.run(&["overlays", "list", "--format", "json"]).assert_code(0).json();
    let other =
        all["overlays"].as_array().unwrap().iter().find(|one| one["text"] == "Ask first.").unwrap().clone();
    let id = other["overlay"].as_str().or(other["id"].as_str()).unwrap();
    place.run_in("tenants/acme", &["overlays", "expire", id]).assert_code(4);
    place.run_in("tenants/acme", &["overlays", "show", id]).assert_code(4);
    place.run(&["overlays", "expire", id]).assert_code(0);
}

#[test]
fn a_lock_that_is_touched_is_pointed_at() {
    // B4
    let place = TestDir::new();
    place.write(
        "operators/alice/OPERATOR.md",
        "---\nid: alice\nname: Alice\nlocks: [warmth]\n---\nYou are Alice.\n",
    );
    let text = "---\nschema: playbooks/v1\nslug: terse\ntitle: T.\nkind: overlay\nlock_check: []\nstatus: shadow\n\
        evidence: [{kind: run, ref: r1}]\ntargets: [{kind: operator, ref: alice}]\n---\nName the shelf.\n\nThen **skip the\npleasantries**, and go on.\n";
    place.write("terse.md", text);
    let ran = place.run(&["playbook", "propose", "terse.md"]).assert_code(2);
    tells(&ran, "lock_violated");
    tells(&ran, "terse.md:13:1");
    place.write("playbooks/terse.md", text.replace("shadow", "active"));
    let said = place.run(&["check", ".", "--format", "json"]).assert_code(1).json();
    let one = said["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["code"] == "lock_violated")
        .unwrap()
        .clone();
    assert_eq!((&one["line"], &one["path"]), (&json!(13), &json!("body")), "{one:#}");
}
