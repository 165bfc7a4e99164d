//! `/talks`, and `/talks/{id}`: a conversation with its turns and participants.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::conversation::{Doing, Next, ParticipantState, ShownTurn, Talk, TurnOutcome};

use super::{Frame, query, respond};
use crate::Server;
use crate::api::talks::{TalkQuery, list, load_talk};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "talks.html")]
struct TalksPage {
    frame: Frame,
    talks: Vec<Talk>,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<TalksPage, Failure> {
    let frame = Frame::new(server, "Conversations", "talks", "quorate log MANIFEST".to_owned());
    Ok(TalksPage { frame: frame.with_json("/api/v1/talks".to_owned()), talks: list(server).await? })
}

#[derive(Template)]
#[template(path = "talk.html")]
struct TalkPage {
    frame: Frame,
    id: String,
    runtime: String,
    manifest: String,
    turns: Vec<TurnView>,
    /// The id of the last turn, after which new ones are asked for.
    last: String,
    /// The address of the turns before these.
    older: Option<String>,
    /// Whether these are the newest turns, which the page follows.
    is_newest: bool,
    next: String,
    participants: Vec<ParticipantView>,
    can_write: bool,
}

struct TurnView {
    turn: ShownTurn,
    /// What became of it: who was selected and failed, or why no participant was.
    notes: Vec<String>,
}

struct ParticipantView {
    id: String,
    name: String,
    executor: String,
    doing: String,
    state: String,
}

/// The page.
pub(super) async fn show_talk(server: &Arc<Server>, id: &str, text: &str) -> Response {
    respond(server, talk_page(server, id, text).await)
}

async fn talk_page(server: &Arc<Server>, id: &str, text: &str) -> Result<TalkPage, Failure> {
    let asked: TalkQuery = query(text)?;
    let talk = load_talk(server, id, &asked).await?;
    let state = talk.now;
    let command = format!("quorate log {}", state.manifest);
    let frame = Frame::new(server, state.runtime.clone(), "talks", command);
    let mut outcomes: BTreeMap<String, Vec<String>> =
        state.outcomes.into_iter().map(|outcome| (outcome.turn.clone(), turn_notes(outcome))).collect();
    let first = talk.turns.first().map(|turn| turn.id.clone());
    let older = first.filter(|_| talk.more).map(|first| {
        let before = serde_urlencoded::to_string([("before", first)]).unwrap_or_default();
        format!("/talks/{}?{before}", state.id)
    });
    Ok(TalkPage {
        frame: frame.with_json(format!("/api/v1/talks/{}", state.id)),
        last: talk.turns.last().map(|turn| turn.id.clone()).unwrap_or_default(),
        turns: talk
            .turns
            .into_iter()
            .map(|turn| TurnView { notes: outcomes.remove(&turn.id).unwrap_or_default(), turn })
            .collect(),
        older,
        is_newest: asked.before.is_none(),
        next: next_turn(&state.next),
        participants: state.participants.into_iter().map(participant).collect(),
        can_write: !server.read_only,
        id: state.id,
        runtime: state.runtime,
        manifest: state.manifest,
    })
}

/// The outcome of a turn that was not answered as usual.
fn turn_notes(outcome: TurnOutcome) -> Vec<String> {
    let failed = outcome.failed.into_iter();
    let failed = failed.map(|failed| format!("{} has not answered: {}", failed.participant, failed.why));
    let why = outcome.why.map(|why| format!("no participant answers: {why}"));
    failed.chain(why).collect()
}

/// The next participants, in the same words as `live.js`.
fn next_turn(next: &Next) -> String {
    match (&next.turn, next.participants.is_empty()) {
        (None, _) => format!("No turn is open: {}.", next.why),
        (Some(_), true) => format!("No participant is next: {}.", next.why),
        (Some(_), false) => format!("Next: {} ({}).", next.participants.join(", "), next.why),
    }
}

fn participant(state: ParticipantState) -> ParticipantView {
    let doing = match state.doing {
        Some(Doing::Asked) => "is asked".to_owned(),
        Some(Doing::Answered) => "has answered".to_owned(),
        Some(Doing::Failed) => format!("has not answered: {}", state.why.unwrap_or_default()),
        None => String::new(),
    };
    let remembered = serde_json::to_string_pretty(&state.state).unwrap_or_default();
    ParticipantView {
        id: state.id,
        name: state.name,
        executor: state.executor,
        doing,
        state: state.state_error.unwrap_or(if state.state.is_empty() { String::new() } else { remembered }),
    }
}
