//! `priority`: a member's advice on a certain concern takes precedence (A3).

use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::RuleKind;
use serde_json::json;

use super::advice::{Draft, Emission, MemberAdvice};
use crate::Json;
use crate::assembly::Rule;

/// The kind as a manifest writes it.
pub const KIND: &str = "priority";

/// What a manifest may say about such a rule.
pub fn kind() -> RuleKind {
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
const BUILT_IN: [(&str, &[&str]); 1] = [("sycophancy", &["sycoph", "pleas", "agree", "validat"])];

/// Selects advice whose concern has a word of the trigger (A3). A rule without words never fires.
pub(crate) fn advise(rule: &Rule, heard: &[MemberAdvice]) -> Option<Emission> {
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
    let kind = rule.text_param("triggerKind").map(str::to_lowercase);
    let built_in = kind.as_deref().and_then(|kind| BUILT_IN.iter().find(|(name, _)| *name == kind));
    if let Some((_, words)) = built_in {
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let written = rule.params.get("words").and_then(Json::as_array);
    match written {
        Some(words) => words.iter().filter_map(Json::as_str).map(str::to_lowercase).collect(),
        None => kind.map(|kind| kind.replace('-', " ")).into_iter().collect(),
    }
}
