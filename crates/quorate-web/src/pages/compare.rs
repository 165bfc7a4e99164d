//! `/compare`: two runs on one artifact: findings kept, new and gone, and who changed position.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::compare::{ComparedRun, Comparison, Finding};
use serde::Deserialize;

use super::wording::{Mark, plain};
use super::{Frame, query, respond};
use crate::Server;
use crate::api::runs;
use crate::api::runs::load_comparison;
use crate::failure::Failure;

/// The fields of the form; empty where nothing is filled in.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Query {
    a: String,
    b: String,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    frame: Frame,
    asked: Query,
    compared: Option<Shown>,
}

struct Shown {
    artifact: String,
    artifact_type: String,
    /// Run a, then run b.
    runs: Vec<ShownRun>,
    summary: String,
    /// Each group of findings with its title.
    groups: Vec<(String, Vec<ShownFinding>)>,
    positions: Vec<ShownPosition>,
    notes: Vec<String>,
}

struct ShownRun {
    name: &'static str,
    run: String,
    opened: String,
    mark: Mark,
    because: String,
}

struct ShownFinding {
    by: String,
    place: String,
    quote: String,
    issue: String,
    /// How run a worded it, where that differs.
    before: Option<String>,
    fix: Option<String>,
}

struct ShownPosition {
    member: String,
    a: String,
    b: String,
    has_changed: bool,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, text: &str) -> Response {
    respond(server, page(server, text).await)
}

async fn page(server: &Arc<Server>, text: &str) -> Result<ComparePage, Failure> {
    let asked: Query = query(text)?;
    if asked.b.is_empty() {
        let frame = Frame::new(server, "Compare", "runs", "quorate compare".to_owned());
        return Ok(ComparePage { frame, asked, compared: None });
    }
    let a = Some(asked.a.clone()).filter(|a| !a.is_empty());
    let compared = load_comparison(server, runs::CompareQuery { a, b: asked.b.clone() }).await?;
    let command = format!("quorate compare {} {}", compared.a.run, compared.b.run);
    let json = format!("/api/v1/compare?a={}&b={}", compared.a.run, compared.b.run);
    let frame = Frame::new(server, format!("Compare {}", compared.artifact), "runs", command);
    let asked = Query { a: compared.a.run.clone(), b: compared.b.run.clone() };
    Ok(ComparePage { frame: frame.with_json(json), asked, compared: Some(shown(compared)) })
}

fn shown(compared: Comparison) -> Shown {
    let verdict = match compared.verdict_changed {
        true => "The verdict changed",
        false => "The verdict is the same",
    };
    let text = if compared.same_text { "the text is the same" } else { "the text changed" };
    let findings = compared.findings;
    let kept = findings.kept.into_iter().map(|kept| {
        let before = Some(kept.a.issue).filter(|issue| *issue != kept.b.issue);
        ShownFinding { before, ..finding(kept.b) }
    });
    let groups = [
        ("Gone", findings.gone.into_iter().map(finding).collect::<Vec<_>>()),
        ("New", findings.new.into_iter().map(finding).collect()),
        ("Kept", kept.collect()),
    ];
    let positions = compared.positions.into_iter().map(|position| ShownPosition {
        member: position.member,
        a: plain(&position.a.unwrap_or_else(|| "not asked".to_owned())),
        b: plain(&position.b.unwrap_or_else(|| "not asked".to_owned())),
        has_changed: position.changed,
    });
    Shown {
        artifact: compared.artifact,
        artifact_type: plain(&compared.artifact_type),
        runs: vec![run("a", compared.a), run("b", compared.b)],
        summary: format!("{verdict}, and {text}."),
        groups: groups.into_iter().map(|(name, all)| (format!("{name} ({})", all.len()), all)).collect(),
        positions: positions.collect(),
        notes: compared.notes,
    }
}

fn run(name: &'static str, run: ComparedRun) -> ShownRun {
    ShownRun {
        name,
        mark: Mark::of(run.verdict.as_deref()),
        run: run.run,
        opened: run.opened,
        because: run.because.unwrap_or_default(),
    }
}

fn finding(finding: Finding) -> ShownFinding {
    ShownFinding {
        by: finding.by,
        place: finding.line.map_or_else(String::new, |line| format!("line {line}")),
        quote: finding.quote,
        issue: finding.issue,
        before: None,
        fix: finding.fix,
    }
}
