//! The output of `convene` and of `show` for an assembly.

use quorate::convene::{Decision, Plan};
use quorate::view::Doc;

use super::layout::ascii;
use super::{Extent, Format};
use crate::progress::Glyphs;
use crate::terminal::Terminal;

/// A report, ending with one line break; `None` if the command line's format cannot show an assembly.
pub(crate) fn report(decision: &Decision, extent: Extent, terminal: &Terminal) -> Option<String> {
    match terminal.format {
        Format::Human => Some(text(&decision.doc(extent), terminal)),
        Format::Short => Some(decision.short()),
        Format::Json => Some(super::json_text(decision)),
        Format::Markdown => Some(decision.doc(extent).markdown()),
        Format::Sarif | Format::Github | Format::Gitlab => None,
    }
}

pub(crate) fn plan(plan: &Plan, terminal: &Terminal) -> String {
    match terminal.format {
        Format::Human | Format::Short => text(&plan.doc(), terminal),
        Format::Markdown => plan.doc().markdown(),
        Format::Json | Format::Sarif | Format::Github | Format::Gitlab => super::json_text(plan),
    }
}

/// Replaces characters that the terminal cannot display.
fn text(doc: &Doc, terminal: &Terminal) -> String {
    let text = doc.text(terminal.stdout);
    match Glyphs::of_stdout() {
        Glyphs::Unicode => text,
        Glyphs::Ascii => ascii(&text),
    }
}
