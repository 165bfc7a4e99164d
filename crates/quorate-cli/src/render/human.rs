//! A report as text for a terminal: the verdict, then the answers, then the brief.

mod brief;
mod screen;

use quorate_diagnostics::render::TextOptions;
use quorate_protocol::policy::Verdict;

use super::Extent;
use super::deliberator_row;
use super::layout::{hanging, prose, table};
use super::member_usage;
use super::paint::{Paint, finish, one_line};
use super::wording::{amount, cost, duration, minute, undecided};
use quorate::service::member_usage::MemberUsage;
use quorate::service::report::Report;

/// The report, ending with one line break.
pub(crate) fn human(report: &Report, extent: Extent, options: TextOptions) -> String {
    let sections = match extent {
        Extent::Screen if report.unjudged.is_some() => {
            vec![screen::unjudged(report, options.width), overridden(report, options.width)]
        }
        Extent::Screen if report.verdict == Some(Verdict::Ship) => screen::sections(report, options.width),
        Extent::Screen | Extent::Full => all_sections(report, extent, options),
    };
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    finish(&sections.join("\n\n"), options)
}

fn all_sections(report: &Report, extent: Extent, options: TextOptions) -> Vec<String> {
    let members = match extent {
        Extent::Screen => String::new(),
        Extent::Full => members(&report.members, options.width),
    };
    vec![
        head(report, options.width),
        deliberators(report, options.width),
        reasoning(report, options.width),
        brief::brief(report, options),
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

fn head(report: &Report, width: usize) -> String {
    let mut out = verdict(report, width);
    out.push('\n');
    for (label, text) in facts(report) {
        out.push_str(&hanging(&Paint::Faint.on(&format!("{label:<8}")), &text, 2, width));
    }
    out
}

/// The verdict, its basis and its reason.
fn verdict(report: &Report, width: usize) -> String {
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
fn facts(report: &Report) -> Vec<(&'static str, String)> {
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

fn deliberators(report: &Report, width: usize) -> String {
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

fn reasoning(report: &Report, width: usize) -> String {
    let text = (report.reasoning != report.because && !report.reasoning.trim().is_empty())
        .then_some(&*report.reasoning);
    titled("Reasoning", text, width)
}

fn asks(report: &Report, width: usize) -> String {
    let items = super::member_requests::member_requests(report);
    let items: Vec<String> =
        items.iter().map(|(member, text)| hanging("-", &format!("{member}: {text}"), 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("What each asks for") + &items.concat() }
}

fn overridden(report: &Report, width: usize) -> String {
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
    let (headings, rows) = member_usage::table(members);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = heading(member_usage::TITLE) + &table(&headings, rows, 2, width);
    if let more @ 1.. = member_usage::left_out(members) {
        out.push_str(&prose(&format!("… and {}.", amount(more as u64, "more member")), 2, width));
    }
    out
}

/// Notes, without the one on models, which the head has.
fn notes(report: &Report, width: usize) -> String {
    let items: Vec<String> =
        report.notes.iter().map(|note| hanging("-", &one_line(note), 2, width)).collect();
    if items.is_empty() { String::new() } else { heading("Notes") + &items.concat() }
}

#[cfg(test)]
mod tests;
