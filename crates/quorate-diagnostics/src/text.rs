//! Positions in a text (byte offsets, lines and columns), and word lists that are kept as text files.
//!
//! A word list has sections under a `[name]`, entries divided by commas or line breaks, and comment lines that begin with `#`.

use std::ops::Range;

/// Line starts of a text. Lines end with `\n` or `\r\n`; a line's text excludes them and a byte order mark.
#[derive(Debug, Clone)]
pub struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

/// A line and a column, both from 1; columns count `char`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl<'t> LineIndex<'t> {
    pub fn new(text: &'t str) -> Self {
        let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(mark).chain(breaks).collect();
        LineIndex { text, starts }
    }

    /// The position of a byte offset. An offset inside a character is rounded down to its start, one past the end to the
    /// end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let range = self.line_range(line);
        let before = self.text.get(range.start..offset.min(range.end)).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }

    /// The byte range of a line, without its line break. For a missing line: an empty range at the end of the text.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let end = self.text.len();
        let Some(start) = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied() else {
            return end..end;
        };
        let next = self.starts.get(line).copied().unwrap_or(end + 1);
        let content = &self.text[start..(next - 1).max(start)];
        let length = if next <= end { content.trim_end_matches('\r').len() } else { content.len() };
        start..start + length
    }

    /// The text of a line, without its line break.
    pub fn line(&self, line: usize) -> &'t str {
        &self.text[self.line_range(line)]
    }

    /// The byte offset of a position; a column past the end of the line gives the line's end.
    pub fn offset(&self, position: Position) -> usize {
        let range = self.line_range(position.line);
        let line = &self.text[range.clone()];
        let column = position.column.saturating_sub(1);
        line.char_indices().nth(column).map_or(range.end, |(at, _)| range.start + at)
    }
}

/// A text on one line: each run of whitespace becomes one space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A path or a name as one word of a shell's command.
pub fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@');
    match !word.is_empty() && word.chars().all(plain) && !word.starts_with('-') {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The first `most` characters of a text; a longer text ends in `…`.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The entries of a section.
///
/// # Panics
/// If the file has no such section; the files are compiled in.
pub fn section(file: &'static str, name: &str) -> impl Iterator<Item = &'static str> {
    let is_name =
        move |line: &str| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(name);
    let start = file.lines().position(is_name);
    assert!(start.is_some(), "a word list has no section `{name}`");
    let rest = file.lines().skip(start.unwrap_or_default() + 1);
    let lines = rest.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, offset: usize, line: usize, column: usize) {
        assert_eq!(LineIndex::new(text).position(offset), Position { line, column }, "{text:?} at {offset}");
    }

    #[test]
    fn columns_count_characters() {
        check("äöü\nb", 0, 1, 1);
        check("äöü\nb", 4, 1, 3);
        check("äöü\nb", 5, 1, 3);
        check("äöü\nb", 7, 2, 1);
        check("äöü\nb", 99, 2, 2);
    }

    #[test]
    fn line_breaks_of_both_kinds() {
        let text = "one\r\ntwo\nthree\r\n";
        let index = LineIndex::new(text);
        assert_eq!((1..=5).map(|line| index.line(line)).collect::<Vec<_>>(), ["one", "two", "three", "", ""]);
        check(text, 5, 2, 1);
        check(text, 3, 1, 4);
        check(text, 4, 1, 4);
        check(text, text.len(), 4, 1);
        check("", 0, 1, 1);
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        check("\u{feff}ab", 3, 1, 1);
        check("\u{feff}ab", 4, 1, 2);
        check("\u{feff}ab", 0, 1, 1);
        assert_eq!(LineIndex::new("\u{feff}ab").line(1), "ab");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!((shortened("ä b", 3), shortened("ä b", 2)), ("ä b".to_owned(), "ä …".to_owned()));
        assert_eq!(one_line(" a\n\tb "), "a b");
    }

    #[test]
    fn offsets_round_trip() {
        let text = "a\r\nbä\n\nc";
        let index = LineIndex::new(text);
        for offset in [0, 3, 4, 6, 7, 8] {
            assert_eq!(index.offset(index.position(offset)), offset);
        }
        assert_eq!(index.offset(Position { line: 1, column: 99 }), 1);
        assert_eq!(index.offset(Position { line: 99, column: 1 }), text.len());
    }
}

#[cfg(test)]
mod word_list_tests {
    use super::*;

    const FILE: &str = "# What it is for.\n\n[a]\none, two words,\n# and\nthree\n\n[b]\nfour\n";

    #[test]
    fn a_section_has_its_entries_without_comments() {
        assert_eq!(section(FILE, "a").collect::<Vec<_>>(), ["one", "two words", "three"]);
    }

    #[test]
    #[should_panic(expected = "no section `c`")]
    fn a_section_that_is_missing_is_a_bug() {
        section(FILE, "c").for_each(drop);
    }
}
