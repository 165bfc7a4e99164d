//! Quotes and underlines a part of a text in the style of rustc.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Origin, Renderer, Snippet};

use super::{Colour, Level, TextOptions, one_line};

/// A span of more lines is cut to its first line.
const MAX_LINES: usize = 3;
/// A longer span is cut to its beginning.
const MAX_BYTES: usize = 2_000;
/// The bytes of a line that go to the renderer before and after the spans; more than any terminal's width.
const MAX_CONTEXT_BYTES: usize = 4_000;

/// Quotes the lines of `text` that contain `span`, underlines the span, and puts `label` beside it, below a line with
/// `file`, line and column. A span of more than three lines is cut to its first line.
pub fn underline(
    text: &str,
    span: Range<usize>,
    label: &str,
    level: Level,
    file: &str,
    options: TextOptions,
) -> String {
    let span = LabeledSpan {
        span: visible_span(text, &span),
        label: one_line(label),
        kind: AnnotationKind::Primary,
    };
    let group = Group::with_level(snippet_level(level)).elements(quoted_lines(text, file, vec![span]));
    renderer(options).render(&[group])
}

/// A span to underline.
pub(super) struct LabeledSpan {
    /// The result of [`visible_span`].
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) kind: AnnotationKind,
}

/// The quoted lines from the first to the last span. The renderer gets only these, and only the surroundings of the spans
/// in a long line, so that its cost does not grow with the text.
pub(super) fn quoted_lines<'t>(text: &'t str, file: &str, spans: Vec<LabeledSpan>) -> Vec<Element<'t>> {
    let from = spans.iter().map(|labeled| labeled.span.start).min().unwrap_or(0);
    let to = spans.iter().map(|labeled| labeled.span.end).max().unwrap_or(from);
    let start = text[..from].rfind('\n').map_or(text_start(text).min(from), |at| at + 1);
    let end = text[to..].find('\n').map_or(text.len(), |at| to + at);
    let line = 1 + text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
    let near = floor_char_boundary(text, from.saturating_sub(MAX_CONTEXT_BYTES)).max(start);
    // The renderer cannot count the columns of a line without its beginning.
    let origin = (near > start).then(|| {
        let column = text[start..spans[0].span.start].chars().count() + 1;
        Origin::path(one_line(file)).line(line).char_column(column)
    });
    let (start, end) = (near, floor_char_boundary(text, to.saturating_add(MAX_CONTEXT_BYTES)).min(end));
    let annotations = spans.into_iter().map(|labeled| {
        let annotation = labeled.kind.span(labeled.span.start - start..labeled.span.end - start);
        if labeled.label.is_empty() { annotation } else { annotation.label(labeled.label) }
    });
    let quoted = text[start..end].strip_suffix('\r').unwrap_or(&text[start..end]);
    let snippet = Snippet::source(quoted).line_start(line).annotations(annotations);
    match origin {
        Some(origin) => vec![origin.into(), snippet.into()],
        None => vec![snippet.path(one_line(file)).into()],
    }
}

pub(super) fn renderer(options: TextOptions) -> Renderer {
    let renderer = match options.colour {
        Colour::On => Renderer::styled(),
        Colour::Off => Renderer::plain(),
    };
    renderer.term_width(options.width)
}

pub(super) fn snippet_level(level: Level) -> annotate_snippets::Level<'static> {
    match level {
        Level::Error => annotate_snippets::Level::ERROR,
        Level::Warning => annotate_snippets::Level::WARNING,
        Level::Note => annotate_snippets::Level::NOTE,
    }
}

/// The part of a span to underline: on character boundaries, after a byte order mark, within the text, without trailing
/// line breaks, and at most [`MAX_LINES`] and [`MAX_BYTES`] long.
pub(super) fn visible_span(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = floor_char_boundary(text, span.start).max(text_start(text));
    let end = floor_char_boundary(text, span.end).max(start);
    let spanned = text[start..end].trim_end();
    if spanned.len() <= MAX_BYTES && spanned.lines().count() <= MAX_LINES {
        return start..start + spanned.len();
    }
    let line = spanned.lines().next().map_or(0, str::len);
    start..floor_char_boundary(text, start + line.min(MAX_BYTES))
}

/// The offset after a byte order mark.
fn text_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, part: &str, expected: &str) {
        let start = text.find(part).expect("a part of the text");
        let look = TextOptions { width: 60, ..TextOptions::default() };
        let out = underline(text, start..start + part.len(), "why", Level::Error, "draft.md", look);
        let out: String = out.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        assert_eq!(out, expected, "\n{out}");
    }

    #[test]
    fn one_line_is_underlined() {
        check(
            "First.\r\nÜber 90% grew.\r\nLast.\r\n",
            "90%",
            " --> draft.md:2:6\n  |\n2 | Über 90% grew.\n  |      ^^^ why\n",
        );
        check("\u{feff}90% grew.", "90%", " --> draft.md:1:1\n  |\n1 | 90% grew.\n  | ^^^ why\n");
    }

    #[test]
    fn a_long_line_is_cut_around_the_span() {
        check(
            &format!("{} 90% {}", "word ".repeat(60), "more ".repeat(60)),
            "90%",
            " --> draft.md:1:302\n  |\n1 | ...word word word word  90% more more more more more ...\n  |                         ^^^ why\n",
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test measures time")]
    fn the_cost_of_a_huge_line_is_bounded() {
        let text = format!("{}90% {}", "wörd ".repeat(200_000), "more ".repeat(200_000));
        let at = text.find("90%").expect("a part of the text");
        let started = std::time::Instant::now();
        for _ in 0..20 {
            let look = TextOptions { width: 60, ..TextOptions::default() };
            let out = underline(&text, at..at + 3, "why", Level::Error, "draft.md", look);
            assert!(out.starts_with(" --> draft.md:1:1000001\n"), "{out}");
            let (above, below) = (out.find("90% more").expect("shown"), out.find("^^^ why").expect("marked"));
            let column = |at: usize| out[out[..at].rfind('\n').map_or(0, |end| end + 1)..at].chars().count();
            assert_eq!(column(above), column(below), "{out}");
            assert!(out.contains("...") && out.len() < 400, "{out}");
            // A span of the whole line is underlined at its beginning.
            let out = underline(&text, 0..text.len(), "", Level::Error, "draft.md", look);
            assert!(out.len() < 10_000 && out.contains("draft.md:1:1"), "{}", out.len());
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn several_lines() {
        check(
            "a b\nc d\ne f\n",
            "b\nc",
            " --> draft.md:1:3\n  |\n1 |   a b\n  |  ___^\n2 | | c d\n  | |_^ why\n",
        );
        check("a b\nc d\ne f\ng h\ni", "b\nc d\ne f\ng h", " --> draft.md:1:3\n  |\n1 | a b\n  |   ^ why\n");
    }

    #[test]
    fn odd_spans_do_not_panic() {
        for text in ["", "\n", "ä", "\u{feff}x", "\u{feff}", "a\r\n", "\r", "\r\n\r\n", "\t日本\u{1b}[31m"]
        {
            for start in 0..=text.len() + 1 {
                for end in 0..=text.len() + 1 {
                    let _ =
                        underline(text, start..end, "l\nl", Level::Note, "f\u{7}", TextOptions::default());
                }
            }
        }
    }
}
