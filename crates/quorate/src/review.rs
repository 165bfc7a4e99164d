//! Reviewing a text: [`Reviewing`] configures it, [`Review`] is its result.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;

use quorate_diagnostics::Report;
use quorate_diagnostics::render::machine::diagnostics_json;
use quorate_protocol::modes::council::Setup;
use quorate_protocol::policy::Verdict;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::builder::Quorate;
use super::error::{Error, ErrorKind};
use super::events::Run;
use super::service::artifact::{self, Artifact};
use super::service::estimate;
use super::service::review::{self, severity};
use super::service::run_spec::{RunSpec, run_option_methods};
use super::service::runs::Recorded;
use super::service::workspace::Workspace;
use super::session::Outcome;

pub use super::service::artifact::{Draft, Drafts};
pub use super::service::compare::{Position, Stance};
pub use super::service::diff::{Change, Piece};
pub use super::service::estimate::{
    DraftEstimate, Estimate, Estimates, ExecutorEstimate, MostSpent, SampledMember, StandInEstimate,
};
pub use super::service::member_usage::{Failure, MemberUsage};
pub use super::service::report::{
    Adjudicator, Answer, Deliberator, FailOn, Finding, LedgerLocation, Override, Review,
};
pub use super::service::review::{ReviewOutcome, ReviewRequest, TierPolicy};
pub use quorate_kernel::attempts::Cost;
pub use quorate_kernel::ports::executor::Usage;

impl Quorate {
    /// Reviews a file with the workspace's council: await it for the result, or [`start`](Reviewing::start) it to
    /// receive events.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::{Event, Quorate, Verdict};
    ///
    /// let draft = "We guarantee 300% more revenue, forever. It is 40% faster than every other tool, it always works, and \
    ///              everyone loves it from the first day on.\n";
    /// std::fs::write(dir.path().join("draft.md"), draft)?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let mut run = quorate.review("draft.md").artifact_type("blog_post").max_calls(20).start();
    /// let mut answers = 0;
    /// while let Some(event) = run.next().await {
    ///     answers += usize::from(matches!(event, Event::Answered { .. }));
    /// }
    /// let review = run.finish().await?;
    /// assert_eq!(answers, 9); // four deliberators in two rounds, and the adjudicator
    /// assert_ne!(review.verdict, Some(Verdict::Ship));
    /// assert_eq!(review.findings[0].line, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn review(&self, draft: impl Into<Draft>) -> Reviewing {
        Reviewing::new(self.clone(), draft.into())
    }

    /// Reviews a text without a file. The name replaces the path in records, in the log and for tier rules.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let text = "The meeting moved to Tuesday at ten, because the room is taken on Monday.\n";
    /// let review = quorate.review_text("notice.md", text).await?;
    /// assert_eq!(review.artifact, "notice.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn review_text(&self, name: impl Into<String>, text: impl Into<String>) -> Reviewing {
        self.review(Draft::Text { name: name.into(), text: text.into() })
    }

    /// The drafts with these names: `-` is standard input; a name with `*`, `?`, `[` or `{` is a pattern unless a file has
    /// that name. As in a shell, `*` stays in its directory and hidden files need a pattern with a dot; `**` descends into
    /// all directories. The warnings name matches that were skipped.
    ///
    /// # Errors
    /// If a pattern is invalid or matches nothing, or standard input is named twice.
    ///
    /// ```
    /// use quorate::{Draft, Quorate};
    ///
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("a.md"), "The meeting moved to Tuesday.\n")?;
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// assert_eq!(quorate.drafts(&["*.md".into()])?.drafts, [Draft::from("a.md")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn drafts(&self, names: &[PathBuf]) -> Result<Outcome<Drafts>, Error> {
        let mut warnings = Report::new();
        let drafts = artifact::expand_drafts(&self.environment, names, &mut warnings);
        Outcome::of(drafts, warnings)
    }

    /// Reads a draft. A confined workspace reads only files below its root.
    pub(crate) fn read_draft(&self, draft: Draft) -> Result<Artifact, Error> {
        match (&draft, &self.root) {
            (Draft::File(file), Some(root)) => root.artifact(file),
            _ => artifact::read(&draft, &self.environment.directory),
        }
    }
}

/// A review that has not started. Await it for the result, or [`start`](Self::start) it to receive events. The methods set
/// the request; without them, the workspace's configuration decides.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let dir = tempfile::tempdir()?;
/// use quorate::Quorate;
///
/// let quorate = Quorate::builder().workspace(dir.path()).build()?;
/// let reviewing = quorate.review_text("notice.md", "The meeting moved to Tuesday.\n").max_calls(20);
/// reviewing.check()?; // asks no member, and needs no ledger
/// assert!(reviewing.estimate()?.calls <= 20);
/// assert!(reviewing.await?.spent.calls <= 20);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing happens until it is awaited or started"]
pub struct Reviewing {
    quorate: Quorate,
    subject: ReviewSubject,
    request: ReviewRequest,
}

#[derive(Debug, Clone)]
enum ReviewSubject {
    Named(Draft),
    Loaded(Artifact),
}

impl Reviewing {
    fn new(quorate: Quorate, draft: Draft) -> Self {
        Reviewing { quorate, subject: ReviewSubject::Named(draft), request: ReviewRequest::default() }
    }

    /// Reads the draft now instead of at the start, so that an unusable file is an error before any work begins.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, is not text, is too large, or leads out of a confined workspace.
    pub fn load(mut self) -> Result<Self, Error> {
        if let ReviewSubject::Named(draft) = self.subject {
            self.subject = ReviewSubject::Loaded(self.quorate.read_draft(draft)?);
        }
        Ok(self)
    }

    /// The draft's name in records.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.subject {
            ReviewSubject::Named(Draft::File(file)) => file.to_string_lossy(),
            ReviewSubject::Named(Draft::Text { name, .. }) => name.into(),
            ReviewSubject::Loaded(artifact) => (&*artifact.display_name).into(),
        }
    }

    /// The type of the text, under which verdicts are remembered; default: by the council's tier rules.
    pub fn artifact_type(mut self, artifact_type: impl Into<String>) -> Self {
        self.request.artifact_type = Some(artifact_type.into());
        self
    }

    /// The whole request at once.
    pub fn request(mut self, request: ReviewRequest) -> Self {
        self.request = request;
        self
    }

    run_option_methods!();

    /// Checks that the draft can be reviewed: valid configuration, available executor, enforceable caps. Needs no ledger.
    ///
    /// # Errors
    /// If draft, configuration or executor are unusable.
    pub fn check(&self) -> Result<(), Error> {
        self.planned()?.2.admit(&self.quorate.environment).map(drop)
    }

    /// The expected cost; empty if the request obeys tiers and the draft's tier is skipped. Asks no member, and neither
    /// needs nor creates a ledger.
    ///
    /// # Errors
    /// If draft, configuration or executor are unusable.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?;
    /// let estimate = quorate.review_text("draft.md", "The meeting moved to Tuesday at ten.\n").estimate()?;
    /// assert_eq!(estimate.calls, 9); // four deliberators in two rounds, and the adjudicator
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn estimate(&self) -> Result<Estimate, Error> {
        Ok(self.planned()?.0)
    }

    /// As [`estimate`](Self::estimate), with the time that the last review by the same council with the same executors
    /// took, if the ledger has one. A ledger that cannot be read gives no time.
    ///
    /// # Errors
    /// As [`estimate`](Self::estimate).
    #[crate::boxed]
    pub async fn estimate_with_time(&self) -> Result<Estimate, Error> {
        let (mut estimate, workspace, spec) = self.planned()?;
        if estimate.calls > 0 {
            estimate.last_run_ms = estimate::last_run_in(&workspace.ledger, &spec).await.ok().flatten();
        }
        Ok(estimate)
    }

    fn planned(&self) -> Result<(Estimate, Workspace, RunSpec<Setup>), Error> {
        let Quorate { environment, places, .. } = &self.quorate;
        review::estimate(environment, places, &*self.artifact()?, &self.request)
    }

    fn artifact(&self) -> Result<Cow<'_, Artifact>, Error> {
        Ok(match &self.subject {
            ReviewSubject::Named(draft) => Cow::Owned(self.quorate.read_draft(draft.clone())?),
            ReviewSubject::Loaded(artifact) => Cow::Borrowed(artifact),
        })
    }

    /// Starts the review, as a stream of [`Event`](crate::Event)s. The draft is reviewed in any tier.
    pub fn start(mut self) -> Run<Outcome<Review>> {
        self.request.tier_policy = TierPolicy::Ignore;
        self.start_tiered().map(|reviewed| {
            reviewed.map(|outcome| match outcome {
                ReviewOutcome::Judged(review) => *review,
                ReviewOutcome::Skipped { .. } => unreachable!("tiers are not obeyed"),
            })
        })
    }

    /// As [`start`](Self::start), but skips the draft if the request obeys tiers and its tier is not reviewed.
    pub fn start_tiered(self) -> Run<Outcome<ReviewOutcome>> {
        Run::new(move |observer, interruption| async move {
            let artifact = self.artifact()?.into_owned();
            let Reviewing { quorate, request, .. } = self;
            let opening = review::open_session(&quorate.environment, &quorate.places, &artifact);
            let session = quorate.open(opening).await?;
            let reviewed = review::review(&session, artifact, &request, observer);
            let decided = |recorded| match recorded {
                Recorded::Review(mut review) => {
                    review.set_fail_on(request.fail_on);
                    Some(ReviewOutcome::Judged(review))
                }
                Recorded::Decision(_) => None,
            };
            let reviewed = session.until_interrupted(&interruption, reviewed, decided).await;
            session.finish(reviewed).await
        })
    }
}

impl IntoFuture for Reviewing {
    type Output = Result<Outcome<Review>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start().finish())
    }
}

/// The result of one of several drafts.
#[derive(Debug)]
pub struct ReviewedDraft {
    /// The draft's name.
    pub name: String,
    /// The result of its review.
    pub result: Result<ReviewOutcome, Error>,
}

impl ReviewedDraft {
    /// The exit code of a command with this review alone.
    pub fn exit_code(&self) -> u8 {
        match &self.result {
            Ok(outcome) => outcome.exit_code(),
            Err(error) => error.exit_code(),
        }
    }

    /// The verdict, or why there is none, in a few words.
    pub fn word(&self) -> &'static str {
        match &self.result {
            Ok(ReviewOutcome::Judged(review)) => review.verdict.map_or("OPEN", Verdict::as_str),
            Ok(ReviewOutcome::Skipped { .. }) => "skipped by its tier",
            Err(error) if error.kind() == ErrorKind::Interrupted => "interrupted",
            Err(_) => "not reviewed",
        }
    }
}

/// The object of a draft in the JSON of several reviews.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, deny_unknown_fields)]
enum DraftResult<'r> {
    Reviewed(&'r Review),
    Skipped {
        artifact: &'r str,
        /// The exit code of a command with this draft alone.
        exit: u8,
        skipped: SkippedDraft<'r>,
    },
    Failed {
        artifact: &'r str,
        /// The exit code of a command with this draft alone.
        exit: u8,
        #[schemars(with = "Vec<Map<String, Value>>")]
        diagnostics: Value,
    },
}

/// Why a draft was not reviewed.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields, extend("required" = ["tier", "artifact_type"]))]
struct SkippedDraft<'r> {
    #[schemars(range(min = 1, max = 3))]
    tier: u8,
    artifact_type: &'r str,
    /// The reason of the model that chose the tier; null if a rule chose it.
    tier_reason: Option<&'r str>,
}

impl<'r> DraftResult<'r> {
    fn of(reviewed: &'r ReviewedDraft) -> Self {
        let (artifact, exit) = (&*reviewed.name, reviewed.exit_code());
        match &reviewed.result {
            Ok(ReviewOutcome::Judged(review)) => DraftResult::Reviewed(review),
            Ok(ReviewOutcome::Skipped { tier, artifact_type, reason }) => {
                let skipped = SkippedDraft { tier: *tier, artifact_type, tier_reason: reason.as_deref() };
                DraftResult::Skipped { artifact, exit, skipped }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                DraftResult::Failed { artifact, exit, diagnostics: json!([]) }
            }
            Err(error) => {
                DraftResult::Failed { artifact, exit, diagnostics: diagnostics_json(error.report()) }
            }
        }
    }
}

/// The exit code of a command with several reviews: that of the worst one.
pub fn worst_exit_code(codes: impl IntoIterator<Item = u8>) -> u8 {
    codes.into_iter().max_by_key(|code| severity(*code)).unwrap_or(0)
}

/// The version of the JSON for several reviews.
pub(crate) const REVIEWS: &str = "quorate.reviews/v1";

/// Several reviews as `quorate review --format json` prints them, in the order of the drafts.
#[derive(Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "Several reviews, as `quorate review --format json` prints them",
    description = ""
)]
pub struct Reviews<'r> {
    /// The version of the JSON.
    #[schemars(extend("const" = REVIEWS))]
    schema: &'static str,
    /// The exit code of the command: that of the worst review.
    exit: u8,
    /// In the order of the drafts. A draft without a verdict has the reason.
    reviews: Vec<DraftResult<'r>>,
}

impl<'r> Reviews<'r> {
    /// The reviews of these drafts.
    pub fn of(reviews: &'r [ReviewedDraft]) -> Self {
        let exit = worst_exit_code(reviews.iter().map(ReviewedDraft::exit_code));
        Reviews { schema: REVIEWS, exit, reviews: reviews.iter().map(DraftResult::of).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::{severity, worst_exit_code};

    #[test]
    fn the_worst_verdict_wins_and_what_is_no_verdict_is_worse() {
        let order = [0, 6, 1, 2, 3];
        for (at, worse) in order.into_iter().enumerate() {
            for milder in &order[..at] {
                assert_eq!(worst_exit_code([worse, *milder]), worse, "{worse} {milder}");
                assert_eq!(worst_exit_code([*milder, worse]), worse, "{milder} {worse}");
            }
        }
        for failure in [4, 5, 70, 130] {
            for verdict in order {
                assert_eq!(worst_exit_code([failure, verdict]), failure, "{failure} {verdict}");
                assert_eq!(worst_exit_code([verdict, failure]), failure, "{verdict} {failure}");
            }
        }
        let mut codes = [70, 6, 3, 0, 2, 1, 130, 5, 4];
        codes.sort_by_key(|code| (severity(*code), *code));
        assert_eq!(codes, [0, 6, 1, 2, 3, 4, 5, 70, 130]);
        assert_eq!(worst_exit_code([]), 0);
    }
}
