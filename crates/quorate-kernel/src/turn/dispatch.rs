//! Who is to speak: what the dispatcher says, held against the roster and the policy (SEMANTICS K6).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quorate_protocol::{AbsenceReason, ConsultationResult, Json, Name};
use tokio::time::Instant;

use super::Runner;
use crate::alone;
use crate::call::{Recorder, Table};
use crate::consultation::millis;
use crate::conversation::Turn;
use crate::ports::dispatcher::{Ask, Input, Question, Unanswered};
use crate::ports::ledger;
use crate::ports::telemetry::What;
use crate::seat::Seat;

/// What the dispatcher came to.
pub(super) enum Selected {
    /// These are to speak, in order.
    Named(Vec<Name>, Cost),
    /// It could not say who, and why.
    Undecided(String, Cost),
    /// It has somebody asked, and no call is left.
    Spent,
}

/// What a decision has cost: whether it may be made again after a crash, or has to be durable before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Nobody was asked.
    Nothing,
    /// Somebody was, a model for example.
    Calls,
}

impl Runner {
    /// Who is to answer a trigger.
    ///
    /// # Errors
    /// When the ledger fails while the dispatcher asks somebody.
    pub(super) async fn select(&self, window: &[Turn], trigger: &Turn) -> Result<Selected, ledger::Error> {
        let before = self.resumed.as_ref().filter(|one| one.trigger == trigger.id);
        if let Some(before) = before.filter(|one| !one.selected.is_empty()) {
            return Ok(Selected::Named(before.selected.clone(), Cost::Nothing));
        }
        let started = Instant::now();
        let asking = Asking {
            table: self.table.clone(),
            recorder: self.records.recorder(),
            id: format!("dispatch/{}", trigger.id).into(),
            failed: Mutex::default(),
            spent: AtomicBool::new(false),
            asked: AtomicBool::new(false),
        };
        let capabilities = &self.about.capabilities;
        let input = Input { window, participants: &self.roster, capabilities, ask: &asking };
        let dispatcher = self.swarm.dispatcher.kind();
        let named = self.swarm.dispatcher.select(input).await;
        if let Some(error) = asking.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let cost = if asking.asked.into_inner() { Cost::Calls } else { Cost::Nothing };
        Ok(match named {
            Err(_) if asking.spent.into_inner() => Selected::Spent,
            Ok(named) => {
                let mut selected: Vec<Name> = Vec::new();
                for id in named {
                    let known = self.roster.iter().any(|one| one.id == id);
                    let may = self.swarm.policy.reentry || id != trigger.participant;
                    if known && may && !selected.contains(&id) {
                        selected.push(id);
                    }
                }
                let ms = millis(started.elapsed());
                self.emit(What::DispatchDecided { dispatcher, selected: selected.clone(), ms });
                Selected::Named(selected, cost)
            }
            Err(error) => {
                let error = self.swarm.redactor.redact(&error.to_string()).0;
                self.emit(What::DispatchFailed { dispatcher, error: error.clone() });
                Selected::Undecided(error, cost)
            }
        })
    }
}

/// Asks for a dispatcher, as members are asked.
struct Asking {
    table: Arc<Table>,
    recorder: Arc<Recorder>,
    id: Name,
    /// What the ledger failed with.
    failed: Mutex<Option<ledger::Error>>,
    /// Whether there was no call left.
    spent: AtomicBool,
    /// Whether somebody was asked.
    asked: AtomicBool,
}

#[async_trait]
impl Ask for Asking {
    async fn ask(&self, seat: &Seat, question: Question) -> Result<Json, Unanswered> {
        let (mut invoke, seat) = alone::posed(&self.id, &"dispatcher".into(), "dispatch", question, seat);
        invoke.parts = alone::cleaned(&self.table.redactor, std::mem::take(&mut invoke.parts)).await.0;
        match alone::put(&self.table, &self.recorder, invoke, seat).await {
            Ok(asked) => {
                self.asked.fetch_or(asked.ended.spent.calls > 0, Ordering::Relaxed);
                match asked.ended.result {
                    ConsultationResult::Answered(answer) => Ok(answer),
                    ConsultationResult::Absent(absent) => {
                        // Whoever had a first call has been asked, and what it lacks is an answer.
                        let spent = absent == AbsenceReason::RunOverBudget && asked.ended.spent.calls == 0;
                        self.spent.fetch_or(spent, Ordering::Relaxed);
                        Err(Unanswered { absent, why: asked.ended.message })
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
