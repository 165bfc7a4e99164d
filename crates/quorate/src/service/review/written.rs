//! What a tool that people or agents write with has just written, reviewed as a sweep would: what is not due is left alone,
//! and what this council has judged is not judged again.

use std::path::Path;
use std::sync::Arc;

use quorate_kernel::observer::Observer;

use super::spec;
use super::{Request, ReviewOutcome, review};
use crate::service::artifact::{self, Subject};
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::load_report;
use crate::service::open_session;
use crate::service::paths::display_path;
use crate::service::report::Report;
use crate::service::session::LedgerSession;
use crate::service::workspace::{self, PathOverrides, Workspace};

/// Which files are reviewed, of those whose tier is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those below the folders that the council watches: a tool that tells of every file.
    Watched,
    /// All: the user has chosen them.
    Named,
}

/// What became of a file.
#[derive(Debug)]
pub enum Written {
    /// Its content was judged, now or before.
    Judged(Box<Report>),
    /// It is not reviewed.
    NotDue {
        /// Why, without a full stop.
        why: String,
    },
}

/// A file's review that is about to begin.
pub struct WrittenReview {
    pub session: LedgerSession,
    artifact: artifact::Artifact,
}

/// Opens a session for a file of a tool; `None` where nothing watches its folder.
///
/// # Errors
/// If the file cannot be read, or configuration or ledger are unusable.
#[crate::boxed]
pub async fn open(
    environment: &Environment,
    places: &PathOverrides,
    path: &Path,
    scope: Scope,
) -> Result<Option<WrittenReview>, ServiceError> {
    let start = path.parent().unwrap_or(&environment.directory);
    let workspace = workspace::load(environment, places, start)?;
    if scope == Scope::Watched && !is_watched(&workspace, path) {
        return Ok(None);
    }
    let read = artifact::read(&Subject::File(path.to_owned()), &environment.directory)?;
    // As a sweep calls it.
    let artifact = artifact::Artifact { display_name: display_path(environment, path), ..read };
    workspace.guard.ensure_unrecorded(&artifact)?;
    let session = open_session::open_for_writing(environment.clone(), workspace).await?;
    Ok(Some(WrittenReview { session, artifact }))
}

impl WrittenReview {
    /// Reviews it, unless this council has judged the same content.
    ///
    /// # Errors
    /// If the executor is refused, or the ledger fails.
    #[crate::boxed]
    pub async fn review(
        &self,
        request: &Request,
        observer: Arc<dyn Observer>,
    ) -> Result<Written, ServiceError> {
        let WrittenReview { session, artifact } = self;
        let spec = spec::build(&session.environment, &session.workspace, &request.options, request.policy)?;
        let council = spec.fingerprint("").combined();
        if let Some(run) = session.store.last_judgement(&council, &artifact.sha256).await? {
            return Ok(Written::Judged(Box::new(load_report::load(session, &run).await?)));
        }
        Ok(match review(session, artifact.clone(), request, observer).await? {
            ReviewOutcome::Judged(report) => Written::Judged(report),
            ReviewOutcome::Skipped { tier, artifact_type, .. } => {
                Written::NotDue { why: format!("tier {tier} (type {artifact_type}) is not reviewed") }
            }
        })
    }
}

/// Whether a file is below a folder that the council watches, links followed, and none of its own files.
fn is_watched(workspace: &Workspace, path: &Path) -> bool {
    let council = &workspace.council;
    let Some(real) = disk::canonical(path) else { return false };
    let own = [Some(&*workspace.log), workspace.ledger.file()];
    let below = |written: &String| {
        disk::canonical(&council.dir.join(written)).is_some_and(|folder| real.starts_with(folder))
    };
    council.watch.paths.iter().any(below) && !own.contains(&Some(path))
}
