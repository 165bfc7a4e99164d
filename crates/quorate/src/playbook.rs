//! Playbooks, and the prompts that they are woven into: [`Quorate::playbooks`], [`Quorate::weave`], and the overlays of
//! advisory runs.
//!
//! Most files below own one operation on playbooks. The others are shared: `playbook/library.rs` reads playbooks and
//! operators and matches them, `playbook/versions.rs` reads earlier versions from files and from the ledger,
//! `playbook/change.rs` and `playbook/writer.rs` change files and ledger together, `playbook/consultant.rs` asks an
//! executor, and `playbook/traits.rs` determines the locked traits.

pub(crate) mod change;
mod consultant;
pub(crate) mod inspect;
pub(crate) mod library;
mod overview;
mod promote;
mod propose;
mod reflect;
mod rollback;
pub(crate) mod traits;
mod versions;
mod writer;

use std::path::PathBuf;

use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::{Body, RefusalCode, Report};

use super::builder::Quorate;
use super::error::Error;
use super::review::Draft;
use super::service::{overlays, weave};
use super::session::Outcome;
use library::Library;
use writer::LibraryWriter;

pub use super::service::overlays::{
    EvictedOverlays, ExpiredOverlay, ListedOverlay, OverlayFilter, OverlayList,
};
pub use super::service::weave::{
    ComposedPrompt, PartSource, SkippedPart, WeaveRequest, WeaveTarget, WovenPart,
};
pub use inspect::Repairs;
pub use overview::{
    AllowedTouch, DRIFTED, ListedPlaybook, LoggedEvent, PlaybookDetails, PlaybookHistory, PlaybookList,
    PlaybookLog, PlaybookState, PlaybookView, PromptChange, ShownEvidence, ShownVersion,
};
pub use promote::{Promotion, Trial, TrialRun};
pub use propose::{ProposalOutcome, Proposed};
pub use quorate_manifest::playbook::{Gate, Status};
pub use quorate_playbook::gate::TestResult;
pub use quorate_playbook::history::Version;
pub use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay};
pub use reflect::{ReflectRequest, Reflection};
pub use rollback::{ArchivedPlaybooks, Rollback, StatusChange};
pub use traits::ExceptionRequest;
pub use versions::AttemptCount;

/// The playbooks of a workspace, or of a tenant in it. A playbook is a fragment of a prompt in `playbooks/`. It starts in
/// shadow, is woven once it has passed a gate, and every version of it is kept.
#[derive(Debug, Clone)]
pub struct Playbooks {
    quorate: Quorate,
    folder: Option<PathBuf>,
}

/// A proposal of playbooks.
///
/// ```
/// use quorate::Draft;
/// use quorate::playbook::ProposeRequest;
///
/// let source = Draft::File("delta.json".into());
/// let request = ProposeRequest { source, operator: Some("alice".to_owned()), exception: None };
/// # let _ = request;
/// ```
pub struct ProposeRequest {
    /// A file with frontmatter, or deltas as JSON
    pub source: Draft,
    /// The operator for deltas that name none
    pub operator: Option<String>,
    /// The locked traits that a person may permit it to touch
    pub exception: Option<ExceptionRequest>,
}

/// The evidence of a promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GateEvidence {
    /// The kind of evidence.
    kind: &'static str,
    reference: String,
    /// What it shows, in one line.
    note: String,
}

/// Why a gate stays closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateClosed {
    /// The reason.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl GateClosed {
    /// A reason, and what to do.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        GateClosed { message: message.into(), help: help.into() }
    }
}

/// A person who decides.
///
/// ```
/// use quorate::playbook::{Approval, Approver, GateClosed};
///
/// struct Absent;
///
/// impl Approver for Absent {
///     fn ask(&mut self, _question: &str) -> Result<Approval, GateClosed> {
///         Err(GateClosed::new("the editor is on leave", "ask again on Monday"))
///     }
/// }
/// ```
pub trait Approver: Send {
    /// Shows a question and asks for yes or no.
    ///
    /// # Errors
    /// If no person can be asked.
    fn ask(&mut self, question: &str) -> Result<Approval, GateClosed>;
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Whether the person agrees.
    pub yes: bool,
    /// The reason, in one line; it may be empty.
    pub why: String,
    /// The person's name, which is recorded.
    pub by: String,
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let target = WeaveTarget::Operator("alice".to_owned());
    /// let request = WeaveRequest { trying: Some("cite".to_owned()), ..WeaveRequest::new(target) };
    /// let woven = quorate.weave(request).await?;
    /// assert_eq!(woven.prompt, "You are Alice.\n\nName the shelf of each book.");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let listed = quorate.overlays(OverlayFilter::default()).await?;
    /// assert!(listed.overlays.is_empty(), "no advisory run has given advice");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let error = quorate.overlay("o7k2m").await.unwrap_err();
    /// assert_eq!(error.code(), "quorate:overlay_unknown");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// for listed in &quorate.overlays(OverlayFilter::default()).await?.overlays {
    ///     quorate.expire_overlay(&listed.overlay.overlay).await?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let filter = OverlayFilter { assembly: Some("mentors".to_owned()) };
    /// assert!(quorate.sweep_overlays(filter).await?.evicted.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let same = playbooks.in_folder(dir.path())?;
    /// assert_eq!(same.list()?.playbooks, playbooks.list()?.playbooks);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_folder(&self, folder: impl Into<PathBuf>) -> Result<Playbooks, Error> {
        let folder = Some(self.quorate.named_path(folder.into())?);
        Ok(Playbooks { quorate: self.quorate.clone(), folder })
    }

    /// All playbooks, in the order of their files. Problems of the files are warnings.
    ///
    /// # Errors
    /// If the workspace cannot be opened.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let listed = playbooks.list()?;
    /// assert_eq!(listed.playbooks[0].slug, "cite");
    /// assert_eq!(listed.playbooks[0].status, Status::Shadow);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self) -> Result<Outcome<PlaybookList>, Error> {
        let library = self.library()?;
        Ok(Outcome { value: PlaybookList::of(&library), warnings: library.integrity_report(None) })
    }

    /// A playbook: its text, its operators, its status.
    ///
    /// # Errors
    /// If it does not exist, or its files cannot be read.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let details = playbooks.show("cite")?;
    /// assert_eq!(details.state.body, "Name the shelf of each book.");
    /// assert_eq!(details.state.playbook.operators, ["alice"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn show(&self, slug: &str) -> Result<Outcome<PlaybookDetails>, Error> {
        let library = self.library()?;
        Outcome::of(PlaybookDetails::of(&library, slug), library.integrity_report(Some(slug)))
    }

    /// The versions of a playbook.
    ///
    /// # Errors
    /// As [`show`](Playbooks::show).
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let history = playbooks.history("cite")?;
    /// assert_eq!(history.versions[0].version.event, "created");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn history(&self, slug: &str) -> Result<Outcome<PlaybookHistory>, Error> {
        let library = self.library()?;
        Outcome::of(PlaybookHistory::of(&library, slug), library.integrity_report(Some(slug)))
    }

    /// A playbook with its versions, its evidence, and what it changes in prompts.
    ///
    /// # Errors
    /// As [`show`](Playbooks::show), and if the ledger does not answer.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let view = playbooks.view("cite").await?;
    /// assert_eq!((view.prompts[0].operator.as_str(), view.prompts[0].skipped.as_ref()), ("alice", None));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn view(&self, slug: &str) -> Result<Outcome<PlaybookView>, Error> {
        let library = self.library()?;
        let file = library.find(slug)?;
        if self.quorate.held.is_none() && !library.workspace.ledger.may_exist() {
            return Outcome::of(PlaybookView::of(&library, file, None).await, Report::new());
        }
        let session = self.quorate.open_existing().await?;
        let result = PlaybookView::of(&library, file, Some(&session)).await;
        session.finish(result).await
    }

    /// The ledger's records of all playbooks, or of the one that is named. Problems of files are warnings.
    ///
    /// # Errors
    /// If the ledger does not exist or does not answer.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let log = playbooks.log(Some("cite")).await?;
    /// let events: Vec<&str> = log.events.iter().map(|record| record.event.as_str()).collect();
    /// assert_eq!(events, ["playbook.registered", "playbook.shadowed"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let request = ReflectRequest { operator: "bob".to_owned(), ..ReflectRequest::default() };
    /// let error = playbooks.reflect(request).await.unwrap_err();
    /// assert_eq!(error.first_message(), "unknown operator `bob`");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn reflect(&self, request: ReflectRequest) -> Result<Outcome<Reflection>, Error> {
        let mut writer = self.writer().await?;
        let result = reflect::reflect(&mut writer, request).await;
        writer.finish(result).await
    }

    /// Proposes playbooks. A refused proposal is a part of the result.
    ///
    /// # Errors
    /// If the source cannot be read, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let delta = r#"{"op": "revise", "slug": "cite", "body": "Name shelf and room.", "summary": "Also the room."}"#;
    /// let source = quorate::Draft::Text { name: "delta.json".to_owned(), text: delta.to_owned() };
    /// let proposed = playbooks.propose(ProposeRequest { source, operator: None, exception: None }).await?;
    /// assert_eq!(proposed.proposals[0].version, Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn propose(&self, request: ProposeRequest) -> Result<Outcome<Proposed>, Error> {
        let mut writer = self.writer().await?;
        let result = match self.quorate.read_draft(request.source) {
            Ok(read) => propose::propose_text(&mut writer, &read, request.operator, request.exception).await,
            Err(error) => Err(error),
        };
        writer.finish(result).await
    }

    /// Proposes the advice of an advisory run, which its id, a prefix of it, or `latest` names.
    ///
    /// # Errors
    /// If the run is unknown or has no advice, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let error = playbooks.propose_advice("latest").await.unwrap_err();
    /// assert_eq!(error.code(), "quorate:run_unknown", "there is no run yet");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn propose_advice(&self, run: &str) -> Result<Outcome<Proposed>, Error> {
        let mut writer = self.writer().await?;
        let result = propose::propose_advice(&mut writer, run).await;
        writer.finish(result).await
    }

    /// Makes a playbook active, if it passes a gate. A closed gate is a result; `person` is asked by [`Gate::Human`].
    ///
    /// # Errors
    /// If the playbook is unknown, the gate cannot be asked, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// struct Editor;
    ///
    /// impl Approver for Editor {
    ///     fn ask(&mut self, _question: &str) -> Result<Approval, GateClosed> {
    ///         Ok(Approval { yes: true, why: String::new(), by: "ada".to_owned() })
    ///     }
    /// }
    ///
    /// let promotion = playbooks.promote("cite", Gate::Human, Box::new(Editor)).await?;
    /// assert_eq!((promotion.promoted, promotion.version), (true, Some(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn promote(
        &self,
        slug: &str,
        gate: Gate,
        person: Box<dyn Approver>,
    ) -> Result<Outcome<Promotion>, Error> {
        let mut writer = self.writer().await?;
        let result = promote::promote(&mut writer, slug, gate, person).await;
        writer.finish(result).await
    }

    /// Puts an active playbook back into shadow.
    ///
    /// # Errors
    /// If it does not exist, is in shadow already, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let error = playbooks.shadow("cite").await.unwrap_err();
    /// assert_eq!(error.first_message(), "`cite` is in shadow already");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn shadow(&self, slug: &str) -> Result<Outcome<StatusChange>, Error> {
        let mut writer = self.writer().await?;
        let result = rollback::move_to_shadow(&mut writer, slug).await;
        writer.finish(result).await
    }

    /// Archives a playbook.
    ///
    /// # Errors
    /// If it does not exist, is archived already, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let archived = playbooks.archive("cite", "shelves were renumbered").await?;
    /// assert_eq!((archived.version, archived.status), (2, "archived"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn archive(&self, slug: &str, reason: &str) -> Result<Outcome<StatusChange>, Error> {
        let mut writer = self.writer().await?;
        let result = rollback::archive(&mut writer, slug, reason).await;
        writer.finish(result).await
    }

    /// Restores an earlier version of a playbook.
    ///
    /// # Errors
    /// If the version does not exist or may no longer be woven, or a file cannot be written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// playbooks.archive("cite", "shelves were renumbered").await?;
    /// let restored = playbooks.rollback("cite", 1).await?;
    /// assert_eq!((restored.version, restored.status), (3, Status::Shadow));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn rollback(&self, slug: &str, to: u32) -> Result<Outcome<Rollback>, Error> {
        let mut writer = self.writer().await?;
        let result = rollback::rollback(&mut writer, slug, to).await;
        writer.finish(result).await
    }

    /// Archives expired playbooks.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// assert!(playbooks.sweep().await?.archived.is_empty(), "it has no `ttl`");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn sweep(&self) -> Result<Outcome<ArchivedPlaybooks>, Error> {
        let mut writer = self.writer().await?;
        let result = rollback::archive_expired(&mut writer).await;
        writer.finish(result).await
    }

    /// Finishes interrupted changes, records manual edits in the histories, and rebuilds the index.
    ///
    /// # Errors
    /// If a file cannot be read or written, or a history is incomplete.
    ///
    /// ```
    #[doc = include_str!("playbook/example.txt")]
    /// let file = dir.path().join("playbooks/operator/alice/cite.md");
    /// let edited = std::fs::read_to_string(&file)?.replace("each book", "every book");
    /// std::fs::write(&file, edited)?;
    /// assert!(!playbooks.show("cite")?.state.intact);
    /// playbooks.repair().await?;
    /// assert!(playbooks.show("cite")?.state.intact);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn repair(&self) -> Result<Outcome<Repairs>, Error> {
        let mut writer = self.writer_of_unfinished().await?;
        let result = inspect::repair(&mut writer).await;
        writer.finish(result).await
    }

    fn library(&self) -> Result<Library, Error> {
        Library::open(&self.quorate.environment, &self.quorate.places, self.folder.as_deref())
    }

    /// Opens the ledger and the library for a change, and takes the write lock. An unfinished change is an error.
    async fn writer(&self) -> Result<LibraryWriter, Error> {
        let writer = self.writer_of_unfinished().await?;
        match writer.ensure_finished() {
            Ok(()) => Ok(writer),
            Err(error) => writer.finish(Err(error)).await.map(|outcome| outcome.value),
        }
    }

    /// As [`writer`](Playbooks::writer), also with an unfinished change.
    async fn writer_of_unfinished(&self) -> Result<LibraryWriter, Error> {
        let (Quorate { environment, places, .. }, folder) = (&self.quorate, self.folder.as_deref());
        let session = self.quorate.open(writer::open_session(environment, places, folder)).await?;
        match writer::open_library(&session, places, folder).await {
            Ok((library, lock)) => Ok(LibraryWriter::new(session, library, places.clone(), lock)),
            Err(error) => session.finish(Err(error)).await.map(|outcome| outcome.value),
        }
    }
}

/// Adds untrusted text as a quotation, with invisible characters escaped.
fn push_quote(text: &mut String, quoted: &str) {
    for line in escape_invisible(quoted).lines() {
        text.push_str(&format!("> {line}\n"));
    }
}

fn refuse(report: &mut Report, code: RefusalCode, message: impl Into<String>, help: impl Into<String>) {
    report.refuse(code, Body::new(message).help(help));
}
