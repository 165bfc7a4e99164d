//! What a mode can want.

use std::sync::Arc;

use serde_json::Map;

use super::Candidate;
use crate::{Apply, Fact, Json, Name, Part};

/// What a mode wants to be done, in this order.
pub(crate) enum Want {
    /// Gather for a member and ask it.
    Ask(Ask),
    /// Take a question back.
    Cancel(Name),
    /// Have a rule of the host's own applied.
    Apply(Apply),
    /// Hold a candidate outcome against the locks.
    Check(Candidate),
    /// Write something down.
    Record(Fact),
    /// End the run. Nothing after it is done.
    End(Ending),
}

/// A question to a member.
pub(crate) struct Ask {
    pub(crate) id: Name,
    pub(crate) step: Name,
    pub(crate) seat: usize,
    /// What it is shown besides what is gathered for it.
    pub(crate) parts: Vec<Part>,
    pub(crate) task: Arc<str>,
    /// What its consultation's record says besides mode and layer.
    pub(crate) marks: Vec<(&'static str, Json)>,
}

/// Whether a run came to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    Done,
    Refused,
    Incomplete,
}

/// What a run came to.
pub(crate) struct Ending {
    pub(crate) stand: Stand,
    /// The word for it: `pass`, `fail`, `done`, `refused`, `incomplete`.
    pub(crate) word: &'static str,
    /// A stable word for the reason, where there is one.
    pub(crate) code: Option<&'static str>,
    /// Why, in a sentence.
    pub(crate) because: Option<String>,
    /// What was made, by its name in the outcome: `fragments`, `decision`, `messages`, `rollup`.
    pub(crate) artifact: Map<String, Json>,
    /// What else the outcome says.
    pub(crate) also: Map<String, Json>,
}

impl Stand {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Stand::Done => "done",
            Stand::Refused => "refused",
            Stand::Incomplete => "incomplete",
        }
    }
}

impl Ending {
    /// It came to something.
    pub(crate) fn done() -> Self {
        Ending {
            stand: Stand::Done,
            word: Stand::Done.word(),
            code: None,
            because: None,
            artifact: Map::new(),
            also: Map::new(),
        }
    }

    /// It came to nothing, for a reason.
    pub(crate) fn without_artifact(stand: Stand, code: &'static str, because: impl Into<String>) -> Self {
        Ending {
            stand,
            word: stand.word(),
            code: Some(code),
            because: Some(because.into()),
            ..Ending::done()
        }
    }
}
