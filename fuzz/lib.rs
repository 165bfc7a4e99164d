//! What the fuzz targets share: a text is checked as a file of an otherwise empty workspace. Whatever it is, checking
//! ends, does not panic, and says a place for whatever it refuses; formatting what reads well changes nothing of it.

use std::path::Path;

use quorate_manifest::capabilities::{Capabilities, PublicKeyError, RuleKind};
use quorate_manifest::check::{FileOutcome, check_bytes};
use quorate_manifest::loader::{Loader, Options};
use quorate_manifest::workspace::{Memory, WorkspacePath};
use quorate_manifest::{Source, workspace};
use quorate_protocol::rules::Rules;

/// The built-in rules, and nothing of a host's own.
#[derive(Default)]
struct BuiltIn {
    rules: Rules,
}

impl Capabilities for BuiltIn {
    fn rule_kind(&self, kind: &str) -> Option<RuleKind> {
        self.rules.get(kind).cloned()
    }

    fn rule_kinds(&self) -> Vec<&str> {
        self.rules.names()
    }

    fn has_gather_strategy(&self, strategy: &str) -> bool {
        !strategy.starts_with("custom:")
    }

    fn gather_strategies(&self) -> Vec<&str> {
        vec!["working-memory"]
    }

    fn check_pattern(&self, pattern: &str) -> Result<(), String> {
        if pattern.contains('(') { Err("it opens a group".to_owned()) } else { Ok(()) }
    }

    fn has_embedder(&self) -> bool {
        false
    }

    fn check_public_key(&self, text: &str) -> Result<(), PublicKeyError> {
        if text.contains('?') { Err(PublicKeyError::Foreign) } else { Ok(()) }
    }
}

/// Checks bytes as a file of that name.
pub fn check(name: &str, bytes: &[u8]) {
    let workspace = Memory::new();
    let capabilities = BuiltIn::default();
    let loader = Loader::new(&workspace, &capabilities, Options::default());
    let location = WorkspacePath::new(name).expect("a plain name");
    let checked = check_bytes(&loader, &location, bytes.to_vec());
    if let FileOutcome::Checked(_, report) | FileOutcome::Assembly(report, _) = checked {
        for refusal in &report.refusals {
            assert!(!refusal.body.message.is_empty());
        }
        // Every rendering stands whatever the places are.
        let _ = quorate_diagnostics::render::concise(&report);
    }
}

/// A source with one file, whichever is asked for.
pub struct OneFile<'b>(pub &'b [u8]);

impl Source for OneFile<'_> {
    fn read(&self, _: &Path) -> Result<Vec<u8>, workspace::SourceError> {
        Ok(self.0.to_vec())
    }
}
