//! What may follow in a run, and what is noted of records out of order and without bodies.

use quorate_kernel::consultation::object;
use quorate_kernel::ports::ledger::Kind;
use serde_json::json;

use super::{Phase, StreamState};
use crate::merkle::EMPTY;

const RUN: &str = "raaaaaaaaaaaa";
const STREAM: &str = "playbooks";

/// Applies records to a run, one word each, `-` for one without its body; gives the phase, and whether the last may follow.
fn phase_after(run: &str, words: &str) -> (Phase, bool) {
    let (state, last) = state_after(run, words);
    (state.phase, last)
}

fn state_after(run: &str, words: &str) -> (StreamState, bool) {
    let mut state = StreamState::new();
    let mut may_follow = true;
    for (word, n) in words.split_whitespace().zip(0..) {
        let intent = |resumes: bool, supersedes: &[&str]| {
            (Kind::RunIntent, json!({"invocations": [], "resumes": resumes, "supersedes": supersedes}))
        };
        let (name, has_body) = word.strip_suffix('-').map_or((word, true), |name| (name, false));
        let (kind, data) = match name {
            "opened" => (Kind::RunOpened, json!({"protocol": "council/1"})),
            "intent" => intent(false, &[]),
            "resumes" => intent(true, &[]),
            "supersedes" => intent(true, &["r1/skeptic"]),
            "answer" => (Kind::Consultation, json!({})),
            "rule" => (Kind::Rule, json!({})),
            "outcome" => (Kind::Outcome, json!({"verdict": "SHIP"})),
            "ended" => (Kind::RunEnded, json!({"logged": true})),
            "override" => (Kind::Override, json!({"verdict": "HOLD", "logged": true})),
            "unlogged" => (Kind::Override, json!({"verdict": "HOLD", "logged": false})),
            "keyring" => (Kind::Keyring, json!({"vouched": []})),
            "turn" => (Kind::Turn, json!({})),
            other => unreachable!("{other}"),
        };
        let data = has_body.then(|| object(data));
        if data.is_none() {
            state.note_bodiless(kind.as_str(), n, 1000 + 7, 100 + n);
        }
        may_follow = state.apply(run, n, kind.as_str(), 1000, data.as_ref()).is_ok();
    }
    (state, may_follow)
}

#[test]
fn a_run_is_what_its_records_allow() {
    use Phase::{Decided, Ended, Open};
    let cases = [
        ("opened", Open, true),
        ("opened-", Open, true),
        ("rule", Open, false),
        ("opened opened", Open, false),
        ("opened answer", Open, true),
        ("opened intent", Open, true),
        ("opened resumes", Open, true),
        ("opened override", Open, true),
        ("opened keyring", Open, true),
        ("opened outcome", Decided, true),
        ("opened ended", Ended, false),
        ("opened outcome answer", Decided, true),
        ("opened outcome intent", Decided, true),
        ("opened outcome intent-", Open, true),
        ("opened outcome resumes", Decided, true),
        ("opened outcome supersedes", Open, true),
        ("opened outcome override", Decided, true),
        ("opened outcome ended", Ended, true),
        // After its end nothing is added to it, but by a person or where it is taken up again.
        ("opened outcome ended answer", Ended, false),
        ("opened outcome ended intent", Ended, false),
        ("opened outcome ended outcome", Ended, false),
        ("opened outcome ended ended", Ended, false),
        ("opened outcome ended override", Ended, true),
        ("opened outcome ended override-", Ended, true),
        ("opened outcome ended keyring", Ended, true),
        ("opened outcome ended unlogged", Decided, true),
        ("opened outcome ended unlogged ended", Ended, true),
        ("opened outcome ended resumes", Decided, true),
        ("opened outcome ended resumes ended", Ended, true),
        ("opened outcome ended intent-", Open, true),
        ("opened outcome ended supersedes", Open, true),
        ("opened outcome ended supersedes ended", Ended, false),
        ("opened outcome ended supersedes outcome ended", Ended, true),
    ];
    for (words, phase, may_follow) in cases {
        assert_eq!(phase_after(RUN, words), (phase, may_follow), "{words}");
    }
    assert_eq!(phase_after("another", "opened"), (Open, true), "it is a run by its first record");
    assert_eq!(phase_after(STREAM, "turn answer ended override"), (Phase::Stream, true));
    let before_the_walk = StreamState::after(3, EMPTY, true, None);
    assert_eq!((before_the_walk.phase, before_the_walk.next), (Phase::Unknown, 4));
}

#[test]
fn a_row_is_unknown_without_the_bodies_that_it_follows_from() {
    for word in ["opened", "intent", "outcome", "override", "ended"] {
        assert!(state_after(RUN, &format!("opened {word}-")).0.row_unknown, "{word}");
    }
    for words in ["opened answer- rule-", "opened outcome ended"] {
        assert!(!state_after(RUN, words).0.row_unknown, "{words}");
    }
}

#[test]
fn records_without_bodies_are_noted_in_stretches() {
    let (state, _) = state_after(RUN, "opened answer- rule- answer answer- answer- rule answer-");
    assert_eq!((state.bodiless, state.first_bodiless_seq), (vec![1..3, 4..6, 7..8], 101));
    assert_eq!((state.bodiless_times, state.unexpected_bodiless), (vec![], None), "it is a run");
    let (state, _) = state_after(STREAM, "turn answer- answer- turn answer-");
    assert_eq!(state.bodiless_times, [(1, 1007), (2, 1007), (4, 1007)]);
    assert_eq!(state.last_settled, 3);
    let (state, _) = state_after(RUN, "opened answer- outcome- ended-");
    assert_eq!(state.unexpected_bodiless, Some(("outcome".to_owned(), 2, 102)), "the first of them");
}

#[test]
fn a_skipped_record_comes_late_once() {
    let mut state = StreamState::new();
    for n in [0, 1, 6, 7, 9] {
        state.advance(n, EMPTY, 50 + n, true);
    }
    assert_eq!((state.next, state.seq), (10, 59));
    let late = [4, 4, 2, 3, 3, 5, 5, 8, 8, 0, 1, 6, 7, 9, 10].map(|n| state.take_late(n));
    let wanted =
        [true, false, true, true, false, true, false, true, false, false, false, false, false, false, false];
    assert_eq!(late, wanted);
    assert!(state.missing.is_empty(), "{:?}", state.missing);
}
