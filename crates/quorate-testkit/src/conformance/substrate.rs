//! What every substrate must do (see the port's text), by what it declares and by what it keeps.
//!
//! Each function takes a way to open one conversation, which is empty at first. Opening it again is what a restart
//! does, or another process.

mod talk;
mod waiting;
mod writers;

use std::sync::Arc;

use quorate_kernel::conversation::{Capability, NewTurn, Stamp, Turn, turn_key};
use quorate_kernel::ports::substrate::{Error, Keeps, Substrate};
use quorate_protocol::{Json, Name, nesting};
use serde_json::json;

use super::state::nested;
pub use talk::{
    keeps_what_is_said, refuses_or_keeps_odd_authors, refuses_what_is_too_long, shows_windows,
    tells_what_is_newer, tells_who_it_is,
};
pub use waiting::tells_when_something_changed;
pub use writers::{takes_a_key_once, takes_many_writers};

/// Opens the conversation.
pub type Open = dyn Fn() -> Arc<dyn Substrate> + Send + Sync;

/// All of it; `new` gives ways to open conversations that are empty and have nothing to do with each other.
///
/// # Panics
/// When the substrate does not do what it must.
pub async fn all(new: impl Fn() -> Box<Open>) {
    tells_who_it_is(&*new()).await;
    keeps_what_is_said(&*new()).await;
    refuses_or_keeps_odd_authors(&*new()).await;
    refuses_what_nests_too_deep(&*new()).await;
    refuses_what_is_too_long(&*new()).await;
    tells_what_is_newer(&*new()).await;
    shows_windows(&*new()).await;
    takes_a_key_once(&*new()).await;
    takes_many_writers(&*new()).await;
    tells_when_something_changed(&*new()).await;
}

/// What could not be read back beside a turn is not taken.
///
/// # Panics
/// When it is, or when it spoils the conversation.
pub async fn refuses_what_nests_too_deep(open: &Open) {
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
    let turns = everything(&*open(), 8).await;
    assert_eq!(turns.iter().map(|turn| &*turn.content).collect::<Vec<_>>(), ["deep"]);
}

/// A turn without anything beside what is said.
pub fn said(by: &str, content: &str) -> NewTurn {
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
        ..said(by, content)
    }
}

/// Everything that was said, read in pages of this size.
///
/// # Panics
/// When it cannot be read.
pub async fn everything(substrate: &dyn Substrate, page: usize) -> Vec<Turn> {
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
