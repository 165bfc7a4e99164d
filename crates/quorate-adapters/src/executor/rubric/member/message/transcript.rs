//! What a peer has heard so far, its own messages included, as far as it can be read.

use quorate_protocol::Json;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The round, from 1.
    pub(super) round: usize,
    pub(super) from: String,
    pub(super) text: String,
}

/// All messages, in the order of the transcript.
#[derive(Debug)]
pub(super) struct Transcript {
    said: Vec<Said>,
    member: String,
}

impl Transcript {
    /// Reads a transcript for a member. What is not of its form says nothing.
    pub(super) fn read(text: &str, member: &str) -> Self {
        let list = match serde_json::from_str(text) {
            Ok(Json::Array(list)) => list,
            _ => Vec::new(),
        };
        let said = list.iter().filter_map(|one| {
            let text = |key: &str| one.get(key).and_then(Json::as_str).map(str::to_owned);
            let round = one.get("round").and_then(Json::as_u64).and_then(|round| usize::try_from(round).ok());
            Some(Said { round: round.unwrap_or(1), from: text("from")?, text: text("text")? })
        });
        Transcript { said: said.collect(), member: member.to_owned() }
    }

    /// The member's own messages.
    pub(super) fn own(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.from == self.member)
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(|said| said.from != self.member)
    }
}
