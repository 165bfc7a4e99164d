//! `quorate github comment`: one comment on a pull request, with the verdicts of its texts. It reviews the texts that GitHub
//! serves, and reads no artifacts of the pull request's own workflow, which the pull request can change.

use std::collections::BTreeSet;
use std::path::Path;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy::sha256_hex;

use super::WorkflowRun;
use super::api::CommitFiles;
use super::api::{Api, Comment, Pull, TRY_AGAIN_AFTER, TreeEntry, User, failed};
use super::changes::{self, Change, Interrupted, MAX_TEXTS, Reviewed};
use super::changes::{Patterns, ensure_readable};
use super::error_format;
use crate::commands::review::{Outcome, ReviewSettings};
use crate::exit::{Exit, exit_with_error};
use crate::render::layout::one_line;
use crate::terminal;
use crate::terminal::Terminal;
use quorate::service::artifact;
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::review;

/// The most characters of a comment; GitHub takes 65,536.
const MAX_COMMENT_CHARS: usize = 60_000;

/// What to review, and as whom to comment.
pub(super) struct CommentTask {
    pub(super) patterns: Vec<String>,
    pub(super) label: String,
    pub(super) author: String,
}

pub(super) async fn run(
    task: &CommentTask,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    // A runner's ledger is gone when a person reads the comment.
    let environment = Environment { keeps_ledgers: false, ..environment.clone() };
    match comment(task, settings, &environment, terminal).await {
        Ok(exit) => exit,
        Err(error) => exit_with_error(&error, error_format(), terminal),
    }
}

async fn comment(
    task: &CommentTask,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let not_now = |why: &str| {
        terminal.status(&format!("no comment: {why}"));
        Ok(Exit::DONE)
    };
    let patterns = Patterns::new(&task.patterns)?;
    let run = super::workflow_run()?;
    let api = Api::from_environment()?;
    if run.event != "pull_request" {
        return not_now(&format!("the workflow was started by {}", one_line(&run.event)));
    }
    let pulls = pulls_of(&api, &run).await?;
    let [pull] = &pulls[..] else {
        if pulls.is_empty() {
            return not_now(&format!("no open pull request has the commit {}", one_line(&run.head_sha)));
        }
        let error =
            failed(format!("{} open pull requests have the commit {}", pulls.len(), one_line(&run.head_sha)));
        for pull in &pulls {
            withdraw(&api, task, pull, &error.first_message()).await?;
        }
        return Err(error);
    };
    // From here on an earlier verdict is outdated, even if this process is killed.
    keep(&api, task, pull, &under_review(pull), Keep::OfOtherCommits).await?;
    let result = match review_texts(&api, task, &patterns, pull, settings, environment, terminal).await {
        Ok(result) => result,
        Err(error) => {
            let why = environment.redactor.redact_text(&error.first_message());
            withdraw(&api, task, pull, &why).await?;
            return Err(error);
        }
    };
    match result {
        ReviewResult::Outdated => not_now("the pull request has a newer commit, whose own run comments"),
        ReviewResult::Interrupted => {
            withdraw(&api, task, pull, "the review was interrupted").await?;
            Ok(Exit::INTERRUPTED)
        }
        ReviewResult::Unlabelled => {
            let label = &task.label;
            let why = format!(
                "a model is asked about a pull request from a fork only once it has the label `{label}`"
            );
            withdraw(&api, task, pull, &why).await?;
            terminal.status(&format!("not reviewed: {why}"));
            Ok(Exit::DONE)
        }
        ReviewResult::Reviewed(reviewed) => say(&api, task, pull, &reviewed, environment, terminal).await,
    }
}

/// Prints the verdicts, and comments on them.
async fn say(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    reviewed: &[Reviewed],
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    for review in reviewed {
        match &review.outcome {
            Outcome::Judged(report) => {
                terminal.data(&format!("{} {}\n", report.verdict_word(), one_line(&review.path)))
            }
            Outcome::Failed(error) => drop(exit_with_error(error, error_format(), terminal)),
            Outcome::Skipped { .. } | Outcome::Interrupted => {}
        }
    }
    changes::hint_at_nothing(reviewed, terminal);
    let about = about(pull);
    let most = MAX_COMMENT_CHARS - marker(&task.patterns).len() - 1;
    let digest = changes::digest(reviewed, &about, most, &environment.redactor);
    let which = if reviewed.is_empty() { Keep::Existing } else { Keep::One };
    keep(api, task, pull, &digest, which).await?;
    // Not every text could be reviewed.
    let unreviewed = reviewed.iter().find(|review| review.report().is_none());
    Ok(unreviewed.map_or(Exit::DONE, Reviewed::exit))
}

/// The result of reviewing a pull request.
enum ReviewResult {
    Reviewed(Vec<Reviewed>),
    /// No maintainer has allowed a model to review the pull request.
    Unlabelled,
    /// The pull request has a newer commit.
    Outdated,
    Interrupted,
}

async fn review_texts(
    api: &Api,
    task: &CommentTask,
    patterns: &Patterns,
    pull: &Pull,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<ReviewResult, ServiceError> {
    let Some(texts) = changed_texts(api, patterns, pull, environment, terminal).await? else {
        return Ok(ReviewResult::Outdated);
    };
    match admit(task, settings, api, pull, &texts, environment)? {
        Admission::Unlabelled => return Ok(ReviewResult::Unlabelled),
        Admission::Free => {}
        admission @ (Admission::Paid | Admission::PaidByLabel) => {
            // A paid review requires a usable ledger and a comment.
            open_ledgers(settings, &texts, environment).await?;
            keep(api, task, pull, &under_review(pull), Keep::One).await?;
            if let (Admission::PaidByLabel, Some(label)) = (admission, label_of(task, pull)) {
                api.remove_label(pull.number, label).await?;
            }
        }
    }
    let reviewed =
        changes::review_all(texts, settings.clone(), environment, terminal, async |_, _| Ok(())).await;
    let Ok(reviewed) = reviewed.map_err(|Interrupted| ()) else { return Ok(ReviewResult::Interrupted) };
    // If this check fails, the comment is written anyway: the verdicts may have cost money, and they name their commit.
    Ok(match is_outdated(api, pull).await.unwrap_or(false) {
        true => ReviewResult::Outdated,
        false => ReviewResult::Reviewed(reviewed),
    })
}

/// The open pull requests whose newest commit started the workflow. Several mean that the pull request is ambiguous.
async fn pulls_of(api: &Api, run: &WorkflowRun) -> Result<Vec<Pull>, ServiceError> {
    let (Some(repository), Some(branch)) = (&run.head_repository, &run.head_branch) else {
        return Ok(Vec::new());
    };
    let owner = repository.full_name.split('/').next().unwrap_or_default();
    let mut pulls = api.pulls_from(&format!("{owner}:{branch}")).await?;
    pulls.retain(|pull| {
        let is_same = |head: &super::Repository| head.full_name == repository.full_name;
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
    terminal: &Terminal,
) -> Result<Option<Vec<Change>>, ServiceError> {
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
        return Err(changes::too_many_texts());
    }
    if chosen.is_empty() && others.is_empty() && unmatched.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut commit = CommitFiles::of(api, &pull.head.sha).await?;
    if commit.is_complete {
        let among_all = patterns.unmatched(commit.paths());
        unmatched.retain(|pattern| among_all.contains(pattern));
        ensure_readable(&unmatched)?;
        changes::warn_of_unmatched(&unmatched, terminal);
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
async fn content(api: &Api, sha: &str, entry: &TreeEntry) -> Result<Vec<u8>, ServiceError> {
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
    settings: &ReviewSettings,
    texts: &[Change],
    environment: &Environment,
) -> Result<(), ServiceError> {
    let mut folders = BTreeSet::new();
    for artifact in texts.iter().filter_map(|text| text.artifact.as_ref().ok()) {
        if folders.insert(artifact.path.as_deref().and_then(Path::parent)) {
            review::open_session(environment, &settings.places, artifact).await?.close().await;
        }
    }
    Ok(())
}

async fn is_outdated(api: &Api, pull: &Pull) -> Result<bool, ServiceError> {
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
    task: &CommentTask,
    settings: &ReviewSettings,
    api: &Api,
    pull: &Pull,
    texts: &[Change],
    environment: &Environment,
) -> Result<Admission, ServiceError> {
    let options = &settings.request.options;
    let mut asking = Vec::new();
    // Unreadable texts ask no model.
    for artifact in texts.iter().filter_map(|text| text.artifact.as_ref().ok()) {
        if review::asks_a_model(environment, &settings.places, artifact, options)? {
            asking.push(artifact);
        }
    }
    if asking.is_empty() {
        return Ok(Admission::Free);
    }
    if options.caps == Caps::default() || options.caps.calls == Some(0) {
        let body = Body::new("a review by a model needs a cap above 0")
            .help("add --max-money, --max-tokens or --max-calls, which apply to all texts together");
        return Err(ServiceError::configuration(codes::GITHUB_UNUSABLE, body));
    }
    let is_fork = pull.head.repo.as_ref().is_none_or(|repo| repo.full_name != api.repository);
    if is_fork && label_of(task, pull).is_none() {
        return Ok(Admission::Unlabelled);
    }
    for artifact in asking {
        review::check(environment, &settings.places, artifact, &settings.request)?;
        let needed = review::estimate(environment, &settings.places, artifact, &settings.request)?.calls();
        if options.caps.calls.is_some_and(|most| u64::from(most) < needed) {
            let body = Body::new(format!("a review needs {needed} calls, and --max-calls allows fewer"))
                .help("raise --max-calls, which applies to all texts together");
            return Err(ServiceError::configuration(codes::GITHUB_UNUSABLE, body));
        }
    }
    Ok(if is_fork { Admission::PaidByLabel } else { Admission::Paid })
}

/// The label with which a maintainer allows a review, in the pull request's spelling; GitHub ignores the case of labels.
fn label_of<'p>(task: &CommentTask, pull: &'p Pull) -> Option<&'p str> {
    pull.labels.iter().map(|label| &*label.name).find(|name| name.eq_ignore_ascii_case(&task.label))
}

/// The hidden marker of the comment for these patterns; their order does not matter.
fn marker(patterns: &[String]) -> String {
    let patterns: BTreeSet<&str> = patterns.iter().map(String::as_str).collect();
    let patterns = Vec::from_iter(patterns).join("\n");
    format!("<!-- quorate:reviews:{} -->", &sha256_hex(patterns.as_bytes())[..16])
}

/// The line below the heading of a comment.
fn about(pull: &Pull) -> String {
    format!("Commit {}, judged by the configuration of the default branch.", one_line(&pull.head.sha))
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
    format!("### Quorate: under review\n\nCommit {} is being reviewed.\n", one_line(&pull.head.sha))
}

/// Withdraws the verdicts of an earlier comment, which are about another commit.
async fn withdraw(api: &Api, task: &CommentTask, pull: &Pull, why: &str) -> Result<(), ServiceError> {
    keep(api, task, pull, &changes::not_reviewed(&pull.head.sha, why), Keep::OfOtherCommits).await
}

/// Updates this author's earlier comment, or adds one.
async fn keep(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    body: &str,
    which: Keep,
) -> Result<(), ServiceError> {
    let marker = marker(&task.patterns);
    let body = format!("{marker}\n{body}");
    let body = terminal::visible(&body);
    let mut times = TRY_AGAIN_AFTER.into_iter();
    loop {
        let is_own = |comment: &Comment| {
            let is_author = comment.user.as_ref().is_some_and(|user| is_named(task, user));
            is_author && comment.body.as_ref().is_some_and(|body| body.starts_with(&marker))
        };
        let comments = api.comments(pull.number).await?;
        let mut own = comments.iter().filter(|comment| is_own(comment)).peekable();
        if own.peek().is_none() && which == Keep::One {
            match api.add_comment(pull.number, &body).await {
                Ok(comment) => return ensure_author(task, &comment),
                // GitHub may have added it despite the failure.
                Err(failure) => failure.wait(&mut times).await?,
            }
            continue;
        }
        let about = about(pull);
        // There is more than one if two jobs began at once.
        for comment in own {
            let said = comment.body.as_deref().unwrap_or_default();
            let is_spared = which == Keep::OfOtherCommits && said.lines().nth(3) == Some(&about);
            if said != body && !is_spared {
                api.edit_comment(comment.id, &body).await?;
            }
        }
        return Ok(());
    }
}

/// # Errors
/// If GitHub attributes the new comment to another user: later runs would not find it.
fn ensure_author(task: &CommentTask, comment: &Comment) -> Result<(), ServiceError> {
    match comment.user.as_ref().is_some_and(|user| is_named(task, user)) {
        true => Ok(()),
        false => Err(failed(format!(
            "the token comments as `{}` and not as `{}`: name that with --author, or each run adds a comment",
            comment.user.as_ref().map_or_else(String::new, |user| one_line(&user.login)),
            task.author
        ))),
    }
}

/// Whether a user is the author; GitHub's names have no case.
fn is_named(task: &CommentTask, user: &User) -> bool {
    user.login.eq_ignore_ascii_case(&task.author)
}
