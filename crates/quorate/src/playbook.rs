//! Playbooks, and the prompts that they are woven into: [`Quorate::playbooks`], [`Quorate::weave`], and the overlays of
//! advisory runs.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use quorate_diagnostics::Report;

use super::builder::Quorate;
use super::error::Error;
use super::review::Draft;
use super::service::playbook::library::Library;
use super::service::playbook::propose::{self, Proposer};
use super::service::playbook::writer::{self, LibraryWriter};
use super::service::playbook::{overview, promote, reflect, repair, rollback};
use super::service::{overlays, weave};
use super::session::Outcome;

pub use super::service::overlays::{
    EvictedOverlays, ExpiredOverlay, ListedOverlay, OverlayFilter, OverlayList,
};
pub use super::service::playbook::gate::{Trial, TrialRun};
pub use super::service::playbook::overview::{
    AllowedTouch, DRIFTED, ListedPlaybook, LoggedEvent, PlaybookDetails, PlaybookHistory, PlaybookList,
    PlaybookLog, PlaybookState, PlaybookView, PromptChange, ShownEvidence, ShownVersion,
};
pub use super::service::playbook::promote::Promotion;
pub use super::service::playbook::propose::{ProposalOutcome, Proposed};
pub use super::service::playbook::reflect::{ReflectRequest, Reflection};
pub use super::service::playbook::repair::Repairs;
pub use super::service::playbook::rollback::{ArchivedPlaybooks, Rollback, StatusChange};
pub use super::service::playbook::traits::ExceptionRequest;
pub use super::service::playbook::versions::AttemptCount;
pub use super::service::playbook::{Approval, Approver, GateClosed};
pub use super::service::weave::{
    ComposedPrompt, PartSource, SkippedPart, WeaveRequest, WeaveTarget, WovenPart,
};
pub use quorate_manifest::playbook::{Gate, Status};
pub use quorate_playbook::gate::TestResult;
pub use quorate_playbook::history::Version;
pub use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay};

/// The playbooks of a workspace, or of a tenant in it. A playbook is a fragment of a prompt in `playbooks/`. It starts in
/// shadow, is woven once it has passed a gate, and every version of it is kept.
#[derive(Debug, Clone)]
pub struct Playbooks {
    quorate: Quorate,
    folder: Option<PathBuf>,
}

/// A proposal of playbooks
pub struct ProposeRequest {
    /// A file with frontmatter, or deltas as JSON
    pub source: Draft,
    /// The operator for deltas that name none
    pub operator: Option<String>,
    /// The locked traits that a person may permit it to touch
    pub exception: Option<ExceptionRequest>,
}

/// A change that runs with the write lock.
type Changing<'w, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'w>>;

/// Whether a change may begin while an earlier one is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfinished {
    Refused,
    Continued,
}

impl Quorate {
    /// The playbooks of the working directory's workspace or tenant.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::playbook::{ProposeRequest, WeaveRequest, WeaveTarget};
    /// use quorate::{Draft, Quorate};
    ///
    /// std::fs::create_dir_all(dir.path().join("operators/alice"))?;
    /// let operator = "---\nid: alice\nname: Alice\nrole: role/librarian\n---\nYou are Alice.\n";
    /// std::fs::write(dir.path().join("operators/alice/OPERATOR.md"), operator)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let delta = r#"{"op": "add", "slug": "cite", "title": "Cites.", "body": "Name the shelf of each book."}"#;
    /// let request = ProposeRequest {
    ///     source: Draft::Text { name: "delta.json".to_owned(), text: delta.to_owned() },
    ///     operator: Some("alice".to_owned()),
    ///     exception: None,
    /// };
    /// let proposed = quorate.playbooks().propose(request).await?;
    /// assert_eq!(proposed.proposals[0].version, Some(1));
    /// // Nothing tests it yet, so it stays in shadow and is not woven.
    /// let listed = quorate.playbooks().list()?;
    /// assert_eq!(listed.playbooks[0].status.as_str(), "shadow");
    /// let woven = quorate.weave(WeaveRequest::new(WeaveTarget::Operator("alice".to_owned()))).await?;
    /// assert_eq!(woven.prompt, "You are Alice.");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn playbooks(&self) -> Playbooks {
        Playbooks { quorate: self.clone(), folder: None }
    }

    /// Composes a prompt from a persona, its active playbooks and overlays. Records the playbooks that are in shadow, and
    /// those that a lock kept out. Without a ledger there are no overlays.
    ///
    /// # Errors
    /// If the operator or persona does not exist or is refused, or the ledger cannot be read.
    #[crate::boxed]
    pub async fn weave(&self, mut request: WeaveRequest) -> Result<Outcome<ComposedPrompt>, Error> {
        request.root = request.root.map(|root| self.named_path(root)).transpose()?;
        let (value, warnings) = weave::weave(&self.environment, &self.places, &request).await?;
        Ok(Outcome { value, warnings })
    }

    /// The advice of advisory runs that is in prompts.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    #[crate::boxed]
    pub async fn overlays(&self, filter: OverlayFilter) -> Result<Outcome<OverlayList>, Error> {
        let session = self.open_existing().await?;
        let result = overlays::list(&session, &filter).await;
        session.finish(result).await
    }

    /// An overlay, by its id or a unique prefix of it.
    ///
    /// # Errors
    /// If none or several match, or the ledger does not answer.
    #[crate::boxed]
    pub async fn overlay(&self, prefix: &str) -> Result<Outcome<ListedOverlay>, Error> {
        let session = self.open_existing().await?;
        let result = overlays::find(&session, prefix).await;
        session.finish(result).await
    }

    /// Evicts an overlay before it expires.
    ///
    /// # Errors
    /// As [`overlay`](Quorate::overlay).
    #[crate::boxed]
    pub async fn expire_overlay(&self, prefix: &str) -> Result<Outcome<ExpiredOverlay>, Error> {
        let session = self.open_existing().await?;
        let result = overlays::expire(&session, prefix).await;
        session.finish(result).await
    }

    /// Evicts expired overlays.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    #[crate::boxed]
    pub async fn sweep_overlays(&self, filter: OverlayFilter) -> Result<Outcome<EvictedOverlays>, Error> {
        let session = self.open_existing().await?;
        let result = overlays::sweep(&session, &filter).await;
        session.finish(result).await
    }
}

impl Playbooks {
    /// The playbooks of another workspace, or of a tenant's folder.
    ///
    /// # Errors
    /// If the workspace is confined, and the folder is outside of it.
    pub fn in_folder(&self, folder: impl Into<PathBuf>) -> Result<Playbooks, Error> {
        let folder = Some(self.quorate.named_path(folder.into())?);
        Ok(Playbooks { quorate: self.quorate.clone(), folder })
    }

    fn library(&self) -> Result<Library, Error> {
        Library::open(&self.quorate.environment, &self.quorate.places, self.folder.as_deref())
    }

    /// All playbooks. Problems of their files are warnings.
    ///
    /// # Errors
    /// If the workspace cannot be opened.
    pub fn list(&self) -> Result<Outcome<PlaybookList>, Error> {
        let library = self.library()?;
        Ok(Outcome { value: PlaybookList::of(&library), warnings: library.integrity_report(None) })
    }

    /// A playbook: its text, its operators, its status.
    ///
    /// # Errors
    /// If it does not exist, or its files cannot be read.
    pub fn show(&self, slug: &str) -> Result<Outcome<PlaybookDetails>, Error> {
        let library = self.library()?;
        Outcome::of(PlaybookDetails::of(&library, slug), library.integrity_report(Some(slug)))
    }

    /// The versions of a playbook.
    ///
    /// # Errors
    /// As [`show`](Playbooks::show).
    pub fn history(&self, slug: &str) -> Result<Outcome<PlaybookHistory>, Error> {
        let library = self.library()?;
        Outcome::of(PlaybookHistory::of(&library, slug), library.integrity_report(Some(slug)))
    }

    /// A playbook with its versions, its evidence, and what it changes in prompts.
    ///
    /// # Errors
    /// As [`show`](Playbooks::show), and if the ledger does not answer.
    #[crate::boxed]
    pub async fn view(&self, slug: &str) -> Result<Outcome<PlaybookView>, Error> {
        let library = self.library()?;
        let file = library.find(slug)?;
        if self.quorate.held.is_none() && !library.workspace.ledger.may_exist() {
            return Outcome::of(overview::view(&library, file, None).await, Report::new());
        }
        let session = self.quorate.open_existing().await?;
        let result = overview::view(&library, file, Some(&session)).await;
        session.finish(result).await
    }

    /// The ledger's records of all playbooks, or of the one that is named. Problems of files are warnings.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    #[crate::boxed]
    pub async fn log(&self, slug: Option<&str>) -> Result<Outcome<PlaybookLog>, Error> {
        let library = self.library()?;
        let session = self.quorate.open_existing().await?;
        let result = PlaybookLog::of(&session, &library, slug).await;
        let outcome = session.finish(result).await?;
        Ok(Outcome { warnings: library.integrity_report(None), ..outcome })
    }

    /// Lets an executor read an operator's runs and propose playbooks.
    ///
    /// # Errors
    /// If the operator or a run is unknown, or no executor answers.
    #[crate::boxed]
    pub async fn reflect(&self, request: ReflectRequest) -> Result<Outcome<Reflection>, Error> {
        self.change(Unfinished::Refused, |writer| reflect::reflect(writer, request)).await
    }

    /// Proposes playbooks. A refused proposal is a part of the result.
    ///
    /// # Errors
    /// If the source cannot be read, or a file cannot be written.
    #[crate::boxed]
    pub async fn propose(&self, request: ProposeRequest) -> Result<Outcome<Proposed>, Error> {
        let ProposeRequest { source, operator, exception } = request;
        let quorate = self.quorate.clone();
        let change = self.change(Unfinished::Refused, |writer| {
            Box::pin(async move {
                let read = quorate.read_draft(source)?;
                let name = if read.display_name == "-" { "standard input" } else { &read.display_name };
                let proposals =
                    propose::parse(&read.text, name, &writer.session.workspace.redaction.redactor)?;
                let proposer = Proposer { by: writer.user().to_owned(), operator };
                propose::propose(writer, &proposals, &proposer, exception).await
            })
        });
        change.await
    }

    /// Proposes the advice of an advisory run, which its id, a prefix of it, or `latest` names.
    ///
    /// # Errors
    /// If the run is unknown or has no advice, or a file cannot be written.
    #[crate::boxed]
    pub async fn propose_advice(&self, run: &str) -> Result<Outcome<Proposed>, Error> {
        let run = run.to_owned();
        let change = self.change(Unfinished::Refused, |writer| {
            Box::pin(async move {
                let proposals = propose::proposals_of_run(writer, &run).await?;
                let proposer = Proposer { by: writer.user().to_owned(), operator: None };
                propose::propose(writer, &proposals, &proposer, None).await
            })
        });
        change.await
    }

    /// Makes a playbook active, if it passes a gate. A closed gate is a result; `person` is asked by [`Gate::Human`].
    ///
    /// # Errors
    /// If the playbook is unknown, the gate cannot be asked, or a file cannot be written.
    #[crate::boxed]
    pub async fn promote(
        &self,
        slug: &str,
        gate: Gate,
        person: Box<dyn Approver>,
    ) -> Result<Outcome<Promotion>, Error> {
        let slug = slug.to_owned();
        self.change(Unfinished::Refused, |writer| promote::promote(writer, slug, gate, person)).await
    }

    /// Puts an active playbook back into shadow.
    ///
    /// # Errors
    /// If it does not exist, is in shadow already, or a file cannot be written.
    #[crate::boxed]
    pub async fn shadow(&self, slug: &str) -> Result<Outcome<StatusChange>, Error> {
        let slug = slug.to_owned();
        self.change(Unfinished::Refused, |writer| rollback::move_to_shadow(writer, slug)).await
    }

    /// Archives a playbook.
    ///
    /// # Errors
    /// If it does not exist, is archived already, or a file cannot be written.
    #[crate::boxed]
    pub async fn archive(&self, slug: &str, reason: &str) -> Result<Outcome<StatusChange>, Error> {
        let (slug, reason) = (slug.to_owned(), reason.to_owned());
        self.change(Unfinished::Refused, |writer| rollback::archive(writer, slug, reason)).await
    }

    /// Restores an earlier version of a playbook.
    ///
    /// # Errors
    /// If the version does not exist or may no longer be woven, or a file cannot be written.
    #[crate::boxed]
    pub async fn rollback(&self, slug: &str, to: u32) -> Result<Outcome<Rollback>, Error> {
        let slug = slug.to_owned();
        self.change(Unfinished::Refused, |writer| rollback::rollback(writer, slug, to)).await
    }

    /// Archives expired playbooks.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    #[crate::boxed]
    pub async fn sweep(&self) -> Result<Outcome<ArchivedPlaybooks>, Error> {
        self.change(Unfinished::Refused, |writer| rollback::archive_expired(writer)).await
    }

    /// Finishes interrupted changes, records manual edits in the histories, and rebuilds the index.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a history is incomplete.
    #[crate::boxed]
    pub async fn repair(&self) -> Result<Outcome<Repairs>, Error> {
        self.change(Unfinished::Continued, |writer| repair::repair(writer)).await
    }

    /// Opens the ledger, takes the write lock, and makes a change.
    async fn change<T: Send>(
        &self,
        unfinished: Unfinished,
        act: impl for<'w> FnOnce(&'w mut LibraryWriter) -> Changing<'w, T> + Send,
    ) -> Result<Outcome<T>, Error> {
        let (Quorate { environment, places, .. }, folder) = (&self.quorate, self.folder.as_deref());
        let session = self.quorate.open(writer::open_session(environment, places, folder)).await?;
        let result = match LibraryWriter::open(Arc::clone(&session), places, folder).await {
            Ok(mut writer) => match (unfinished, writer.ensure_finished()) {
                (Unfinished::Refused, Err(error)) => Err(error),
                _ => act(&mut writer).await,
            },
            Err(error) => Err(error),
        };
        session.finish(result).await
    }
}
