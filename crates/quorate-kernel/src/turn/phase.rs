//! The phase of answering one trigger, and its transitions. Nothing here waits or does I/O: the
//! runner performs the effects. Wherever it is dropped in between, the phase has everything that was said.

use std::collections::{BTreeSet, VecDeque};

use quorate_protocol::Name;
use serde_json::Map;
use tokio::time::Instant;

use super::PartialAnswer;
use super::speak::{Response, SpeakerResult};
use crate::conversation::{NewTurn, Stamp, Turn, turn_key};
use crate::ports::ledger::Entry;

#[derive(Default)]
pub(super) enum Phase {
    /// No trigger is being answered.
    #[default]
    Idle,
    /// Participants are asked about a trigger.
    Asking(Asking),
    /// The answers are appended to the conversation, stored and recorded.
    Committing(Commit),
}

pub(super) struct Asking {
    pub(super) trigger: Turn,
    /// The length of the chain that ends with the trigger.
    pub(super) chain: usize,
    /// Who was chosen to answer.
    pub(super) selected: Vec<Name>,
    /// Those of them who had not answered before.
    pub(super) asked: Vec<Name>,
    pub(super) started: Instant,
    /// The participants that have ended so far.
    pub(super) results: Vec<SpeakerResult>,
}

pub(super) struct Commit {
    pub(super) trigger: Turn,
    /// Whether everybody was heard: only then is the trigger settled.
    pub(super) is_complete: bool,
    pub(super) selected: Vec<Name>,
    pub(super) failed: Vec<(Name, String)>,
    /// The part of the commit's record about the participants that were asked.
    pub(super) entries: Vec<Entry>,
    /// The answers that are in the conversation.
    pub(super) appended: Vec<Turn>,
    /// The answers that are still to be appended.
    pub(super) unappended: VecDeque<Unappended>,
    /// Whether its record is in the ledger's queue.
    pub(super) recorded: bool,
    pub(super) started: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct Unappended {
    pub(super) turn: NewTurn,
    /// Whether an append was tried: it may have succeeded without a confirmation.
    pub(super) was_tried: bool,
}

/// Something that happened.
pub(super) enum PhaseInput {
    /// A trigger needs an answer.
    Dispatched(Asking),
    /// A participant came to an end.
    Heard(SpeakerResult),
    /// All that were asked have come to an end.
    AllHeard(Author),
    /// The cycle was dropped, or is to end. `may_resume` says whether the conversation tells who has answered.
    Interrupted { author: Author, may_resume: bool },
    /// The next answer is about to be appended.
    AppendTried,
    /// It is in the conversation.
    Appended(Turn),
    /// Another process has answered in its place.
    AnsweredElsewhere,
    /// The conversation refuses it.
    Refused(String),
    /// The commit's record is in the ledger's queue.
    Recorded,
}

/// Who writes turns, and when.
pub(super) struct Author {
    pub(super) runtime: Name,
    /// RFC 3339.
    pub(super) now: String,
}

/// Something that the runner does.
#[derive(Debug)]
pub(super) enum Effect {
    /// The trigger is settled.
    Settle(Turn),
    /// The trigger is taken up again for those who have not answered.
    Resume(PartialAnswer),
    /// Stores the state that came with an answer.
    Remember(Name, Map<String, quorate_protocol::Json>),
    /// An answer is in the conversation: where that keeps no stamps, its place in a chain is kept here.
    KeepChain { answer: Name, length: usize },
    /// An answer is in the conversation: observers and hooks are notified.
    Announce { participant: Name, turn: Turn },
    /// A participant's answer was refused.
    AnnounceFailure { participant: Name, error: String },
}

impl Phase {
    pub(super) fn step(self, input: PhaseInput) -> (Phase, Vec<Effect>) {
        match (self, input) {
            (Phase::Idle, PhaseInput::Dispatched(asking)) => (Phase::Asking(asking), Vec::new()),
            (Phase::Asking(mut asking), PhaseInput::Heard(result)) => {
                asking.results.push(result);
                (Phase::Asking(asking), Vec::new())
            }
            (Phase::Asking(asking), PhaseInput::AllHeard(author)) => {
                let (commit, mut effects) = asking.commit(&author, true);
                effects.insert(0, Effect::Settle(commit.trigger.clone()));
                (Phase::Committing(commit), effects)
            }
            (Phase::Asking(asking), PhaseInput::Interrupted { author, may_resume }) => {
                let answered = asking.answered();
                if answered.is_empty() || !may_resume {
                    return (Phase::Idle, Vec::new());
                }
                let trigger = asking.trigger.id.clone();
                let partial = PartialAnswer {
                    last: trigger.clone(),
                    trigger,
                    selected: asking.selected.clone(),
                    answered,
                };
                let (commit, mut effects) = asking.commit(&author, false);
                effects.push(Effect::Resume(partial));
                (Phase::Committing(commit), effects)
            }
            (Phase::Committing(commit), input) => commit.step(input),
            (phase, _) => (phase, Vec::new()),
        }
    }
}

impl Phase {
    /// The next answer to append.
    pub(super) fn next_answer(&self) -> Option<Unappended> {
        match self {
            Phase::Committing(commit) => commit.unappended.front().cloned(),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }
}

impl Asking {
    fn answered(&self) -> BTreeSet<Name> {
        let answers = self.results.iter().filter(|result| result.result.is_ok());
        answers.map(|result| result.participant.clone()).collect()
    }

    /// Who has given no answer so far.
    pub(super) fn unanswered(&self) -> Vec<Name> {
        let answered = self.answered();
        self.asked.iter().filter(|id| !answered.contains(*id)).cloned().collect()
    }

    /// Turns the answers into turns, in the order of selection.
    fn commit(self, author: &Author, is_complete: bool) -> (Commit, Vec<Effect>) {
        let Asking { trigger, chain, selected, asked, started, mut results } = self;
        results.sort_by_key(|result| asked.iter().position(|id| *id == result.participant));
        let (mut failed, mut entries, mut effects) = (Vec::new(), Vec::new(), Vec::new());
        let mut unappended = VecDeque::new();
        for SpeakerResult { participant, result, entries: recorded, .. } in results {
            entries.extend(recorded);
            match result {
                Err((_, error)) => failed.push((participant, error)),
                // It is in the conversation already, and is read from there.
                Ok(Response { posted: Some(answer), state, .. }) => {
                    effects.push(Effect::KeepChain { answer, length: chain + 1 });
                    effects.extend(state.map(|state| Effect::Remember(participant, state)));
                }
                Ok(response) => {
                    let stamp = Stamp {
                        key: turn_key(&trigger.id, &participant),
                        runtime: author.runtime.clone(),
                        trigger: trigger.id.clone(),
                        chain: chain + 1,
                        selected: if selected.len() > 1 { selected.clone() } else { Vec::new() },
                        state: response.state,
                        origin: None,
                    };
                    let turn = NewTurn {
                        stamp: Some(stamp),
                        participant,
                        content: response.content.into(),
                        timestamp: author.now.clone(),
                        meta: response.meta,
                    };
                    unappended.push_back(Unappended { turn, was_tried: false });
                }
            }
        }
        let (appended, recorded) = (Vec::new(), false);
        let commit = Commit {
            trigger,
            is_complete,
            selected,
            failed,
            entries,
            appended,
            unappended,
            recorded,
            started,
        };
        (commit, effects)
    }
}

impl Commit {
    fn step(mut self, input: PhaseInput) -> (Phase, Vec<Effect>) {
        let mut effects = Vec::new();
        match input {
            PhaseInput::AppendTried => {
                self.unappended.front_mut().into_iter().for_each(|next| next.was_tried = true);
            }
            PhaseInput::Appended(turn) => {
                if let Some(Unappended { turn: NewTurn { participant, stamp, .. }, .. }) =
                    self.unappended.pop_front()
                {
                    let (length, state) = stamp.map(|stamp| (stamp.chain, stamp.state)).unwrap_or_default();
                    effects.push(Effect::KeepChain { answer: turn.id.clone(), length });
                    effects.extend(state.map(|state| Effect::Remember(participant.clone(), state)));
                    effects.push(Effect::Announce { participant, turn: turn.clone() });
                    self.appended.push(turn);
                }
            }
            PhaseInput::AnsweredElsewhere => drop(self.unappended.pop_front()),
            PhaseInput::Refused(error) => {
                if let Some(next) = self.unappended.pop_front() {
                    let participant = next.turn.participant;
                    self.failed.push((participant.clone(), error.clone()));
                    effects.push(Effect::AnnounceFailure { participant, error });
                }
            }
            PhaseInput::Recorded => self.recorded = true,
            PhaseInput::Dispatched(_) | PhaseInput::Heard(_) | PhaseInput::AllHeard(_) | PhaseInput::Interrupted { .. } => {}
        }
        (Phase::Committing(self), effects)
    }
}

#[cfg(test)]
mod tests;
