//! The report of an assembly's run as Markdown, with a Mermaid diagram of the decision. All foreign text is escaped.

mod mermaid;

use quorate::service::convene::report::{Contribution, Decision, Fragment, Member, Node, Rollup};
use quorate_manifest::assembly::Mode;

use super::super::Extent;
use super::super::layout::{one_line, truncate};
use super::super::markdown::members;
use super::super::markdown::{code, inline, paragraphs};
use super::super::wording::{amount, status};
use super::phrases::{assessment, names};
use super::{phrases, rules};

/// The longest shown title, in characters.
const TITLE: usize = 200;

pub(super) fn markdown(report: &Decision, extent: Extent) -> String {
    let mut sections = vec![head(report), facts(report)];
    match report.mode {
        Mode::Voting => {
            sections.push(alone(report));
            sections.push(tally(report));
            sections.push(mermaid::votes(report));
            sections.push(votes(report));
        }
        Mode::Advisory => {
            sections.push(fragments(report));
            sections.push(mermaid::guidance(report));
            sections.push(member_table(report));
        }
        Mode::Peer => {
            sections.push(mermaid::talk(report));
            sections.extend(round_sections(report));
        }
        Mode::Hierarchy => {
            sections.push(rollup(report));
            sections.push(mermaid::tree(report));
            sections.push(nodes(report));
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

fn head(report: &Decision) -> String {
    let because = inline(&phrases::because(report));
    format!(
        "## {}: {}\n\n{because}",
        inline(&phrases::verdict(report)),
        inline(&truncate(&one_line(&report.title), TITLE))
    )
}

fn facts(report: &Decision) -> String {
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
fn more(report: &Decision, number: usize, noun: &str) -> String {
    match number {
        0 => String::new(),
        number => format!(
            "\n… and {}: {} lists all.\n",
            super::super::wording::amount(number as u64, noun),
            code(&format!("quorate show {}{} --format json", report.run, report.ledger_flag))
        ),
    }
}

fn rules(report: &Decision) -> String {
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

fn refused(report: &Decision) -> String {
    let mut out = String::new();
    for rejection in phrases::rejections(report) {
        let excerpt =
            rejection.excerpt.map_or_else(String::new, |words| format!("\n  > {}\n", inline(&words)));
        out.push_str(&format!("- {} {}\n{excerpt}", inline(&rejection.what), inline(&rejection.why)));
    }
    if out.is_empty() { out } else { format!("### Refused\n\n{out}") }
}

fn absent(report: &Decision) -> String {
    let item = |(member, reason): (String, String)| format!("- {}: {}\n", inline(&member), inline(&reason));
    let items: String = phrases::absences(report).into_iter().map(item).collect();
    if items.is_empty() { items } else { format!("### No answer\n\n{items}") }
}

fn notes(report: &Decision) -> String {
    let items: String = phrases::notes_without_rejections(report)
        .iter()
        .map(|note| format!("- {}\n", inline(note)))
        .collect();
    if items.is_empty() { items } else { format!("### Notes\n\n{items}") }
}

fn foot(report: &Decision) -> String {
    let facts = phrases::facts(report);
    let spent = facts.iter().find(|(label, _)| *label == "executor").map(|(_, text)| inline(text));
    format!("<sub>executor {}</sub>", spent.unwrap_or_default())
}

/// The longest shown text in a cell, and outside of tables, in characters.
const CELL: usize = 400;
const TEXT: usize = 4000;
/// The most rows of a table, and the most messages.
const ROWS: usize = 200;
const NAMED: usize = 20;

/// Text of a member as a quotation.
fn quoted(text: &str) -> String {
    paragraphs(&truncate(text, TEXT))
        .lines()
        .map(|line| format!("> {line}").trim_end().to_owned() + "\n")
        .collect()
}

fn tally(report: &Decision) -> String {
    let Some(decision) = report.decision.as_ref().filter(|decision| !decision.votes.is_empty()) else {
        return String::new();
    };
    let rows =
        phrases::sides(decision).into_iter().map(|side| vec![side.word.to_owned(), inline(&side.text)]);
    let text =
        decision.text.as_deref().map_or_else(String::new, |text| format!("\n{}", quoted(&breaks(text))));
    format!(
        "### Tally: {}\n\n{}{text}",
        inline(&phrases::ratio_text(report, decision)),
        table(&["side", "weight"], rows)
    )
}

/// The member that decided alone by a `terminal` rule, and its rationale.
fn alone(report: &Decision) -> String {
    let contribution = report.decision.as_ref().map_or(&[][..], |decision| &decision.contribution);
    if contribution.is_empty() {
        return String::new();
    }
    let entry = |contribution: &Contribution| {
        format!(
            "\n**{}** votes {}:\n\n{}",
            code(&contribution.member),
            inline(&contribution.vote),
            quoted(&contribution.rationale)
        )
    };
    let remainder = more(report, contribution.len().saturating_sub(ROWS), "more vote");
    let all: String = contribution.iter().take(ROWS).map(entry).collect();
    format!("### Decided alone\n{all}{remainder}")
}

/// Makes each line a paragraph.
fn breaks(text: &str) -> String {
    text.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn votes(report: &Decision) -> String {
    let Some(decision) = report.decision.as_ref().filter(|decision| !decision.votes.is_empty()) else {
        return String::new();
    };
    let rows = decision.votes.iter().take(ROWS).map(|vote| {
        let member = phrases::member(report, &vote.member);
        let answer = member.and_then(|member| member.answer());
        let rationale = match (&*vote.vote, &vote.withheld) {
            ("missing" | "cancelled", _) => member.map_or_else(String::new, phrases::last_status),
            (_, Some(withheld)) => one_line(withheld),
            _ => one_line(answer.and_then(|answer| answer.get("rationale")?.as_str()).unwrap_or_default()),
        };
        let role = member.map_or("", |member| &member.role);
        vec![
            code(&vote.member),
            inline(role),
            inline(&vote.weight),
            inline(&vote.vote),
            inline(&truncate(&rationale, CELL)),
        ]
    });
    let votes = table(&["member", "role", "weight", "vote", "why"], rows);
    let remainder = more(report, decision.votes.len().saturating_sub(ROWS), "more vote");
    format!("### Votes\n\n{votes}{remainder}")
}

fn fragments(report: &Decision) -> String {
    if report.fragments.is_empty() {
        return String::new();
    }
    let mut out = format!("### Guidance: {}\n", amount(report.fragments.len() as u64, "fragment"));
    for (at, item) in report.fragments.iter().take(ROWS).enumerate() {
        out.push_str(&fragment(report, item, at + 1));
    }
    out + &more(report, report.fragments.len().saturating_sub(ROWS), "more fragment")
}

fn fragment(report: &Decision, item: &Fragment, number: usize) -> String {
    let concern = phrases::member(report, &item.member)
        .and_then(assessment)
        .map(|assessment| assessment.concern)
        .unwrap_or_default();
    let concern = match concern.is_empty() {
        true => String::new(),
        false => format!(" on the concern “{}”", inline(&truncate(&concern, CELL))),
    };
    format!(
        "\n**{number}. {}**, severity {}, priority {}\n\n{}\n- why: rule {}{concern}\n- holds: {}\n",
        code(&item.member),
        item.severity,
        item.priority,
        quoted(&item.text),
        code(&item.rule),
        inline(&phrases::validity(report, item))
    )
}

/// The assessments of all members that were asked.
fn member_table(report: &Decision) -> String {
    let asked: Vec<&Member> =
        report.members.iter().filter(|member| !member.consultations.is_empty()).collect();
    if asked.is_empty() {
        return String::new();
    }
    let row = |member: &&Member| {
        let (severity, concern) = match assessment(member) {
            Some(assessment) => (assessment.severity.to_string(), truncate(&assessment.concern, CELL)),
            None => ("–".to_owned(), status(&one_line(&member.status))),
        };
        let phase = member.phase.as_deref().unwrap_or("–");
        vec![code(&member.id), inline(&member.role), inline(phase), severity, inline(&concern)]
    };
    let members =
        table(&["member", "role", "phase", "severity", "concern"], asked.iter().take(ROWS).map(row));
    let remainder = more(report, asked.len().saturating_sub(ROWS), "more member");
    format!("### Members\n\n{members}{remainder}")
}

/// A discussion, round by round.
fn round_sections(report: &Decision) -> Vec<String> {
    let (mut all, mut remaining) = (Vec::new(), ROWS);
    for round in phrases::rounds(report) {
        let mut out = format!("### Round {}\n\n", round.number);
        for turn in round.turns.iter().take(remaining) {
            let annotations = turn.annotations();
            let annotations = if annotations.is_empty() {
                String::new()
            } else {
                format!(" *({})*", annotations.join(", "))
            };
            let withheld = turn
                .kept_back
                .as_deref()
                .map_or_else(String::new, |reason| format!(" **{}**", inline(reason)));
            let addressees = inline(&turn.to());
            let text = if turn.text.trim().is_empty() { String::new() } else { quoted(turn.text) + "\n" };
            out.push_str(&format!("{} → {addressees}{annotations}{withheld}\n\n{text}", code(turn.from)));
        }
        out.push_str(&more(report, round.turns.len().saturating_sub(remaining), "more message"));
        remaining = remaining.saturating_sub(round.turns.len());
        if !round.silent.is_empty() {
            out.push_str(&format!("- passed: {}\n", inline(&names(&round.silent, NAMED))));
        }
        for (member, status) in round.absent.iter().take(NAMED) {
            out.push_str(&format!("- {}: {}\n", code(member), inline(status)));
        }
        out.push_str(&more(
            report,
            round.absent.len().saturating_sub(NAMED),
            "more member without an answer",
        ));
        all.push(out);
    }
    for (rule, synthesis) in &report.synthesis {
        let text = synthesis.as_str().map_or_else(|| synthesis.to_string(), str::to_owned);
        all.push(format!("### Made by {}\n\n{}", code(rule), quoted(&text)));
    }
    all
}

/// The root's output.
fn rollup(report: &Decision) -> String {
    let Some(Rollup { severity, concern, evidence, suggestion }) = &report.rollup else {
        return String::new();
    };
    let mut out = format!("### Passed up by the root: severity {severity}\n\n");
    for (label, text) in [("Concern", concern), ("Suggestion", suggestion)] {
        if !text.trim().is_empty() {
            out.push_str(&format!("{label}:\n\n{}\n", quoted(text)));
        }
    }
    if !evidence.is_empty() {
        out.push_str("Evidence:\n\n");
        for quote in evidence.iter().take(NAMED) {
            out.push_str(&format!("- “{}”\n", inline(&truncate(&one_line(quote), CELL))));
        }
    }
    out + &more(report, evidence.len().saturating_sub(NAMED), "more quote")
}

/// The answer and the output of each node.
fn nodes(report: &Decision) -> String {
    if report.nodes.is_empty() {
        return member_table(report);
    }
    let row = |node: &Node| {
        let assessment = phrases::member(report, &node.member).and_then(assessment);
        let answer = assessment.map_or_else(
            || "–".to_owned(),
            |assessment| format!("{}: {}", assessment.severity, truncate(&assessment.concern, CELL)),
        );
        let from: Vec<&str> = node.from.iter().map(String::as_str).collect();
        let up = match (&node.output, &node.rule) {
            (None, _) => "nothing".to_owned(),
            (Some(output), None) if from.is_empty() => format!("{}, its own", output.severity),
            (Some(output), None) => format!("{}, of {}", output.severity, names(&from, NAMED)),
            (Some(output), Some(rule)) => {
                let of = if from.is_empty() { String::new() } else { format!(" of {}", names(&from, NAMED)) };
                format!("{} by {}{of}", output.severity, one_line(rule))
            }
        };
        let parent = node.parent.as_deref().map_or_else(|| "–".to_owned(), code);
        vec![code(&node.member), parent, inline(&status(&node.status)), inline(&answer), inline(&up)]
    };
    let nodes = table(
        &["node", "reports to", "status", "said", "passes up"],
        report.nodes.iter().take(ROWS).map(row),
    );
    let remainder = more(report, report.nodes.len().saturating_sub(ROWS), "more node");
    format!("### Nodes\n\n{nodes}{remainder}")
}
