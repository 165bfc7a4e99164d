//! The embedded prompts, by the name that `prompt: builtin:<name>` uses.

use std::sync::Arc;

use super::Prompt;

/// The prefix of a `prompt` that names an embedded one.
pub const PREFIX: &str = "builtin:";

/// Name and text, deliberators in roster order, the adjudicator last.
const PROMPTS: [(&str, &str); 5] = [
    ("skeptic", include_str!("prompts/skeptic.md")),
    ("voice_identity", include_str!("prompts/voice_identity.md")),
    ("evidence", include_str!("prompts/evidence.md")),
    ("strategy", include_str!("prompts/strategy.md")),
    (ADJUDICATOR, include_str!("prompts/adjudicator.md")),
];

/// The adjudicator's name, which no deliberator may have.
pub const ADJUDICATOR: &str = "adjudicator";

/// Name and text of every embedded prompt, deliberators in roster order, the adjudicator last.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROMPTS.into_iter()
}

pub fn find(name: &str) -> Option<Prompt> {
    let (_, text) = all().find(|(known, _)| *known == name)?;
    Some(Prompt { path: None, text: Arc::from(text) })
}

/// The name of an embedded prompt in [`super::Council::files`].
pub fn label(name: &str) -> String {
    format!("{PREFIX}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_has_the_required_words() {
        for (name, text) in all() {
            let lower = text.to_lowercase();
            for needed in ["verdict", "verbatim", "material", "your one concern"] {
                assert!(lower.contains(needed), "{name}: {needed}");
            }
            let words = text.split_whitespace().count();
            assert!((250..=450).contains(&words), "{name}: {words} words");
        }
    }

    #[test]
    fn the_adjudicator_is_told_the_rule_that_the_policy_applies() {
        // C3
        let (_, text) = all().find(|(name, _)| *name == ADJUDICATOR).expect("a prompt");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for rule in [
            "You may be stricter than the count, never looser",
            "When three or more deliberators block and none of the blocks is irreducible, you may answer exactly `REVISE`",
            "Without such reasons answer `HOLD`.",
        ] {
            assert!(text.contains(rule), "{rule}");
        }
    }

    #[test]
    fn each_deliberator_prompt_has_its_scope_rounds_and_fields() {
        for (name, text) in all().filter(|(name, _)| *name != ADJUDICATOR) {
            for needed in [
                "leave to others",
                "Round 1:",
                "Round 2:",
                "oncede",
                "old",
                "scalate",
                "`would_block`",
                "`irreducible`",
                "`findings`",
                "`revision_brief`",
                "`concessions`",
                "`escalations`",
                "`scores`",
            ] {
                assert!(text.contains(needed), "{name}: {needed}");
            }
        }
    }
}
