//! The output of `convene` and `show` for an assembly: the outcome and its reasons; and that of `--dry-run`: the members asked
//! at once, later, or never, the rules, the locked traits, and every prompt as it would be sent.

mod forest;
mod human;
mod markdown;
mod phrases;
mod rules;

use std::time::Duration;

use quorate::service::convene::plan::{DeferredQuestion, Plan, Question};
use quorate::service::convene::report::Decision;
use quorate_diagnostics::render::TextOptions;

use super::layout::{
    Paint, ascii, finish, hanging, indented, one_line, prose, sanitize, table, truncate, wrap_prefixed,
};
use super::markdown::{code, fenced, inline};
use super::wording::{amount, duration};
use super::{Extent, Format};
use crate::progress::Glyphs;
use phrases::{names, request, subject};

/// A report in a format, ending with one line break; `None` if the format cannot show an assembly.
pub(crate) fn report(
    report: &Decision,
    format: Format,
    extent: Extent,
    options: TextOptions,
) -> Option<String> {
    match format {
        Format::Human => Some(with_glyphs(human::human(report, extent, options))),
        Format::Json => Some(format!("{:#}\n", report.to_json())),
        Format::Markdown => Some(markdown::markdown(report, extent)),
        Format::Sarif | Format::Github | Format::Gitlab => None,
    }
}

pub(crate) fn plan(plan: &Plan, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human => with_glyphs(plan_human(plan, options)),
        Format::Markdown => plan_markdown(plan),
        Format::Json | Format::Sarif | Format::Github | Format::Gitlab => format!("{:#}\n", plan.json()),
    }
}

/// Replaces characters that the terminal cannot display.
fn with_glyphs(text: String) -> String {
    match Glyphs::of_stdout() {
        Glyphs::Unicode => text,
        Glyphs::Ascii => ascii(&text),
    }
}

/// The longest shown title, in characters.
const TITLE: usize = 200;
/// The most members named that are asked later, or never, for the same reason.
const NAMED: usize = 40;

const GROUPS: usize = 60;

/// Text for a terminal. Prompts are not wrapped.
fn plan_human(plan: &Plan, options: TextOptions) -> String {
    let width = options.width;
    let heading = |text: &str| format!("\n{}\n", Paint::Strong.on(text));
    let title = Paint::Strong.on(&truncate(&one_line(&plan.title), TITLE));
    let mut out = wrap_prefixed(&format!("{}  ", Paint::Absent.on("PLAN")), "      ", &title, 4, width);
    out.push_str(&prose(&plan_summary(plan), 0, width));
    out.push_str(&heading("Asked at once"));
    match plan.first.is_empty() {
        true => out.push_str("  no members\n"),
        false => {
            let row = |question: &Question| {
                vec![
                    Paint::Strong.on(&one_line(&question.member)),
                    one_line(&question.invocation),
                    one_line(&question.executor),
                    deadline(question),
                ]
            };
            let rows = plan.first.iter().map(row).collect();
            out.push_str(&table(&["member", "invocation", "executor", "deadline"], rows, 2, width));
        }
    }
    for (title, all) in [("Asked later", &plan.later), ("Not asked in this run", &plan.never)] {
        if !all.is_empty() {
            out.push_str(&heading(title));
            let groups = together(all);
            for (members, when) in groups.iter().take(GROUPS) {
                out.push_str(&hanging("-", &format!("{members}: {when}"), 2, width));
            }
            if groups.len() > GROUPS {
                out.push_str(&prose(&left(&groups), 2, width));
            }
        }
    }
    if !plan.rules.is_empty() {
        out.push_str(&heading("Rules, in order"));
        let row =
            |(at, (id, kind)): (usize, &(String, String))| vec![at.to_string(), one_line(id), one_line(kind)];
        out.push_str(&table(&["", "rule", "kind"], (1..).zip(&plan.rules).map(row).collect(), 2, width));
    }
    if !plan.locked_traits.is_empty() {
        out.push_str(&heading("Locked traits: no outcome may contain these"));
        for locked in &plan.locked_traits {
            out.push_str(&hanging("-", &format!("“{}”", one_line(locked)), 2, width));
        }
    }
    for question in &plan.first {
        out.push_str(&heading(&format!("Prompt of {}", one_line(&question.invocation))));
        match &question.prompt {
            Some(prompt) => out.push_str(&indented(sanitize(prompt).trim_end(), 2)),
            None => out.push_str(&prose(UNGATHERED, 2, width)),
        }
    }
    finish(&out, options)
}

/// Replaces a prompt that does not exist yet.
const UNGATHERED: &str = "The host gathers what it is shown first; only then there is a prompt.";

fn plan_markdown(plan: &Plan) -> String {
    let mut out = format!(
        "## PLAN: {}\n\n{}\n\n### Asked at once\n\n",
        inline(&plan.title),
        inline(&plan_summary(plan))
    );
    out.push_str("| member | invocation | executor | deadline |\n| --- | --- | --- | --- |\n");
    for question in &plan.first {
        let cells = [
            code(&question.member),
            code(&question.invocation),
            code(&question.executor),
            deadline(question),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    for (title, all) in [("Asked later", &plan.later), ("Not asked in this run", &plan.never)] {
        if !all.is_empty() {
            out.push_str(&format!("\n### {title}\n\n"));
            let groups = together(all);
            for (members, when) in groups.iter().take(GROUPS) {
                out.push_str(&format!("- {}: {}\n", inline(members), inline(when)));
            }
            if groups.len() > GROUPS {
                out.push_str(&format!("- {}\n", inline(&left(&groups))));
            }
        }
    }
    if !plan.rules.is_empty() {
        out.push_str("\n### Rules, in order\n\n");
        for (at, (id, kind)) in plan.rules.iter().enumerate() {
            out.push_str(&format!("{}. {} ({})\n", at + 1, code(id), inline(kind)));
        }
    }
    if !plan.locked_traits.is_empty() {
        out.push_str("\n### Locked traits\n\nNo outcome may contain these.\n\n");
        for locked in &plan.locked_traits {
            out.push_str(&format!("- {}\n", code(locked)));
        }
    }
    for question in &plan.first {
        out.push_str(&format!("\n### Prompt of {}\n\n", code(&question.invocation)));
        match &question.prompt {
            Some(prompt) => out.push_str(&fenced(&sanitize(prompt))),
            None => out.push_str(&format!("{UNGATHERED}\n")),
        }
    }
    out
}

fn plan_summary(plan: &Plan) -> String {
    let notes: String = plan.notes.iter().map(|note| format!(" {}", one_line(note))).collect();
    format!(
        "{}: {}, on {}. No member is asked now; a run begins with {}.{notes}",
        one_line(&plan.assembly),
        request(plan.mode, &plan.request),
        subject(&plan.subject),
        amount(plan.first.len() as u64, "question")
    )
}

fn deadline(question: &Question) -> String {
    duration(Duration::from_millis(u64::try_from(question.timeout_ms).unwrap_or(u64::MAX)))
}

/// A line for reasons that are not shown.
fn left(groups: &[(String, String)]) -> String {
    format!("… and {} more: `--format json` lists all.", groups.len() - GROUPS)
}

/// Groups members by reason: names, and when or why not.
fn together(all: &[DeferredQuestion]) -> Vec<(String, String)> {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    for question in all {
        let member = format!("{} ({})", question.member, question.executor);
        match groups.iter_mut().find(|(_, when)| *when == question.when) {
            Some((members, _)) => members.push(member),
            None => groups.push((vec![member], question.when.clone())),
        }
    }
    let to_text = |(members, when): (Vec<String>, String)| {
        (names(&members.iter().map(String::as_str).collect::<Vec<_>>(), NAMED), one_line(&when))
    };
    groups.into_iter().map(to_text).collect()
}

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod tests;
