//! `/runs/{run}/live`: a run as it goes on: members and steps, what was spent of the budget, and an end for it. The page of
//! an open run shows the same.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::response::Response;
use quorate::runs::{Amounts, Live, LiveMember, LiveState, Question, QuestionState};
use quorate::view::wording::duration;

use super::wording::{Mark, digit_groups};
use super::{Frame, respond};
use crate::Server;
use crate::api::runs::load_live;
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "live_run.html")]
struct LivePage {
    frame: Frame,
    run: String,
    mark: Mark,
    live: Option<LiveView>,
}

/// A run in progress, in words.
pub(super) struct LiveView {
    /// As the API has it: the page is loaded again when another process takes the run up, or none works on it any more.
    pub(super) state: &'static str,
    pub(super) heading: &'static str,
    /// Who works on it, and what a person can do about it.
    pub(super) advice: String,
    pub(super) status: String,
    pub(super) spent: String,
    pub(super) steps: Vec<String>,
    /// Each member with its cell for each step.
    pub(super) rows: Vec<(String, Vec<String>)>,
    /// Whether a process works on the run.
    pub(super) is_driven: bool,
    pub(super) is_over: bool,
    pub(super) can_cancel: bool,
}

impl LiveView {
    pub(super) fn of(server: &Server, live: &Live) -> LiveView {
        let row = |member: &LiveMember| {
            let cell = |step: &String| {
                let question = member.questions.iter().find(|question| question.step == *step);
                question.map(question_words).unwrap_or_default()
            };
            (member.member.clone(), live.steps.iter().map(cell).collect())
        };
        LiveView {
            status: format!("{} of {} answers", live.done, live.asked),
            spent: spent_of_budget(&live.spent, &live.budget),
            steps: live.steps.clone(),
            rows: live.members.iter().map(row).collect(),
            state: live.state.as_str(),
            heading: match live.state {
                LiveState::Here | LiveState::Elsewhere | LiveState::Remote => "In progress",
                LiveState::Interrupted => "Interrupted",
                LiveState::Imported | LiveState::Ended => "Members and steps",
            },
            advice: advice(live),
            is_driven: live.state.is_driven(),
            is_over: live.ended,
            can_cancel: live.job.is_some() && !server.read_only,
        }
    }
}

fn advice(live: &Live) -> String {
    let run = &live.run;
    let (first, rest) = live.state.sentence().split_at(1);
    let state = format!("{}{rest}.", first.to_uppercase());
    match (live.state, &live.verdict) {
        (LiveState::Ended, _) => String::new(),
        (LiveState::Elsewhere | LiveState::Remote, _) => {
            format!("{state} To end it, press Ctrl-C where it was started.")
        }
        (LiveState::Interrupted, None) => format!(
            "{state} Everything answered so far is kept: quorate resume {run} asks again only for what is missing."
        ),
        (LiveState::Interrupted, Some(_)) => format!(
            "It was interrupted after its verdict, and no process works on it: quorate show {run} completes it."
        ),
        (LiveState::Here | LiveState::Imported, _) => state,
    }
}

/// The shortest time of an answer that is shown, in milliseconds.
const NOTABLE_MS: u64 = 1_000;

/// The state of a question, in the same words as `live.js`, which adds the time since it was asked.
fn question_words(question: &Question) -> String {
    let mut text = question.state.as_str().to_owned();
    if question.state == QuestionState::Retrying {
        text = format!("retrying after {} attempts", question.attempts);
    }
    if let Some(took) = question.took_ms.filter(|ms| *ms >= NOTABLE_MS) {
        text = format!("{text} after {}", duration(Duration::from_millis(took)));
    }
    if let Some(bytes) = question.bytes {
        text = format!("{text}, {} bytes so far", digit_groups(bytes));
    }
    match &question.why {
        Some(why) => format!("{text}: {why}"),
        None => text,
    }
}

fn spent_of_budget(spent: &Amounts, budget: &Amounts) -> String {
    let part = |name: &str, spent: Option<String>, cap: Option<String>| {
        let spent = spent.or_else(|| cap.is_some().then(|| "0".to_owned()))?;
        Some(match cap {
            Some(cap) => format!("{name} {spent} of {cap}"),
            None => format!("{name} {spent}"),
        })
    };
    let calls = |amounts: &Amounts| amounts.calls.map(|calls| digit_groups(calls.into()));
    let tokens = |amounts: &Amounts| amounts.tokens.map(digit_groups);
    let parts = [
        part("calls", calls(spent), calls(budget)),
        part("tokens", tokens(spent), tokens(budget)),
        part("US$", spent.usd.clone(), budget.usd.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, run: &str) -> Response {
    respond(server, page(server, run).await)
}

async fn page(server: &Arc<Server>, run: &str) -> Result<LivePage, Failure> {
    let live = load_live(server, run.to_owned()).await?;
    let mark = Mark::of(live.verdict.as_deref());
    let frame =
        Frame::new(server, format!("{} live", mark.word), "runs", format!("quorate show {}", live.run));
    Ok(LivePage {
        frame: frame.with_json(format!("/api/v1/runs/{}/live", live.run)),
        mark,
        live: Some(LiveView::of(server, &live)),
        run: live.run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_is_said_with_its_cap() {
        let amounts = |calls, usd: Option<&str>| Amounts { calls, tokens: None, usd: usd.map(str::to_owned) };
        assert_eq!(
            spent_of_budget(&amounts(Some(3), Some("0.5")), &amounts(Some(50), None)),
            "calls 3 of 50, US$ 0.5"
        );
        assert_eq!(
            spent_of_budget(&amounts(Some(3), None), &amounts(None, Some("5"))),
            "calls 3, US$ 0 of 5"
        );
    }

    #[test]
    fn a_question_says_how_far_it_is_and_why() {
        let question = |state, why: Option<&str>, bytes| Question {
            step: "r1".to_owned(),
            state,
            why: why.map(str::to_owned),
            attempts: 2,
            bytes,
            since: None,
            took_ms: (state == QuestionState::Missing).then_some(4_200),
        };
        assert_eq!(
            question_words(&question(QuestionState::Asked, None, Some(1_234))),
            "asked, 1,234 bytes so far"
        );
        assert_eq!(
            question_words(&question(QuestionState::Retrying, Some("no JSON"), None)),
            "retrying after 2 attempts: no JSON"
        );
        assert_eq!(
            question_words(&question(QuestionState::Missing, Some("timed out"), None)),
            "missing after 4.2 s: timed out"
        );
    }
}
