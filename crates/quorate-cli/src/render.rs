//! Formats the output of commands: a file for each topic, a function for each format. All data comes from the library's
//! result.

pub(crate) mod conversation;

pub(crate) use quorate::view::markdown;
pub(crate) use quorate::view::{Extent, layout, wording};

use quorate_diagnostics::Report as Diagnostics;
use quorate_diagnostics::render::{self as diagnostic, TextOptions};
use serde::Serialize;

use quorate::Review;
use quorate::convene::Plan;
use quorate::runs::Recorded;
use quorate::view::Doc;

use crate::terminal::Terminal;

pub(crate) use crate::terminal::Format;

pub(crate) use quorate::view::code_hosts::{github, gitlab, sarif};

/// The extent that `--full` asks for.
pub(crate) fn extent(full: bool) -> Extent {
    if full { Extent::Full } else { Extent::Screen }
}

/// The report of a run in the format of the command line; `None` for an assembly's in a format for findings in files.
pub(crate) fn recorded(recorded: &Recorded, extent: Extent, terminal: &Terminal) -> Option<String> {
    let decision = match recorded {
        Recorded::Review(review) => return Some(report(review, extent, terminal)),
        Recorded::Decision(decision) => decision,
    };
    match terminal.format {
        Format::Human => Some(decision.doc(extent).text(terminal.stdout)),
        Format::Short => Some(decision.short()),
        Format::Json => Some(json_text(decision)),
        Format::Markdown => Some(decision.doc(extent).markdown()),
        Format::Sarif | Format::Github | Format::Gitlab => None,
    }
}

/// A plan in the format of the command line.
pub(crate) fn plan(plan: &Plan, terminal: &Terminal) -> String {
    match terminal.format {
        Format::Human | Format::Short => plan.doc().text(terminal.stdout),
        Format::Markdown => plan.doc().markdown(),
        Format::Json | Format::Sarif | Format::Github | Format::Gitlab => json_text(plan),
    }
}

/// A report in the format of the command line, ending with one line break.
pub(crate) fn report(report: &Review, extent: Extent, terminal: &Terminal) -> String {
    match terminal.format {
        Format::Human => report.doc(extent).text(terminal.stdout),
        Format::Short => report.short(usize::MAX),
        Format::Json => json_text(report),
        Format::Markdown => report.doc(extent).markdown(),
        Format::Sarif => sarif(&[report]),
        Format::Github => github(&[report]),
        Format::Gitlab => gitlab(&[report]),
    }
}

/// A value as the document that `doc` makes of it, or as one JSON object.
pub(crate) fn human_or_json<T: Serialize + ?Sized>(
    value: &T,
    doc: impl FnOnce(&T) -> Doc,
    terminal: &Terminal,
) -> String {
    match terminal.format {
        Format::Json => json_text(value),
        _ => doc(value).text(terminal.stdout),
    }
}

/// A report as one JSON object.
pub(crate) fn json_text(value: &(impl Serialize + ?Sized)) -> String {
    let value = serde_json::to_value(value).expect("a report has a JSON form");
    format!("{value:#}\n")
}

/// Diagnostics in a format; empty without diagnostics, if the format has no frame.
pub(crate) fn diagnostics(report: &Diagnostics, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human | Format::Short | Format::Gitlab => diagnostic::full(report, options),
        Format::Json => diagnostic::json(report),
        Format::Sarif => diagnostic::sarif(report),
        Format::Github => diagnostic::github(report),
        Format::Markdown if report.is_empty() => String::new(),
        Format::Markdown => markdown::fenced(&diagnostic::concise(report)),
    }
}

#[cfg(test)]
mod tests;
