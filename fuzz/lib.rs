//! What the fuzz targets share: a text is checked as a file of an otherwise empty workspace. Whatever it is, checking
//! ends, does not panic, and says a place for whatever it refuses; formatting what reads well changes nothing of it.

use std::path::Path;

use quorate_manifest::check::{Checked, check_bytes};
use quorate_manifest::known::{Host, NoKey, RuleKind};
use quorate_manifest::round::{Options, Round};
use quorate_manifest::workspace::{Memory, Spot};
use quorate_manifest::{Source, source};
use quorate_protocol::rules::Rules;

/// A host with the built-in rules.
#[derive(Default)]
struct Built {
    rules: Rules,
}

impl Host for Built {
    fn rule(&self, kind: &str) -> Option<RuleKind> {
        self.rules.get(kind).cloned()
    }

    fn rules(&self) -> Vec<&str> {
        self.rules.names()
    }

    fn gathers(&self, strategy: &str) -> bool {
        !strategy.starts_with("custom:")
    }

    fn strategies(&self) -> Vec<&str> {
        vec!["working-memory"]
    }

    fn pattern(&self, pattern: &str) -> Result<(), String> {
        if pattern.contains('(') { Err("it opens a group".to_owned()) } else { Ok(()) }
    }

    fn embeds(&self) -> bool {
        false
    }

    fn public_key(&self, text: &str) -> Result<(), NoKey> {
        if text.contains('?') { Err(NoKey::Foreign) } else { Ok(()) }
    }
}

/// Checks bytes as a file of that name.
pub fn check(name: &str, bytes: &[u8]) {
    let workspace = Memory::new();
    let host = Built::default();
    let round = Round::new(&workspace, &host, Options::default());
    let spot = Spot::new(name).expect("a plain name");
    if let Checked::Said(_, report) | Checked::Assembly(report, _) = check_bytes(&round, &spot, bytes.to_vec()) {
        for refusal in &report.refusals {
            assert!(!refusal.body.message.is_empty());
        }
        // Every rendering stands whatever the places are.
        let _ = quorate_diagnostics::render::concise(&report);
    }
}

/// One file, whatever is asked for.
pub struct One<'b>(pub &'b [u8]);

impl Source for One<'_> {
    fn read(&self, _: &Path) -> Result<Vec<u8>, source::Error> {
        Ok(self.0.to_vec())
    }
}
