//! `/playbooks`, and `/playbooks/{slug}`: the text, the versions, the trial and the woven prompts of a playbook.

use std::sync::Arc;

use askama::Template;
use axum::response::Response;
use quorate::service::diff;
use quorate::service::diff::{Change, Piece};
use quorate::service::playbook::overview::{
    DRIFTED, ListedPlaybook, PlaybookView, ShownEvidence, ShownVersion, Trial, VERSION_COLUMNS,
};

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
    let (playbooks, problems) = list(server).await?;
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
pub(super) async fn show_playbook(server: &Arc<Server>, slug: &str) -> Response {
    respond(server, playbook_page(server, slug).await)
}

async fn playbook_page(server: &Arc<Server>, slug: &str) -> Result<PlaybookPage, Failure> {
    let view = load_playbook(server, slug.to_owned()).await?;
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

/// A piece of a comparison.
pub(super) struct Word {
    pub(super) is_removed: bool,
    pub(super) is_added: bool,
    pub(super) text: String,
}

/// The pieces for `words.html`.
pub(super) fn words(pieces: &[Piece]) -> Vec<Word> {
    let word = |piece: &Piece| Word {
        is_removed: piece.change == Change::Removed,
        is_added: piece.change == Change::Added,
        text: piece.text.clone(),
    };
    pieces.iter().map(word).collect()
}
