//! A host that knows nothing: what a schema says of a file is asked of no host.

use quorate_manifest::Host;
use quorate_manifest::known::RuleKind;

pub(crate) struct Nobody;

impl Host for Nobody {
    fn rule(&self, _: &str) -> Option<RuleKind> {
        None
    }

    fn rules(&self) -> Vec<&str> {
        Vec::new()
    }

    fn gathers(&self, _: &str) -> bool {
        false
    }

    fn strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn pattern(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn embeds(&self) -> bool {
        false
    }
}
