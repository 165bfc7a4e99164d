//! What `convene` and `show` print of an assembly: the outcome, and why; and what `--dry-run` says beforehand.

mod bars;
mod count;
mod forest;
mod human;
mod markdown;
mod phrases;
mod plan;
mod rejections;
mod rules;
mod thread;

use quorate_diagnostics::render::TextOptions;

use super::Format;
use super::layout::ascii;
use crate::progress::Glyphs;
use quorate::service::convene::plan::Plan;
use quorate::service::convene::report::Report;

/// A report in a format, ending with one line break; `None` where the format has no words for an assembly.
pub(crate) fn report(report: &Report, format: Format, look: TextOptions) -> Option<String> {
    match format {
        Format::Human => Some(shown(human::human(report, look))),
        Format::Json => Some(format!("{:#}\n", report.json())),
        Format::Markdown => Some(markdown::markdown(report)),
        Format::Sarif | Format::Github => None,
    }
}

/// A plan in a format.
pub(crate) fn plan(plan: &Plan, format: Format, look: TextOptions) -> String {
    match format {
        Format::Human => shown(plan::human(plan, look)),
        Format::Markdown => plan::markdown(plan),
        Format::Json | Format::Sarif | Format::Github => format!("{:#}\n", plan.json()),
    }
}

/// Drawn with what the terminal has.
fn shown(text: String) -> String {
    match Glyphs::of_stdout() {
        Glyphs::Unicode => text,
        Glyphs::Ascii => ascii(&text),
    }
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
