//! Reviewing a text: [`Reviewing`] configures it, [`Review`] is its result.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::future::{Future, IntoFuture};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use quorate_manifest::council::VerdictPolicy;
use quorate_manifest::council::tiers::Tier;

use super::builder::Quorate;
use super::error::Error;
use super::events::Run;
use super::service::artifact::{self, Artifact, Subject};
use super::service::error::ServiceError;
use super::service::review;
use super::service::run_spec::{Producer, RunOptions};
use super::service::runs::Recorded;
use super::session::Outcome;

pub use super::service::member_usage::{Failure, MemberUsage};
pub use super::service::report::{Answer, Deliberator, FailOn, Finding, LedgerLocation, Override, Review};
pub use super::service::review::{ReviewOutcome, ReviewRequest, TierPolicy};

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
    pub fn review_text(&self, name: impl Into<String>, text: impl Into<String>) -> Reviewing {
        self.review(Draft::Text { name: name.into(), text: text.into() })
    }

    /// Reads a draft. A confined workspace reads only files below its root.
    pub(crate) fn read_draft(&self, draft: Draft) -> Result<Artifact, ServiceError> {
        match (draft, &self.root) {
            (Draft::Text { name, text }, _) => artifact::from_bytes(name, None, Ok(text.into_bytes())),
            (Draft::File(file), Some(root)) => root.artifact(&file),
            (Draft::File(file), None) => artifact::read(&Subject::File(file), &self.environment.directory),
        }
    }
}

/// A text to decide on. A path converts into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draft {
    /// A file of the workspace.
    File(PathBuf),
    /// A text without a file.
    Text {
        /// Replaces the path in records, in the log and for tier rules; its extension determines the format.
        name: String,
        /// The text itself.
        text: String,
    },
}

impl From<PathBuf> for Draft {
    fn from(file: PathBuf) -> Self {
        Draft::File(file)
    }
}

impl From<&PathBuf> for Draft {
    fn from(file: &PathBuf) -> Self {
        Draft::File(file.clone())
    }
}

impl From<&Path> for Draft {
    fn from(file: &Path) -> Self {
        Draft::File(file.to_owned())
    }
}

impl From<&str> for Draft {
    fn from(file: &str) -> Self {
        Draft::File(file.into())
    }
}

impl From<String> for Draft {
    fn from(file: String) -> Self {
        Draft::File(file.into())
    }
}

/// A review that has not started.
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

    /// The tier; default: by the council's tier rules.
    pub fn tier(mut self, tier: Tier) -> Self {
        self.request.tier = Some(tier);
        self
    }

    /// The verdict policy; default: the council's.
    pub fn policy(mut self, policy: VerdictPolicy) -> Self {
        self.request.policy = Some(policy);
        self
    }

    /// The whole request at once.
    pub fn request(mut self, request: ReviewRequest) -> Self {
        self.request = request;
        self
    }

    /// All options of the run at once.
    pub fn options(mut self, options: RunOptions) -> Self {
        self.request.options = options;
        self
    }

    /// The producer of the text: drift is counted by producer.
    pub fn made_by(mut self, producer: impl Into<String>) -> Self {
        self.request.options.producer = Producer::from_flags(Some(&producer.into()), &[]);
        self
    }

    /// The executor of all members, instead of the configured one.
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.request.options.executor = Some(name.into());
        self
    }

    /// The executor's model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.request.options.model = Some(model.into());
        self
    }

    /// The maximum number of calls, re-prompts and retries included.
    pub fn max_calls(mut self, calls: u32) -> Self {
        self.request.options.caps.calls = Some(calls);
        self
    }

    /// The maximum number of tokens, of prompts and answers together. It is never exceeded: what a call takes at most
    /// is reserved before the call, which is not made if that is more than what is left.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.request.options.caps.tokens = Some(tokens);
        self
    }

    /// The maximum price of all calls, in billionths of a US dollar: `5_000_000_000` is 5 USD. It is never exceeded, as
    /// with [`max_tokens`](Self::max_tokens). A model without a known price is an error before any call.
    pub fn max_usd_nanos(mut self, usd_nanos: u64) -> Self {
        self.request.options.caps.usd_nanos = Some(usd_nanos);
        self
    }

    /// The deadline of each member.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.request.options.timeout = Some(timeout);
        self
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
            let Reviewing { quorate, subject, request } = self;
            let artifact = match subject {
                ReviewSubject::Named(draft) => quorate.read_draft(draft)?,
                ReviewSubject::Loaded(artifact) => artifact,
            };
            let opening = review::open_session(&quorate.environment, &quorate.places, &artifact);
            let session = quorate.open(opening).await?;
            let reviewed = review::review(&session, artifact, &request, observer);
            let decided = |recorded| match recorded {
                Recorded::Review(review) => Some(ReviewOutcome::Judged(review)),
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

impl Review {
    /// Verdict, reason, reasoning and revision brief as plain text.
    pub fn brief(&self) -> String {
        let mut text = format!("{} {}\n", self.verdict_word(), self.artifact);
        if let Some(decision) = &self.overridden {
            let _ = writeln!(
                text,
                "A person ({}) decided {}: {}",
                decision.by, decision.verdict, decision.reason
            );
        }
        let parts = [Some(&self.because), Some(&self.reasoning), self.revision_brief.as_ref()];
        for part in parts.into_iter().flatten() {
            if !part.is_empty() && !text.contains(part.as_str()) {
                let _ = write!(text, "\n{}\n", part.trim_end());
            }
        }
        text
    }
}
