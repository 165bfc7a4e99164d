//! The plan of a run: whom it would ask.

use std::time::Duration;

use super::{NAMED, ROWS, TITLE, names, request, subject};
use crate::service::convene::plan::{DeferredQuestion, Plan, PlannedStandIns, Question};
use crate::service::estimate::SampledMember;
use crate::view::layout::truncate;
use crate::view::wording::{amount, duration, grouped, last_run};
use crate::view::{Doc, Table, Text, Tone};

impl Plan {
    /// The members asked at once, later and never, the rules, the locked traits, and every prompt as it would be sent.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let title = truncate(&self.title, TITLE);
        doc.title(Text::toned(Tone::Absent, "PLAN").and("  ").and(Text::strong(title)));
        doc.line(format!(
            "{}: {}, on {}. No member is asked now; a run begins with {}.{}",
            self.assembly,
            request(self.mode, &self.request),
            subject(&self.subject),
            amount(self.first.len() as u64, "question"),
            self.notes.iter().map(|note| format!(" {note}")).collect::<String>(),
        ));
        if !self.samples.is_empty() {
            doc.line(format!("Asked for each answer: {}.", SampledMember::list(&self.samples)));
        }
        if !self.stand_ins.is_empty() {
            let asked =
                |one: &PlannedStandIns| format!("{} for {}", one.executors.join(", then "), one.member);
            let asked: Vec<String> = self.stand_ins.iter().map(asked).collect();
            doc.line(format!("Asked only if a service fails: {}.", names(&asked, NAMED)));
        }
        if let Some(ms) = self.last_run_ms {
            doc.line(last_run(ms));
        }
        doc.heading("Asked at once");
        let row = |question: &Question| {
            let deadline = Duration::from_millis(question.timeout_ms);
            [
                Text::strong(&question.member),
                Text::from(&question.invocation),
                Text::from(&question.executor),
                duration(deadline).into(),
            ]
        };
        match self.first.is_empty() {
            true => doc.line("no members"),
            false => doc.table(
                Table::new(["member", "invocation", "executor", "deadline"])
                    .with_rows(self.first.iter().map(row)),
            ),
        }
        for (title, deferred) in [("Asked later", &self.later), ("Not asked in this run", &self.never)] {
            if !deferred.is_empty() {
                doc.heading(title);
                let groups = by_reason(deferred);
                doc.items(groups.iter().take(ROWS).map(|(members, why)| format!("{members}: {why}")));
                if groups.len() > ROWS {
                    doc.line(format!("… and {} more: `--format json` lists all.", groups.len() - ROWS));
                }
            }
        }
        if !self.rules.is_empty() {
            doc.heading("Rules, in order");
            let rules = self.rules.iter();
            doc.numbered(rules.map(|rule| Text::strong(&rule.id).and(format!(" ({})", rule.kind))));
        }
        if !self.locked_traits.is_empty() {
            doc.heading("Locked traits: no outcome may contain these");
            doc.items(self.locked_traits.iter().map(|locked| format!("“{locked}”")));
        }
        for question in &self.first {
            doc.heading(format!("Prompt of {}", question.invocation));
            match &question.prompt {
                Some(prompt) => doc.verbatim("text", prompt.trim_end()),
                None => {
                    doc.line("The host gathers what it is shown first; only then there is a prompt.");
                }
            }
        }
        doc
    }
}

/// Groups members by reason: names, and when or why not.
fn by_reason(deferred: &[DeferredQuestion]) -> Vec<(String, &str)> {
    let member = |question: &DeferredQuestion| format!("{} ({})", question.member, question.executor);
    let groups = grouped(deferred.iter().map(|question| (&*question.when, member(question))));
    groups.into_iter().map(|(when, members)| (names(&members, NAMED), when)).collect()
}
