//! Diagnostics in the style of rustc: message, underlined source, related places, help.

use annotate_snippets::{AnnotationKind, Group, Level, Origin};

use super::underline::{LabeledSpan, quoted_lines, renderer, snippet_level, visible_span};
use super::{Diagnostic, TextOptions, one_line, sorted_diagnostics};
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
        Some(help) => group.element(Level::HELP.message(one_line(help))),
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
                group.element(Level::NOTE.message(format!("{file}: {}", one_line(&related.label))))
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
