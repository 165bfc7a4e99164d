//! `/runs/{run}/live`: a run as it goes on: members and steps, what was spent of the budget, and an end for it. The page of
//! an open run shows the same.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use quorate::runs::{Amounts, Live, LiveMember, LiveState, Question, QuestionState};
use quorate::view::wording::{self, duration, list_limited};

use super::wording::{Mark, digit_groups};
use super::{Asked, Frame};
use crate::Server;
use crate::api::runs::load_live;
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "live_run.html")]
pub(super) struct LivePage {
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
    /// When the first member was asked, while the run is open.
    pub(super) since: Option<String>,
    pub(super) steps: Vec<String>,
    /// Each member with its cell for each step.
    pub(super) rows: Vec<(String, Vec<Cell>)>,
    /// Whether a process works on the run.
    pub(super) is_driven: bool,
    pub(super) is_over: bool,
    pub(super) can_cancel: bool,
}

/// How far a question is.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// The name of its style.
    pub(super) class: &'static str,
    pub(super) words: String,
    /// When it was asked, while it is open: the page shows the elapsed time.
    pub(super) since: Option<String>,
    /// The limit of that time, if it is known.
    pub(super) limit: Option<String>,
    /// What has arrived of the answer, and why there is none.
    pub(super) more: String,
}

impl LiveView {
    pub(super) fn of(server: &Server, live: &Live) -> LiveView {
        let row = |member: &LiveMember| {
            let cell = |(at, step): (usize, &String)| {
                let question = member.questions.iter().find(|question| question.step == *step);
                question.map(|question| cell(question, || waits_for(live, at))).unwrap_or_default()
            };
            (member.member.clone(), live.steps.iter().enumerate().map(cell).collect())
        };
        let asked = live.members.iter().flat_map(|member| &member.questions);
        LiveView {
            status: format!("{} of {} answers", live.done, asked.clone().count()),
            spent: spent_of_budget(&live.spent, &live.budget),
            since: asked.filter_map(|question| question.since.clone()).min().filter(|_| !live.ended),
            steps: live.steps.iter().map(|step| wording::step(step)).collect(),
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

/// The most members that one waits for by name.
const MAX_NAMES: usize = 2;

/// The members whose answer to the step before must come first.
fn waits_for(live: &Live, step: usize) -> String {
    let before = step.checked_sub(1).map(|before| &live.steps[before]);
    let is_missing = |question: &Question| {
        Some(&question.step) == before
            && !matches!(question.state, QuestionState::Answered | QuestionState::Missing)
    };
    let members = live.members.iter().filter(|member| member.questions.iter().any(is_missing));
    let names: Vec<&str> = members.map(|member| &*member.member).collect();
    if names.is_empty() {
        "waiting".to_owned()
    } else {
        format!("waits for {}", list_limited(&names, MAX_NAMES))
    }
}

/// A question in words. `waits_for` names those that it waits for.
fn cell(question: &Question, waits_for: impl FnOnce() -> String) -> Cell {
    let took = question.took_ms.filter(|ms| *ms >= NOTABLE_MS);
    let after =
        took.map(|took| format!(" after {}", duration(Duration::from_millis(took)))).unwrap_or_default();
    let (class, words) = match question.state {
        QuestionState::Waiting => ("faint", waits_for()),
        QuestionState::Asked => ("open", "asked".to_owned()),
        QuestionState::Retrying => ("fair", format!("asked again after {} attempts", question.attempts)),
        QuestionState::Answered => ("good", format!("answered{after}")),
        QuestionState::Missing => ("bad", format!("missing{after}")),
    };
    let bytes = question.bytes.map(|bytes| format!("{} bytes so far", digit_groups(bytes)));
    let is_open = matches!(question.state, QuestionState::Asked | QuestionState::Retrying);
    Cell {
        class,
        words,
        since: question.since.clone().filter(|_| is_open),
        limit: question.limit_ms.map(|ms| format!(" of {}:{:02}", ms / 60_000, ms / 1_000 % 60)),
        more: bytes.into_iter().chain(question.why.clone()).collect::<Vec<_>>().join("; "),
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
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The page.
pub(super) async fn page(server: Arc<Server>, asked: Asked) -> Result<LivePage, Failure> {
    let (server, run) = (&server, asked.part("run"));
    let live = load_live(server, run).await?;
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
            "calls 3 of 50 · US$ 0.5"
        );
        assert_eq!(
            spent_of_budget(&amounts(Some(3), None), &amounts(None, Some("5"))),
            "calls 3 · US$ 0 of 5"
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
            since: Some("2026-11-29T09:14:02Z".to_owned()),
            limit_ms: Some(120_000),
            took_ms: (state == QuestionState::Missing).then_some(4_200),
        };
        for (state, why, bytes, expected, is_open) in [
            (QuestionState::Asked, None, Some(1_234), "asked of 2:00|1,234 bytes so far", true),
            (
                QuestionState::Retrying,
                Some("no JSON"),
                None,
                "asked again after 2 attempts of 2:00|no JSON",
                true,
            ),
            (QuestionState::Missing, Some("timed out"), None, "missing after 4.2 s of 2:00|timed out", false),
            (QuestionState::Waiting, None, None, "waits for ada of 2:00|", false),
        ] {
            let cell = cell(&question(state, why, bytes), || "waits for ada".to_owned());
            assert_eq!(format!("{}{}|{}", cell.words, cell.limit.unwrap(), cell.more), expected);
            assert_eq!(cell.since.is_some(), is_open, "{expected}");
        }
    }

    #[test]
    fn a_member_waits_for_the_open_answers_of_the_step_before() {
        let question = |step: &str, state| Question {
            step: step.to_owned(),
            state,
            why: None,
            attempts: 0,
            bytes: None,
            since: None,
            limit_ms: None,
            took_ms: Some(13),
        };
        let member = |id: &str, state| LiveMember {
            member: id.to_owned(),
            questions: vec![question("r1", state), question("r2", QuestionState::Waiting)],
        };
        let live = |states: [QuestionState; 4]| Live {
            run: "r".to_owned(),
            verdict: None,
            ended: false,
            state: LiveState::Here,
            steps: vec!["r1".to_owned(), "r2".to_owned()],
            members: ["a", "b", "c", "d"].iter().zip(states).map(|(id, state)| member(id, state)).collect(),
            asked: 4,
            done: 0,
            spent: Amounts::default(),
            budget: Amounts::default(),
            job: None,
        };
        use QuestionState::{Answered, Asked, Missing, Retrying};
        assert_eq!(waits_for(&live([Answered, Asked, Missing, Answered]), 1), "waits for b");
        assert_eq!(waits_for(&live([Asked, Asked, Retrying, Answered]), 1), "waits for a, b and 1 more");
        assert_eq!(waits_for(&live([Answered; 4]), 1), "waiting");
        assert_eq!(waits_for(&live([Asked; 4]), 0), "waiting");
        assert_eq!(cell(&question("r1", Answered), String::new).words, "answered", "13 ms say nothing");
    }
}
