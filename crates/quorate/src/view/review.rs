//! The document of a review: the verdict, then the answers, then what to change.
//!
//! On a terminal a SHIP fits one screen: it needs no action, so each possible fix is shown once, with a command for the
//! rest. A text that no rule judges takes three lines.

use std::collections::HashMap;
use std::collections::hash_map;
use std::ops::Range;

use quorate_diagnostics::render::Level;
use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::{Answer as Position, issues};
use quorate_protocol::policy::Verdict;

use super::Extent;
use super::code_hosts::level_of_member;
use super::doc::{Doc, Entry, Excerpt, Medium, Table, Text, Tone};
use super::layout::{one_line, truncate};
use super::wording::{DASH, amount, cost, digit_groups, dollars, duration, list, minute, status, undecided};
use crate::service::compare::Stance;
use crate::service::member_usage::MemberUsage;
use crate::service::report::{Answer, Deliberator, Finding, Review};

/// The longest shown concession or escalation, in characters.
const MAX_REACTION_CHARS: usize = 160;
/// The longest shown reason for a missing answer, in characters.
const MAX_ABSENCE_CHARS: usize = 240;
/// The longest shown request of a member, in characters.
const MAX_REQUEST_CHARS: usize = 600;
/// The most places on one screen.
const SCREEN_PLACES: usize = 5;
/// The longest quote on one screen, in characters.
const SCREEN_QUOTE_CHARS: usize = 40;
/// The longest point on one screen, in characters.
const SCREEN_POINT_CHARS: usize = 200;
/// The most members in the table of usage; the JSON of a report has all.
const MAX_MEMBERS: usize = 40;

/// The keys of an answer's reactions, and their verbs.
const REACTIONS: [(&str, &str); 2] = [("concessions", "concedes"), ("escalations", "escalates")];

impl Review {
    /// The review as people read it.
    pub fn doc(&self, extent: Extent) -> Doc {
        let mut doc = self.head();
        if extent == Extent::Screen && self.unjudged.is_some() {
            doc.line(format!("Run {}: `quorate show {0}{}` shows all of it.", self.run, self.ledger_flag()));
            self.add_override(&mut doc);
            return doc;
        }
        doc.begin_section();
        doc.facts(self.facts());
        match extent {
            Extent::Screen if self.verdict == Some(Verdict::Ship) => {
                let details = self.details(extent);
                doc.only(Medium::Terminal, self.screen());
                doc.only(Medium::Markdown, details.clone());
                doc.only(Medium::Html, details);
            }
            Extent::Screen | Extent::Full => doc.append(self.details(extent)),
        }
        doc
    }

    /// The verdict, its basis and its reason.
    fn head(&self) -> Doc {
        let tone = match self.verdict.map(|verdict| Tone::of_word(verdict.as_str())) {
            // Green would suggest that a model approved of the text.
            Some(Tone::Good) if !self.model_asked || self.blocks() > 0 => Tone::Fair,
            tone => tone.unwrap_or(Tone::Absent),
        };
        let over_blocks = self.ship_over_blocks().map_or_else(String::new, |blocks| format!(" {blocks}"));
        let basis =
            self.basis().map_or_else(Text::default, |basis| Text::from("  ").and(format!("({basis})")));
        let mut doc = Doc::new();
        let title = Text::toned(tone, format!("{}{over_blocks}", self.verdict_word()));
        doc.title(title.and(basis).and("  ").and(Text::code(&*self.artifact)));
        doc.line(match self.because.is_empty() {
            false => self.because.clone(),
            true => undecided(&self.run, self.imported, self.queued),
        });
        if let Some(decision) = &self.overridden {
            let verdict = Text::toned(Tone::of_word(&decision.verdict), &*decision.verdict);
            doc.line(Text::from("A person decided ").and(verdict).and(": see below."));
        }
        doc
    }

    /// The facts about the run, each with a label.
    fn facts(&self) -> Vec<(&'static str, String)> {
        // The headline of recorded answers says it.
        let model_note =
            if self.model_asked || self.recorded.is_some() { "" } else { " (no model was asked)" };
        let calls = amount(self.spent.calls.into(), "call");
        let mut kind = format!("{}, tier {}, policy {}", self.artifact_type, self.tier, self.policy);
        if self.prior_verdicts_consulted > 0 {
            let priors = amount(self.prior_verdicts_consulted, "earlier verdict");
            kind.push_str(&format!(", {priors} consulted"));
        }
        let mut facts = vec![
            ("run", format!("{}, {} UTC", self.run, minute(self.opened_ms))),
            ("type", kind),
            (
                "executor",
                format!(
                    "{}{model_note}, {calls}, {}{}",
                    self.executor,
                    duration(self.spent.took),
                    cost(&self.spent.usage)
                ),
            ),
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

    fn details(&self, extent: Extent) -> Doc {
        let mut doc = Doc::new();
        let rows = self.deliberators.iter().map(|deliberator| row(self, deliberator));
        doc.table(Table::new(headings(self.rounds).iter().copied()).with_rows(rows));
        let remarks = [reactions(self), absences(self)].concat();
        doc.items(remarks.into_iter().map(|(member, remark)| format!("{member}: {remark}")));
        if self.reasoning != self.because {
            titled(&mut doc, "Reasoning", Some(&self.reasoning));
        }
        Brief::of(self).add_to(self, &mut doc);
        let requests = member_requests(self);
        if !requests.is_empty() {
            doc.heading("What each asks for");
            doc.items(requests.into_iter().map(|(member, text)| format!("{member}: {text}")));
        }
        titled(&mut doc, "Revision brief", self.revision_brief.as_deref());
        titled(&mut doc, "Dissent", self.dissent_summary.as_deref());
        self.add_override(&mut doc);
        if extent == Extent::Full {
            doc.append(members(self.usage()));
        }
        doc.only(Medium::Terminal, notes(self.notes.iter().skip(usize::from(!self.model_asked))));
        // The head has no place for the note on models there.
        doc.only(Medium::Markdown, notes(&self.notes));
        doc.only(Medium::Html, notes(&self.notes));
        doc
    }

    /// A SHIP on one screen.
    fn screen(&self) -> Doc {
        let mut doc = Doc::new();
        doc.items(
            absences(self)
                .iter()
                .map(|(member, text)| truncate(&format!("{member}: {text}"), SCREEN_POINT_CHARS)),
        );
        let brief = Brief::of(self);
        if brief.findings > 0 {
            doc.heading(format!("Could be better: {}", amount(brief.findings as u64, "finding")));
            let mut places: Vec<&Place<'_>> = brief.places.iter().chain(&brief.ungrounded).collect();
            // Places of blocking findings come first.
            places.sort_by_key(|place| !place.by.iter().any(|member| blocks(self, member)));
            doc.numbered(1, places.iter().take(SCREEN_PLACES).map(|place| place.point(self)));
        } else {
            let short = self.revision_brief.as_deref().map(|brief| truncate(brief, 2 * SCREEN_POINT_CHARS));
            titled(&mut doc, "Revision brief", short.as_deref());
        }
        self.add_override(&mut doc);
        doc.append(notes(self.notes.iter().skip(usize::from(!self.model_asked))));
        let places = brief.places.len() + brief.ungrounded.len();
        let more = match places.saturating_sub(SCREEN_PLACES) + brief.more {
            0 => String::new(),
            more => format!("{} not shown. ", amount(more as u64, "more finding")),
        };
        doc.end_section();
        doc.line(format!(
            "{more}`quorate show {}{}` shows every answer and the reasoning, as `review --full` does.",
            self.run,
            self.ledger_flag()
        ));
        doc
    }

    fn add_override(&self, doc: &mut Doc) {
        let Some(decision) = &self.overridden else { return };
        let council = self.verdict.map_or("nothing yet", Verdict::as_str);
        doc.heading("A person's decision");
        let verdict = Text::toned(Tone::of_word(&decision.verdict), &*decision.verdict);
        let text = Text::from(format!("{} decided ", decision.by)).and(verdict);
        doc.line(text.and(format!("; the council's verdict stays {council}.")));
        doc.prose(&*decision.reason);
    }
}

fn titled(doc: &mut Doc, title: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        doc.heading(title);
        doc.prose(text);
    }
}

fn notes<'r>(notes: impl IntoIterator<Item = &'r String>) -> Doc {
    let mut doc = Doc::new();
    let mut notes = notes.into_iter().peekable();
    if notes.peek().is_some() {
        doc.heading("Notes");
        doc.items(notes);
    }
    doc
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
    // The last answer counts while the run is undecided.
    let counted = match &*deliberator.counted {
        "missing" => None,
        "round1" | "round1_block" => first.read.as_ref(),
        "round2" => second.read.as_ref(),
        _ => second.read.as_ref().or(first.read.as_ref()),
    };
    cells.push(counted.and_then(|position| position.score).map_or_else(|| DASH.to_owned(), score).into());
    let block = flag(counted.map(|position| position.would_block));
    cells.push(if deliberator.ungrounded { block.and(", ungrounded") } else { block });
    cells.push(flag(counted.map(|position| position.irreducible)));
    if review.rounds > 1 {
        cells.push(changes(deliberator, &first, &second).join("; ").into());
    }
    cells
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
        ("tokens in", |one| count(one.spent.usage.tokens_in)),
        ("cached", |one| count(one.spent.usage.tokens_cached)),
        ("out", |one| count(one.spent.usage.tokens_out)),
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
fn count(tokens: Option<u64>) -> String {
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

/// The most places shown; the rest is counted.
const MAX_PLACES: usize = 20;
/// The longest quote of a phrase, in bytes; a longer one is a passage, which may contain phrases of findings on other
/// matters.
const MAX_PHRASE_BYTES: usize = 160;

/// The findings by place. Findings of several members about the same words are one place with all of their points.
struct Brief<'r> {
    /// In the order of the text.
    places: Vec<Place<'r>>,
    /// Places whose quote does not occur in the text.
    ungrounded: Vec<Place<'r>>,
    /// The number of findings beyond the shown places.
    more: usize,
    /// The number of all findings.
    findings: usize,
}

/// A place, and the points about it.
struct Place<'r> {
    /// Byte offsets; `None` if the quote does not occur in the text.
    span: Option<Range<usize>>,
    /// Line and column, from 1, in characters.
    at: Option<(u64, u64)>,
    /// The words, on one line; the longest of several quotes.
    quote: String,
    /// The members that raised it.
    by: Vec<&'r str>,
    /// Without duplicates.
    points: Vec<Point<'r>>,
    findings: usize,
}

/// An issue with its fix, each on one line.
struct Point<'r> {
    /// The members that raised it.
    by: Vec<&'r str>,
    issue: String,
    fix: Option<String>,
}

impl<'r> Brief<'r> {
    /// The brief of a review, cut to the shown size.
    fn of(review: &'r Review) -> Brief<'r> {
        let (grounded, floating): (Vec<_>, Vec<_>) =
            review.findings.iter().partition(|finding| finding.span.is_some());
        let mut brief = Brief {
            places: by_place(grounded),
            ungrounded: by_words(floating),
            more: 0,
            findings: review.findings.len(),
        };
        for place in brief.places.iter_mut().chain(&mut brief.ungrounded) {
            place.order(review);
        }
        brief.cut();
        brief
    }

    fn cut(&mut self) {
        let count = |places: Vec<Place<'_>>| places.iter().map(|place| place.findings).sum::<usize>();
        let shown = self.places.len().min(MAX_PLACES);
        self.more = count(self.places.split_off(shown));
        self.more += count(self.ungrounded.split_off(self.ungrounded.len().min(MAX_PLACES - shown)));
    }

    fn add_to(&self, review: &Review, doc: &mut Doc) {
        if self.findings == 0 {
            return;
        }
        doc.heading(format!("Brief: {}", amount(self.findings as u64, "finding")));
        doc.numbered(1, self.places.iter().map(|place| place.entry(review)));
        if !self.ungrounded.is_empty() {
            doc.heading("Ungrounded: not in the text");
            doc.numbered(self.places.len() + 1, self.ungrounded.iter().map(|place| place.entry(review)));
        }
        if self.more > 0 {
            doc.line(format!(
                "… and {} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.",
                amount(self.more as u64, "more finding"),
                review.run
            ));
        }
    }
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
            by: Vec::new(),
            points: Vec::new(),
            findings: 0,
        };
        place.add(finding);
        place
    }

    fn add(&mut self, finding: &'r Finding) {
        self.findings += 1;
        if let (Some(span), Some((_, end))) = (&mut self.span, finding.span) {
            span.end = span.end.max(end);
        }
        let quote = one_line(&finding.quote);
        if quote.len() > self.quote.len() {
            self.quote = quote;
        }
        let fix = finding.fix.as_deref().map(one_line).filter(|fix| !fix.is_empty());
        let issue = one_line(&finding.issue);
        let member = &*finding.by;
        push(&mut self.by, member);
        match self.points.iter_mut().find(|point| point.issue == issue && point.fix == fix) {
            Some(point) => push(&mut point.by, member),
            None => self.points.push(Point { by: vec![member], issue, fix }),
        }
    }

    /// Sorts members by the roster.
    fn order(&mut self, review: &Review) {
        let position =
            |member: &&str| review.deliberators.iter().position(|deliberator| deliberator.id == **member);
        self.by.sort_by_key(position);
        for point in &mut self.points {
            point.by.sort_by_key(position);
        }
    }

    /// The members, the place in the text, and the points.
    fn entry(&self, review: &Review) -> Entry {
        let mut line = Text::default();
        for (at, member) in self.by.iter().enumerate() {
            let separator = match at {
                0 => "",
                at if at + 1 == self.by.len() => " and ",
                _ => ", ",
            };
            let suffix = if blocks(review, member) { " (blocks)" } else { "" };
            line = line.and(separator).and(Text::strong(*member)).and(suffix);
        }
        let level = self.by.iter().map(|member| level_of_member(review, member)).min();
        let mut body = Doc::new();
        body.excerpt(Excerpt {
            file: review.artifact.clone(),
            text: review.text.clone(),
            span: self.span.clone(),
            at: self.at,
            quote: self.quote.clone(),
            level: level.unwrap_or(Level::Note),
        });
        body.items(self.points.iter().map(|point| {
            let by = if point.by == self.by { String::new() } else { format!("{}: ", list(&point.by)) };
            let mut body = Doc::new();
            if let Some(fix) = &point.fix {
                body.line(Text::strong("fix:").and(" ").and(fix));
            }
            Entry { line: format!("{by}{}", point.issue).into(), body }
        }));
        Entry { line, body }
    }

    /// The place in one line: its line, the fix (or the issue, without a fix), and the members.
    fn point(&self, review: &Review) -> String {
        let at = self.at.map_or_else(|| "not in the text".to_owned(), |(line, _)| format!("line {line}"));
        let mut texts: Vec<&str> = Vec::new();
        for point in &self.points {
            push(&mut texts, point.fix.as_deref().unwrap_or(&point.issue));
        }
        let name_of = |member: &&str| match blocks(review, member) {
            true => format!("{member} blocks"),
            false => (*member).to_owned(),
        };
        let by: Vec<String> = self.by.iter().map(name_of).collect();
        let by = list(&by.iter().map(String::as_str).collect::<Vec<_>>());
        let quote = truncate(&self.quote, SCREEN_QUOTE_CHARS);
        truncate(&format!("{at}, “{quote}” ({by}): {}", texts.join(" ")), SCREEN_POINT_CHARS)
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
