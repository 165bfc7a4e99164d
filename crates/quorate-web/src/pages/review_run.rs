//! The page of a council's run: the verdict and why, what was found in the text, positions, cost.

use std::sync::Arc;

use askama::Template;
use quorate::review::{self, Deliberator, Finding, Piece, Review};
use quorate::view::wording::{cost, duration};

use super::Frame;

use super::Surroundings;
use super::at::{At, Form};
use super::document::{self, Line};
use super::live_run::LiveView;
use super::wording::{Mark, instant, minute, plain};
use crate::Server;

#[derive(Template)]
#[template(path = "review_run.html")]
pub(super) struct ReviewPage {
    frame: Frame,
    review: Review,
    run: String,
    mark: Mark,
    live: Option<LiveView>,
    previous: Option<String>,
    facts: Vec<(&'static str, String)>,
    opened: String,
    instant: String,
    can_resume: bool,
    can_override: bool,
    lines: Vec<Line>,
    has_text: bool,
    /// Only reports say which text it is.
    input: Option<usize>,
    findings: Vec<(At, Finding)>,
    positions: Vec<Position>,
    /// How a deliberator's words differ between the rounds.
    rewordings: Vec<(String, Vec<Piece>)>,
    /// The table of members, as HTML.
    members: String,
}

/// A deliberator's answers, and how they changed.
pub(crate) struct Position {
    /// How its answer counts.
    pub(crate) at: At,
    pub(crate) id: String,
    pub(crate) first: Stance,
    pub(crate) second: Stance,
    pub(crate) counted: String,
    pub(crate) has_changed: bool,
    pub(crate) is_ungrounded: bool,
}

/// An answer in short.
pub(crate) struct Stance {
    pub(crate) word: String,
    pub(crate) class: &'static str,
    pub(crate) is_irreducible: bool,
    pub(crate) score: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) word_at: String,
    pub(crate) score_at: String,
    pub(crate) message_at: String,
}

/// The page.
pub(super) fn page(server: &Arc<Server>, report: Review, around: Surroundings) -> ReviewPage {
    let word = report.verdict_word();
    let is_open = report.verdict.is_none() && !report.is_superseded();
    let is_incomplete = report.verdict.is_some_and(|verdict| verdict.as_str() == "INCOMPLETE");
    let can_write = !server.read_only && !report.imported;
    let text = report.text.clone().unwrap_or_default();
    let frame = Frame::new(
        server,
        format!("{word} {}", report.artifact),
        "runs",
        format!("quorate show {}", report.run),
    );
    let mut positions: Vec<Position> =
        report.deliberators.iter().map(|one| position(report.rounds, one, Places::default())).collect();
    positions.sort_by_key(|position| !position.has_changed);
    let rewordings = report.positions().into_iter().filter(|held| !held.rewording.is_empty());
    let rewordings = rewordings.map(|held| (held.id, held.rewording)).collect();
    ReviewPage {
        frame: frame.with_json(format!("/api/v1/runs/{}", report.run)),
        mark: Mark::of((word != "OPEN").then_some(word)),
        live: around.live,
        previous: around.previous,
        facts: facts(&report),
        opened: minute(report.opened_ms),
        instant: instant(report.opened_ms),
        can_resume: can_write && !report.queued && (is_open || is_incomplete) && !around.is_driven,
        can_override: can_write && report.verdict.is_some(),
        lines: document::lines(&text, report.findings.iter()),
        has_text: report.text.is_some(),
        input: None,
        findings: report.findings.iter().map(|finding| (At::default(), finding.clone())).collect(),
        positions,
        rewordings,
        members: quorate::view::members(report.usage()).html(),
        run: report.run.clone(),
        review: report,
    }
}

fn facts(report: &Review) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Type", plain(&report.artifact_type)),
        ("Tier", report.tier.to_string()),
        ("Policy", report.policy.clone()),
        ("Executor", report.executor.clone()),
        ("Calls", report.spent.calls.to_string()),
        ("Time", duration(report.spent.took)),
    ];
    if let Some(cost) = cost(&report.spent.usage).strip_prefix(", ") {
        facts.push(("Cost", cost.to_owned()));
    }
    if !report.missing.is_empty() {
        facts.push(("Missing", report.missing.join(", ")));
    }
    facts
}

/// The places of a position: both answers, and how it counts.
#[derive(Default)]
pub(crate) struct Places {
    pub(crate) first: At,
    pub(crate) second: At,
    pub(crate) counted: At,
}

pub(crate) fn position(rounds: u8, deliberator: &Deliberator, places: Places) -> Position {
    let held = deliberator.position(rounds);
    Position {
        at: places.counted,
        id: held.id,
        has_changed: held.has_changed,
        counted: plain(&held.counted),
        is_ungrounded: held.is_ungrounded,
        first: stance(&held.first, &places.first),
        second: stance(&held.second, &places.second),
    }
}

fn stance(held: &review::Stance, at: &At) -> Stance {
    let read = held.read.as_ref();
    Stance {
        word: plain(&held.words()),
        class: read.map_or("none", |read| if read.would_block { "bad" } else { "good" }),
        is_irreducible: read.is_some_and(|read| read.irreducible),
        score: read.and_then(|read| read.score).map(|score| format!("{score:.1}")),
        message: held.message.clone().filter(|_| read.is_none()),
        word_at: match read {
            Some(_) => at.shown("/answer", Form::Stance),
            None if held.status == "unreadable" => String::new(),
            None => at.shown("/status", Form::Plain),
        },
        score_at: read.map_or_else(String::new, |_| at.shown("/answer", Form::Score)),
        message_at: at.to("/text"),
    }
}
