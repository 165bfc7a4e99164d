//! The `llm-router` dispatcher asks an executor who speaks next.
//!
//! `executor` names the executor (by default the default one), `model` its model; `instructions` say how to choose.
//! It sees the window and the roster and answers with ids. An unknown id, an answer in another form, or no answer
//! is an error: it is reported, and no participant is selected. An empty selection is valid. The author of the last
//! turn is not offered, and ignored if selected.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::attempts::MemberConfig;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::dispatcher::{DispatchError, Dispatcher, Input, Question, Unanswered};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_protocol::answers::{Schema, advice};
use quorate_protocol::{AbsenceReason, Json, Name, Part, PartKind};
use serde_json::{Map, json};

use super::{REENTRY, candidates, parse_block};
use crate::executor::rubric;

/// The kind that manifests name.
pub const KIND: &str = "llm-router";

const ROLE: &str = "# Router\n\nYou decide who speaks next in a conversation, and say nothing in it yourself. Choose from \
    those who can be chosen: those whose part it is to answer the last turn, and no more than it needs; usually that is \
    one. Choose nobody where the last turn calls for nobody, or where you are not sure.";
const TASK: &str = "Say who is to answer the last turn, by id.";

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, or names an unknown executor.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["executor", "model", "instructions"])?;
    let mut model_block = Map::new();
    if let Some(model) = block.text("model")? {
        model_block.insert("model".to_owned(), json!(model));
    }
    let role = match block.text("instructions")? {
        Some(instructions) => format!("{ROLE}\n\n{}", instructions.trim()),
        None => ROLE.to_owned(),
    };
    let member_config = build.executors.resolve(block.text("executor")?, model_block)?;
    Ok(Arc::new(LlmRouter { member_config, role, reentry: block.flag(REENTRY)? }))
}

struct LlmRouter {
    member_config: MemberConfig,
    role: String,
    reentry: bool,
}

#[async_trait]
impl Dispatcher for LlmRouter {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
        let candidates: Vec<&Participant> = candidates(&input, self.reentry).collect();
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            role: self.role.clone(),
            task: TASK.to_owned(),
            parts: vec![
                Part::new(PartKind::Turns, "", turns(&input).to_string()),
                Part::new(PartKind::Roster, "", roster(&candidates).to_string()),
            ],
            answer_schema: Schema::Selection,
        };
        let answer = match input.ask.ask(&self.member_config, question).await {
            Ok(answer) => answer,
            Err(unanswered) => return Err(self.unanswered(&unanswered)),
        };
        let chosen = advice::read_selection(&answer).unwrap_or_default();
        let known = |id: &String| input.participants.iter().any(|known| *known.id == **id);
        if let Some(unknown_id) = chosen.iter().find(|id| !known(id)) {
            let name = &self.member_config.executor_name;
            return Err(DispatchError(format!(
                "`{name}` names {}, who does not take part",
                json!(unknown_id)
            )));
        }
        let mut next: Vec<Name> = Vec::new();
        for id in chosen.into_iter().map(Name::from) {
            if candidates.iter().any(|participant| participant.id == id) && !next.contains(&id) {
                next.push(id);
            }
        }
        Ok(next)
    }

    fn warnings(&self, _: &[Participant]) -> Vec<String> {
        if self.member_config.executor.about().kind != rubric::KIND {
            return Vec::new();
        }
        vec![format!(
            "`{}` reads prose by rule and cannot choose who speaks; name another `executor` in the dispatcher's block",
            self.member_config.executor_name
        )]
    }
}

impl LlmRouter {
    fn unanswered(&self, unanswered: &Unanswered) -> DispatchError {
        let name = &self.member_config.executor_name;
        let mut message = match unanswered.absent {
            AbsenceReason::TimedOut => format!("`{name}` did not say in time who speaks next"),
            AbsenceReason::OverBudget | AbsenceReason::RunOverBudget => {
                format!("the budget does not allow asking `{name}` who speaks next")
            }
            AbsenceReason::SchemaFailed => format!("the answer of `{name}` does not select who speaks next"),
            AbsenceReason::Failed | AbsenceReason::Cancelled => {
                format!("`{name}` could not be asked who speaks next")
            }
        };
        message.extend(unanswered.why.iter().map(|why| format!(": {why}")));
        DispatchError(message)
    }
}

fn turns(input: &Input<'_>) -> Json {
    let turns = input.window.iter().map(|turn| {
        let mut shown =
            json!({"id": turn.id, "participant": turn.participant, "at": turn.timestamp, "content": turn.content});
        if let Some(origin) = turn.origin() {
            shown["written_by"] = json!(origin.to_string());
        }
        shown
    });
    turns.collect()
}

/// How much of a participant's role the router sees, in characters.
const MAX_ROLE_CHARS: usize = 500;

/// The participants that can be chosen, as JSON for the prompt.
fn roster(participants: &[&Participant]) -> Json {
    let entries = participants.iter().map(|participant| {
        let mut entry = Map::from_iter([
            ("id".to_owned(), json!(participant.id)),
            ("name".to_owned(), json!(participant.display_name)),
        ]);
        let role: String = participant.role.chars().take(MAX_ROLE_CHARS).collect();
        if !role.trim().is_empty() {
            entry.insert("role".to_owned(), json!(role.trim()));
        }
        let capabilities = participant.meta_texts("capabilities");
        if !capabilities.is_empty() {
            entry.insert("capabilities".to_owned(), json!(capabilities));
        }
        Json::Object(entry)
    });
    entries.collect()
}
