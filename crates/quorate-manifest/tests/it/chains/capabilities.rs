//! Capabilities that accept every rule and strategy, so that the tests see only errors of chains.

use quorate_manifest::Capabilities;
use quorate_manifest::assembly::Mode;
use quorate_manifest::capabilities::{PublicKeyError, RuleKind};
use serde_json::json;

pub(crate) struct AllCapabilities;

impl Capabilities for AllCapabilities {
    fn rule_kind(&self, _: &str) -> Option<RuleKind> {
        let params = json!({"type": "object"});
        Some(RuleKind { modes: Mode::ALL.to_vec(), params, ..RuleKind::default() })
    }

    fn rule_kinds(&self) -> Vec<&str> {
        Vec::new()
    }

    fn has_gather_strategy(&self, _: &str) -> bool {
        true
    }

    fn gather_strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check_pattern(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn has_embedder(&self) -> bool {
        true
    }

    fn check_public_key(&self, _: &str) -> Result<(), PublicKeyError> {
        Ok(())
    }
}
