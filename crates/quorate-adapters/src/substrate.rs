//! Substrates store conversations. One file or folder for each kind; this one holds what all of them do with a turn, so
//! that a turn has the same id in every substrate.

pub mod file;

#[cfg(feature = "mcp")]
pub mod guilde_mcp;

pub mod memory;

#[cfg(feature = "nats")]
pub mod nats;

#[cfg(feature = "postgres")]
pub mod postgres;

pub mod sqlite;

use std::time::Duration;

use quorate_kernel::conversation::{Capability, MAX_TURN_BYTES, NewTurn, Turn};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::ports::substrate::{About, IdProof, Keeps, Lifetime, SubstrateError};
use quorate_kernel::registry::BuildContext;
use quorate_kernel::{clock, entropy};
use quorate_protocol::{Json, Name, storable};
use sha2::{Digest, Sha256};

use crate::block::Block;

const ID_DIGITS: usize = 12;

/// How often a waiter looks whether another process has changed a file.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The key `sync` (default true): whether a turn survives a power failure once its append has returned.
fn parse_sync(build: &BuildContext<'_>, block: &Block<'_>) -> Result<bool, ConfigError> {
    match build.block.get("sync") {
        None | Some(Json::Null) => Ok(true),
        Some(_) => block.flag("sync"),
    }
}

/// A substrate that keeps whole turns, for any number of processes that write at once and read one order.
fn persistent(kind: &'static str, place: String) -> About {
    About {
        kind,
        capabilities: [Capability::Mentions, Capability::MultiWriter, Capability::Ordered].into(),
        keeps: Keeps::Stamps,
        lifetime: Lifetime::Persistent,
        place,
        conversation: None,
    }
}

/// Refuses turns that a journal could not hold. Every substrate refuses them, so that a manifest can change its substrate.
fn check_turn(turn: &NewTurn) -> Result<(), SubstrateError> {
    let refused = |why: String| Err(SubstrateError::Refused(why));
    let participant = &*turn.participant;
    if participant.is_empty() {
        return refused("a turn needs an author: the participant's id is empty".to_owned());
    }
    // White space by the public reader's definition, and by Rust's.
    let hostile = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    if participant.contains(hostile) {
        return refused(format!(
            "the participant's id {participant:?} holds white space, which the header of a turn cannot hold; \
             use `-` instead"
        ));
    }
    let timestamp = &turn.timestamp;
    if timestamp.contains(hostile) || clock::parse_rfc3339(timestamp).is_none() {
        return refused(format!("{timestamp:?} is not a time in the form of RFC 3339"));
    }
    if turn.content.is_empty() {
        return refused(format!("the turn of `{participant}` is empty; a turn says something"));
    }
    let (bytes, max_bytes) = (turn.content.len(), MAX_TURN_BYTES);
    if bytes > max_bytes {
        return refused(format!(
            "the turn of `{participant}` has {bytes} bytes; a turn has at most {max_bytes}: keep what is longer in a file, \
             and name it in the turn"
        ));
    }
    let state = turn.stamp.as_ref().and_then(|stamp| stamp.state.as_ref());
    for (what, object) in [("metadata", Some(&turn.meta)), ("state", state)] {
        let Some(object) = object else { continue };
        if let Err(error) = storable::check_object(object, storable::MAX_DEPTH) {
            return refused(format!("the {what} of the turn of `{participant}` cannot be stored: {error}"));
        }
    }
    Ok(())
}

/// The id of a turn, a hash of its content (K5).
fn turn_id(participant: &str, timestamp: &str, content: &str) -> Name {
    let mut hash = Sha256::new();
    for part in [participant.as_bytes(), b"\0", timestamp.as_bytes(), b"\0", content.as_bytes()] {
        hash.update(part);
    }
    format!("t_{}", entropy::hex(&hash.finalize()[..ID_DIGITS / 2])).into()
}

/// Whether an id has the form of a content hash.
fn is_content_id(id: &str) -> bool {
    id.strip_prefix("t_").is_some_and(|digits| {
        digits.len() == ID_DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// What the id of a turn proves (D15). An id of another form is one that another program chose.
fn id_proof(turn: &Turn) -> IdProof {
    if !is_content_id(&turn.id) {
        return IdProof::Absent;
    }
    match turn_id(&turn.participant, &turn.timestamp, &turn.content) == turn.id {
        true => IdProof::Holds,
        false => IdProof::Broken,
    }
}

/// One millisecond later: the timestamp for a turn whose id is taken.
fn next_millisecond(timestamp: &str) -> Result<String, SubstrateError> {
    clock::parse_rfc3339(timestamp).map(|at| clock::rfc3339(at + 1)).ok_or_else(|| {
        SubstrateError::Refused(format!("{timestamp:?} is not a time in the form of RFC 3339"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_public_formula() {
        // printf 'reviewer\0002026-05-23T10:00:00Z\000hello' | sha256sum
        assert_eq!(&*turn_id("reviewer", "2026-05-23T10:00:00Z", "hello"), "t_e29ade760981");
        assert_eq!(next_millisecond("2026-05-23T10:00:00.999Z").unwrap(), "2026-05-23T10:00:01.000Z");
    }
}
