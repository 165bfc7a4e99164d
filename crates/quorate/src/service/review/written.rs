//! Reviews a file that a tool for people or agents has just written. As in a sweep, files that are not due are skipped, and
//! content that this council has judged is not judged again.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::observer::Observer;
use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::CheckpointFiles;

use super::spec;
use super::{Request, ReviewOutcome, hold_text, review};
use crate::service::artifact::{self, Subject};
use crate::service::disk;
use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::load_report;
use crate::service::open_session;
use crate::service::paths::{display_ledger, display_path};
use crate::service::report::Report;
use crate::service::run_opened::ensure_shown_artifact;
use crate::service::sealing::local_checkpoints;
use crate::service::session::LedgerSession;
use crate::service::workspace::{self, PathOverrides, Workspace};

/// Which files are reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Files below the folders that the council watches, for a tool that reports every file.
    Watched,
    /// All files, since the user has chosen them.
    Named,
}

/// The result for a file.
#[derive(Debug)]
pub enum Written {
    /// Its content was judged, now or before.
    Judged(Box<Report>),
    /// It is not reviewed.
    NotDue {
        /// The reason, without a full stop.
        why: String,
    },
}

/// A file's review before it starts.
pub struct WrittenReview {
    pub session: LedgerSession,
    artifact: artifact::Artifact,
}

/// Opens a session for a file of a tool; `None` if the council does not watch its folder.
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
    if scope == Scope::Watched && !is_watched(&workspace, path)? {
        return Ok(None);
    }
    let read = artifact::read(&Subject::File(path.to_owned()), &environment.directory)?;
    // The name that a sweep uses.
    let artifact = artifact::Artifact { display_name: display_path(environment, path), ..read };
    workspace.guard.ensure_unrecorded(&artifact)?;
    let has_runs = ensure_known(environment, &workspace).await?;
    let session = open_session::open_for_writing(environment.clone(), workspace).await?;
    if !has_runs {
        // From now on this machine knows the ledger, even if this command is killed.
        session.seal().await;
    }
    Ok(Some(WrittenReview { session, artifact }))
}

impl WrittenReview {
    /// Reviews it, unless this council has judged the same content.
    ///
    /// # Errors
    /// If the executor is refused, the ledger fails, or the members of the run that judged the same content saw another
    /// text.
    #[crate::boxed]
    pub async fn review(
        &self,
        request: &Request,
        observer: Arc<dyn Observer>,
    ) -> Result<Written, ServiceError> {
        let WrittenReview { session, artifact } = self;
        let spec = spec::build(&session.environment, &session.workspace, &request.options, request.policy)?;
        let _alone = hold_text(session, &artifact.sha256).await?;
        // A person's decision on a text takes precedence over any council's, earlier or later.
        let mut earlier = session.store.last_decision(&artifact.sha256).await?;
        if earlier.is_none() {
            let council = spec.fingerprint("").combined();
            earlier = session.store.last_judgement(&council, &artifact.sha256).await?;
        }
        if let Some(run) = earlier {
            let history = session.partial_history(&run).await?;
            ensure_shown_artifact(&history)?;
            let report = load_report::load_from(session, &history).await?;
            // The earlier run may have had another name for the same text.
            return Ok(Written::Judged(Box::new(Report {
                artifact: artifact.display_name.clone(),
                ..report
            })));
        }
        Ok(match review(session, artifact.clone(), request, observer).await? {
            ReviewOutcome::Judged(report) => Written::Judged(report),
            ReviewOutcome::Skipped { tier, artifact_type, .. } => {
                Written::NotDue { why: format!("tier {tier} (type {artifact_type}) is not reviewed") }
            }
        })
    }
}

/// Whether a file is below a folder that the council watches, and not one of Quorate's own files. Follows links. A missing
/// folder keeps its configured path, so files below it are not found.
///
/// # Errors
/// If none of the watched folders exists, because then no file would ever be reviewed.
fn is_watched(workspace: &Workspace, path: &Path) -> Result<bool, ServiceError> {
    let council = &workspace.council;
    let watched: Vec<_> = council.watch.paths.iter().map(|written| council.dir.join(written)).collect();
    let folders: Vec<_> = watched.iter().filter_map(|folder| disk::canonical(folder)).collect();
    if folders.is_empty() && !watched.is_empty() {
        let body = Body::new("cannot read any of the folders of `watch.paths`");
        let help = "create them, or correct their names in council.yaml";
        return Err(ServiceError::configuration(codes::COUNCIL_INVALID, body.help(help)));
    }
    let real = disk::canonical_or_new(path);
    let own = [Some(&*workspace.log), workspace.ledger.file()];
    Ok(folders.iter().any(|folder| real.starts_with(folder)) && !own.contains(&Some(path)))
}

/// Refuses a ledger that this machine neither created nor accepted, such as one that came with a checkout: its verdicts, and
/// the people's decisions in it, would let texts pass. Returns `true` if the ledger contains runs.
async fn ensure_known(environment: &Environment, workspace: &Workspace) -> Result<bool, ServiceError> {
    if !workspace.ledger.may_exist() {
        return Ok(false);
    }
    let store = Store::open_read_only(&workspace.ledger).await?;
    let known = async {
        if store.runs(1).await?.is_empty() {
            return Ok(None);
        }
        let origin = store.last_checkpoint().await?.map(|sealed| sealed.origin);
        let files = CheckpointFiles::new(&workspace.ledger, environment.state_dir.as_deref());
        let kept = files.read(origin.as_deref());
        // Files beside the ledger may have come with it; every command that writes makes a copy in the state directory.
        let is_known = !kept.copies.is_empty()
            && origin.as_deref().is_some_and(|origin| files.is_known(origin))
            && local_checkpoints::rollback_reason(environment, &store, &kept).await?.is_none();
        Ok(Some(is_known))
    };
    let known: Result<Option<bool>, ServiceError> = known.await;
    store.close().await;
    match known? {
        None => return Ok(false),
        Some(true) => return Ok(true),
        Some(false) => {}
    }
    let ledger = display_ledger(environment, &workspace.ledger);
    let body =
        Body::new(format!("the ledger {ledger} was not created on this machine, or was changed elsewhere"));
    let help = "its verdicts and decisions would count: look at `quorate ledger verify` and `quorate runs`; \
                run `quorate ledger checkpoint` to accept it here";
    Err(ServiceError::configuration(codes::LEDGER_UNKNOWN, body.help(help)))
}
