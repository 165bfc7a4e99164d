//! `aggregate`: the gravest outputs, sorted; in peer mode the conduct of the rounds (A3, P1, P2, H2).
//! Also `escalate-on-severity`: the highest severity of a node's children and its own (H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::advice::{Branch, Child, Draft, Emission, MemberAdvice, Rollup, union};
use crate::answers::advice::Advice;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "aggregate";

/// What ends an exchange: no new objections, or all members pass.
pub(crate) const NO_NEW_OBJECTIONS: &str = "no-new-objections";
pub(crate) const ALL_PASS: &str = "all-pass";

/// The constraints on such a rule in manifests.
pub fn kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory, Mode::Peer, Mode::Hierarchy],
        member_params: &["hub"],
        member_map_params: &["peers"],
        rule_kind_params: &[("terminationRule", &[NO_NEW_OBJECTIONS, ALL_PASS])],
        duration_params: &["ttl"],
        millisecond_params: &["ttlMs"],
        always_decides: true,
        conditional_params: &["minSeverity", "maxSeverity"],
        mode_params: &[
            ("minSeverity", &[Mode::Advisory, Mode::Hierarchy]),
            ("maxSeverity", &[Mode::Advisory, Mode::Hierarchy]),
            ("topN", &[Mode::Advisory, Mode::Hierarchy]),
            ("priority", &[Mode::Advisory]),
            ("priorityBase", &[Mode::Advisory]),
            ("ttl", &[Mode::Advisory]),
            ("ttlMs", &[Mode::Advisory]),
            ("maxRounds", &[Mode::Peer]),
            ("terminationRule", &[Mode::Peer]),
            ("topology", &[Mode::Peer]),
            ("hub", &[Mode::Peer]),
            ("peers", &[Mode::Peer]),
            ("terminal", &[Mode::Advisory, Mode::Hierarchy]),
        ],
        shadowed_params: &[
            ("priorityBase", "priority"),
            ("ttl", "ttlMs"),
            ("topology", "peers"),
            ("hub", "peers"),
        ],
        first_rule_only_params: &["maxRounds", "terminationRule", "topology", "hub", "peers"],
        dependent_params: &[("hub", "topology", "star")],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "minSeverity": {"type": "integer", "minimum": 0, "maximum": 10, "default": 0},
                "maxSeverity": {"type": "integer", "minimum": 0, "maximum": 10, "default": 10},
                "topN": {"type": "integer", "minimum": 1, "default": "no limit"},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100},
                "priorityBase": {"type": "integer", "minimum": 0, "maximum": 100, "default": DEFAULT_PRIORITY},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "maxRounds": {"type": "integer", "minimum": 1, "maximum": 100},
                "terminationRule": {"type": "string", "minLength": 1},
                "topology": {"enum": ["fully-connected", "ring", "star"], "default": "fully-connected"},
                "hub": {"type": "string", "minLength": 1},
                "peers": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "string", "minLength": 1}}
                },
                "terminal": {"type": "boolean"}
            },
            "if": {"properties": {"topology": {"const": "star"}}, "required": ["topology"]},
            "then": {"required": ["hub"]}
        }),
        ..RuleKind::default()
    }
}

/// The priority of the gravest output unless said; each further one has one less.
const DEFAULT_PRIORITY: u8 = 50;
const MAX_PRIORITY: u8 = 100;

/// The gravest outputs within the bounds, sorted (A3).
pub(crate) fn advise(rule: &Rule, heard: &[MemberAdvice]) -> Option<Emission> {
    let bounds = Bounds::of(rule);
    let mut within: Vec<&MemberAdvice> = heard
        .iter()
        .filter(|output| {
            rule.applies_to_member(&output.member)
                && bounds.contains(output.advice.severity)
                && output.may_emit
        })
        .collect();
    within.sort_by_key(|output| gravest_first(&output.advice));
    within.truncate(bounds.top);
    let priority = |place: usize| match rule.u8_param("priority") {
        Some(priority) => priority,
        None => {
            let base = rule.u8_param("priorityBase").unwrap_or(DEFAULT_PRIORITY);
            base.saturating_sub(u8::try_from(place).unwrap_or(u8::MAX)).min(MAX_PRIORITY)
        }
    };
    let drafts = within.iter().enumerate();
    (!within.is_empty()).then(|| Emission {
        drafts: drafts
            .map(|(place, one)| Draft { member_index: one.member_index, priority: priority(place) })
            .collect(),
        members: within.iter().map(|output| output.member.clone()).collect(),
        exclusive: false,
    })
}

/// The gravest children as one: their highest severity, all their evidence, their concerns and suggestions in order
/// (H2).
pub(crate) fn roll(rule: &Rule, branch: &Branch) -> Option<Rollup> {
    let bounds = Bounds::of(rule);
    let mut within: Vec<&Child> =
        branch.children.iter().filter(|child| bounds.contains(child.advice.severity)).collect();
    within.sort_by_key(|child| gravest_first(&child.advice));
    within.truncate(bounds.top);
    let advice: Vec<&Advice> = within.iter().map(|child| &child.advice).collect();
    let joined = |text: fn(&Advice) -> &str| {
        let texts: Vec<&str> =
            advice.iter().map(|output| text(output)).filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    };
    let severity = advice.iter().map(|advice| advice.severity).max()?;
    Some(Rollup {
        advice: Advice {
            severity,
            concern: joined(|advice| &advice.concern),
            evidence: union(advice.iter().copied()),
            suggestion: joined(|advice| &advice.suggestion),
        },
        sources: within.iter().map(|child| child.member.clone()).collect(),
    })
}

/// Which outputs count, and how many.
struct Bounds {
    lowest: u8,
    highest: u8,
    top: usize,
}

impl Bounds {
    fn of(rule: &Rule) -> Self {
        let top =
            rule.integer_param("topN").map_or(usize::MAX, |top| usize::try_from(top).unwrap_or(usize::MAX));
        Bounds {
            lowest: rule.u8_param("minSeverity").unwrap_or(0),
            highest: rule.u8_param("maxSeverity").unwrap_or(u8::MAX),
            top,
        }
    }

    fn contains(&self, severity: u8) -> bool {
        (self.lowest..=self.highest).contains(&severity)
    }
}

/// Severity, then how much evidence there is, both descending; a stable sort leaves the roster's order.
fn gravest_first(advice: &Advice) -> (std::cmp::Reverse<u8>, std::cmp::Reverse<usize>) {
    (std::cmp::Reverse(advice.severity), std::cmp::Reverse(advice.evidence.len()))
}

/// The kind as a manifest writes it.
pub const ESCALATE_ON_SEVERITY: &str = "escalate-on-severity";

/// The constraints on such a rule in manifests.
pub fn escalate_on_severity_kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Hierarchy],
        always_decides: true,
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "severityFn": {"const": "max"},
                "evidenceFn": {"const": "union"},
                "emitRollup": {"const": true},
                "terminal": {"type": "boolean"}
            }
        }),
        ..RuleKind::default()
    }
}

/// The highest severity of children and self, all evidence, the node's own concern; a parent may raise, not lower (H2). A
/// child's report of a higher severity than the node's own goes up with it: a 10 keeps its reason.
pub(crate) fn roll_by_severity(_: &Rule, branch: &Branch) -> Option<Rollup> {
    let children: Vec<&Advice> = branch.children.iter().map(|child| &child.advice).collect();
    let own = branch.own.as_ref();
    let severity = children.iter().map(|child| child.severity).chain(own.map(|own| own.severity)).max()?;
    let of_children = |text: fn(&Advice) -> &str, least: u8| {
        let mut gravest_first: Vec<&Advice> =
            children.iter().copied().filter(|child| child.severity >= least).collect();
        gravest_first.sort_by_key(|child| std::cmp::Reverse(child.severity));
        let texts: Vec<&str> = gravest_first.into_iter().map(text).filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    };
    let text_of = |text: fn(&Advice) -> &str| match own.filter(|own| !text(own).is_empty()) {
        None => of_children(text, 0),
        Some(own) => [&*of_children(text, own.severity + 1), text(own)].join("\n").trim().to_owned(),
    };
    Some(Rollup {
        advice: Advice {
            severity,
            concern: text_of(|child| &child.concern),
            evidence: union(children.iter().copied().chain(own)),
            suggestion: text_of(|child| &child.suggestion),
        },
        sources: branch.children.iter().map(|child| child.member.clone()).collect(),
    })
}
