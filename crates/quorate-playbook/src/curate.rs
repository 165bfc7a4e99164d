//! Curation (B5, B6): why a proposed playbook is refused, checked for every operator that it targets. The manifest checks
//! shape, slug and times itself; these checks are about the effect on prompts.

use std::collections::BTreeSet;

use quorate_diagnostics::{Body, RefusalCode, codes};
use quorate_manifest::playbook::Status;
use quorate_protocol::locks::fold;

use crate::lock::Violation;
use crate::persona::BasePrompt;
use crate::weave::{Candidate, select_active, weave};

/// An addition may be longer than the persona itself up to this many characters.
const MAX_ADDITION_CHARS: usize = 1_200;
/// Shorter persona sentences, in characters, do not count as a sign of a rewrite.
const MIN_SENTENCE_CHARS: usize = 20;

/// An operator that a proposal is for.
#[derive(Debug, Clone)]
pub struct AffectedOperator<'a> {
    pub operator: &'a str,
    pub base: &'a BasePrompt,
    /// What is for it already.
    pub existing: &'a [Candidate],
    /// The proposal, checked against its locked traits.
    pub proposal: Candidate,
}

/// Why a proposal is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Objection {
    pub cause: Cause,
    /// The text of the refusal.
    pub body: Body,
}

/// The kind of an objection.
#[derive(Debug, Clone, PartialEq)]
pub enum Cause {
    /// It touches a locked trait of an operator.
    Locked(Violation),
    /// It replaces a block that an operator's prompt does not have.
    UnknownBlock,
    /// It takes away more than a fifth of an operator's prompt.
    Collapse,
    /// It has no text, or says the persona or another playbook again.
    Redundant,
}

impl Objection {
    fn new(cause: Cause, message: String, help: impl Into<String>) -> Self {
        Objection { cause, body: Body::new(message).help(help) }
    }

    /// The code of the refusal.
    pub fn code(&self) -> RefusalCode {
        match self.cause {
            Cause::Locked(_) => codes::LOCK_VIOLATED,
            Cause::UnknownBlock => codes::BLOCK_NOT_REPLACEABLE,
            Cause::Collapse | Cause::Redundant => codes::DELTA_INVALID,
        }
    }

    /// The id of the locked trait that the proposal touches.
    pub fn locked_id(&self) -> Option<&String> {
        match &self.cause {
            Cause::Locked(touch) => Some(&touch.id),
            Cause::UnknownBlock | Cause::Collapse | Cause::Redundant => None,
        }
    }
}

/// Checks a proposal for each operator that it targets. The list is empty if nothing speaks against it.
pub fn objections_to(affected: &[AffectedOperator<'_>], now_ms: i64) -> Vec<Objection> {
    let mut objections = Vec::new();
    let mut repeated = BTreeSet::new();
    if affected.first().is_some_and(|one| one.proposal.text.trim().is_empty()) {
        let message = "it has no text, so it would never be woven".to_owned();
        return vec![Objection::new(Cause::Redundant, message, "say below the frontmatter what was learned")];
    }
    for one in affected {
        let operator = one.operator;
        for touch in &one.proposal.violations {
            let message = format!(
                "it touches `{}`, which is locked in `{operator}`: {}, in “{}”",
                touch.id, touch.cause, touch.excerpt
            );
            let help = format!(
                "say it without touching what is locked; `quorate locks list {operator}` shows what is"
            );
            objections.push(Objection::new(Cause::Locked(touch.clone()), message, help));
        }
        if let Some(block) = &one.proposal.block
            && !one.base.has_block(block)
        {
            let message = format!("the prompt of `{operator}` has no block `{block}` that could be replaced");
            let help = match &*one.base.blocks().collect::<Vec<_>>().join(", ") {
                "" => "the prompt has no block that can be replaced; make it `kind: overlay`".to_owned(),
                blocks => format!("the blocks are {blocks}"),
            };
            objections.push(Objection::new(Cause::UnknownBlock, message, help));
            continue;
        }
        if let Some(how) = rewrite_evidence(one) {
            let message = format!("it says the persona of `{operator}` anew in place of adding to it: {how}");
            let help = "propose the one thing that was learned, not the persona again";
            objections.push(Objection::new(Cause::Redundant, message, help));
        }
        let (before, after) = prompt_lengths(one, now_ms);
        // An expired playbook displaces nothing: it is not woven, and no gate promotes it.
        if !one.proposal.is_expired(now_ms) && after * 5 < before * 4 {
            let message = format!(
                "with it the prompt of `{operator}` has {after} characters in place of {before}: more than a fifth is lost"
            );
            let help = "keep what the block says, and change only what was learned";
            objections.push(Objection::new(Cause::Collapse, message, help));
        }
        let text = fold(one.proposal.text.trim());
        let same = one.existing.iter().find(|other| {
            other.slug != one.proposal.slug
                && other.status != Status::Archived
                && !one.proposal.supersedes.contains(&other.slug)
                && other.block == one.proposal.block
                && fold(other.text.trim()) == text
        });
        if let Some(slug) = same.map(|same| &same.slug)
            && repeated.insert(slug)
        {
            let help = format!("`quorate playbook show {slug}` shows it");
            objections.push(Objection::new(Cause::Redundant, format!("`{slug}` says the same"), help));
        }
    }
    objections
}

/// The characters of an operator's prompt without a proposal, and with it. Neither has what the proposal supersedes: a
/// playbook that takes the place of others may be shorter than they are together (B14).
fn prompt_lengths(operator: &AffectedOperator<'_>, now_ms: i64) -> (usize, usize) {
    let (id, superseded) = (&operator.proposal.slug, &operator.proposal.supersedes);
    let stays = |other: &&Candidate| {
        other.status == Status::Active && other.slug != *id && !superseded.contains(&other.slug)
    };
    let before: Vec<&Candidate> = operator.existing.iter().filter(stays).collect();
    let after: Vec<&Candidate> = before.iter().copied().chain([&operator.proposal]).collect();
    let length = |all: &[&Candidate]| {
        weave(operator.base, select_active(all, now_ms).0, now_ms).prompt.chars().count()
    };
    (length(&before), length(&after))
}

/// How it shows that a fragment says a persona again.
fn rewrite_evidence(operator: &AffectedOperator<'_>) -> Option<&'static str> {
    let base = operator.base.render();
    let text = &operator.proposal.text;
    if text.chars().count() > base.chars().count().max(MAX_ADDITION_CHARS) {
        return Some("it is longer than the persona");
    }
    if operator.proposal.block.is_some() {
        return None;
    }
    let folded = fold(text);
    let sentences = base.split(['.', '\n', '!', '?']).map(fold);
    let sentences: Vec<String> =
        sentences.filter(|sentence| sentence.trim().chars().count() >= MIN_SENTENCE_CHARS).collect();
    let repeated = sentences.iter().filter(|sentence| folded.contains(sentence.trim())).count();
    (sentences.len() >= 2 && repeated * 2 > sentences.len())
        .then_some("it repeats more than half of its sentences")
}
