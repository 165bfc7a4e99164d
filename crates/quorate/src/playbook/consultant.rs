//! A consultant is an executor asked outside of any run: the judge of a proposal, or the reflector. It uses the executor
//! port, and its questions are recorded in the stream `playbooks/asked`.
//!
//! The judge (B4) reads a proposal against the locked traits and the active playbooks. It is `judge` of `quorate.toml`, or
//! else the default executor if that asks a model. An unsure or missing answer rejects the proposal.

use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::single_call::{Answer, SingleCall, SingleCallError};
use quorate_manifest::document::Document;
use quorate_manifest::playbook::Playbook;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::reflection::{Judgement, TraitVerdict};
use quorate_protocol::{Json, Name, Part, PartKind};
use serde_json::{Map, json};

use super::inspect::excerpt_place;
use super::writer::LibraryWriter;
use crate::service::error::Error;
use crate::service::executor::{NamedExecutor, SelectedBy, SelectedExecutor};
use crate::service::{budget, trust};

/// The stream of recorded questions.
const STREAM: &str = "playbooks/asked";

/// An executor that can be asked.
pub(crate) struct Consultant {
    call: SingleCall,
    config: MemberConfig,
}

impl Consultant {
    /// The named executor of `quorate.toml`, preset or kind; without a name the rubric.
    ///
    /// # Errors
    /// If the executor is unknown, or its settings are refused.
    pub(crate) fn resolve(
        writer: &LibraryWriter,
        named: Option<&str>,
        place: Option<&Place>,
    ) -> Result<Self, Error> {
        let workspace = &writer.library.workspace;
        let file = workspace.config.path();
        // A place exists only if a file names the executor.
        let by = if place.is_some() { SelectedBy::File(&file) } else { SelectedBy::Person };
        let chosen = match named {
            Some(name) => workspace.executors().by_name(NamedExecutor { name, place, by }, Map::new())?,
            None => workspace.executors().fallback(Map::new())?,
        };
        Consultant::new(writer, chosen, Schema::Deltas)
    }

    /// One who answers in this form.
    fn new(writer: &LibraryWriter, chosen: SelectedExecutor, answer: Schema) -> Result<Self, Error> {
        chosen.ensure_answers(answer)?;
        let (workspace, environment) = (&writer.library.workspace, &writer.session.environment);
        let admitted = trust::admit(environment, chosen.needs())?;
        chosen.ensure_installed()?;
        let caps = budget::configured(&workspace.config);
        chosen.ensure_enforceable(&caps)?;
        let config = chosen.into_member_config(admitted);
        let call = SingleCall {
            stream: STREAM.into(),
            ledger: writer.session.ledger(),
            clock: environment.clock.clone(),
            redactor: workspace.redaction.redactor.clone(),
            caps,
            observer: Arc::new(NoopObserver),
        };
        Ok(Consultant { call, config })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.executor_name
    }

    /// Asks a question. The inner error is the reason for a missing answer.
    ///
    /// # Errors
    /// When the ledger fails.
    #[crate::boxed]
    pub(crate) async fn ask(&self, id: &str, question: Question) -> Result<Result<Json, String>, Error> {
        let (step, member) = id.split_once('/').unwrap_or((id, id));
        match self.call.ask(&Name::from(id), &Name::from(member), &self.config, question).await {
            Ok(Answer { answer, .. }) => Ok(Ok(answer)),
            Err(SingleCallError::Ledger(error)) => Err(error.into()),
            Err(unanswered) => Ok(Err(format!("`{}` has no answer to {step}: {unanswered}", self.name()))),
        }
    }
}

const ROLE: &str = "# Judge of prompt fragments\n\nYou decide whether a fragment, once it stands in an agent's prompt, would \
    weaken one of the agent's locked traits: by what it says, by what it hints at, or by what it has the agent leave out. \
    Advice on how to do the work is fine. So is whatever strengthens a trait. The prompt is the one that the agent has \
    today; if the fragment states the opposite of something in it, say `unsure` and quote that. Where you cannot tell, say \
    `unsure`.";
const TASK: &str = "Say whether the fragment keeps the locked traits.";

impl Consultant {
    /// The configured judge, or the default executor if it asks a model; `None` without either.
    ///
    /// # Errors
    /// If the judge cannot be asked.
    pub(crate) fn judge_of(writer: &LibraryWriter) -> Result<Option<Self>, Error> {
        let workspace = &writer.library.workspace;
        let (config, playbooks) = (&workspace.config, &workspace.config.playbooks);
        let (named, is_default) = match (&playbooks.judge, &config.defaults.executor) {
            (Some(judge), _) => (judge, false),
            (None, Some(default)) if playbooks.judge_off.is_none() => (default, true),
            _ => return Ok(None),
        };
        let file = config.path();
        let chosen = workspace.executors().by_name(NamedExecutor::by_file(named, &file), Map::new())?;
        if is_default && !chosen.about().asks_a_model {
            return Ok(None);
        }
        Consultant::new(writer, chosen, Schema::Judgement).map(Some)
    }

    /// Asks the judge about a proposal, for each targeted operator. Any answer but a clear yes is a refusal.
    ///
    /// # Errors
    /// When the ledger fails.
    #[crate::boxed]
    pub(crate) async fn judge(
        &self,
        writer: &LibraryWriter,
        playbook: &Playbook,
        text: &str,
        document: Option<&Document>,
        operators: &[String],
        report: &mut Report,
    ) -> Result<(), Error> {
        for known in writer.library.operators.iter().filter(|known| operators.contains(&known.slug)) {
            let candidates = writer.library.candidates_for(known);
            let prompt = known.compose(&candidates, writer.now_ms()).woven.prompt;
            let traits = known.traits.iter().map(|one| json!({"id": one.id, "description": one.description}));
            let traits = serde_json::to_string_pretty(&traits.collect::<Vec<_>>()).unwrap_or_default();
            let question = Question {
                role: ROLE.to_owned(),
                task: TASK.to_owned(),
                parts: vec![
                    Part::new(PartKind::Persona, "", prompt),
                    Part::new(PartKind::Traits, "", traits),
                    Part::new(PartKind::Fragment, "", text),
                ],
                answer_schema: Schema::Judgement,
            };
            let answered = self.ask(&format!("judge/{}", known.slug), question).await?;
            let why = match answered.as_ref().map(Judgement::read) {
                Ok(Some(Judgement { verdict: TraitVerdict::Keeps, .. })) => continue,
                Ok(Some(Judgement { verdict: TraitVerdict::Betrays, traits, reason })) => {
                    // A decision model does not say which.
                    let traits =
                        if traits.is_empty() { "a locked trait".to_owned() } else { traits.join(", ") };
                    format!("it goes against {traits}: {reason}")
                }
                Ok(Some(Judgement { verdict: TraitVerdict::Unsure, reason, .. })) => {
                    format!("it is unsure: {reason}")
                }
                Ok(None) => "its answer cannot be read".to_owned(),
                Err(why) => why.clone(),
            };
            let message =
                format!("the judge does not let `{}` through for `{}`: {why}", playbook.slug, known.slug);
            let help = "rephrase it unambiguously; doubtful texts are refused";
            let mut body = Body::new(message).help(help);
            // A judge does not quote words, so the refusal is about the whole text.
            if let Some(document) = document {
                report.add_source(document.shown.clone(), document.text.clone());
                body = body.at(excerpt_place(document, ""));
            }
            report.refuse(codes::LOCK_VIOLATED, body);
        }
        Ok(())
    }
}
