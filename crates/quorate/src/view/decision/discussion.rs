//! A discussion: its rounds, what ended it, and what its rules made of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quorate_kernel::record::Status;
use quorate_protocol::Json;
use serde_json::Map;

use super::{NAMED, SCREEN_ENTRIES, SCREEN_TEXT, TEXT, diagrams, names, round_of};
use crate::service::convene::report::{Consultation, Decision, Message};
use crate::view::layout::truncate;
use crate::view::wording::{amount, grouped, status};
use crate::view::{Doc, Entry, Extent, Text, Tone};

/// The most messages shown.
const MESSAGES: usize = 150;

impl Decision {
    /// The length of a discussion, and what ended it.
    pub(super) fn discussion_end(&self) -> String {
        let outcome = &self.outcome;
        let (Some(rounds), Some(ended_by)) = (outcome.rounds, &outcome.ended_by) else {
            return String::new();
        };
        let objections = self.objections.as_deref().unwrap_or_default();
        let ended = match &**ended_by {
            // No member objects any more only if every objection was answered and withdrawn.
            "no-new-objections" => match !objections.is_empty()
                && objections.iter().all(|objection| objection.taken_back && objection.answered)
            {
                true => "no further objections",
                false => "no new objections",
            },
            "all-pass" => "everybody passes",
            "max-rounds" => "the round limit was reached",
            "termination-rule" => "the termination rule ended it",
            "no_answer" => "no member answered",
            reason => reason,
        };
        let objecting = match self.objecting.as_deref().unwrap_or_default() {
            [] => String::new(),
            [member] => format!(" {member} still objects."),
            members => format!(" {} still object.", names(members, NAMED)),
        };
        let unanswered = objections.iter().filter(|objection| !objection.answered);
        let unanswered: Vec<&String> = unanswered.map(|objection| &objection.member).collect();
        let unanswered = match unanswered.is_empty() {
            true => String::new(),
            false => format!(" No reply reached {} after objecting.", names(&unanswered, NAMED)),
        };
        format!(
            "{}, then {ended}; {}.{objecting}{unanswered}",
            amount(rounds, "round"),
            amount(self.messages.as_ref().map_or(0, Vec::len) as u64, "message")
        )
    }

    /// The rounds; on one screen the last one.
    pub(super) fn add_discussion(&self, doc: &mut Doc, extent: Extent) {
        let mut rounds = self.message_rounds();
        let (mut remaining, longest) = match extent {
            Extent::Screen => {
                rounds.drain(..rounds.len().saturating_sub(1));
                (SCREEN_ENTRIES, SCREEN_TEXT)
            }
            Extent::Full => (MESSAGES, TEXT),
        };
        doc.diagram(sequence_diagram(self, &rounds));
        for (at, round) in rounds.iter().enumerate() {
            if remaining == 0 {
                let messages = rounds[at..].iter().map(|later| later.turns.len()).sum::<usize>();
                let noun = amount(messages as u64, "message");
                doc.line(format!(
                    "… and {} with {noun}: `quorate show {} --format json` lists all.",
                    amount((rounds.len() - at) as u64, "more round"),
                    self.run
                ));
                break;
            }
            doc.heading(format!("Round {}", round.number));
            let mut entries: Vec<Entry> =
                round.turns.iter().take(remaining).map(|turn| turn.entry(longest)).collect();
            if !round.silent.is_empty() {
                entries.push(Text::faint("passed: ").and(names(&round.silent, NAMED)).into());
            }
            for (status, members) in round.absent_by_status() {
                let status = Text::toned(Tone::Absent, format!("{status}: "));
                entries.push(status.and(names(&members, NAMED)).into());
            }
            doc.items(entries);
            self.add_more(doc, round.turns.len().saturating_sub(remaining), "more message");
            remaining = remaining.saturating_sub(round.turns.len());
        }
        for (rule, synthesis) in &self.synthesis {
            doc.heading(format!("Made by {rule}"));
            let text = synthesis.as_str().map_or_else(|| synthesis.to_string(), str::to_owned);
            doc.passage(truncate(&text, longest));
        }
    }

    /// The messages by rounds, each in roster order.
    pub(super) fn message_rounds(&self) -> Vec<Round<'_>> {
        let mut rounds: BTreeMap<u64, Round<'_>> = BTreeMap::new();
        let delivered: BTreeMap<(u64, &str), &Message> = self
            .messages
            .iter()
            .flatten()
            .map(|message| ((message.round, &*message.from), message))
            .collect();
        for member in &self.members {
            // After a resume a new answer replaces the earlier one.
            let mut by_round: BTreeMap<u64, &Consultation> = BTreeMap::new();
            for asked in &member.consultations {
                by_round.extend(round_of(&asked.invocation).map(|number| (number, asked)));
            }
            for (number, asked) in by_round {
                let round = rounds.entry(number).or_insert_with(|| Round { number, ..Round::default() });
                let id = &*member.id;
                let Some(answer) = asked.answer.as_ref().filter(|_| asked.status == Status::Answered) else {
                    round.absent.push((id, status(asked.status.as_str())));
                    continue;
                };
                match self.turn(number, id, answer, delivered.get(&(number, id)).copied()) {
                    Some(turn) => round.turns.push(turn),
                    None => round.silent.push(id),
                }
            }
        }
        rounds.into_values().collect()
    }

    /// A member's message; `None` if it only passed.
    fn turn<'r>(
        &self,
        number: u64,
        id: &'r str,
        answer: &'r Map<String, Json>,
        delivered: Option<&'r Message>,
    ) -> Option<Turn<'r>> {
        let flag = |key: &str| answer.get(key).and_then(Json::as_bool).unwrap_or_default();
        let text = answer.get("message").and_then(Json::as_str).unwrap_or_default();
        let (objects, passes) = (flag("objection"), flag("pass"));
        if delivered.is_none() && text.trim().is_empty() && !objects {
            return None;
        }
        let is_kept_back = delivered.is_none() && self.verdict().is_some() && !text.trim().is_empty();
        let kept_back = is_kept_back.then(|| match self.refusal_of(&format!("message/{number}/{id}")) {
            Some(reason) => format!("refused, not delivered: {reason}"),
            None => "not in the log: no rule collects it".to_owned(),
        });
        Some(Turn {
            from: id,
            to: delivered.map_or_else(|| addressees(answer.get("addressedTo")), |message| message.to.clone()),
            text: delivered.map_or(text, |message| &message.text),
            objects,
            passes,
            kept_back,
        })
    }
}

/// A round of a discussion.
#[derive(Default)]
pub(super) struct Round<'r> {
    pub(super) number: u64,
    pub(super) turns: Vec<Turn<'r>>,
    /// Members that passed without a message.
    pub(super) silent: Vec<&'r str>,
    /// Members without an answer, each with its status.
    pub(super) absent: Vec<(&'r str, String)>,
}

impl Round<'_> {
    pub(super) fn absent_by_status(&self) -> Vec<(&str, Vec<&str>)> {
        grouped(self.absent.iter().map(|(member, status)| (&**status, *member)))
    }
}

/// A member's message in a round.
pub(super) struct Turn<'r> {
    pub(super) from: &'r str,
    /// `None` is every member in reach.
    pub(super) to: Option<Vec<String>>,
    pub(super) text: &'r str,
    pub(super) objects: bool,
    pub(super) passes: bool,
    /// Why it reached no member, or is not in the log.
    pub(super) kept_back: Option<String>,
}

impl Turn<'_> {
    /// Whether its author objects or passes, in words.
    pub(super) fn annotations(&self) -> &'static str {
        match (self.objects, self.passes) {
            (true, true) => " [objects, passes]",
            (true, false) => " [objects]",
            (false, true) => " [passes]",
            (false, false) => "",
        }
    }

    /// With at most this number of characters of its text.
    fn entry(&self, longest: usize) -> Entry {
        let to = match &self.to {
            None => "all".to_owned(),
            Some(ids) if ids.is_empty() => "nobody".to_owned(),
            Some(ids) => names(ids, 6),
        };
        let annotations =
            Text::toned(if self.objects { Tone::Fair } else { Tone::Faint }, self.annotations());
        let line = Text::strong(self.from).and(format!(" → {to}")).and(annotations);
        let mut body = Doc::new();
        body.passage(truncate(self.text, longest));
        if let Some(reason) = &self.kept_back {
            body.line(format!("× {reason}"));
        }
        Entry { line, body }
    }
}

/// The addressees in an answer; `None` is all.
fn addressees(to: Option<&Json>) -> Option<Vec<String>> {
    let ids = match to? {
        Json::String(id) => vec![id.clone()],
        Json::Array(ids) => ids.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => return None,
    };
    (!ids.iter().any(|id| id == "*")).then_some(ids)
}

/// The most messages drawn; renderers fail on much larger diagrams.
const DRAWN_MESSAGES: usize = 80;

/// Who spoke to whom in each round, as a sequence diagram.
fn sequence_diagram(decision: &Decision, rounds: &[Round<'_>]) -> String {
    if rounds.iter().all(|round| round.turns.is_empty()) {
        return String::new();
    }
    let spoke = |id: &str| rounds.iter().any(|round| round.turns.iter().any(|turn| turn.from == id));
    let mut out = "sequenceDiagram\n".to_owned();
    let mut places = BTreeMap::new();
    for member in decision.members.iter().filter(|member| spoke(&member.id)).take(diagrams::MEMBERS) {
        let at = places.len();
        places.insert(&*member.id, at);
        let _ = writeln!(out, "  participant m{at} as {}", diagrams::label(&member.id));
    }
    out.push_str("  participant all as everybody\n");
    let mut remaining = DRAWN_MESSAGES;
    for round in rounds {
        if remaining == 0 {
            break;
        }
        let _ = writeln!(out, "  Note over all: round {}", round.number);
        for turn in &round.turns {
            let Some(from) = places.get(turn.from).filter(|_| remaining > 0) else { continue };
            remaining -= 1;
            let text = diagrams::label(&format!("{} {}", turn.annotations(), turn.text));
            let to: Vec<String> = match &turn.to {
                None => vec!["all".to_owned()],
                Some(ids) => {
                    let addressees = ids.iter().filter_map(|id| places.get(&**id)).map(|at| format!("m{at}"));
                    addressees.take(diagrams::MEMBERS).collect()
                }
            };
            let to = if to.is_empty() { vec!["all".to_owned()] } else { to };
            let arrow = if turn.kept_back.is_some() { "--x" } else { "->>" };
            for to in to {
                let _ = writeln!(out, "  m{from}{arrow}{to}: {text}");
            }
        }
    }
    let all: usize = rounds.iter().map(|round| round.turns.len()).sum();
    let drawn = DRAWN_MESSAGES - remaining;
    if all > drawn {
        let _ = writeln!(out, "  Note over all: and {}", amount((all - drawn) as u64, "more message"));
    }
    out
}
