//! Replay: derives the verdict again from the ledger, without calls (X11).

use quorate_protocol::{Command, Json, Part, Protocol};
use serde_json::Map;

use crate::canonical::object as canonical;
use crate::history::History;

/// Where a replay differs from what was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The kind of record.
    pub kind: String,
    /// What was recorded; `None` where the replay says more.
    pub recorded: Option<Json>,
    /// What follows now; `None` where it says less.
    pub replayed: Option<Json>,
}

/// What a replay gave.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayResult {
    /// The facts that follow, in order.
    pub facts: Vec<(String, Map<String, Json>)>,
    /// Whether the protocol finished.
    pub finished: bool,
    /// Where they differ from the recorded ones; empty when they are identical.
    pub differences: Vec<Difference>,
}

/// Feeds a run's events to a fresh protocol and compares what it concludes with what was recorded, as canonical JSON.
pub fn replay(history: &History, inputs: Vec<Part>, protocol: &mut dyn Protocol) -> ReplayResult {
    let mut facts = Vec::new();
    let mut finished = false;
    for stamped in history.events(inputs) {
        for command in protocol.advance(&stamped) {
            match command {
                Command::Record(fact) => {
                    facts.push((fact.kind.as_str().to_owned(), crate::consultation::object(fact.data)))
                }
                Command::Finish => finished = true,
                Command::Gather(_)
                | Command::Invoke(_)
                | Command::Cancel(_)
                | Command::SemanticMatch(_)
                | Command::ApplyRule(_) => {}
            }
        }
    }
    ReplayResult { differences: differences(&history.facts, &facts), facts, finished }
}

type Facts = [(String, Map<String, Json>)];

fn differences(recorded: &Facts, replayed: &Facts) -> Vec<Difference> {
    let length = recorded.len().max(replayed.len());
    let differ = |at: usize| {
        let (a, b) = (recorded.get(at), replayed.get(at));
        if let (Some(a), Some(b)) = (a, b)
            && a.0 == b.0
            && canonical(&a.1) == canonical(&b.1)
        {
            return None;
        }
        let kind = a.or(b).map(|(kind, _)| kind.clone()).unwrap_or_default();
        let body =
            |one: Option<&(String, Map<String, Json>)>| one.map(|(_, data)| Json::Object(data.clone()));
        Some(Difference { kind, recorded: body(a), replayed: body(b) })
    };
    (0..length).filter_map(differ).collect()
}
