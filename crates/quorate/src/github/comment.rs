//! One comment on a pull request, with the verdicts of its texts. The texts come from GitHub's API: artifacts of the pull
//! request's own workflow are not read, because the pull request can change them.

use std::collections::BTreeSet;
use std::path::Path;

use quorate_diagnostics::Report;
use quorate_diagnostics::invisible::escape_invisible_except;
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy::sha256_hex;
use serde::Deserialize;

use super::api::{Api, Comment, CommitFiles, Pull, Repository, TRY_AGAIN_AFTER, TreeEntry, failed};
use super::patterns::{Patterns, ensure_readable};
use super::{
    Change, ChangedText, ChangedTexts, GithubOutcome, MAX_TEXTS, Task, event_unusable, not_reviewed,
    too_many_texts, unusable, warn_of_unmatched,
};
use crate::error::Error;
use crate::service::environment::Environment;
use crate::service::redaction::Variables;
use crate::service::review::{self, ReviewRequest};
use crate::service::workspace::PathOverrides;
use crate::service::{artifact, disk};
use crate::view::layout::one_line;
use crate::view::{Doc, Text};

/// The largest file of an event, in bytes.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Deserialize)]
struct Event {
    workflow_run: WorkflowRun,
}

/// The run of a workflow that has ended.
#[derive(Deserialize)]
struct WorkflowRun {
    /// The event that started it.
    event: String,
    head_sha: String,
    head_branch: Option<String>,
    /// `None` once a fork is deleted.
    head_repository: Option<Repository>,
}

/// The run that started this job's workflow.
///
/// # Errors
/// When another event started it.
fn workflow_run(job: &Variables) -> Result<WorkflowRun, Error> {
    let file = job.get("GITHUB_EVENT_PATH").filter(|file| !file.is_empty());
    let Some(file) = file.filter(|_| job.get("GITHUB_EVENT_NAME") == Some("workflow_run")) else {
        return Err(event_unusable("this job's workflow was not started by `workflow_run`".to_owned()));
    };
    let unreadable = |why: String| event_unusable(format!("cannot read the event {file}: {why}"));
    let bytes =
        disk::read_up_to(Path::new(file), MAX_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let event: Event = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    Ok(event.workflow_run)
}

/// The most characters of a comment; GitHub takes 65,536.
const MAX_COMMENT_CHARS: usize = 60_000;

impl Task {
    /// Reviews the texts of the pull request that started the job's workflow, and comments on it.
    pub(super) async fn comment(&mut self, label: &str, author: &str) -> Result<GithubOutcome, Error> {
        let not_now = |why: &str| Ok(GithubOutcome::NotReviewed(format!("no comment: {why}")));
        let patterns = Patterns::new(&self.patterns)?;
        let run = workflow_run(&self.outer.variables)?;
        let api = Api::of_job(&self.outer.variables)?;
        if run.event != "pull_request" {
            return not_now(&format!("the workflow was started by {}", one_line(&run.event)));
        }
        let pulls = pulls_of(&api, &run).await?;
        let thread = |pull| Thread { api: &api, pull, author, marker: marker(&self.patterns) };
        let [pull] = &pulls[..] else {
            let commit = one_line(&run.head_sha);
            if pulls.is_empty() {
                return not_now(&format!("no open pull request has the commit {commit}"));
            }
            let error = failed(format!("{} open pull requests have the commit {commit}", pulls.len()));
            for pull in &pulls {
                thread(pull).withdraw(&error.first_message()).await?;
            }
            return Err(error);
        };
        let thread = thread(pull);
        // From here on an earlier verdict is outdated, even if this process is killed.
        thread.keep(&under_review(pull), Keep::OfOtherCommits).await?;
        let texts = match self.review_texts(&thread, &patterns, label).await {
            Ok(PullReview::Reviewed(texts)) => texts,
            Ok(PullReview::Outdated) => {
                return not_now("the pull request has a newer commit, whose own run comments");
            }
            Ok(PullReview::Interrupted) => {
                thread.withdraw("the review was interrupted").await?;
                return Ok(GithubOutcome::Interrupted);
            }
            Ok(PullReview::Unlabelled) => {
                let why = format!(
                    "a model is asked about a pull request from a fork only once it has the label `{label}`"
                );
                thread.withdraw(&why).await?;
                return Ok(GithubOutcome::NotReviewed(format!("not reviewed: {why}")));
            }
            Err(error) => {
                thread.withdraw(&self.outer.redactor.redact(&error.first_message()).0).await?;
                return Err(error);
            }
        };
        let most = MAX_COMMENT_CHARS - thread.marker.len() - 1;
        let which = if texts.texts.is_empty() { Keep::Existing } else { Keep::One };
        let kept = thread.keep(&texts.digest(&self.outer.redactor, about(pull), most), which).await;
        Ok(GithubOutcome::Reviewed(texts.saved(kept)))
    }

    async fn review_texts(
        &mut self,
        thread: &Thread<'_>,
        patterns: &Patterns,
        label: &str,
    ) -> Result<PullReview, Error> {
        let Thread { api, pull, .. } = *thread;
        let Task { review, outer, places, interruption, warnings, .. } = self;
        let prepared = async {
            let Some(texts) = changed_texts(api, patterns, pull, outer, warnings).await? else {
                return Ok(Err(PullReview::Outdated));
            };
            let admission = admit(review, places, outer, label, api, pull, &texts)?;
            if admission == Admission::Unlabelled {
                return Ok(Err(PullReview::Unlabelled));
            }
            if admission != Admission::Free {
                // A paid review requires a usable ledger and a comment.
                open_ledgers(places, &texts, outer).await?;
                thread.keep(&under_review(pull), Keep::One).await?;
            }
            if let (Admission::PaidByLabel, Some(label)) = (admission, label_of(label, pull)) {
                api.remove_label(pull.number, label).await?;
            }
            Ok::<_, Error>(Ok(texts))
        };
        let texts = tokio::select! {
            biased;
            () = interruption.requested() => return Ok(PullReview::Interrupted),
            prepared = prepared => match prepared? {
                Ok(texts) => texts,
                Err(ended) => return Ok(ended),
            },
        };
        let environment = self.outer.clone();
        let Some(texts) = self.review_all(texts, &environment, None).await? else {
            return Ok(PullReview::Interrupted);
        };
        // If this check fails, the comment is written anyway: the verdicts may have cost money, and they name their commit.
        if is_outdated(api, pull).await.unwrap_or(false) {
            return Ok(PullReview::Outdated);
        }
        // Verdicts are told by the comment; the exit code tells what could not be reviewed.
        let exit_code = texts.iter().find_map(ChangedText::failure).map_or(0, Error::exit_code);
        Ok(PullReview::Reviewed(ChangedTexts { texts, exit_code, unsaved: None }))
    }
}

/// How reviewing a pull request ended.
enum PullReview {
    Reviewed(ChangedTexts),
    /// No maintainer has allowed a model to review the pull request.
    Unlabelled,
    /// The pull request has a newer commit.
    Outdated,
    Interrupted,
}

/// The open pull requests whose newest commit started the workflow. Several mean that the pull request is ambiguous.
async fn pulls_of(api: &Api, run: &WorkflowRun) -> Result<Vec<Pull>, Error> {
    let (Some(repository), Some(branch)) = (&run.head_repository, &run.head_branch) else {
        return Ok(Vec::new());
    };
    let owner = repository.full_name.split('/').next().unwrap_or_default();
    let mut pulls = api.pulls_from(&format!("{owner}:{branch}")).await?;
    pulls.retain(|pull| {
        let is_same = |head: &Repository| head.full_name == repository.full_name;
        pull.head.sha == run.head_sha && pull.head.repo.as_ref().is_some_and(is_same)
    });
    Ok(pulls)
}

/// The texts that a pull request adds or changes, fetched from GitHub; `None` if it has a newer commit. Warns about patterns
/// that match nothing.
async fn changed_texts(
    api: &Api,
    patterns: &Patterns,
    pull: &Pull,
    environment: &Environment,
    warnings: &mut Report,
) -> Result<Option<Vec<Change>>, Error> {
    let files = api.files(pull.number).await?;
    let now = api.pull(pull.number).await?;
    if now.head.sha != pull.head.sha {
        return Ok(None);
    }
    if let Some(all) = now.changed_files.filter(|all| *all != files.len()) {
        return Err(failed(format!("GitHub lists {} of {all} changed files", files.len())));
    }
    let mut unmatched = patterns.unmatched(files.iter().map(|file| &*file.filename));
    let is_there = files.iter().filter(|file| file.status != "removed");
    let (chosen, others): (Vec<_>, Vec<_>) = is_there
        .filter(|file| patterns.choose(&file.filename) || patterns.choose_below(&file.filename))
        .partition(|file| patterns.choose(&file.filename));
    if chosen.len() > MAX_TEXTS {
        return Err(too_many_texts());
    }
    if chosen.is_empty() && others.is_empty() && unmatched.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut commit = CommitFiles::of(api, &pull.head.sha).await?;
    if commit.is_complete {
        let among_all = patterns.unmatched(commit.paths());
        unmatched.retain(|pattern| among_all.contains(pattern));
        ensure_readable(&unmatched)?;
        warn_of_unmatched(&unmatched, warnings);
    } else {
        for pattern in &unmatched {
            if commit.find(pattern).await?.is_none() {
                ensure_readable(&[pattern])?;
            }
        }
    }
    let mut texts = Vec::with_capacity(chosen.len());
    for file in chosen {
        let entry = commit.find(&file.filename).await?.filter(|entry| entry.is_file());
        let bytes = match (&file.sha, entry) {
            (Some(sha), Some(entry)) => Some(content(api, sha, entry).await?),
            _ => None,
        };
        texts.push(Change::new(&file.filename, bytes, environment));
    }
    for file in others {
        // A link or another repository in place of a folder with chosen texts.
        if !commit.find(&file.filename).await?.is_some_and(TreeEntry::is_file) {
            texts.push(Change::new(&file.filename, None, environment));
        }
    }
    Ok(Some(texts))
}

/// The content of a file, up to one byte above the limit for artifacts.
async fn content(api: &Api, sha: &str, entry: &TreeEntry) -> Result<Vec<u8>, Error> {
    let bytes = api.blob(sha).await?;
    match entry.size {
        Some(size) if size as u64 <= artifact::MAX_BYTES && size != bytes.len() => Err(failed(format!(
            "GitHub's content of {} has {} bytes and not {size}",
            one_line(&entry.path),
            bytes.len()
        ))),
        _ => Ok(bytes),
    }
}

/// Opens the ledger of each text once, as its review will.
async fn open_ledgers(
    places: &PathOverrides,
    texts: &[Change],
    environment: &Environment,
) -> Result<(), Error> {
    let mut folders = BTreeSet::new();
    for text in texts {
        let Ok(artifact) = &text.artifact else { continue };
        if folders.insert(artifact.path.as_deref().and_then(Path::parent)) {
            review::open_session(environment, places, artifact).await?.close().await;
        }
    }
    Ok(())
}

async fn is_outdated(api: &Api, pull: &Pull) -> Result<bool, Error> {
    Ok(api.pull(pull.number).await?.head.sha != pull.head.sha)
}

/// Whether a pull request may be reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admission {
    /// No model is asked.
    Free,
    Paid,
    /// A maintainer has allowed one review.
    PaidByLabel,
    Unlabelled,
}

/// Decides whether a pull request with these texts may be reviewed; each text may have its own council.
///
/// # Errors
/// If a model would be asked without a cap, since the authors of pull requests do not pay for it. If a review cannot begin,
/// so that the label is not used up.
fn admit(
    request: &ReviewRequest,
    places: &PathOverrides,
    environment: &Environment,
    label: &str,
    api: &Api,
    pull: &Pull,
    texts: &[Change],
) -> Result<Admission, Error> {
    let options = &request.options;
    let mut asking = Vec::new();
    // Unreadable texts ask no model.
    for artifact in texts.iter().filter_map(|text| text.artifact.as_ref().ok()) {
        if review::asks_a_model(environment, places, artifact, options)? {
            asking.push(artifact);
        }
    }
    if asking.is_empty() {
        return Ok(Admission::Free);
    }
    if options.caps == Caps::default() || options.caps.calls == Some(0) {
        let help = "add --max-money, --max-tokens or --max-calls, which apply to all texts together";
        return Err(unusable("a review by a model needs a cap above 0".to_owned(), help));
    }
    let is_fork = pull.head.repo.as_ref().is_none_or(|repo| repo.full_name != api.repository);
    if is_fork && label_of(label, pull).is_none() {
        return Ok(Admission::Unlabelled);
    }
    for artifact in asking {
        let (estimate, _, spec) = review::estimate(environment, places, artifact, request)?;
        spec.admit(environment)?;
        let needed = estimate.calls;
        if options.caps.calls.is_some_and(|most| u64::from(most) < needed) {
            let what = format!("a review needs {needed} calls, and --max-calls allows fewer");
            return Err(unusable(what, "raise --max-calls, which applies to all texts together"));
        }
    }
    Ok(if is_fork { Admission::PaidByLabel } else { Admission::Paid })
}

/// The label with which a maintainer allows a review, in the pull request's spelling; GitHub ignores the case of labels.
fn label_of<'p>(label: &str, pull: &'p Pull) -> Option<&'p str> {
    pull.labels.iter().map(|label| &*label.name).find(|name| name.eq_ignore_ascii_case(label))
}

/// The hidden marker of the comment for these patterns; their order does not matter.
fn marker(patterns: &[String]) -> String {
    let patterns: BTreeSet<&str> = patterns.iter().map(String::as_str).collect();
    let patterns = Vec::from_iter(patterns).join("\n");
    format!("<!-- quorate:reviews:{} -->", &sha256_hex(patterns.as_bytes())[..16])
}

/// The line below the heading of a comment.
fn about(pull: &Pull) -> Text {
    let commit = Text::code(&*pull.head.sha);
    Text::from("Commit ").and(commit).and(", judged by the configuration of the default branch.")
}

/// Which comment receives a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// The existing comment, or a new one.
    One,
    /// The existing comment, if any.
    Existing,
    /// The existing comment, unless it has the verdicts of this commit.
    OfOtherCommits,
}

fn under_review(pull: &Pull) -> String {
    let mut doc = Doc::new();
    doc.heading("Quorate: under review");
    doc.line(Text::from("Commit ").and(Text::code(&*pull.head.sha)).and(" is being reviewed."));
    doc.markdown()
}

/// The comment of these patterns on a pull request.
struct Thread<'a> {
    api: &'a Api,
    pull: &'a Pull,
    /// The login of the comment's author.
    author: &'a str,
    marker: String,
}

impl Thread<'_> {
    /// Withdraws the verdicts of an earlier comment, which are about another commit.
    async fn withdraw(&self, why: &str) -> Result<(), Error> {
        self.keep(&not_reviewed(&self.pull.head.sha, why), Keep::OfOtherCommits).await
    }

    /// Updates this author's earlier comment, or adds one.
    async fn keep(&self, body: &str, which: Keep) -> Result<(), Error> {
        let Thread { api, pull, marker, .. } = self;
        let body = format!("{marker}\n{body}");
        let body = escape_invisible_except(&body, |c| c == '\n');
        let mut times = TRY_AGAIN_AFTER.into_iter();
        loop {
            let is_own = |comment: &Comment| {
                self.is_by_author(comment)
                    && comment.body.as_ref().is_some_and(|body| body.starts_with(marker))
            };
            let comments = api.comments(pull.number).await?;
            let own: Vec<&Comment> = comments.iter().filter(|comment| is_own(comment)).collect();
            if own.is_empty() && which == Keep::One {
                match api.add_comment(pull.number, &body).await {
                    Ok(comment) => return self.ensure_author(&comment),
                    // GitHub may have added it despite the failure.
                    Err(failure) => failure.wait(&mut times).await?,
                }
                continue;
            }
            let mut about_commit = Doc::new();
            about_commit.line(about(pull));
            let about_commit = about_commit.markdown();
            // There is more than one if two jobs began at once.
            for comment in own {
                let said = comment.body.as_deref().unwrap_or_default();
                let is_spared =
                    which == Keep::OfOtherCommits && said.lines().nth(3) == Some(about_commit.trim_end());
                if said != body && !is_spared {
                    api.edit_comment(comment.id, &body).await?;
                }
            }
            return Ok(());
        }
    }

    /// # Errors
    /// If GitHub attributes the new comment to another user: later runs would not find it.
    fn ensure_author(&self, comment: &Comment) -> Result<(), Error> {
        if self.is_by_author(comment) {
            return Ok(());
        }
        Err(failed(format!(
            "the token comments as `{}` and not as `{}`: name that with --author, or each run adds a comment",
            comment.user.as_ref().map_or_else(String::new, |user| one_line(&user.login)),
            self.author
        )))
    }

    /// Whether the author wrote a comment; GitHub's names have no case.
    fn is_by_author(&self, comment: &Comment) -> bool {
        comment.user.as_ref().is_some_and(|user| user.login.eq_ignore_ascii_case(self.author))
    }
}
