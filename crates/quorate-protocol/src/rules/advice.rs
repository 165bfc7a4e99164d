//! Advice and reports as rules see them, and `priority`: a member's advice on a certain concern takes precedence (A3).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde::Serialize;
use serde_json::json;

use crate::answers::advice::Advice;
use crate::assembly::Rule;
use crate::{Json, Name};

/// What a member gave, as rules see it.
pub(crate) struct MemberAdvice {
    pub(crate) member_index: usize,
    pub(crate) member: Name,
    pub(crate) advice: Advice,
    /// Whether it has a suggestion that no earlier rule has emitted (A4).
    pub(crate) may_emit: bool,
}

/// What a rule emits.
#[derive(Default)]
pub(crate) struct Emission {
    pub(crate) drafts: Vec<Draft>,
    /// Whose words made it fire.
    pub(crate) members: Vec<Name>,
    /// Whether it drops what earlier rules emitted and ends the synthesis.
    pub(crate) exclusive: bool,
}

/// A fragment that a rule asks for.
pub(crate) struct Draft {
    pub(crate) member_index: usize,
    pub(crate) priority: u8,
}

/// What a rule of a node looks at.
pub(crate) struct Branch {
    /// The node's own answer, where it has one.
    pub(crate) own: Option<Advice>,
    /// The reports of its children, in roster order, without those that passed up nothing.
    pub(crate) children: Vec<Child>,
}

/// The report of a child.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Child {
    /// The member's id.
    pub member: Name,
    /// What it passed up.
    #[serde(flatten)]
    pub advice: Advice,
}

/// What a rule makes of a branch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rollup {
    pub(crate) advice: Advice,
    /// The children that it is made of.
    pub(crate) sources: Vec<Name>,
}

/// All evidence in order, each piece once.
pub(crate) fn union<'a>(all: impl Iterator<Item = &'a Advice>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut union = Vec::new();
    for piece in all.flat_map(|one| &one.evidence) {
        if seen.insert(piece.as_str()) {
            union.push(piece.clone());
        }
    }
    union
}

/// The kind as a manifest writes it.
pub const PRIORITY: &str = "priority";

/// The constraints on such a rule in manifests.
pub fn priority_kind() -> RuleKind {
    RuleKind {
        modes: vec![Mode::Advisory],
        duration_params: &["ttl"],
        millisecond_params: &["ttlMs"],
        shadowed_params: &[("ttl", "ttlMs")],
        params: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "triggerKind": {"type": "string", "minLength": 1},
                "words": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
                "priority": {"type": "integer", "minimum": 0, "maximum": 100, "default": DEFAULT_PRIORITY},
                "ttl": {"type": "string", "minLength": 2},
                "ttlMs": {"type": "integer", "minimum": 1},
                "terminal": {"type": "boolean"}
            }
        }),
        ..RuleKind::default()
    }
}

/// The priority of what it emits unless said.
const DEFAULT_PRIORITY: u8 = 80;
/// The words of the concerns that are built in.
const CONCERN_WORDS: [(&str, &[&str]); 1] = [("sycophancy", &["sycoph", "pleas", "agree", "validat"])];

/// Selects advice whose concern has a word of the trigger (A3). A rule without words never fires.
pub(crate) fn advise_by_priority(rule: &Rule, heard: &[MemberAdvice]) -> Option<Emission> {
    let words = trigger_words(rule);
    let is_set = |advice: &&MemberAdvice| {
        let concern = advice.advice.concern.to_lowercase();
        words.iter().any(|word| concern.contains(word))
    };
    let firing: Vec<&MemberAdvice> =
        heard.iter().filter(|output| rule.applies_to_member(&output.member)).filter(is_set).collect();
    let priority = rule.u8_param("priority").unwrap_or(DEFAULT_PRIORITY);
    (!firing.is_empty()).then(|| Emission {
        drafts: firing.iter().map(|output| Draft { member_index: output.member_index, priority }).collect(),
        members: firing.iter().map(|output| output.member.clone()).collect(),
        exclusive: false,
    })
}

fn trigger_words(rule: &Rule) -> Vec<String> {
    let priority_kind = rule.text_param("triggerKind").map(str::to_lowercase);
    let built_in = priority_kind
        .as_deref()
        .and_then(|priority_kind| CONCERN_WORDS.iter().find(|(name, _)| *name == priority_kind));
    if let Some((_, words)) = built_in {
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let written = rule.params.get("words").and_then(Json::as_array);
    match written {
        Some(words) => words.iter().filter_map(Json::as_str).map(str::to_lowercase).collect(),
        None => priority_kind.map(|priority_kind| priority_kind.replace('-', " ")).into_iter().collect(),
    }
}
