//! The document of a review: every problem once, then what was not judged, then the verdict and the next command.
//!
//! A terminal shows as much of each problem as the number of problems allows: with 3 of them at most 30 lines of 80
//! columns, with 10 of them 45, with more 60.

use std::collections::HashMap;
use std::collections::hash_map;
use std::fmt::Write as _;
use std::ops::Range;

use quorate_adapters::executor::rubric;
use quorate_manifest::council::CrossRead;
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, Finding as Found, Leaning, issues};
use quorate_protocol::modes::council::FINDINGS_CAP;
use quorate_protocol::policy::Verdict;

use super::Extent;
use super::doc::{Conclusion, Doc, Issue, Problem, Table, Text, Tone};
use super::layout::{one_line, truncate};
use super::wording::{
    DASH, KEPT, amount, continuation, cost, digit_groups, dollars, duration, grouped, joined, minute, status,
    undecided,
};
use crate::service::compare::{Position as Held, Stance};
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
    /// Whether each place has its line of the text.
    has_lines: bool,
    /// The longest issue or fix, in characters.
    characters: usize,
    /// The most issues.
    issues: usize,
    /// The most members named together.
    names: usize,
    /// The option that shows more.
    option: &'static str,
}

/// All details.
const FULL: Density = Density {
    has_lines: true,
    characters: usize::MAX,
    issues: 200,
    names: usize::MAX,
    option: "--format json",
};
/// One screen, with the lines of the text.
const SPACIOUS: Density =
    Density { has_lines: true, characters: 300, issues: 15, names: MAX_NAMED, option: "--full" };
/// Without them.
const COMPACT: Density = Density { has_lines: false, characters: 160, ..SPACIOUS };
/// A line for each place, issue and fix.
const TERSE: Density = Density { characters: 74, ..COMPACT };
/// For issues without a place, or many notes.
const FEWER: Density = Density { issues: 7, ..TERSE };
/// The room for the words around a quote that is not in the text, in characters.
const QUOTE_FRAME_CHARS: usize = 20;

/// The most lines of a terminal for a number of issues.
fn max_lines(issues: usize) -> usize {
    match issues {
        0..=3 => 30,
        4..=10 => 45,
        _ => 60,
    }
}

/// What a deliberator whose position changed between the rounds took from the others, by its recorded answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The deliberator.
    pub member: String,
    /// The findings of others that it read, and raises for the first time in round 2: member and issue.
    pub taken: Vec<(String, String)>,
    /// Its concessions and escalations, in its words.
    pub said: Vec<String>,
}

/// The keys of an answer's reactions, and their verbs.
const REACTIONS: [(&str, &str); 2] = [("concessions", "concedes"), ("escalations", "escalates")];

impl Review {
    /// The review as people read it. On a terminal [`Extent::Screen`] leaves out the answers, and shows as much of each
    /// problem as fits.
    pub fn doc(&self, extent: Extent) -> Doc {
        let places = places(self);
        let bodies = match extent {
            Extent::Full => vec![(0, self.body(&places, FULL, self.details()))],
            Extent::Screen => {
                let most = max_lines(count(&places));
                let body = |density| (most, self.body(&places, density, Doc::new()));
                [SPACIOUS, COMPACT, TERSE, FEWER].map(body).into()
            }
        };
        let mut answers = Doc::new();
        answers.fold("Every answer", self.details());
        let mut page = self.person();
        page.append(self.body(&places, FULL, answers));
        let (headline, run, next) = (self.headline(), self.run_text(), self.next(extent));
        Doc::concluded(Conclusion { headline, run, next, bodies, page })
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
        let names = match blocks {
            1..=MAX_NAMED => format!(" ({})", joined(blocking.iter().map(|one| &one.id))),
            _ => String::new(),
        };
        let object = if blocks == 1 { "objects" } else { "object" };
        let says = if finals == 1 { "says" } else { "say" };
        let asks = match self.asked_of_adjudicator() {
            Some(asked) if asked == verdict => format!("; the adjudicator asks for {}.", asked.as_str()),
            _ => format!("; the policy decides {}.", verdict.as_str()),
        };
        let ending = match (verdict, count(&places(self))) {
            (Verdict::Ship, _)
                if blocks > 0 || self.asked_of_adjudicator().is_some_and(|asked| asked != verdict) =>
            {
                "; the policy lets it pass.".to_owned()
            }
            (Verdict::Ship, 0) => ".".to_owned(),
            (Verdict::Ship, issues) => format!("; {}.", amount(issues as u64, "suggestion")),
            // Something else than a block decided, such as a row of the council's policy.
            _ if blocks == 0 => asks,
            (Verdict::Hold, _) if finals == 0 => asks,
            _ if finals == 0 => ". Fixable.".to_owned(),
            _ if finals == blocks => format!(", and {says} that no edit repairs it."),
            _ => format!("; {finals} of them {says} that no edit repairs it."),
        };
        let missing = match self.missing.is_empty() {
            true => String::new(),
            false => format!(" No answer from {}.", joined(&self.missing)),
        };
        format!("{blocks} of {all} {object}{names}{ending}{missing}")
    }

    /// The verdict that the adjudicator asks for.
    fn asked_of_adjudicator(&self) -> Option<Verdict> {
        let answer = self.adjudicator.given.answer.as_ref()?;
        let word = answer.get("verdict").or_else(|| answer.get("final_verdict"))?.as_str()?;
        Verdict::read(word)
    }

    /// The problems of the text by place, those that block first.
    pub fn problems(&self) -> Vec<Problem> {
        let density = Density { names: MAX_NAMED, ..FULL };
        places(self).iter().map(|place| place.problem(self, density, usize::MAX)).collect()
    }

    /// The deliberators whose position changed between the rounds, of its [`positions`](Review::positions).
    pub fn moves(&self, held: &[Held]) -> Vec<Move> {
        fn found(stance: &Stance) -> impl Iterator<Item = &Found> + Clone {
            stance.read.iter().flat_map(|read| read.findings.iter().flatten())
        }
        let moved = |one: &Held| {
            let is_new = |new: &&Found| found(&one.first).all(|own| own.quote != new.quote);
            let new = found(&one.second).filter(is_new);
            let by = |other: &Held| {
                let read = found(&other.first).take(FINDINGS_CAP);
                let read = read.filter(|read| new.clone().any(|new| new.quote == read.quote));
                read.map(|read| (other.id.clone(), one_line(&read.issue))).collect::<Vec<_>>()
            };
            let others = held.iter().filter(|other| other.id != one.id && self.cross_read != CrossRead::None);
            let answer = self.deliberators.iter().find(|known| known.id == one.id);
            let said = REACTIONS.iter().flat_map(|(key, _)| {
                answer.map(|answer| reactions_of(&answer.round2, key)).unwrap_or_default()
            });
            Move {
                member: one.id.clone(),
                taken: others.flat_map(by).collect(),
                said: said.map(|text| truncate(&text, MAX_REACTION_CHARS)).collect(),
            }
        };
        held.iter().filter(|one| one.has_changed).map(moved).collect()
    }

    /// What the deliberators read of each other before round 2, in a sentence.
    pub fn reading(&self) -> &'static str {
        match self.cross_read {
            CrossRead::Verdicts => {
                "Before round 2 each reviewer read the first positions and findings of all."
            }
            CrossRead::Findings => {
                "Before round 2 each reviewer read the first findings of all, without their positions."
            }
            CrossRead::None => "No reviewer read another one's answer before round 2.",
        }
    }

    /// The text, the run and its cost.
    fn run_text(&self) -> Text {
        let calls = amount(self.spent.calls.into(), "call");
        let spent = format!(" · {calls} · {}{}", duration(self.spent.took), cost(&self.spent.usage));
        Text::code(&*self.artifact).and(" · ").and(Text::code(&*self.run)).and(spent)
    }

    /// A person's decision, and the next commands.
    fn next(&self, extent: Extent) -> Doc {
        let mut doc = self.person();
        let file = shell_quoted(&self.artifact);
        let next = match self.verdict {
            _ if self.unjudged.is_some() => {
                self.is_file.then(|| format!("`quorate review {file} --executor anthropic` asks a model."))
            }
            // The reason names the command, or a person has decided.
            None => None,
            Some(_) if self.overridden.is_some() => None,
            Some(Verdict::Incomplete) => continuation(&self.notes).map(str::to_owned),
            Some(Verdict::Revise) if self.is_file => Some(format!("edit {file} and review it again.")),
            Some(Verdict::Hold) if self.is_file => {
                Some(format!("change what {file} claims, then review it again."))
            }
            _ => None,
        };
        next.into_iter().for_each(|next| doc.line(format!("Next: {next}")));
        // Without a ledger there is nothing to show.
        if extent == Extent::Screen && self.unjudged.is_none() && self.ledger.is_some() {
            doc.line(format!("Every answer: `{} --full`", self.show_command()));
        }
        doc
    }

    /// The command that shows the run.
    pub fn show_command(&self) -> String {
        let flag = self.ledger.as_ref().map_or("", |location| &location.flag);
        format!("quorate show {}{flag}", self.run)
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

    /// The problems, `details`, and then what the verdict does not cover.
    fn body(&self, places: &[Place<'_>], density: Density, details: Doc) -> Doc {
        let mut doc = Doc::new();
        let mut left = density.issues;
        for place in places {
            let shown = place.points.len().min(left);
            if shown > 0 {
                doc.problem(place.problem(self, density, shown));
            }
            left -= shown;
        }
        if let more @ 1.. = count(places) - (density.issues - left) {
            let (more, command) = (amount(more as u64, "more issue"), self.show_command());
            doc.line(format!("… and {more}: `{command} {}` shows all.", density.option));
        }
        if places.is_empty() {
            let words = [self.reasoning(), self.revision_brief()].into_iter().flatten();
            words.for_each(|words| doc.prose(truncate(words, density.characters)));
        }
        doc.append(details);
        doc.end_section();
        self.limits().into_iter().for_each(|line| doc.line(line));
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
            let absence = |(why, members)| Text::strong(members).and(format!("  no answer: {why}"));
            lines.extend(self.absences().into_iter().map(absence));
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
        let position = |one: &Deliberator| {
            let position = counted(self, one)?;
            let does = match (position.would_block, position.verdict) {
                (true, _) => "block",
                (false, Some(Leaning::Revise)) => "would revise it",
                (false, Some(Leaning::Hold)) => "would hold it",
                (false, _) => "would ship it",
            };
            let grade = position.score.map_or_else(String::new, |grade| format!(" ({})", score(grade)));
            Some((does, format!("{}{grade}", one.id)))
        };
        let mut groups = grouped(self.deliberators.iter().filter_map(position));
        groups.sort_by_key(|(does, _)| *does != "block");
        let group = |(does, names): &(&str, Vec<String>)| {
            let ending = if *does == "block" && names.len() == 1 { "s" } else { "" };
            format!("{} {does}{ending}", joined(names))
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        (!groups.is_empty()).then(|| format!("{}.", groups.join("; ")))
    }

    /// The reasons of missing answers that say more than the status, each with the members.
    fn absences(&self) -> Vec<(String, String)> {
        let rounds = self.deliberators.iter().flat_map(|one| {
            [(format!("{}, round 1", one.id), &one.round1), (format!("{}, round 2", one.id), &one.round2)]
        });
        let reason = |(name, answer): (String, &Answer)| {
            let message = answer.message.as_deref().map(one_line).filter(|message| !message.is_empty())?;
            let reason = format!("{}: {}", status(&answer.status), truncate(&message, MAX_ABSENCE_CHARS));
            (answer.status != "answered").then_some((reason, name))
        };
        let all = rounds.chain([("adjudicator".to_owned(), &self.adjudicator.given)]).filter_map(reason);
        grouped(all).into_iter().map(|(reason, names)| (reason, joined(&names))).collect()
    }

    /// The adjudicator's reasoning; a rule repeats the positions.
    fn reasoning(&self) -> Option<&str> {
        Some(&*self.reasoning).filter(|reasoning| *reasoning != self.because && !self.is_by_rule())
    }

    /// The adjudicator's brief; that of a rule repeats the findings.
    fn revision_brief(&self) -> Option<&str> {
        self.revision_brief.as_deref().filter(|_| !self.is_by_rule())
    }

    /// The facts, all answers, what changed between the rounds, and the adjudicator's words.
    fn details(&self) -> Doc {
        let mut doc = Doc::new();
        doc.begin_section();
        doc.facts(self.facts());
        let rows = self.deliberators.iter().map(|deliberator| row(self, deliberator));
        let headings = ["deliberator", "round 1", "round 2", "score", "blocks", "what changed"];
        doc.table(Table::new(headings).with_rows(rows).filled());
        for (key, verb) in REACTIONS {
            let of = |one: &Deliberator| {
                let texts = reactions_of(&one.round2, key).into_iter();
                let line =
                    |text: String| format!("{} {verb}: {}", one.id, truncate(&text, MAX_REACTION_CHARS));
                texts.map(line).collect::<Vec<_>>()
            };
            doc.items(self.deliberators.iter().flat_map(of));
        }
        // Without findings, these are in their place.
        if !self.findings.is_empty() {
            titled(&mut doc, "Reasoning", self.reasoning());
            titled(&mut doc, "Revision brief", self.revision_brief());
        }
        // Rubric answers repeat their findings.
        let asked = self.deliberators.iter().filter(|_| !self.is_by_rule());
        let requests: Vec<String> = asked.flat_map(|one| requests_of(self, one)).collect();
        if !requests.is_empty() {
            doc.heading("What each asks for");
            doc.items(requests);
        }
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
            let _ = writeln!(out, "{file}{at}: {severity}: {} ({})", bare(&point.issue), joined(&point.by));
        }
        let more = and_more(issues().count().saturating_sub(most));
        let _ = writeln!(out, "{file}: {}: {}{more}", self.verdict_word(), one_line(&self.answer()));
        out
    }

    /// The reason in a few words: the first issue with the number of others (`3:1 no source (+2 more)`), the number of
    /// suggestions, or the reason for a missing verdict.
    pub(crate) fn short_reason(&self) -> String {
        let places = places(self);
        let first = places.first().and_then(|place| Some((place.at, place.points.first()?)));
        match (self.verdict, first) {
            (Some(Verdict::Ship), None) => String::new(),
            (Some(Verdict::Ship), _) => amount(count(&places) as u64, "suggestion"),
            (Some(Verdict::Revise | Verdict::Hold), Some((at, point))) => {
                let at = at.map_or_else(String::new, |(line, column)| format!("{line}:{column} "));
                let more = and_more(count(&places) - 1);
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

/// ` (+2 more)`; empty for none.
fn and_more(number: usize) -> String {
    if number == 0 { String::new() } else { format!(" (+{number} more)") }
}

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

/// A deliberator's cells, one for each heading.
fn row(review: &Review, deliberator: &Deliberator) -> [Text; 6] {
    let [first, second] = deliberator.stances(review.rounds);
    let counted = counted(review, deliberator);
    let grade = counted.as_ref().and_then(|position| position.score);
    let blocks = match &counted {
        None => DASH.into(),
        Some(Position { would_block: false, .. }) => "no".into(),
        Some(Position { irreducible: true, .. }) => Text::toned(Tone::Bad, "yes, and no edit repairs it"),
        Some(_) => Text::toned(Tone::Bad, "yes"),
    };
    let blocks = if deliberator.ungrounded { blocks.and(", ungrounded") } else { blocks };
    let (name, grade) = (Text::strong(&*deliberator.id), grade.map_or_else(|| DASH.to_owned(), score).into());
    if review.rounds == 1 {
        return [name, answer_cell(&first), Text::default(), grade, blocks, Text::default()];
    }
    let change = match (&*deliberator.counted, &first.read, &second.read) {
        ("round1_block", ..) => "counted by its round-1 block".to_owned(),
        (_, Some(first), Some(second)) => match position_changes(first, second) {
            none if none.is_empty() => "nothing".to_owned(),
            changes => changes.join("; "),
        },
        _ => DASH.to_owned(),
    };
    [name, answer_cell(&first), answer_cell(&second), grade, blocks, change.into()]
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
pub(super) fn blocks(review: &Review, member: &str) -> bool {
    review.deliberators.iter().any(|deliberator| deliberator.blocks && deliberator.id == member)
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
    let flags = [
        (first.would_block, second.would_block, "blocks"),
        (first.irreducible, second.irreducible, "says that no edit repairs it"),
    ];
    for (before, after, does) in flags {
        match (before, after) {
            (false, true) => changes.push(format!("now {does}")),
            (true, false) => changes.push(format!("no longer {does}")),
            _ => {}
        }
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

/// What a member asks for besides findings.
fn requests_of(review: &Review, deliberator: &Deliberator) -> Vec<String> {
    // A text of the first answer is shown only if the second answer has none.
    let answers = [&deliberator.round2, &deliberator.round1];
    let text = |key: &str| answers.into_iter().find_map(|answer| text_field(answer, key));
    let brief = text("revision_brief").filter(|brief| {
        review.revision_brief.as_deref().is_none_or(|of_review| !one_line(of_review).contains(&**brief))
    });
    let listed = answers.into_iter().map(listed_issues).find(|all| !all.is_empty()).unwrap_or_default();
    let labelled = brief.map(|brief| ("", brief)).into_iter();
    let labelled = labelled.chain(listed.into_iter().map(|issue| (", issue", issue)));
    let labelled = labelled.chain(text("notes").map(|notes| (", notes", notes)));
    let request = |(label, text): (&str, String)| {
        format!("{}{label}: {}", deliberator.id, truncate(&text, MAX_REQUEST_CHARS))
    };
    labelled.map(request).collect()
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
            by: point.raised_by(review, density.names),
            fix: point.fix.as_ref().map(|fix| truncate(fix, density.characters)),
        };
        Problem {
            file: review.artifact.clone(),
            text: review.text.clone().filter(|_| density.has_lines),
            span: self.span.clone(),
            at: self.at,
            quote: truncate(&self.quote, density.characters - QUOTE_FRAME_CHARS),
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

    /// Its weight, and the members that raised it: `blocks (evidence) · raised by 3 of 4`.
    fn raised_by(&self, review: &Review, most: usize) -> Text {
        let named = |members: &[&str]| match members.len() > most {
            true => format!("{} of {}", members.len(), review.deliberators.len()),
            false => joined(members),
        };
        let blocking = self.blocking(review);
        let verb = match blocking.len() {
            0 => return Text::faint(format!("suggestion ({})", named(&self.by))),
            1 => "blocks",
            _ => "block",
        };
        let text = Text::toned(Tone::Bad, format!("{verb} ({})", named(&blocking)));
        match self.by.len() == blocking.len() {
            true => text,
            false => text.and(format!(" · raised by {}", named(&self.by))),
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
