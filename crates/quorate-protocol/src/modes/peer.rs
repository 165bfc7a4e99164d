//! Peer: equals exchange messages in rounds. Each sees earlier messages to it or to all; no member sums up (P1 to P3).

mod exchange;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::assembly::{
    AskMember, Candidate, Completion, Effect, LockResult, Mode, OnHit, Run, RunStatus, Text,
};
use crate::answers::advice::{Message, Recipients};
use crate::answers::texts;
use crate::assembly::Setup;
use crate::rules::{self, aggregate};
use crate::{Fact, FactKind, Json, Name, Part, PartKind};
use exchange::{DeliveredMessage, Exchange, Log, Objections, Termination};

pub(super) struct Peer {
    conduct: Exchange,
    round: u32,
    /// The answers of this round, by member index.
    heard: Vec<Option<Message>>,
    log: Log,
    refused: usize,
    /// The members whose message of this round was not delivered, and the reason, which they are shown.
    refusals: BTreeMap<usize, String>,
    objections: Objections,
    /// Custom rules that are applied to the log at its end, from this one on.
    next_synthesis_rule: Option<usize>,
    ended_by: &'static str,
    synthesis: serde_json::Map<String, Json>,
}

/// The maximum number of rounds of a setup (P1).
pub fn rounds(setup: &Setup) -> u32 {
    Exchange::from_setup(setup).rounds
}

impl Peer {
    pub(super) fn new(setup: &Setup) -> Self {
        Peer {
            conduct: Exchange::from_setup(setup),
            round: 0,
            heard: Vec::new(),
            log: Log::default(),
            refused: 0,
            refusals: BTreeMap::new(),
            objections: Objections::default(),
            next_synthesis_rule: None,
            ended_by: "",
            synthesis: serde_json::Map::new(),
        }
    }

    fn next_round(&mut self, run: &Run) -> Vec<Effect> {
        self.round += 1;
        self.heard = vec![None; run.setup.members.len()];
        let step: Name = format!("round{}", self.round).into();
        let refusals = std::mem::take(&mut self.refusals);
        let transcripts = self.log.transcripts(run, &self.conduct).into_iter().enumerate();
        let ask = |(index, transcript): (usize, Option<Arc<str>>)| {
            let refusal = refusals.get(&index).map(String::as_str);
            let part = transcript.map(|text| Part { kind: PartKind::Transcript, name: "".into(), text });
            Effect::Ask(AskMember {
                id: format!("{step}/{}", run.member(index).id).into(),
                step: step.clone(),
                member_index: index,
                parts: part.into_iter().collect(),
                task: self.conduct.task_text(run, index, self.round, refusal),
                extra_fields: vec![("round", json!(self.round))],
            })
        };
        transcripts.map(ask).collect()
    }

    /// All members of the round have ended: checks their messages against reach and locks.
    fn deliver(&mut self, run: &mut Run) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (index, message) in self.heard.iter().enumerate() {
            let Some(message) = message.as_ref().filter(|message| !message.message.is_empty()) else {
                continue;
            };
            let member = &run.setup.members[index].id;
            if let Err(out_of_reach) = self.conduct.check_recipients(run, index, &message.to) {
                run.state.note(format!(
                    "a message of `{member}` in round {} was refused: it names members out of its reach",
                    self.round
                ));
                run.state.count_violation();
                self.refused += 1;
                self.refusals.insert(index, "it names members out of your reach".to_owned());
                let data = json!({
                    "candidate": self.candidate_name(member),
                    "code": "out_of_reach",
                    "member": &**member,
                    "invocation": format!("round{}/{member}", self.round),
                    "to": out_of_reach,
                });
                effects.push(Effect::Record(Fact { kind: FactKind::Violation, data }));
                continue;
            }
            let name = self.candidate_name(member).into();
            let invocation = format!("round{}/{member}", self.round).into();
            let text = Text::of_member(member, invocation, "message", &message.message);
            effects.push(Effect::Check(Candidate { name, texts: vec![text], on_hit: OnHit::Drop }));
        }
        if !effects.iter().any(|effect| matches!(effect, Effect::Check(_))) {
            effects.extend(self.close_round(run));
        }
        effects
    }

    fn candidate_name(&self, member: &str) -> String {
        format!("message/{}/{member}", self.round)
    }

    /// The round is over: another one, or the end.
    fn close_round(&mut self, run: &mut Run) -> Vec<Effect> {
        if self.heard.iter().all(Option::is_none) {
            self.ended_by = "no_answer";
            let because = format!("no member has answered in round {}", self.round);
            let mut ending = Completion::without_artifact(RunStatus::Incomplete, "no_answer", because);
            self.add_details(run, &mut ending);
            return vec![Effect::End(ending)];
        }
        // A member without output has agreed to nothing (X5).
        let all = |holds: fn(&Message) -> bool| {
            self.heard.iter().all(|message| message.as_ref().is_some_and(holds))
        };
        let ended_by = match &self.conduct.termination {
            Termination::NoNewObjections if all(|message| message.objection != Some(true)) => {
                Some(aggregate::NO_NEW_OBJECTIONS)
            }
            Termination::AllPass if all(|message| message.pass) => Some(aggregate::ALL_PASS),
            _ if self.round >= self.conduct.rounds => Some("max-rounds"),
            Termination::ByRule(kind) => {
                let input = self.log.host_rule_input(run, None, &self.heard, self.round);
                return Effect::apply(format!("round{}", self.round), &kind.as_str().into(), input);
            }
            _ => None,
        };
        match ended_by {
            Some(ended_by) => self.start_synthesis(run, ended_by),
            None => self.next_round(run),
        }
    }

    fn start_synthesis(&mut self, run: &mut Run, ended_by: &'static str) -> Vec<Effect> {
        self.ended_by = ended_by;
        self.next_synthesis_rule = Some(0);
        self.apply_synthesis_rules(run)
    }

    /// Applies the host's own rules to the log, one after the other.
    fn apply_synthesis_rules(&mut self, run: &mut Run) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some(rule) = self.next_synthesis_rule.and_then(|at| run.setup.rules.get(at)) {
            if rules::built_in(&rule.kind).is_none() {
                let input = self.log.host_rule_input(run, Some(rule), &self.heard, self.round);
                effects.extend(Effect::apply(format!("log/{}", rule.id), &rule.kind, input));
                return effects;
            }
            let members: Vec<Name> = self.log.authors(run, rule);
            effects.push(run.state.record_rule(rule, true, &members, json!({"endedBy": self.ended_by})));
            self.next_synthesis_rule = self.next_synthesis_rule.map(|at| at + 1);
        }
        effects.push(Effect::End(self.completion(run)));
        effects
    }

    fn completion(&self, run: &Run) -> Completion {
        let mut ending = match self.log.is_empty() && self.refused > 0 {
            true => {
                let because = "every message was refused";
                Completion::without_artifact(RunStatus::Refused, "all_refused", because)
            }
            false => Completion::done(),
        };
        self.add_details(run, &mut ending);
        ending
    }

    fn add_details(&self, run: &Run, ending: &mut Completion) {
        self.log.write_outcome(run, ending);
        self.objections.write_outcome(run, &self.log, &self.conduct, ending);
        ending.extra.insert("rounds".into(), json!(self.round));
        ending.extra.insert("endedBy".into(), json!(self.ended_by));
        ending.extra.insert("topology".into(), json!(self.conduct.topology_word()));
        if !self.synthesis.is_empty() {
            ending.artifact.insert("synthesis".into(), Json::Object(self.synthesis.clone()));
        }
    }
}

impl Mode for Peer {
    fn on_opened(&mut self, run: &mut Run) -> Vec<Effect> {
        self.next_round(run)
    }

    fn store_answer(&mut self, index: usize, answer: Option<&Json>) {
        self.heard[index] = answer.and_then(Message::read);
        let says = self.heard[index].as_ref().and_then(|message| message.objection);
        self.objections.update(index, self.round, says);
    }

    fn on_answer(&mut self, run: &mut Run, _: usize) -> Vec<Effect> {
        if run.all_ended() { self.deliver(run) } else { Vec::new() }
    }

    fn on_rule_result(&mut self, run: &mut Run, ticket: &str, result: Result<&Json, &str>) -> Vec<Effect> {
        let Some(id) = ticket.strip_prefix("log/") else {
            // A termination rule: one that fails leaves the end to the number of rounds.
            let ends = result.map_err(str::to_owned).and_then(is_end).unwrap_or_else(|why| {
                run.state.note(format!("the termination rule could not be applied: {why}"));
                false
            });
            return if ends { self.start_synthesis(run, "termination-rule") } else { self.next_round(run) };
        };
        let at = self.next_synthesis_rule.unwrap_or_default();
        let rule = &run.setup.rules[at];
        let name: Name = format!("synthesis/{id}").into();
        match result {
            Ok(output) => {
                self.synthesis.insert(id.to_owned(), output.clone());
                let fact = run.state.record_rule(rule, true, &[], Json::Null);
                let texts =
                    texts(output).into_iter().map(|text| Text::of_program("synthesis", text)).collect();
                vec![fact, Effect::Check(Candidate { name, texts, on_hit: OnHit::Drop })]
            }
            Err(why) => {
                run.state.note_failed_rule(id, why);
                self.next_synthesis_rule = Some(at + 1);
                let mut effects = vec![run.state.record_rule(rule, false, &[], Json::Null)];
                effects.extend(self.apply_synthesis_rules(run));
                effects
            }
        }
    }

    fn on_checked(&mut self, run: &mut Run, candidate: &Name, result: &LockResult) -> Vec<Effect> {
        if let Some(id) = candidate.strip_prefix("synthesis/") {
            if !result.is_clean() {
                self.synthesis.remove(id);
            }
            self.next_synthesis_rule = self.next_synthesis_rule.map(|at| at + 1);
            return self.apply_synthesis_rules(run);
        }
        let member = candidate.rsplit('/').next().unwrap_or_default();
        if let Some(index) = run.member_indices.get(member).copied() {
            match self.heard[index].as_ref().filter(|_| result.is_clean()) {
                Some(message) => self.log.add(DeliveredMessage {
                    round: self.round,
                    from: index,
                    to: match &message.to {
                        Recipients::All => None,
                        Recipients::Members(ids) => {
                            Some(ids.iter().filter_map(|id| run.member_indices.get(&**id)).copied().collect())
                        }
                    },
                    text: message.message.as_str().into(),
                }),
                // A locked message is not delivered (P2).
                None => {
                    self.refused += 1;
                    let said = self.heard[index].as_ref().map_or("", |message| &message.message);
                    self.refusals.insert(index, lock_refusal(run, said));
                }
            }
        }
        if run.all_checked() { self.close_round(run) } else { Vec::new() }
    }

    /// Messages delivered in earlier rounds remain; a text that was not checked against a lock stays out of the outcome.
    fn on_budget_exhausted(&mut self, run: &mut Run, mut ending: Completion) -> Completion {
        self.ended_by = "budget";
        self.add_details(run, &mut ending);
        ending
    }
}

/// Whether a custom termination rule ends the talk: `{end: true}`. Null and an absent `end` do not.
///
/// # Errors
/// A description of the value in its place.
fn is_end(output: &Json) -> Result<bool, String> {
    match (output, output.get("end")) {
        (Json::Null, _) | (Json::Object(_), None | Some(Json::Null)) => Ok(false),
        (Json::Object(_), Some(Json::Bool(ends))) => Ok(*ends),
        (other, _) => Err(format!("it says {other}, which has no boolean `end`")),
    }
}

/// Why a locked message is not delivered. A trait that was matched by text can be named.
fn lock_refusal(run: &Run, said: &str) -> String {
    match run.locks.check(said).first() {
        Some(hit) => format!("it touches `{}`, which nothing said here may touch", hit.trait_text),
        None => "it comes near to what nothing said here may touch".to_owned(),
    }
}
