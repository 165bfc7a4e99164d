//! The state of a run that accumulates up to its outcome, whatever the mode.

use serde_json::{Map, json};
use sha2::{Digest as _, Sha256};

use super::effect::Completion;
use crate::assembly::{Rule, Setup};
use crate::{Fact, FactKind, Json, Name};

/// What accumulates on the way to an outcome.
pub(crate) struct RunState {
    missing: Vec<bool>,
    notes: Vec<String>,
    rules: Vec<Json>,
    violations: usize,
}

impl RunState {
    pub(crate) fn new(members: usize) -> Self {
        RunState { missing: vec![false; members], notes: Vec::new(), rules: Vec::new(), violations: 0 }
    }

    /// A member gave no output: it was asked, or the run's budget was spent before it could be.
    pub(crate) fn mark_missing(&mut self, index: usize) {
        self.missing[index] = true;
    }

    /// Whether a member lacks output.
    pub(crate) fn is_missing(&self, index: usize) -> bool {
        self.missing[index]
    }

    /// A note for the reader of the outcome.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn count_violation(&mut self) {
        self.violations += 1;
    }

    /// A rule was applied: the record of it.
    pub(crate) fn record_rule(&mut self, rule: &Rule, fired: bool, members: &[Name], also: Json) -> Fact {
        let members: Vec<&str> = members.iter().map(|member| &**member).collect();
        let mut entry = json!({"id": &*rule.id, "kind": &*rule.kind, "fired": fired, "members": members});
        if let (Json::Object(entry), Json::Object(also)) = (&mut entry, also) {
            entry.extend(also);
        }
        self.rules.push(entry.clone());
        Fact { kind: FactKind::Rule, data: entry }
    }

    /// Drops intermediate results of rules: they are applied again, to more answers.
    pub(crate) fn forget_rules(&mut self) {
        self.rules.clear();
    }

    /// The artifact, whole, and the outcome's record, which has it only where outcomes are kept (D8).
    pub(crate) fn outcome(&self, setup: &Setup, ending: Completion) -> (Json, Fact) {
        let missing = setup.members.iter().zip(&self.missing).filter(|(_, missing)| **missing);
        let missing: Vec<&str> = missing.map(|(member, _)| &*member.id).collect();
        let partial = !missing.is_empty();
        let mut outcome = Map::new();
        let mut put = |key: &str, value: Json| outcome.insert(key.to_owned(), value);
        put("verdict", json!(ending.result));
        put("stand", json!(ending.status.as_str()));
        put("kind", json!(artifact_kind(setup)));
        put("assembly", json!(&*setup.assembly));
        put("mode", json!(setup.mode));
        if let Some(code) = ending.code {
            put("code", json!(code));
        }
        if let Some(because) = ending.reason {
            put("because", json!(because));
        }
        put("partial", json!(partial));
        put("missing", json!(missing));
        put("rules", json!(self.rules));
        put("violations", json!(self.violations));
        put("notes", json!(self.notes));
        if !setup.refs.is_empty() {
            put("refs", Json::Object(setup.refs.clone()));
        }
        outcome.extend(ending.extra);
        let artifact = Json::Object(ending.artifact);
        if setup.overlays.enabled {
            outcome.extend(artifact.as_object().cloned().unwrap_or_default());
        } else {
            let digest = Sha256::digest(artifact.to_string().as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            outcome.insert("artifact_sha256".to_owned(), json!(hex));
        }
        (artifact, Fact { kind: FactKind::Outcome, data: Json::Object(outcome) })
    }
}

/// What an outcome of the mode is.
fn artifact_kind(setup: &Setup) -> &'static str {
    use quorate_manifest::assembly::Mode;
    match setup.mode {
        Mode::Advisory => "guidance",
        Mode::Voting => "decision",
        Mode::Peer => "log",
        Mode::Hierarchy => "rollup",
    }
}
