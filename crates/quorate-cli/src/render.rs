//! Formats the output of commands: a file for each topic, a function for each format. All data comes from the library's
//! result.

pub(crate) mod audit;
mod brief;
#[cfg(test)]
mod code_hosts;
pub(crate) mod convene;
pub(crate) mod conversation;
mod deliberator_row;
mod human;
pub(crate) mod ledger;
pub(crate) mod locks;
mod markdown;
pub(crate) mod overlays;
pub(crate) mod playbook;
#[cfg(feature = "postgres")]
pub(crate) mod queue;
pub(crate) mod resolve;
pub(crate) mod runs;
pub(crate) mod sweep;
pub(crate) mod workspace;

pub(crate) use quorate::view::{layout, wording};

use clap::ValueEnum;
use quorate_diagnostics::Report as Diagnostics;
use quorate_diagnostics::render::{self as diagnostic, TextOptions};
use serde::Serialize;

use quorate::service::report::Review;

pub(crate) use human::human;
pub(crate) use markdown::inline;
pub(crate) use markdown::markdown;
pub(crate) use markdown::{DigestEntry, digest};
pub(crate) use quorate::view::code_hosts::{github, gitlab, sarif};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// One JSON object
    Json,
    /// Markdown for a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
    /// A GitLab Code Quality report
    Gitlab,
}

/// How much of a report the text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One screen for a SHIP: its basis, and each fix once.
    Screen,
    /// All details, and each member's executor and usage.
    Full,
}

/// A report in a format, ending with one line break.
pub(crate) fn report(report: &Review, format: Format, extent: Extent, options: TextOptions) -> String {
    match format {
        Format::Human => human(report, extent, options),
        Format::Json => json(report),
        Format::Markdown => markdown(report, extent),
        Format::Sarif => sarif(&[report]),
        Format::Github => github(&[report]),
        Format::Gitlab => gitlab(&[report]),
    }
}

/// A report as one JSON object.
pub(crate) fn json_text(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a report has a JSON form");
    format!("{value:#}\n")
}

/// Diagnostics as a JSON object, `{"diagnostics": […]}`.
pub(crate) fn json(report: &Review) -> String {
    format!("{:#}\n", report.to_json())
}

/// Diagnostics in a format; empty without diagnostics, if the format has no frame.
pub(crate) fn diagnostics(report: &Diagnostics, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human | Format::Gitlab => diagnostic::full(report, options),
        Format::Json => diagnostic::json(report),
        Format::Sarif => diagnostic::sarif(&[report]),
        Format::Github => diagnostic::github(&[report]),
        Format::Markdown if report.is_empty() => String::new(),
        Format::Markdown => markdown::fenced(&diagnostic::concise(report)),
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
