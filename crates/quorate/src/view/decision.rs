//! An assembly's decision as a document: the outcome, its reasons, what its mode decided or said, the rules, and then
//! refusals and missing answers, which are never left out. The plan of a run shows whom it would ask.

mod diagrams;
mod hierarchy;
mod rules;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use quorate_kernel::record::Status;
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::{AssemblyRequest, describe_operators};
use serde_json::Map;

use super::layout::truncate;
use super::review::members;
use super::wording::{amount, cost, duration, list_limited, minute, status, undecided};
use super::{Doc, Entry, Extent, Medium, Table, Text, Tone};
use crate::service::convene::plan::{DeferredQuestion, Plan, Question};
use crate::service::convene::report::{
    AssemblyVerdict, Consultation, CountedVote, Decision, Fragment, Member, Message, Violation, VoteCount,
};

/// The longest shown title, in characters.
const TITLE: usize = 200;
/// The longest shown reason, concern or rationale, in characters.
const REASON: usize = 240;
/// The longest shown text of a decision, a message or a fragment, in characters.
const TEXT: usize = 4000;
/// The most members named in one sentence.
const NAMED: usize = 40;
/// The most rows of a table.
const ROWS: usize = 60;
/// The most messages shown.
const MESSAGES: usize = 150;

impl Decision {
    /// The decision for readers: the outcome, the facts of its mode, the rules, refusals, missing answers and notes;
    /// with [`Extent::Full`] also each member's executor and usage.
    pub fn doc(&self, extent: Extent) -> Doc {
        let mut doc = Doc::new();
        let title = truncate(&self.title, TITLE);
        doc.title(Text::toned(self.tone(), self.word()).and("  ").and(Text::strong(title)));
        let because = self.reason();
        if !because.is_empty() {
            doc.line(because);
        }
        doc.facts(self.facts());
        match self.mode {
            Mode::Voting => self.add_vote(&mut doc),
            Mode::Advisory => self.add_guidance(&mut doc),
            Mode::Peer => self.add_discussion(&mut doc),
            Mode::Hierarchy => doc.append(hierarchy::doc(self)),
        }
        let rules = self.rules_doc();
        if !rules.is_empty() {
            doc.heading("Rules, in order");
            doc.append(rules);
        }
        self.add_refusals(&mut doc);
        self.add_absences(&mut doc);
        self.add_notes(&mut doc);
        if extent == Extent::Full {
            doc.append(members(&self.member_usage));
        }
        let run = format!("{}{}", self.run, self.ledger_flag);
        let more = format!("More: `quorate show {run} --format markdown`, `quorate replay {run}`");
        let mut foot = Doc::new();
        foot.line(Text::faint(more));
        doc.only(Medium::Terminal, foot);
        doc
    }

    /// The verdict in upper case, or `OPEN`.
    pub fn word(&self) -> String {
        self.verdict.map_or("open", AssemblyVerdict::as_str).to_uppercase()
    }

    fn tone(&self) -> Tone {
        self.verdict.map_or(Tone::Absent, |verdict| Tone::of_word(verdict.as_str()))
    }

    /// The reason for the verdict, in a sentence or two.
    pub fn reason(&self) -> String {
        let Some(verdict) = self.verdict else { return undecided(&self.run, self.imported, self.queued) };
        if let Some(because) = &self.because {
            let code = self.code.as_deref().map_or_else(String::new, |code| format!(" ({code})"));
            return format!("{}{code}.", capital(because.trim().trim_end_matches('.')));
        }
        match self.mode {
            Mode::Voting => match &self.decision {
                Some(count) => {
                    let decided_by = self
                        .deciding_rule()
                        .map_or_else(String::new, |rule| format!("{} ({}) decides ", rule.id, rule.kind));
                    let warnings: String =
                        self.class_warnings().into_iter().map(|text| format!("{text} ")).collect();
                    format!("{warnings}{decided_by}{}: {}.", verdict.as_str(), self.ratio(count))
                }
                None => String::new(),
            },
            Mode::Advisory => {
                let ends = if self.terminal { "; a terminal rule ended the synthesis" } else { "" };
                match self.fragments.len() as u64 {
                    0 => format!("No guidance{ends}."),
                    fragments => format!("{} of guidance{ends}.", amount(fragments, "fragment")),
                }
            }
            Mode::Peer => self.discussion_end(),
            Mode::Hierarchy => match &self.rollup {
                Some(rollup) => format!("The root passes up severity {}.", rollup.severity),
                None => "The root passes up nothing.".to_owned(),
            },
        }
    }

    /// The length of a discussion, and what ended it.
    fn discussion_end(&self) -> String {
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

    /// The facts about the run, each with a label.
    pub fn facts(&self) -> Vec<(&'static str, Text)> {
        let model_note = match &self.recorded {
            Some(recorded) => format!(" ({})", recorded.to_lowercase()),
            None if self.model_asked => String::new(),
            None => " (no model was asked)".to_owned(),
        };
        let executor = if self.executor.is_empty() { "none" } else { &self.executor };
        let calls = amount(u64::from(self.calls), "call");
        let spent = format!("{executor}{model_note}, {calls}, {}{}", duration(self.took), cost(&self.usage));
        let mut mode = request(self.mode, &self.request);
        if let Some(topology) = self.topology.as_deref().filter(|_| self.mode == Mode::Peer) {
            mode.push_str(&format!(", {topology}"));
        }
        let mut facts = vec![
            ("run", format!("{}, {} UTC", self.run, minute(self.opened_ms)).into()),
            ("assembly", Text::from(&self.assembly)),
            ("mode", mode.into()),
            ("subject", subject(&self.subject).into()),
        ];
        facts.extend(self.risk_text().map(|risk| ("risk", risk)));
        if self.mode == Mode::Advisory {
            facts.push(("advice", describe_operators(&self.operators).into()));
        }
        facts.push(("executor", spent.into()));
        facts
    }

    /// The level of risk, and whether to involve a person.
    fn risk_text(&self) -> Option<Text> {
        let level = self.risk.as_ref().and_then(|risk| Some((risk.level.as_deref()?, risk.severity)));
        let is_escalated = self.should_escalate == Some(true);
        let tone = match level {
            _ if is_escalated => Tone::Bad,
            Some(("escalate", _)) => Tone::Bad,
            Some(("intervene", _)) => Tone::Fair,
            Some(("ok", _)) => Tone::Good,
            _ => Tone::Strong,
        };
        let level = level.map(|(level, severity)| format!("{level} (severity {severity})"));
        let text = match (level, is_escalated) {
            (level, true) => format!("{}; requires human attention", level.as_deref().unwrap_or("unknown")),
            (level, false) => level?,
        };
        Some(Text::toned(tone, text))
    }

    /// The tree of a hierarchy: what its root passes up, and each node's input, answer and output. Empty in other modes.
    pub fn tree_doc(&self) -> Doc {
        if self.mode == Mode::Hierarchy { hierarchy::doc(self) } else { Doc::new() }
    }

    /// The effect of each rule, in order.
    pub fn rules_doc(&self) -> Doc {
        let row = |(at, rule): (usize, rules::RuleSummary)| {
            let id = if rule.has_fired { Text::strong(&rule.id) } else { Text::from(&rule.id) };
            // The words up to the first colon, semicolon or parenthesis state the effect.
            let effect_end = rule.did.find([':', ';', '(']).unwrap_or(rule.did.len());
            let (effect, details) = rule.did.split_at(rule.did[..effect_end].trim_end().len());
            let did = Text::toned(rule.tone.unwrap_or_default(), effect).and(details);
            [Text::from(at.to_string()), id, rule.kind.into(), did]
        };
        let rows = (1..).zip(rules::summaries(self)).map(row);
        let mut doc = Doc::new();
        doc.table(Table::new(["", "rule", "kind", "what it did"]).with_rows(rows));
        doc
    }

    fn add_refusals(&self, doc: &mut Doc) {
        let entry = |violation: &Violation| {
            let mut entry = Entry::from(format!("{} {}", refused_candidate(violation), refusal(violation)));
            if let Some(excerpt) = violation.excerpt.as_deref().filter(|words| !words.trim().is_empty()) {
                entry.body.quote(truncate(excerpt, REASON));
            }
            entry
        };
        if !self.violations.is_empty() {
            doc.heading("Refused");
            doc.items(self.violations.iter().map(entry));
        }
    }

    /// Adds the members without an answer, by reason. The rounds of a discussion list them again, without reasons.
    fn add_absences(&self, doc: &mut Doc) {
        let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
        for member in &self.members {
            let unanswered = member.consultations.iter().filter(|asked| asked.status != Status::Answered);
            for asked in unanswered {
                let round = match round_of(&asked.invocation) {
                    Some(number) => format!("{}, round {number}", member.id),
                    None => member.id.clone(),
                };
                let reason = absence(asked.status.as_str(), asked.message.as_deref());
                match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, members)) => members.push(round),
                    None => by_reason.push((reason, vec![round])),
                }
            }
        }
        if !by_reason.is_empty() {
            doc.heading("No answer");
            doc.items(by_reason.iter().map(|(why, members)| format!("{}: {why}", names(members, NAMED))));
        }
    }

    /// Adds the notes, without those that repeat a refusal, and without the one on models, which the facts have.
    fn add_notes(&self, doc: &mut Doc) {
        let is_repeated = |note: &String| {
            self.violations.iter().any(|violation| {
                let of = |verb| format!("`{}` was {verb}:", violation.candidate);
                let withheld = violation.member.as_deref().zip(violation.what.as_deref());
                note.starts_with(&of("dropped"))
                    || note.starts_with(&of("withheld"))
                    || withheld.is_some_and(|(id, what)| {
                        note.starts_with(&format!("the {what} of `{id}` was withheld:"))
                    })
                    || (violation.code == "out_of_reach"
                        && violation
                            .member
                            .as_ref()
                            .is_some_and(|id| note.starts_with(&format!("a message of `{id}`"))))
            })
        };
        let notes = self.all_notes().into_iter().filter(|note| !is_repeated(note));
        let notes: Vec<String> = notes.skip(usize::from(!self.model_asked)).collect();
        if !notes.is_empty() {
            doc.heading("Notes");
            doc.items(notes);
        }
    }

    /// A line about rows that are left out; nothing if all are shown.
    fn add_more(&self, doc: &mut Doc, number: usize, noun: &str) {
        if number > 0 {
            doc.line(format!(
                "… and {}: `quorate show {} --format json` lists all.",
                amount(number as u64, noun),
                self.run
            ));
        }
    }

    fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == *id)
    }

    /// The members that were asked.
    fn asked(&self) -> Vec<&Member> {
        self.members.iter().filter(|member| !member.consultations.is_empty()).collect()
    }

    /// Adds the members that were not asked, with reasons.
    fn add_unasked(&self, doc: &mut Doc) {
        let unasked = self.members.iter().filter(|member| member.consultations.is_empty());
        let why = |member: &Member| match (self.mode, &member.phase, &member.classes) {
            (Mode::Advisory, Some(phase), _) => format!("{} (phase {phase})", member.id),
            (Mode::Advisory, None, _) => format!("{} (in no phase)", member.id),
            (Mode::Voting, _, Some(classes)) if classes.is_empty() => {
                format!("{} (votes on nothing)", member.id)
            }
            (Mode::Voting, _, Some(classes)) => format!("{} (votes on {})", member.id, classes.join("/")),
            _ => member.id.clone(),
        };
        let reasons: Vec<String> = unasked.map(why).collect();
        if !reasons.is_empty() {
            doc.line(Text::faint("not asked: ").and(names(&reasons, NAMED)));
        }
    }

    fn add_vote(&self, doc: &mut Doc) {
        let Some(count) = &self.decision else { return self.add_answers_so_far(doc) };
        if !count.contribution.is_empty() {
            doc.heading("Decided alone");
            doc.items(count.contribution.iter().take(ROWS).map(|alone| {
                let words = format!(" votes {}: {}", alone.vote, truncate(&alone.rationale, REASON));
                Text::strong(&alone.member).and(words)
            }));
        }
        let full = total_weight(count);
        if !count.votes.is_empty() && full > 0.0 {
            doc.heading("Tally");
            let needs = self.threshold();
            // The threshold is relative to the total of the ratio, the bars to the total of all sides.
            let total = count.exact.total.parse::<f64>().unwrap_or(full);
            let row = |side: Side| {
                let part =
                    needs.as_ref().filter(|_| side.word == "yes").map(|needs| needs.part * total / full);
                // The bar with the mark is one cell longer.
                let gap = if part.is_none() && needs.is_some() { " " } else { "" };
                let bar = bar(side.weight / full, part, side.tone).and(gap).and("  ").only(Medium::Terminal);
                [Text::from(side.word), bar.and(side.text)]
            };
            doc.table(Table::new(["side", "weight"]).with_rows(sides(count).into_iter().map(row)));
            let mark = needs.as_ref().map_or_else(String::new, |_| format!(" ({THRESHOLD_MARK})"));
            doc.line(Text::from(self.ratio(count)).and(Text::from(mark).only(Medium::Terminal)));
            doc.only(Medium::Markdown, diagrams::votes(self, count));
        }
        let selected = select_votes(&count.votes);
        let row = |vote: &&CountedVote| {
            let member = self.member(&vote.member);
            let answer = member.and_then(Member::answer);
            let rationale = answer.and_then(|answer| answer.get("rationale")?.as_str()).unwrap_or_default();
            let why = match &*vote.vote {
                "missing" | "cancelled" => member.map_or_else(String::new, last_status),
                _ => truncate(vote.withheld.as_deref().unwrap_or(rationale), REASON),
            };
            [
                Text::strong(&vote.member),
                member.map_or("", |member| &member.role).into(),
                truncate(&vote.weight, DIGITS).into(),
                vote_text(&vote.vote),
                why.into(),
            ]
        };
        if !selected.is_empty() {
            doc.heading("Votes");
            let headings = ["member", "role", "weight", "vote", "why"];
            doc.table(Table::new(headings).with_rows(selected.iter().map(row)));
            self.add_more(doc, count.votes.len() - selected.len(), "more vote");
        }
        self.add_unasked(doc);
        if let Some(text) = &count.text {
            doc.heading("Decision");
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            doc.passage(truncate(&lines.join("\n\n"), TEXT));
        }
    }

    /// Adds the answers of an undecided vote.
    fn add_answers_so_far(&self, doc: &mut Doc) {
        let asked = self.asked();
        if asked.is_empty() {
            return;
        }
        let answer = |answer: &Map<String, Json>| {
            let rationale = answer.get("rationale").and_then(Json::as_str).unwrap_or_default();
            Some(vote_text(answer.get("vote")?.as_str()?).and(format!(": {}", truncate(rationale, REASON))))
        };
        let row = |member: &&Member| {
            let text = member.answer().and_then(answer).unwrap_or_else(|| last_status(member).into());
            [Text::strong(&member.id), text]
        };
        doc.heading("Answers so far");
        doc.table(Table::new(["member", "answer"]).with_rows(asked.iter().take(ROWS).map(row)));
        self.add_more(doc, asked.len().saturating_sub(ROWS), "more member");
    }

    /// `2.5 of 3 = 0.833, needs 0.66`.
    fn ratio(&self, count: &VoteCount) -> String {
        let needs = self.threshold();
        let is_close = needs.as_ref().is_some_and(|needs| (needs.part - count.ratio).abs() < 0.000_5);
        let rounded = if is_close { format!("{:.6}", count.ratio) } else { format!("{:.3}", count.ratio) };
        let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
        let needs = needs.map_or_else(String::new, |needs| format!(", needs {}", needs.text));
        let is_exact = rounded.parse::<f64>() == Ok(count.ratio) && count.ratio.to_string().len() < 8;
        let equality = if is_exact { "=" } else { "≈" };
        format!("{} of {} {equality} {rounded}{needs}", count.exact.yes, count.exact.total)
    }

    fn add_guidance(&self, doc: &mut Doc) {
        if !self.fragments.is_empty() {
            doc.heading(format!("Guidance: {}", amount(self.fragments.len() as u64, "fragment")));
            doc.numbered(1, self.fragments.iter().take(ROWS).map(|fragment| self.fragment_entry(fragment)));
            self.add_more(doc, self.fragments.len().saturating_sub(ROWS), "more fragment");
        }
        doc.only(Medium::Markdown, diagrams::guidance(self));
        let asked = self.asked();
        let selected = gravest(&asked);
        let row = |member: &&Member| {
            let (severity, concern) = match Assessment::of(member) {
                Some(assessment) => {
                    let quotes = match assessment.evidence {
                        0 => String::new(),
                        some => format!(" ({})", amount(some as u64, "quote")),
                    };
                    let concern = truncate(assessment.concern, REASON) + &quotes;
                    (severity_text(assessment.severity), concern)
                }
                None => (Text::toned(Tone::Absent, status(member.status())), String::new()),
            };
            let phase = member.phase.as_deref().unwrap_or("–");
            [Text::strong(&member.id), Text::from(&member.role), phase.into(), severity, concern.into()]
        };
        if !selected.is_empty() {
            doc.heading("Members");
            let headings = ["member", "role", "phase", "severity", "concern"];
            doc.table(Table::new(headings).with_rows(selected.iter().map(row)));
            self.add_more(doc, asked.len() - selected.len(), "more member");
        }
        self.add_unasked(doc);
    }

    fn fragment_entry(&self, fragment: &Fragment) -> Entry {
        let member = self.member(&fragment.member);
        let role = member.map_or_else(String::new, |member| format!(", {}", member.role));
        let line = Text::strong(&fragment.member)
            .and(format!("{role}  severity "))
            .and(severity_text(fragment.severity))
            .and(format!("  priority {}", fragment.priority));
        let kind = self.rules.iter().find(|rule| rule.id == fragment.rule);
        let kind = kind.map_or_else(String::new, |rule| format!(" ({})", rule.kind));
        let concern = member.and_then(Assessment::of).map_or("", |assessment| assessment.concern);
        let concern = match concern.is_empty() {
            true => String::new(),
            false => format!(" on the concern “{}”", truncate(concern, REASON)),
        };
        let mut body = Doc::new();
        body.passage(truncate(&fragment.text, TEXT));
        body.facts([
            ("why", format!("rule {}{kind}{concern}", fragment.rule)),
            ("holds", self.validity(fragment)),
        ]);
        Entry { line, body }
    }

    /// The time for which a fragment holds.
    fn validity(&self, fragment: &Fragment) -> String {
        const HOUR_MS: i64 = 3_600_000;
        let Ok(expires) = fragment.expires.parse::<Timestamp>() else { return fragment.expires.clone() };
        let hours = expires.as_millisecond().saturating_sub(self.opened_ms) / HOUR_MS;
        let long = match u64::try_from(hours).unwrap_or_default() {
            hours @ 0..48 => amount(hours, "hour"),
            hours => amount(hours / 24, "day"),
        };
        format!("{long}, until {} UTC", minute(expires.as_millisecond()))
    }

    fn add_discussion(&self, doc: &mut Doc) {
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

    /// The messages by rounds, each in roster order.
    fn message_rounds(&self) -> Vec<Round<'_>> {
        let mut rounds: BTreeMap<u64, Round<'_>> = BTreeMap::new();
        let delivered: BTreeMap<(u64, &str), &Message> =
            self.messages.iter().map(|message| ((message.round, &*message.from), message)).collect();
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
        let is_kept_back = delivered.is_none() && self.verdict.is_some() && !text.trim().is_empty();
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

    /// The reason for a candidate's refusal, in a few words.
    fn refusal_of(&self, candidate: &str) -> Option<String> {
        self.violations.iter().find(|violation| violation.candidate == candidate).map(refusal)
    }
}

/// A round of a discussion.
#[derive(Default)]
struct Round<'r> {
    number: u64,
    turns: Vec<Turn<'r>>,
    /// Members that passed without a message.
    silent: Vec<&'r str>,
    /// Members without an answer, each with its status.
    absent: Vec<(&'r str, String)>,
}

impl Round<'_> {
    fn absent_by_status(&self) -> Vec<(&str, Vec<&str>)> {
        let mut by_status: Vec<(&str, Vec<&str>)> = Vec::new();
        for (member, status) in &self.absent {
            match by_status.iter_mut().find(|(word, _)| word == status) {
                Some((_, members)) => members.push(member),
                None => by_status.push((status, vec![member])),
            }
        }
        by_status
    }
}

/// A member's message in a round.
struct Turn<'r> {
    from: &'r str,
    /// `None` is every member in reach.
    to: Option<Vec<String>>,
    text: &'r str,
    objects: bool,
    passes: bool,
    /// Why it reached no member, or is not in the log.
    kept_back: Option<String>,
}

impl Turn<'_> {
    /// Whether its author objects or passes, in words.
    fn annotations(&self) -> &'static str {
        match (self.objects, self.passes) {
            (true, true) => " [objects, passes]",
            (true, false) => " [objects]",
            (false, true) => " [passes]",
            (false, false) => "",
        }
    }

    fn entry(&self) -> Entry {
        let to = match &self.to {
            None => "all".to_owned(),
            Some(ids) if ids.is_empty() => "nobody".to_owned(),
            Some(ids) => names(ids, 6),
        };
        let annotations =
            Text::toned(if self.objects { Tone::Fair } else { Tone::Faint }, self.annotations());
        let line = Text::strong(self.from).and(format!(" → {to}")).and(annotations);
        let mut body = Doc::new();
        body.passage(truncate(self.text, TEXT));
        if let Some(reason) = &self.kept_back {
            body.line(format!("× {reason}"));
        }
        Entry { line, body }
    }
}

/// A member's answer as an assessment.
struct Assessment<'r> {
    severity: u64,
    concern: &'r str,
    suggestion: &'r str,
    /// The number of quotes.
    evidence: usize,
}

impl<'r> Assessment<'r> {
    fn of(member: &'r Member) -> Option<Assessment<'r>> {
        let answer = member.answer()?;
        let text = |key: &str| answer.get(key).and_then(Json::as_str).unwrap_or_default().trim();
        Some(Assessment {
            severity: answer.get("severity")?.as_u64()?,
            concern: text("concern"),
            suggestion: text("suggestion"),
            evidence: answer.get("evidence").and_then(Json::as_array).map_or(0, Vec::len),
        })
    }
}

/// One side of a vote.
struct Side {
    /// `yes`, `no`, `abstain` or `no vote`.
    word: &'static str,
    weight: f64,
    /// The sum of its weights, and the number of its votes.
    text: String,
    tone: Tone,
}

/// The most digits of a weight.
const DIGITS: usize = 12;

/// The sides of a vote; abstentions and missing votes only if there are any.
fn sides(count: &VoteCount) -> Vec<Side> {
    let votes = |words: &[&str]| count.votes.iter().filter(|vote| words.contains(&&*vote.vote)).count();
    let all = [
        ("yes", count.yes, votes(&["yes"]), "vote", Tone::Good),
        ("no", count.no, votes(&["no"]), "vote", Tone::Bad),
        ("abstain", count.abstain, votes(&["abstain"]), "vote", Tone::Plain),
        ("no vote", count.missing, votes(&["missing", "cancelled"]), "voter", Tone::Absent),
    ];
    let shown = all.into_iter().filter(|(word, .., votes, _, _)| *votes > 0 || matches!(*word, "yes" | "no"));
    let side = |(word, weight, votes, noun, tone): (_, f64, usize, &str, _)| {
        let text = format!("{} ({})", truncate(&weight.to_string(), DIGITS), amount(votes as u64, noun));
        Side { word, weight, text, tone }
    };
    shown.map(side).collect()
}

/// The weight of all sides.
fn total_weight(count: &VoteCount) -> f64 {
    count.yes + count.no + count.abstain + count.missing
}

/// Selects from many votes: missing ones, no and abstain before yes.
fn select_votes(votes: &[CountedVote]) -> Vec<&CountedVote> {
    let order = ["missing", "no", "abstain", "cancelled"];
    let mut places: Vec<usize> = (0..votes.len()).collect();
    places.sort_by_key(|at| order.iter().position(|word| *word == votes[*at].vote).unwrap_or(order.len()));
    places.truncate(ROWS);
    places.sort_unstable();
    places.into_iter().map(|at| &votes[at]).collect()
}

/// Selects the members with the highest severity, and those without an answer, in roster order.
fn gravest<'r>(asked: &[&'r Member]) -> Vec<&'r Member> {
    let mut places: Vec<usize> = (0..asked.len()).collect();
    let severity = |at: &usize| Assessment::of(asked[*at]).map_or(u64::MAX, |assessment| assessment.severity);
    places.sort_by_key(|at| std::cmp::Reverse(severity(at)));
    places.truncate(ROWS);
    places.sort_unstable();
    places.into_iter().map(|at| asked[at]).collect()
}

fn vote_text(vote: &str) -> Text {
    let tone = match vote {
        "yes" => Tone::Good,
        "no" => Tone::Bad,
        "missing" | "cancelled" => Tone::Absent,
        _ => Tone::Plain,
    };
    Text::toned(tone, vote)
}

/// The status of a member's last question, with its message.
fn last_status(member: &Member) -> String {
    absence(member.status(), member.consultations.last().and_then(|asked| asked.message.as_deref()))
}

fn absence(word: &str, message: Option<&str>) -> String {
    match message.filter(|text| !text.trim().is_empty()) {
        Some(message) => format!("{}: {}", status(word), truncate(message, REASON)),
        None => status(word),
    }
}

/// The refused candidate, and its author.
fn refused_candidate(violation: &Violation) -> String {
    let candidate = &violation.candidate;
    match (&violation.member, &violation.what) {
        (Some(member), Some(what)) => format!("{candidate}: the {what} of {member}"),
        (Some(member), None) => format!("{candidate}, by {member}:"),
        (None, Some(what)) => format!("{candidate}: its {what}"),
        (None, None) => candidate.clone(),
    }
}

/// Why a candidate was refused.
fn refusal(violation: &Violation) -> String {
    match &*violation.code {
        "out_of_reach" => format!("{} is out of its reach", names(&violation.to, NAMED)),
        "lock_unchecked" => {
            let why = violation.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            format!("the locked traits could not be checked{why}")
        }
        _ => {
            let locked = violation.locked.as_deref().unwrap_or("?");
            let layer = violation.layer.as_deref().map_or_else(String::new, layer);
            format!("touches the locked trait “{locked}”{layer}")
        }
    }
}

/// The layer of the matcher that matched, in words.
fn layer(layer: &str) -> String {
    let seen = match layer {
        "as-given" => "as written",
        "folded" => "once characters are folded",
        "regex-folded" => "by its pattern, once characters are folded",
        "regex" => "by its pattern",
        "unmarked" => "once markup is taken out",
        "skeleton" => "once lookalikes are replaced",
        "set-apart" => "once letters set apart are put together",
        "meaning" => "by meaning",
        _ => return format!(" ({layer})"),
    };
    format!(" ({layer}: {seen})")
}

/// The round of an invocation `round<k>/<member>`.
fn round_of(invocation: &str) -> Option<u64> {
    invocation.strip_prefix("round")?.split_once('/')?.0.parse().ok()
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

fn subject(subject: &str) -> &str {
    if subject == "-" { "standard input" } else { subject }
}

/// The mode and the request.
fn request(mode: Mode, request: &AssemblyRequest) -> String {
    let details = match request {
        AssemblyRequest::Advisory { phase, trigger, sentinel_first } => {
            let sentinels = if *sentinel_first { ", sentinels first" } else { "" };
            format!(", phase {phase}, trigger {trigger}{sentinels}")
        }
        AssemblyRequest::Voting { class: Some(class) } => format!(", class {class}"),
        AssemblyRequest::Voting { class: None } => ", no class".to_owned(),
        AssemblyRequest::Peer { rounds: Some(rounds) } => {
            format!(", {} at most", amount(u64::from(*rounds), "round"))
        }
        AssemblyRequest::Peer { rounds: None } | AssemblyRequest::Hierarchy => String::new(),
    };
    format!("{}{details}", mode.as_str())
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// At most `most` names.
fn names<S: AsRef<str>>(all: &[S], most: usize) -> String {
    list_limited(&all.iter().map(AsRef::as_ref).collect::<Vec<_>>(), most)
}

const FULL: &str = "█";
const EMPTY: &str = "░";
/// Marks the share that a side needs.
const THRESHOLD_MARK: &str = "┃";
/// The cells of a side's bar.
const CELLS: usize = 28;
/// The cells of a severity's bar: one for each step.
const STEPS: usize = 10;

fn severity_tone(severity: u64) -> Tone {
    match severity {
        9.. => Tone::Bad,
        5..=8 => Tone::Fair,
        _ => Tone::Strong,
    }
}

/// A severity, on terminals with its bar: `7 ███████░░░`.
fn severity_text(severity: u64) -> Text {
    let tone = severity_tone(severity);
    let full = usize::try_from(severity).unwrap_or(STEPS).min(STEPS);
    let bar = Text::from(" ")
        .and(Text::toned(tone, FULL.repeat(full)))
        .and(Text::faint(EMPTY.repeat(STEPS - full)))
        .only(Medium::Terminal);
    Text::toned(tone, severity.to_string()).and(bar)
}

/// The bar of a side in a vote: its share, and the share that it needs, if any. A bar reaches the mark only if the side
/// reaches what it needs.
fn bar(part: f64, needs: Option<f64>, tone: Tone) -> Text {
    let threshold = needs.map(cell_of);
    let mut full = cell_of(part).max(usize::from(part > 0.0));
    if let (Some(needs), Some(threshold)) = (needs, threshold)
        && part < needs
    {
        full = full.min(threshold.saturating_sub(1));
    }
    let piece = |start: usize, end: usize| {
        let to_full = full.clamp(start, end);
        Text::toned(tone, FULL.repeat(to_full - start)).and(Text::faint(EMPTY.repeat(end - to_full)))
    };
    match threshold {
        Some(threshold) => piece(0, threshold).and(THRESHOLD_MARK).and(piece(threshold, CELLS)),
        None => piece(0, CELLS),
    }
}

/// The number of cells of a share, rounded.
fn cell_of(part: f64) -> usize {
    // NaN counts as zero; `as` saturates.
    ((part.clamp(0.0, 1.0) * CELLS as f64).round() as usize).min(CELLS)
}

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
            doc.numbered(
                1,
                self.rules.iter().map(|rule| Text::strong(&rule.id).and(format!(" ({})", rule.kind))),
            );
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
    let mut groups: Vec<(Vec<String>, &str)> = Vec::new();
    for question in deferred {
        let member = format!("{} ({})", question.member, question.executor);
        match groups.iter_mut().find(|(_, when)| *when == question.when) {
            Some((members, _)) => members.push(member),
            None => groups.push((vec![member], &question.when)),
        }
    }
    groups.into_iter().map(|(members, when)| (names(&members, NAMED), when)).collect()
}

#[cfg(test)]
mod tests;
