//! The output of `convene` and of `show` for an assembly.

use quorate::convene::{Decision, Plan};
use quorate::view::Doc;
use quorate_diagnostics::render::TextOptions;

use super::layout::ascii;
use super::{Extent, Format};
use crate::progress::Glyphs;

/// A report in a format, ending with one line break; `None` if the format cannot show an assembly.
pub(crate) fn report(
    decision: &Decision,
    format: Format,
    extent: Extent,
    options: TextOptions,
) -> Option<String> {
    match format {
        Format::Human => Some(text(&decision.doc(extent), options)),
        Format::Short => Some(decision.short()),
        Format::Json => Some(super::json_text(decision)),
        Format::Markdown => Some(decision.doc(extent).markdown()),
        Format::Sarif | Format::Github | Format::Gitlab => None,
    }
}

pub(crate) fn plan(plan: &Plan, format: Format, options: TextOptions) -> String {
    match format {
        Format::Human | Format::Short => text(&plan.doc(), options),
        Format::Markdown => plan.doc().markdown(),
        Format::Json | Format::Sarif | Format::Github | Format::Gitlab => super::json_text(plan),
    }
}

/// Replaces characters that the terminal cannot display.
fn text(doc: &Doc, options: TextOptions) -> String {
    let text = doc.text(options);
    match Glyphs::of_stdout() {
        Glyphs::Unicode => text,
        Glyphs::Ascii => ascii(&text),
    }
}
