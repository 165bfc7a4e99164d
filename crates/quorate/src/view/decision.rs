//! An assembly's decision as a document: the outcome, its reasons, what its mode decided or said, the rules, and then
//! refusals and missing answers, which are never left out.

mod diagrams;
mod discussion;
mod hierarchy;
mod plan;
mod rules;
mod vote;

use jiff::Timestamp;
use quorate_kernel::record::Status;
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;
use quorate_protocol::assembly::{AssemblyRequest, describe_operators};

use super::layout::{one_line, truncate};
use super::review::members;
use super::wording::{
    KEPT, amount, continuation, cost, duration, grouped, list_limited, minute, status, undecided,
};
use super::{Conclusion, Doc, Entry, Extent, Table, Text, Tone};
use crate::service::convene::report::{AssemblyVerdict, Decision, Fragment, Member, Violation};

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
/// The most fragments, messages or votes on one screen.
const SCREEN_ENTRIES: usize = 8;
/// The longest text of a fragment, a message or a decision on one screen, in characters.
const SCREEN_TEXT: usize = 300;

impl Decision {
    /// The decision for readers. On a terminal [`Extent::Screen`] shows what decided and what is missing; otherwise the
    /// document also has the facts, the rules, and each member's executor and usage.
    pub fn doc(&self, extent: Extent) -> Doc {
        let calls = amount(u64::from(self.spent.calls), "call");
        let spent = format!(" · {calls} · {}{}", duration(self.spent.took), cost(&self.spent.usage));
        let title = Text::from(truncate(&self.title, TITLE)).and(" · ");
        let mut next = Doc::new();
        if let Some(command) = continuation(&self.notes) {
            next.line(format!("Next: {command}"));
        }
        if extent == Extent::Screen {
            next.line(format!("Rules and answers: `quorate show {}{} --full`", self.run, self.ledger_flag));
        }
        Doc::concluded(Conclusion {
            headline: self.headline(),
            run: title.and(Text::code(&*self.run)).and(spent),
            next,
            bodies: vec![(0, self.body(extent))],
            page: self.body(Extent::Full),
        })
    }

    /// The outcome and its reason, on one line.
    pub fn short(&self) -> String {
        format!("{}: {}: {}\n", one_line(&self.subject), self.word(), one_line(&self.reason()))
    }

    fn headline(&self) -> Text {
        let basis = if self.model_asked { "" } else { "  (no model was asked)" };
        Text::toned(self.tone(), self.word()).and(basis).and("  ").and(self.reason())
    }

    /// What decided, and then what was refused or is missing.
    fn body(&self, extent: Extent) -> Doc {
        let is_full = extent == Extent::Full;
        let mut doc = Doc::new();
        doc.begin_section();
        doc.facts(self.facts().into_iter().filter(|_| is_full));
        match self.mode {
            Mode::Voting => self.add_vote(&mut doc, extent),
            Mode::Advisory => self.add_guidance(&mut doc, extent),
            Mode::Peer => self.add_discussion(&mut doc, extent),
            Mode::Hierarchy if is_full => doc.append(hierarchy::doc(self)),
            Mode::Hierarchy => doc.append(hierarchy::root(self)),
        }
        let rules = self.rules_doc();
        if is_full && !rules.is_empty() {
            doc.heading("Rules, in order");
            doc.append(rules);
        }
        if is_full {
            doc.append(members(self.usage()));
        }
        doc.end_section();
        if let Some(risk) = self.risk_text().filter(|_| !is_full) {
            doc.line(Text::from("Risk: ").and(risk));
        }
        for violation in &self.violations {
            let refused = format!("Refused: {} {}", refused_candidate(violation), refusal(violation));
            doc.line(truncate(&refused, REASON));
            doc.passage(truncate(violation.excerpt.as_deref().unwrap_or_default(), REASON));
        }
        for (why, members) in self.absences() {
            doc.line(Text::strong(members).and(format!("  no answer: {}", truncate(&why, REASON))));
        }
        // The verdict and the next command contain these.
        let is_known = |note: &&String| note.starts_with("Partial: ") || note.starts_with(KEPT);
        for note in self.unrepeated_notes().filter(|note| !is_known(note)) {
            doc.line(truncate(note, REASON));
        }
        doc
    }

    /// The verdict in upper case, or `OPEN`.
    pub fn word(&self) -> String {
        self.verdict().map_or("open", AssemblyVerdict::as_str).to_uppercase()
    }

    fn tone(&self) -> Tone {
        self.verdict().map_or(Tone::Absent, |verdict| Tone::of_word(verdict.as_str()))
    }

    /// The reason for the verdict, in a sentence or two.
    pub fn reason(&self) -> String {
        if self.verdict().is_none() {
            return undecided(&self.run, self.imported, self.queued);
        }
        if let Some(because) = &self.outcome.because {
            let code = self.outcome.code.as_deref().map_or_else(String::new, |code| format!(" ({code})"));
            return format!("{}{code}.", capital(because.trim().trim_end_matches('.')));
        }
        match self.mode {
            Mode::Voting => match &self.decision {
                Some(count) => {
                    let warnings: String =
                        self.class_warnings().into_iter().map(|text| format!("{text} ")).collect();
                    let votes = format!("{} of {} in favour", count.exact.yes, count.exact.total);
                    warnings
                        + &match self.deciding_rule() {
                            Some(rule) => match rules::decision_reason(self, rule) {
                                Some(why) if rule.kind == "terminal" => {
                                    format!("{why} (rule {}). The votes: {votes}.", rule.id)
                                }
                                why => format!("{} (rule {}).", why.unwrap_or(votes), rule.id),
                            },
                            None => format!("{}.", self.ratio(count)),
                        }
                }
                None => String::new(),
            },
            Mode::Advisory => {
                let ends =
                    if self.terminal == Some(true) { "; a terminal rule ended the synthesis" } else { "" };
                match self.fragments.as_ref().map_or(0, Vec::len) as u64 {
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

    /// The facts about the run, each with a label.
    pub fn facts(&self) -> Vec<(&'static str, Text)> {
        let model_note = match &self.recorded {
            Some(recorded) => format!(" ({})", recorded.to_lowercase()),
            None if self.model_asked => String::new(),
            None => " (no model was asked)".to_owned(),
        };
        let executor = if self.executor.is_empty() { "none" } else { &self.executor };
        let calls = amount(u64::from(self.spent.calls), "call");
        let spent = format!(
            "{executor}{model_note}, {calls}, {}{}",
            duration(self.spent.took),
            cost(&self.spent.usage)
        );
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
            facts.push(("advice", describe_operators(self.operators.as_deref().unwrap_or_default()).into()));
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

    /// The members without an answer, by reason. The rounds of a discussion list them again, without reasons.
    fn absences(&self) -> Vec<(String, String)> {
        let unanswered = self.members.iter().flat_map(|member| {
            let asked = member.consultations.iter().filter(|asked| asked.status != Status::Answered);
            asked.map(move |asked| {
                let name = match round_of(&asked.invocation) {
                    Some(number) => format!("{}, round {number}", member.id),
                    None => member.id.clone(),
                };
                (absence(asked.status.as_str(), asked.message.as_deref()), name)
            })
        });
        grouped(unanswered).into_iter().map(|(why, members)| (why, names(&members, NAMED))).collect()
    }

    /// The notes, without those that repeat a refusal, and without the one on models, which the facts have.
    fn unrepeated_notes(&self) -> impl Iterator<Item = &String> {
        let is_repeated = move |note: &String| {
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
        self.notes.iter().filter(move |note| !is_repeated(note)).skip(usize::from(!self.model_asked))
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

    /// The reason for a candidate's refusal, in a few words.
    fn refusal_of(&self, candidate: &str) -> Option<String> {
        self.violations.iter().find(|violation| violation.candidate == candidate).map(refusal)
    }
}

impl Decision {
    fn add_guidance(&self, doc: &mut Doc, extent: Extent) {
        let fragments = self.fragments.as_deref().unwrap_or_default();
        let most = if extent == Extent::Full { ROWS } else { SCREEN_ENTRIES };
        if !fragments.is_empty() {
            if extent == Extent::Full {
                doc.heading(format!("Guidance: {}", amount(fragments.len() as u64, "fragment")));
            }
            doc.numbered(fragments.iter().take(most).map(|fragment| self.fragment_entry(fragment, extent)));
            self.add_more(doc, fragments.len().saturating_sub(most), "more fragment");
        }
        let operators = describe_operators(self.operators.as_deref().unwrap_or_default());
        if extent == Extent::Screen {
            doc.end_section();
            return doc.line(format!("Advice {operators}."));
        }
        doc.diagram(diagrams::guidance(self));
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

    fn fragment_entry(&self, fragment: &Fragment, extent: Extent) -> Entry {
        let member = self.member(&fragment.member);
        let role = member.filter(|_| extent == Extent::Full);
        let role = role.map_or_else(String::new, |member| format!(", {}", member.role));
        let line = Text::strong(&fragment.member).and(role).and("  ").and("severity ");
        let line = line.and(severity_text(fragment.severity));
        let mut body = Doc::new();
        if extent == Extent::Screen {
            body.passage(truncate(&fragment.text, SCREEN_TEXT));
            return Entry { line, body };
        }
        let kind = self.rules.iter().find(|rule| rule.id == fragment.rule);
        let kind = kind.map_or_else(String::new, |rule| format!(" ({})", rule.kind));
        let concern = member.and_then(Assessment::of).map_or("", |assessment| assessment.concern);
        let concern = match concern.is_empty() {
            true => String::new(),
            false => format!(" on the concern “{}”", truncate(concern, REASON)),
        };
        body.passage(truncate(&fragment.text, TEXT));
        body.facts([
            ("why", format!("rule {}{kind}{concern}", fragment.rule)),
            ("holds", self.validity(fragment)),
        ]);
        Entry { line: line.and(format!("  priority {}", fragment.priority)), body }
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
            let probability =
                violation.probability.map(|probability| format!(", probability {probability:.2}"));
            format!("touches the locked trait “{locked}”{layer}{}", probability.unwrap_or_default())
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

fn severity_tone(severity: u64) -> Tone {
    match severity {
        9.. => Tone::Bad,
        5..=8 => Tone::Fair,
        _ => Tone::Strong,
    }
}

fn severity_text(severity: u64) -> Text {
    Text::toned(severity_tone(severity), severity.to_string())
}

#[cfg(test)]
mod tests;
