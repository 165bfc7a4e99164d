//! The built-in council, for workspaces without a `council.yaml`.

use std::path::PathBuf;
use std::sync::LazyLock;

use super::tiers::TierRules;
use super::{Council, CrossRead, Deliberator, FailFast, Logging, Protocol, Rounds, Watch, prompts};
use crate::tree::open::sha256_hex;

/// Four deliberators and an adjudicator with the embedded prompts, two rounds, no runtime, no tier rules.
pub fn built_in() -> Council {
    // Programs that run several commands hash the prompts only once.
    static BUILT_IN: LazyLock<Council> = LazyLock::new(build);
    BUILT_IN.clone()
}

fn build() -> Council {
    let embedded = |name| prompts::find(name).expect("every embedded prompt is found by its name");
    let roster = prompts::all().map(|(name, _)| name).filter(|name| *name != prompts::ADJUDICATOR);
    Council {
        dir: PathBuf::from("."),
        deliberators: roster
            .map(|id| Deliberator {
                id: id.into(),
                prompt: embedded(id),
                weight: 1.0,
                context: Vec::new(),
                runtime: None,
            })
            .collect(),
        adjudicator: embedded(prompts::ADJUDICATOR),
        adjudicator_runtime: None,
        protocol: Protocol::default(),
        tiers: TierRules::default(),
        logging: Logging::default(),
        watch: Watch::default(),
        runtime: None,
        policy: None,
        files: prompts::all()
            .map(|(name, text)| (prompts::label(name), sha256_hex(text.as_bytes())))
            .collect(),
    }
}

impl Default for Protocol {
    /// Two rounds; round 2 reads the whole first answers; a verdict needs three valid answers.
    fn default() -> Self {
        Protocol {
            rounds: Rounds::Two,
            cross_read: CrossRead::Verdicts,
            fail_fast: FailFast::No,
            min_deliberators: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C8
    #[test]
    fn four_deliberate_and_one_adjudicates() {
        let council = built_in();
        let ids: Vec<_> = council.deliberators.iter().map(|deliberator| deliberator.id.as_ref()).collect();
        assert_eq!(ids, ["skeptic", "voice_identity", "evidence", "strategy"]);
        assert!(council.adjudicator.text.starts_with("# Adjudicator\n"));
        assert!(council.deliberators[2].prompt.text.starts_with("# Evidence & Calibration\n"));
        assert_eq!(council.files.len(), 5);
        assert_eq!(council, built_in());
    }
}
