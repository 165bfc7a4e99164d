//! The document of a review: every problem once, then what was not judged, then the verdict and the next command.
//!
//! A terminal shows as much of each problem as the number of problems allows: with 3 of them at most 30 lines of 80
//! columns, with 10 of them 45, with more 60.

use std::collections::HashMap;
use std::collections::hash_map;
use std::fmt::Write as _;
use std::ops::Range;

use quorate_adapters::executor::rubric;
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, Leaning, issues};
use quorate_protocol::policy::Verdict;

use super::Extent;
use super::doc::{Doc, Issue, Medium, Problem, Table, Text, Tone};
use super::layout::{one_line, truncate};
use super::wording::{
    DASH, KEPT, amount, continuation, cost, digit_groups, dollars, duration, list, minute, status, undecided,
};
use crate::service::compare::Stance;
use crate::service::disk::shell_quoted;
use crate::service::member_usage::MemberUsage;
use crate::service::report::{Answer, Deliberator, Finding, Review};

/// The longest shown concession or escalation, in characters.
const MAX_REACTION_CHARS: usize = 160;
/// The longest shown reason for a missing answer, in characters.
const MAX_ABSENCE_CHARS: usize = 240;
/// The longest shown request of a member, in characters.
const MAX_REQUEST_CHARS: usize = 600;
/// The longest shown note, brief or reason on one screen, in characters.
const MAX_NOTE_CHARS: usize = 300;
/// The most members in the table of usage; the JSON of a report has all.
const MAX_MEMBERS: usize = 40;
/// The most members named together on one screen.
const MAX_NAMED: usize = 2;

/// How much a list of problems shows.
#[derive(Clone, Copy)]
struct Density {
    extent: Extent,
    /// Whether each place has its line of the text.
    has_lines: bool,
    /// The longest issue or fix, in characters.
    characters: usize,
    /// The most issues.
    issues: usize,
}

/// All details.
const FULL: Density = Density { extent: Extent::Full, has_lines: true, characters: usize::MAX, issues: 200 };
/// With the lines of the text.
const SPACIOUS: Density =
    Density { extent: Extent::Screen, has_lines: true, characters: 300, issues: SCREEN_ISSUES };
/// Without them.
const COMPACT: Density = Density { has_lines: false, characters: 160, ..SPACIOUS };
/// A line for each issue, and a line for its fix.
const TERSE: Density = Density { characters: 56, ..COMPACT };
/// The most issues on one screen.
const SCREEN_ISSUES: usize = 15;

/// The most lines of a terminal for a number of issues.
fn max_lines(issues: usize) -> usize {
    match issues {
        0..=3 => 30,
        4..=10 => 45,
        _ => 60,
    }
}

/// A deliberator's change of position between the rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The deliberator.
    pub member: String,
    /// What changed: `REVISE → SHIP, score 3 → 4, no longer blocks`.
    pub change: String,
    /// Its concessions and escalations, each with the deliberator that it names.
    pub read: Vec<(Option<String>, String)>,
}

/// The keys of an answer's reactions, and their verbs.
const REACTIONS: [(&str, &str); 2] = [("concessions", "concedes"), ("escalations", "escalates")];

impl Review {
    /// The review as people read it.
    pub fn doc(&self, extent: Extent) -> Doc {
        let places = places(self);
        let most = max_lines(count(&places));
        let body = |density| self.body(&places, density);
        let (bodies, page) = match extent {
            Extent::Full => (vec![(0, body(FULL))], body(FULL)),
            Extent::Screen => {
                (vec![(most, body(SPACIOUS)), (most, body(COMPACT)), (most, body(TERSE))], body(SPACIOUS))
            }
        };
        let mut doc = Doc::new();
        doc.concluded(&self.headline(), bodies, &self.end(extent));
        let mut headed = Doc::new();
        headed.title(self.headline());
        headed.line(self.run_text());
        headed.append(self.person());
        headed.append(page);
        doc.only(Medium::Markdown, headed.clone());
        doc.only(Medium::Html, headed);
        doc
    }

    /// The verdict, and its reason in plain words; without a model, the basis of the answers comes first.
    fn headline(&self) -> Text {
        let tone = match self.verdict.map(|verdict| Tone::of_word(verdict.as_str())) {
            // Green would suggest that a model approved of the text.
            Some(Tone::Good) if !self.model_asked || self.blocks() > 0 => Tone::Fair,
            tone => tone.unwrap_or(Tone::Absent),
        };
        let basis = match &self.recorded {
            Some(recorded) => format!("  ({})", recorded.to_lowercase()),
            None if self.model_asked => String::new(),
            None => format!("  ({}: content not judged)", self.kind),
        };
        Text::toned(tone, self.verdict_word()).and(basis).and("  ").and(self.answer())
    }

    /// The reason of the verdict in plain words: the reviewers who object, and whether an edit can help.
    pub fn answer(&self) -> String {
        if let Some(reason) = &self.unjudged {
            return reason.clone();
        }
        let Some(verdict) = self.verdict.filter(|verdict| *verdict != Verdict::Incomplete) else {
            return match self.because.is_empty() {
                true => undecided(&self.run, self.imported, self.queued),
                false => self.because.replace("deliberators", "reviewers"),
            };
        };
        let blocking: Vec<&Deliberator> = self.deliberators.iter().filter(|one| one.blocks).collect();
        let is_final = |one: &&&Deliberator| counted(self, one).is_some_and(|answer| answer.irreducible);
        let (blocks, finals) = (blocking.len(), blocking.iter().filter(is_final).count());
        let answered = self.deliberators.iter().filter(|one| one.counted != "missing").count();
        let all = match self.missing.is_empty() {
            true => format!("{} reviewers", self.deliberators.len()),
            false => format!("the {answered} who answered"),
        };
        let missing = self.missing.iter().map(String::as_str).collect::<Vec<_>>();
        let missing = match missing[..] {
            [] => String::new(),
            _ => format!(" No answer from {}.", list(&missing)),
        };
        let names: Vec<&str> = blocking.iter().map(|one| &*one.id).collect();
        let names = if blocks > MAX_NAMED { String::new() } else { format!(" ({})", list(&names)) };
        let object = if blocks == 1 { "objects" } else { "object" };
        let objections = format!("{blocks} of {all} {object}{names}");
        let answer = match verdict {
            Verdict::Ship if blocks == 0 => match count(&places(self)) {
                0 => format!("0 of {all} object."),
                issues => format!("0 of {all} object; {}.", amount(issues as u64, "suggestion")),
            },
            Verdict::Ship => format!("{objections}; the policy lets it pass."),
            // Something else than a block decided, such as a row of the council's policy.
            _ if blocks == 0 => return self.because.clone(),
            _ if finals == 0 => format!("{objections}. Fixable."),
            _ if finals == blocks && blocks == 1 => {
                format!("{objections}, and says that no edit repairs it.")
            }
            _ if finals == blocks => format!("{objections}, and say that no edit repairs it."),
            _ => format!("{objections}; {finals} of them say that no edit repairs it."),
        };
        answer + &missing
    }

    /// The problems of the text by place, those that block first.
    pub fn problems(&self) -> Vec<Problem> {
        places(self).iter().map(|place| place.problem(self, FULL, usize::MAX)).collect()
    }

    /// The deliberators whose position changed after they read each other's first answers.
    pub fn moves(&self) -> Vec<Move> {
        let names = |text: &String| {
            let named = self.deliberators.iter().find(|one| text.contains(&*one.id));
            (named.map(|one| one.id.clone()), truncate(text, MAX_REACTION_CHARS))
        };
        let moved = |one: &Deliberator| {
            let [first, second] = one.stances(self.rounds);
            let change = position_changes(&first.read?, &second.read?).join(", ");
            let read = REACTIONS.iter().flat_map(|(key, _)| reactions_of(&one.round2, key));
            let read = read.map(|text| names(&text)).collect();
            (!change.is_empty()).then(|| Move { member: one.id.clone(), change, read })
        };
        self.deliberators.iter().filter_map(moved).collect()
    }

    /// The text, the run and its cost.
    fn run_text(&self) -> Text {
        let calls = amount(self.spent.calls.into(), "call");
        let spent = format!(" · {calls} · {}{}", duration(self.spent.took), cost(&self.spent.usage));
        Text::code(&*self.artifact).and(" · ").and(Text::code(&*self.run)).and(spent)
    }

    /// The verdict with the run, a person's decision, and the next command.
    fn end(&self, extent: Extent) -> Doc {
        let mut doc = Doc::new();
        doc.split(self.headline(), self.run_text());
        doc.append(self.person());
        let (run, file) = (format!("{}{}", self.run, self.ledger_flag()), shell_quoted(&self.artifact));
        let is_file = self.artifact != "-";
        let all = match extent {
            Extent::Screen => Some(format!("`quorate show {run} --full` shows every answer.")),
            Extent::Full => None,
        };
        let next = match self.verdict {
            _ if self.unjudged.is_some() && is_file => {
                Some(format!("`quorate review {file} --executor anthropic` asks a model."))
            }
            // The reason names the command.
            None => None,
            Some(Verdict::Incomplete) => continuation(&self.notes).map(str::to_owned),
            Some(Verdict::Revise | Verdict::Hold) if is_file => {
                Some(format!("edit {file} and review it again."))
            }
            _ => None,
        };
        let next = [next, all].into_iter().flatten().collect::<Vec<_>>();
        if !next.is_empty() {
            doc.line(format!("Next: {}", next.join(" ")));
        }
        doc
    }

    /// The decision of a person.
    fn person(&self) -> Doc {
        let mut doc = Doc::new();
        if let Some(decision) = &self.overridden {
            let verdict = Text::toned(Tone::of_word(&decision.verdict), &*decision.verdict);
            let text = Text::from(format!("{} decided ", decision.by)).and(verdict);
            doc.line(text.and(format!(": {}", decision.reason)));
        }
        doc
    }

    /// The facts about the run, each with a label.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut kind = format!("{}, tier {}", self.artifact_type, self.tier);
        if self.prior_verdicts_consulted > 0 {
            let priors = amount(self.prior_verdicts_consulted, "earlier verdict");
            kind.push_str(&format!(", {priors} consulted"));
        }
        let mut facts = vec![
            ("decided by", self.rule.clone()),
            ("run", format!("{}, {} UTC", self.run, minute(self.opened_ms))),
            ("type", kind),
            ("executor", self.executor.clone()),
        ];
        if let Some(location) = &self.ledger {
            let council = self.council.as_deref().unwrap_or("built-in");
            facts.push(("council", format!("{council}; ledger {}", location.shown)));
        }
        facts
    }

    fn ledger_flag(&self) -> &str {
        self.ledger.as_ref().map_or("", |location| &location.flag)
    }

    /// The problems, in full the details, and then what the verdict does not cover.
    fn body(&self, places: &[Place<'_>], density: Density) -> Doc {
        let mut doc = Doc::new();
        let mut left = density.issues;
        for place in places {
            let shown = place.points.len().min(left);
            if shown > 0 {
                doc.problem(place.problem(self, density, shown));
            }
            left -= shown;
        }
        let more = count(places) - (density.issues - left);
        if more > 0 {
            let option = if density.extent == Extent::Full { "--format json" } else { "--full" };
            let more = amount(more as u64, "more issue");
            let run = format!("{}{}", self.run, self.ledger_flag());
            doc.line(format!("… and {more}: `quorate show {run} {option}` shows all."));
        }
        let brief = self.revision_brief.as_deref().unwrap_or_default();
        match density.extent {
            Extent::Full => doc.append(self.details()),
            Extent::Screen if places.is_empty() => doc.prose(truncate(brief, MAX_NOTE_CHARS)),
            Extent::Screen => {}
        }
        doc.end_section();
        for line in self.limits() {
            doc.line(line);
        }
        doc
    }

    /// A line for each reviewers' position, for the built-in rubric, for each missing answer, and for each note.
    fn limits(&self) -> Vec<Text> {
        let mut lines: Vec<Text> = Vec::new();
        lines.extend(self.positions_line().map(Text::from));
        let is_rubric = self.kind == rubric::KIND && !self.model_asked && self.recorded.is_none();
        if is_rubric && self.unjudged.is_none() {
            lines.push(RUBRIC_NOTE.into());
        }
        if self.unjudged.is_none() {
            let absences = absences(self).into_iter();
            lines.extend(
                absences.map(|(members, why)| Text::strong(members).and(format!("  no answer: {why}"))),
            );
        }
        let is_shown = |note: &&String| !REPEATED_NOTES.iter().any(|known| note.starts_with(known));
        // The headline says that answers were recorded.
        let known = is_rubric || (self.recorded.is_some() && !self.model_asked);
        let notes = self.notes.iter().skip(usize::from(known)).filter(is_shown);
        lines.extend(notes.map(|note| Text::from(truncate(note, MAX_NOTE_CHARS))));
        lines
    }

    /// The counted positions: `evidence (2) blocks; strategy (4) and skeptic (4) would ship it.`
    fn positions_line(&self) -> Option<String> {
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for one in &self.deliberators {
            let Some(position) = counted(self, one) else { continue };
            let does = match (position.would_block, position.verdict) {
                (true, _) => "block",
                (false, Some(Leaning::Revise)) => "would revise it",
                (false, Some(Leaning::Hold)) => "would hold it",
                (false, _) => "would ship it",
            };
            let grade = position.score.map_or_else(String::new, |grade| format!(" ({})", score(grade)));
            let name = format!("{}{grade}", one.id);
            match groups.iter_mut().find(|(known, _)| *known == does) {
                Some((_, names)) => names.push(name),
                None => groups.push((does, vec![name])),
            }
        }
        groups.sort_by_key(|(does, _)| *does != "block");
        let group = |(does, names): &(&str, Vec<String>)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let ending = if *does == "block" && names.len() == 1 { "s" } else { "" };
            format!("{} {does}{ending}", list(&names))
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        (!groups.is_empty()).then(|| format!("{}.", groups.join("; ")))
    }

    /// All answers, what changed between the rounds, and the adjudicator's words.
    fn details(&self) -> Doc {
        let mut doc = Doc::new();
        doc.begin_section();
        doc.facts(self.facts());
        let rows = self.deliberators.iter().map(|deliberator| row(self, deliberator));
        doc.table(Table::new(headings(self.rounds).iter().copied()).with_rows(rows));
        doc.items(reactions(self).into_iter().map(|(member, remark)| format!("{member}: {remark}")));
        if self.reasoning != self.because {
            titled(&mut doc, "Reasoning", Some(&self.reasoning));
        }
        let requests = member_requests(self);
        if !requests.is_empty() {
            doc.heading("What each asks for");
            doc.items(requests.into_iter().map(|(member, text)| format!("{member}: {text}")));
        }
        titled(&mut doc, "Revision brief", self.revision_brief.as_deref());
        titled(&mut doc, "Dissent", self.dissent_summary.as_deref());
        doc.append(members(self.usage()));
        doc
    }

    /// A line for each issue, at most `most`, as linters print them: `path:line:column: severity: issue (members)`. The
    /// last line is the verdict, with the number of further issues.
    pub fn short(&self, most: usize) -> String {
        let mut out = String::new();
        let file = one_line(&self.artifact);
        let places = places(self);
        let issues = || places.iter().flat_map(|place| place.points.iter().map(move |point| (place, point)));
        for (place, point) in issues().take(most) {
            let at = place.at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
            let severity = if point.blocking(self).is_empty() { "note" } else { "block" };
            let _ = writeln!(out, "{file}{at}: {severity}: {} ({})", bare(&point.issue), list(&point.by));
        }
        let more = match issues().count().saturating_sub(most) {
            0 => String::new(),
            more => format!(" (+{more} more)"),
        };
        let _ = writeln!(out, "{file}: {}: {}{more}", self.verdict_word(), one_line(&self.answer()));
        out
    }

    /// The reason in a few words: the first issue with the number of others (`3:1 no source (+2 more)`), the number of
    /// suggestions, or why there is no verdict.
    pub(crate) fn short_reason(&self) -> String {
        let places = places(self);
        let first = places.first().and_then(|place| Some((place.at, place.points.first()?)));
        match (self.verdict, first) {
            (Some(Verdict::Ship), None) => String::new(),
            (Some(Verdict::Ship), _) => amount(count(&places) as u64, "suggestion"),
            (Some(Verdict::Revise | Verdict::Hold), Some((at, point))) => {
                let at = at.map_or_else(String::new, |(line, column)| format!("{line}:{column} "));
                let more = match count(&places) - 1 {
                    0 => String::new(),
                    more => format!(" (+{more} more)"),
                };
                format!("{at}{}{more}", truncate(bare(&point.issue), MAX_NOTE_CHARS))
            }
            _ => self.answer(),
        }
    }
}

/// The limits of the built-in rubric.
const RUBRIC_NOTE: &str =
    "No model was asked: the built-in rubric checks how a text is written, not whether it is true.";
/// The beginnings of notes whose content a document has already.
const REPEATED_NOTES: [&str; 2] = ["Partial: ", KEPT];

/// A sentence without its period, for the middle of a line.
fn bare(sentence: &str) -> &str {
    sentence.strip_suffix('.').unwrap_or(sentence)
}

fn titled(doc: &mut Doc, title: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        doc.heading(title);
        doc.prose(text);
    }
}

fn headings(rounds: u8) -> &'static [&'static str] {
    match rounds {
        1 => &["deliberator", "round 1", "score", "block", "irreducible"],
        _ => &["deliberator", "round 1", "round 2", "score", "block", "irreducible", "what changed"],
    }
}

/// A deliberator's cells, one for each heading.
fn row(review: &Review, deliberator: &Deliberator) -> Vec<Text> {
    let [first, second] = deliberator.stances(review.rounds);
    let mut cells = vec![Text::strong(&*deliberator.id), answer_cell(&first)];
    if review.rounds > 1 {
        cells.push(answer_cell(&second));
    }
    let counted = counted(review, deliberator);
    let grade = counted.as_ref().and_then(|position| position.score);
    cells.push(grade.map_or_else(|| DASH.to_owned(), score).into());
    let block = flag(counted.as_ref().map(|position| position.would_block));
    cells.push(if deliberator.ungrounded { block.and(", ungrounded") } else { block });
    cells.push(flag(counted.map(|position| position.irreducible)));
    if review.rounds > 1 {
        cells.push(changes(deliberator, &first, &second).join("; ").into());
    }
    cells
}

/// The answer of a deliberator that counts; the last one while the run is undecided.
fn counted(review: &Review, deliberator: &Deliberator) -> Option<Position> {
    let [first, second] = deliberator.stances(review.rounds);
    match &*deliberator.counted {
        "missing" => None,
        "round1" | "round1_block" => first.read,
        "round2" => second.read,
        _ => second.read.or(first.read),
    }
}

/// Whether the counted answer of a deliberator is a block.
fn blocks(review: &Review, member: &str) -> bool {
    review.deliberators.iter().any(|deliberator| deliberator.blocks && deliberator.id == member)
}

/// The first concession and the first escalation of each deliberator, and the number of further ones.
fn reactions(review: &Review) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for deliberator in &review.deliberators {
        for (key, verb) in REACTIONS {
            let reactions = reactions_of(&deliberator.round2, key);
            let Some(first) = reactions.first() else { continue };
            let more = match reactions.len() {
                1 => String::new(),
                several => format!(" (and {} more)", several - 1),
            };
            let text = format!("{}{more}", truncate(first, MAX_REACTION_CHARS));
            all.push((format!("{} {verb}", deliberator.id), text));
        }
    }
    all
}

/// The reasons of missing answers that say more than the status. A reason that several share is listed once.
fn absences(review: &Review) -> Vec<(String, String)> {
    let mut all: Vec<(Vec<String>, String)> = Vec::new();
    let mut note = |name: String, answer: &Answer| {
        let message = answer.message.as_deref().map(one_line).filter(|message| !message.is_empty());
        if let Some(message) = message.filter(|_| answer.status != "answered") {
            let reason = format!("{}: {}", status(&answer.status), truncate(&message, MAX_ABSENCE_CHARS));
            match all.iter_mut().find(|(_, known)| *known == reason) {
                Some((names, _)) => names.push(name),
                None => all.push((vec![name], reason)),
            }
        }
    };
    for deliberator in &review.deliberators {
        note(format!("{}, round 1", deliberator.id), &deliberator.round1);
        note(format!("{}, round 2", deliberator.id), &deliberator.round2);
    }
    note("adjudicator".to_owned(), &review.adjudicator.given);
    let joined = |names: Vec<String>| list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    all.into_iter().map(|(names, reason)| (joined(names), reason)).collect()
}

/// What a deliberator changed from the first of two rounds to the second.
fn changes(deliberator: &Deliberator, first: &Stance, second: &Stance) -> Vec<String> {
    match (&*deliberator.counted, &first.read, &second.read) {
        ("missing", ..) => vec!["missing".to_owned()],
        ("round1_block", ..) => vec!["counted by its round-1 block".to_owned()],
        (_, Some(first), Some(second)) => {
            let mut changes = position_changes(first, second);
            for (key, verb) in REACTIONS {
                let count = reactions_of(&deliberator.round2, key).len();
                changes.extend((count > 0).then(|| format!("{verb} {count}")));
            }
            if changes.is_empty() { vec!["nothing".to_owned()] } else { changes }
        }
        (_, None, Some(_)) => vec!["answered in round 2 alone".to_owned()],
        _ => vec![DASH.to_owned()],
    }
}

fn position_changes(first: &Position, second: &Position) -> Vec<String> {
    let mut changes = Vec::new();
    if let (Some(before), Some(after)) = (first.verdict, second.verdict)
        && before != after
    {
        changes.push(format!("{} → {}", before.as_str(), after.as_str()));
    }
    if let (Some(before), Some(after)) = (first.score.map(score), second.score.map(score))
        && before != after
    {
        changes.push(format!("score {before} → {after}"));
    }
    match (first.would_block, second.would_block) {
        (false, true) => changes.push("now blocks".to_owned()),
        (true, false) => changes.push("no longer blocks".to_owned()),
        _ => {}
    }
    match (first.irreducible, second.irreducible) {
        (false, true) => changes.push("now irreducible".to_owned()),
        (true, false) if second.would_block => changes.push("no longer irreducible".to_owned()),
        _ => {}
    }
    changes
}

/// A member's reactions to the others' first answers.
fn reactions_of(answer: &Answer, key: &str) -> Vec<String> {
    let all = match answer.field(key) {
        None => Vec::new(),
        Some(Json::Array(all)) => all.iter().map(gist).collect(),
        Some(single) => vec![gist(single)],
    };
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

/// A string, or the first string of an object.
fn gist(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => one_line(text),
        Json::Object(object) => object.values().find_map(Json::as_str).map(one_line).unwrap_or_default(),
        value => one_line(&value.to_string()),
    }
}

fn answer_cell(stance: &Stance) -> Text {
    match &stance.read {
        None if matches!(&*stance.status, "not_asked" | "") => DASH.into(),
        None => Text::toned(Tone::Absent, status(&stance.status)),
        Some(Position { verdict: Some(lean), .. }) => {
            Text::toned(Tone::of_word(lean.as_str()), stance.words())
        }
        Some(_) => stance.words().into(),
    }
}

fn flag(flag: Option<bool>) -> Text {
    match flag {
        None => DASH.into(),
        Some(true) => Text::toned(Tone::Bad, "yes"),
        Some(false) => "no".into(),
    }
}

fn score(score: f64) -> String {
    format!("{score:.1}").trim_end_matches(".0").to_owned()
}

/// A heading, and a member's text below it.
type Column = (&'static str, fn(&MemberUsage) -> String);

/// Each member's executor and usage; empty if no member was asked.
pub fn members<'r>(members: impl IntoIterator<Item = &'r MemberUsage>) -> Doc {
    let members: Vec<&MemberUsage> = members.into_iter().collect();
    let mut doc = Doc::new();
    let columns: [Column; 9] = [
        ("member", |one| one.member.clone()),
        ("through", |one| match &one.stand_in_for {
            Some(own) => format!("{} (for {own})", one.executor),
            None => one.executor.clone(),
        }),
        ("model", |one| {
            let asked = one.requested_model.as_ref().map(|asked| format!(" (asked for {asked})"));
            format!("{}{}", one.model.as_deref().unwrap_or_default(), asked.unwrap_or_default())
        }),
        ("calls", |one| digit_groups(one.spent.calls.into())),
        ("tokens in", |one| tokens_text(one.spent.usage.tokens_in)),
        ("cached", |one| tokens_text(one.spent.usage.tokens_cached)),
        ("out", |one| tokens_text(one.spent.usage.tokens_out)),
        ("US$", |one| one.spent.usage.money.map_or_else(String::new, dollars)),
        ("time", |one| duration(one.spent.took)),
    ];
    let rows = members.iter().take(MAX_MEMBERS).map(|one| columns.map(|(_, cell)| cell(one)));
    let table = Table::new(columns.map(|(heading, _)| heading)).with_rows(rows).filled();
    if !table.is_empty() {
        doc.heading("Who was asked");
        doc.table(table);
    }
    doc.items(members.iter().take(MAX_MEMBERS).filter_map(|one| stand_in(one)));
    if let more @ 1.. = members.len().saturating_sub(MAX_MEMBERS) {
        doc.line(format!("… and {}.", amount(more as u64, "more member")));
    }
    doc
}

/// The executors that a member's stand-in stands in for, with the reasons.
fn stand_in(one: &MemberUsage) -> Option<String> {
    let own = one.stand_in_for.as_ref()?;
    let tried = one.tried.iter().map(|tried| match *tried.executor == **own {
        true => tried.message.clone(),
        false => format!("{}: {}", tried.executor, tried.message),
    });
    let why = tried.collect::<Vec<_>>().join("; ");
    let answered = if one.is_answered { "answered by" } else { "no answer from" };
    Some(format!("{}: {answered} {}, standing in for {own}: {why}", one.member, one.executor))
}

/// Empty if it is unknown.
fn tokens_text(tokens: Option<u64>) -> String {
    tokens.map_or_else(String::new, digit_groups)
}

/// What each member asks for besides findings: member and request, in roster order. Rubric answers repeat their
/// findings, so they have none.
fn member_requests(review: &Review) -> Vec<(String, String)> {
    if review.is_by_rule() {
        return Vec::new();
    }
    review.deliberators.iter().flat_map(|deliberator| requests_of(review, deliberator)).collect()
}

fn requests_of(review: &Review, deliberator: &Deliberator) -> Vec<(String, String)> {
    // A text of the first answer is shown only if the second answer has none.
    let answers = [&deliberator.round2, &deliberator.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| text_field(answer, key));
    let brief = text("revision_brief").filter(|brief| {
        review.revision_brief.as_deref().is_none_or(|of_review| !one_line(of_review).contains(&**brief))
    });
    let listed = answers.into_iter().map(listed_issues).find(|all| !all.is_empty()).unwrap_or_default();
    let member = &deliberator.id;
    let mut all = Vec::new();
    all.extend(brief.map(|brief| (member.clone(), brief)));
    all.extend(listed.into_iter().map(|issue| (format!("{member}, issue"), issue)));
    all.extend(text("notes").map(|notes| (format!("{member}, notes"), notes)));
    all.into_iter().map(|(member, text)| (member, truncate(&text, MAX_REQUEST_CHARS))).collect()
}

fn text_field(answer: &Answer, key: &str) -> Option<String> {
    answer.field(key).and_then(Json::as_str).map(one_line).filter(|text| !text.is_empty())
}

fn listed_issues(answer: &Answer) -> Vec<String> {
    let answer = answer.answer.clone().map(Json::Object);
    answer.iter().flat_map(issues).map(|issue| one_line(&issue)).collect()
}

/// The longest quote of a phrase, in bytes; a longer one is a passage, which may contain phrases of findings on other
/// matters.
const MAX_PHRASE_BYTES: usize = 160;

/// A place, and the points about it.
struct Place<'r> {
    /// Byte offsets; `None` if the quote does not occur in the text.
    span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    at: Option<(u64, u64)>,
    /// The words, on one line; the longest of several quotes.
    quote: String,
    /// Without duplicates.
    points: Vec<Point<'r>>,
}

/// An issue with its fix, each on one line.
struct Point<'r> {
    /// The members that raised it.
    by: Vec<&'r str>,
    issue: String,
    fix: Option<String>,
}

/// The number of all issues.
fn count(places: &[Place<'_>]) -> usize {
    places.iter().map(|place| place.points.len()).sum()
}

/// The findings by place, those of blocking members first, then in the order of the text, then those without a place.
/// Findings of several members about the same words are one place with all of their points.
fn places(review: &Review) -> Vec<Place<'_>> {
    let (grounded, floating): (Vec<_>, Vec<_>) =
        review.findings.iter().partition(|finding| finding.span.is_some());
    let mut places = by_place(grounded);
    places.extend(by_words(floating));
    let position =
        |member: &&str| review.deliberators.iter().position(|deliberator| deliberator.id == **member);
    let is_note = |point: &Point<'_>| point.blocking(review).is_empty();
    for point in places.iter_mut().flat_map(|place| &mut place.points) {
        point.by.sort_by_key(position);
    }
    for place in &mut places {
        place.points.sort_by_key(|point| (is_note(point), std::cmp::Reverse(point.by.len())));
    }
    places.sort_by_key(|place| place.points.iter().all(is_note));
    places
}

/// Groups findings whose quotes occur in the text, in its order.
fn by_place(mut findings: Vec<&Finding>) -> Vec<Place<'_>> {
    findings.sort_by_key(|finding| finding.span);
    let mut places: Vec<Place<'_>> = Vec::new();
    // Places that a later finding can still overlap: those that end behind its start.
    let mut open: Vec<usize> = Vec::new();
    for finding in findings {
        let start = finding.span.map_or(0, |(start, _)| start);
        open.retain(|at| places[*at].span.as_ref().is_some_and(|span| span.end > start));
        let overlapping = open.iter().rev().find(|at| overlaps(places[**at].span.as_ref(), finding.span));
        match overlapping {
            Some(at) => places[*at].add(finding),
            None => {
                open.push(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Groups findings whose quotes do not occur in the text, by their words.
fn by_words(findings: Vec<&Finding>) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    let mut index_by_words: HashMap<String, usize> = HashMap::new();
    for finding in findings {
        match index_by_words.entry(one_line(&finding.quote)) {
            hash_map::Entry::Occupied(at) => places[*at.get()].add(finding),
            hash_map::Entry::Vacant(new) => {
                new.insert(places.len());
                places.push(Place::new(finding));
            }
        }
    }
    places
}

/// Whether a finding is about the words of a place: they overlap, and if one is a passage, by at least half of it.
fn overlaps(place: Option<&Range<usize>>, span: Option<(usize, usize)>) -> bool {
    let (Some(place), Some((start, end))) = (place, span) else { return false };
    let shared = place.end.min(end).saturating_sub(place.start.max(start));
    let longer = place.len().max(end.saturating_sub(start));
    shared > 0 && (longer <= MAX_PHRASE_BYTES || shared * 2 >= longer)
}

impl<'r> Place<'r> {
    fn new(finding: &'r Finding) -> Place<'r> {
        let mut place = Place {
            span: finding.span.map(|(start, end)| start..end),
            at: finding.line.zip(finding.column),
            quote: one_line(&finding.quote),
            points: Vec::new(),
        };
        place.add(finding);
        place
    }

    fn add(&mut self, finding: &'r Finding) {
        if let (Some(span), Some((_, end))) = (&mut self.span, finding.span) {
            span.end = span.end.max(end);
        }
        let quote = one_line(&finding.quote);
        if quote.len() > self.quote.len() {
            self.quote = quote;
        }
        let fix = finding.fix.as_deref().map(one_line).filter(|fix| !fix.is_empty());
        let issue = one_line(&finding.issue);
        match self.points.iter_mut().find(|point| point.issue == issue && point.fix == fix) {
            Some(point) => push(&mut point.by, &finding.by),
            None => self.points.push(Point { by: vec![&finding.by], issue, fix }),
        }
    }

    /// The place with its first issues.
    fn problem(&self, review: &Review, density: Density, issues: usize) -> Problem {
        let is_blocking = self.points.iter().any(|point| !point.blocking(review).is_empty());
        let issue = |point: &Point<'_>| Issue {
            text: truncate(&point.issue, density.characters),
            by: point.raised_by(review, density.extent),
            fix: point.fix.as_ref().map(|fix| truncate(fix, density.characters)),
        };
        Problem {
            file: review.artifact.clone(),
            text: review.text.clone().filter(|_| density.has_lines),
            span: self.span.clone(),
            at: self.at,
            quote: self.quote.clone(),
            tone: if is_blocking { Tone::Bad } else { Tone::Fair },
            issues: self.points.iter().take(issues).map(issue).collect(),
        }
    }
}

impl<'r> Point<'r> {
    /// The members that raised it and block.
    fn blocking(&self, review: &Review) -> Vec<&'r str> {
        self.by.iter().copied().filter(|member| blocks(review, member)).collect()
    }

    /// Its weight, and the members that raised it: `blocks (evidence) · raised by 3`.
    fn raised_by(&self, review: &Review, extent: Extent) -> Text {
        let named = |members: &[&str]| match extent {
            Extent::Screen if members.len() > MAX_NAMED => {
                format!("({} of {})", members.len(), review.deliberators.len())
            }
            _ => format!("({})", list(members)),
        };
        let blocking = self.blocking(review);
        let verb = match blocking.len() {
            0 => return Text::faint(format!("suggestion {}", named(&self.by))),
            1 => "blocks",
            _ => "block",
        };
        let text = Text::toned(Tone::Bad, format!("{verb} {}", named(&blocking)));
        match self.by.len() - blocking.len() {
            0 => text,
            _ if extent == Extent::Full => text.and(format!(" · raised by {}", list(&self.by))),
            _ => text.and(format!(" · raised by {}", self.by.len())),
        }
    }
}

fn push<'r>(names: &mut Vec<&'r str>, name: &'r str) {
    if !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
