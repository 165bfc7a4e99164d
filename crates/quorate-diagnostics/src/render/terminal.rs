//! Diagnostics in the style of rustc: message, underlined source, related places, help.

use std::fmt::Write;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Origin, Renderer, Snippet};

use super::{Colour, Diagnostic, Level, LineIndexes, TextOptions, one_line, sorted_diagnostics};
use crate::{Place, Related, Report};

/// Renders all diagnostics, with an empty line after each.
pub fn full(report: &Report, options: TextOptions) -> String {
    let renderer = renderer(options);
    let mut out = String::new();
    for item in sorted_diagnostics(report) {
        out.push_str(renderer.render(&[group(report, &item)]).trim_end());
        out.push_str("\n\n");
    }
    out
}

fn group<'r>(report: &'r Report, item: &Diagnostic<'r>) -> Group<'r> {
    let level = snippet_level(item.severity.into()).with_name(item.severity.as_str());
    let mut group = Group::with_title(level.primary_title(one_line(&item.body.message)).id(item.code));
    if let Some(place) = &item.body.place {
        group = with_snippets(report, item, place, group);
    }
    match &item.body.help {
        Some(help) => group.element(annotate_snippets::Level::HELP.message(one_line(help))),
        None => group,
    }
}

/// Adds the quoted source of the place and the related places, one snippet per file.
fn with_snippets<'r>(
    report: &'r Report,
    item: &Diagnostic<'r>,
    place: &'r Place,
    mut group: Group<'r>,
) -> Group<'r> {
    let Some(text) = text_of(report, place) else {
        return group.element(Origin::path(one_line(&place.file)).line(1).char_column(1));
    };
    let (same_file, other_files): (Vec<_>, Vec<_>) =
        item.body.related.iter().partition(|related| related.place.file == place.file);
    let mut spans = vec![LabeledSpan {
        span: visible_span(text, &place.span),
        label: String::new(),
        kind: AnnotationKind::Primary,
    }];
    spans.extend(same_file.into_iter().map(|related| related_span(text, related)));
    group = group.elements(quoted_lines(text, &place.file, spans));
    for related in other_files {
        group = match text_of(report, &related.place) {
            Some(text) => {
                group.elements(quoted_lines(text, &related.place.file, vec![related_span(text, related)]))
            }
            None => {
                let file = one_line(&related.place.file);
                group.element(
                    annotate_snippets::Level::NOTE.message(format!("{file}: {}", one_line(&related.label))),
                )
            }
        };
    }
    group
}

fn related_span(text: &str, related: &Related) -> LabeledSpan {
    let span = visible_span(text, &related.place.span);
    LabeledSpan { span, label: one_line(&related.label), kind: AnnotationKind::Context }
}

/// The source of a place; `None` if unknown or empty.
fn text_of<'r>(report: &'r Report, place: &Place) -> Option<&'r str> {
    report.sources.get(&place.file).map(AsRef::as_ref).filter(|text: &&str| !text.is_empty())
}

pub fn concise(report: &Report) -> String {
    let lines = LineIndexes::new(report);
    let mut out = String::new();
    for item in sorted_diagnostics(report) {
        if let Some(place) = &item.body.place {
            let _ = write!(out, "{}:", one_line(&place.file));
            if let Some((start, _)) = lines.positions(&item) {
                let _ = write!(out, "{}:{}:", start.line, start.column);
            }
            out.push(' ');
        }
        let _ = write!(out, "{}[{}] {}", item.severity.as_str(), item.code, one_line(&item.body.message));
        if let Some(help) = &item.body.help {
            let _ = write!(out, " ({})", one_line(help));
        }
        out.push('\n');
    }
    out
}

/// A span of more lines is cut to its first line.
const MAX_LINES: usize = 3;
/// A longer span is cut to its beginning.
const MAX_BYTES: usize = 2_000;
/// The bytes of a line that go to the renderer before and after the spans; more than any terminal's width.
const MAX_CONTEXT_BYTES: usize = 4_000;

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
    let near = text.floor_char_boundary(from.saturating_sub(MAX_CONTEXT_BYTES)).max(start);
    // The renderer cannot count the columns of a line without its beginning.
    let origin = (near > start).then(|| {
        let column = text[start..spans[0].span.start].chars().count() + 1;
        Origin::path(one_line(file)).line(line).char_column(column)
    });
    let (start, end) = (near, text.floor_char_boundary(to.saturating_add(MAX_CONTEXT_BYTES)).min(end));
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
    let start = text.floor_char_boundary(span.start).max(text_start(text));
    let end = text.floor_char_boundary(span.end).max(start);
    let spanned = text[start..end].trim_end();
    if spanned.len() <= MAX_BYTES && spanned.lines().count() <= MAX_LINES {
        return start..start + spanned.len();
    }
    let line = spanned.lines().next().map_or(0, str::len);
    start..text.floor_char_boundary(start + line.min(MAX_BYTES))
}

/// The offset after a byte order mark.
fn text_start(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::{Colour, fixture};
    use super::*;
    use crate::{Body, codes};

    #[test]
    fn the_source_is_quoted_and_underlined() {
        let out = full(&fixture::report(), TextOptions::default());
        let expected = "\
refusal[quorate:usage]: no file was named

refusal[quorate:council_invalid]: `id` is missing
 --> council.yaml:1:1
  |
1 | a: 1
  | ^
  |
  = help: add `id`: a name

refusal[quorate:syntax]: the key `ä` is there twice
 --> council.yaml:2:16
  |
2 | longer: {ä: 2, ä: 3}
  |          -     ^
  |          |
  |          first here

warning[quorate:field_without_effect]: nothing reads \\u{1b}[31m this
 --> council.yaml:2:16
  |
2 | longer: {ä: 2, ä: 3}
  |                ^

";
        assert_eq!(out, expected, "\n{out}");
    }

    #[test]
    fn an_ancestor_in_another_file_is_shown_too() {
        let place = |file: &str, span| Place { file: file.into(), span, path: String::new() };
        let mut report = Report::new();
        report.add_source("child.md", "a: 1\n");
        report.add_source("parent.md", "\nb: 22\n");
        let body = Body::new("looser than its parent").at(place("child.md", 3..4));
        report.refuse(codes::SYNTAX, body.related(place("parent.md", 4..6), "declared here"));
        report.refuse(codes::SYNTAX, Body::new("empty").at(place("nothing.md", 0..0)));
        let expected = "\
refusal[quorate:syntax]: looser than its parent
 --> child.md:1:4
  |
1 | a: 1
  |    ^
  |
 ::: parent.md:2:4
  |
2 | b: 22
  |    -- declared here

refusal[quorate:syntax]: empty
--> nothing.md:1:1

";
        let out = full(&report, TextOptions::default());
        assert_eq!(out, expected, "\n{out}");
    }

    #[test]
    fn colours_only_when_asked_for() {
        let options = TextOptions { colour: Colour::On, ..TextOptions::default() };
        assert!(full(&fixture::report(), options).contains('\u{1b}'));
        assert!(!full(&fixture::report(), TextOptions::default()).contains('\u{1b}'));
    }
}

#[cfg(test)]
mod concise_tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn each_diagnostic_has_one_line() {
        assert_eq!(
            concise(&fixture::report()),
            "refusal[quorate:usage] no file was named\n\
             council.yaml:1:1: refusal[quorate:council_invalid] `id` is missing (add `id`: a name)\n\
             council.yaml:2:16: refusal[quorate:syntax] the key `ä` is there twice\n\
             council.yaml:2:16: warning[quorate:field_without_effect] nothing reads \\u{1b}[31m this\n"
        );
        assert_eq!(concise(&Report::new()), "");
    }
}

#[cfg(test)]
mod span_tests {
    use super::*;

    #[test]
    fn odd_spans_stay_in_the_text() {
        for text in ["", "\n", "ä", "\u{feff}x", "\u{feff}", "a\r\n", "\r", "\r\n\r\n", "\t日本\u{1b}[31m"]
        {
            for start in 0..=text.len() + 1 {
                for end in 0..=text.len() + 1 {
                    let span = visible_span(text, &(start..end));
                    assert!(text.get(span.clone()).is_some(), "{span:?} of {text:?}");
                }
            }
        }
        assert_eq!(visible_span("a b\nc d\ne f\ng h\ni", &(2..15)), 2..3);
    }
}
