//! An operator that playbooks can target, with its locked traits.

use super::exceptions::Exceptions;
use super::traits;
use crate::service::operators::LoadedOperator;
use quorate_manifest::config::Configuration;
use quorate_manifest::duration::IsoDuration;
use quorate_manifest::operator::Operator;
use quorate_manifest::playbook::load::written_at;
use quorate_manifest::playbook::{Playbook, Weaving};
use quorate_manifest::timestamp;
use quorate_manifest::workspace::Scope;
use quorate_playbook::base::BasePrompt;
use quorate_playbook::bind::{RUNTIME, Subject};
use quorate_playbook::compose::Candidate;
use quorate_playbook::index::priority;
use quorate_playbook::lock::{Locks, Trait};
use quorate_playbook::weave::{Origin, Overlay, Placement};
use quorate_protocol::assembly;
use std::sync::Arc;

/// An operator with its locks and exceptions.
pub struct KnownOperator {
    pub slug: String,
    pub operator: Operator,
    pub base: BasePrompt,
    /// The subject that selectors match.
    pub subject: Subject,
    /// Its locked traits.
    pub traits: Vec<Arc<Trait>>,
    /// The exceptions from them.
    exceptions: Exceptions,
}

impl KnownOperator {
    /// Loads the locks of an operator.
    pub(in crate::service) fn new(
        operating: LoadedOperator,
        configuration: &Configuration,
        exceptions: &Exceptions,
    ) -> Self {
        let LoadedOperator { operator, base, persona_locks, .. } = operating;
        let traits = traits::locked_traits(&configuration.locks, &operator, &persona_locks);
        let subject = subject(&operator);
        let exceptions = exceptions.clone();
        KnownOperator { slug: operator.id.clone(), operator, base, subject, traits, exceptions }
    }

    /// Checks a playbook against its locks and the author's, minus exceptions.
    pub fn candidate(&self, playbook: &Playbook, text: &str) -> Candidate {
        let mut touches = self.locks().check(text);
        let beyond = traits::extra_traits(&playbook.lock_check, &self.traits);
        if !beyond.is_empty() {
            touches.extend(traits::compile(&beyond).check(text));
        }
        Candidate {
            overlay: overlay(playbook, text),
            status: playbook.status,
            supersedes: playbook.supersedes.clone().unwrap_or_default(),
            violations: self.exceptions.not_excepted(&playbook.slug, text, touches),
        }
    }

    /// The traits that overlays of advisory runs are checked against.
    pub fn locks(&self) -> Arc<Locks> {
        traits::compile(&self.traits)
    }

    /// Its name in overlays of advisory runs.
    pub fn overlay_name(&self, scope: &Scope) -> String {
        assembly::operator_id(scope, &self.slug)
    }
}

/// What selectors match of an operator.
pub(super) fn subject(operator: &Operator) -> Subject {
    let subject = Subject::from_operator(operator);
    match &operator.runtime {
        Some(runtime) => subject.replace(RUNTIME, runtime),
        None => subject,
    }
}

/// A playbook as an overlay.
fn overlay(playbook: &Playbook, text: &str) -> Overlay {
    let written_ms = written_at(playbook).and_then(timestamp::parse);
    let ttl = playbook.ttl.as_ref().and_then(|ttl| ttl.parse::<IsoDuration>().ok());
    Overlay {
        id: playbook.slug.clone(),
        origin: Origin::Playbook,
        text: text.trim().to_owned(),
        placement: match (playbook.kind, &playbook.block) {
            (Weaving::BlockReplacement, Some(block)) => Placement::Block(block.clone()),
            _ => Placement::Appended,
        },
        priority: priority(playbook),
        written_ms,
        expires_ms: written_ms.zip(ttl).map(|(at, ttl)| timestamp::add_duration(at, ttl)),
    }
}
