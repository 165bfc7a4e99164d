//! One speaker: its state, its prompt, one invocation through the executor port, and the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::answers::advice::Turn as Answer;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part, PartKind};
use serde_json::{Map, json};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{Prompt, Speaker, Swarm, TurnFailure};
use crate::attempts::{Consultation, MemberConfig, millis, no_answer_within, object};
use crate::call::{self, CallContext, Recorder};
use crate::conversation::{ConversationContext, MAX_TURN_BYTES, Turn, turn_key};
use crate::observer::RunEvent;
use crate::ports::ledger::{self, LedgerError};
use crate::ports::telemetry::EventKind;

/// The shared material of all participants that are asked about one trigger.
pub(super) struct TurnQuestion {
    pub(super) swarm: Arc<Swarm>,
    pub(super) call_context: Arc<CallContext>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) cycle: u64,
    /// The window, redacted; the trigger is its last turn.
    pub(super) window: Vec<Turn>,
    /// It, as prompts show it.
    pub(super) turns: Part,
    /// The substrate's own name for the conversation.
    pub(super) conversation: Option<String>,
    /// States that the store does not have yet.
    pub(super) unsaved_states: BTreeMap<Name, Map<String, Json>>,
}

/// The result of asking one participant.
pub(super) struct SpeakerResult {
    pub(super) participant: Name,
    pub(super) result: Result<Response, TurnFailure>,
    /// Its part of the cycle's record.
    pub(super) entries: Vec<ledger::Entry>,
    pub(super) took: Duration,
}

pub(super) struct Response {
    pub(super) content: String,
    pub(super) meta: Map<String, Json>,
    pub(super) state: Option<Map<String, Json>>,
    /// The turn, where the executor has put the answer into the conversation itself.
    pub(super) posted: Option<Name>,
}

impl SpeakerResult {
    pub(super) fn event(&self) -> EventKind {
        let participant = self.participant.clone();
        match &self.result {
            Ok(said) => EventKind::ParticipantFinished {
                participant,
                ms: millis(self.took),
                bytes: said.content.len(),
            },
            Err(TurnFailure { status, why, .. }) => {
                EventKind::ParticipantFailed { participant, status: status.clone(), error: why.clone() }
            }
        }
    }
}

impl TurnQuestion {
    /// Asks one participant.
    ///
    /// # Errors
    /// If the ledger fails. Failures of the participant are part of the result.
    pub(super) async fn ask(self: Arc<Self>, id: Name) -> Result<SpeakerResult, LedgerError> {
        let trigger = self.window.last().map(|turn| &*turn.id).unwrap_or_default();
        let span = tracing::info_span!("turn", runtime = %self.swarm.runtime, trigger, participant = %id);
        self.ask_in_span(id).instrument(span).await
    }

    async fn ask_in_span(&self, id: Name) -> Result<SpeakerResult, LedgerError> {
        let started = Instant::now();
        let failed = |why: String| {
            Ok(SpeakerResult {
                participant: id.clone(),
                result: Err(TurnFailure::failed(self.swarm.redactor.redact(&why).0)),
                entries: Vec::new(),
                took: Duration::ZERO,
            })
        };
        let Some(speaker) = self.swarm.speakers.iter().find(|one| one.participant.id == id) else {
            return failed("it is not on the roster".to_owned());
        };
        let executor = speaker.member.executor_name.to_string();
        self.swarm.emit(self.cycle, EventKind::ParticipantStarted { participant: id.clone(), executor });
        let state = match self.unsaved_states.get(&id) {
            Some(state) => state.clone(),
            None => match self.swarm.state.read(&id).await {
                Ok(state) => state,
                // A participant must not answer without its state.
                Err(error) => return failed(error.to_string()),
            },
        };
        let prompt = match speaker.prompts.prompt().await {
            Ok(prompt) => prompt,
            Err(error) => return failed(error),
        };
        let (state, in_state) = self.swarm.redactor.redact_json(Json::Object(state));
        let state = object(state);
        if let Err(why) = self.call_context.budget.reserve_call() {
            return failed(why.to_string());
        }
        let invoke = self.invoke(speaker, &state, &prompt);
        let mut member = speaker.member.clone();
        member.role = prompt.text;
        member.conversation = Some(Arc::new(ConversationContext {
            participant: speaker.participant.clone(),
            recent: self.window.clone(),
            state,
            external_id: self.conversation.clone(),
        }));
        let (swarm, cycle) = (self.swarm.clone(), self.cycle);
        let observer = Arc::new(move |event: RunEvent| {
            let line = event.wait_line();
            if let (RunEvent::Waiting { member, wait, .. }, Some(line)) = (event, line) {
                let waiting = EventKind::ParticipantWaiting { participant: member, line, ms: millis(wait) };
                swarm.emit(cycle, waiting);
            }
        });
        let context = Arc::new(CallContext { observer, ..CallContext::clone(&self.call_context) });
        let recorder = self.recorder.clone();
        let mut asked = call::call(context, recorder, invoke.clone(), member, Arc::default(), None).await?;
        asked.consultation.redactions += in_state;
        if !asked.consultation.refused_tools.is_empty() {
            let (participant, tools) = (id.clone(), asked.consultation.refused_tools.clone());
            self.swarm.emit(self.cycle, EventKind::ParticipantToolsRefused { participant, tools });
        }
        let at_ms = self.swarm.clock.now_ms();
        let mut entries: Vec<_> =
            asked.attempt.into_iter().map(|attempt| ledger::Entry::from_data(attempt, at_ms)).collect();
        let (name, about) = (&speaker.member.executor_name, speaker.member.executor.about());
        let ended = asked.consultation.clone().into_record(&invoke, name, &about, None);
        entries.push(ledger::Entry::from_data(ended, at_ms));
        Ok(SpeakerResult {
            participant: id.clone(),
            result: read_response(asked.consultation, &speaker.member),
            entries,
            took: started.elapsed(),
        })
    }

    fn invoke(&self, speaker: &Speaker, state: &Map<String, Json>, prompt: &Prompt) -> Invoke {
        let participant = &speaker.participant;
        let trigger = self.window.last();
        let trigger_id = trigger.map(|turn| &*turn.id).unwrap_or_default();
        let mut parts = vec![self.turns.clone()];
        if !state.is_empty() {
            let state = serde_json::to_string_pretty(state).unwrap_or_default();
            parts.push(Part::new(PartKind::State, "", state));
        }
        let mut task = format!("The others call you {}.", json!(participant.display_name));
        if let Some(trigger) = trigger {
            let origin = trigger.origin().map(|origin| format!(", written by {origin}")).unwrap_or_default();
            let author = json!(&*trigger.participant);
            task.push_str(&format!(" Answer the last turn, which is by {author}{origin}."));
        }
        if let Some(tools) = &participant.tools.allowed {
            match tools.is_empty() {
                true => task.push_str(" You may use no tools."),
                false => task.push_str(&format!(" The tools that you may use: {}.", tools.join(", "))),
            }
        }
        if !participant.tools.servers.is_empty() {
            let servers = participant.tools.servers.join(", ");
            task.push_str(&format!(" The MCP servers whose tools you may use: {servers}."));
        }
        let mut marks = object(json!({"trigger": trigger_id, "woven": prompt.woven_sha256}));
        marks.extend(prompt.extra_fields.clone());
        Invoke {
            id: turn_key(trigger_id, &participant.id),
            member: participant.id.clone(),
            step: "turn".into(),
            parts,
            schema: speaker.member.executor.turn_schema(),
            task: task.into(),
            extra_fields: marks,
        }
    }
}

fn read_response(ended: Consultation, member: &MemberConfig) -> Result<Response, TurnFailure> {
    let status = ended.status();
    match ended.result {
        ConsultationResult::Answered(answer) => match Answer::read(&answer) {
            Some(turn) if turn.content.len() <= MAX_TURN_BYTES => Ok(Response {
                content: turn.content,
                meta: turn.meta,
                state: turn.state,
                posted: ended.posted,
            }),
            Some(turn) => {
                let bytes = turn.content.len();
                Err(TurnFailure::failed(format!(
                    "it said {bytes} bytes; a turn has at most {MAX_TURN_BYTES}"
                )))
            }
            None => Err(TurnFailure::failed("it said nothing".to_owned())),
        },
        ConsultationResult::Absent(absent) => {
            let why = ended.message.unwrap_or_else(|| match absent {
                AbsenceReason::TimedOut => no_answer_within(member.timeout, &member.executor_name),
                AbsenceReason::RunOverBudget | AbsenceReason::OverBudget => {
                    "the budget of this run is spent".to_owned()
                }
                _ => "it did not answer".to_owned(),
            });
            Err(TurnFailure { status, why, attempts: ended.attempts })
        }
    }
}
