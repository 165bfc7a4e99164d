//! `quorate github comment`: one comment on a pull request, with the verdicts of its texts. All that is said is decided here, from
//! the texts as GitHub has them: artifacts of the pull request's own workflow, which it can change, are not read.

use std::collections::BTreeMap;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy::sha256_hex;

use super::api::{Api, Comment, Pull, TRY_AGAIN_AFTER, failed};
use super::changes::{self, Change, Interrupted, MAX_TEXTS, Reviewed};
use super::error_format;
use super::event::{self, WorkflowRun};
use super::patterns::Patterns;
use crate::commands::review::{Outcome, ReviewSettings};
use crate::exit::{Exit, exit_with_error};
use crate::render::paint::one_line;
use crate::terminal::Terminal;
use crate::workflow;
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
    let run = event::workflow_run()?;
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
            not_now(&why)
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
    let missing = if reviewed.is_empty() { Missing::Leave } else { Missing::Add };
    keep(api, task, pull, &digest, missing).await?;
    // Not every text could be reviewed.
    let unreviewed = reviewed.iter().find(|review| review.report().is_none());
    Ok(unreviewed.map_or(Exit::DONE, Reviewed::exit))
}

/// What became of the texts of a pull request.
enum ReviewResult {
    Reviewed(Vec<Reviewed>),
    /// No maintainer has allowed that a model is asked.
    Unlabelled,
    /// The pull request has another commit by now.
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
    let texts = changed_texts(api, patterns, pull, environment, terminal).await?;
    if is_outdated(api, pull).await? {
        return Ok(ReviewResult::Outdated);
    }
    let admission = admit(task, settings, api, pull, &texts, environment)?;
    // An earlier verdict no longer holds, and stays withdrawn if this process is killed. What could not be commented on is not paid for.
    let missing = match admission {
        Admission::Unlabelled => return Ok(ReviewResult::Unlabelled),
        Admission::Free => Missing::Leave,
        Admission::Paid | Admission::PaidByLabel => Missing::Add,
    };
    if !texts.is_empty() {
        let body = format!("### Quorate: under review\n\nCommit {} is being reviewed.\n", pull.head.sha);
        keep(api, task, pull, &body, missing).await?;
    }
    if admission == Admission::PaidByLabel {
        api.remove_label(pull.number, &task.label).await?;
    }
    let reviewed =
        changes::review_all(texts, settings.clone(), environment, terminal, async |_, _| Ok(())).await;
    let Ok(reviewed) = reviewed.map_err(|Interrupted| ()) else { return Ok(ReviewResult::Interrupted) };
    Ok(match is_outdated(api, pull).await? {
        true => ReviewResult::Outdated,
        false => ReviewResult::Reviewed(reviewed),
    })
}

/// The open pull requests whose newest commit the workflow has run for. If there are several, which of them is meant is not known.
async fn pulls_of(api: &Api, run: &WorkflowRun) -> Result<Vec<Pull>, ServiceError> {
    let (Some(repository), Some(branch)) = (&run.head_repository, &run.head_branch) else {
        return Ok(Vec::new());
    };
    let owner = repository.full_name.split('/').next().unwrap_or_default();
    let mut pulls = api.pulls_from(&format!("{owner}:{branch}")).await?;
    pulls.retain(|pull| {
        let is_same = |head: &event::Repository| head.full_name == repository.full_name;
        pull.head.sha == run.head_sha && pull.head.repo.as_ref().is_some_and(is_same)
    });
    Ok(pulls)
}

/// The texts that a pull request adds or changes, as GitHub has them. Warns of patterns that match nothing.
async fn changed_texts(
    api: &Api,
    patterns: &Patterns,
    pull: &Pull,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Vec<Change>, ServiceError> {
    let files = api.files(pull.number).await?;
    let mut unmatched = patterns.unmatched(files.iter().map(|file| &*file.filename));
    let (chosen, others): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|file| file.status != "removed")
        .filter(|file| patterns.choose(&file.filename) || patterns.choose_below(&file.filename))
        .partition(|file| patterns.choose(&file.filename));
    if chosen.len() > MAX_TEXTS {
        return Err(changes::too_many_texts());
    }
    if chosen.is_empty() && others.is_empty() && unmatched.is_empty() {
        return Ok(Vec::new());
    }
    let tree = api.tree(&pull.head.sha).await?;
    let modes: BTreeMap<&str, &str> = tree.tree.iter().map(|entry| (&*entry.path, &*entry.mode)).collect();
    // A link, another repository, or what GitHub does not list, since the tree is large or lies behind a link.
    let is_file = |path: &str| matches!(modes.get(path), Some(&"100644" | &"100755"));
    let mut texts = Vec::with_capacity(chosen.len());
    for file in chosen {
        let bytes = match &file.sha {
            Some(sha) if is_file(&file.filename) => Some(api.blob(sha).await?),
            _ => None,
        };
        texts.push(Change::new(&file.filename, bytes, environment));
    }
    let in_place_of_folders = others.into_iter().filter(|file| !is_file(&file.filename));
    texts.extend(in_place_of_folders.map(|file| Change::new(&file.filename, None, environment)));
    if !tree.truncated {
        let among_all = patterns.unmatched(modes.keys().copied());
        unmatched.retain(|pattern| among_all.contains(pattern));
        changes::warn_of_unmatched(&unmatched, terminal);
    }
    Ok(texts)
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

/// Whether a pull request with these texts may be reviewed; each may have a council of its own.
///
/// # Errors
/// If a model would be asked without a cap: those who open pull requests do not pay for it. If a review cannot begin: a label is not spent
/// on it.
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
    // What cannot be read asks for nothing.
    for artifact in texts.iter().filter_map(|text| text.artifact.as_ref().ok()) {
        if review::asks_a_model(environment, &settings.places, artifact, options)? {
            asking.push(artifact);
        }
    }
    if asking.is_empty() {
        return Ok(Admission::Free);
    }
    if options.caps == Caps::default() || options.caps.calls == Some(0) {
        let body = Body::new("a review of a pull request that asks a model needs a cap that is more than 0")
            .help("add --max-money, --max-tokens or --max-calls, which are for all its texts together");
        return Err(ServiceError::configuration(codes::GITHUB_UNUSABLE, body));
    }
    let is_fork = pull.head.repo.as_ref().is_none_or(|repo| repo.full_name != api.repository);
    let is_labelled = pull.labels.iter().any(|label| label.name.eq_ignore_ascii_case(&task.label));
    if is_fork && !is_labelled {
        return Ok(Admission::Unlabelled);
    }
    for artifact in asking {
        review::check(environment, &settings.places, artifact, &settings.request)?;
    }
    Ok(if is_fork { Admission::PaidByLabel } else { Admission::Paid })
}

/// What the comment of these patterns begins with.
fn marker(patterns: &[String]) -> String {
    format!("<!-- quorate:reviews:{} -->", &sha256_hex(patterns.join("\n").as_bytes())[..16])
}

/// The line below the heading of a comment.
fn about(pull: &Pull) -> String {
    format!("Commit {}, judged by the configuration of the default branch.", one_line(&pull.head.sha))
}

/// What is done where there is no comment yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Add,
    Leave,
}

/// Takes back what an earlier comment says: its verdicts are of another commit.
async fn withdraw(api: &Api, task: &CommentTask, pull: &Pull, why: &str) -> Result<(), ServiceError> {
    keep(api, task, pull, &changes::not_reviewed(&pull.head.sha, why), Missing::Leave).await
}

/// Has the comment that this author made earlier say this, or adds one.
async fn keep(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    body: &str,
    missing: Missing,
) -> Result<(), ServiceError> {
    let marker = marker(&task.patterns);
    let body = format!("{marker}\n{body}");
    let body = workflow::visible(&body);
    let mut times = TRY_AGAIN_AFTER.into_iter();
    loop {
        let is_own = |comment: &Comment| {
            let is_author = comment.user.as_ref().is_some_and(|user| user.login == task.author);
            is_author && comment.body.as_ref().is_some_and(|body| body.starts_with(&marker))
        };
        let comments = api.comments(pull.number).await?;
        let mut own = comments.iter().filter(|comment| is_own(comment)).peekable();
        if own.peek().is_none() && missing == Missing::Add {
            match api.add_comment(pull.number, &body).await {
                Ok(comment) => return ensure_author(task, &comment),
                // It may have been added all the same.
                Err(failure) => failure.wait(&mut times).await?,
            }
            continue;
        }
        // There is more than one if two jobs began at once.
        for comment in own.filter(|comment| comment.body.as_deref() != Some(&*body)) {
            api.edit_comment(comment.id, &body).await?;
        }
        return Ok(());
    }
}

/// # Errors
/// If a comment that was added is another user's: it would not be found again.
fn ensure_author(task: &CommentTask, comment: &Comment) -> Result<(), ServiceError> {
    let login = comment.user.as_ref().map_or_else(String::new, |user| one_line(&user.login));
    match login == task.author {
        true => Ok(()),
        false => Err(failed(format!(
            "the token comments as `{login}` and not as `{}`: name that with --author, or each run adds a comment",
            task.author
        ))),
    }
}
