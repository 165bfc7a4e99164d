//! The parts of a proposal that make a decision (V6): its title, and all resolutions. A resolution begins at a block such as
//! `Resolution: …`, a heading `## Resolution`, or a paragraph with `RESOLVED, that …`. It extends to the next heading of its
//! level or above, or to a paragraph that begins its support, such as `Rationale: …`. A proposal may have several. The whole
//! proposal counts if it has none, and where a reader may see other resolutions than these patterns: in a text with HTML,
//! which can hide a heading, and in one that spells the word with look-alike or invisible letters.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag};
use regex::Regex;

use crate::locks::{Hit, LockedTrait, Locks, fold};
use quorate_manifest::assembly::MatchMode;

/// What a resolution begins with; what it resolves is behind the match.
static BEGINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile(concat!(
        r"(?im)^\PL*?(?:",
        // A label of a few words with its sign, such as `Ordinary resolution no. 2 (amended):`.
        r"(?:\pL+[^\pL\n:|]+){0,3}?resolutions?\b(?:[^\pL\n:：—–|]+\pL+){0,3}[^\pL\n:：—–|]*[:：—–|]",
        // The word alone, or set off: `*Resolution*`, `Resolution.`.
        r"|resolutions?\b(?:[^\pL\n]+\pL+){0,3}[^\pL\n]*$|resolutions?(?:[*_`<.)]|\s*-)",
        r"|resolved\b[^\pL\n]*?(?:[,:*_]|$)",
        r")|\bresolve[ds]?,?\s+that\b|\bbe it resolved\b|\b(?:hereby|further)\s+resolved?,?\s+to\b",
    ))
});
/// A heading that names a resolution.
static NAMES: LazyLock<Option<Regex>> =
    LazyLock::new(|| compile(r"(?i)\bresolutions?\b(?:\P{L}*\pL+){0,3}\PL*\z"));
/// A paragraph that begins the support of a resolution.
static SUPPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)\A[*_]*(?:rationale|reason(?:s|ing)?|background|context|motivation|justification|why|discussion|",
        r"alternatives(?: considered)?|considered|evidence|references|appendix)\??[*_]*\s*(?::|\n|\z)",
    ))
});

/// Finds the word in any disguise. Plain text always compiles.
static DISGUISES: LazyLock<Option<Locks>> = LazyLock::new(|| {
    Locks::compile(&["resolution", "resolve"].map(LockedTrait::plain), MatchMode::Substring).ok()
});

/// Whether the patterns may see other resolutions than a reader: see the head of this file.
fn is_ambiguous(proposal: &str) -> bool {
    let is_comment = |html: &str| {
        let inner = html.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
        inner.is_some_and(|inner| !inner.contains("-->"))
    };
    let shows_html = Parser::new_ext(proposal, Options::empty()).into_offset_iter().any(|(event, span)| {
        let is_html = matches!(event, Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_));
        is_html && !is_comment(&proposal[span])
    });
    let is_plain = |hit: &Hit| proposal[hit.span.clone()].to_ascii_lowercase().starts_with("resol");
    shows_html || DISGUISES.as_ref().is_none_or(|words| !words.find_all(proposal).iter().all(is_plain))
}

/// A pattern of this file, which always compiles.
fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// A heading, a paragraph, a list or another block that no other one encloses.
struct Block<'a> {
    span: Range<usize>,
    source: &'a str,
    level: Option<usize>,
    is_paragraph: bool,
}

impl<'a> Block<'a> {
    /// What is resolved in the block, where a resolution begins in it.
    fn resolved(&self) -> Option<&'a str> {
        if self.source.starts_with("<!--") {
            return None;
        }
        let end = match BEGINS.as_ref()?.find(self.source) {
            Some(found) => found.end(),
            None if self.level.is_some() && NAMES.as_ref()?.is_match(self.source) => self.source.len(),
            None => return None,
        };
        Some(&self.source[end..])
    }

    /// The level of the headings whose resolutions end here.
    fn ends(&self) -> Option<usize> {
        let is_support = self.is_paragraph && SUPPORTS.as_ref()?.is_match(self.source);
        self.level.filter(|_| says_something(self.source)).or(is_support.then_some(0))
    }
}

fn blocks(proposal: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut depth) = (Vec::new(), 0);
    for (event, span) in Parser::new_ext(proposal, Options::empty()).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let level =
                        if let Tag::Heading { level, .. } = tag { Some(level as usize) } else { None };
                    let (source, is_paragraph) = (proposal[span.clone()].trim(), tag == Tag::Paragraph);
                    blocks.push(Block { span, source, level, is_paragraph });
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    blocks
}

/// The proposal's title: its first heading, else its first line that is not blank and begins no code.
pub(super) fn title(proposal: &str) -> &str {
    let proposal = proposal.trim_start_matches('\u{feff}');
    let heading = blocks(proposal).into_iter().find(|block| block.level.is_some()).map(|block| block.source);
    let mut lines = proposal.lines().map(str::trim);
    let first =
        || lines.find(|line| !line.is_empty() && !line.starts_with("```") && !line.starts_with("~~~"));
    let heading = heading.and_then(|heading| heading.lines().next());
    heading.map(|heading| heading.trim_matches('#').trim()).or_else(first).unwrap_or_default()
}

/// All resolutions; `None` if no block begins one, or all are empty.
pub(super) fn resolution(proposal: &str) -> Option<String> {
    let proposal = proposal.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    if is_ambiguous(&proposal) {
        return None;
    }
    let blocks = blocks(&proposal);
    let mut begins: Vec<Option<&str>> = blocks.iter().map(Block::resolved).collect();
    // A title that names a resolution does not begin one where the text does so itself.
    if blocks.first()?.level.is_some() && begins.iter().flatten().count() > 1 {
        begins[0] = None;
    }
    let (mut resolved, mut says_what): (Vec<Range<usize>>, bool) = (Vec::new(), false);
    // The level of the heading above it; the lowest without one.
    let mut inside: Option<usize> = None;
    for (block, begins) in blocks.iter().zip(begins) {
        let is_inside = inside.is_some_and(|own| block.ends().is_none_or(|level| level > own));
        inside = match begins {
            Some(_) => Some(inside.unwrap_or(usize::MAX).min(block.level.unwrap_or(usize::MAX))),
            None => inside.filter(|_| is_inside),
        };
        if inside.is_none() {
            continue;
        }
        says_what |= says_something(begins.unwrap_or(block.source));
        match resolved.last_mut().filter(|_| is_inside) {
            Some(last) => last.end = block.span.end,
            None => resolved.push(block.span.clone()),
        }
    }
    let texts = resolved.into_iter().map(|span| proposal[span].trim().to_owned());
    says_what.then(|| texts.collect::<Vec<_>>().join("\n\n"))
}

/// Whether a text shows a letter or a figure.
fn says_something(text: &str) -> bool {
    fold(text).contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn resolves(proposal: &str, wanted: &str) {
        assert_eq!(resolution(proposal).as_deref(), Some(wanted), "{proposal:?}");
    }

    // V6
    #[test]
    fn a_resolution_is_read_to_its_end() {
        resolves("# Spend it\n\nResolution: we spend it.\n", "Resolution: we spend it.");
        resolves(
            "# T\n\nResolution: we spend\nit, and more.\n\nAll of it.\n\n- on this\n- on that\n\n## Why\n\nBecause.",
            "Resolution: we spend\nit, and more.\n\nAll of it.\n\n- on this\n- on that",
        );
        resolves(
            "T\n\nResolution: one.\n\nBackground: x.\n\nResolution: two.\n\n**Rationale**\n\ny\n\nRESOLVED, three.",
            "Resolution: one.\n\nResolution: two.\n\nRESOLVED, three.",
        );
        resolves(
            "# T\n## Resolution\n\n### First\n\na\n\n### Second\n\nb\n\n## Costs\n\nc",
            "## Resolution\n\n### First\n\na\n\n### Second\n\nb",
        );
        resolves("Resolution\n==========\n\na\n\nNext\n====\n\nb", "Resolution\n==========\n\na");
        resolves(
            "Resolution\n==========\n\n### First\n\na\n\nNext\n====\n\nb",
            "Resolution\n==========\n\n### First\n\na",
        );
        resolves(
            "*Resolution*\n---\n\n### First\n\na\n\nNext\n---\n\nb",
            "*Resolution*\n---\n\n### First\n\na",
        );
        resolves(
            "Resolution:\n\n```\n# no heading\n```\n\n| a | b |\n\nb",
            "Resolution:\n\n```\n# no heading\n```\n\n| a | b |\n\nb",
        );
        resolves("Resolution: a\n\nWhy not b as well.", "Resolution: a\n\nWhy not b as well.");
        resolves("# Resolution 4: spend\n\nx\n\nResolution: a\n", "Resolution: a");
        resolves("# Resolution 4\n\nx\n", "# Resolution 4\n\nx");
    }

    #[test]
    fn where_readers_may_see_more_the_whole_proposal_counts() {
        for proposal in [
            "# T\n\nResolution: adopt.\n\n<div hidden>\n\n# A\n\n</div>\n\nand sell the data",
            "# T\n\nResolution: adopt.\n\n<details>\n<summary>x</summary>\n\n## Why\n\n</details>\n\nand sell it",
            "Resolution: adopt.\n\n<!-- x --> Resolution: sell the data",
            "Resolution: adopt.\n\n<span>Resolution</span>: sell the data",
            "Resolution: adopt.\n\nR\u{435}solution: sell the data",
            "Resolution: adopt.\n\nRes\u{200b}olution: sell the data",
            "Resolution: adopt.\n\n\u{ff32}esolution: sell the data",
            "Resolution: adopt.\n\nR e s o l u t i o n: sell the data",
            "Resolution: adopt.\n\nR\u{435}solved, that we sell the data",
        ] {
            assert_eq!(resolution(proposal), None, "{proposal:?}");
        }
        resolves("<!-- a note -->\n\nResolution: adopt.\n", "Resolution: adopt.");
        resolves("Resolution: adopt <!-- a\nnote --> it.\n", "Resolution: adopt <!-- a\nnote --> it.");
    }

    #[test]
    fn a_resolution_is_known_by_its_first_words() {
        for line in [
            "Resolution: a",
            "**Resolution:** a",
            "**Resolution**: a",
            "*Resolution* a",
            "*Resolution* we spend all of it at once",
            "One two three resolution: a",
            "__Resolution__ - a",
            "> Resolution: a",
            "- Resolution: a",
            "1. Resolution: a",
            "## Resolution",
            "### Proposed resolution",
            "RESOLUTION 2: a",
            "Resolutions:",
            "Ordinary resolution no. 2 (amended): a",
            "Resolution — a",
            "Resolution - a",
            "Resolution",
            "| Resolution | a |",
            "Resolved: a",
            "RESOLVED, that a",
            "Resolved that a",
            "*Resolved*, a",
            "It is resolved that a",
            "The board met, and it was RESOLVED THAT a",
            "Be it resolved, a",
            "Therefore be it further resolved to a",
            "We hereby resolve to a",
            "The council resolves that a",
        ] {
            assert!(resolution(&format!("Title\n\n{line}\n\nWe do it.\n")).is_some(), "{line}");
        }
    }

    #[test]
    fn a_resolution_that_resolves_nothing_is_none() {
        for proposal in [
            "Resolution:\n\n## Plan\n\nx\n",
            "## Resolution\n\n## Plan\n\nx\n",
            "## Resolution 2 (amended)\n\n## Plan\n\nx\n",
            "Resolution: -\n",
            "Resolution: &nbsp; <!-- x -->\n",
            "**Resolution**\n\n---\n\nRationale: x\n",
            "Resolution:\n\n[x]: y\n\n# Plan\n",
            "<!-- Resolution: x -->\n\n## Plan\n\nx\n",
            "It is resolved that\n\n## Plan\n\nx\n",
        ] {
            assert_eq!(resolution(&format!("# T\n\n{proposal}")), None, "{proposal:?}");
        }
    }

    #[test]
    fn what_only_has_the_word_is_none() {
        for line in [
            "The name resolves to 10.0.0.1.",
            "We bought screens of a high resolution and put them up.",
            "Resolution of disputes takes the board three weeks or more.",
            "The issue was resolved by the team.",
            "They are resolute.",
            "One two three four resolution: a",
            "Dispute resolution works.",
            "Dispute resolution. The board takes its time for that.",
            "The dispute was resolved.",
            "Unresolved questions are listed below, all of them.",
            "",
        ] {
            assert_eq!(resolution(&format!("Title\n\n{line}\n\nWe do it.\n")), None, "{line}");
        }
    }

    #[test]
    fn a_title_is_a_heading_or_the_first_line() {
        for (proposal, wanted) in [
            ("x\n\n```\n# no\n```\n\n# Yes\n", "Yes"),
            ("\n  x \ny", "x"),
            ("### a ###", "a"),
            ("#a\nb", "#a"),
            ("", ""),
        ] {
            assert_eq!(title(proposal), wanted, "{proposal:?}");
        }
    }

    #[test]
    fn what_no_reader_sees_as_a_heading_ends_nothing() {
        for between in [
            "<!--\n# A\n-->",
            "#",
            "# &nbsp;",
            "# <!-- A -->",
            "<h2 hidden>A</h2>",
            "```\n~~~\n# A\n```",
            "- ```\n\n  # A",
            "[Rationale]: b",
            "    # A",
            "> Rationale: b",
            "> # A",
            "- # A",
        ] {
            let proposal = format!("# T\n\nResolution: a\n\n{between}\n\nc\n");
            // Without a resolution that is certain, the whole proposal counts.
            let found = resolution(&proposal).unwrap_or_else(|| proposal.trim().to_owned());
            assert!(found.ends_with('c'), "{between}: {found}");
        }
    }
}
