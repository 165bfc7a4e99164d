//! Colours that do not affect the layout: text is marked with zero-width characters, laid out, and then [`finish`] turns
//! the marks into colours or drops them. Foreign text is [`sanitize`]d first.

use anstyle::{AnsiColor, Style};
use quorate_diagnostics::invisible::escape_invisible;
use quorate_diagnostics::render::{Colour, TextOptions};
use quorate_protocol::policy::Verdict;

/// The meaning of a colour, which the text also states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// SHIP, or no obstacle to it.
    Good,
    /// REVISE.
    Fair,
    /// HOLD, or a block.
    Bad,
    /// INCOMPLETE, or a missing answer.
    Absent,
    /// A heading or a name.
    Strong,
    /// Secondary text.
    Faint,
}

/// Unassigned characters that renderers ignore: without width, and absent from real text.
const END: char = '\u{E0002}';
const BEGIN: [(char, Paint); 6] = [
    ('\u{E0010}', Paint::Good),
    ('\u{E0011}', Paint::Fair),
    ('\u{E0012}', Paint::Bad),
    ('\u{E0013}', Paint::Absent),
    ('\u{E0014}', Paint::Strong),
    ('\u{E0015}', Paint::Faint),
];

impl Paint {
    pub(super) fn of_verdict(verdict: Verdict) -> Paint {
        match verdict {
            Verdict::Ship => Paint::Good,
            Verdict::Revise => Paint::Fair,
            Verdict::Hold => Paint::Bad,
            Verdict::Incomplete => Paint::Absent,
        }
    }

    /// The paint of a verdict's word, in any case, of a council or an assembly.
    pub(super) fn of_word(word: &str) -> Paint {
        match &*word.to_ascii_lowercase() {
            "pass" | "done" => Paint::Good,
            "fail" | "refused" => Paint::Bad,
            _ => Verdict::read(word).map_or(Paint::Absent, Paint::of_verdict),
        }
    }

    /// Marks each line of the text.
    pub(super) fn on(self, text: &str) -> String {
        let begin = BEGIN.iter().find(|(_, paint)| *paint == self).map_or(END, |(mark, _)| *mark);
        text.split('\n').map(|line| format!("{begin}{line}{END}")).collect::<Vec<_>>().join("\n")
    }

    fn style(self) -> Style {
        let bold = Style::new().bold();
        match self {
            Paint::Good => bold.fg_color(Some(AnsiColor::Green.into())),
            Paint::Fair => bold.fg_color(Some(AnsiColor::Yellow.into())),
            Paint::Bad => bold.fg_color(Some(AnsiColor::Red.into())),
            Paint::Absent => bold.fg_color(Some(AnsiColor::Magenta.into())),
            Paint::Strong => bold,
            Paint::Faint => Style::new().dimmed(),
        }
    }
}

/// Turns marks into colours by `options`, and trims line ends. The text ends with one line break.
pub(super) fn finish(text: &str, options: TextOptions) -> String {
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
        let paint = BEGIN.iter().find(|(begin, _)| *begin == mark).map(|(_, paint)| *paint);
        let inner = rest.find(END).map(|end| &rest[..end]).filter(|inner| !inner.contains(is_mark));
        if let (Colour::On, Some(paint), Some(inner)) = (colour, paint, inner) {
            let style = paint.style();
            out.push_str(&format!("{style}{inner}{style:#}"));
            rest = &rest[inner.len()..];
        }
    }
    out.push_str(rest);
}

fn is_mark(c: char) -> bool {
    c == END || BEGIN.iter().any(|(begin, _)| *begin == c)
}

/// Makes every character of foreign text visible, and removes marks. Line breaks stay, tabs become spaces.
pub(super) fn sanitize(text: &str) -> String {
    escape_invisible(text).replace('\r', "").replace('\t', " ")
}

/// Foreign text on one line, runs of white space as one space.
pub(crate) fn one_line(text: &str) -> String {
    sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOURED: TextOptions = TextOptions { colour: Colour::On, width: 80 };

    #[test]
    fn marks_become_colours_or_nothing() {
        let text = format!("a {} b  ", Paint::Bad.on("HOLD"));
        assert_eq!(finish(&text, TextOptions::default()), "a HOLD b\n");
        assert_eq!(finish(&text, COLOURED), "a \u{1b}[1m\u{1b}[31mHOLD\u{1b}[0m b\n");
        assert_eq!(finish("", COLOURED), "\n");
    }

    #[test]
    fn a_mark_that_is_cut_in_two_paints_nothing() {
        let text = Paint::Good.on("one two").replace(' ', "  | column\n");
        assert_eq!(finish(&text, COLOURED), "one  | column\ntwo\n");
    }

    #[test]
    fn foreign_text_cannot_paint_or_hide() {
        let hostile = "a\u{E0012}b\u{E0002}\r\n\u{1b}[31m\tc\u{202e}d";
        assert_eq!(sanitize(hostile), "a[U+E0012]b[U+E0002]\n[U+001B][31m c[U+202E]d");
        assert_eq!(one_line(" a \n\n b\t c "), "a b c");
    }
}
