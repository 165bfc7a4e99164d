//! The page of a council's run: the verdict and why, what was found in the text, positions, cost.

use std::sync::Arc;

use askama::Template;
use quorate::review::{Position, Review};
use quorate::view::wording::{cost, duration};
use quorate::view::{Move, Problem, Tone};

use super::Frame;
use super::Surroundings;
use super::document::{self, Line, Spot};
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
    /// The reason of the verdict in plain words.
    answer: String,
    live: Option<LiveView>,
    /// Whether a process works on it.
    is_driven: bool,
    previous: Option<String>,
    facts: Vec<(&'static str, String)>,
    opened: String,
    instant: String,
    can_resume: bool,
    can_override: bool,
    can_review: bool,
    chips: Vec<Chip>,
    lines: Vec<Line>,
    has_text: bool,
    problems: Vec<Problem>,
    /// The heights of the problems beside the text, of 1,000, and whether each blocks.
    rail: Vec<(u64, bool)>,
    moves: Vec<Move>,
    /// The number of blocks in round 1.
    first_blocks: usize,
    /// Those that changed come first.
    positions: Vec<Position>,
    /// The table of members, as HTML.
    members: String,
}

/// A deliberator's position in short.
struct Chip {
    id: String,
    /// `3 → 4` if it changed between the rounds.
    score: String,
    does: &'static str,
    blocks: bool,
    has_changed: bool,
}

impl ReviewPage {
    /// The lines by paragraph.
    fn paragraphs(&self) -> impl Iterator<Item = &[Line]> {
        self.lines.chunk_by(|above, below| below.continues(above))
    }

    fn is_blocking(&self, problem: &Problem) -> bool {
        problem.tone == Tone::Bad
    }
}

/// The page.
pub(super) fn page(server: &Arc<Server>, report: Review, around: Surroundings) -> ReviewPage {
    let word = report.verdict_word();
    let is_open = report.verdict.is_none() && !report.is_superseded();
    let is_incomplete = report.verdict.is_some_and(|verdict| verdict.as_str() == "INCOMPLETE");
    let can_write = !server.read_only && !report.imported;
    let text = report.text.clone().unwrap_or_default();
    let problems = problems(&report);
    let spots = problems.iter().map(|problem| Spot {
        line: problem.at.map(|(line, _)| line),
        span: problem.span.as_ref().map(|span| (span.start, span.end)),
        is_blocking: problem.tone == Tone::Bad,
    });
    let lines = document::lines(&text, spots);
    let of_all = |line: u64| line.saturating_mul(1_000) / (lines.len() as u64).max(1);
    let rail = problems.iter().filter_map(|one| Some((of_all(one.at?.0), one.tone == Tone::Bad)));
    let frame = Frame::new(
        server,
        format!("{word} {}", report.artifact),
        "runs",
        format!("quorate show {}", report.run),
    );
    let positions = report.positions();
    let mut chips: Vec<Chip> = positions.iter().map(|held| chip(&report, held)).collect();
    chips.sort_by_key(|chip| !chip.blocks);
    let mut mark = Mark::of((word != "OPEN").then_some(word));
    // Green would suggest that a model approved of the text.
    if mark.class == "good" && (!report.model_asked || report.blocks() > 0) {
        mark.class = "fair";
    }
    ReviewPage {
        frame: frame.with_json(format!("/api/v1/runs/{}", report.run)),
        mark,
        answer: report.answer(),
        live: around.live,
        is_driven: around.is_driven,
        previous: around.previous,
        facts: facts(&report),
        opened: minute(report.opened_ms),
        instant: instant(report.opened_ms),
        can_resume: can_write && !report.queued && (is_open || is_incomplete) && !around.is_driven,
        can_override: can_write && report.verdict.is_some(),
        can_review: can_write
            && report.verdict.is_some()
            && server.quorate.root().join(&report.artifact).is_file(),
        chips,
        rail: rail.collect(),
        lines,
        has_text: report.text.is_some(),
        problems,
        moves: report.moves(&positions),
        first_blocks: report.deliberators.iter().filter(|one| one.round1.flag("would_block")).count(),
        positions,
        members: quorate::view::members(report.usage()).html(),
        run: report.run.clone(),
        review: report,
    }
}

/// The problems in the order of the text, those without a place last.
fn problems(report: &Review) -> Vec<Problem> {
    let mut problems = report.problems();
    problems.sort_by_key(|problem| (problem.at.is_none(), problem.at));
    problems
}

fn chip(report: &Review, held: &Position) -> Chip {
    let read = held.second.read.as_ref().or(held.first.read.as_ref());
    let [first, second] = [&held.first, &held.second].map(|stance| stance.read.as_ref()?.score.map(grade));
    let score = match (first, second) {
        (Some(first), Some(second)) if first != second => format!("{first} → {second}"),
        (first, second) => second.or(first).unwrap_or_default(),
    };
    let lean = read.and_then(|read| read.verdict).map(|verdict| verdict.as_str());
    let blocks = report.deliberators.iter().any(|one| one.blocks && one.id == held.id);
    let does = match (blocks, lean) {
        (true, _) => "blocks",
        (false, _) if read.is_none() => "no answer",
        (false, Some("REVISE")) => "would revise it",
        (false, Some("HOLD")) => "would hold it",
        (false, _) => "would ship it",
    };
    Chip { id: held.id.clone(), score, does, blocks, has_changed: held.has_changed }
}

fn grade(score: f64) -> String {
    format!("{score:.1}").trim_end_matches(".0").to_owned()
}

fn facts(report: &Review) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Type", plain(&report.artifact_type)),
        ("Tier", report.tier.to_string()),
        ("Executor", report.executor.clone()),
        ("Calls", report.spent.calls.to_string()),
        ("Time", duration(report.spent.took)),
    ];
    if let Some(cost) = cost(&report.spent.usage).strip_prefix(", ") {
        facts.push(("Cost", cost.to_owned()));
    }
    facts
}
