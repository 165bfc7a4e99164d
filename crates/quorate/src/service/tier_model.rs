//! Tiers by a model (C6): an executor reads a text and chooses its tier. The question belongs to no run; its
//! answer is recorded in a stream by the hash of text and executor, so that no text is classified twice. Without an
//! answer the strictest tier applies.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::{Body, codes};
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::budget::Caps;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_kernel::record::{self, Consultation, Spent, TierSource};
use quorate_kernel::single_call::{Answer, SingleCall, SingleCallError};
use quorate_manifest::council::tiers::Tier;
use quorate_protocol::answers::{Schema, TierAnswer};
use quorate_protocol::{ConsultationResult, Event, Name, Part, PartKind};
use serde_json::json;

use super::artifact::Artifact;
use super::error::Error;
use super::executor::SelectedExecutor;
use super::session::LedgerSession;
use super::trust::Permit;

/// The stream of recorded questions.
const STREAM: &str = "council/tiers";

/// The version of the question: answers to another version do not count.
const QUESTION: &str = "tier/1";

const ROLE: &str = "# Tiers\n\n- Tier 1: the text leaves the organisation, or acts on something that cannot be undone, or shapes \
    how a person or an organisation is seen, or is written to a memory that others rely on.\n- Tier 2: an internal draft, a \
    dashboard, infrastructure, a status update.\n- Tier 3: a daily briefing, an internal analysis, a plan.\n\nA text that fits \
    several tiers has the one with the lowest number.";
const TASK: &str = "Say the tier of the text.";

/// Classifies texts.
pub(crate) struct TierModel {
    call: SingleCall,
    /// `None` if the executor asks no model.
    config: Option<MemberConfig>,
    executor: Arc<str>,
    /// The executor's settings, as the fingerprint covers them.
    settings: String,
    known: BTreeMap<Name, TierAnswer>,
}

/// The tier of a text, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortedText {
    pub tier: Tier,
    pub source: TierSource,
}

impl TierModel {
    /// Loads the recorded answers. Without a permit it asks no member; with one, it asks the classifier.
    ///
    /// # Errors
    /// If the ledger fails.
    pub(crate) async fn open(
        session: &LedgerSession,
        classifier: SelectedExecutor,
        caps: Caps,
        permit: Option<Permit>,
    ) -> Result<Self, Error> {
        let workspace = &session.workspace;
        let (executor, settings) = (classifier.name.clone(), classifier.recorded_settings().to_string());
        let permit = permit.filter(|_| classifier.about().asks_a_model);
        let config = permit.map(|permit| classifier.into_member_config(permit));
        let call = SingleCall {
            stream: STREAM.into(),
            ledger: session.ledger(),
            clock: session.environment.clock.clone(),
            redactor: workspace.redaction.redactor.clone(),
            caps,
            observer: Arc::new(NoopObserver),
        };
        let mut known = BTreeMap::new();
        for found in session.store.records(&call.stream).await? {
            let consultation = found.data.filter(|_| found.kind == Kind::Consultation.as_str());
            let consultation = consultation.and_then(|data| record::read::<Consultation>(&data).ok());
            if let Some(Event::Consulted { id, result: ConsultationResult::Answered(answer) }) =
                consultation.and_then(|consultation| consultation.event())
                && let Some(answer) = TierAnswer::read(&answer)
            {
                known.insert(id, answer);
            }
        }
        Ok(TierModel { call, config, executor, settings, known })
    }

    /// The recorded tier of a text, by its hash. Asks no member.
    pub(crate) fn recorded(&self, artifact_sha256: &str) -> Option<SortedText> {
        let invocation = self.invocation(artifact_sha256);
        let answer = self.known.get(&invocation)?.clone();
        Some(sorted(invocation, answer, None))
    }

    /// The tier of a text: the recorded one, else the executor's answer. The warning concerns a text without an answer,
    /// which counts as tier 1.
    ///
    /// # Errors
    /// If the ledger fails.
    pub(crate) async fn sort(
        &self,
        session: &LedgerSession,
        artifact: &Artifact,
    ) -> Result<SortedText, Error> {
        if let Some(recorded) = self.recorded(&artifact.sha256) {
            return Ok(recorded);
        }
        let invocation = self.invocation(&artifact.sha256);
        let (why, spent) = match &self.config {
            None => (format!("`{}` asks no model", self.executor), None),
            Some(config) => match self.ask(&invocation, config, artifact).await? {
                Ok(sorted) => return Ok(sorted),
                Err(unanswered) => unanswered,
            },
        };
        let shown = self.call.redactor.redact(&artifact.display_name).0;
        let body = Body::new(format!("{shown} counts as tier 1: no model chose its tier: {why}"));
        let help = "a later command asks again; set the tier of one text with `--tier`, of many with `watch.tier_overrides`";
        session.warn(codes::TIER_UNKNOWN, body.help(help));
        let source = TierSource { invocation, reason: why, answered: false, spent };
        Ok(SortedText { tier: Tier::One, source })
    }

    async fn ask(
        &self,
        invocation: &Name,
        config: &MemberConfig,
        artifact: &Artifact,
    ) -> Result<Result<SortedText, (String, Option<Spent>)>, Error> {
        // The name of the file is omitted: a recorded answer applies to the text under any name.
        let part = Part::new(PartKind::Artifact, "", artifact.text.clone());
        let question = Question {
            role: ROLE.to_owned(),
            task: TASK.to_owned(),
            parts: vec![part],
            answer_schema: Schema::Tier,
        };
        match self.call.ask(invocation, &"classifier".into(), config, question).await {
            Ok(Answer { answer, call_info }) => {
                let spent = Some(call_info.spent.recorded());
                Ok(match TierAnswer::read(&answer) {
                    Some(answer) => Ok(sorted(invocation.clone(), answer, spent)),
                    None => Err(("cannot read its answer".to_owned(), spent)),
                })
            }
            Err(SingleCallError::Ledger(error)) => Err(error.into()),
            Err(SingleCallError::Unanswered { absent, message, call_info }) => {
                let why = message.unwrap_or_else(|| absent.status().to_string());
                Ok(Err((why, Some(call_info.spent.recorded()))))
            }
        }
    }

    fn invocation(&self, artifact_sha256: &str) -> Name {
        let what = json!([QUESTION, self.settings, artifact_sha256]).to_string();
        format!("tier/{}", sha256_hex(what.as_bytes())).into()
    }
}

fn sorted(invocation: Name, answer: TierAnswer, spent: Option<Spent>) -> SortedText {
    let source = TierSource { invocation, reason: answer.reason, answered: true, spent };
    SortedText { tier: Tier::from_number(answer.tier.into()).unwrap_or(Tier::One), source }
}
