//! Formats the output of commands: one file for each kind of output, one function for each format. All data comes from
//! the library's result.

pub(crate) mod audit;
mod brief;
pub(crate) mod compare;
pub(crate) mod convene;
pub(crate) mod conversation;
mod deliberator_row;
mod digest;
pub(crate) mod doctor;
mod escape;
pub(crate) mod estimate;
pub(crate) mod evidence;
mod fingerprint;
mod github;
mod gitlab;
mod human;
pub(crate) mod keys;
mod layout;
pub(crate) mod ledger;
mod level;
pub(crate) mod locks;
mod markdown;
mod member_requests;
mod member_usage;
pub(crate) mod overlays;
pub(crate) mod paint;
pub(crate) mod playbook;
pub(crate) mod provision;
#[cfg(feature = "postgres")]
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod resolve;
pub(crate) mod retention;
pub(crate) mod runs;
mod sarif;
pub(crate) mod sweep;
pub(crate) mod trust;
pub(crate) mod verification;
pub(crate) mod watch;
pub(crate) mod weave;
pub(super) mod wording;

use clap::ValueEnum;
use quorate_diagnostics::Report as Diagnostics;
use quorate_diagnostics::render::{self as diagnostic, TextOptions};

use quorate::service::report::Report;

pub(crate) use digest::{DigestEntry, digest};
pub(crate) use escape::inline;
pub(crate) use github::{github, github_of};
pub(crate) use gitlab::gitlab_of;
pub(crate) use human::human;
pub(crate) use markdown::markdown;
pub(crate) use sarif::{sarif, sarif_of};

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
pub(crate) fn report(report: &Report, format: Format, extent: Extent, options: TextOptions) -> String {
    match format {
        Format::Human => human(report, extent, options),
        Format::Json => json(report),
        Format::Markdown => markdown(report, extent),
        Format::Sarif => sarif(report),
        Format::Github => github(report),
        Format::Gitlab => gitlab_of(&[report]),
    }
}

/// Diagnostics as a JSON object, `{"diagnostics": […]}`.
pub(crate) fn json(report: &Report) -> String {
    format!("{:#}\n", report.json())
}

/// Diagnostics in a format; empty without diagnostics, if the format has no frame.
pub(crate) fn diagnostics(report: &Diagnostics, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human | Format::Gitlab => diagnostic::full(report, options),
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
