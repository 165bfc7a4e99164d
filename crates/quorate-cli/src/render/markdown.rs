//! A report as Markdown for a pull request. All foreign text is escaped.

use quorate_protocol::policy::Verdict;

use super::Extent;
use super::brief::{Brief, MAX_PLACES, Place, Point};
use super::deliberator_row;
use super::escape::{code, inline, paragraphs};
use super::member_usage;
use super::wording::{amount, duration, list, minute, truncate, undecided};
use quorate::service::member_usage::MemberUsage;
use quorate::service::report::Report;

/// The longest shown quote, in characters.
const QUOTE: usize = 300;

pub(crate) fn markdown(report: &Report, extent: Extent) -> String {
    let members = match extent {
        Extent::Screen => String::new(),
        Extent::Full => members(&report.members),
    };
    let sections = match report.unjudged {
        Some(_) if extent == Extent::Screen => vec![head(report), overridden(report), foot(report)],
        _ => vec![
            head(report),
            table(report),
            section("Reasoning", (report.reasoning != report.because).then_some(&*report.reasoning)),
            brief(report),
            asks(report),
            section("Revision brief", report.revision_brief.as_deref()),
            section("Dissent", report.dissent_summary.as_deref()),
            overridden(report),
            members,
            notes(report),
            foot(report),
        ],
    };
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    sections.join("\n\n") + "\n"
}

fn head(report: &Report) -> String {
    let word = report.verdict_word();
    let because = match report.verdict {
        _ if !report.because.is_empty() => inline(&report.because),
        _ => undecided(&report.run, report.imported, report.queued),
    };
    let override_decision = report.overridden.as_ref().map_or_else(String::new, |override_decision| {
        format!("\n\nA person decided **{}**: see below.", inline(&override_decision.verdict))
    });
    let over_blocks =
        report.ship_over_blocks().map_or_else(String::new, |over_blocks| format!(" {over_blocks}"));
    let basis = report.basis().map_or_else(String::new, |basis| format!(" ({basis})"));
    format!("## {word}{over_blocks}{basis}: {}\n\n{because}{override_decision}", code(&report.artifact))
}

fn table(report: &Report) -> String {
    let headings = deliberator_row::headings(report.rounds);
    let mut out = format!("| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(headings.len()));
    for deliberator in &report.deliberators {
        let cells: Vec<String> =
            deliberator_row::row(report, deliberator).into_iter().map(|cell| inline(&cell.text)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let remarks = [deliberator_row::reactions(report), deliberator_row::absences(report)].concat();
    if !remarks.is_empty() {
        out.push('\n');
    }
    for (member, remark) in remarks {
        out.push_str(&format!("- {}: {}\n", inline(&member), inline(&remark)));
    }
    out
}

/// Each member's executor and usage.
pub(super) fn members(members: &[MemberUsage]) -> String {
    let (headings, rows) = member_usage::table(members);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "### {}\n\n| {} |\n|{}\n",
        member_usage::TITLE,
        headings.join(" | "),
        " --- |".repeat(headings.len())
    );
    for cells in rows {
        let cells: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if let more @ 1.. = member_usage::left_out(members) {
        out.push_str(&format!("\n… and {}.\n", amount(more as u64, "more member")));
    }
    out
}

fn section(title: &str, text: Option<&str>) -> String {
    let body = text.map(paragraphs).filter(|text| !text.trim().is_empty());
    body.map_or_else(String::new, |body| format!("### {title}\n\n{body}"))
}

fn brief(report: &Report) -> String {
    let brief = Brief::of(report);
    if brief.is_empty() {
        return String::new();
    }
    let mut out = format!("### Brief: {}\n", amount(brief.findings as u64, "finding"));
    for (at, place) in brief.places.iter().enumerate() {
        out.push_str(&item(report, place, at + 1));
    }
    if !brief.ungrounded.is_empty() {
        out.push_str("\nUngrounded: these quotes are not in the text.\n");
    }
    for (at, place) in brief.ungrounded.iter().enumerate() {
        out.push_str(&item(report, place, brief.places.len() + at + 1));
    }
    if brief.more > 0 {
        let remainder = amount(brief.more as u64, "more finding");
        out.push_str(&format!(
            "\n… and {remainder} beyond the first {MAX_PLACES} places: `quorate show {} --format json` lists all.\n",
            report.run
        ));
    }
    out
}

fn item(report: &Report, place: &Place<'_>, number: usize) -> String {
    let name_of = |member: &&str| {
        format!(
            "**{}**{}",
            inline(member),
            if deliberator_row::blocks(report, member) { " (blocks)" } else { "" }
        )
    };
    let names: Vec<String> = place.by.iter().map(name_of).collect();
    let names = list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let at = place.at.map_or_else(String::new, |(line, column)| {
        format!("{}, ", code(&format!("{}:{line}:{column}", report.artifact)))
    });
    let mut out = format!("\n{number}. {at}{names}\n\n   > {}\n\n", inline(&truncate(&place.quote, QUOTE)));
    for Point { by, issue, fix } in &place.points {
        let authors = if *by == place.by { String::new() } else { format!("{}: ", inline(&list(by))) };
        let fix = fix.as_ref().map_or_else(String::new, |fix| format!(" **Fix:** {}", inline(fix)));
        out.push_str(&format!("   - {authors}{}{fix}\n", inline(issue)));
    }
    out
}

fn asks(report: &Report) -> String {
    let items = super::member_requests::member_requests(report);
    let items: Vec<String> =
        items.iter().map(|(member, text)| format!("- {}: {}\n", inline(member), inline(text))).collect();
    if items.is_empty() { String::new() } else { format!("### What each asks for\n\n{}", items.concat()) }
}

fn overridden(report: &Report) -> String {
    let Some(override_decision) = &report.overridden else { return String::new() };
    let council = report.verdict.map_or("nothing yet", Verdict::as_str);
    let (author, verdict) = (inline(&override_decision.by), inline(&override_decision.verdict));
    format!(
        "### A person's decision\n\n{author} decided **{verdict}**; the council's verdict stays {council}.\n\n{}",
        paragraphs(&override_decision.reason)
    )
}

fn notes(report: &Report) -> String {
    let items: Vec<String> = report.all_notes().iter().map(|note| format!("- {}\n", inline(note))).collect();
    if items.is_empty() { String::new() } else { format!("### Notes\n\n{}", items.concat()) }
}

fn foot(report: &Report) -> String {
    format!(
        "<sub>run {}, {} UTC; {}, tier {}; policy {}; executor {}; {}, {}</sub>",
        inline(&report.run),
        minute(report.opened_ms),
        inline(&report.artifact_type),
        report.tier,
        inline(&report.policy),
        inline(&report.executor),
        amount(u64::from(report.calls), "call"),
        duration(report.took),
    )
}
