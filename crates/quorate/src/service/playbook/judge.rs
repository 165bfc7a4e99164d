//! The judge (B4): an executor that reads a proposal against the locked traits and the active playbooks. It is `judge` of
//! `quorate.toml`, or else the default executor if that asks a model. An unsure or missing answer rejects the proposal.

use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::ports::dispatcher::Question;
use quorate_manifest::document::Document;
use quorate_manifest::playbook::Playbook;
use quorate_playbook::compose::compose;
use quorate_protocol::answers::Schema;
use quorate_protocol::answers::reflection::{Judgement, TraitVerdict};
use quorate_protocol::{Part, PartKind};
use serde_json::json;

use super::consultant::Consultant;
use super::inspect::excerpt_place;
use super::writer::LibraryWriter;
use crate::service::error::ServiceError;
use crate::service::executor::{self, SelectedBy};

const ROLE: &str = "# Judge of prompt fragments\n\nYou decide whether a fragment, once it stands in an agent's prompt, would \
    weaken one of the agent's locked traits: by what it says, by what it hints at, or by what it has the agent leave out. \
    Advice on how to do the work is fine. So is whatever strengthens a trait. The prompt is the one that the agent has \
    today; if the fragment states the opposite of something in it, say `unsure` and quote that. Where you cannot tell, say \
    `unsure`.";
const TASK: &str = "Say whether the fragment keeps the locked traits.";

/// An executor that judges proposals.
pub struct Judge {
    consultant: Consultant,
}

impl Judge {
    /// The configured judge, or the default executor if it asks a model; `None` without either.
    ///
    /// # Errors
    /// If the judge cannot be asked.
    pub fn of(keeping: &LibraryWriter) -> Result<Option<Self>, ServiceError> {
        let workspace = &keeping.library.workspace;
        let (host, playbooks) = (&workspace.host, &workspace.host.playbooks);
        let named = match &playbooks.judge {
            Some(judge) => judge,
            None => {
                let default = host.default_executor.as_ref().filter(|_| playbooks.judge_off.is_none());
                let Some(default) = default else { return Ok(None) };
                let (name, place) = default;
                let file = host.path();
                let from = SelectedBy::File(&file);
                let chosen = executor::by_name(&workspace.registry, host, name, Some(place), from)?;
                if !chosen.about().asks_a_model {
                    return Ok(None);
                }
                default
            }
        };
        let (name, place) = named;
        Ok(Some(Judge { consultant: Consultant::resolve(keeping, Some(name), Some(place))? }))
    }

    /// Asks the judge about a proposal, for each targeted operator. Any answer but a clear yes is a refusal.
    ///
    /// # Errors
    /// When the ledger fails.
    #[crate::boxed]
    pub async fn judge(
        &self,
        keeping: &LibraryWriter,
        playbook: &Playbook,
        text: &str,
        document: Option<&Document>,
        operators: &[String],
        report: &mut Report,
    ) -> Result<(), ServiceError> {
        let now_ms = keeping.session.environment.clock.now_ms();
        for known in keeping.library.operators.iter().filter(|known| operators.contains(&known.slug)) {
            let candidates = keeping.library.candidates_for(known);
            let prompt = compose(&known.base, &candidates, &[], &known.locks(), now_ms).woven.prompt;
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
            let answered = self.consultant.ask(&format!("judge/{}", known.slug), question).await?;
            let why = match answered.as_ref().map(Judgement::read) {
                Ok(Some(Judgement { verdict: TraitVerdict::Keeps, .. })) => continue,
                Ok(Some(Judgement { verdict: TraitVerdict::Betrays, traits, reason })) => {
                    format!("it goes against {}: {reason}", traits.join(", "))
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
