//! Several texts: each is reviewed as if it were the only one, and the worst exit code is the command's.

use quorate_diagnostics::render::json::diagnostics;
use serde_json::{Value, json};

use super::{Outcome, ReviewSettings, print, review};
use crate::exit::{Exit, exit_with_error};
use crate::render::{self, Format};
use crate::terminal::Terminal;
use quorate::service::artifact::Artifact;
use quorate::service::environment::Environment;
use quorate::service::report::Report;
use quorate::service::review as reviews;
use quorate::service::schemas::REVIEWS;

/// Reviews one text after the other. A text that cannot be reviewed ends the batch; the reports before it are printed.
pub(super) async fn run(
    artifacts: Vec<Artifact>,
    settings: &ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
) -> Exit {
    let names: Vec<String> = artifacts.iter().map(|artifact| artifact.display_name.clone()).collect();
    for artifact in &artifacts {
        // If a later text cannot be reviewed, not even the first one is.
        if let Err(error) = reviews::check(environment, &settings.places, artifact, &settings.request) {
            return exit_with_error(&error, settings.format, terminal);
        }
    }
    let mut done = Vec::with_capacity(artifacts.len());
    for artifact in artifacts {
        let reviewed = review(artifact, settings, environment, terminal);
        let (outcome, session) = Box::pin(reviewed).await;
        if let Outcome::Judged(report) = &outcome
            && !matches!(settings.format, Format::Json | Format::Sarif | Format::Gitlab)
        {
            if !done.is_empty() {
                terminal.data("\n");
            }
            print(report, settings.format, settings.extent, terminal);
        }
        if let Some(session) = session {
            session.close().await;
        }
        let continues = matches!(outcome, Outcome::Judged(_) | Outcome::Skipped { .. });
        done.push(outcome);
        if !continues {
            break;
        }
    }
    let exit = worst(done.iter().map(exit_of));
    match settings.format {
        Format::Json => {
            terminal.data(&format!("{:#}\n", json(names.iter().map(String::as_str).zip(&done), exit)));
        }
        Format::Sarif => terminal.data(&render::sarif_of(&reports(&done))),
        Format::Gitlab => {
            terminal.data(&render::gitlab_of(&reports(&done)));
            if let Some(Outcome::Failed(error)) = done.last() {
                terminal.status(&render::diagnostics(&error.report, Format::Human, terminal.stderr));
            }
        }
        Format::Human | Format::Markdown | Format::Github => {
            if let Some(Outcome::Failed(error)) = done.last() {
                exit_with_error(error, settings.format, terminal);
            }
            terminal.hint(&summary(&names, &done));
        }
    }
    exit
}

/// The exit code of a command with several reviews.
pub(in crate::commands) fn worst(exits: impl Iterator<Item = Exit>) -> Exit {
    exits.max_by_key(|exit| rank(*exit)).unwrap_or(Exit::DONE)
}

/// The severity of an exit code among those of several reviews.
pub(in crate::commands) fn rank(exit: Exit) -> u8 {
    match exit.code() {
        0 => 0,
        6 => 1,
        1 => 2,
        2 => 3,
        3 => 4,
        _ => 5,
    }
}

pub(in crate::commands) fn exit_of(ended: &Outcome) -> Exit {
    match ended {
        Outcome::Judged(report) => Exit::verdict(report.exit_code()),
        Outcome::Skipped { .. } => Exit::SKIPPED,
        Outcome::Failed(error) => Exit::verdict(error.class.code()),
        Outcome::Interrupted => Exit::INTERRUPTED,
    }
}

fn reports(done: &[Outcome]) -> Vec<&Report> {
    done.iter()
        .filter_map(|ended| match ended {
            Outcome::Judged(report) => Some(&**report),
            Outcome::Skipped { .. } | Outcome::Failed(_) | Outcome::Interrupted => None,
        })
        .collect()
}

/// Each review as one object, in the given order; one without a verdict has the reason.
pub(in crate::commands) fn json<'r>(
    reviews: impl Iterator<Item = (&'r str, &'r Outcome)>,
    exit: Exit,
) -> Value {
    let review_json = |(name, outcome): (&str, &Outcome)| match outcome {
        Outcome::Judged(report) => report.json(),
        Outcome::Skipped { tier, artifact_type, reason } => {
            let skipped = json!({"tier": tier, "artifact_type": artifact_type, "tier_reason": reason});
            json!({"artifact": name, "exit": exit_of(outcome).code(), "skipped": skipped})
        }
        Outcome::Failed(error) => {
            json!({"artifact": name, "exit": exit_of(outcome).code(), "diagnostics": diagnostics(&error.report)})
        }
        Outcome::Interrupted => json!({"artifact": name, "exit": exit_of(outcome).code(), "diagnostics": []}),
    };
    let reviews: Vec<Value> = reviews.map(review_json).collect();
    json!({"schema": REVIEWS, "exit": exit.code(), "reviews": reviews})
}

/// One line for each text, in the given order.
fn summary(names: &[String], done: &[Outcome]) -> String {
    let word = |ended: &Outcome| match ended {
        Outcome::Judged(report) => report.verdict.map_or("OPEN", quorate_protocol::policy::Verdict::as_str),
        Outcome::Skipped { .. } => "skipped by its tier",
        Outcome::Failed(_) => "not reviewed",
        Outcome::Interrupted => "interrupted",
    };
    let mut text = String::from("\n");
    for (at, name) in names.iter().enumerate() {
        let word = done.get(at).map_or("not reached", word);
        text.push_str(&format!("{word:<10}  {name}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Exit, rank};

    #[test]
    fn the_worst_verdict_wins_and_what_is_no_verdict_is_worse() {
        let mut codes = [70, 6, 3, 0, 2, 1, 130, 5, 4].map(Exit::verdict);
        codes.sort_by_key(|exit| (rank(*exit), exit.code()));
        assert_eq!(codes.map(Exit::code), [0, 6, 1, 2, 3, 4, 5, 70, 130]);
    }
}
