//! Reviewing what a tool has just written, for the tool's hooks. Files that a tool reports are reviewed as in a sweep: files
//! that are not due are skipped. Content that this council has judged is not judged again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::CheckpointFiles;
use quorate_protocol::policy::Verdict;
use serde_json::Value;

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::events::{Observer, Run};
use super::service::artifact::{self, Artifact, Draft};
use super::service::disk::{self, display_ledger, display_path};
use super::service::environment::Environment;
use super::service::report::{self, FailOn, Review};
use super::service::review::{self, ReviewOutcome, ReviewRequest, TierPolicy, hold_text};
use super::service::run_opened::ensure_shown_artifact;
use super::service::runs::Recorded;
use super::service::session::LedgerSession;
use super::service::workspace::{self, Workspace};
use super::service::{open_session, sealing};
use super::session::Outcome;

/// A file that was written, and how it is reviewed.
#[derive(Debug, Clone)]
pub struct WrittenRequest {
    /// The file.
    pub file: PathBuf,
    /// Which files are reviewed.
    pub scope: WrittenScope,
    /// How it is reviewed. The scope decides whether its tier counts, and REVISE fails by default.
    pub review: ReviewRequest,
}

/// Which files are reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenScope {
    /// Files below the folders that the council watches and whose tier is due, for a tool that reports every file.
    Watched,
    /// All files, since the user has chosen them.
    Named,
}

/// The result for a file.
#[derive(Debug)]
pub enum WrittenOutcome {
    /// Its content was judged, now or before.
    Judged(Box<Review>),
    /// It is not reviewed, for this reason.
    NotDue(String),
}

/// Whether a file passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Passing {
    /// The verdict is milder than those that fail, or a person decided SHIP.
    Passes,
    /// The verdict fails.
    Fails,
    /// The review has no verdict.
    Undecided,
}

impl Review {
    /// The verdict that counts: a person's, if there is one.
    pub fn decided(&self) -> String {
        match &self.overridden {
            Some(decision) => format!("{} (by {})", decision.verdict, decision.by),
            None => self.verdict_word().to_owned(),
        }
    }

    /// Whether the text passes, by the verdict that counts.
    pub fn passing(&self) -> Passing {
        let decided = self.overridden.as_ref().map(|decision| Verdict::read(&decision.verdict));
        match decided.unwrap_or(self.verdict) {
            None | Some(Verdict::Incomplete) => Passing::Undecided,
            // A person who overrides with SHIP has seen the blocks.
            Some(Verdict::Ship) if decided.is_some() => Passing::Passes,
            verdict if self.exit_code_of(verdict) == 0 => Passing::Passes,
            Some(_) => Passing::Fails,
        }
    }
}

impl Quorate {
    /// Reviews a file that was written, unless it is not due or a person or this council has judged its content.
    ///
    /// The run fails if the file cannot be read, the configuration is invalid, the ledger was not created on this machine,
    /// or it fails.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::hook::{Passing, WrittenOutcome, WrittenRequest, WrittenScope};
    /// use quorate::{Quorate, ReviewRequest};
    ///
    /// let file = dir.path().join("note.md");
    /// let text = "The meeting moved to Tuesday at ten, because the room is taken on Monday. Please bring the figures of the \
    ///             last quarter, and tell Ada if you cannot come.\n";
    /// std::fs::write(&file, text)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let (scope, review) = (WrittenScope::Named, ReviewRequest::default());
    /// let request = WrittenRequest { file, scope, review };
    /// let first = quorate.review_written(request.clone()).finish().await?;
    /// let again = quorate.review_written(request).finish().await?;
    /// let (WrittenOutcome::Judged(first), WrittenOutcome::Judged(again)) = (first.value, again.value) else {
    ///     panic!("a named file is judged");
    /// };
    /// assert_eq!((&first.run, first.passing()), (&again.run, again.passing()));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn review_written(&self, request: WrittenRequest) -> Run<Outcome<WrittenOutcome>> {
        let quorate = self.clone();
        Run::new(move |observer, interruption| async move {
            let WrittenRequest { file, scope, mut review } = request;
            review.fail_on = review.fail_on.or(Some(FailOn::Revise));
            review.tier_policy = match scope {
                WrittenScope::Watched => TierPolicy::Obey,
                WrittenScope::Named => TierPolicy::Ignore,
            };
            let path = quorate.environment.directory.join(quorate.named_path(file)?);
            let Some((workspace, artifact)) = quorate.written(&path, scope)? else {
                let why = "no folder of `watch.paths` has it".to_owned();
                return Ok(Outcome { value: WrittenOutcome::NotDue(why), warnings: Report::new() });
            };
            let opening = open_known(&quorate.environment, workspace);
            let session = Box::pin(quorate.open(opening)).await?;
            let reviewed = review_content(&session, &artifact, &review, observer);
            let decided = |recorded| match recorded {
                Recorded::Review(mut judged) => {
                    judged.set_fail_on(review.fail_on);
                    judged.artifact.clone_from(&artifact.display_name);
                    Some(WrittenOutcome::Judged(judged))
                }
                Recorded::Decision(_) => None,
            };
            let reviewed = session.until_interrupted(&interruption, reviewed, decided).await;
            session.finish(reviewed).await
        })
    }

    /// The workspace and the text of a written file; `None` if the council does not watch its folder.
    fn written(&self, path: &Path, scope: WrittenScope) -> Result<Option<(Workspace, Artifact)>, Error> {
        let environment = &self.environment;
        let start = path.parent().unwrap_or(&environment.directory);
        let workspace = workspace::load(environment, &self.places, start)?;
        if scope == WrittenScope::Watched && !is_watched(&workspace, path)? {
            return Ok(None);
        }
        let read = artifact::read(&Draft::File(path.to_owned()), &environment.directory)?;
        // The name that a sweep uses.
        let artifact = Artifact { display_name: display_path(environment, path), ..read };
        workspace.guard.ensure_unrecorded(&artifact)?;
        Ok(Some((workspace, artifact)))
    }
}

/// Opens the ledger if this machine knows it.
async fn open_known(environment: &Environment, workspace: Workspace) -> Result<LedgerSession, Error> {
    let has_runs = ensure_known(environment, &workspace).await?;
    let session = open_session::open_for_writing(environment.clone(), workspace).await?;
    if !has_runs {
        // From now on this machine knows the ledger, even if this command is killed.
        session.seal().await;
    }
    Ok(session)
}

/// Reviews a text, unless a person or this council has judged the same content.
async fn review_content(
    session: &LedgerSession,
    artifact: &Artifact,
    request: &ReviewRequest,
    observer: Arc<dyn Observer>,
) -> Result<WrittenOutcome, Error> {
    let spec = review::build(&session.environment, &session.workspace, &request.options, request.policy)?;
    let _alone = hold_text(session, &artifact.sha256).await?;
    // A person's decision on a text takes precedence over any council's, earlier or later.
    let mut earlier = session.store.last_decision(&artifact.sha256).await?;
    if earlier.is_none() {
        let council = spec.fingerprint("").combined();
        earlier = session.store.last_own_judgement(&council, &artifact.sha256).await?;
    }
    if let Some(run) = earlier {
        let history = session.partial_history(&run).await?;
        ensure_shown_artifact(&history)?;
        let report = report::load_from(session, &history).await?;
        // The earlier run may have had another name for the same text.
        let mut review = Review { artifact: artifact.display_name.clone(), ..report };
        review.set_fail_on(request.fail_on);
        return Ok(WrittenOutcome::Judged(Box::new(review)));
    }
    Ok(match review::review(session, artifact.clone(), request, observer).await? {
        ReviewOutcome::Judged(review) => WrittenOutcome::Judged(review),
        ReviewOutcome::Skipped { tier, artifact_type, .. } => {
            WrittenOutcome::NotDue(format!("tier {tier} (type {artifact_type}) is not reviewed"))
        }
    })
}

/// Whether a file is below a folder that the council watches, and not one of Quorate's own files. Follows links. A
/// missing folder keeps its configured path, so files below it are not found.
///
/// # Errors
/// If none of the watched folders exists, because then no file would ever be reviewed.
fn is_watched(workspace: &Workspace, path: &Path) -> Result<bool, Error> {
    let council = &workspace.council;
    let watched: Vec<_> = council.watch.paths.iter().map(|written| council.dir.join(written)).collect();
    let folders: Vec<_> = watched.iter().filter_map(|folder| disk::canonical(folder)).collect();
    if folders.is_empty() && !watched.is_empty() {
        let body = Body::new("cannot read any of the folders of `watch.paths`");
        let help = "create them, or correct their names in council.yaml";
        return Err(Error::configuration(codes::COUNCIL_INVALID, body.help(help)));
    }
    let real = disk::canonical_or_new(path);
    let own = [Some(&*workspace.log), workspace.ledger.file()];
    Ok(folders.iter().any(|folder| real.starts_with(folder)) && !own.contains(&Some(path)))
}

/// Refuses a ledger that this machine neither created nor accepted, such as one that came with a checkout: its
/// verdicts, and the people's decisions in it, would let texts pass. Returns `true` if the ledger contains runs.
async fn ensure_known(environment: &Environment, workspace: &Workspace) -> Result<bool, Error> {
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
            && sealing::rollback_reason(environment, &store, &kept).await?.is_none();
        Ok(Some(is_known))
    };
    let known: Result<Option<bool>, Error> = known.await;
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
    Err(Error::configuration(codes::LEDGER_UNKNOWN, body.help(help)))
}

/// A tool whose events name the file that it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Claude Code, after its tools Write and Edit.
    ClaudeCode,
    /// Cursor, after an edit.
    Cursor,
}

impl Tool {
    /// The largest event, in bytes: some contain the whole written text.
    pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

    /// The file that an event names; `None` if the tool wrote none.
    ///
    /// # Errors
    /// If the text is not such an event.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use quorate::hook::Tool;
    ///
    /// let event = br#"{"cwd": "/blog", "tool_name": "Write", "tool_input": {"file_path": "post.md"}}"#;
    /// let file = Tool::ClaudeCode.written_file(event)?;
    /// assert_eq!(file.as_deref(), Some(Path::new("/blog/post.md")));
    /// # Ok::<(), quorate::Error>(())
    /// ```
    pub fn written_file(self, event: &[u8]) -> Result<Option<PathBuf>, Error> {
        // JSON pointers: to the file's path, of which the first existing one counts, and to the base of a relative path.
        let (tool, paths, directory) = match self {
            Tool::ClaudeCode => {
                ("Claude Code", ["/tool_input/file_path", "/tool_input/notebook_path"], "/cwd")
            }
            Tool::Cursor => ("Cursor", ["/file_path", "/tool_input/file_path"], "/workspace_roots/0"),
        };
        let no_event = |why: String| {
            let body = Body::new(format!("standard input is not an event of {tool}: {why}"));
            let help = "run `quorate init wiring TOOL` to configure the tool's hooks";
            Error::new(ErrorKind::InvalidRequest, codes::USAGE, body.help(help))
        };
        if event.len() > Tool::MAX_EVENT_BYTES {
            let most = Tool::MAX_EVENT_BYTES / (1024 * 1024);
            return Err(no_event(format!("it has more than {most} MiB")));
        }
        let event: Value = serde_json::from_slice(event).map_err(|error| no_event(error.to_string()))?;
        if !event.is_object() {
            return Err(no_event("it is not a JSON object".to_owned()));
        }
        let Some(written) = paths.into_iter().find_map(|pointer| event.pointer(pointer)) else {
            // Tools that write no file have no path. Without the tool's name the event is invalid.
            return match event["tool_name"].as_str() {
                Some(tool) if !WRITING.contains(&tool) => Ok(None),
                _ => Err(no_event("it does not name the written file".to_owned())),
            };
        };
        let written = written.as_str().ok_or_else(|| no_event("the file's path is not text".to_owned()))?;
        let start = event.pointer(directory).and_then(Value::as_str).unwrap_or_default();
        Ok(Some(Path::new(start).join(written)))
    }
}

/// The tools that write a file.
const WRITING: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];
