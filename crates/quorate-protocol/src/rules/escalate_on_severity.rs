//! `escalate-on-severity`: the gravest of a node's children and its own (H2).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::branch::{Branch, Rollup, union};
use crate::answers::advice::Advice;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "escalate-on-severity";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
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

/// The highest severity of children and self, all evidence, the node's own concern; a parent may raise, not lower (H2).
/// What a child says of a severity that is higher than the node's own goes up with it: a 10 keeps its reason.
pub(crate) fn roll(_: &Rule, branch: &Branch) -> Option<Rollup> {
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
