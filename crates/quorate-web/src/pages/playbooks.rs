//! `/playbooks`, and `/playbooks/{slug}`: the text, the versions, the trial and the woven prompts of a playbook.

use std::sync::Arc;

use askama::Template;
use quorate::playbook::{DRIFTED, ListedPlaybook, PlaybookView};

use super::chart::Course;
use super::{Asked, Frame, chart};
use crate::Server;
use crate::api::playbooks::{list, load_playbook};
use crate::failure::Failure;

#[derive(Template)]
#[template(path = "playbooks.html")]
pub(super) struct PlaybooksPage {
    frame: Frame,
    playbooks: Vec<ListedPlaybook>,
    problems: Vec<String>,
}

/// The page.
pub(super) async fn page(server: Arc<Server>, _: Asked) -> Result<PlaybooksPage, Failure> {
    let frame = Frame::new(&server, "Playbooks", "playbooks", "quorate playbook list".to_owned());
    let listed = list(&server).await?;
    let problems = listed.warnings.refusals.iter().map(|refusal| refusal.body.message.clone()).collect();
    let playbooks = listed.value.playbooks;
    Ok(PlaybooksPage { frame: frame.with_json("/api/v1/playbooks".to_owned()), playbooks, problems })
}

#[derive(Template)]
#[template(path = "playbook.html")]
pub(super) struct PlaybookPage {
    frame: Frame,
    view: PlaybookView,
    warning: Option<&'static str>,
    /// The table of the versions.
    versions: String,
    /// The evidence of the gate after each pair.
    course: Option<Course>,
}

/// The page.
pub(super) async fn playbook_page(server: Arc<Server>, asked: Asked) -> Result<PlaybookPage, Failure> {
    let view = load_playbook(&server, asked.part("slug")).await?;
    let slug = &view.state.playbook.slug;
    let frame = Frame::new(&server, slug.clone(), "playbooks", format!("quorate playbook history {slug}"));
    let warning = match (view.state.drifted, view.state.intact) {
        (true, _) => Some(DRIFTED),
        (false, false) => Some("The file is not what the ledger has: quorate playbook list says why."),
        (false, true) => None,
    };
    let trial = view.trial.as_ref();
    Ok(PlaybookPage {
        frame: frame.with_json(format!("/api/v1/playbooks/{slug}")),
        warning,
        versions: view.history().html(),
        course: trial.and_then(|trial| chart::course(&trial.course, trial.result.threshold)),
        view,
    })
}
