//! A conversation: turns, who takes them, and what an executor gets to see of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// The maximum length of a turn's content in bytes: every later prompt carries it.
pub const MAX_TURN_BYTES: usize = 256 * 1024;

/// A turn as its substrate stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Its id; the substrate decides the form.
    pub id: Name,
    /// Who took it: a participant's id, or any other name.
    pub participant: Name,
    /// The time, as RFC 3339, verbatim.
    pub timestamp: Arc<str>,
    /// The message.
    pub content: Arc<str>,
    /// What its author added.
    pub meta: Map<String, Json>,
    /// What ties it to the turn that it answers; only a runtime's own turns have one.
    pub stamp: Option<Stamp>,
}

/// A turn to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTurn {
    /// Who took it: a participant's id, or any other name.
    pub participant: Name,
    /// The message; never empty.
    pub content: Arc<str>,
    /// When, as RFC 3339 in UTC with milliseconds. A substrate may move it on, or set its own.
    pub timestamp: String,
    /// What its author adds.
    pub meta: Map<String, Json>,
    /// Its key, and what a restart needs to know.
    pub stamp: Option<Stamp>,
}

/// What a runtime writes with its own turns, so that everything else can be restored from the conversation alone
/// (K5). A turn that answers none has one for its key or its origin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// The idempotency key, `turn/<trigger>/<participant>`: a substrate takes one turn for each.
    pub key: Name,
    /// The id of the runtime.
    pub runtime: Name,
    /// The turn that this one answers. All earlier turns are settled.
    pub trigger: Name,
    /// How many participants' turns lead from a person's turn to this one, itself included; 0 if that is unknown, as in
    /// stamps of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chain: usize,
    /// Who was selected for the trigger, in order, where it was not this participant alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selected: Vec<Name>,
    /// The participant's whole state from now on, where the turn changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Map<String, Json>>,
    /// Who wrote the turn, if not its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Who wrote a turn under another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person, in the name of a participant.
    Person,
    /// A process that an executor started for this member.
    Process(Name),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Person => f.write_str("a person"),
            Origin::Process(member) => write!(f, "a process of {member}"),
        }
    }
}

impl Turn {
    /// Who wrote it, if not its author.
    pub fn origin(&self) -> Option<&Origin> {
        self.stamp.as_ref()?.origin.as_ref()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The id of an invocation of a turn, which is also the key of the turn that comes of it.
pub fn turn_key(trigger: &str, participant: &str) -> Name {
    format!("turn/{trigger}/{participant}").into()
}

/// A participant of the manifest, with defaults for absent fields (K9).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Participant {
    /// Its id.
    pub id: Name,
    /// The kind of its executor.
    pub executor: String,
    /// The name in mentions; by default the id.
    pub display_name: String,
    /// `meta`, verbatim.
    pub meta: Map<String, Json>,
    /// Its role prompt; empty by default.
    pub role: Arc<str>,
    /// Its tools.
    pub tools: Tools,
}

impl Participant {
    /// A text of `meta`.
    pub fn meta_text(&self, key: &str) -> Option<&str> {
        self.meta.get(key).and_then(Json::as_str)
    }

    /// The operator of the conversation's server that it stands for: `meta.operatorId`.
    pub fn operator(&self) -> Option<&str> {
        self.meta_text("operatorId")
    }

    /// The texts of a list in `meta`.
    pub fn meta_texts(&self, key: &str) -> Vec<&str> {
        self.meta.get(key).and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect()
    }
}

/// The tools of a participant. Nothing enforces them but its executor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// Names of tools; `None` where the manifest says nothing of this participant.
    pub allowed: Option<Vec<String>>,
    /// Ids of MCP servers whose tools it may use.
    pub servers: Vec<String>,
}

/// What an executor gets to know of the conversation that it is asked in.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationContext {
    /// The selected participants.
    pub participant: Participant,
    /// The window, oldest first; the last one is the trigger.
    pub recent: Vec<Turn>,
    /// The participant's state.
    pub state: Map<String, Json>,
    /// What the substrate calls the conversation, where it has a name for it elsewhere.
    pub external_id: Option<String>,
}

impl ConversationContext {
    /// The turn that is answered.
    pub fn trigger(&self) -> Option<&Turn> {
        self.recent.last()
    }
}

/// A substrate's optional features (AIP-48). Callers check for one before they use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Texts refer to participants as `@name`.
    Mentions,
    /// Turns can carry reactions.
    Reactions,
    /// Turns have a scope of who sees them.
    Visibility,
    /// Authors are distinguished beyond the participant's id.
    Identity,
    /// Several processes can append at once and no turn is lost.
    MultiWriter,
    /// Everybody reads the same order.
    Ordered,
}

quorate_manifest::words!(Capability {
    Mentions = "mentions",
    Reactions = "reactions",
    Visibility = "visibility",
    Identity = "identity",
    MultiWriter = "multi-writer",
    Ordered = "ordered",
});

/// A set of capabilities.
pub type Capabilities = BTreeSet<Capability>;
