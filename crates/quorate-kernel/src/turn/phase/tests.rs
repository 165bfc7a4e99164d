//! Phases, step by step.

use serde_json::json;
use std::time::Duration;

use super::super::speak::Response;
use super::*;
use crate::record::Status;

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
    SpeakerResult { result: Err((Status::TimedOut, "it did not answer".to_owned())), ..said(participant, "") }
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
    // K5
    let heard =
        [PhaseInput::Heard(said("bo", "Two.")), PhaseInput::Heard(failed("cy")), PhaseInput::Heard(said("ada", "One."))];
    let inputs = [PhaseInput::Dispatched(asking(&["ada", "bo", "cy"]))].into_iter().chain(heard);
    let (phase, effects) = run(Phase::Idle, inputs.chain([PhaseInput::AllHeard(author())]));
    assert_eq!(effects, ["settle t1"]);
    let commit = committing(&phase);
    let order: Vec<&str> = commit.unappended.iter().map(|next| &*next.turn.participant).collect();
    assert_eq!(order, ["ada", "bo"], "answers stand in the order of selection");
    assert_eq!(commit.failed, [("cy".into(), "it did not answer".to_owned())]);
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
    // K5
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
    let inputs = [PhaseInput::Dispatched(asking(&["ada"])), PhaseInput::Heard(posted), PhaseInput::AllHeard(author())];
    let (phase, effects) = run(Phase::Idle, inputs);
    assert_eq!(effects, ["settle t1", "t2 ends a chain of 2", "remember ada"]);
    assert!(committing(&phase).unappended.is_empty());
}

#[test]
fn what_does_not_belong_to_a_phase_changes_nothing() {
    for input in [PhaseInput::Heard(said("ada", "One.")), PhaseInput::AllHeard(author()), PhaseInput::Recorded] {
        let (phase, effects) = Phase::Idle.step(input);
        assert!(matches!(phase, Phase::Idle) && effects.is_empty());
    }
    let (phase, _) = Phase::Idle.step(PhaseInput::Dispatched(asking(&["ada"])));
    let (phase, effects) = phase.step(PhaseInput::Appended(turn("t2", "ada")));
    assert!(matches!(phase, Phase::Asking(_)) && effects.is_empty());
}
