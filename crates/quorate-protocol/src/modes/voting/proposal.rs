//! The parts of a proposal that make a decision (V6): its title, and all resolutions.  A resolution begins at a line such as
//! `Resolution: …`, `**Resolution**`, a heading `## Resolution`, `RESOLVED, that
//! …`, also within a paragraph, `it is resolved that …`. It extends over paragraphs, lists and tables to the next visible
//! heading, or to a paragraph that begins its support, `Rationale:` ([`self`]). A proposal may have several. The
//! words are matched as locked traits are, so that no alternative spelling hides a resolution. An empty resolution does not
//! count.

use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use quorate_manifest::assembly::MatchMode;

use crate::locks::{Hit, LockedTrait, Locks, fold};

/// The words by which a resolution is known.
const RESOLUTION_WORDS: [&str; 2] = ["resolution", "resolve"];

/// The maximum number of words beside the word in a label: `Proposed ordinary resolution`, `Resolution no. 2 (amended)`.
const MAX_LABEL_WORDS: usize = 3;

/// Who resolves something, where the word itself does not say that it is resolved here.
const RESOLVING_BODIES: [&str; 12] = [
    "we",
    "hereby",
    "it",
    "further",
    "board",
    "council",
    "committee",
    "assembly",
    "meeting",
    "members",
    "company",
    "team",
];

static RESOLUTION_LOCKS: LazyLock<Option<Locks>> = LazyLock::new(|| {
    let word = |text: &&str| LockedTrait::plain(*text);
    // Plain text always compiles.
    Locks::compile(&RESOLUTION_WORDS.iter().map(word).collect::<Vec<_>>(), MatchMode::Substring).ok()
});

/// The proposal's title: its first heading outside of code, else its first line that says something.
pub(super) fn title(proposal: &str) -> &str {
    let lines = lines(proposal);
    let heading = lines.iter().find(|line| line.text.starts_with('#') && line.level.is_some());
    let first = lines.iter().find(|line| !line.text.is_empty() && !is_fence(line.text));
    match (heading, first) {
        (Some(heading), _) => heading.text.trim_start_matches('#').trim(),
        (None, first) => first.map_or("", |line| line.text),
    }
}

/// All resolutions; `None` if no line begins one, or all are empty.
pub(super) fn resolution(proposal: &str) -> Option<String> {
    let proposal = proposal.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let lines = lines(&proposal);
    let mut begins: Vec<Option<&str>> = lines.iter().map(resolved_in).collect();
    // A title that names a resolution does not begin one where the text does so itself.
    let title = lines.iter().position(|line| !line.text.is_empty()).filter(|at| lines[*at].level.is_some());
    if let Some(title) = title
        && begins.iter().flatten().count() > 1
    {
        begins[title] = None;
    }
    let (mut resolved, mut says_what): (Vec<&str>, bool) = (Vec::new(), false);
    // The level of the heading above it; the lowest without one.
    let mut inside: Option<usize> = None;
    for ((line, begins), rendered) in lines.iter().zip(begins).zip(outline(&proposal)) {
        if begins.is_some() {
            inside = Some(inside.unwrap_or(usize::MAX).min(line.level.unwrap_or(usize::MAX)));
        } else if rendered.ends.is_some_and(|level| inside.is_some_and(|own| level <= own)) {
            inside = None;
        }
        if inside.is_some() {
            resolved.push(line.whole.trim_end());
            says_what |= rendered.is_shown && begins.is_none_or(says_something);
        }
    }
    says_what.then(|| resolved.join("\n").trim().to_owned())
}

/// A line of a proposal.
struct Line<'a> {
    whole: &'a str,
    /// Without white space around it.
    text: &'a str,
    /// Its level, where it looks like a heading outside of code.
    level: Option<usize>,
}

fn lines(proposal: &str) -> Vec<Line<'_>> {
    let all: Vec<&str> = proposal.trim_start_matches('\u{feff}').lines().collect();
    let mut in_code = false;
    let mut lines = Vec::with_capacity(all.len());
    for (at, whole) in all.iter().copied().enumerate() {
        let text = whole.trim();
        if is_fence(text) {
            in_code = !in_code;
        }
        let level =
            if in_code { None } else { heading_level(text, all.get(at + 1).copied().unwrap_or_default()) };
        lines.push(Line { whole, text, level });
    }
    lines
}

fn is_fence(text: &str) -> bool {
    text.starts_with("```") || text.starts_with("~~~")
}

/// The level of a heading: `## …`, `<h2>…`, or a line above one of `=` or `-`.
fn heading_level(text: &str, next: &str) -> Option<usize> {
    let bare = text.trim_start_matches('#');
    let signs = text.len() - bare.len();
    if (1..=6).contains(&signs) && (bare.is_empty() || bare.starts_with([' ', '\t'])) {
        return Some(signs);
    }
    if let Some(html) = text.strip_prefix("<h").or_else(|| text.strip_prefix("<H")) {
        return html.chars().next()?.to_digit(7).and_then(|level| usize::try_from(level).ok());
    }
    let next = next.trim();
    let underlined = |sign: char| next.len() > 1 && next.chars().all(|c| c == sign);
    let plain = text.starts_with(char::is_alphanumeric) || text.starts_with(['*', '_']);
    match (plain, underlined('='), underlined('-')) {
        (true, true, _) => Some(1),
        (true, _, true) => Some(2),
        _ => None,
    }
}

/// What a line resolves in which a resolution begins, nothing where it only names it; `None` for other lines.
fn resolved_in<'a>(line: &Line<'a>) -> Option<&'a str> {
    let hits = RESOLUTION_LOCKS.as_ref().map(|marks| marks.find_all(line.text)).unwrap_or_default();
    hits.iter().find_map(|hit| resolved_after(line, hit))
}

fn resolved_after<'a>(line: &Line<'a>, hit: &Hit) -> Option<&'a str> {
    let (before, after) = (fold(&line.text[..hit.span.start]), &line.text[hit.span.end..]);
    let folded = fold(after);
    let words_before = count_words(&before);
    if hit.trait_index == 1 {
        // `resolved`, `resolves`.
        let ending = folded.trim_start_matches(['d', 's']);
        let rest = ending.trim_start();
        let says_what = ["that", "to"].iter().any(|word| begins_with_word(rest, word));
        let by_whom = words_of(&before).last().is_some_and(|last| RESOLVING_BODIES.contains(&last));
        let at_start = words_before == 0 && (rest.is_empty() || !rest.starts_with(char::is_alphanumeric));
        let begins = at_start
            || begins_with_word(rest, "that")
            || (by_whom && (says_what || rest.is_empty() || before.ends_with("be it ")))
            || (words_before == 0 && says_what);
        return begins.then(|| without_word(after.trim_start_matches(char::is_alphanumeric)));
    }
    let ending = folded.strip_prefix('s').unwrap_or(&folded);
    if ending.starts_with(char::is_alphanumeric) || words_before > MAX_LABEL_WORDS {
        return None;
    }
    const ENDS: [char; 5] = [':', '：', '—', '–', '|'];
    let rest = ending.trim_start();
    let label = rest.find(ENDS).map_or(MAX_LABEL_WORDS + 1, |end| count_words(&rest[..end]));
    let is_alone = count_words(rest) <= MAX_LABEL_WORDS && (line.level.is_some() || words_before == 0);
    let is_emphasised = words_before == 0 && after.starts_with(['*', '_', '`', '<', '.', '-', ')']);
    if label <= MAX_LABEL_WORDS {
        return Some(after.split_once(ENDS).map_or(after, |(_, resolved)| resolved));
    }
    match (is_emphasised, is_alone) {
        (true, _) => Some(after),
        (false, true) => Some(""),
        (false, false) => None,
    }
}

/// The clause after `that` or `to`.
fn without_word(text: &str) -> &str {
    let start = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let rest = start.trim_start_matches(char::is_alphanumeric);
    let word = &start[..start.len() - rest.len()];
    if ["that", "to"].iter().any(|filler| word.eq_ignore_ascii_case(filler)) { rest } else { text }
}

fn words_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.contains(char::is_alphabetic))
}

fn count_words(text: &str) -> usize {
    words_of(text).count()
}

fn begins_with_word(text: &str, word: &str) -> bool {
    text.trim_start_matches(|c: char| !c.is_alphanumeric())
        .strip_prefix(word)
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Introductory words before a resolution that are not part of it.
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

/// The text may span several lines, as code does.
fn mark_shown(lines: &mut [RenderedLine], first: usize, text: &str) {
    for (line, text) in lines.iter_mut().skip(first).zip(text.lines()) {
        line.is_shown |= says_something(text);
    }
}

/// Whether HTML consists of one comment.
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
    fn a_resolution_is_known_in_any_writing() {
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
            "<b>Resolution:</b> a",
            "<h2>Resolution</h2>",
            "R\u{435}solution: a",
            "Reso\u{200b}lution: a",
            "R e s o l u t i o n : a",
            "Ｒｅｓｏｌｕｔｉｏｎ： a",
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
            // A line of one sign does not underline a heading.
            "Resolution\n=\n\n### Plan\n\nx\n",
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
            ("### a ###", "a ###"),
            ("#a\nb", "#a"),
            ("", ""),
        ] {
            assert_eq!(title(proposal), wanted, "{proposal:?}");
        }
    }
}

#[cfg(test)]
mod outline_tests {
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
