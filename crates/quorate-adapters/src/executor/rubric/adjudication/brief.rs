//! The merged brief: overlapping findings of several members become one item.

use std::cmp::Reverse;
use std::ops::Range;

use crate::executor::rubric::document::Document;
use crate::executor::rubric::peer_answers::{PeerAnswer, PeerFinding, join_names, overlaps};

/// How much of a quote an item shows, in characters.
const MAX_QUOTE_CHARS: usize = 48;
/// How many items a brief lists.
const MAX_ITEMS: usize = 20;

/// One change, and the members that ask for it.
pub(super) struct Item<'a> {
    /// The words that it concerns, the shortest of the given quotes.
    pub(super) quote: &'a str,
    pub(super) line: Option<usize>,
    /// The members that raised it, in roster order.
    pub(super) members: Vec<&'a str>,
    blocked: bool,
    span: Option<Range<usize>>,
    issues: Vec<&'a str>,
    fixes: Vec<&'a str>,
}

/// Merges the findings of all members: blocking ones first, then by number of members, then in the order of the text.
pub(super) fn merge<'a>(
    document: &Document<'_>,
    members: impl Iterator<Item = &'a PeerAnswer>,
) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::new();
    for member in members {
        for finding in &member.findings {
            match items.iter_mut().find(|item| item.is_same_place(document, finding)) {
                Some(item) => item.add(member, finding),
                None => items.push(Item::new(member, finding)),
            }
        }
    }
    items.sort_by_key(|item| {
        (!item.blocked, Reverse(item.members.len()), item.line, item.span.as_ref().map(|span| span.start))
    });
    items
}

/// The items as a numbered list.
pub(super) fn numbered(items: &[Item<'_>]) -> Option<String> {
    let mut lines: Vec<String> = items
        .iter()
        .take(MAX_ITEMS)
        .enumerate()
        .map(|(at, item)| format!("{}. {}", at + 1, item.to_line()))
        .collect();
    if items.len() > MAX_ITEMS {
        lines.push(format!(
            "{}. And {} smaller ones, which the members' answers list.",
            MAX_ITEMS + 1,
            items.len() - MAX_ITEMS
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

impl<'a> Item<'a> {
    fn new(member: &'a PeerAnswer, finding: &'a PeerFinding) -> Self {
        let mut item = Item {
            quote: &finding.quote,
            line: finding.line,
            members: Vec::new(),
            blocked: false,
            span: finding.span.clone(),
            issues: Vec::new(),
            fixes: Vec::new(),
        };
        item.add(member, finding);
        item
    }

    fn is_same_place(&self, document: &Document<'_>, finding: &PeerFinding) -> bool {
        match (&self.span, &finding.span) {
            // A quoted sentence and a word in it are one item only if they are of similar size: a sentence that is too
            // long and a phrase in it need two edits.
            (Some(a), Some(b)) => {
                overlaps(a, b)
                    && document.line_of(a.start) == document.line_of(b.start)
                    && 2 * a.len().max(b.len()) <= 5 * a.len().min(b.len())
            }
            (None, None) => self.quote == finding.quote && self.line == finding.line,
            _ => false,
        }
    }

    fn add(&mut self, member: &'a PeerAnswer, finding: &'a PeerFinding) {
        if !self.members.contains(&member.id.as_str()) {
            self.members.push(&member.id);
        }
        if finding.quote.len() < self.quote.len() {
            self.quote = &finding.quote;
        }
        for (list, text) in [(&mut self.issues, &finding.issue), (&mut self.fixes, &finding.fix)] {
            if !text.is_empty() && !list.contains(&text.as_str()) {
                list.push(text);
            }
        }
        self.blocked |= member.blocks();
    }

    fn to_line(&self) -> String {
        let place = match (self.line, self.quote.is_empty()) {
            (Some(line), false) => format!("Line {line}, “{}”: ", short(self.quote)),
            (Some(line), true) => format!("Line {line}: "),
            (None, false) => format!("“{}”: ", short(self.quote)),
            (None, true) => String::new(),
        };
        // The findings say what is wrong; the brief says what to do.
        let texts = if self.fixes.is_empty() { &self.issues } else { &self.fixes };
        // One item, one line: a brief is a list.
        let texts = texts.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{place}{texts} ({})", join_names(&self.members))
    }
}

/// A quote, shortened to what a reader needs to find the place.
fn short(quote: &str) -> String {
    match quote.char_indices().nth(MAX_QUOTE_CHARS) {
        None => quote.to_owned(),
        Some((end, _)) => format!("{}…", quote[..end].trim_end()),
    }
}
