//! The share of yes votes that the rules ask for: that of the deciding rule, and those of quorums.

use quorate_protocol::Json;
use quorate_protocol::assembly::Rule;
use quorate_protocol::rules::votes;

use super::{AppliedRule, Decision, Report};

/// A share that the yes side needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// A fraction of the rule's base: 0 to 1.
    pub part: f64,
    /// The manifest's notation, or words.
    pub text: String,
    /// The rule that asks for it.
    pub rule: String,
    /// The position of the threshold on a line of all weights that starts with the yes side: 0 to 1.
    pub place: f64,
}

impl Report {
    /// The recorded rule that decided.
    pub fn deciding_rule(&self) -> Option<&AppliedRule> {
        let rule = self.decision.as_ref()?.rule.as_ref()?;
        self.rules.iter().find(|candidate| candidate.fired && candidate.id == *rule)
    }

    /// A rule as declared in the manifest.
    pub fn declared_rule(&self, id: &str) -> Option<&Rule> {
        self.declared_rules.iter().find(|declared| *declared.id == *id)
    }

    /// The share that the deciding rule asks for; `None` for rules without one.
    pub fn threshold(&self) -> Option<Needed> {
        let rule = self.deciding_rule()?;
        needed(self.decision.as_ref()?, &rule.id, &rule.kind, self.declared_rule(&rule.id))
    }

    /// The shares that declared quorums over all voters ask for, in order, besides that of the deciding rule.
    pub fn quorums(&self) -> Vec<Needed> {
        let Some(decision) = &self.decision else { return Vec::new() };
        let deciding = self.deciding_rule().map(|rule| &*rule.id);
        let others = self.declared_rules.iter().filter(|rule| {
            *rule.kind == *votes::QUORUM && rule.applies_to.is_none() && deciding != Some(&*rule.id)
        });
        others.filter_map(|rule| needed(decision, &rule.id, &rule.kind, Some(rule))).collect()
    }
}

fn needed(decision: &Decision, id: &str, kind: &str, declared: Option<&Rule>) -> Option<Needed> {
    let param = |key: &str| declared?.params.get(key);
    let (part, text) = match kind {
        votes::QUORUM => {
            let threshold = param("threshold")?;
            let text = threshold.as_str().map_or_else(|| threshold.to_string(), str::to_owned);
            (text.parse().ok()?, text)
        }
        votes::MAJORITY => (0.5, "more than half".to_owned()),
        votes::UNANIMITY => (1.0, "everybody".to_owned()),
        _ => return None,
    };
    let all = decision.yes + decision.no + decision.abstain + decision.missing;
    let is_cast = param("denominator").and_then(Json::as_str) == Some("cast");
    let counted = if is_cast { all - decision.abstain } else { all };
    let place = if all > 0.0 { part * counted / all } else { part };
    Some(Needed { part, text, rule: id.to_owned(), place })
}
