//! Trees as a protocol is given them, and a run in which answers arrive in any order.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{Member, Request, Setup};
use quorate_protocol::{Json, PartKind};
use serde_json::json;

use super::oracle::{self, End, Gives, Kind, Node, Rule, Says};
use crate::sitting::{self, Sitting};

/// The member of a seat.
pub(crate) fn name(seat: usize) -> String {
    format!("n{seat}")
}

fn seat_of(id: &str) -> usize {
    let digits = id.rsplit('n').next().unwrap_or_default();
    digits.parse().expect("a node's id ends in its seat")
}

pub(crate) fn setup(nodes: &[Node], rules: &[Rule]) -> Setup {
    let mut setup = sitting::setup(Mode::Hierarchy, Request::Hierarchy);
    let member = |(seat, node): (usize, &Node)| Member {
        parent: node.parent.map(|parent| name(parent).into()),
        ..sitting::member(&name(seat))
    };
    setup.members = nodes.iter().enumerate().map(member).collect();
    setup.rules = rules.iter().enumerate().map(|(at, one)| written(at, one)).collect();
    setup.locked_traits = vec![sitting::locked(oracle::LOCKED)];
    setup
}

fn written(at: usize, rule: &Rule) -> quorate_protocol::assembly::Rule {
    let (kind, params) = match &rule.kind {
        Kind::Escalate => ("escalate-on-severity", json!({})),
        Kind::Aggregate { top, least, most } => {
            ("aggregate", json!({"topN": top, "minSeverity": least, "maxSeverity": most}))
        }
        Kind::Terminal { trigger } => ("terminal", json!({"triggerSeverity": trigger})),
        Kind::Host(_) => ("custom:own", json!({})),
    };
    let of: Option<Vec<String>> = rule.of.as_ref().map(|of| of.iter().map(|seat| name(*seat)).collect());
    let of: Option<Vec<&str>> = of.as_ref().map(|of| of.iter().map(String::as_str).collect());
    sitting::rule(&format!("r{at}"), kind, of.as_deref(), params)
}

pub(crate) fn json_of(says: &Says) -> Json {
    json!({
        "severity": says.severity, "concern": says.concern,
        "evidence": says.evidence, "suggestion": says.suggestion,
    })
}

/// Runs a tree; `next` chooses who ends next among so many. Who is out is held against H1 after every step.
pub(crate) fn run(nodes: &[Node], rules: &[Rule], mut next: impl FnMut(usize) -> usize) -> Sitting {
    let setup = setup(nodes, rules);
    let ends = oracle::ends(nodes, rules);
    let mut sitting = Sitting::open(&setup, "r", "How is it going?");
    let mut ended = vec![false; nodes.len()];
    while !sitting.finished {
        asked_when_ready(nodes, &ended, &sitting);
        let out: Vec<String> = sitting.out.keys().map(ToString::to_string).collect();
        let id = &out[next(out.len())];
        let seat = seat_of(id);
        shown_its_children(nodes, &ends, seat, &sitting);
        match &nodes[seat].says {
            Some(says) => sitting.answer(id, json_of(says)),
            None => sitting.absent(id),
        }
        while let Some(apply) = sitting.applies.first().cloned() {
            let at: usize =
                apply.ticket.split('/').next().and_then(|at| at.parse().ok()).expect("the rule's place");
            let Kind::Host(gives) = &rules[at].kind else { panic!("{apply:?} is of no rule of the host's") };
            match gives {
                Gives::Nothing => sitting.ruled(&apply.ticket, Ok(Json::Null)),
                Gives::Fails => sitting.ruled(&apply.ticket, Err("it broke")),
                Gives::Nonsense => sitting.ruled(&apply.ticket, Ok(json!({"severity": "high"}))),
                Gives::Says(says) => sitting.ruled(&apply.ticket, Ok(json_of(says))),
            }
        }
        ended[seat] = true;
    }
    assert!(ended.iter().all(|ended| *ended), "everybody is asked before the root has ended");
    sitting
}

/// H1: out is exactly who has not ended and whose children all have.
fn asked_when_ready(nodes: &[Node], ended: &[bool], sitting: &Sitting) {
    let ready = |seat: &usize| !ended[*seat] && oracle::children(nodes, *seat).iter().all(|one| ended[*one]);
    let mut ready: Vec<String> = (0..nodes.len()).filter(ready).map(|seat| format!("node/n{seat}")).collect();
    let mut out: Vec<String> = sitting.out.keys().map(ToString::to_string).collect();
    ready.sort();
    out.sort();
    assert_eq!(out, ready, "who is asked, and whose children have ended");
}

/// H1, H3: a node with children is shown what they pass up, in roster order, and who passes nothing up.
fn shown_its_children(nodes: &[Node], ends: &[End], seat: usize, sitting: &Sitting) {
    let invoke = &sitting.out[format!("node/n{seat}").as_str()];
    let children = oracle::children(nodes, seat);
    let shown = sitting::part(invoke, PartKind::ChildrenOutputs);
    assert_eq!(shown.is_some(), !children.is_empty());
    let child = |child: &usize| match &ends[*child] {
        End::Passed(says, _) => {
            let mut shown = json_of(says);
            shown["member"] = json!(name(*child));
            shown["status"] = json!(if nodes[*child].says.is_some() { "passed" } else { "passed_up" });
            shown
        }
        End::Silent => json!({"member": name(*child), "status": "silent"}),
        End::Refused => json!({"member": name(*child), "status": "refused"}),
    };
    let expected: Vec<Json> = children.iter().map(child).collect();
    assert_eq!(shown.unwrap_or_else(|| json!([])), json!(expected));
}

/// Holds an outcome against the oracle's.
pub(crate) fn agrees(nodes: &[Node], rules: &[Rule], sitting: &Sitting) {
    let ends = oracle::ends(nodes, rules);
    let outcome = sitting.outcome();
    let root = (0..nodes.len()).find(|seat| nodes[*seat].parent.is_none()).expect("a tree has a root");
    for (seat, end) in ends.iter().enumerate() {
        let told = &outcome["nodes"][seat];
        let (status, output, rule) = match end {
            End::Passed(says, rule) => {
                let status = if nodes[seat].says.is_some() { "passed" } else { "passed_up" };
                (status, json_of(says), rule.map(|at| format!("r{at}")))
            }
            End::Silent => ("silent", Json::Null, None),
            End::Refused => ("refused", Json::Null, told["rule"].as_str().map(str::to_owned)),
        };
        assert_eq!(told["status"], status, "{seat} of {outcome:#}");
        assert_eq!(told.get("output").cloned().unwrap_or_default(), output, "{seat} of {outcome:#}");
        assert_eq!(told["rule"], json!(rule), "{seat} of {outcome:#}");
    }
    let verdict = match &ends[root] {
        End::Passed(..) => ("done", ""),
        End::Refused => ("refused", "locked"),
        End::Silent => ("refused", "no_output"),
    };
    assert_eq!((sitting.word("verdict"), sitting.word("code")), verdict, "{outcome:#}");
    let rollup = match &ends[root] {
        End::Passed(says, _) => json_of(says),
        _ => Json::Null,
    };
    assert_eq!(outcome.get("rollup").cloned().unwrap_or_default(), rollup);
    // X12
    let missing: Vec<String> =
        (0..nodes.len()).filter(|seat| nodes[*seat].says.is_none()).map(name).collect();
    assert_eq!(outcome["missing"], json!(missing));
    assert_eq!(outcome["partial"], !missing.is_empty());
    assert!(missing.is_empty() || outcome["risk"]["level"] != "ok", "{outcome:#}");
}

/// An outcome without the order in which things became known: rules and notes are listed as they come.
pub(crate) fn unordered(sitting: &Sitting) -> Json {
    let mut outcome = sitting.outcome().clone();
    for key in ["rules", "notes"] {
        let mut listed: Vec<String> =
            outcome[key].as_array().into_iter().flatten().map(ToString::to_string).collect();
        listed.sort();
        outcome[key] = json!(listed);
    }
    outcome
}
