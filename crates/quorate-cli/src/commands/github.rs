//! `quorate github`: reviews the changes of a pull request, in workflows of GitHub Actions. The texts come from the pull
//! request, their configuration always from its base.

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

/// Review the changes of a pull request, in workflows of GitHub Actions
///
/// The texts come from the pull request; quorate.toml, council.yaml and prompts come from its target branch.
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
    /// GITHUB_STEP_SUMMARY names. The worst verdict sets the exit code, as with `quorate review`. Caps given as options apply
    /// to all texts together, caps in quorate.toml to each text.
    Review {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The commit that provides the configuration and that changes are compared with; by default the base of a pull request's merge
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
    /// For a workflow that `workflow_run` starts, in a checkout of the base. The command fetches the texts from GitHub and
    /// reviews them here; it uses no artifact of the pull request's own workflow. Caps given as options apply to all texts
    /// together. Needs GITHUB_TOKEN.
    ///
    /// Exits with 0 for every verdict, with 5 if a text could not be reviewed or the comment could not be written, and with
    /// 130 if interrupted.
    Comment {
        /// Which changed texts: paths from the repository's root, as patterns such as 'drafts/**/*.md'
        #[arg(value_name = "PATTERN", required = true)]
        patterns: Vec<String>,
        /// The label with which a maintainer lets a model review a pull request from a fork, once
        #[arg(long, value_name = "NAME", default_value = "quorate", value_parser = label)]
        label: String,
        /// The user that owns the token's comments
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

/// A label's name. An empty name or a dot segment would change the address of the API request.
fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" | "." | ".." => Err("not a label's name".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// How errors are printed: as annotations, where a runner reads them.
fn error_format() -> Format {
    if workflow::is_read_by_runner() { Format::Github } else { Format::Human }
}
