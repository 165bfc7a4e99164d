//! The state of a conversation: the outcome of each turn, what participants remember, and who answers next and why.

use std::collections::BTreeMap;

use quorate_kernel::conversation::Turn;
use quorate_kernel::ports::ledger::{Ledger as _, Record};
use quorate_kernel::record;
use quorate_kernel::turn::Forecast;
use quorate_protocol::{Json, Name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Map;

use super::Talk;
use super::activity::{Activity, Doing};
use crate::service::error::ServiceError;
use crate::service::runtime::shared_conversation::Conversation;
use crate::service::runtime::{Runtime, conversation};
use crate::service::session::LedgerSession;

/// How many turns after the last settled turn are read to find open turns.
const OPEN_TURNS: usize = 200;
/// How many of the conversation's last records are read from the ledger.
const RECORDS: u32 = 512;

/// How a conversation stands
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TalkState {
    pub id: String,
    /// The runtime's id
    pub runtime: String,
    /// The manifest, from the workspace's root
    pub manifest: String,
    /// The kind of the dispatcher, which selects the next speakers
    pub dispatcher: String,
    pub participants: Vec<ParticipantState>,
    pub next: Next,
    /// The outcomes of turns, from the last records of the ledger
    pub outcomes: Vec<TurnOutcome>,
}

/// A participant of the runtime
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ParticipantState {
    pub id: String,
    /// What it is called and mentioned by
    pub name: String,
    /// The kind of its executor
    pub executor: String,
    /// What it does in the run of this server; null if it was not asked
    pub doing: Option<Doing>,
    /// Why it has not answered
    pub why: Option<String>,
    /// What it remembers
    pub state: Map<String, Json>,
    /// Why its state cannot be read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_error: Option<String>,
}

/// Who answers next
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Next {
    /// The oldest turn that is not settled; null if there is none
    pub turn: Option<String>,
    /// How many turns are not settled
    pub open: usize,
    /// Who answers it, in this order
    pub participants: Vec<String>,
    /// Why
    pub why: String,
}

/// The outcome of a turn
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TurnOutcome {
    pub turn: String,
    /// Who was selected to answer it
    pub selected: Vec<String>,
    /// Who was selected and has not answered, each with the reason
    pub failed: Vec<FailedAnswer>,
    /// Why no participant was selected
    pub why: Option<String>,
}

/// A participant that has not answered
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedAnswer {
    pub participant: String,
    pub why: String,
}

/// Reads the state of a conversation. `ledger` is the workspace's ledger, if it exists.
///
/// # Errors
/// If the substrate or the ledger fails, or if only the process that runs the conversation can read it.
#[crate::boxed]
pub async fn state(
    talk: &Talk,
    runtime: &Runtime,
    talking: &Conversation,
    ledger: Option<&LedgerSession>,
    activity: &Activity,
) -> Result<TalkState, ServiceError> {
    conversation::check_shared(
        runtime,
        "read its records in the ledger with `quorate log MANIFEST --records`",
    )?;
    let records = match ledger {
        Some(session) => session.store.tail(&runtime.stream(), RECORDS).await?,
        None => Vec::new(),
    };
    let settled = records.iter().filter_map(turn_record).collect::<Vec<_>>();
    let cursor = settled.iter().rev().find_map(|settled| settled.cursor.clone());
    let next = next(runtime, talking, cursor.as_ref(), &records).await?;
    let mut participants = Vec::new();
    for participant in &runtime.participants {
        let (doing, why) = activity.get(&participant.id).cloned().unzip();
        let read = conversation::state(runtime, &participant.id).await;
        participants.push(ParticipantState {
            id: participant.id.to_string(),
            name: participant.display_name.clone(),
            executor: participant.executor.clone(),
            doing,
            why: why.flatten(),
            state_error: read.as_ref().err().map(ServiceError::first_message),
            state: read.unwrap_or_default(),
        });
    }
    Ok(TalkState {
        id: talk.id.clone(),
        runtime: runtime.id.clone(),
        manifest: talk.manifest.clone(),
        dispatcher: runtime.dispatcher().to_owned(),
        participants,
        next,
        outcomes: outcomes(settled),
    })
}

fn turn_record(record: &Record) -> Option<record::Turn> {
    record.read().ok().flatten()
}

/// The outcome of each turn, in the order of the records.
fn outcomes(records: Vec<record::Turn>) -> Vec<TurnOutcome> {
    let mut all: BTreeMap<Name, (usize, TurnOutcome)> = BTreeMap::new();
    for (at, record) in records.into_iter().enumerate() {
        let Some(trigger) = record.trigger else { continue };
        let names = |ids: Vec<Name>| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let failed = record.failed.unwrap_or_default().into_iter();
        let outcome = TurnOutcome {
            turn: trigger.to_string(),
            selected: names(record.selected.unwrap_or_default()),
            failed: failed
                .map(|failed| FailedAnswer { participant: failed.participant.to_string(), why: failed.why })
                .collect(),
            why: record.why.flatten(),
        };
        all.insert(trigger, (at, outcome));
    }
    let mut all: Vec<(usize, TurnOutcome)> = all.into_values().collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Forecasts who answers the oldest turn after the cursor.
async fn next(
    runtime: &Runtime,
    talking: &Conversation,
    cursor: Option<&Name>,
    records: &[Record],
) -> Result<Next, ServiceError> {
    let page = match cursor {
        Some(cursor) => talking.after(cursor, OPEN_TURNS).await?,
        None => talking.first(OPEN_TURNS).await?,
    };
    let nothing = |why: &str| Next { turn: None, open: 0, participants: Vec::new(), why: why.to_owned() };
    let Some(trigger) = page.turns.first() else { return Ok(nothing("every turn is settled")) };
    if !page.known {
        return Ok(nothing("the last settled turn is not in the conversation any more"));
    }
    let window = match cursor {
        Some(_) => runtime.substrate.window(&trigger.id, runtime.window()).await?,
        None => vec![trigger.clone()],
    };
    let (participants, why) = forecast(runtime, trigger, &window, records).await;
    Ok(Next { turn: Some(trigger.id.to_string()), open: page.turns.len(), participants, why })
}

async fn forecast(
    runtime: &Runtime,
    trigger: &Turn,
    window: &[Turn],
    records: &[Record],
) -> (Vec<String>, String) {
    let dispatcher = runtime.dispatcher();
    match runtime.forecast(window, records).await {
        Forecast::Speakers(named) if named.is_empty() => {
            let misses = runtime.probable_addressees(&trigger.content).join(" ");
            let why = format!("the dispatcher `{dispatcher}` selects no participant for it. {misses}");
            (Vec::new(), why.trim_end().to_owned())
        }
        Forecast::Speakers(named) => {
            let why =
                format!("the dispatcher `{dispatcher}` selects for the turn of {}", trigger.participant);
            (named.iter().map(ToString::to_string).collect(), why)
        }
        Forecast::GuardHit { turns } => {
            let why = format!("the last {turns} turns are of participants: a person has to speak first");
            (Vec::new(), why)
        }
        Forecast::NeedsExecutor => {
            (Vec::new(), format!("the dispatcher `{dispatcher}` asks an executor to select the speakers"))
        }
        Forecast::Undecided(why) => (Vec::new(), format!("the dispatcher `{dispatcher}` fails: {why}")),
    }
}
