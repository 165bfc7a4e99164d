//! A program that knows every rule and every strategy, so that only chains are judged.

use quorate_manifest::Host;
use quorate_manifest::assembly::Mode;
use quorate_manifest::known::{NoKey, RuleKind};
use serde_json::json;

pub(crate) struct Everything;

impl Host for Everything {
    fn rule(&self, _: &str) -> Option<RuleKind> {
        let params = json!({"type": "object"});
        Some(RuleKind { modes: Mode::ALL.to_vec(), params, ..RuleKind::default() })
    }

    fn rules(&self) -> Vec<&str> {
        Vec::new()
    }

    fn gathers(&self, _: &str) -> bool {
        true
    }

    fn strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn pattern(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn embeds(&self) -> bool {
        true
    }

    fn public_key(&self, _: &str) -> Result<(), NoKey> {
        Ok(())
    }
}
