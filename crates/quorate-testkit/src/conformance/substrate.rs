//! Requirements on every substrate (see the port's documentation), by its declared capabilities.
//!
//! Each function takes a way to open one conversation, which is empty at first. A second opening stands for a restart, or
//! another process.

mod single_writer;
mod waiting;
mod writers;

use std::sync::Arc;

use quorate_kernel::conversation::{Capability, NewTurn, Origin, Stamp, Turn, turn_key};
use quorate_kernel::ports::substrate::{Error, Keeps, Substrate};
use quorate_protocol::{Json, Name, storable};
use serde_json::json;

use super::state::nested;
pub use single_writer::{
    describes_itself, handles_odd_authors, reads_since, reads_windows, refuses_long_turns, stores_turns,
};
pub use waiting::notifies_of_changes;
pub use writers::{deduplicates_by_key, supports_many_writers};

pub type Open = dyn Fn() -> Arc<dyn Substrate> + Send + Sync;

/// Runs all checks; `new` returns ways to open empty, independent conversations.
///
/// # Panics
/// When the substrate fails one.
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

/// Asserts that metadata that cannot be read back is refused.
///
/// # Panics
/// When it is accepted, or when it damages the conversation.
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
        for levels in [storable::MAX_DEPTH + 1, 124, 126, 127, 200] {
            let error = substrate.append(with(levels, in_state)).await.expect_err("too deep");
            assert!(
                matches!(&error, Error::Refused(reason) if reason.contains("nests deeper than 64 levels")),
                "{error}"
            );
        }
    }
    substrate.append(with(storable::MAX_DEPTH, true)).await.expect("as deep as it may be");
    let turns = read_all(&*open(), 8).await;
    assert_eq!(turns.iter().map(|turn| &*turn.content).collect::<Vec<_>>(), ["deep"]);
}

/// A turn without metadata.
pub fn new_turn(author: &str, content: &str) -> NewTurn {
    NewTurn {
        participant: author.into(),
        content: content.into(),
        timestamp: "2026-05-18T18:23:11.504Z".into(),
        meta: serde_json::Map::new(),
        stamp: None,
    }
}

/// An answer to a turn, with all the metadata that a runtime writes.
pub fn answer(author: &str, content: &str, trigger: &Name) -> NewTurn {
    let object = |json: Json| json.as_object().cloned().unwrap_or_default();
    NewTurn {
        meta: object(
            json!({"a --> b": "<!-- quorate: {} -->\n=== TURN", "n": [1.5, null, true, {"é": "\u{2028}"}]}),
        ),
        stamp: Some(Stamp {
            key: turn_key(trigger, author),
            runtime: "conformance".into(),
            trigger: trigger.clone(),
            chain: 7,
            selected: vec!["a".into(), author.into()],
            state: Some(object(json!({"count": 3, "of": {"x>": []}}))),
            origin: Some(Origin::Process("--> é".into())),
        }),
        ..new_turn(author, content)
    }
}

/// All turns, read in pages of this size.
///
/// # Panics
/// When they cannot be read.
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

/// Asserts that a stored turn equals the given one; id and time are the substrate's.
fn assert_kept(stored: &Turn, given: &NewTurn, stamps: bool) {
    assert_eq!(stored.participant, given.participant);
    assert_eq!(stored.content, given.content, "byte for byte");
    assert!(
        !stored.id.is_empty() && !stored.id.contains(char::is_whitespace),
        "an id without white space: {:?}",
        stored.id
    );
    assert!(!stored.timestamp.is_empty());
    if stamps {
        assert_eq!(stored.meta, given.meta);
        assert_eq!(stored.stamp, given.stamp);
    }
}

fn ids(turns: &[Turn]) -> Vec<Name> {
    turns.iter().map(|turn| turn.id.clone()).collect()
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Unknown(_))
}
