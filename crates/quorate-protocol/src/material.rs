//! Material: the typed pieces of text that a member is shown.

use std::sync::Arc;

use crate::Name;

/// The kind of a piece of material. Executors that work without a model (the rubric) read it; prompts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartKind {
    /// The text under review.
    Artifact,
    /// The first answers of all members, one JSON array in roster order, the same for everybody.
    CrossRead,
    /// The answers of the second round, as [`PartKind::CrossRead`].
    SecondAnswers,
    /// Earlier verdicts on the same type of artifact, a JSON array, newest first.
    PriorVerdicts,
    /// A conversation that advisers read; the part's name ends in `.jsonl` or `.md`.
    Conversation,
    /// What is voted on.
    Proposal,
    /// What peers talk about.
    Topic,
    /// The request that a hierarchy assesses.
    Request,
    /// The overlays that are active at present, a JSON array of texts.
    Overlays,
    /// The result of a custom gather strategy.
    Gathered,
    /// The messages that a peer has received so far: a JSON array of `{round, from, to, text}`.
    Transcript,
    /// What a node's children have passed up: a JSON array in roster order.
    ChildrenOutputs,
    /// A document that the operator gives one member to judge by: a voice corpus, a goals document.
    Context,
    /// The last turns of the conversation that a participant is in: a JSON array of `{id, participant, at, content}`, oldest
    /// first. The last one needs an answer.
    Turns,
    /// The participant's state, a JSON object.
    State,
    /// Those who can be chosen to speak next: a JSON array of `{id, name, role, capabilities}`.
    Roster,
    /// The outcomes of earlier runs: a JSON array of `{run, at, artifact_type, subject, verdict, findings: [{by, issue,
    /// fix?, quote}], brief?, severity?, transcript?}`.
    Runs,
    /// The playbooks that are for the operator at present: a JSON array of `{slug, title, status, priority, body}`.
    Playbooks,
    /// The operator's own prompt.
    Persona,
    /// The prompt fragment to judge.
    Fragment,
    /// The traits that are locked: a JSON array of `{id, description}`.
    Traits,
}

quorate_manifest::words!(PartKind {
    Artifact = "artifact",
    CrossRead = "cross-read",
    SecondAnswers = "second-answers",
    PriorVerdicts = "prior-verdicts",
    Conversation = "conversation",
    Proposal = "proposal",
    Topic = "topic",
    Request = "request",
    Overlays = "active-overlays",
    Gathered = "gathered",
    Transcript = "transcript",
    ChildrenOutputs = "children-outputs",
    Context = "context",
    Turns = "turns",
    State = "state",
    Roster = "roster",
    Runs = "runs",
    Playbooks = "playbooks",
    Persona = "persona",
    Fragment = "fragment",
    Traits = "traits",
});

impl PartKind {
    /// The kinds of what a run is about.
    pub const SUBJECTS: [PartKind; 5] =
        [PartKind::Artifact, PartKind::Conversation, PartKind::Proposal, PartKind::Topic, PartKind::Request];

    /// The subject's kind of a word.
    pub fn subject(word: &str) -> Option<PartKind> {
        PartKind::SUBJECTS.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One piece of material. Cloning shares the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What the text is for.
    pub kind: PartKind,
    /// Where it comes from: a path, or a member's id. Empty where the kind says it all.
    pub name: Name,
    /// The text, already redacted.
    pub text: Arc<str>,
}

impl Part {
    /// A piece of material.
    pub fn new(kind: PartKind, name: impl Into<Name>, text: impl Into<Arc<str>>) -> Self {
        Part { kind, name: name.into(), text: text.into() }
    }
}
