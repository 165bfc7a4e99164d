//! What members objected to in a talk, and what became of it.

use quorate_protocol::Json;
use serde_json::json;

/// What a member objected to last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    pub member: String,
    pub round: u64,
    /// Whether its author took it back.
    pub taken_back: bool,
    /// Whether a message of somebody else reached its author after it.
    pub answered: bool,
}

impl Objection {
    pub(super) fn read(value: &Json) -> Option<Objection> {
        let flag = |key: &str| value.get(key).and_then(Json::as_bool);
        Some(Objection {
            member: value.get("member")?.as_str()?.to_owned(),
            round: value.get("round")?.as_u64()?,
            taken_back: flag("takenBack")?,
            answered: flag("answered")?,
        })
    }

    pub(super) fn json(&self) -> Json {
        json!({
            "member": self.member, "round": self.round, "takenBack": self.taken_back, "answered": self.answered,
        })
    }
}
