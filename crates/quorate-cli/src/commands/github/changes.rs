//! The texts that a pull request adds or changes, and their reviews.

use std::path::{Component, Path};

use globset::GlobMatcher;
use quorate_diagnostics::{Body, Place, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::record::Spent;

use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::commands::review::batch::{exit_of, rank};
use crate::commands::review::{Outcome, ReviewSettings, review};
use crate::exit::Exit;
use crate::render::{self, DigestEntry, Extent, Format};
use crate::terminal::Terminal;
use quorate::service::artifact::{self, Artifact};
use quorate::service::environment::Environment;
use quorate::service::error::{ExitClass, ServiceError};
use quorate::service::redaction::CurrentRedactor;
use quorate::service::report::{Report, verdict_exit_code};
use quorate::service::review::{Request, TierPolicy};
use quorate::service::session::LedgerSession;
use quorate::service::subjects;
use quorate::service::workspace::PathOverrides;

/// The most texts of a pull request that are reviewed.
pub(super) const MAX_TEXTS: usize = 200;

/// A text that a pull request adds or changes.
pub(super) struct Change {
    /// From the repository's root.
    pub(super) path: String,
    /// `None` where it is no file but a link, or another repository.
    pub(super) bytes: Option<Vec<u8>>,
}

/// A changed text, and what the council said of it.
pub(super) struct Reviewed {
    pub(super) path: String,
    pub(super) outcome: Outcome,
}

impl Reviewed {
    pub(super) fn exit(&self) -> Exit {
        exit_of(&self.outcome)
    }

    /// The verdict's, whatever exit code it has with --fail-on.
    fn severity(&self) -> u8 {
        match self.report().and_then(|report| report.verdict) {
            Some(verdict) => rank(Exit::verdict(verdict_exit_code(verdict))),
            None => u8::MAX,
        }
    }

    pub(super) fn report(&self) -> Option<&Report> {
        match &self.outcome {
            Outcome::Judged(report) => Some(report),
            Outcome::Skipped { .. } | Outcome::Failed(_) | Outcome::Interrupted => None,
        }
    }

    fn entry(&self, redactor: &CurrentRedactor) -> DigestEntry<'_> {
        let result = self.report().ok_or_else(|| match &self.outcome {
            Outcome::Failed(error) => redactor.redact_text(&error.first_message()),
            Outcome::Judged(_) | Outcome::Skipped { .. } | Outcome::Interrupted => String::new(),
        });
        DigestEntry { path: &self.path, result }
    }
}

/// Markdown of all reviews, up to so many characters. `about` is the line below the heading.
pub(super) fn digest(reviewed: &[Reviewed], about: &str, most: usize, redactor: &CurrentRedactor) -> String {
    let entries: Vec<DigestEntry<'_>> = reviewed.iter().map(|review| review.entry(redactor)).collect();
    render::digest(&entries, about, most)
}

/// The reviews were interrupted.
pub(super) struct Interrupted;

/// How the changes of a pull request are reviewed: as files that a person names, whatever their tier.
pub(super) fn settings(fail: FailOnArguments, review: &ReviewArguments) -> ReviewSettings {
    ReviewSettings {
        format: Format::Github,
        extent: Extent::Screen,
        fail,
        places: PathOverrides::default(),
        request: Request {
            artifact_type: None,
            tier: None,
            tier_policy: TierPolicy::Ignore,
            policy: review.policy(),
            options: review.answers.options(),
        },
    }
}

/// The error of a pull request that changes too much.
pub(super) fn too_many_texts() -> ServiceError {
    let body = Body::new(format!("more than {MAX_TEXTS} texts are changed"))
        .help("split the change, or choose fewer with narrower patterns");
    ServiceError::configuration(codes::ARTIFACT_TOO_LARGE, body)
}

/// The patterns that choose texts by their paths.
pub(super) struct Patterns(Vec<GlobMatcher>);

impl Patterns {
    /// # Errors
    /// When a pattern cannot be read, or matches no path of a repository: then it would choose nothing, and all would pass.
    pub(super) fn new(patterns: &[String]) -> Result<Patterns, ServiceError> {
        let matcher = |pattern: &String| match fits_no_path(pattern) {
            true => {
                let body = Body::new(format!("`{pattern}` matches no path of a repository"))
                    .help("write a path from the repository's root, such as 'drafts/**/*.md'");
                Err(ServiceError::new(ExitClass::Usage, codes::USAGE, body))
            }
            false => subjects::path_matcher(pattern),
        };
        patterns.iter().map(matcher).collect::<Result<_, _>>().map(Patterns)
    }

    /// Whether a path of a pull request is chosen. One that leads out of the repository never is.
    pub(super) fn choose(&self, path: &str) -> bool {
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        is_inside && self.0.iter().any(|pattern| pattern.is_match(path))
    }
}

fn fits_no_path(pattern: &str) -> bool {
    let has_blanks = pattern.trim() != pattern || pattern.contains(char::is_control);
    let has_odd_part = pattern.split('/').any(|part| matches!(part, "" | "." | ".."));
    has_blanks || has_odd_part || pattern.starts_with('!')
}

/// A change as an artifact at its place in the checkout of the base, where its configuration is looked for.
pub(super) fn artifact(change: Change, environment: &Environment) -> Result<Artifact, ServiceError> {
    let path = environment.directory.join(&change.path);
    let name = environment.redactor.redact_text(&change.path);
    match change.bytes {
        Some(bytes) => artifact::from_bytes(name, Some(path), Ok(bytes)),
        None => {
            let body = Body::new(format!("{name} is no file, but a link or another repository"))
                .help("a link is not followed: choose the file that it leads to");
            Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body))
        }
    }
}

/// Reviews changes one after the other in the environment of the base, and puts the worst first. The caps of `settings` are for all
/// of them together. `keep` gets each report before its session closes.
///
/// # Errors
/// If the process is told to stop.
pub(super) async fn review_all(
    changes: Vec<Change>,
    mut settings: ReviewSettings,
    environment: &Environment,
    terminal: &Terminal,
    keep: impl AsyncFn(&LedgerSession, &Report) -> Result<(), ServiceError>,
) -> Result<Vec<Reviewed>, Interrupted> {
    let mut all = Vec::with_capacity(changes.len());
    for change in changes {
        // What is composed of several parts is not redacted as a whole: a marker in one part and its end in another would take away
        // all that is between. Recorded answers are redacted already.
        let path = environment.redactor.redact_text(&change.path);
        let outcome = match artifact(change, environment) {
            Err(error) => Outcome::Failed(placed(error, &path)),
            Ok(artifact) => {
                let (mut outcome, session) =
                    Box::pin(review(artifact, &settings, environment, terminal)).await;
                if let Some(session) = session {
                    if let Outcome::Judged(report) = &outcome
                        && let Err(error) = keep(&session, report).await
                    {
                        outcome = Outcome::Failed(error);
                    }
                    session.close().await;
                }
                outcome
            }
        };
        if matches!(outcome, Outcome::Interrupted) {
            return Err(Interrupted);
        }
        let reviewed = Reviewed { path, outcome };
        if let Some(report) = reviewed.report() {
            let caps = &mut settings.request.options.caps;
            *caps = left(*caps, report);
        }
        all.push(reviewed);
    }
    all.sort_by_key(|reviewed| std::cmp::Reverse(reviewed.severity()));
    Ok(all)
}

/// An error about a whole file, whose annotation is at its first line.
fn placed(mut error: ServiceError, path: &str) -> ServiceError {
    for refusal in &mut error.report.refusals {
        let place = Place { file: path.into(), span: 0..0, path: String::new() };
        refusal.body.place.get_or_insert(place);
    }
    error
}

/// What a review has left of the caps. What it took and does not say counts as all.
fn left(caps: Caps, report: &Report) -> Caps {
    let usage = &report.usage;
    let known =
        |cap: Option<u64>, is_known: bool| if is_known || report.calls == 0 { cap } else { cap.map(|_| 0) };
    let caps = Caps {
        calls: caps.calls,
        tokens: known(
            caps.tokens,
            !report.model_asked || usage.tokens_in.is_some() && usage.tokens_out.is_some(),
        ),
        usd_nanos: known(caps.usd_nanos, !report.model_asked || usage.usd_nanos.is_some()),
    };
    caps.less(&Spent { calls: Some(u64::from(report.calls)), ..Spent::from(usage) })
}
