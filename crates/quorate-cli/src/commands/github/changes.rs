//! The texts that a pull request adds or changes, and their reviews.

use std::path::{Component, Path};

use quorate_diagnostics::{Body, Place, codes};
use quorate_kernel::budget::Caps;
use quorate_kernel::record::Spent;

use super::error_format;
use crate::arguments::{FailOnArguments, ReviewArguments};
use crate::commands::review::batch::{exit_of, rank};
use crate::commands::review::{Outcome, ReviewSettings, review};
use crate::exit::Exit;
use crate::render::{self, DigestEntry, Extent, Format, inline};
use crate::terminal::Terminal;
use quorate::service::artifact::{self, Artifact};
use quorate::service::environment::Environment;
use quorate::service::error::ServiceError;
use quorate::service::redaction::CurrentRedactor;
use quorate::service::report::{Report, verdict_exit_code};
use quorate::service::review::{Request, TierPolicy};
use quorate::service::session::LedgerSession;
use quorate::service::workspace::PathOverrides;

/// The most texts of a pull request that are reviewed.
pub(super) const MAX_TEXTS: usize = 200;

/// A text that a pull request adds or changes.
pub(super) struct Change {
    /// From the repository's root.
    path: String,
    /// Located at its path in the checkout of the base, which determines its configuration.
    pub(super) artifact: Result<Artifact, ServiceError>,
}

impl Change {
    /// A changed text; `bytes` is `None` for a link or another repository.
    pub(super) fn new(path: &str, bytes: Option<Vec<u8>>, environment: &Environment) -> Change {
        // Only the name is redacted, not the composed message: a marker that begins in one part and ends in another would
        // remove everything between them. Recorded answers are redacted already.
        let name = environment.redactor.redact_text(path);
        // Git checks out no path that leads out of the repository.
        let is_inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let artifact = match bytes.filter(|_| is_inside) {
            Some(bytes) => {
                artifact::from_bytes(name.clone(), Some(environment.directory.join(path)), Ok(bytes))
            }
            None => {
                let body = Body::new(format!("{name} is a link or another repository, not a file"))
                    .help("replace it with the texts themselves, or choose other texts");
                Err(ServiceError::configuration(codes::ARTIFACT_UNREADABLE, body))
            }
        };
        Change { artifact: artifact.map_err(|error| placed(error, &name)), path: name }
    }
}

/// A changed text with the result of its review.
pub(super) struct Reviewed {
    pub(super) path: String,
    pub(super) outcome: Outcome,
    /// Why its report could not be kept.
    pub(super) unkept: Option<ServiceError>,
}

impl Reviewed {
    pub(super) fn exit(&self) -> Exit {
        self.unkept.as_ref().map_or_else(|| exit_of(&self.outcome), |error| Exit::verdict(error.class.code()))
    }

    /// The exit code of the verdict, regardless of --fail-on.
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

/// All reviews as Markdown, cut to a maximum number of characters. `about` is the line below the heading.
pub(super) fn digest(reviewed: &[Reviewed], about: &str, most: usize, redactor: &CurrentRedactor) -> String {
    let entries: Vec<DigestEntry<'_>> = reviewed.iter().map(|review| review.entry(redactor)).collect();
    render::digest(&entries, about, most)
}

/// Markdown with the reason for missing reviews. `commit` can be empty.
pub(super) fn not_reviewed(commit: &str, why: &str) -> String {
    let commit = if commit.is_empty() { String::new() } else { format!("Commit {}: ", inline(commit)) };
    format!("### Quorate: not reviewed\n\n{commit}{}.\n", inline(why))
}

/// Warns of patterns that match no file of the repository.
pub(super) fn warn_of_unmatched(patterns: &[&str], terminal: &Terminal) {
    let mut report = quorate_diagnostics::Report::new();
    for pattern in patterns {
        let body = Body::new(format!("no file of the repository matches `{pattern}`"));
        let help = "give each pattern as its own argument, with paths from the repository's root";
        report.warn(codes::PATTERN_UNMATCHED, body.help(help));
    }
    match error_format() {
        Format::Github => {
            terminal.data_as(Format::Github, &render::diagnostics(&report, Format::Github, terminal.stdout))
        }
        format => terminal.status(&render::diagnostics(&report, format, terminal.stderr)),
    }
}

pub(super) fn hint_at_nothing(reviewed: &[Reviewed], terminal: &Terminal) {
    if reviewed.is_empty() {
        terminal.hint("no text that the patterns choose is changed");
    }
}

/// The reviews were interrupted.
pub(super) struct Interrupted;

/// The settings for changes of a pull request. Like files named on the command line, they are reviewed regardless of tier.
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
    ServiceError::configuration(codes::GITHUB_UNUSABLE, body)
}

/// Reviews changes one after the other in the environment of the base, and sorts the worst verdict first. The caps of
/// `settings` apply to all changes together. `keep` receives each report before its session closes.
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
    for Change { path, artifact } in changes {
        let (mut outcome, session) = match artifact {
            Err(error) => (Outcome::Failed(error), None),
            Ok(artifact) => Box::pin(review(artifact, &settings, environment, terminal)).await,
        };
        if let Outcome::Judged(report) = &mut outcome {
            // Its name is from the repository's root already.
            report.repository_path = None;
        }
        if matches!(outcome, Outcome::Interrupted) {
            return Err(Interrupted);
        }
        let caps = &mut settings.request.options.caps;
        match &outcome {
            Outcome::Judged(report) => *caps = left(*caps, report),
            // The cost of a failed review is unknown.
            Outcome::Failed(_) if session.is_some() => *caps = nothing_of(*caps),
            Outcome::Failed(_) | Outcome::Skipped { .. } | Outcome::Interrupted => {}
        }
        let mut unkept = None;
        if let Some(session) = session {
            if let Outcome::Judged(report) = &outcome {
                unkept = keep(&session, report).await.err();
            }
            session.close().await;
        }
        all.push(Reviewed { path, outcome, unkept });
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

/// These caps, used up.
fn nothing_of(caps: Caps) -> Caps {
    Caps {
        calls: caps.calls.map(|_| 0),
        tokens: caps.tokens.map(|_| 0),
        usd_nanos: caps.usd_nanos.map(|_| 0),
    }
}

/// The caps that remain after a review. Unknown usage counts as the whole cap.
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
