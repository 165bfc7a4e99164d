//! `/playbooks/{slug}`: a playbook with the timeline of its versions, the evidence of its gate, and what it changes in prompts.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::diff;
use quorate::service::playbook::overview::{
    DRIFTED, PlaybookView, ShownEvidence, ShownVersion, Trial, VERSION_COLUMNS,
};

use super::chart::{self, Course};
use super::words::{Word, words};
use super::{Frame, respond};
use crate::Server;
use crate::api::playbook::load;
use crate::failure::Failure;

/// The most runs and pairs that are listed; the API gives all.
const MAX_ROWS: usize = 100;

#[derive(Template)]
#[template(path = "playbook.html")]
struct PlaybookPage {
    frame: Frame,
    slug: String,
    title: String,
    facts: Vec<(&'static str, String)>,
    warning: Option<&'static str>,
    body: String,
    columns: [&'static str; 5],
    versions: Vec<VersionView>,
    evidence: Vec<ShownEvidence>,
    trial: Option<TrialView>,
    prompts: Vec<PromptView>,
}

struct VersionView {
    version: ShownVersion,
    /// How its file differs from the version before.
    pieces: Vec<Word>,
}

struct TrialView {
    verdict: String,
    facts: Vec<(&'static str, String)>,
    course: Option<Course>,
    /// The number of each pair, and the evidence after it.
    pairs: Vec<(usize, String)>,
    runs: Vec<RunRow>,
    omitted: usize,
}

struct RunRow {
    run: String,
    side: &'static str,
    made_by: String,
    outcome: String,
}

struct PromptView {
    operator: String,
    skipped: Option<String>,
    pieces: Vec<Word>,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>, slug: &str) -> Response {
    respond(server, page(server, slug).await)
}

async fn page(server: &Arc<Server>, slug: &str) -> Result<PlaybookPage, Failure> {
    let view = load(server, slug.to_owned()).await?;
    let slug = view.playbook.slug.clone();
    let frame = Frame::new(server, slug.clone(), "playbooks", format!("quorate playbook history {slug}"));
    let warning = match (view.drifted, view.intact) {
        (true, _) => Some(DRIFTED),
        (false, false) => Some("The file is not what the ledger has: quorate playbook list says why."),
        (false, true) => None,
    };
    Ok(PlaybookPage {
        frame: frame.with_json(format!("/api/v1/playbooks/{slug}")),
        facts: facts(&view),
        warning,
        columns: VERSION_COLUMNS,
        versions: versions(view.versions),
        trial: view.trial.map(trial),
        prompts: view
            .prompts
            .iter()
            .map(|change| PromptView {
                operator: change.operator.clone(),
                skipped: change.skipped.clone(),
                pieces: words(&change.diff),
            })
            .collect(),
        evidence: view.evidence,
        body: view.body,
        title: view.playbook.title,
        slug,
    })
}

fn facts(view: &PlaybookView) -> Vec<(&'static str, String)> {
    let listed = &view.playbook;
    let status = listed.status_words(view.drifted, view.intact);
    let facts = [
        ("Status", status),
        ("Version", view.version.map_or_else(|| "none yet".to_owned(), |version| version.to_string())),
        ("Priority", listed.priority.to_string()),
        ("Operators", listed.operators.join(", ")),
        ("Keeps", listed.lock_check.join(", ")),
        ("Attempts", if view.attempts.attempts > 0 { view.attempts.to_string() } else { String::new() }),
        ("File", listed.file.clone()),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The versions, as `quorate playbook history` lists them.
fn versions(all: Vec<ShownVersion>) -> Vec<VersionView> {
    let mut before = String::new();
    let mut views: Vec<VersionView> = Vec::new();
    for version in all {
        let pieces = if before.is_empty() { Vec::new() } else { words(&diff::words(&before, &version.text)) };
        before.clone_from(&version.text);
        views.push(VersionView { version, pieces });
    }
    views
}

fn trial(trial: Trial) -> TrialView {
    let verdict = match trial.passes {
        true => "The gate a-b would open.",
        false => "The gate a-b is not passed.",
    };
    let omitted = trial.runs.len().saturating_sub(MAX_ROWS);
    let runs = trial.runs.into_iter().rev().take(MAX_ROWS).map(|run| RunRow {
        run: run.run,
        side: if run.with { "with" } else { "without" },
        made_by: run.made_by,
        outcome: run.outcome.to_uppercase(),
    });
    TrialView {
        verdict: verdict.to_owned(),
        facts: vec![
            ("Outcomes with it", format!("{} of at least {}", trial.with, trial.min_sample)),
            ("without it", format!("{} of at least {}", trial.without, trial.min_sample)),
            ("Pairs won", trial.wins.to_string()),
            ("lost", trial.losses.to_string()),
            ("Evidence", format!("{:.1}", trial.evidence)),
            ("needed", format!("{:.1}", trial.threshold)),
        ],
        pairs: (1..)
            .zip(&trial.course)
            .map(|(pair, evidence)| (pair, format!("{evidence:.2}")))
            .take(MAX_ROWS)
            .collect(),
        course: chart::course(&trial.course, trial.threshold),
        runs: runs.collect(),
        omitted,
    }
}
