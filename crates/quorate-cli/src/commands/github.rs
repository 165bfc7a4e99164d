//! `quorate github`: prints the reviews of a pull request's changes as annotations, in workflows of GitHub Actions.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use quorate::github::{ChangedTexts, GithubOutcome, GithubRequest, GithubTarget};
use quorate::{Quorate, ReviewRequest};
use quorate_diagnostics::{Report, Warning, codes};

use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::commands::report;
use crate::exit::{Ended, Exit, exit_with_error, warn};
use crate::progress::Progress;
use crate::render::layout::one_line;
use crate::render::{self, Extent, Format};
use crate::terminal::{self, Terminal};

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

pub(super) async fn run(arguments: Arguments, quorate: &Quorate, terminal: &Terminal) -> Ended {
    let (patterns, review, fail, target) = match arguments.action {
        Action::Review { patterns, base, reports, fail, review } => {
            #[cfg(not(feature = "serve"))]
            if reports.is_some() {
                return Err(crate::exit::feature_missing("serve"));
            }
            let reports = reports.zip(report::FORMAT);
            (patterns, review, fail, GithubTarget::Step { base, reports })
        }
        Action::Comment { patterns, label, author, review } => {
            (patterns, review, FailOnArguments::default(), GithubTarget::Comment { label, author })
        }
    };
    let is_step = matches!(target, GithubTarget::Step { .. });
    // Like files named on the command line, texts are reviewed regardless of tier.
    let review = ReviewRequest {
        policy: review.policy,
        options: review.answers.options(),
        fail_on: fail.fail_on,
        ..ReviewRequest::default()
    };
    let request = GithubRequest { patterns, review, target };
    let progress = Progress::new(terminal.progress);
    let reviewed = Box::pin(progress.follow(quorate.github(request))).await?;
    print_warnings(reviewed.warnings, terminal);
    Ok(match reviewed.value {
        GithubOutcome::Reviewed(texts) => print(&texts, is_step, terminal),
        GithubOutcome::NotReviewed(why) => {
            terminal.status(&why);
            Exit::DONE
        }
        GithubOutcome::Interrupted => {
            terminal.status("interrupted");
            Exit::INTERRUPTED
        }
    })
}

/// Prints warnings; those about patterns, which the workflow contains, as annotations.
fn print_warnings(mut warnings: Report, terminal: &Terminal) {
    let mut unmatched = Report::new();
    let is_unmatched = |warning: &mut Warning| warning.code == codes::PATTERN_UNMATCHED;
    unmatched.warnings.extend(warnings.warnings.extract_if(.., is_unmatched));
    match terminal.format {
        format @ Format::Github => {
            terminal.data_as(format, &render::diagnostics(&unmatched, format, terminal.stdout));
        }
        _ => warn(&unmatched, terminal),
    }
    warn(&warnings, terminal);
}

/// Prints errors, and then the annotations of all verdicts and those of findings; without a runner, the reviews as text. The
/// verdicts of a comment are one line each.
fn print(texts: &ChangedTexts, is_step: bool, terminal: &Terminal) -> Exit {
    for error in texts.texts.iter().filter_map(|text| text.failure()) {
        exit_with_error(error, terminal.format, terminal);
    }
    let reviews = texts.reviews();
    match terminal.format {
        _ if !is_step => {
            let line = |text: &quorate::github::ChangedText| {
                let review = text.result.as_ref().ok()?;
                Some(format!("{} {}\n", review.verdict_word(), one_line(&text.path)))
            };
            terminal.data(&texts.texts.iter().filter_map(line).collect::<String>());
        }
        Format::Github => terminal.annotations(&render::github(&reviews)),
        _ => {
            let shown = reviews.iter().map(|review| render::report(review, Extent::Screen, terminal));
            terminal.data(&shown.collect::<Vec<_>>().join("\n"));
        }
    }
    if texts.texts.is_empty() {
        terminal.hint("no text that the patterns choose is changed");
    }
    match &texts.unsaved {
        Some(error) => exit_with_error(error, terminal.format, terminal),
        None => Exit(texts.exit_code),
    }
}

/// A label's name. An empty name or a dot segment would change the address of the API request.
fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" | "." | ".." => Err("not a label's name".to_owned()),
        name => Ok(name.to_owned()),
    }
}

/// How results and errors are printed: as annotations, where a runner reads them.
pub(super) fn format() -> Format {
    if terminal::is_read_by_runner() { Format::Github } else { Format::Human }
}
