//! A report as text for a terminal: the verdict, then the answers, then the brief.
//!
//! A SHIP fits one screen: it needs no action, so each possible fix is shown once, with a command for the rest. A text that no
//! rule judges takes three lines.

use quorate::service::member_usage::MemberUsage;
use quorate::service::report::Review;
use quorate_diagnostics::render::{Level, TextOptions, underline};
use quorate_protocol::policy::Verdict;

use super::brief::{Brief, MAX_PLACES, Place, Point};
use super::layout::{Paint, finish, hanging, indented, one_line, prose, table, truncate};
use super::wording::{amount, cost, duration, list, minute, undecided};
use super::{Extent, deliberator_row};

/// The report, ending with one line break.
pub(crate) fn human(report: &Review, extent: Extent, options: TextOptions) -> String {
    let sections = match extent {
        Extent::Screen if report.unjudged.is_some() => {
            vec![unjudged(report, options.width), overridden(report, options.width)]
        }
        Extent::Screen if report.verdict == Some(Verdict::Ship) => screen_sections(report, options.width),
        Extent::Screen | Extent::Full => all_sections(report, extent, options),
    };
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    finish(&sections.join("\n\n"), options)
}

fn all_sections(report: &Review, extent: Extent, options: TextOptions) -> Vec<String> {
    let members = match extent {
        Extent::Screen => String::new(),
        Extent::Full => members(&report.members, options.width),
    };
    vec![
        head(report, options.width),
        deliberators(report, options.width),
        reasoning(report, options.width),
        brief_section(report, options),
        asks(report, options.width),
        titled("Revision brief", report.revision_brief.as_deref(), options.width),
        titled("Dissent", report.dissent_summary.as_deref(), options.width),
        overridden(report, options.width),
        members,
        notes(report, options.width),
    ]
}

fn heading(text: &str) -> String {
    format!("{}\n", Paint::Strong.on(text))
}

fn titled(title: &str, text: Option<&str>, width: usize) -> String {
    match text {
        Some(text) => heading(title) + &prose(text, 2, width),
        None => String::new(),
    }
}

fn head(report: &Review, width: usize) -> String {
    let mut out = verdict(report, width);
    out.push('\n');
    for (label, text) in facts(report) {
        out.push_str(&hanging(&Paint::Faint.on(&format!("{label:<8}")), &text, 2, width));
    }
    out
}

/// The verdict, its basis and its reason.
fn verdict(report: &Review, width: usize) -> String {
    let word = report.verdict_word();
    let paint = report.verdict.map_or(Paint::Absent, Paint::of_verdict);
    // Green would suggest that a model approved of the text.
    let paint = if paint == Paint::Good && (!report.model_asked || report.blocks() > 0) {
        Paint::Fair
    } else {
        paint
    };
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!("({basis})"));
    let artifact = one_line(&report.artifact);
    let fits = |parts: &[&str]| parts.iter().map(|part| part.chars().count() + 2).sum::<usize>() <= width + 2;
    let verdict_text = format!("{word}{over_blocks}");
    let strong = Paint::Strong.on(&artifact);
    // The verdict is already painted; only foreign text is wrapped.
    let mut out = match () {
        () if basis.is_empty() && fits(&[&verdict_text, &artifact]) => {
            format!("{}  {strong}\n", paint.on(&verdict_text))
        }
        () if fits(&[&verdict_text, &basis, &artifact]) => {
            format!("{}  {basis}  {strong}\n", paint.on(&verdict_text))
        }
        () if fits(&[&verdict_text, &artifact]) => {
            format!("{}  {strong}\n{}", paint.on(&verdict_text), prose(&basis, 0, width))
        }
        () => format!("{}  {strong}\n{}", paint.on(word), prose(&format!("{over_blocks} {basis}"), 0, width)),
    };
    match report.verdict {
        _ if !report.because.is_empty() => out.push_str(&prose(&report.because, 0, width)),
        _ => out.push_str(&prose(&undecided(&report.run, report.imported, report.queued), 0, width)),
    }
    if let Some(override_decision) = &report.overridden {
        let verdict = one_line(&override_decision.verdict);
        let text = format!("A person decided {}: see below.", Paint::of_word(&verdict).on(&verdict));
        out.push_str(&text);
        out.push('\n');
    }
    out
}

/// The facts about the run, each with a label.
fn facts(report: &Review) -> Vec<(&'static str, String)> {
    let opened = minute(report.opened_ms);
    // The headline of recorded answers says it.
    let model_note =
        if report.model_asked || report.recorded.is_some() { "" } else { " (no model was asked)" };
    let mut spent = format!("{}, {}", amount(u64::from(report.calls), "call"), duration(report.took));
    spent.push_str(&cost(&report.usage));
    let mut kind = format!(
        "{}, tier {}, policy {}",
        one_line(&report.artifact_type),
        report.tier,
        one_line(&report.policy)
    );
    if report.prior_verdicts_consulted > 0 {
        kind.push_str(&format!(", {} consulted", amount(report.prior_verdicts_consulted, "earlier verdict")));
    }
    let mut facts = vec![
        ("run", format!("{}, {opened} UTC", report.run)),
        ("type", kind),
        ("executor", format!("{}{model_note}, {spent}", one_line(&report.executor))),
    ];
    if let Some(reference) = &report.ledger {
        let council = report.council.as_deref().map_or_else(|| "built-in".to_owned(), one_line);
        facts.push(("council", format!("{council}; ledger {}", one_line(&reference.shown))));
    }
    facts
}

fn deliberators(report: &Review, width: usize) -> String {
    let painted = |cell: deliberator_row::Cell| {
        cell.paint.map_or_else(|| cell.text.clone(), |paint| paint.on(&cell.text))
    };
    let row = |deliberator| deliberator_row::row(report, deliberator).into_iter().map(painted).collect();
    let rows: Vec<Vec<String>> = report.deliberators.iter().map(row).collect();
    let mut out = table(&deliberator_row::headings(report.rounds), rows, 2, width);
    let remarks = [deliberator_row::reactions(report), deliberator_row::absences(report)].concat();
    if !remarks.is_empty() {
        out.push('\n');
    }
    for (member, remark) in remarks {
        out.push_str(&hanging("-", &format!("{member}: {remark}"), 2, width));
    }
    out
}

fn reasoning(report: &Review, width: usize) -> String {
    let text = (report.reasoning != report.because && !report.reasoning.trim().is_empty())
        .then_some(&*report.reasoning);
    titled("Reasoning", text, width)
}

fn asks(report: &Review, width: usize) -> String {
    let items = super::deliberator_row::member_requests(report);
    let items: Vec<String> =
        items.iter().map(|(member, text)| hanging("-", &format!("{member}: {text}"), 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("What each asks for") + &items.concat() }
}

fn overridden(report: &Review, width: usize) -> String {
    let Some(override_decision) = &report.overridden else { return String::new() };
    let council = report.verdict.map_or("nothing yet", Verdict::as_str);
    let text = format!(
        "{} decided {}; the council's verdict stays {council}.",
        one_line(&override_decision.by),
        one_line(&override_decision.verdict)
    );
    heading("A person's decision") + &prose(&text, 2, width) + &prose(&override_decision.reason, 2, width)
}

/// Each member's executor and usage.
pub(super) fn members(members: &[MemberUsage], width: usize) -> String {
    let (headings, rows) = deliberator_row::usage_table(members);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = heading(deliberator_row::USAGE_TITLE) + &table(&headings, rows, 2, width);
    if let more @ 1.. = deliberator_row::usage_left_out(members) {
        out.push_str(&prose(&format!("… and {}.", amount(more as u64, "more member")), 2, width));
    }
    out
}

/// Notes, without the one on models, which the head has.
fn notes(report: &Review, width: usize) -> String {
    let items: Vec<String> =
        report.notes.iter().map(|note| hanging("-", &one_line(note), 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("Notes") + &items.concat() }
}

/// The indent of the points about a place.
const INDENT: usize = 5;
/// The longest quote shown without underlining, in characters.
const QUOTE: usize = 200;

/// The brief; empty without findings.
fn brief_section(report: &Review, options: TextOptions) -> String {
    let brief = Brief::of(report);
    if brief.is_empty() {
        return String::new();
    }
    let mut out = heading(&format!("Brief: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in brief.places.iter().enumerate() {
        out.push_str(&item(report, place, at + 1, options));
    }
    if !brief.ungrounded.is_empty() {
        out.push('\n');
        out.push_str(&heading("Ungrounded: not in the text"));
    }
    for (at, place) in brief.ungrounded.iter().enumerate() {
        out.push_str(&item(report, place, brief.places.len() + at + 1, options));
    }
    if brief.more > 0 {
        let remainder = format!(
            "… and {} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.",
            amount(brief.more as u64, "more finding"),
            report.run
        );
        out.push('\n');
        out.push_str(&prose(&remainder, 2, options.width));
    }
    out
}

fn item(report: &Review, place: &Place<'_>, number: usize, options: TextOptions) -> String {
    let name_of = |member: &&str| {
        if deliberator_row::blocks(report, member) {
            format!("{member} (blocks)")
        } else {
            (*member).to_owned()
        }
    };
    let names: Vec<String> = place.by.iter().map(name_of).collect();
    let names = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out =
        format!("\n{}", hanging(&format!("{number:>3}."), &Paint::Strong.on(&names), 0, options.width));
    out.push_str(&source(report, place, options));
    let everybody = |point: &Point<'_>| point.by == place.by;
    for point in &place.points {
        let by = if everybody(point) { String::new() } else { format!("{}: ", list(&point.by)) };
        out.push_str(&hanging("-", &format!("{by}{}", point.issue), INDENT, options.width));
        if let Some(fix) = &point.fix {
            out.push_str(&hanging(&format!("  {}", Paint::Strong.on("fix:")), fix, INDENT, options.width));
        }
    }
    out
}

/// The line of a place with its quote underlined; only the quote if the text is unavailable.
fn source(report: &Review, place: &Place<'_>, options: TextOptions) -> String {
    if let (Some(text), Some(span)) = (&report.text, &place.span) {
        let options = TextOptions { width: options.width.saturating_sub(INDENT), ..options };
        let excerpt = underline(text, span.clone(), "", grave(report, place), &report.artifact, options);
        return indented(&excerpt, INDENT);
    }
    let at = match place.at {
        Some((line, column)) => format!("line {line}, column {column}:"),
        None => "quoted:".to_owned(),
    };
    hanging(&at, &format!("“{}”", truncate(&place.quote, QUOTE)), INDENT, options.width)
}

fn grave(report: &Review, place: &Place<'_>) -> Level {
    place
        .by
        .iter()
        .map(|member| quorate::view::code_hosts::level_of_member(report, member))
        .min()
        .unwrap_or(Level::Note)
}

const PLACES: usize = 5;
/// The longest shown quote, in characters.
const SCREEN_QUOTE: usize = 40;
/// The most lines of a place.
const LINES: usize = 2;

fn screen_sections(report: &Review, width: usize) -> Vec<String> {
    let brief = Brief::of(report);
    vec![
        head(report, width),
        absent(report, width),
        if brief.is_empty() { advised(report, width) } else { fixes(report, &brief, width) },
        overridden(report, width),
        notes(report, width),
        rest(report, &brief, width),
    ]
}

fn unjudged(report: &Review, width: usize) -> String {
    let at = report.ledger.as_ref().map_or("", |reference| &reference.flag);
    verdict(report, width)
        + &prose(&format!("Run {}: `quorate show {0}{at}` shows all of it.", report.run), 0, width)
}

fn absent(report: &Review, width: usize) -> String {
    deliberator_row::absences(report)
        .iter()
        .map(|(member, text)| hanging("-", &truncate(&format!("{member}: {text}"), LINES * width), 2, width))
        .collect()
}

/// The adjudicator's revision brief, if no finding names a place.
fn advised(report: &Review, width: usize) -> String {
    match &report.revision_brief {
        Some(brief) => heading("Revision brief") + &prose(&truncate(brief, 2 * LINES * width), 2, width),
        None => String::new(),
    }
}

fn fixes(report: &Review, brief: &Brief<'_>, width: usize) -> String {
    let mut places: Vec<&Place<'_>> = brief.places.iter().chain(&brief.ungrounded).collect();
    // Places of blocking findings come first.
    places.sort_by_key(|place| !place.by.iter().any(|member| deliberator_row::blocks(report, member)));
    let mut out = heading(&format!("Could be better: {}", amount(brief.findings as u64, "finding")));
    for (at, place) in places.iter().take(PLACES).enumerate() {
        out.push_str(&hanging(&format!("{}.", at + 1), &fix(report, place, width), 2, width));
    }
    out
}

/// A place on two lines: its line, the fix (or the issue, without a fix), and the members.
fn fix(report: &Review, place: &Place<'_>, width: usize) -> String {
    let at = place.at.map_or_else(|| "not in the text".to_owned(), |(line, _)| format!("line {line}"));
    let mut texts: Vec<&str> = Vec::new();
    for point in &place.points {
        let text = point.fix.as_deref().unwrap_or(&point.issue);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let name_of = |member: &&str| {
        if deliberator_row::blocks(report, member) {
            format!("{member} blocks")
        } else {
            (*member).to_owned()
        }
    };
    let by: Vec<String> = place.by.iter().map(name_of).collect();
    let by = list(&by.iter().map(String::as_str).collect::<Vec<_>>());
    let text = format!("{at}, “{}” ({by}): {}", truncate(&place.quote, SCREEN_QUOTE), texts.join(" "));
    truncate(&text, LINES * width.saturating_sub(8))
}

/// The command that shows the rest.
fn rest(report: &Review, brief: &Brief<'_>, width: usize) -> String {
    let places = brief.places.len() + brief.ungrounded.len();
    let remainder = match places.saturating_sub(PLACES) + brief.more {
        0 => String::new(),
        remainder => format!("{} not shown. ", amount(remainder as u64, "more finding")),
    };
    let at = report.ledger.as_ref().map_or("", |reference| &reference.flag);
    let text = format!(
        "{remainder}`quorate show {}{at}` shows every answer and the reasoning, as `review --full` does.",
        report.run
    );
    prose(&text, 0, width)
}

#[cfg(test)]
mod tests;
