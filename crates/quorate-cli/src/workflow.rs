//! Workflow commands: a runner of GitHub Actions executes lines of a step's output that begin with `::` (after blanks), and
//! `##[` anywhere in a line. Foreign text must not contain commands. [`commands`] writes intended ones; all other output
//! passes through [`neutralize`].

use std::borrow::Cow;
use std::sync::OnceLock;

use quorate_diagnostics::invisible;
use serde::de::IgnoredAny;

use crate::environment;

/// Whether a runner reads the output.
pub(super) fn is_read_by_runner() -> bool {
    static READ: OnceLock<bool> = OnceLock::new();
    *READ.get_or_init(|| environment::variable("GITHUB_ACTIONS").is_some_and(|value| !value.is_empty()))
}

/// A text without commands, if a runner reads it. JSON keeps its values.
pub(super) fn neutralize(text: &str) -> Cow<'_, str> {
    if is_read_by_runner() { escape_commands(text) } else { Cow::Borrowed(text) }
}

/// Lines that are one command each.
pub(super) fn commands(text: &str) -> Cow<'_, str> {
    match is_read_by_runner() && text.contains("##[") {
        true => Cow::Owned(text.replace("##[", "#\\#[")),
        false => Cow::Borrowed(text),
    }
}

/// A text without invisible characters that change how others look.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    // Escape characters begin Quorate's own colours.
    invisible::escape_invisible_except(text, |c| c == '\u{1b}')
}

/// Data with visible characters only: JSON of the same values, or text.
pub(super) fn visible_data(text: &str) -> Cow<'_, str> {
    match visible(text) {
        Cow::Owned(_) if is_json(text) => invisible::escape_invisible_json(text),
        seen => seen,
    }
}

/// A message for people: without commands, and with visible characters only.
pub(super) fn status_text(text: &str) -> Cow<'_, str> {
    match neutralize(text) {
        Cow::Borrowed(text) => visible(text),
        Cow::Owned(text) => Cow::Owned(visible(&text).into_owned()),
    }
}

fn escape_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("##[") && !text.contains("::") {
        return Cow::Borrowed(text);
    }
    // In JSON number signs occur only in strings, and no line begins with a colon.
    if is_json(text) {
        return Cow::Owned(text.replace("##[", "#\\u0023["));
    }
    let mut inert = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive(['\n', '\r']) {
        let words = line.trim_start_matches(is_blank);
        inert.push_str(&line[..line.len() - words.len()]);
        if words.starts_with("::") {
            inert.push('\\');
        }
        inert.push_str(&words.replace("##[", "#\\#["));
    }
    Cow::Owned(inert)
}

/// Whether a text is a JSON value, or one on each line.
fn is_json(text: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let begins_like_json = text.trim_start().starts_with(['{', '[', '"']);
    begins_like_json && (value(text) || text.lines().filter(|line| !line.trim().is_empty()).all(value))
}

/// Characters that a runner skips before a command, or does not show.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || invisible::is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_a_command() {
        for (text, expected) in [
            ("plain text, a::b and C++::d\n", "plain text, a::b and C++::d\n"),
            ("::add-mask::x\n", "\\::add-mask::x\n"),
            ("a\n \t::set-output name=a::b\r\n", "a\n \t\\::set-output name=a::b\r\n"),
            ("a\r::stop-commands::x", "a\r\\::stop-commands::x"),
            ("\u{a0}\u{3000}\u{feff}::debug::x", "\u{a0}\u{3000}\u{feff}\\::debug::x"),
            ("see ##[set-output name=a]b", "see #\\#[set-output name=a]b"),
            ("###[error]x ##[group]", "##\\#[error]x #\\#[group]"),
            ("{\"a\": \"##[error]x\"}\n", "{\"a\": \"#\\u0023[error]x\"}\n"),
            ("{\"a\": 1}\n{\"b\": \"###[x]\"}\n", "{\"a\": 1}\n{\"b\": \"##\\u0023[x]\"}\n"),
            ("{\"a\": 1}\n::add-mask::x\n", "{\"a\": 1}\n\\::add-mask::x\n"),
        ] {
            assert_eq!(escape_commands(text), expected, "{text:?}");
            assert_eq!(escape_commands(expected), expected, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"##[a]": ["\\##[b]", "\"##[c]", "###[d] ::e::"]});
        for text in [value.to_string(), format!("{value:#}\n")] {
            let inert = escape_commands(&text);
            assert!(!inert.contains("##["), "{inert}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&inert).expect("JSON"), value);
        }
    }

    #[test]
    fn what_hides_is_seen() {
        assert_eq!(visible("a\u{202e}b\u{2028}c"), "a[U+202E]b[U+2028]c");
        assert_eq!(visible("\u{1b}[31ma\u{200b}\u{85}"), "\u{1b}[31ma[U+200B][U+0085]");
        assert_eq!(visible_data("{\"a\": \"\u{200b}\"}\n"), "{\"a\": \"\\u200b\"}\n");
        assert_eq!(visible("plain"), "plain");
    }
}
