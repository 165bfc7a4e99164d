//! One speaker: its state, its prompt, one invocation through the executor port, and what it came to.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::answers::turn::Turn as Answer;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part, PartKind};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{Prompt, Response, Runner, Speaker, SpeakerResult, TurnContext};
use crate::call;
use crate::consultation::{Consultation, object};
use crate::conversation::{ConversationContext, MAX_TURN_BYTES, turn_key};
use crate::ports::ledger;
use crate::ports::telemetry::EventKind;
use crate::record::Status;

impl Runner {
    /// Asks one participant.
    ///
    /// # Errors
    /// When the ledger fails: that is nothing that the participant has to answer for.
    pub(super) async fn speak(&self, scene: &TurnContext, id: &Name) -> Result<SpeakerResult, ledger::Error> {
        let started = Instant::now();
        let failed = |why: String| {
            Ok(SpeakerResult {
                participant: id.clone(),
                result: Err((Status::Failed, self.swarm.redactor.redact(&why).0)),
                entries: Vec::new(),
                took: Duration::ZERO,
            })
        };
        let Some(speaker) = self.swarm.speakers.iter().find(|one| one.participant.id == *id) else {
            return failed("it is not on the roster".to_owned());
        };
        self.emit(EventKind::ParticipantStarted {
            participant: id.clone(),
            executor: speaker.member.executor_name.to_string(),
        });
        let state = match self.unsaved_states.get(id) {
            Some(state) => state.clone(),
            None => match self.swarm.state.read(id).await {
                Ok(state) => state,
                // Whoever cannot remember would say something else than it should.
                Err(error) => return failed(error.to_string()),
            },
        };
        let prompt = match speaker.prompts.prompt().await {
            Ok(prompt) => prompt,
            Err(error) => return failed(error),
        };
        let (state, in_state) = self.swarm.redactor.redact_json(Json::Object(state));
        let state = object(state);
        if !self.call_context.calls.reserve() {
            return failed("the calls of this run are spent".to_owned());
        }
        let invoke = invoke(speaker, scene, &state, &prompt);
        let mut seat = speaker.member.clone();
        seat.role = prompt.text;
        seat.conversation = Some(Arc::new(ConversationContext {
            participant: speaker.participant.clone(),
            recent: scene.window.clone(),
            state,
            external_id: scene.conversation.clone(),
        }));
        let asked = call::call(
            self.call_context.clone(),
            self.records.recorder(),
            invoke.clone(),
            seat,
            Arc::default(),
        );
        let mut asked = match asked.await? {
            call::CallEnd::Call(_, asked) => asked,
            call::CallEnd::HostCall(..) => return failed("it was not asked".to_owned()),
        };
        asked.consultation.redactions += in_state;
        let at_ms = self.swarm.clock.now_ms();
        let mut entries: Vec<_> = asked.attempt.iter().map(|attempt| attempt.entry(at_ms)).collect();
        let (name, about) = (&speaker.member.executor_name, speaker.member.executor.about());
        entries.push(asked.consultation.entry(&invoke, name, &about, None, at_ms));
        Ok(SpeakerResult {
            participant: id.clone(),
            result: read_response(asked.consultation),
            entries,
            took: started.elapsed(),
        })
    }
}

fn invoke(speaker: &Speaker, scene: &TurnContext, state: &Map<String, Json>, prompt: &Prompt) -> Invoke {
    let participant = &speaker.participant;
    let trigger = scene.window.last();
    let trigger_id = trigger.map(|turn| &*turn.id).unwrap_or_default();
    let mut parts = vec![scene.turns.clone()];
    if !state.is_empty() {
        let state = serde_json::to_string_pretty(state).unwrap_or_default();
        parts.push(Part::new(PartKind::State, "", state));
    }
    let mut task = format!("The others call you {}.", json!(participant.display_name));
    if let Some(trigger) = trigger {
        task.push_str(&format!(" Answer the last turn, which is by {}.", json!(&*trigger.participant)));
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

fn read_response(ended: Consultation) -> Result<Response, (Status, String)> {
    let status = ended.status();
    match ended.result {
        ConsultationResult::Answered(answer) => match Answer::read(&answer) {
            Some(turn) if turn.content.len() <= MAX_TURN_BYTES => Ok(Response {
                content: turn.content,
                meta: turn.meta,
                state: turn.state,
                posted: ended.posted,
            }),
            Some(turn) => Err((
                Status::Failed,
                format!("it said {} bytes; a turn has at most {MAX_TURN_BYTES}", turn.content.len()),
            )),
            None => Err((Status::Failed, "it said nothing".to_owned())),
        },
        ConsultationResult::Absent(why) => {
            Err((status, ended.message.unwrap_or_else(|| status_of(why).to_owned())))
        }
    }
}

fn status_of(why: AbsenceReason) -> &'static str {
    match why {
        AbsenceReason::TimedOut => "it did not answer in time",
        AbsenceReason::RunOverBudget | AbsenceReason::OverBudget => "the calls of this run are spent",
        _ => "it did not answer",
    }
}
