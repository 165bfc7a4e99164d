//! One speaker: its state, its prompt, one invocation through the executor port, and what it came to.

use std::sync::Arc;
use std::time::Duration;

use quorate_protocol::answers::turn::Turn as Answer;
use quorate_protocol::{AbsenceReason, ConsultationResult, Invoke, Json, Name, Part, PartKind};
use serde_json::{Map, json};
use tokio::time::Instant;

use super::{Prompt, Runner, Said, Scene, Speaker, Spoken};
use crate::call;
use crate::consultation::{Ended, object};
use crate::conversation::{LONGEST_TURN, Speaking, key};
use crate::ports::ledger;
use crate::ports::telemetry::What;

impl Runner {
    /// Asks one participant.
    ///
    /// # Errors
    /// When the ledger fails: that is nothing that the participant has to answer for.
    pub(super) async fn speak(&self, scene: &Scene, id: &Name) -> Result<Spoken, ledger::Error> {
        let started = Instant::now();
        let failed = |why: String| {
            Ok(Spoken {
                participant: id.clone(),
                result: Err(("failed", self.swarm.redactor.redact(&why).0)),
                entries: Vec::new(),
                took: Duration::ZERO,
            })
        };
        let Some(speaker) = self.swarm.speakers.iter().find(|one| one.participant.id == *id) else {
            return failed("it is not on the roster".to_owned());
        };
        self.emit(What::ParticipantStarted {
            participant: id.clone(),
            executor: speaker.seat.executor_name.to_string(),
        });
        let state = match self.unwritten.get(id) {
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
        if !self.table.calls.reserve() {
            return failed("the calls of this run are spent".to_owned());
        }
        let invoke = invoke(speaker, scene, &state, &prompt);
        let mut seat = speaker.seat.clone();
        seat.role = prompt.text;
        seat.speaking = Some(Arc::new(Speaking {
            participant: speaker.participant.clone(),
            recent: scene.window.clone(),
            state,
            conversation: scene.conversation.clone(),
        }));
        let asked =
            call::call(self.table.clone(), self.records.recorder(), invoke.clone(), seat, Arc::default());
        let mut asked = match asked.await? {
            call::Ended::Call(_, asked) => asked,
            call::Ended::Errand(..) => return failed("it was not asked".to_owned()),
        };
        asked.ended.redactions += in_state;
        let at_ms = self.swarm.clock.now_ms();
        let mut entries: Vec<_> = asked.attempt.iter().map(|attempt| attempt.entry(at_ms)).collect();
        let (name, about) = (&speaker.seat.executor_name, speaker.seat.executor.about());
        entries.push(asked.ended.entry(&invoke, name, &about, None, at_ms));
        Ok(Spoken { participant: id.clone(), result: said(asked.ended), entries, took: started.elapsed() })
    }
}

fn invoke(speaker: &Speaker, scene: &Scene, state: &Map<String, Json>, prompt: &Prompt) -> Invoke {
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
    let mut marks = object(json!({"trigger": trigger_id, "woven": prompt.woven}));
    marks.extend(prompt.marks.clone());
    Invoke {
        id: key(trigger_id, &participant.id),
        member: participant.id.clone(),
        step: "turn".into(),
        parts,
        schema: speaker.seat.executor.turns(),
        task: task.into(),
        extra_fields: marks,
    }
}

fn said(ended: Ended) -> Result<Said, (&'static str, String)> {
    let status = ended.status();
    match ended.result {
        ConsultationResult::Answered(answer) => match Answer::read(&answer) {
            Some(turn) if turn.content.len() <= LONGEST_TURN => {
                Ok(Said { content: turn.content, meta: turn.meta, state: turn.state, posted: ended.posted })
            }
            Some(turn) => Err((
                "failed",
                format!("it said {} bytes; a turn has at most {LONGEST_TURN}", turn.content.len()),
            )),
            None => Err(("failed", "it said nothing".to_owned())),
        },
        ConsultationResult::Absent(why) => Err((status, ended.message.unwrap_or_else(|| absent(why).to_owned()))),
    }
}

fn absent(why: AbsenceReason) -> &'static str {
    match why {
        AbsenceReason::TimedOut => "it did not answer in time",
        AbsenceReason::RunOverBudget | AbsenceReason::OverBudget => "the calls of this run are spent",
        _ => "it did not answer",
    }
}
