//! Who speaks: the dispatcher's selection, checked against the roster and the policy (K6).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, ConsultationResult, Json, Name};
use tokio::time::Instant;

use super::{Policy, Runner};
use crate::call::{CallContext, Recorder};
use crate::consultation::millis;
use crate::conversation::{Participant, Turn};
use crate::member_config::MemberConfig;
use crate::ports::dispatcher::{Ask, Input, Question, Unanswered};
use crate::ports::ledger;
use crate::ports::telemetry::EventKind;
use crate::single_call;

/// The result of a dispatch.
pub(super) enum Selection {
    /// The selected participants, in order.
    Named(Vec<Name>, DecisionCost),
    /// The dispatcher failed, with the reason.
    Undecided(String, DecisionCost),
    /// It needed an executor, and no call is left.
    BudgetExhausted,
}

/// What a decision has cost: whether it may be made again after a crash, or has to be durable before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionCost {
    Nothing,
    /// An executor was asked, for example a model.
    Calls,
}

impl Runner {
    /// Who is to answer a trigger.
    ///
    /// # Errors
    /// If the ledger fails while the dispatcher asks an executor.
    pub(super) async fn select(
        &self,
        window: &[Turn],
        trigger: &Turn,
        chain: usize,
    ) -> Result<Selection, ledger::Error> {
        let before = self.resumed.as_ref().filter(|one| one.trigger == trigger.id);
        if let Some(before) = before.filter(|one| !one.selected.is_empty()) {
            return Ok(Selection::Named(before.selected.clone(), DecisionCost::Nothing));
        }
        let started = Instant::now();
        let asking = DispatcherAsk {
            call_context: self.call_context.clone(),
            recorder: self.records.recorder(),
            id: format!("dispatch/{}", trigger.id).into(),
            failed: Mutex::default(),
            spent: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        };
        let capabilities = &self.about.capabilities;
        let input = Input { window, chain, participants: &self.roster, capabilities, ask: &asking };
        let dispatcher = self.swarm.dispatcher.kind();
        let named = self.swarm.dispatcher.select(input).await;
        if let Some(error) = asking.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let cost = if asking.asked.into_inner() { DecisionCost::Calls } else { DecisionCost::Nothing };
        Ok(match named {
            Err(_) if asking.spent.into_inner() => Selection::BudgetExhausted,
            Ok(named) => {
                let selected = permitted(named, &self.roster, self.swarm.policy, trigger);
                let ms = millis(started.elapsed());
                self.emit(EventKind::DispatchDecided { dispatcher, selected: selected.clone(), ms });
                Selection::Named(selected, cost)
            }
            Err(error) => {
                let error = self.swarm.redactor.redact(&error.to_string()).0;
                self.emit(EventKind::DispatchFailed { dispatcher, error: error.clone() });
                Selection::Undecided(error, cost)
            }
        })
    }
}

/// Of the participants that a dispatcher names, those that may answer the trigger, each once.
pub(super) fn permitted(
    named: Vec<Name>,
    roster: &[Participant],
    policy: Policy,
    trigger: &Turn,
) -> Vec<Name> {
    let mut selected: Vec<Name> = Vec::new();
    for id in named {
        let known = roster.iter().any(|one| one.id == id);
        let may = policy.reentry || id != trigger.participant;
        if known && may && !selected.contains(&id) {
            selected.push(id);
        }
    }
    selected
}

/// Asks for a dispatcher, as members are asked.
struct DispatcherAsk {
    call_context: Arc<CallContext>,
    recorder: Arc<Recorder>,
    id: Name,
    /// What the ledger failed with.
    failed: Mutex<Option<ledger::Error>>,
    /// Whether there was no call left.
    spent: AtomicBool,
    /// Whether an executor was asked.
    asked: AtomicBool,
}

#[async_trait]
impl Ask for DispatcherAsk {
    async fn ask(&self, config: &MemberConfig, question: Question) -> Result<Json, Unanswered> {
        let (mut invoke, config) =
            single_call::prepare(&self.id, &"dispatcher".into(), "dispatch", question, config);
        invoke.parts =
            single_call::redact_parts(&self.call_context.redactor, std::mem::take(&mut invoke.parts)).await.0;
        match single_call::run_call(&self.call_context, &self.recorder, invoke, config).await {
            Ok(asked) => {
                self.asked.fetch_or(asked.consultation.spent.calls > 0, Ordering::Relaxed);
                match asked.consultation.result {
                    ConsultationResult::Answered(answer) => Ok(answer),
                    ConsultationResult::Absent(absent) => {
                        // After a first call the executor has been asked; only its answer is missing.
                        let spent =
                            absent == AbsenceReason::RunOverBudget && asked.consultation.spent.calls == 0;
                        self.spent.fetch_or(spent, Ordering::Relaxed);
                        Err(Unanswered { absent, why: asked.consultation.message })
                    }
                }
            }
            Err(error) => {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(AbsenceReason::Failed.into())
            }
        }
    }
}
