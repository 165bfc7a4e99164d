//! The report of an assembly's run as Markdown, with a Mermaid diagram of the decision. All foreign text is escaped.

mod body;
mod mermaid;

use quorate_manifest::assembly::Mode;

use super::super::Extent;
use super::super::escape::{code, inline};
use super::super::markdown::members;
use super::super::paint::one_line;
use super::super::wording::truncate;
use super::{phrases, rejections, rules};
use quorate::service::convene::report::Report;

/// The longest shown title, in characters.
const TITLE: usize = 200;

pub(super) fn markdown(report: &Report, extent: Extent) -> String {
    let mut sections = vec![head(report), facts(report)];
    match report.mode {
        Mode::Voting => {
            sections.push(body::alone(report));
            sections.push(body::tally(report));
            sections.push(mermaid::votes(report));
            sections.push(body::votes(report));
        }
        Mode::Advisory => {
            sections.push(body::fragments(report));
            sections.push(mermaid::guidance(report));
            sections.push(body::members(report));
        }
        Mode::Peer => {
            sections.push(mermaid::talk(report));
            sections.extend(body::rounds(report));
        }
        Mode::Hierarchy => {
            sections.push(body::rollup(report));
            sections.push(mermaid::tree(report));
            sections.push(body::nodes(report));
        }
    }
    sections.extend([rules(report), refused(report), absent(report), notes(report)]);
    if extent == Extent::Full {
        sections.push(members(&report.member_usage));
    }
    sections.push(foot(report));
    let sections: Vec<&str> =
        sections.iter().map(|section| section.trim_end()).filter(|text| !text.is_empty()).collect();
    sections.join("\n\n") + "\n"
}

fn head(report: &Report) -> String {
    let because = inline(&phrases::because(report));
    format!(
        "## {}: {}\n\n{because}",
        inline(&phrases::verdict(report)),
        inline(&truncate(&one_line(&report.title), TITLE))
    )
}

fn facts(report: &Report) -> String {
    let fact = |(label, text): (&str, String)| {
        let text = if label == "risk" { format!("**{}**", inline(&text)) } else { inline(&text) };
        format!("- {label}: {text}\n")
    };
    phrases::facts(report).into_iter().filter(|(label, _)| *label != "executor").map(fact).collect()
}

/// A table of escaped cells.
fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = format!("| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(headings.len()));
    for cells in rows {
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

/// How many more there are than listed.
fn more(report: &Report, number: usize, noun: &str) -> String {
    match number {
        0 => String::new(),
        number => format!(
            "\n… and {}: {} lists all.\n",
            super::super::wording::amount(number as u64, noun),
            code(&format!("quorate show {}{} --format json", report.run, report.ledger_flag))
        ),
    }
}

fn rules(report: &Report) -> String {
    let summaries = rules::summaries(report);
    if summaries.is_empty() {
        return String::new();
    }
    let mut out = "### Rules, in order\n\n".to_owned();
    for (at, rule) in summaries.iter().enumerate() {
        let did = if rule.fired { format!("**{}**", inline(&rule.did)) } else { inline(&rule.did) };
        out.push_str(&format!("{}. {} ({}): {did}\n", at + 1, code(&rule.id), inline(&rule.kind)));
    }
    out
}

fn refused(report: &Report) -> String {
    let mut out = String::new();
    for rejection in rejections::rejections(report) {
        let excerpt =
            rejection.excerpt.map_or_else(String::new, |words| format!("\n  > {}\n", inline(&words)));
        out.push_str(&format!("- {} {}\n{excerpt}", inline(&rejection.what), inline(&rejection.why)));
    }
    if out.is_empty() { out } else { format!("### Refused\n\n{out}") }
}

fn absent(report: &Report) -> String {
    let item = |(member, reason): (String, String)| format!("- {}: {}\n", inline(&member), inline(&reason));
    let items: String = rejections::absences(report).into_iter().map(item).collect();
    if items.is_empty() { items } else { format!("### No answer\n\n{items}") }
}

fn notes(report: &Report) -> String {
    let items: String =
        rejections::notes(report).iter().map(|note| format!("- {}\n", inline(note))).collect();
    if items.is_empty() { items } else { format!("### Notes\n\n{items}") }
}

fn foot(report: &Report) -> String {
    let facts = phrases::facts(report);
    let spent = facts.iter().find(|(label, _)| *label == "executor").map(|(_, text)| inline(text));
    format!("<sub>executor {}</sub>", spent.unwrap_or_default())
}
