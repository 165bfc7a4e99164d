//! `quorate github`: reviews of what a pull request changes, for workflows of GitHub Actions. A pull request brings texts; the
//! configuration that judges them is always the base's.

mod api;
mod changes;
mod comment;
mod commit_files;
mod event;
mod git;
mod patterns;
mod review;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::exit::Exit;
use crate::render::Format;
use crate::terminal::Terminal;
use crate::workflow;
use quorate::service::environment::Environment;

/// Review what a pull request changes, in workflows of GitHub Actions
///
/// The texts are the pull request's; quorate.toml, council.yaml and prompts are those of the branch that it goes to.
/// `quorate init wiring github` writes the workflows.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  quorate init wiring github\n  quorate github review 'drafts/**/*.md' --fail-on hold --reports reports"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print annotations for the texts that a checked out commit changes
    ///
    /// Verdicts come first, since GitHub shows few annotations of a step. The summary is added to the file that
    /// GITHUB_STEP_SUMMARY names. The exit code is that of the worst verdict, as of `quorate review`. Caps of options are for all texts
    /// together, those of quorate.toml for each.
    Review {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The commit whose configuration counts, and since which texts are changed; by default the base of a pull request's merge
        #[arg(long, value_name = "REV", value_parser = NonEmptyStringValueParser::new())]
        base: Option<String>,
        /// Write a report of each review into this directory, and reviews.json
        #[arg(long, value_name = "DIR")]
        reports: Option<PathBuf>,
        #[command(flatten)]
        fail: FailOnArguments,
        #[command(flatten)]
        review: ReviewArguments,
    },
    /// Keep one comment on a pull request with its verdicts up to date
    ///
    /// For a workflow that `workflow_run` starts, in a checkout of the base. The texts are asked of GitHub and reviewed here, so
    /// what the pull request's own workflow made is not used. Caps of options are for all texts together. Needs GITHUB_TOKEN.
    ///
    /// The exit code is 0 whatever the verdicts are, 5 if a text could not be reviewed or the comment not written, 130 if interrupted.
    Comment {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The label with which a maintainer lets a model review a pull request from a fork, once
        #[arg(long, value_name = "NAME", default_value = "quorate", value_parser = label)]
        label: String,
        /// The user that the token comments as
        #[arg(long, value_name = "LOGIN", default_value = "github-actions[bot]")]
        author: String,
        #[command(flatten)]
        review: ReviewArguments,
    },
}

pub(super) async fn run(arguments: Arguments, environment: &Environment, terminal: &Terminal) -> Exit {
    match arguments.action {
        Action::Review { patterns, base, reports, fail, review } => {
            let task = review::ReviewTask { patterns, base, reports };
            Box::pin(review::run(&task, changes::settings(fail, &review), environment, terminal)).await
        }
        Action::Comment { patterns, label, author, review } => {
            let task = comment::CommentTask { patterns, label, author };
            let settings = changes::settings(FailOnArguments::default(), &review);
            Box::pin(comment::run(&task, &settings, environment, terminal)).await
        }
    }
}

/// A label; what is none would name another address of GitHub's API.
fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" | "." | ".." => Err("it is no name of a label".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// How errors are printed: as annotations, where a runner reads them.
fn error_format() -> Format {
    if workflow::is_read_by_runner() { Format::Github } else { Format::Human }
}
