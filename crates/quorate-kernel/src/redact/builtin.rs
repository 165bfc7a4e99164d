//! Secrets recognized without a pattern or a value: tokens by their issuers' documented shape (`vendors.rs`,
//! `services.rs`), and others by their context (`context.rs`, `commands.rs`, `assignment.rs`, `columns.rs`). They read a
//! text as it looks (`folded.rs`).
//!
//! One automaton finds the anchors of all kinds in one pass. At each of them the kind looks at a bounded number of bytes,
//! and never again within a secret that it has found: the time is in proportion to the length of the text, whatever the
//! text is.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError};

use super::kind::Kind;
use super::{assignment, columns, commands, context, folded, plausibility, services, vendors};

/// What changes when other texts would be taken for secrets. It is in the fingerprint of a run.
pub const VERSION: u32 = 4;

/// The shortest text in which there can be a secret of any kind.
const MIN_TEXT_BYTES: usize = 10;

pub(super) fn all() -> impl Iterator<Item = &'static Kind> {
    context::KINDS.iter().chain(commands::KINDS).chain(vendors::KINDS).chain(services::KINDS)
}

/// The names of all kinds.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    all().map(|kind| kind.name)
}

/// The texts that lead to secrets of any kind.
#[cfg(test)]
pub(super) fn anchors() -> impl Iterator<Item = &'static str> {
    all().flat_map(Kind::anchors).copied()
}

/// The text without secrets, and how many there were; `None` where it has none.
pub(super) fn redact(text: &str) -> Option<(String, usize)> {
    // Compiled once in a process, and in one that has nothing to redact not at all.
    static COMPILED: OnceLock<Option<Compiled>> = OnceLock::new();
    if text.len() < MIN_TEXT_BYTES {
        return None;
    }
    let spans = match COMPILED.get_or_init(|| Compiled::new().ok()) {
        Some(compiled) => match folded::fold(text) {
            Some(folded) => compiled.spans(&folded.text).iter().map(|span| folded.source(span)).collect(),
            None => compiled.spans(text),
        },
        // A test sees to it that they compile. Were it otherwise, nothing of the text would be safe to show.
        None => std::iter::once(0..text.len()).collect(),
    };
    (!spans.is_empty()).then(|| (super::replace_spans(text, &spans), spans.len()))
}

struct Compiled {
    anchors: AhoCorasick,
    /// The kind of each anchor, with its number.
    kinds: Vec<(usize, &'static Kind)>,
}

impl Compiled {
    fn new() -> Result<Self, BuildError> {
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::ContiguousNFA));
        let anchors_of =
            |(number, kind): (usize, &'static Kind)| kind.anchors().iter().map(move |_| (number, kind));
        Ok(Compiled {
            anchors: builder.build(all().flat_map(Kind::anchors))?,
            kinds: all().enumerate().flat_map(anchors_of).collect(),
        })
    }

    /// Where secrets stand, in order and apart.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = columns::spans(text);
        // Where the last secret of each kind ends.
        let mut ends: Vec<usize> = Vec::new();
        for anchor in self.anchors.find_overlapping_iter(text) {
            let (number, kind) = self.kinds[anchor.pattern().as_usize()];
            if ends.get(number).is_some_and(|end| anchor.start() < *end) {
                continue;
            }
            if let Some(span) = kind.find(text, anchor.range()) {
                if ends.len() <= number {
                    ends.resize(number + 1, 0);
                }
                ends[number] = span.end;
                spans.push(span);
            }
        }
        merge_spans(spans)
    }
}

/// Spans in order; those that touch become one.
fn merge_spans(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut disjoint: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match disjoint.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => disjoint.push(span),
        }
    }
    disjoint
}

/// Whether a string is a secret for the key that it is under, in a document.
pub(super) fn is_value_of(key: &str, value: &str) -> bool {
    let of_one = !value.contains(char::is_whitespace) || plausibility::is_phrase(value);
    let named = plausibility::names_a_secret(key) && of_one;
    let is_value = || {
        assignment::is_value_of(key, value).unwrap_or_else(|| redact(&format!("{key}=\"{value}\"")).is_some())
    };
    named && is_value()
}
