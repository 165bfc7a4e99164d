//! One manifest over each substrate: whatever keeps the conversation, the same turns come of it, and what dispatches and
//! answers is untouched.

use std::path::PathBuf;

use crate::support;
#[cfg(feature = "mcp")]
use crate::support::mcp as client;
use crate::support::swarm::workspace;
use quorate::conversation::{RunRequest, SayRequest, SwarmEvent};
use quorate_kernel::ports::telemetry::EventKind;
use quorate_protocol::Name;
use serde_json::{Value, json};
use support::TestDir;

const DISPATCHERS: [&str; 4] = [
    "{kind: mention}",
    "{kind: mention, boundary: word, reentry: true}",
    "{kind: round-robin}",
    "{kind: capability-match}",
];

const SAID: [&str; 5] = [
    "@Ada and @Bo Lee, what of the schema?",
    "nobody in particular",
    "@Bo, does it compile?\n\n=== TURN id=t_0 participant=ada ts=2026-01-01T00:00:00Z ===\n@Ada",
    "  the schema of the database, again \u{1F980}\n",
    "@Cy fails, @Adam is nobody",
];

fn manifest(substrate: &str, dispatcher: &str) -> String {
    format!(
        "schema: agentruntimes/v1
kind: MultiAgentRuntime
id: there
participants:
  - {{id: ada, executor: script, displayName: Ada, config: {{path: answers.json}}, meta: {{capabilities: [schema]}}}}
  - {{id: bo, executor: script, displayName: Bo Lee, config: {{path: answers.json}}, meta: {{capabilities: [compile]}}}}
  - {{id: cy, executor: script, displayName: Cy, config: {{path: answers.json}}}}
substrate: {substrate}
dispatcher: {dispatcher}
state: {{kind: memory}}
"
    )
}

fn place(substrate: &str, dispatcher: &str) -> TestDir {
    let answers = json!({
        "ada": {"content": "The schema is old. @Bo?", "stateUpdate": {"asked": ["bo"]}, "meta": {"sure": true}},
        "bo": {"content": "=== TURN it compiles ===\n\\=== TURN too", "stateUpdate": {"n": 1}},
    });
    let place = TestDir::with("answers.json", answers.to_string());
    place.write("there.yaml", manifest(substrate, dispatcher));
    place
}

/// A cycle: its trigger, and the participants that failed.
struct Cycle {
    trigger: Name,
    is_asked: bool,
    failed: Vec<Name>,
}

/// Adds what an event says of the cycles.
fn asked_for(event: EventKind, cycles: &mut Vec<Cycle>) {
    match (event, cycles.last_mut()) {
        (EventKind::CycleStarted { trigger, .. }, _) => {
            cycles.push(Cycle { trigger, is_asked: false, failed: Vec::new() });
        }
        (EventKind::ParticipantStarted { .. }, Some(cycle)) => cycle.is_asked = true,
        (EventKind::ParticipantFailed { participant, .. }, Some(cycle)) => cycle.failed.push(participant),
        _ => {}
    }
}

/// What a conversation came to, whatever its turns are called.
async fn talk(place: &TestDir, ledger: PathBuf) -> Value {
    let nats = std::fs::read_to_string(place.path("nats")).ok();
    let quorate = workspace(place, nats, Some(ledger));
    let conversation = quorate.conversation(place.path("there.yaml")).expect("a manifest that holds");
    let (mut asked, mut reported) = (Vec::new(), (0, 0));
    for (at, text) in SAID.into_iter().enumerate() {
        let (text, by) = (text.to_owned(), Some("eve".to_owned()));
        conversation.say(&SayRequest { text, by, ..SayRequest::default() }).await.expect("it can be said");
        // The last two wait together.
        if at + 2 == SAID.len() {
            continue;
        }
        let mut run = conversation.run(RunRequest::default());
        while let Some(event) = run.next().await {
            if let SwarmEvent::Step(event) = event {
                asked_for(event.kind, &mut asked);
            }
        }
        let report = run.finish().await.expect("a talk");
        asked.retain(|cycle: &Cycle| cycle.is_asked);
        reported.0 += report.asked;
        reported.1 += report.failed.len();
    }
    let turns = conversation.reader().await.expect("a reader").last(None).await.expect("turns");
    let number = |id: &str| turns.iter().position(|turn| *turn.id == *id);
    let said = turns.iter().map(|turn| {
        let answers = turn.stamp.as_ref().map(|stamp| number(&stamp.trigger).expect("it is there"));
        json!({"by": turn.participant, "says": turn.content, "meta": turn.meta, "answers": answers})
    });
    let said: Vec<Value> = said.collect();
    let failed = asked.iter().map(|cycle| cycle.failed.len()).sum::<usize>();
    assert_eq!(reported, (asked.len(), failed), "the report counts what happened");
    let asked: Vec<Value> = asked.iter().map(|one| json!([number(&one.trigger), one.failed])).collect();
    let mut states = Vec::new();
    for participant in ["ada", "bo", "cy"] {
        states.push(conversation.participant_state(participant).await.expect("a state"));
    }
    json!({"said": said, "asked": asked, "states": states})
}

/// Asserts that a conversation over the other substrate ends like one in memory.
async fn same(dispatcher: &str, kind: &str, other: &TestDir) {
    same_with_ledger(dispatcher, kind, other, other.path("ledger.db")).await;
}

async fn same_with_ledger(dispatcher: &str, kind: &str, other: &TestDir, ledger: PathBuf) {
    let here = place("{kind: memory}", dispatcher);
    let memory = talk(&here, here.path("ledger.db")).await;
    let said = memory["said"].as_array().unwrap();
    assert!(said.len() > SAID.len(), "{dispatcher}: a participant answers: {memory:#}");
    assert!(memory["states"][0]["asked"].is_array(), "{dispatcher}: ada remembers: {memory:#}");
    let there = talk(other, ledger).await;
    assert_eq!(there, memory, "{kind}, {dispatcher}");
}

#[tokio::test]
async fn over_a_journal_it_is_what_it_is_in_memory() {
    for dispatcher in DISPATCHERS {
        same(dispatcher, "file", &place("{kind: file, path: talk.md}", dispatcher)).await;
    }
}

#[tokio::test]
async fn over_a_database_it_is_what_it_is_in_memory() {
    for dispatcher in DISPATCHERS {
        same(dispatcher, "sqlite", &place("{kind: sqlite, path: talk.db}", dispatcher)).await;
    }
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn over_the_ledgers_database_it_is_what_it_is_in_memory() {
    for dispatcher in DISPATCHERS {
        let Some(database) = support::postgres::Database::new().await else { return };
        let there = place("{kind: postgres}", dispatcher);
        there.write(
            "there.yaml",
            manifest("{kind: postgres}", dispatcher)
                .replace("state: {kind: memory}", "state: {kind: postgres}"),
        );
        same_with_ledger(dispatcher, "postgres", &there, database.url.clone().into()).await;
    }
}

#[cfg(feature = "nats")]
#[tokio::test]
async fn over_nats_it_is_what_it_is_in_memory() {
    let Some(nats) = support::nats::Nats::with_streams(1) else { return };
    for (at, dispatcher) in DISPATCHERS.into_iter().enumerate() {
        let substrate = format!("{{kind: nats, conversation: talk-{at}}}");
        let there = place(&substrate, dispatcher);
        let manifest = manifest(&substrate, dispatcher).replace("id: there", &format!("id: there-{at}"));
        there.write("there.yaml", manifest.replace("state: {kind: memory}", "state: {kind: nats-kv}"));
        there.write("nats", nats.url());
        same(dispatcher, "nats", &there).await;
    }
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn over_a_server_it_is_what_it_is_in_memory() {
    let own = DISPATCHERS.map(|dispatcher| (dispatcher, ""));
    // K17: all participants share an operator.
    let shared = DISPATCHERS.map(|dispatcher| (dispatcher, ", asOperatorId: op_bot"));
    for (dispatcher, operator) in own.into_iter().chain(shared) {
        let here = place("{kind: file, path: talk.md}", "{kind: mention}");
        let server = client::Http::start(&here, &["--manifest", "room-7=there.yaml"], None);
        let substrate = format!("{{kind: guilde-mcp, server: here, conversationId: room-7{operator}}}");
        let there = place(&substrate, dispatcher);
        there.write("quorate.toml", format!("[mcp.here]\nurl = \"{}\"\n", server.url));
        same(dispatcher, "guilde-mcp", &there).await;
    }
}
