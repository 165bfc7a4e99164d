//! A consultant is an executor asked outside of any run: the judge of a proposal, or the reflector. It uses the executor
//! port, and its questions are recorded in the stream `playbooks/asked`.

use std::sync::Arc;

use quorate_diagnostics::Place;
use quorate_kernel::member_config::MemberConfig;
use quorate_kernel::observer::NoopObserver;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::single_call::{Answer, Error, SingleCall};
use quorate_protocol::{Json, Name};

use super::writer::LibraryWriter;
use crate::service::budget;
use crate::service::error::ServiceError;
use crate::service::executor::{self, SelectedBy};
use crate::service::trust;

/// The stream of recorded questions.
const STREAM: &str = "playbooks/asked";

/// An executor that can be asked.
pub struct Consultant {
    call: SingleCall,
    config: MemberConfig,
}

impl Consultant {
    /// The named executor of `quorate.toml`, preset or kind; without a name the rubric.
    ///
    /// # Errors
    /// If the executor is unknown, or its settings are refused.
    pub fn resolve(
        keeping: &LibraryWriter,
        named: Option<&str>,
        place: Option<&Place>,
    ) -> Result<Self, ServiceError> {
        let workspace = &keeping.library.workspace;
        let registry = &workspace.registry;
        let file = workspace.host.path();
        // A place exists only if a file names the executor.
        let selected_by = if place.is_some() { SelectedBy::File(&file) } else { SelectedBy::Person };
        let chosen = match named {
            Some(name) => executor::by_name(registry, &workspace.host, name, place, selected_by)?,
            None => executor::fallback(registry, &workspace.host)?,
        };
        let environment = &keeping.session.environment;
        let admitted = trust::admit(environment, chosen.needs())?;
        chosen.ensure_installed()?;
        let caps = budget::configured(&workspace.host);
        chosen.ensure_enforceable(&caps)?;
        let config = chosen.into_member_config(admitted);
        let call = SingleCall {
            stream: STREAM.into(),
            ledger: keeping.session.ledger(),
            clock: keeping.session.environment.clock.clone(),
            redactor: workspace.redaction.redactor.clone(),
            caps,
            observer: Arc::new(NoopObserver),
        };
        Ok(Consultant { call, config })
    }

    pub fn name(&self) -> &str {
        &self.config.executor_name
    }

    /// Asks a question. The inner error is the reason for a missing answer.
    ///
    /// # Errors
    /// When the ledger fails.
    #[crate::boxed]
    pub async fn ask(&self, id: &str, question: Question) -> Result<Result<Json, String>, ServiceError> {
        let (step, member) = id.split_once('/').unwrap_or((id, id));
        match self.call.ask(&Name::from(id), &Name::from(member), &self.config, question).await {
            Ok(Answer { answer, .. }) => Ok(Ok(answer)),
            Err(Error::Ledger(error)) => Err(error.into()),
            Err(unanswered) => Ok(Err(format!("`{}` has no answer to {step}: {unanswered}", self.name()))),
        }
    }
}
