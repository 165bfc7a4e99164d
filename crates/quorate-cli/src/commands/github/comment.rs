//! `quorate github comment`: one comment on a pull request, with the verdicts of its texts. All that is said is decided here, from
//! the texts as GitHub has them: artifacts of the pull request's own workflow, which it can change, are not read.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy::sha256_hex;

use super::api::{Api, Comment, Pull, TRIES, TRY_AGAIN_AFTER, failed};
use super::changes::{self, Change, Interrupted, MAX_TEXTS, Patterns, Reviewed};
use super::error_format;
use super::event::{self, WorkflowRun};
use crate::commands::review::{Outcome, ReviewSettings};
use crate::exit::{Exit, exit_with_error};
use crate::render::inline;
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
    match comment(task, settings, environment, terminal).await {
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
        ReviewResult::Interrupted => Ok(Exit::INTERRUPTED),
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

/// Comments on the reviews, and prints them.
async fn say(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    reviewed: &[Reviewed],
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, ServiceError> {
    let marker = marker(&task.patterns);
    let about = about(pull);
    let digest =
        changes::digest(reviewed, &about, MAX_COMMENT_CHARS - marker.len() - 1, &environment.redactor);
    let missing = if reviewed.is_empty() { Missing::Leave } else { Missing::Add };
    let kept = keep(api, task, pull, &format!("{marker}\n{digest}"), missing).await?;
    for review in reviewed {
        match &review.outcome {
            Outcome::Judged(report) => {
                terminal.data(&format!("{} {}\n", report.verdict_word(), one_line(&review.path)))
            }
            Outcome::Failed(error) => drop(exit_with_error(error, error_format(), terminal)),
            Outcome::Skipped { .. } | Outcome::Interrupted => {}
        }
    }
    if let Some(comment) = kept
        && comment.user.as_ref().is_none_or(|user| user.login != task.author)
    {
        let login = comment.user.map_or_else(String::new, |user| one_line(&user.login));
        return Err(failed(format!(
            "the token comments as `{login}` and not as `{}`: name that with --author, or each run adds a comment",
            task.author
        )));
    }
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
    let texts = changed_texts(api, patterns, pull).await?;
    if is_outdated(api, pull).await? {
        return Ok(ReviewResult::Outdated);
    }
    match admit(task, settings, api, pull, &texts, environment)? {
        Admission::Free => {}
        Admission::Once => api.remove_label(pull.number, &task.label).await?,
        Admission::Unlabelled => return Ok(ReviewResult::Unlabelled),
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

/// The texts that a pull request adds or changes, as GitHub has them.
async fn changed_texts(api: &Api, patterns: &Patterns, pull: &Pull) -> Result<Vec<Change>, ServiceError> {
    let mut files = api.files(pull.number).await?;
    files.retain(|file| file.status != "removed" && patterns.choose(&file.filename));
    if files.len() > MAX_TEXTS {
        return Err(changes::too_many_texts());
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let tree = api.tree(&pull.head.sha).await?.tree;
    let mut texts = Vec::with_capacity(files.len());
    for file in files {
        let mode = tree.iter().find(|entry| entry.path == file.filename).map(|entry| &*entry.mode);
        let bytes = match (file.sha, mode) {
            (Some(sha), Some("100644" | "100755")) => Some(api.blob(&sha).await?),
            // A link, another repository, or what GitHub does not list, since the tree is large or lies behind a link.
            _ => None,
        };
        texts.push(Change { bytes, path: file.filename });
    }
    Ok(texts)
}

async fn is_outdated(api: &Api, pull: &Pull) -> Result<bool, ServiceError> {
    Ok(api.pull(pull.number).await?.head.sha != pull.head.sha)
}

/// Whether a pull request may be reviewed.
enum Admission {
    Free,
    /// A maintainer has allowed one review.
    Once,
    Unlabelled,
}

/// Whether a pull request with these texts may be reviewed; each may have a council of its own.
///
/// # Errors
/// If a model would be asked without a cap: those who open pull requests do not pay for it.
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
    for text in texts {
        // Whom a council asks does not depend on what the text says.
        let named = Change { path: text.path.clone(), bytes: Some(Vec::new()) };
        let artifact = changes::artifact(named, environment)?;
        if review::asks_a_model(environment, &settings.places, &artifact, options)? {
            asking.push(artifact);
        }
    }
    if asking.is_empty() {
        return Ok(Admission::Free);
    }
    if options.caps == Caps::default() {
        let body = Body::new("a review of a pull request that asks a model needs a cap")
            .help("add --max-money, --max-tokens or --max-calls, which are for all its texts together");
        return Err(ServiceError::configuration(codes::GITHUB_UNUSABLE, body));
    }
    let is_fork = pull.head.repo.as_ref().is_none_or(|repo| repo.full_name != api.repository);
    let is_labelled = pull.labels.iter().any(|label| label.name.eq_ignore_ascii_case(&task.label));
    if is_fork && !is_labelled {
        return Ok(Admission::Unlabelled);
    }
    // A label is not spent on a review that cannot begin.
    for artifact in &asking {
        review::check(environment, &settings.places, artifact, options)?;
    }
    Ok(if is_fork { Admission::Once } else { Admission::Free })
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
    let heading = "### Quorate: not reviewed";
    let body =
        format!("{}\n{heading}\n\nCommit {}: {}.\n", marker(&task.patterns), pull.head.sha, inline(why));
    keep(api, task, pull, &body, Missing::Leave).await.map(drop)
}

/// Has one comment say this. What fails is tried again, since a review may have cost something.
async fn keep(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    body: &str,
    missing: Missing,
) -> Result<Option<Comment>, ServiceError> {
    let body = workflow::visible(body);
    let mut tries = 1;
    loop {
        match keep_once(api, task, pull, &body, missing).await {
            Err(_) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            done => return done,
        }
    }
}

/// Edits the comment that this author made earlier, or adds one.
async fn keep_once(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    body: &str,
    missing: Missing,
) -> Result<Option<Comment>, ServiceError> {
    let marker = marker(&task.patterns);
    let own = api.comments(pull.number).await?.into_iter().find(|comment| {
        let is_author = comment.user.as_ref().is_some_and(|user| user.login == task.author);
        is_author && comment.body.as_ref().is_some_and(|body| body.starts_with(&marker))
    });
    match own {
        Some(comment) if comment.body.as_deref() == Some(body) => Ok(Some(comment)),
        Some(comment) => api.edit_comment(comment.id, body).await.map(Some),
        None if missing == Missing::Leave => Ok(None),
        None => api.add_comment(pull.number, body).await.map(Some),
    }
}
