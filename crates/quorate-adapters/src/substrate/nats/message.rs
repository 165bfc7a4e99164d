//! A turn as a message: one line of JSON, and then the text as it is, which would grow as JSON.

use std::sync::Arc;

use quorate_kernel::conversation::{MAX_TURN_BYTES, NewTurn, Stamp, Turn};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::substrate::Error;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::substrate::{check_turn, turn_id};

pub(super) struct Message {
    head: Head,
    content: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    participant: Name,
    timestamp: String,
    meta: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
    /// A random name, by which the one that sends a turn recognizes it.
    added_as: String,
}

impl Message {
    pub(super) fn new(turn: NewTurn, added_as: String) -> Message {
        let NewTurn { participant, content, timestamp, meta, stamp } = turn;
        Message { head: Head { participant, timestamp, meta, stamp, added_as }, content }
    }

    /// Reads a message; `None` where it is no turn that a substrate would have taken.
    pub(super) fn parse(payload: &[u8]) -> Option<Message> {
        let end = payload.iter().position(|byte| *byte == b'\n')?;
        let (head, content) = payload.split_at(end);
        if content.len() > MAX_TURN_BYTES + 1 {
            return None;
        }
        let head: Head = serde_json::from_slice(head).ok()?;
        let content: Arc<str> = std::str::from_utf8(&content[1..]).ok()?.into();
        let turn = NewTurn {
            participant: head.participant.clone(),
            content: content.clone(),
            timestamp: head.timestamp.clone(),
            meta: head.meta.clone(),
            stamp: head.stamp.clone(),
        };
        check_turn(&turn).ok().map(|()| Message { head, content })
    }

    pub(super) fn write(&self) -> Result<Vec<u8>, Error> {
        let mut text = serde_json::to_vec(&self.head)
            .map_err(|error| Error::Refused(format!("the turn's metadata cannot be written: {error}")))?;
        text.push(b'\n');
        text.extend_from_slice(self.content.as_bytes());
        Ok(text)
    }

    /// The last part of its subject: the same for turns with the same key.
    pub(super) fn subject(&self) -> String {
        match &self.head.stamp {
            Some(stamp) => sha256_hex(stamp.key.as_bytes()),
            None => format!("-{}", self.head.added_as),
        }
    }

    pub(super) fn is_same_append(&self, other: &Message) -> bool {
        self.head.added_as == other.head.added_as
    }

    /// The turn, as the message with this number. Its id has the hash that it has everywhere, and the number, by which it
    /// is found.
    pub(super) fn into_turn(self, number: u64) -> Turn {
        let Message { head: Head { participant, timestamp, meta, stamp, .. }, content } = self;
        let hash = turn_id(&participant, &timestamp, &content);
        let id = format!("{hash}_{number}").into();
        Turn { id, participant, timestamp: timestamp.into(), content, meta, stamp }
    }
}

/// The number in a turn's id.
pub(super) fn number_of(id: &str) -> Option<u64> {
    let (_, digits) = id.strip_prefix("t_")?.split_once('_')?;
    digits.parse().ok()
}
