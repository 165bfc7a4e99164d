//! `quorate github comment`: one comment on a pull request, with the verdicts of its texts. All that is said is decided here, from
//! the texts as GitHub has them: artifacts of the pull request's own workflow, which it can change, are not read.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::entropy::sha256_hex;

use super::api::{Api, Comment, Pull, failed};
use super::changes::{self, Change, Interrupted, MAX_TEXTS, Patterns, Reviewed};
use super::error_format;
use super::event::{self, WorkflowRun};
use crate::commands::review::ReviewSettings;
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
    let not_now = |why: String| {
        terminal.status(&format!("no comment: {why}"));
        Ok(Exit::DONE)
    };
    let patterns = Patterns::new(&task.patterns)?;
    let run = event::workflow_run()?;
    let api = Api::from_environment()?;
    if run.event != "pull_request" {
        return not_now(format!("the workflow was started by {}", one_line(&run.event)));
    }
    let Some(pull) = pull_of(&api, &run).await? else {
        return not_now(format!("no open pull request has the commit {}", one_line(&run.head_sha)));
    };
    let texts = changed_texts(&api, &patterns, pull.number).await?;
    if is_outdated(&api, &pull).await? {
        return not_now(OUTDATED.to_owned());
    }
    match admit(task, settings, &api, &pull, &texts, environment)? {
        Admission::Free => {}
        Admission::Once => api.remove_label(pull.number, &task.label).await?,
        Admission::Unlabelled => {
            return not_now(format!(
                "a model is asked about a pull request from a fork only once it has the label `{}`",
                task.label
            ));
        }
    }
    let reviewed = changes::review_all(texts, settings, environment, terminal, async |_, _| Ok(())).await;
    let Ok(reviewed) = reviewed.map_err(|Interrupted| ()) else { return Ok(Exit::INTERRUPTED) };
    if is_outdated(&api, &pull).await? {
        return not_now(OUTDATED.to_owned());
    }
    let marker = marker(&task.patterns);
    let body = body(&marker, &reviewed, &pull, environment);
    let kept = keep(&api, task, &pull, &marker, &body, reviewed.is_empty()).await?;
    if let Some(comment) = kept
        && comment.user.as_ref().is_none_or(|user| user.login != task.author)
    {
        let login = comment.user.map_or_else(String::new, |user| one_line(&user.login));
        return Err(failed(format!(
            "the token comments as `{login}` and not as `{}`: name that with --author, or each run adds a comment",
            task.author
        )));
    }
    // The comment says that a text could not be reviewed; the job says so as well.
    let failed = reviewed.iter().filter(|review| review.report().is_none());
    Ok(failed.map(Reviewed::exit).next().unwrap_or(Exit::DONE))
}

const OUTDATED: &str = "the pull request has a newer commit, whose own run comments";

/// The open pull request whose newest commit the workflow has run for.
///
/// # Errors
/// If there are several: which of them is meant is not known.
async fn pull_of(api: &Api, run: &WorkflowRun) -> Result<Option<Pull>, ServiceError> {
    let (Some(repository), Some(branch)) = (&run.head_repository, &run.head_branch) else { return Ok(None) };
    let owner = repository.full_name.split('/').next().unwrap_or_default();
    let mut pulls = api.pulls_from(&format!("{owner}:{branch}")).await?;
    pulls.retain(|pull| {
        let is_same = |head: &event::Repository| head.full_name == repository.full_name;
        pull.head.sha == run.head_sha && pull.head.repo.as_ref().is_some_and(is_same)
    });
    match pulls.len() {
        0 | 1 => Ok(pulls.pop()),
        more => Err(failed(format!("{more} open pull requests have the commit {}", one_line(&run.head_sha)))),
    }
}

/// The texts that a pull request adds or changes, as GitHub has them.
async fn changed_texts(api: &Api, patterns: &Patterns, number: u64) -> Result<Vec<Change>, ServiceError> {
    let mut files = api.files(number).await?;
    files.retain(|file| file.status != "removed" && patterns.choose(&file.filename));
    if files.len() > MAX_TEXTS {
        return Err(changes::too_many_texts());
    }
    let mut texts = Vec::with_capacity(files.len());
    for file in files {
        let Some(sha) = file.sha else {
            return Err(failed(format!("GitHub gives no content of {}", one_line(&file.filename))));
        };
        texts.push(Change { bytes: api.blob(&sha).await?, path: file.filename });
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
    let mut asks_a_model = false;
    for text in texts {
        // What it costs does not depend on what it says.
        let named = Change { path: text.path.clone(), bytes: Vec::new() };
        let artifact = changes::artifact(named, environment)?;
        let options = &settings.request.options;
        let spending = review::spending(environment, &settings.places, &artifact, options)?;
        asks_a_model |= spending.asks_a_model;
        if spending.asks_a_model && !spending.is_capped {
            let body = Body::new("a review of a pull request that asks a model needs a cap")
                .help("add --max-money, --max-tokens or --max-calls, or [budget] to quorate.toml");
            return Err(ServiceError::configuration(codes::GITHUB_UNUSABLE, body));
        }
    }
    if !asks_a_model {
        return Ok(Admission::Free);
    }
    let is_fork = pull.head.repo.as_ref().is_none_or(|repo| repo.full_name != api.repository);
    let is_labelled = pull.labels.iter().any(|label| label.name == task.label);
    Ok(match (is_fork, is_labelled) {
        (false, _) => Admission::Free,
        (true, true) => Admission::Once,
        (true, false) => Admission::Unlabelled,
    })
}

/// What the comment of these patterns begins with.
fn marker(patterns: &[String]) -> String {
    format!("<!-- quorate:reviews:{} -->", &sha256_hex(patterns.join("\n").as_bytes())[..16])
}

fn body(marker: &str, reviewed: &[Reviewed], pull: &Pull, environment: &Environment) -> String {
    let foot = format!(
        "\n<sub>Commit {}, judged by the configuration of the default branch.</sub>\n",
        one_line(&pull.head.sha)
    );
    let frame = marker.len() + 1 + foot.chars().count();
    let digest = changes::digest(reviewed, MAX_COMMENT_CHARS - frame, &environment.redactor);
    workflow::visible(&format!("{marker}\n{digest}{foot}")).into_owned()
}

/// Edits the comment that this author made earlier, or adds one; where nothing is to be said and was said, adds none.
async fn keep(
    api: &Api,
    task: &CommentTask,
    pull: &Pull,
    marker: &str,
    body: &str,
    is_empty: bool,
) -> Result<Option<Comment>, ServiceError> {
    let own = api.comments(pull.number).await?.into_iter().find(|comment| {
        let is_author = comment.user.as_ref().is_some_and(|user| user.login == task.author);
        is_author && comment.body.starts_with(marker)
    });
    match own {
        Some(comment) if comment.body == body => Ok(Some(comment)),
        Some(comment) => api.edit_comment(comment.id, body).await.map(Some),
        None if is_empty => Ok(None),
        None => api.add_comment(pull.number, body).await.map(Some),
    }
}
