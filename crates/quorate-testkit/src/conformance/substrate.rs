//! What every substrate must do (see the port's text), by what it declares and by what it keeps.
//!
//! Each function takes a way to open one conversation, which is empty at first. Opening it again is what a restart
//! does, or another process.

mod single_writer;
mod waiting;
mod writers;

use std::sync::Arc;

use quorate_kernel::conversation::{Capability, NewTurn, Stamp, Turn, turn_key};
use quorate_kernel::ports::substrate::{Error, Keeps, Substrate};
use quorate_protocol::{Json, Name, nesting};
use serde_json::json;

use super::state::nested;
pub use single_writer::{
    describes_itself, handles_odd_authors, reads_since, reads_windows, refuses_long_turns, stores_turns,
};
pub use waiting::notifies_of_changes;
pub use writers::{deduplicates_by_key, supports_many_writers};

pub type Open = dyn Fn() -> Arc<dyn Substrate> + Send + Sync;

/// All of it; `new` gives ways to open conversations that are empty and have nothing to do with each other.
///
/// # Panics
/// When the substrate does not do what it must.
pub async fn all(new: impl Fn() -> Box<Open>) {
    describes_itself(&*new()).await;
    stores_turns(&*new()).await;
    handles_odd_authors(&*new()).await;
    refuses_deep_nesting(&*new()).await;
    refuses_long_turns(&*new()).await;
    reads_since(&*new()).await;
    reads_windows(&*new()).await;
    deduplicates_by_key(&*new()).await;
    supports_many_writers(&*new()).await;
    notifies_of_changes(&*new()).await;
}

/// What could not be read back beside a turn is not taken.
///
/// # Panics
/// When it is, or when it spoils the conversation.
pub async fn refuses_deep_nesting(open: &Open) {
    let substrate = open();
    let with = |levels: usize, in_state: bool| {
        let mut turn = answer("ann", "deep", &format!("t_{levels}").as_str().into());
        match &mut turn.stamp {
            Some(stamp) if in_state => stamp.state = Some(nested(levels)),
            _ => turn.meta = nested(levels),
        }
        turn
    };
    for in_state in [false, true] {
        for levels in [nesting::MAX_DEPTH + 1, 124, 126, 127, 200] {
            let error = substrate.append(with(levels, in_state)).await.expect_err("too deep");
            assert!(
                matches!(&error, Error::Refused(why) if why.contains("nests deeper than 64 levels")),
                "{error}"
            );
        }
    }
    substrate.append(with(nesting::MAX_DEPTH, true)).await.expect("as deep as it may be");
    let turns = read_all(&*open(), 8).await;
    assert_eq!(turns.iter().map(|turn| &*turn.content).collect::<Vec<_>>(), ["deep"]);
}

/// A turn without anything beside what is said.
pub fn new_turn(by: &str, content: &str) -> NewTurn {
    NewTurn {
        participant: by.into(),
        content: content.into(),
        timestamp: "2026-05-18T18:23:11.504Z".into(),
        meta: serde_json::Map::new(),
        stamp: None,
    }
}

/// An answer to a turn, with all that a runtime writes beside it.
pub fn answer(by: &str, content: &str, trigger: &Name) -> NewTurn {
    let object = |json: Json| json.as_object().cloned().unwrap_or_default();
    NewTurn {
        meta: object(
            json!({"a --> b": "<!-- quorate: {} -->\n=== TURN", "n": [1.5, null, true, {"é": "\u{2028}"}]}),
        ),
        stamp: Some(Stamp {
            key: turn_key(trigger, by),
            runtime: "conformance".into(),
            trigger: trigger.clone(),
            selected: vec!["a".into(), by.into()],
            state: Some(object(json!({"count": 3, "of": {"x>": []}}))),
        }),
        ..new_turn(by, content)
    }
}

/// Everything that was said, read in pages of this size.
///
/// # Panics
/// When it cannot be read.
pub async fn read_all(substrate: &dyn Substrate, page: usize) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    loop {
        let since = turns.last().map(|turn| turn.id.clone());
        let read = substrate.read(since.as_ref(), page).await.expect("it can be read");
        assert!(read.turns.len() <= page, "no more than what was asked for");
        assert!(read.known, "its own turns are known");
        if read.turns.is_empty() {
            return turns;
        }
        turns.extend(read.turns);
    }
}

async fn append(substrate: &dyn Substrate, turn: NewTurn) -> Turn {
    let appended = substrate.append(turn).await.expect("it can be appended");
    assert!(appended.fresh, "a turn that was never there is fresh");
    appended.turn
}

fn keeps_stamps(substrate: &dyn Substrate) -> bool {
    substrate.about().keeps == Keeps::Stamps
}

fn has(substrate: &dyn Substrate, capability: Capability) -> bool {
    substrate.about().capabilities.contains(&capability)
}

/// A turn must be what was given; id and time are the substrate's.
fn assert_kept(kept: &Turn, given: &NewTurn, stamps: bool) {
    assert_eq!(kept.participant, given.participant);
    assert_eq!(kept.content, given.content, "byte for byte");
    assert!(
        !kept.id.is_empty() && !kept.id.contains(char::is_whitespace),
        "an id without white space: {:?}",
        kept.id
    );
    assert!(!kept.timestamp.is_empty());
    if stamps {
        assert_eq!(kept.meta, given.meta);
        assert_eq!(kept.stamp, given.stamp);
    }
}

fn ids(turns: &[Turn]) -> Vec<Name> {
    turns.iter().map(|turn| turn.id.clone()).collect()
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Unknown(_))
}
