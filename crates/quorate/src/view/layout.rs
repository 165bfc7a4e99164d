//! Laying text out in columns: tables, wrapped prose, and lines that hang from a label; and colours that do not affect the
//! layout.
//!
//! Text is marked with zero-width characters, laid out, and then [`finish`] turns the marks into colours or drops them.
//! Foreign text is [`sanitize`]d first.

use std::borrow::Cow;
use std::ops::Range;

use anstyle::{AnsiColor, Style};
use comfy_table::{ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width, presets};
use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_protocol::policy::Verdict;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Lines longer than this are hard to read, however wide the terminal is.
const MAX_WIDTH: usize = 100;
/// Nothing is laid out narrower than this.
pub(super) const MIN_WIDTH: usize = 24;
/// Words longer than this are broken in a table.
const MAX_WORD_WIDTH: u16 = 28;
/// Words of more bytes than this are split before layout: the table library measures the rest of a word again for each
/// line that it cuts off.
const MAX_WORD_BYTES: usize = 512;
/// The spaces between two columns.
const GAP: u16 = 2;

/// Wraps paragraphs, each line after `indent` spaces. Empty lines part paragraphs, list items hang from their marks,
/// and other line breaks are spaces.
pub fn prose(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    for block in blocks(text) {
        match block {
            Block::Gap => out.push('\n'),
            Block::Item { mark, text } => out.push_str(&hanging(&mark, &text, indent, width)),
            Block::Paragraph(text) => out.push_str(&wrap("", "", &text, indent, width)),
        }
    }
    out.trim_end().to_owned() + "\n"
}

/// Wraps a text beside its label.
pub fn hanging(label: &str, text: &str, indent: usize, width: usize) -> String {
    let first = format!("{label} ");
    wrap(&first, &" ".repeat(columns_of(&first)), text, indent, width)
}

/// Wraps a text, each line after its own prefix: `first`, and `rest` from the second line on.
pub fn wrap_prefixed(first: &str, rest: &str, text: &str, width: usize) -> String {
    let room = width.saturating_sub(columns_of(first).max(columns_of(rest))).max(MIN_WIDTH);
    let mut out = String::new();
    for (at, line) in wrap("", "", text, 0, room).lines().enumerate() {
        out.push_str(format!("{}{line}", if at == 0 { first } else { rest }).trim_end());
        out.push('\n');
    }
    out
}

/// The width of a one-line text, in columns.
pub fn columns_of(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A character of private use, in place of a space at which no line may end.
const FIXED_SPACE: &str = "\u{e000}";

/// Wraps a text after `first` on its first line and `rest` on the others, between the spaces of an indent and a width.
fn wrap(first: &str, rest: &str, text: &str, indent: usize, width: usize) -> String {
    let room = available_width(indent, width.min(MAX_WIDTH));
    // A suggested command that fits on a line is not broken: a shell would run its first half.
    let is_whole =
        |part: &str| part.starts_with("quorate ") && columns_of(part) + columns_of(rest) + 3 < room;
    let whole = |part: &str| if is_whole(part) { part.replace(' ', FIXED_SPACE) } else { part.to_owned() };
    let text = text.split('`').map(whole).collect::<Vec<_>>().join("`");
    let options = Options::new(room)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    indented_lines(textwrap::wrap(&text, options), indent).replace(FIXED_SPACE, " ")
}

/// Wraps a line whose pieces are marked already.
pub fn wrap_marked(text: &str, indent: usize, width: usize) -> String {
    wrap("", "", text, indent, width)
}

/// As [`wrap_marked`], with the lines after the first one further in.
pub fn wrap_hanging(text: &str, indent: usize, width: usize) -> String {
    wrap("", "  ", text, indent, width)
}

/// Two texts at both ends of a line, or on lines of their own if they do not fit on it. Both are marked already.
pub fn split(text: &str, end: &str, indent: usize, width: usize) -> String {
    let room = available_width(indent, width.min(MAX_WIDTH));
    match room.saturating_sub(columns_of(text) + columns_of(end)) {
        0 | 1 => [text, end].map(|text| wrap_hanging(text, indent, width)).concat(),
        gap => indented_lines([format!("{text}{}{end}", " ".repeat(gap))], indent),
    }
}

/// The line of a place, and a line that underlines the place; `None` if the text does not have the place.
pub fn underlined(
    text: &str,
    place: Range<usize>,
    number: u64,
    tone: Tone,
    indent: usize,
    width: usize,
) -> Option<String> {
    let gutter = format!("{number:>3} │ ");
    let room = available_width(indent + columns_of(&gutter), width.min(MAX_WIDTH));
    let words = text.get(place.clone())?;
    let first = words.lines().next().unwrap_or_default();
    let before = text.get(..place.start)?.rsplit('\n').next().unwrap_or_default();
    let after = if first.len() < words.len() {
        ""
    } else {
        text.get(place.end..)?.lines().next().unwrap_or_default()
    };
    // Characters beyond a line's width are not shown, however long the line of the text is.
    let near: String = before.chars().rev().take(room + 1).collect();
    let before: String = near.chars().rev().collect();
    let start = |text: &str| sanitize(&text.chars().take(room + 1).collect::<String>());
    let (before, words, after) = (sanitize(&before), start(first), start(after));
    let words = cut(&words, room);
    let left = room - columns_of(&words);
    let before = match columns_of(&before) <= left {
        true => before,
        false => cut(&before.chars().rev().collect::<String>(), left / 2).chars().rev().collect(),
    };
    let after = cut(&after, left.saturating_sub(columns_of(&before)));
    let marks = tone.on(&"^".repeat(columns_of(&words).max(1)));
    let rail = format!("{}│ {}{marks}", " ".repeat(columns_of(&gutter) - 2), " ".repeat(columns_of(&before)));
    Some(indented_lines([format!("{gutter}{before}{words}{after}"), rail], indent))
}

/// The beginning of a text, with an ellipsis if it exceeds a number of columns.
fn cut(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let kept: String = text.chars().take_while(fits).collect();
    if columns == 0 { kept } else { kept + "…" }
}

/// A table with its headings, if there are any, underlined and two spaces between columns. Columns narrow to their longest words; where
/// even those do not fit, each row becomes a list of its cells.
pub fn table(headings: &[&str], rows: Vec<Vec<String>>, indent: usize, width: usize) -> String {
    let least = min_widths(headings, &rows);
    let needed = least.iter().map(|width| usize::from(*width)).sum::<usize>()
        + usize::from(GAP) * least.len().saturating_sub(1);
    if needed > width.saturating_sub(indent) {
        return rows_as_lists(headings, &rows, indent, width);
    }
    let mut table = new_table(indent, width);
    if headings.iter().any(|heading| !heading.is_empty()) {
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
        table.set_header(headings.iter().map(|heading| Tone::Strong.on(heading)));
    }
    table.add_rows(rows.iter().map(|row| row.iter().map(|cell| split_huge_words(cell, width))));
    let last = headings.len().saturating_sub(1);
    for ((at, column), least) in table.column_iter_mut().enumerate().zip(least) {
        let gap = if at < last { GAP } else { 0 };
        column.set_padding((0, gap));
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least + gap)));
    }
    indented_lines(table.lines(), indent)
}

/// How narrow each column can be: as its longest word, or the whole of the first column.
fn min_widths(headings: &[&str], rows: &[Vec<String>]) -> Vec<u16> {
    let mut words = Table::new();
    let apart = |(at, cell): (usize, &str)| if at == 0 { cell.to_owned() } else { cell.replace(' ', "\n") };
    words.add_row(headings.iter().copied().enumerate().map(apart));
    words.add_rows(rows.iter().map(|row| row.iter().map(String::as_str).enumerate().map(apart)));
    words.column_max_content_widths().into_iter().map(|width| width.min(MAX_WORD_WIDTH)).collect()
}

/// Rows as lists: the first cell above, the others below it with their headings.
fn rows_as_lists(headings: &[&str], rows: &[Vec<String>], indent: usize, width: usize) -> String {
    let mut out = String::new();
    for row in rows {
        let mut cells = headings.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        if let Some((_, first)) = cells.next() {
            out.push_str(&wrap("", "", first, indent, width));
        }
        for (heading, cell) in cells {
            let label = if heading.is_empty() { String::new() } else { format!("{heading}:") };
            out.push_str(&hanging(&label, cell, indent + 2, width));
        }
    }
    out
}

fn new_table(indent: usize, width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(available_width(indent, width)).unwrap_or(u16::MAX));
    table
}

fn available_width(indent: usize, width: usize) -> usize {
    width.saturating_sub(indent).max(MIN_WIDTH)
}

/// The text, with lines broken where it has huge words.
fn split_huge_words(text: &str, width: usize) -> Cow<'_, str> {
    let is_huge = |word: &str| word.len() > MAX_WORD_BYTES;
    match text.split(char::is_whitespace).any(is_huge) {
        true => Cow::Owned(wrap("", "", text, 0, width)),
        false => Cow::Borrowed(text),
    }
}

fn indented_lines<L: AsRef<str>>(lines: impl IntoIterator<Item = L>, indent: usize) -> String {
    let mut out = String::new();
    for line in lines {
        out.push_str(&" ".repeat(indent));
        out.push_str(line.as_ref().trim_end());
        out.push('\n');
    }
    out
}

/// Puts every line that is not empty after some spaces.
pub fn indented(text: &str, indent: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Shortens a text to at most this number of characters, with an ellipsis.
pub fn truncate(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some(_) => {
            let start: String = text.chars().take(characters.saturating_sub(1)).collect();
            format!("{}…", start.trim_end())
        }
    }
}

enum Block {
    Gap,
    Item { mark: String, text: String },
    Paragraph(String),
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for line in sanitize(text).trim().lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match (words.split_once(' ').filter(|(mark, _)| is_item(mark)), blocks.last_mut()) {
            _ if words.is_empty() => {
                if !matches!(blocks.last(), Some(Block::Gap)) {
                    blocks.push(Block::Gap);
                }
            }
            (Some((mark, text)), _) => {
                blocks.push(Block::Item { mark: mark.to_owned(), text: text.to_owned() })
            }
            (None, Some(Block::Item { text, .. } | Block::Paragraph(text))) => {
                text.push(' ');
                text.push_str(&words);
            }
            (None, _) => blocks.push(Block::Paragraph(words)),
        }
    }
    blocks
}

/// Whether a word begins a list item: `-`, `*`, `+`, `•`, `3.` or `3)`.
fn is_item(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "+" | "•")
        || (!number.is_empty() && number.len() < 4 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The meaning of a piece of text. The words state it as well, so that nothing depends on colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Running text.
    #[default]
    Plain,
    /// SHIP, or no obstacle to it.
    Good,
    /// REVISE.
    Fair,
    /// HOLD, or a block.
    Bad,
    /// INCOMPLETE, or a missing answer.
    Absent,
    /// A name, or an outcome's word.
    Strong,
    /// Secondary text.
    Faint,
    /// A path, an id or a command, verbatim.
    Code,
}

/// Unassigned characters that renderers ignore: without width, and absent from real text.
const END: char = '\u{E0002}';
const BEGIN: [(char, Tone); 6] = [
    ('\u{E0010}', Tone::Good),
    ('\u{E0011}', Tone::Fair),
    ('\u{E0012}', Tone::Bad),
    ('\u{E0013}', Tone::Absent),
    ('\u{E0014}', Tone::Strong),
    ('\u{E0015}', Tone::Faint),
];

impl Tone {
    fn of_verdict(verdict: Verdict) -> Tone {
        match verdict {
            Verdict::Ship => Tone::Good,
            Verdict::Revise => Tone::Fair,
            Verdict::Hold => Tone::Bad,
            Verdict::Incomplete => Tone::Absent,
        }
    }

    /// The tone of a word such as `SHIP`, `fail` or `refused`, in any case.
    pub fn of_word(word: &str) -> Tone {
        match &*word.to_ascii_lowercase() {
            "pass" | "done" => Tone::Good,
            "fail" | "refused" => Tone::Bad,
            _ => Verdict::read(word).map_or(Tone::Absent, Tone::of_verdict),
        }
    }

    /// Marks each line of the text.
    pub fn on(self, text: &str) -> String {
        let Some((begin, _)) = BEGIN.iter().find(|(_, tone)| *tone == self) else { return text.to_owned() };
        text.split('\n').map(|line| format!("{begin}{line}{END}")).collect::<Vec<_>>().join("\n")
    }

    fn style(self) -> Style {
        let bold = Style::new().bold();
        match self {
            Tone::Good => bold.fg_color(Some(AnsiColor::Green.into())),
            Tone::Fair => bold.fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Bad => bold.fg_color(Some(AnsiColor::Red.into())),
            Tone::Absent => bold.fg_color(Some(AnsiColor::Magenta.into())),
            Tone::Strong => bold,
            Tone::Faint => Style::new().dimmed(),
            Tone::Plain | Tone::Code => Style::new(),
        }
    }

    /// The class of its element in HTML.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Plain | Tone::Code => "",
            Tone::Good => "good",
            Tone::Fair => "fair",
            Tone::Bad => "bad",
            Tone::Absent => "none",
            Tone::Strong => "strong",
            Tone::Faint => "faint",
        }
    }
}

/// Turns marks into colours by `options`, and trims line ends. The text ends with one line break.
pub fn finish(text: &str, options: TextOptions) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.trim_end().split('\n') {
        colour(line.trim_end(), options.colour, &mut out);
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// A mark without its end on the same line paints nothing, since it would also paint adjacent text.
fn colour(line: &str, colour: Colour, out: &mut String) {
    let mut rest = line;
    while let Some((at, mark)) = rest.char_indices().find(|(_, c)| is_mark(*c)) {
        out.push_str(&rest[..at]);
        rest = &rest[at + mark.len_utf8()..];
        let tone = BEGIN.iter().find(|(begin, _)| *begin == mark).map(|(_, tone)| *tone);
        let inner = rest.find(END).map(|end| &rest[..end]).filter(|inner| !inner.contains(is_mark));
        if let (Colour::On, Some(tone), Some(inner)) = (colour, tone, inner) {
            let style = tone.style();
            out.push_str(&format!("{style}{inner}{style:#}"));
            rest = &rest[inner.len()..];
        }
    }
    out.push_str(rest);
}

fn is_mark(c: char) -> bool {
    c == END || BEGIN.iter().any(|(begin, _)| *begin == c)
}

/// A text without its colours.
#[cfg(test)]
pub(super) fn strip(coloured: &str) -> String {
    let mut pieces = coloured.split('\u{1b}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    plain.extend(pieces.filter_map(|piece| Some(piece.split_once('m')?.1)));
    plain
}

/// Makes every character of foreign text visible, and removes marks. Line breaks stay, tabs become spaces.
pub fn sanitize(text: &str) -> String {
    escape_invisible(text).replace('\r', "").replace('\t', " ")
}

/// Foreign text on one line, runs of white space as one space.
pub fn one_line(text: &str) -> String {
    sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_lists_are_wrapped() {
        let text = "One sentence that\nwas broken early, and goes on for a while.\n\n\n1. the first item is long enough to hang\n2. two\n";
        let expected = "  One sentence that was broken\n  early, and goes on for a while.\n\n  1. the first item is long enough\n     to hang\n  2. two\n";
        assert_eq!(prose(text, 2, 34), expected);
        assert_eq!(prose(" ", 2, 34), "\n");
    }

    #[test]
    fn a_command_stays_on_one_line_if_it_fits() {
        let text = "Next: edit the text. `quorate show r7k2 --full` shows all.";
        assert_eq!(wrap_marked(text, 0, 40), "Next: edit the text.\n`quorate show r7k2 --full` shows all.\n");
        assert!(
            wrap_marked(text, 0, 24).contains("`quorate show r7k2\n--full`"),
            "{}",
            wrap_marked(text, 0, 24)
        );
    }

    #[test]
    fn huge_words_are_wrapped_in_one_pass() {
        let word = "A".repeat(3_000_000);
        let wrapped = prose(&format!("so {word} it is"), 2, 82);
        assert!(wrapped.starts_with("  so\n  AAAA") && wrapped.ends_with("A\n  it is\n"));
        assert!(wrapped.lines().all(|line| line.len() <= 82));
        assert!(wrapped.replace("\n  ", "") == format!("  so{word}it is\n"));
        assert_eq!(hanging("-", &word, 0, 82).lines().count(), word.len().div_ceil(80));
        assert!(hanging("-", &"日".repeat(4_000), 0, 82).lines().all(|line| columns_of(line) <= 82));
        let rows = vec![vec!["a".to_owned(), word]];
        assert!(table(&["NAME", "TEXT"], rows, 0, 80).lines().all(|line| columns_of(line) <= 80));
    }

    #[test]
    fn a_truncated_text_ends_with_an_ellipsis() {
        assert_eq!([truncate("abc", 3), truncate("abcd", 3), truncate("a bcd", 3)], ["abc", "ab…", "a…"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(
            prose("日本語 日本語 日本語 日本語 日本語", 0, 24),
            "日本語 日本語 日本語\n日本語 日本語\n"
        );
    }

    #[test]
    fn a_place_is_underlined_in_its_line() {
        let shown = |text: &str, part: &str| {
            let start = text.find(part).expect("a part of the text");
            let lines = underlined(text, start..start + part.len(), 3, Tone::Plain, 0, 40).expect("a place");
            assert!(lines.lines().all(|line| columns_of(line) <= 40), "{lines}");
            lines
        };
        assert_eq!(shown("Über 90% grew.\r\nx", "90%"), "  3 │ Über 90% grew.\n    │      ^^^\n");
        assert_eq!(shown("日本 90%\n", "90%"), "  3 │ 日本 90%\n    │      ^^^\n");
        assert_eq!(shown("a b\nc d\n", "b\nc"), "  3 │ a b\n    │   ^\n");
        let long = format!("{} 90% {}", "wörd ".repeat(200_000), "more ".repeat(200_000));
        let cut = shown(&long, "90%");
        assert!(cut.contains("…") && cut.contains("90% more"), "{cut}");
        let at = |what: &str, line: &str| line.find(what).map(|at| line[..at].chars().count());
        let (text, marks) = cut.split_once('\n').expect("two lines");
        assert_eq!(at("90%", text), at("^^^", marks), "{cut}");
    }

    #[test]
    fn odd_places_are_not_underlined() {
        for text in ["", "\n", "ä", "a\r\n", "\r\n\r\n", "\t日本\u{1b}[31m"] {
            for start in 0..=text.len() + 1 {
                for end in 0..=text.len() + 1 {
                    let lines = underlined(text, start..end, 1, Tone::Bad, 2, 24);
                    assert!(lines.is_none_or(|lines| lines.lines().count() == 2), "{text:?} {start} {end}");
                }
            }
        }
    }

    #[test]
    fn marks_take_no_column() {
        let text =
            format!("{} {} {}", Tone::Bad.on("aaaaaaaaaaa"), Tone::Bad.on("bbbbbbb"), Tone::Bad.on("cccc"));
        assert_eq!(wrap("", "", &text, 0, 24), format!("{text}\n"));
    }
}

#[cfg(test)]
mod paint_tests {
    use super::*;

    const COLOURED: TextOptions = TextOptions { colour: Colour::On, width: 80 };

    #[test]
    fn marks_become_colours_or_nothing() {
        let text = format!("a {} b  ", Tone::Bad.on("HOLD"));
        assert_eq!(finish(&text, TextOptions::default()), "a HOLD b\n");
        assert_eq!(finish(&text, COLOURED), "a \u{1b}[1m\u{1b}[31mHOLD\u{1b}[0m b\n");
        assert_eq!(finish("", COLOURED), "\n");
    }

    #[test]
    fn a_mark_that_is_cut_in_two_paints_nothing() {
        let text = Tone::Good.on("one two").replace(' ', "  | column\n");
        assert_eq!(finish(&text, COLOURED), "one  | column\ntwo\n");
    }

    #[test]
    fn foreign_text_cannot_paint_or_hide() {
        let hostile = "a\u{E0012}b\u{E0002}\r\n\u{1b}[31m\tc\u{202e}d";
        assert_eq!(sanitize(hostile), "a[U+E0012]b[U+E0002]\n[U+001B][31m c[U+202E]d");
        assert_eq!(one_line(" a \n\n b\t c "), "a b c");
    }
}
