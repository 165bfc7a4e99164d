//! `/` with the runs of the ledger, and `/runs/{run}`: the page of an ended run by its mode, or of an open one.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::live::{Amounts, Live, LiveState, Question, QuestionState};
use quorate::service::runs::{MODES, RunReport, VERDICTS};
use quorate::service::{self, compare};
use quorate_ledger::runs::ListedRun;
use quorate_protocol::policy::Verdict;

use super::wording::{Mark, digit_groups, instant, minute, plain};
use super::{Frame, Surroundings, assembly_run, query, respond, review_run};
use crate::Server;
use crate::api::runs;
use crate::api::runs::{Query, list, load_live, load_report};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    filter: Query,
    verdicts: Vec<(&'static str, bool)>,
    modes: Vec<(&'static str, bool)>,
    rows: Vec<Row>,
    is_filtered: bool,
    /// The address of the next page.
    next: Option<String>,
}

struct Row {
    run: String,
    opened: String,
    instant: String,
    subject: String,
    artifact_type: String,
    mark: Mark,
    overridden: Option<Mark>,
    blockers: String,
    missing: String,
    producer: String,
    /// What differs between the run's row and its records.
    difference: Option<String>,
    is_sealed: bool,
    is_imported: bool,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, text: &str) -> Response {
    respond(server, page(server, text).await)
}

async fn page(server: &Arc<Server>, text: &str) -> Result<RunsPage, Failure> {
    let filter: Query = query(text)?;
    let listed = list(server, &filter).await?;
    let chosen = |chosen: &Option<String>| chosen.as_deref().unwrap_or_default().to_lowercase();
    let (verdict, mode) = (chosen(&filter.verdict), chosen(&filter.mode));
    let pairs = [
        ("verdict", &filter.verdict),
        ("type", &filter.artifact_type),
        ("mode", &filter.mode),
        ("producer", &filter.producer),
        ("since", &filter.since),
    ];
    let given: Vec<(&str, &str)> = pairs
        .iter()
        .filter_map(|(key, value)| Some((*key, value.as_deref()?)))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    let next = listed.next.map(|cursor| {
        let before = cursor.to_string();
        let limit = filter.limit.map(|limit| limit.to_string());
        let limit = limit.as_deref().map(|limit| ("limit", limit));
        let pairs = given.iter().copied().chain(limit).chain([("before", &*before)]).collect::<Vec<_>>();
        format!("/?{}", serde_urlencoded::to_string(pairs).unwrap_or_default())
    });
    let flags: String = given.iter().map(|(key, value)| format!(" --{key} {value}")).collect();
    let frame = Frame::new(server, "Runs", "runs", format!("quorate runs{flags}"));
    Ok(RunsPage {
        frame: frame.with_json(format!("/api/v1/runs?{}", text)),
        is_filtered: !given.is_empty() || filter.before.is_some(),
        verdicts: VERDICTS.iter().map(|word| (*word, *word == verdict)).collect(),
        modes: MODES.iter().map(|word| (*word, *word == mode)).collect(),
        filter,
        rows: listed.runs.into_iter().map(row).collect(),
        next,
    })
}

fn row(listed: ListedRun) -> Row {
    let difference = listed.difference().map(str::to_owned);
    let run = listed.run;
    Row {
        difference,
        opened: minute(run.opened_ms),
        instant: instant(run.opened_ms),
        mark: Mark::of(run.verdict.as_deref()),
        overridden: run.overridden.as_deref().map(|word| Mark::of(Some(word))),
        run: run.run.to_string(),
        subject: run.subject,
        artifact_type: plain(&run.artifact_type),
        blockers: listed.blockers.join(", "),
        missing: listed.missing.join(", "),
        producer: listed.producer,
        is_sealed: listed.sealed,
        is_imported: run.imported,
    }
}

/// The page.
pub(super) async fn show_run(server: &Arc<Server>, run: &str) -> Response {
    match load_run(server, run).await {
        Ok((RunReport::Review(report), around)) => {
            respond(server, Ok(review_run::page(server, *report, around)))
        }
        Ok((RunReport::Assembly(report), around)) => {
            respond(server, Ok(assembly_run::page(server, *report, around)))
        }
        Err(failure) => respond(server, Err::<review_run::ReviewPage, _>(failure)),
    }
}

async fn load_run(server: &Arc<Server>, run: &str) -> Result<(RunReport, Surroundings), Failure> {
    let report = load_report(server, run.to_owned()).await?;
    let (run, is_open, is_incomplete) = match &report {
        RunReport::Review(report) => (
            report.run.clone(),
            report.verdict.is_none() && !report.is_superseded(),
            report.verdict == Some(Verdict::Incomplete),
        ),
        RunReport::Assembly(report) => {
            (report.run.clone(), report.verdict.is_none(), report.verdict.as_deref() == Some("incomplete"))
        }
    };
    let session = server.ledger().await?;
    let live = match is_open {
        true => Some(LiveView::of(server, &runs::load_live(server, run.clone()).await?)),
        false => None,
    };
    let is_driven = match &live {
        Some(live) => live.is_driven,
        None => is_incomplete && service::live::driver(&session, &run.as_str().into()).await?.is_driven(),
    };
    let previous = compare::previous(&session, &run.as_str().into()).await?;
    Ok((report, Surroundings { live, is_driven, previous: previous.map(|previous| previous.to_string()) }))
}

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
        let row = |member: &quorate::service::live::LiveMember| {
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
    match (live.state, &live.verdict) {
        (LiveState::Here, _) => "This server works on it.".to_owned(),
        (LiveState::Elsewhere, _) => {
            "Another process of this machine works on it. To end it, press Ctrl-C where it was started."
                .to_owned()
        }
        (LiveState::Remote, _) => {
            "A process of another machine works on it. To end it, press Ctrl-C where it was started."
                .to_owned()
        }
        (LiveState::Interrupted, None) => {
            format!(
                "It was interrupted, and no process works on it. Everything answered so far is kept: quorate resume {run} \
                 asks again only for what is missing."
            )
        }
        (LiveState::Interrupted, Some(_)) => {
            format!(
                "It was interrupted after its verdict, and no process works on it: quorate show {run} completes it."
            )
        }
        (LiveState::Imported, _) => {
            "It was recorded in another ledger, which alone can continue it.".to_owned()
        }
        (LiveState::Ended, _) => String::new(),
    }
}

/// The state of a question, in the same words as `live.js`.
fn question_words(question: &Question) -> String {
    let mut text = question.state.as_str().to_owned();
    if question.state == QuestionState::Retrying {
        text = format!("retrying after {} attempts", question.attempts);
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
pub(super) async fn show_live_run(server: &Arc<Server>, run: &str) -> Response {
    respond(server, live_page(server, run).await)
}

async fn live_page(server: &Arc<Server>, run: &str) -> Result<LivePage, Failure> {
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
            "missing: timed out"
        );
    }
}
