//! A discussion: its rounds, what ended it, and what its rules made of it.

use super::rounds::Turn;
use super::{NAMED, TEXT, diagrams, names};
use crate::service::convene::report::Decision;
use crate::view::layout::truncate;
use crate::view::wording::amount;
use crate::view::{Doc, Entry, Medium, Text, Tone};

/// The most messages shown.
const MESSAGES: usize = 150;

impl Decision {
    /// The length of a discussion, and what ended it.
    pub(super) fn discussion_end(&self) -> String {
        let Some((rounds, ended_by)) = &self.rounds else { return String::new() };
        let ended = match &**ended_by {
            // No member objects any more only if every objection was answered and withdrawn.
            "no-new-objections" => match !self.objections.is_empty()
                && self.objections.iter().all(|objection| objection.taken_back && objection.answered)
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
        let objecting = match self.objecting.len() {
            0 => String::new(),
            1 => format!(" {} still objects.", self.objecting[0]),
            _ => format!(" {} still object.", names(&self.objecting, NAMED)),
        };
        let unanswered = self.objections.iter().filter(|objection| !objection.answered);
        let unanswered: Vec<&String> = unanswered.map(|objection| &objection.member).collect();
        let unanswered = match unanswered.is_empty() {
            true => String::new(),
            false => format!(" No reply reached {} after objecting.", names(&unanswered, NAMED)),
        };
        format!(
            "{}, then {ended}; {}.{objecting}{unanswered}",
            amount(*rounds, "round"),
            amount(self.messages.len() as u64, "message")
        )
    }

    pub(super) fn add_discussion(&self, doc: &mut Doc) {
        let rounds = self.message_rounds();
        doc.only(Medium::Markdown, diagrams::discussion(self, &rounds));
        let mut remaining = MESSAGES;
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
            let mut entries: Vec<Entry> = round.turns.iter().take(remaining).map(Turn::entry).collect();
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
            doc.passage(truncate(&text, TEXT));
        }
    }
}
