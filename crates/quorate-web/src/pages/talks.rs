//! `/talks`, and `/talks/{id}`: a conversation with its turns and participants.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use quorate::conversation::{Doing, Next, ParticipantState, Talk, TurnOutcome};

use super::{Asked, Frame};
use crate::Server;
use crate::api::talks::{ShownTalk, TalkQuery, list, load_talk};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "talks.html")]
pub(super) struct TalksPage {
    frame: Frame,
    talks: Vec<Talk>,
}

/// The page.
pub(super) async fn page(server: Arc<Server>, _: Asked) -> Result<TalksPage, Failure> {
    let frame = Frame::new(&server, "Conversations", "talks", "quorate log MANIFEST".to_owned());
    Ok(TalksPage { frame: frame.with_json("/api/v1/talks".to_owned()), talks: list(&server).await? })
}

#[derive(Template)]
#[template(path = "talk.html")]
pub(super) struct TalkPage {
    frame: Frame,
    talk: ShownTalk,
    /// What became of turns, by their ids: who was selected and failed, or why no participant was.
    notes: BTreeMap<String, Vec<String>>,
    /// The address of the turns before these.
    older: Option<String>,
    /// Whether these are the newest turns, which the page follows.
    is_newest: bool,
    can_write: bool,
}

/// The page.
pub(super) async fn talk_page(server: Arc<Server>, asked: Asked) -> Result<TalkPage, Failure> {
    let query: TalkQuery = asked.query()?;
    let talk = load_talk(&server, &asked.part("talk"), &query).await?;
    let state = &talk.now;
    let frame =
        Frame::new(&server, state.runtime.clone(), "talks", format!("quorate log {}", state.manifest));
    let older = talk.turns.first().filter(|_| talk.more).map(|first| {
        let before = serde_urlencoded::to_string([("before", &first.id)]).unwrap_or_default();
        format!("/talks/{}?{before}", state.id)
    });
    Ok(TalkPage {
        frame: frame.with_json(format!("/api/v1/talks/{}", state.id)),
        notes: state.outcomes.iter().map(|outcome| (outcome.turn.clone(), turn_notes(outcome))).collect(),
        older,
        is_newest: query.before.is_none(),
        can_write: !server.read_only,
        talk,
    })
}

/// The outcome of a turn that was not answered as usual.
fn turn_notes(outcome: &TurnOutcome) -> Vec<String> {
    let failed = outcome.failed.iter();
    let failed = failed.map(|failed| format!("{} has not answered: {}", failed.participant, failed.why));
    let why = outcome.why.as_ref().map(|why| format!("no participant answers: {why}"));
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

/// The activity of a participant.
fn doing(participant: &ParticipantState) -> String {
    match participant.doing {
        Some(Doing::Asked) => "is asked".to_owned(),
        Some(Doing::Answered) => "has answered".to_owned(),
        Some(Doing::Failed) => {
            format!("has not answered: {}", participant.why.as_deref().unwrap_or_default())
        }
        None => String::new(),
    }
}

fn remembered(participant: &ParticipantState) -> String {
    match &participant.state_error {
        Some(error) => error.clone(),
        None if participant.state.is_empty() => String::new(),
        None => serde_json::to_string_pretty(&participant.state).unwrap_or_default(),
    }
}
