//! What a reader of the rendered proposal sees (V6): the visible text of each line, and where a resolution visibly ends.
//!
//! A proposal is rendered as CommonMark. Only a visible heading or label ends a resolution: not an empty heading, one in
//! code or in a comment, or a link definition. Raw HTML may hide anything, so nothing ends a resolution beside it.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::locks::fold;

/// What is said for a resolution, and is no part of it.
const SUPPORT_LABELS: [&str; 16] = [
    "rationale",
    "reason",
    "reasons",
    "reasoning",
    "background",
    "context",
    "motivation",
    "justification",
    "why",
    "discussion",
    "alternatives",
    "alternatives considered",
    "considered",
    "evidence",
    "references",
    "appendix",
];

/// A rendered line.
#[derive(Debug, Clone, Default)]
pub(super) struct RenderedLine {
    /// Whether it shows a letter or a figure.
    pub(super) is_shown: bool,
    /// What ends here: the level of a heading, 0 for supporting text.
    pub(super) ends: Option<usize>,
}

/// The lines of a proposal, whose lines end with `\n`.
pub(super) fn outline(proposal: &str) -> Vec<RenderedLine> {
    let mut lines = vec![RenderedLine::default(); proposal.lines().count()];
    let starts: Vec<usize> =
        std::iter::once(0).chain(proposal.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at) - 1;
    let (mut depth, mut images, mut has_html) = (0usize, 0usize, false);
    let mut block: Option<Block> = None;
    let mut html = String::new();
    for (event, range) in Parser::new_ext(proposal, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                block = Some(Block {
                    line: line_of(range.start),
                    level: Some(level as usize),
                    text: String::new(),
                });
            }
            Event::Start(Tag::Paragraph) if depth == 0 => {
                block = Some(Block { line: line_of(range.start), level: None, text: String::new() });
            }
            Event::End(TagEnd::Heading(_) | TagEnd::Paragraph) => {
                if let Some(block) = block.take()
                    && let Some(line) = lines.get_mut(block.line)
                {
                    line.ends = block.ends();
                }
            }
            Event::Start(Tag::Image { .. }) => images += 1,
            Event::End(TagEnd::Image) => images -= 1,
            Event::Start(Tag::HtmlBlock) => html.clear(),
            Event::End(TagEnd::HtmlBlock) => has_html |= !is_comment(&html),
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => depth -= 1,
            Event::InlineHtml(tag) => has_html |= !is_comment(&tag),
            Event::Html(part) => {
                html.push_str(&part);
                mark_shown(&mut lines, line_of(range.start), &part);
            }
            Event::Text(text) | Event::Code(text) if images == 0 => {
                mark_shown(&mut lines, line_of(range.start), &text);
                if let Some(block) = &mut block {
                    block.text.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(block) = &mut block {
                    block.text.push('\n');
                }
            }
            _ => {}
        }
    }
    if has_html {
        lines.iter_mut().for_each(|line| line.ends = None);
    }
    lines
}

/// Whether a text shows a letter or a figure.
pub(super) fn says_something(text: &str) -> bool {
    fold(text).contains(char::is_alphanumeric)
}

/// The text may go on over several lines, as code does.
fn mark_shown(lines: &mut [RenderedLine], first: usize, text: &str) {
    for (line, text) in lines.iter_mut().skip(first).zip(text.lines()) {
        line.is_shown |= says_something(text);
    }
}

/// Whether HTML is a comment and nothing besides.
fn is_comment(html: &str) -> bool {
    let inner = html.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
    inner.is_some_and(|inner| !inner.contains("-->"))
}

/// A heading or a paragraph outside of lists and quotations.
struct Block {
    line: usize,
    level: Option<usize>,
    text: String,
}

impl Block {
    fn ends(&self) -> Option<usize> {
        match self.level {
            Some(level) => says_something(&self.text).then_some(level),
            None => begins_support(self.text.lines().next().unwrap_or_default()).then_some(0),
        }
    }
}

/// Whether a paragraph's first line begins the supporting text of a resolution.
fn begins_support(line: &str) -> bool {
    let folded = fold(line);
    let label = folded.split_once(':').map_or(&*folded, |(label, _)| label);
    SUPPORT_LABELS.contains(&label.trim().trim_end_matches('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines at which something ends.
    fn ends(proposal: &str) -> Vec<(usize, usize)> {
        let lines = outline(proposal).into_iter().enumerate();
        lines.filter_map(|(at, line)| line.ends.map(|level| (at, level))).collect()
    }

    #[test]
    fn what_a_reader_sees_ends_a_resolution() {
        for (proposal, wanted) in [
            ("# A\n\nb\n\n## C\n\n**Why?**\n\nRationale: d\n", vec![(0, 1), (4, 2), (6, 0), (8, 0)]),
            ("A\n===\n\nB\nC\n---\n", vec![(0, 1), (3, 2)]),
            ("<!-- say why -->\n\n# A\n", vec![(2, 1)]),
            ("a <https://example.org> b\n\n# A\n", vec![(2, 1)]),
            ("````\n```\n# A\n````\n# B\n", vec![(4, 1)]),
            ("<!-- a -->\n\n<!-- b -->\n\n# A\n", vec![(4, 1)]),
            ("a <!-- b --> c\n\n# A\n", vec![(2, 1)]),
            ("# ![](a.png) A\n", vec![(0, 1)]),
            ("Rationale\nof it\n", vec![(0, 0)]),
            ("> # A\n\nRationale: b\n", vec![(2, 0)]),
        ] {
            assert_eq!(ends(proposal), wanted, "{proposal:?}");
        }
    }

    #[test]
    fn what_no_reader_sees_ends_nothing() {
        for proposal in [
            "<!--\n# A\n-->\n",
            "#\n",
            "# &nbsp;\n",
            "# &#x3164;\n",
            "# <!-- A -->\n",
            "# ![A](a.png)\n",
            "<h2></h2>\n",
            "<h2 style=\"display:none\">A</h2>\n",
            "<div hidden>\n\n# A\n\n</div>\n",
            "a <i hidden>\n\n# A\n",
            "<!-- a --> <div hidden>\n\n# A\n",
            "```\n~~~\n# A\n```\n",
            "- ```\n\n  # A\n",
            "[Rationale]: b\n",
            "<pre>\n# A\n</pre>\n",
            "    # A\n",
            "a\n    # A\n",
            "a\nRationale: b\n",
            "> Rationale: b\n",
            "> # A\n",
            "- # A\n",
        ] {
            assert_eq!(ends(proposal), [], "{proposal:?}");
        }
    }
}
