//! `/playbooks`, and `/playbooks/{slug}`: the text, the versions, the trial and the woven prompts of a playbook.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::playbook::{
    DRIFTED, ListedPlaybook, PlaybookHistory, PromptChange, ShownEvidence, Trial, TrialRun,
};
use quorate::review::Piece;

use super::chart::Course;
use super::{Frame, chart, respond};
use crate::Server;
use crate::api::playbooks::{list, load_playbook};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "playbooks.html")]
struct PlaybooksPage {
    frame: Frame,
    playbooks: Vec<ListedPlaybook>,
    problems: Vec<String>,
}

/// The page.
pub(super) async fn show(server: &Arc<Server>) -> Response {
    respond(server, page(server).await)
}

async fn page(server: &Arc<Server>) -> Result<PlaybooksPage, Failure> {
    let frame = Frame::new(server, "Playbooks", "playbooks", "quorate playbook list".to_owned());
    let listed = list(server).await?;
    let problems = listed.warnings.refusals.iter().map(|refusal| refusal.body.message.clone()).collect();
    let playbooks = listed.value.playbooks;
    Ok(PlaybooksPage { frame: frame.with_json("/api/v1/playbooks".to_owned()), playbooks, problems })
}

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
    /// The table of the versions.
    versions: String,
    /// What each version changes.
    changes: Vec<(u32, Vec<Piece>)>,
    evidence: Vec<ShownEvidence>,
    trial: Option<TrialView>,
    prompts: Vec<PromptChange>,
}

struct TrialView {
    verdict: &'static str,
    facts: Vec<(&'static str, String)>,
    course: Option<Course>,
    /// The number of each pair, and the evidence after it.
    pairs: Vec<(usize, String)>,
    runs: Vec<TrialRun>,
    omitted: usize,
}

/// The page.
pub(super) async fn show_playbook(server: &Arc<Server>, slug: &str) -> Response {
    respond(server, playbook_page(server, slug).await)
}

async fn playbook_page(server: &Arc<Server>, slug: &str) -> Result<PlaybookPage, Failure> {
    let view = load_playbook(server, slug.to_owned()).await?;
    let (facts, changes) = (view.state.facts(), view.changes());
    let listed = view.state.playbook;
    let slug = listed.slug.clone();
    let frame = Frame::new(server, slug.clone(), "playbooks", format!("quorate playbook history {slug}"));
    let warning = match (view.state.drifted, view.state.intact) {
        (true, _) => Some(DRIFTED),
        (false, false) => Some("The file is not what the ledger has: quorate playbook list says why."),
        (false, true) => None,
    };
    let attempts = view.state.attempts;
    let history = PlaybookHistory { slug: slug.clone(), versions: view.versions, drifted: false, attempts };
    Ok(PlaybookPage {
        frame: frame.with_json(format!("/api/v1/playbooks/{slug}")),
        facts,
        warning,
        versions: history.doc().html(),
        changes,
        trial: view.trial.map(trial),
        prompts: view.prompts,
        evidence: view.evidence,
        body: view.state.body,
        title: listed.title,
        slug,
    })
}

fn trial(trial: Trial) -> TrialView {
    let result = trial.result;
    let verdict = match result.passes {
        true => "The gate a-b would open.",
        false => "The gate a-b is not passed.",
    };
    let omitted = trial.runs.len().saturating_sub(MAX_ROWS);
    let runs = trial.runs.into_iter().rev().take(MAX_ROWS).collect();
    TrialView {
        verdict,
        facts: vec![
            ("Outcomes with it", format!("{} of at least {}", result.with, result.min_sample)),
            ("without it", format!("{} of at least {}", result.without, result.min_sample)),
            ("Pairs won", result.wins.to_string()),
            ("lost", result.losses.to_string()),
            ("Evidence", format!("{:.1}", result.evidence)),
            ("needed", format!("{:.1}", result.threshold)),
        ],
        pairs: (1..)
            .zip(&trial.course)
            .map(|(pair, evidence)| (pair, format!("{evidence:.2}")))
            .take(MAX_ROWS)
            .collect(),
        course: chart::course(&trial.course, result.threshold),
        runs,
        omitted,
    }
}
