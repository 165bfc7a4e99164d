//! What commands print: one file for each thing that is shown, one function for each format. Everything comes from
//! what a use case returned; nothing is decided or looked up here.

pub mod audit;
mod brief;
pub mod convene;
pub mod conversation;
mod deliberator_row;
pub mod doctor;
mod escape;
pub mod evidence;
mod github;
mod human;
pub mod keys;
mod layout;
pub mod ledger;
mod level;
pub mod locks;
mod markdown;
mod member_requests;
pub mod overlays;
pub(super) mod paint;
pub mod playbook;
pub mod provision;
pub mod replay;
pub mod resolve;
pub mod retention;
pub mod runs;
mod sarif;
pub mod sweep;
pub mod trust;
pub mod verification;
pub mod weave;
pub(super) mod wording;

use clap::ValueEnum;
use quorate_diagnostics::Report as Diagnostics;
use quorate_diagnostics::render::{self as diagnostic, TextOptions};

use crate::service::report::Report;

pub use github::github;
pub use human::human;
pub use markdown::markdown;
pub use sarif::{sarif, sarif_of};

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Human,
    /// One JSON object
    Json,
    /// For pasting into a pull request
    Markdown,
    /// SARIF 2.1.0, for code scanning tools
    Sarif,
    /// GitHub workflow annotations
    Github,
}

/// How much people are shown of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Of a SHIP what fits a screen: what it rests on, and each fix once.
    Screen,
    /// Everything.
    Full,
}

/// A report in a format. It ends with one line break.
pub fn report(report: &Report, format: Format, extent: Extent, look: TextOptions) -> String {
    match format {
        Format::Human => human(report, extent, look),
        Format::Json => json(report),
        Format::Markdown => markdown(report),
        Format::Sarif => sarif(report),
        Format::Github => github(report),
    }
}

/// A report as a JSON object, `{"diagnostics": […]}`.
pub fn json(report: &Report) -> String {
    format!("{:#}\n", report.json())
}

/// Diagnostics in a format; empty where there are none and the format has no frame.
pub fn diagnostics(report: &Diagnostics, format: Format, look: TextOptions) -> String {
    match format {
        Format::Human => diagnostic::full(report, look),
        Format::Json => diagnostic::json(report),
        Format::Sarif => diagnostic::sarif(report),
        Format::Github => diagnostic::github(report),
        Format::Markdown if report.is_empty() => String::new(),
        Format::Markdown => escape::fenced(&diagnostic::concise(report)),
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
