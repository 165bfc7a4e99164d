//! The report of an assembly's run as text for a terminal: the outcome, its basis, then refusals and missing answers.
//!
//! A vote has a bar for each side and the exact ratio; guidance its fragments with author, rule and validity; a discussion its
//! rounds, with messages for some of the members indented. `human/tree.rs` draws a hierarchy.

mod tree;

use quorate::service::convene::report::{
    Contribution, Decision, CountedVote, VoteCount, Fragment, Member,
};
use quorate_diagnostics::render::TextOptions;
use quorate_manifest::assembly::Mode;
use quorate_protocol::Json;

use super::super::Extent;
use super::super::human::members;
use super::super::layout::{
    Paint, columns_of, finish, hanging, indented, one_line, prose, table, truncate, wrap_prefixed,
};
use super::super::wording::{amount, status};
use super::phrases::{Round, Turn, assessment, last_status, names};
use super::{phrases, rules};

/// The longest shown title, in characters.
const TITLE: usize = 200;
/// The most lines of a title.
const LINES: usize = 4;
/// The width of the labels of facts.
const LABEL: usize = 8;

/// The whole report, ending with one line break.
pub(super) fn human(report: &Decision, extent: Extent, options: TextOptions) -> String {
    let width = options.width;
    let mut sections = vec![head(report, width)];
    sections.extend(match report.mode {
        Mode::Voting => decision_sections(report, width),
        Mode::Advisory => guidance_sections(report, width),
        Mode::Peer => discussion_sections(report, width),
        Mode::Hierarchy => tree::sections(report, width),
    });
    sections.extend([
        rules(report, width),
        refused(report, width),
        absent(report, width),
        notes(report, width),
        if extent == Extent::Full { members(&report.member_usage, width) } else { String::new() },
        foot(report, width),
    ]);
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    finish(&sections.join("\n\n"), options)
}

fn heading(text: &str) -> String {
    format!("{}\n", Paint::Strong.on(text))
}

/// A text that hangs from a label of `columns` characters.
fn labelled(label: &str, columns: usize, text: &str, indent: usize, width: usize) -> String {
    hanging(&Paint::Faint.on(&format!("{label:<columns$}")), text, indent, width)
}

fn head(report: &Decision, width: usize) -> String {
    let word = phrases::paint(report).on(&phrases::verdict(report));
    let title = Paint::Strong.on(&truncate(&one_line(&report.title), TITLE));
    let gap = columns_of(&word) + 2;
    let mut out = wrap_prefixed(&format!("{word}  "), &" ".repeat(gap), &title, LINES, width);
    let because = phrases::because(report);
    if !because.is_empty() {
        out.push_str(&prose(&because, 0, width));
    }
    out.push('\n');
    for (label, text) in phrases::facts(report) {
        let text = if label == "risk" { phrases::risk_paint(report).on(&text) } else { text };
        out.push_str(&labelled(label, LABEL, &text, 2, width));
    }
    out
}

/// The effect of each rule, in order.
fn rules(report: &Decision, width: usize) -> String {
    let summaries = rules::summaries(report);
    if summaries.is_empty() {
        return String::new();
    }
    let row = |(at, rule): (usize, &rules::RuleSummary)| {
        let did = rule.paint.map_or_else(|| rule.did.clone(), |paint| painted(&rule.did, paint));
        let id = if rule.fired { Paint::Strong.on(&rule.id) } else { rule.id.clone() };
        vec![at.to_string(), id, rule.kind.clone(), did]
    };
    let rows = (1..).zip(&summaries).map(row).collect();
    heading("Rules, in order") + &table(&["", "rule", "kind", "what it did"], rows, 2, width)
}

/// Paints the words up to the first colon or semicolon; the rest wraps.
fn painted(text: &str, paint: Paint) -> String {
    match text.find([':', ';', '(']) {
        Some(at) => format!("{}{}", paint.on(text[..at].trim_end()), &text[text[..at].trim_end().len()..]),
        None => text.to_owned(),
    }
}

fn refused(report: &Decision, width: usize) -> String {
    let all = phrases::rejections(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Bad.on("Refused"));
    for rejection in &all {
        out.push_str(&hanging("-", &format!("{} {}", rejection.what, rejection.why), 2, width));
        if let Some(excerpt) = &rejection.excerpt {
            out.push_str(&hanging(&Paint::Faint.on("words"), &format!("“{excerpt}”"), 4, width));
        }
    }
    out
}

/// The members without an answer, with reasons. The rounds of a discussion list them again, without reasons.
fn absent(report: &Decision, width: usize) -> String {
    let all = phrases::absences(report);
    if all.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", Paint::Absent.on("No answer"));
    for (member, reason) in all {
        out.push_str(&hanging("-", &format!("{member}: {reason}"), 2, width));
    }
    out
}

/// Notes, without the one on models, which the head has.
fn notes(report: &Decision, width: usize) -> String {
    let notes = phrases::notes_without_rejections(report).into_iter().skip(usize::from(!report.model_asked));
    let items: String = notes.map(|note| hanging("-", &note, 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("Notes") + &items }
}

/// Commands that show more, on one line: the longest list that fits.
fn foot(report: &Decision, width: usize) -> String {
    let run = one_line(&format!("{}{}", report.run, report.ledger_flag));
    let lines = [
        format!("More: `quorate show {run} --format markdown`, `quorate replay {run}`"),
        format!("More: `quorate show {run} --format markdown`"),
        format!("`quorate replay {run}`"),
    ];
    let fits = lines.into_iter().find(|text| columns_of(text) <= width);
    fits.map_or_else(String::new, |text| Paint::Faint.on(&text))
}

/// The longest shown rationale, in characters.
const RATIONALE: usize = 240;

fn paint_vote(vote: &str) -> String {
    match vote {
        "yes" => Paint::Good.on("yes"),
        "no" => Paint::Bad.on("no"),
        "missing" | "cancelled" => Paint::Absent.on(vote),
        vote => one_line(vote),
    }
}

/// The vote in a member's answer, before the count and before its rationale is checked against the locks.
fn vote_of(answer: &serde_json::Map<String, Json>) -> Option<String> {
    let vote = answer.get("vote")?.as_str()?;
    let rationale = answer.get("rationale").and_then(Json::as_str).unwrap_or_default();
    Some(format!("{}: {}", paint_vote(vote), truncate(&one_line(rationale), RATIONALE)))
}

/// The longest shown text of a decision, in characters.
const DECISION_TEXT: usize = 4000;
const SHOWN_VOTES: usize = 60;
/// The most and the fewest cells of a bar.
const CELLS: (usize, usize) = (48, 10);
/// The width of the names of sides, with the gap.
const NAMES: usize = 9;

fn decision_sections(report: &Decision, width: usize) -> Vec<String> {
    let Some(decision) = &report.decision else {
        return vec![answers(report, width)];
    };
    vec![
        sole_decider(decision, width),
        tally(report, decision, width),
        votes(report, decision, width),
        decision_text(decision, width),
    ]
}

/// The member that decided alone by a terminal rule, and its rationale.
fn sole_decider(decision: &VoteCount, width: usize) -> String {
    if decision.contribution.is_empty() {
        return String::new();
    }
    let entry = |contribution: &Contribution| {
        let text = format!(
            "{}: {}",
            one_line(&contribution.vote),
            truncate(&one_line(&contribution.rationale), RATIONALE)
        );
        hanging(&Paint::Strong.on(&one_line(&contribution.member)), &text, 2, width)
    };
    heading("Decided alone") + &decision.contribution.iter().take(SHOWN_VOTES).map(entry).collect::<String>()
}

fn tally(report: &Decision, decision: &VoteCount, width: usize) -> String {
    let full = phrases::total_weight(decision);
    if decision.votes.is_empty() || full <= 0.0 {
        return String::new();
    }
    let sides = phrases::sides(decision);
    let needs = report.threshold();
    let numbers = sides.iter().map(|side| columns_of(&side.text)).max().unwrap_or_default();
    let room = width.saturating_sub(2 + NAMES + 1 + 2 + numbers);
    // If a bar and its number do not fit on one line, the number goes below.
    let below = room < CELLS.1;
    let room = if below { width.saturating_sub(2 + NAMES + 1) } else { room };
    let cells = room.clamp(CELLS.1, CELLS.0);
    // The threshold is relative to the total of the ratio, the bars to the total of all sides.
    let total = decision.exact.total.parse::<f64>().unwrap_or(full);
    let mut out = heading("Tally");
    for vote_side in &sides {
        let part = needs.as_ref().filter(|_| vote_side.word == "yes").map(|needs| needs.part * total / full);
        let gap = if part.is_none() && needs.is_some() { " " } else { "" };
        let bar = side_bar(vote_side.weight / full, part, vote_side.paint, cells);
        let number = if below {
            format!("\n  {:NAMES$}{}", "", vote_side.text)
        } else {
            format!("{gap}  {}", vote_side.text)
        };
        out.push_str(&format!("  {:<NAMES$}{bar}{number}\n", vote_side.word));
    }
    let mark = if needs.is_some() { format!(" ({THRESHOLD_MARK})") } else { String::new() };
    out + "\n" + &prose(&format!("{}{mark}", phrases::ratio_text(report, decision)), 2, width)
}

fn votes(report: &Decision, decision: &VoteCount, width: usize) -> String {
    let selected = select_votes(&decision.votes);
    let row = |vote: &&CountedVote| {
        let member = phrases::member(report, &vote.member);
        let role = member.map_or_else(String::new, |member| one_line(&member.role));
        let answer = member.and_then(|member| member.answer());
        let rationale = answer.and_then(|answer| answer.get("rationale")?.as_str()).unwrap_or_default();
        let text = match &*vote.vote {
            "missing" | "cancelled" => member.map_or_else(String::new, phrases::last_status),
            _ => truncate(&one_line(vote.withheld.as_deref().unwrap_or(rationale)), RATIONALE),
        };
        vec![
            Paint::Strong.on(&one_line(&vote.member)),
            role,
            truncate(&one_line(&vote.weight), 12),
            paint_vote(&vote.vote),
            text,
        ]
    };
    let rows: Vec<Vec<String>> = selected.iter().map(row).collect();
    if rows.is_empty() {
        return unasked(report, width);
    }
    let mut out = heading("Votes") + &table(&["member", "role", "weight", "vote", "why"], rows, 2, width);
    let more = decision.votes.len() - selected.len();
    if more > 0 {
        let text = format!(
            "… and {}: `quorate show {} --format json` lists all.",
            amount(more as u64, "more vote"),
            one_line(&report.run)
        );
        out.push_str(&prose(&text, 2, width));
    }
    out.push_str(&unasked(report, width));
    out
}

/// Selects from many votes: missing ones, no and abstain before yes.
fn select_votes(votes: &[CountedVote]) -> Vec<&CountedVote> {
    let order = ["missing", "no", "abstain", "cancelled"];
    let mut places: Vec<usize> = (0..votes.len()).collect();
    places.sort_by_key(|at| order.iter().position(|word| *word == votes[*at].vote).unwrap_or(order.len()));
    places.truncate(SHOWN_VOTES);
    places.sort_unstable();
    places.into_iter().map(|at| &votes[at]).collect()
}

fn decision_text(decision: &VoteCount, width: usize) -> String {
    let Some(text) = &decision.text else { return String::new() };
    let lines: String = truncate(text, DECISION_TEXT).lines().map(|line| prose(line, 2, width)).collect();
    heading("Decision") + &lines
}

/// The most lines of a message.
const DISCUSSION_LINES: usize = 16;
const SHOWN_MESSAGES: usize = 150;
/// The most silent members named.
const NAMED: usize = 20;
/// The longest shown synthesis of an extension's rule, in characters.
const SYNTHESIS: usize = 4000;

fn discussion_sections(report: &Decision, width: usize) -> Vec<String> {
    let (mut all, mut remaining) = (Vec::new(), SHOWN_MESSAGES);
    let rounds = phrases::rounds(report);
    for (at, round) in rounds.iter().enumerate() {
        if remaining == 0 {
            let more = rounds[at..].iter().map(|later| later.turns.len()).sum::<usize>();
            let rounds = amount((rounds.len() - at) as u64, "more round");
            all.push(prose(
                &format!("… and {rounds} with {}{}", amount(more as u64, "message"), lists_all(report)),
                0,
                width,
            ));
            break;
        }
        all.push(round_section(report, round, remaining, width));
        remaining = remaining.saturating_sub(round.turns.len());
    }
    for (rule, synthesis) in &report.synthesis {
        let text = synthesis.as_str().map_or_else(|| synthesis.to_string(), str::to_owned);
        all.push(
            heading(&format!("Made by {}", one_line(rule))) + &prose(&truncate(&text, SYNTHESIS), 2, width),
        );
    }
    all
}

fn lists_all(report: &Decision) -> String {
    format!(": `quorate show {} --format json` lists all.", one_line(&report.run))
}

fn round_section(report: &Decision, round: &Round<'_>, remaining: usize, width: usize) -> String {
    let mut out = heading(&format!("Round {}", round.number));
    for turn in round.turns.iter().take(remaining) {
        out.push_str(&message_lines(turn, width));
    }
    if round.turns.len() > remaining {
        let more = amount((round.turns.len() - remaining) as u64, "more message");
        out.push_str(&prose(&format!("… and {more}{}", lists_all(report)), 2, width));
    }
    if !round.silent.is_empty() {
        out.push_str(&labelled("passed:", 7, &names(&round.silent, NAMED), 2, width));
    }
    for (status, members) in absent_by_status(round) {
        out.push_str(&hanging(&Paint::Absent.on(&format!("{status}:")), &names(&members, NAMED), 2, width));
    }
    out
}

/// The members without an answer, by status.
fn absent_by_status<'r>(round: &'r Round<'_>) -> Vec<(&'r str, Vec<&'r str>)> {
    let mut ends: Vec<(&str, Vec<&str>)> = Vec::new();
    for (member, status) in &round.absent {
        match ends.iter_mut().find(|(word, _)| word == status) {
            Some((_, all)) => all.push(member),
            None => ends.push((status, vec![member])),
        }
    }
    ends
}

/// A message: author, addressees and annotations, then the text after a vertical line.
fn message_lines(turn: &Turn<'_>, width: usize) -> String {
    let (arrow, indent) = if turn.to.is_some() { ("↳ ", 6) } else { ("", 2) };
    let annotations: Vec<String> =
        turn.annotations()
            .into_iter()
            .map(|annotation| {
                if annotation == "objects" { Paint::Fair.on(annotation) } else { Paint::Faint.on(annotation) }
            })
            .collect();
    let annotations =
        if annotations.is_empty() { String::new() } else { format!("  [{}]", annotations.join(", ")) };
    let head = format!("{arrow}{} → {}{annotations}", Paint::Strong.on(&one_line(turn.from)), turn.to());
    let gap = " ".repeat(indent);
    let mut out = wrap_prefixed(&gap, &gap, &head, usize::from(u8::MAX), width);
    let bar = format!("{gap}│ ");
    if !turn.text.trim().is_empty() {
        out.push_str(&wrap_prefixed(&bar, &bar, &one_line(turn.text), DISCUSSION_LINES, width));
    }
    if let Some(reason) = &turn.kept_back {
        out.push_str(&wrap_prefixed(
            &format!("{gap}× "),
            &format!("{gap}  "),
            reason,
            usize::from(u8::MAX),
            width,
        ));
    }
    out
}

/// The longest shown fragment or concern, in characters.
const FRAGMENT_TEXT: usize = 4000;
const CONCERN: usize = 400;
const SHOWN_FRAGMENTS: usize = 40;
/// The indent of the facts about a fragment.
const INDENT: usize = 6;
/// The width of the labels below a fragment.
const GUIDANCE_LABEL: usize = 5;

fn guidance_sections(report: &Decision, width: usize) -> Vec<String> {
    vec![fragments(report, width), assessments(report, width)]
}

fn fragments(report: &Decision, width: usize) -> String {
    if report.fragments.is_empty() {
        return String::new();
    }
    let number = amount(report.fragments.len() as u64, "fragment");
    let mut out = heading(&format!("Guidance: {number}"));
    for (at, fragment) in report.fragments.iter().take(SHOWN_FRAGMENTS).enumerate() {
        out.push_str(&fragment_section(report, fragment, at + 1, width));
    }
    let more = report.fragments.len().saturating_sub(SHOWN_FRAGMENTS);
    if more > 0 {
        let text =
            format!("… and {more} more: `quorate show {} --format json` lists all.", one_line(&report.run));
        out.push_str(&format!("\n{}", prose(&text, 2, width)));
    }
    out
}

fn fragment_section(report: &Decision, fragment: &Fragment, number: usize, width: usize) -> String {
    let member = phrases::member(report, &fragment.member);
    let role = member.map_or_else(String::new, |member| format!(", {}", one_line(&member.role)));
    let head = format!(
        "{}{role}  severity {} {}  priority {}",
        Paint::Strong.on(&one_line(&fragment.member)),
        paint_by_severity(fragment.severity, &fragment.severity.to_string()),
        severity_scale(fragment.severity),
        fragment.priority
    );
    let mut out = format!("\n{}", hanging(&format!("{number:>3}."), &head, 1, width));
    let text = prose(&truncate(&fragment.text, FRAGMENT_TEXT), 0, width.saturating_sub(INDENT + 2));
    out.push_str(&indented(&framed(&text), INDENT - 1));
    let kind = report.rules.iter().find(|rule| rule.id == fragment.rule).map(|rule| one_line(&rule.kind));
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let concern =
        member.and_then(phrases::assessment).map(|assessment| assessment.concern).unwrap_or_default();
    let concern = match concern.is_empty() {
        true => String::new(),
        false => format!(" on the concern “{}”", truncate(&concern, CONCERN)),
    };
    let reason = format!("rule {}{kind}{concern}", one_line(&fragment.rule));
    out.push_str(&labelled("why", GUIDANCE_LABEL, &reason, INDENT - 1, width));
    out.push_str(&labelled("holds", GUIDANCE_LABEL, &phrases::validity(report, fragment), INDENT - 1, width));
    out
}

/// A member's text after a vertical line, which sets it apart from Quorate's own.
fn framed(text: &str) -> String {
    text.lines().map(|line| format!("│ {line}").trim_end().to_owned() + "\n").collect()
}

/// The evidence of a member's assessment.
fn evidence(all: &[String], width: usize) -> String {
    const QUOTES: usize = 12;
    const LINES: usize = 3;
    let quotes = all.iter().take(QUOTES);
    let mut out: String = quotes
        .map(|item| wrap_prefixed("    - ", "      ", &format!("“{}”", one_line(item)), LINES, width))
        .collect();
    if all.len() > QUOTES {
        out.push_str(&prose(&format!("… and {} more", all.len() - QUOTES), 4, width));
    }
    out
}

/// The longest shown concern in a table, in characters.
const ROSTER_CONCERN: usize = 240;
const SHOWN_MEMBERS: usize = 60;
/// The most unasked members named.
const ROSTER_NAMED: usize = 40;

/// All members that were asked, with their assessments.
fn assessments(report: &Decision, width: usize) -> String {
    let asked: Vec<&Member> =
        report.members.iter().filter(|member| !member.consultations.is_empty()).collect();
    let selected = gravest(&asked);
    let row = |member: &&Member| {
        let (bar, concern) = match assessment(member) {
            Some(assessment) => {
                let evidence = match assessment.evidence {
                    0 => String::new(),
                    some => format!(" ({})", amount(some as u64, "quote")),
                };
                (severity_bar(assessment.severity), truncate(&assessment.concern, ROSTER_CONCERN) + &evidence)
            }
            None => (Paint::Absent.on(&status(&one_line(&member.status))), String::new()),
        };
        vec![Paint::Strong.on(&one_line(&member.id)), one_line(&member.role), phase(member), bar, concern]
    };
    let rows: Vec<Vec<String>> = selected.iter().map(row).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        out =
            heading("Members") + &table(&["member", "role", "phase", "severity", "concern"], rows, 2, width);
    }
    out.push_str(&more(report, asked.len() - selected.len(), width));
    out.push_str(&unasked(report, width));
    out
}

/// The answers so far, of an undecided run.
fn answers(report: &Decision, width: usize) -> String {
    let asked: Vec<&Member> =
        report.members.iter().filter(|member| !member.consultations.is_empty()).collect();
    if asked.is_empty() {
        return String::new();
    }
    let row = |member: &&Member| {
        let text = member.answer().and_then(vote_of).unwrap_or_else(|| last_status(member));
        vec![Paint::Strong.on(&one_line(&member.id)), text]
    };
    let rows = asked.iter().take(SHOWN_MEMBERS).map(row).collect();
    let remainder = more(report, asked.len().saturating_sub(SHOWN_MEMBERS), width);
    heading("Answers so far") + &table(&["member", "answer"], rows, 2, width) + &remainder
}

/// Selects the members with the highest severity, and those without an answer, in roster order.
fn gravest<'r>(asked: &[&'r Member]) -> Vec<&'r Member> {
    let mut places: Vec<usize> = (0..asked.len()).collect();
    places.sort_by_key(|at| {
        std::cmp::Reverse(assessment(asked[*at]).map_or(u64::MAX, |assessment| assessment.severity))
    });
    places.truncate(SHOWN_MEMBERS);
    places.sort_unstable();
    places.into_iter().map(|at| asked[at]).collect()
}

/// How many more there are than shown.
fn more(report: &Decision, number: usize, width: usize) -> String {
    if number == 0 {
        return String::new();
    }
    let run = one_line(&report.run);
    let text = format!(
        "… and {}: `quorate show {run} --format json` lists all.",
        amount(number as u64, "more member")
    );
    prose(&text, 2, width)
}

/// The members that were not asked, with reasons.
fn unasked(report: &Decision, width: usize) -> String {
    let members: Vec<&Member> =
        report.members.iter().filter(|member| member.consultations.is_empty()).collect();
    if members.is_empty() {
        return String::new();
    }
    let reasons: Vec<String> = members.iter().map(|member| because(report.mode, member)).collect();
    let reasons = names(&reasons.iter().map(String::as_str).collect::<Vec<_>>(), ROSTER_NAMED);
    format!("\n{}", hanging(&Paint::Faint.on("not asked:"), &reasons, 2, width))
}

fn because(mode: Mode, member: &Member) -> String {
    match (mode, &member.phase, &member.classes) {
        (Mode::Advisory, Some(phase), _) => format!("{} (phase {phase})", member.id),
        (Mode::Advisory, None, _) => format!("{} (in no phase)", member.id),
        (Mode::Voting, _, Some(classes)) if classes.is_empty() => format!("{} (votes on nothing)", member.id),
        (Mode::Voting, _, Some(classes)) => format!("{} (votes on {})", member.id, classes.join("/")),
        _ => member.id.clone(),
    }
}

fn phase(member: &Member) -> String {
    member.phase.as_deref().map_or_else(|| "–".to_owned(), one_line)
}

/// The cells of a severity's bar: one for each step.
const STEPS: usize = 10;

const FULL: &str = "█";
const EMPTY: &str = "░";
/// Marks the share that a side needs.
pub(super) const THRESHOLD_MARK: &str = "┃";

/// A severity with its bar: `7 ███████░░░`.
pub(super) fn severity_bar(severity: u64) -> String {
    format!("{} {}", paint_by_severity(severity, &format!("{severity:>2}")), severity_scale(severity))
}

/// The bar of a severity.
pub(super) fn severity_scale(severity: u64) -> String {
    let full = usize::try_from(severity).unwrap_or(STEPS).min(STEPS);
    paint_by_severity(severity, &FULL.repeat(full)) + &faint(EMPTY.repeat(STEPS - full))
}

/// A word in the colour of a severity.
pub(super) fn paint_by_severity(severity: u64, text: &str) -> String {
    let paint = match severity {
        9.. => Paint::Bad,
        5..=8 => Paint::Fair,
        _ => Paint::Strong,
    };
    if text.is_empty() { String::new() } else { paint.on(text) }
}

fn faint(text: String) -> String {
    if text.is_empty() { text } else { Paint::Faint.on(&text) }
}

/// The bar of a side in a vote: its share, and the share that it needs, if any. A bar reaches the mark only if the side
/// reaches what it needs.
pub(super) fn side_bar(part: f64, needs: Option<f64>, paint: Option<Paint>, cells: usize) -> String {
    let threshold = needs.map(|needs| cell_of(needs, cells));
    let mut full = cell_of(part, cells).max(usize::from(part > 0.0));
    if let (Some(needs), Some(threshold)) = (needs, threshold)
        && part < needs
    {
        full = full.min(threshold.saturating_sub(1));
    }
    let painted = |text: String| match paint {
        Some(paint) if !text.is_empty() => paint.on(&text),
        _ => text,
    };
    let piece = |start: usize, end: usize| {
        let to_full = full.clamp(start, end);
        painted(FULL.repeat(to_full - start)) + &faint(EMPTY.repeat(end - to_full))
    };
    match threshold {
        Some(threshold) => piece(0, threshold) + THRESHOLD_MARK + &piece(threshold, cells),
        None => piece(0, cells),
    }
}

/// The number of cells of a share, rounded.
fn cell_of(part: f64, cells: usize) -> usize {
    // NaN counts as zero; `as` saturates.
    let cell = (part.clamp(0.0, 1.0) * cells as f64).round();
    (cell as usize).min(cells)
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::*;
    use crate::render::layout::finish;

    fn plain(text: &str) -> String {
        finish(text, TextOptions::default()).trim_end().to_owned()
    }

    #[test]
    fn a_cell_for_each_step() {
        assert_eq!(plain(&severity_bar(7)), " 7 ███████░░░");
        assert_eq!(plain(&severity_bar(10)), "10 ██████████");
        assert_eq!(plain(&severity_bar(u64::MAX)).matches('█').count(), 10);
    }

    #[test]
    fn a_bar_reaches_the_mark_only_if_the_side_does() {
        assert_eq!(plain(&side_bar(0.66, Some(0.66), None, 10)), "███████┃░░░");
        assert_eq!(plain(&side_bar(0.6599, Some(0.66), None, 10)), "██████░┃░░░");
        assert_eq!(plain(&side_bar(1.0, Some(1.0), None, 10)), "██████████┃");
        assert_eq!(plain(&side_bar(0.001, None, None, 10)), "█░░░░░░░░░");
        assert_eq!(plain(&side_bar(f64::NAN, None, None, 4)), "░░░░");
    }
}
