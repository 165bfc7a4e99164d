//! A text as it looks: without invisible characters, and with the plain form of blanks and of wide signs and letters, so
//! that none of these hides a secret.

use std::ops::Range;

use quorate_diagnostics::invisible::is_invisible;

pub(super) struct Folded {
    pub(super) text: String,
    /// Where the two texts shift against each other: places in the folded text, and in the source.
    shifts: Vec<(usize, usize)>,
}

/// `None` where the text is as it looks.
pub(super) fn fold(text: &str) -> Option<Folded> {
    if text.is_ascii() && !text.chars().any(is_invisible) {
        return None;
    }
    let mut folded = Folded { text: String::new(), shifts: vec![(0, 0)] };
    let mut kept = 0;
    for (at, c) in text.char_indices() {
        let plain = match c {
            c if is_invisible(c) => None,
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
            _ => continue,
        };
        folded.text.push_str(&text[kept..at]);
        folded.shifts.push((folded.text.len(), at));
        folded.text.extend(plain);
        kept = at + c.len_utf8();
        folded.shifts.push((folded.text.len(), kept));
    }
    folded.text.push_str(&text[kept..]);
    (kept > 0).then_some(folded)
}

impl Folded {
    /// A place of the folded text in the source.
    pub(super) fn source(&self, span: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let (folded, source) = self.shifts[self.shifts.partition_point(|(folded, _)| *folded <= at) - 1];
            source + at - folded
        };
        place(span.start)..place(span.end)
    }
}
