//! The output of `convene` and `show` for an assembly: the outcome and its reasons; and that of `--dry-run`.

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

use super::layout::ascii;
use super::{Extent, Format};
use crate::progress::Glyphs;
use quorate::service::convene::plan::Plan;
use quorate::service::convene::report::Report;

/// A report in a format, ending with one line break; `None` if the format cannot show an assembly.
pub(crate) fn report(
    report: &Report,
    format: Format,
    extent: Extent,
    options: TextOptions,
) -> Option<String> {
    match format {
        Format::Human => Some(with_glyphs(human::human(report, extent, options))),
        Format::Json => Some(format!("{:#}\n", report.json())),
        Format::Markdown => Some(markdown::markdown(report, extent)),
        Format::Sarif | Format::Github | Format::Gitlab => None,
    }
}

pub(crate) fn plan(plan: &Plan, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human => with_glyphs(plan::human(plan, options)),
        Format::Markdown => plan::markdown(plan),
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

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
