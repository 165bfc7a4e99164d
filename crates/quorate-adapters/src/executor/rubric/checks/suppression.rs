//! Comments that suppress checks: `<!-- quorate-ignore: absolutes, causal-leaps -->`, in MDX `{/* quorate-ignore: … */}`.
//!
//! A comment beside text holds for its paragraph, list item or heading; one on a line of its own for the next; and for a
//! check of the whole text a comment anywhere counts. `Not judged` of the answer names each comment, so that no reader
//! takes what it covers for judged.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Check, INSTRUCTIONS, named};
use crate::executor::rubric::document::Document;
use crate::executor::rubric::phrases::compiled;

static COMMENT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?s)(?:<!--|\{/\*)\s*quorate-ignore:\s*([^<>{}]*?)\s*(?:-->|\*/\})"));

/// The comments of a text.
#[derive(Debug, Default)]
pub(in crate::executor::rubric) struct Suppressions(Vec<Suppression>);

#[derive(Debug)]
struct Suppression {
    check: &'static Check,
    at: usize,
    /// What it covers.
    span: Range<usize>,
}

impl Suppressions {
    pub(super) fn read(document: &Document<'_>) -> Suppressions {
        let mut all = Vec::new();
        for markup in &document.markup {
            for comment in COMMENT.captures_iter(&document.text[markup.clone()]) {
                let at = markup.start + comment.get(0).map_or(0, |whole| whole.start());
                let span = covered(document, at);
                let checks = comment[1].split([',', ' ', '\n']).filter_map(named);
                let checks = checks.filter(|check| check.name != INSTRUCTIONS);
                all.extend(checks.map(|check| Suppression { check, at, span: span.clone() }));
            }
        }
        Suppressions(all)
    }

    /// Whether a comment suppresses a check's finding at a place.
    pub(super) fn cover(&self, check: &Check, at: usize) -> bool {
        let covers =
            |one: &Suppression| std::ptr::eq(one.check, check) && (check.whole || one.span.contains(&at));
        self.0.iter().any(covers)
    }

    /// The place of each comment, with what it turns off.
    pub(in crate::executor::rubric) fn places(&self) -> impl Iterator<Item = (Range<usize>, String)> {
        self.0.iter().map(|one| {
            let place = if one.check.whole { one.at..one.at + 1 } else { one.span.clone() };
            (place, format!("{}, by a comment", one.check.name))
        })
    }
}

/// The block beside a comment, else the next one.
fn covered(document: &Document<'_>, at: usize) -> Range<usize> {
    let next = document.blocks.partition_point(|block| block.span.start <= at);
    let line = document.line_of(at);
    let beside =
        document.blocks[..next].last().filter(|block| document.line_of(block.span.end.max(1) - 1) >= line);
    let starts_here = document.blocks.get(next).filter(|block| document.line_of(block.span.start) == line);
    let block = beside.or(starts_here).or(document.blocks.get(next));
    block.map_or(at..at, |block| block.span.clone())
}
