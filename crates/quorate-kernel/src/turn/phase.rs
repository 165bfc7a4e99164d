//! The phase of answering one trigger, and its transitions. Nothing here waits or does I/O: the
//! runner performs the effects. Wherever it is dropped in between, the phase has everything that was said.

use std::collections::{BTreeSet, VecDeque};

use quorate_protocol::Name;
use serde_json::Map;
use tokio::time::Instant;

use super::speak::{Response, SpeakerResult};
use super::{PartialAnswer, TurnFailure};
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
    pub(super) failed: Vec<(Name, TurnFailure)>,
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
    /// All invocations have ended.
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
                Err(failure) => failed.push((participant, failure)),
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
                    self.failed.push((participant.clone(), TurnFailure::failed(error.clone())));
                    effects.push(Effect::AnnounceFailure { participant, error });
                }
            }
            PhaseInput::Recorded => self.recorded = true,
            PhaseInput::Dispatched(_)
            | PhaseInput::Heard(_)
            | PhaseInput::AllHeard(_)
            | PhaseInput::Interrupted { .. } => {}
        }
        (Phase::Committing(self), effects)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use std::time::Duration;

    use super::super::speak::Response;
    use super::*;

    fn turn(id: &str, by: &str) -> Turn {
        Turn {
            id: id.into(),
            participant: by.into(),
            timestamp: "2026-01-01T00:00:00Z".into(),
            content: "What now?".into(),
            stamp: None,
            meta: Map::new(),
        }
    }

    fn author() -> Author {
        Author { runtime: "host".into(), now: "2026-01-01T00:00:01Z".to_owned() }
    }

    fn asking(asked: &[&str]) -> Asking {
        let names: Vec<Name> = asked.iter().map(|id| Name::from(*id)).collect();
        Asking {
            trigger: turn("t1", "eve"),
            chain: 1,
            selected: names.clone(),
            asked: names,
            started: Instant::now(),
            results: Vec::new(),
        }
    }

    fn said(participant: &str, content: &str) -> SpeakerResult {
        let state = json!({"said": content}).as_object().cloned();
        SpeakerResult {
            participant: participant.into(),
            result: Ok(Response { content: content.to_owned(), meta: Map::new(), state, posted: None }),
            entries: Vec::new(),
            took: Duration::ZERO,
        }
    }

    fn failed(participant: &str) -> SpeakerResult {
        SpeakerResult {
            result: Err(TurnFailure::failed("it did not answer".to_owned())),
            ..said(participant, "")
        }
    }

    /// Feeds inputs to a phase; gives it with a word for each effect.
    fn run(phase: Phase, inputs: impl IntoIterator<Item = PhaseInput>) -> (Phase, Vec<String>) {
        let mut words = Vec::new();
        let phase = inputs.into_iter().fold(phase, |phase, input| {
            let (phase, effects) = phase.step(input);
            words.extend(effects.iter().map(word));
            phase
        });
        (phase, words)
    }

    fn word(effect: &Effect) -> String {
        match effect {
            Effect::Settle(turn) => format!("settle {}", turn.id),
            Effect::Resume(partial) => format!("resume {} without {:?}", partial.trigger, partial.answered),
            Effect::Remember(participant, _) => format!("remember {participant}"),
            Effect::KeepChain { answer, length } => format!("{answer} ends a chain of {length}"),
            Effect::Announce { participant, turn } => format!("announce {} of {participant}", turn.id),
            Effect::AnnounceFailure { participant, error } => format!("{participant} failed: {error}"),
        }
    }

    fn committing(phase: &Phase) -> &Commit {
        match phase {
            Phase::Committing(commit) => commit,
            Phase::Idle | Phase::Asking(_) => panic!("nothing is being committed"),
        }
    }

    #[test]
    fn a_trigger_is_answered_from_dispatch_to_record() {
        // A turn is appended, its state stored, and then it is recorded (K5).
        let heard = [
            PhaseInput::Heard(said("bo", "Two.")),
            PhaseInput::Heard(failed("cy")),
            PhaseInput::Heard(said("ada", "One.")),
        ];
        let inputs = [PhaseInput::Dispatched(asking(&["ada", "bo", "cy"]))].into_iter().chain(heard);
        let (phase, effects) = run(Phase::Idle, inputs.chain([PhaseInput::AllHeard(author())]));
        assert_eq!(effects, ["settle t1"]);
        let commit = committing(&phase);
        let order: Vec<&str> = commit.unappended.iter().map(|next| &*next.turn.participant).collect();
        assert_eq!(order, ["ada", "bo"], "answers stand in the order of selection");
        assert_eq!(commit.failed, [("cy".into(), TurnFailure::failed("it did not answer".to_owned()))]);
        assert!(commit.is_complete && !commit.recorded);
        let rest = [
            PhaseInput::AppendTried,
            PhaseInput::Appended(turn("t2", "ada")),
            PhaseInput::Refused("too long".to_owned()),
            PhaseInput::Recorded,
        ];
        let (phase, effects) = run(phase, rest);
        let expected = ["t2 ends a chain of 2", "remember ada", "announce t2 of ada", "bo failed: too long"];
        assert_eq!(effects, expected);
        let commit = committing(&phase);
        assert!(commit.unappended.is_empty() && commit.recorded);
    }

    #[test]
    fn what_was_said_before_an_interruption_is_kept_where_it_can_be_told_apart() {
        // The conversation alone restores what was answered (K5).
        let interrupted = |may_resume, results: Vec<SpeakerResult>| {
            let inputs = [PhaseInput::Dispatched(asking(&["ada", "bo"]))]
                .into_iter()
                .chain(results.into_iter().map(PhaseInput::Heard));
            run(Phase::Idle, inputs.chain([PhaseInput::Interrupted { author: author(), may_resume }]))
        };
        let (phase, effects) = interrupted(true, vec![said("bo", "Two.")]);
        assert_eq!(effects, ["resume t1 without {\"bo\"}"]);
        let commit = committing(&phase);
        assert!(!commit.is_complete && commit.unappended.len() == 1);
        for (may_resume, results) in
            [(true, vec![failed("ada")]), (true, Vec::new()), (false, vec![said("bo", "Two.")])]
        {
            let (phase, effects) = interrupted(may_resume, results);
            assert!(matches!(phase, Phase::Idle) && effects.is_empty());
        }
    }

    #[test]
    fn an_answer_that_another_process_gave_is_left_out() {
        let inputs = [
            PhaseInput::Dispatched(asking(&["ada"])),
            PhaseInput::Heard(said("ada", "One.")),
            PhaseInput::AllHeard(author()),
            PhaseInput::AppendTried,
            PhaseInput::AnsweredElsewhere,
        ];
        let (phase, effects) = run(Phase::Idle, inputs);
        assert_eq!(effects, ["settle t1"], "the other process remembers its state");
        assert!(committing(&phase).unappended.is_empty() && committing(&phase).appended.is_empty());
    }

    #[test]
    fn an_answer_that_stands_already_is_remembered_and_not_appended() {
        let mut posted = said("ada", "One.");
        posted.result.as_mut().unwrap().posted = Some("t2".into());
        let inputs = [
            PhaseInput::Dispatched(asking(&["ada"])),
            PhaseInput::Heard(posted),
            PhaseInput::AllHeard(author()),
        ];
        let (phase, effects) = run(Phase::Idle, inputs);
        assert_eq!(effects, ["settle t1", "t2 ends a chain of 2", "remember ada"]);
        assert!(committing(&phase).unappended.is_empty());
    }

    #[test]
    fn what_does_not_belong_to_a_phase_changes_nothing() {
        for input in
            [PhaseInput::Heard(said("ada", "One.")), PhaseInput::AllHeard(author()), PhaseInput::Recorded]
        {
            let (phase, effects) = Phase::Idle.step(input);
            assert!(matches!(phase, Phase::Idle) && effects.is_empty());
        }
        let (phase, _) = Phase::Idle.step(PhaseInput::Dispatched(asking(&["ada"])));
        let (phase, effects) = phase.step(PhaseInput::Appended(turn("t2", "ada")));
        assert!(matches!(phase, Phase::Asking(_)) && effects.is_empty());
    }
}
