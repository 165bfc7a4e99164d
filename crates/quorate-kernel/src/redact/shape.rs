//! Shapes of tokens: the anchor, and which bytes surround it. A check reads a bounded number of bytes before it decides, so
//! a text full of anchors costs time in proportion to its length.

use std::ops::Range;

use super::plausibility;

/// A set of bytes.
pub(super) type ByteSet = fn(u8) -> bool;

/// The bytes of a token after or before its anchor.
#[derive(Clone, Copy)]
pub(super) enum Segment {
    Literal(&'static str),
    /// A minimum and maximum count of bytes of a set, matched greedily.
    Run(ByteSet, usize, usize),
}

/// The text after an anchor.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// This number of bytes of a set.
    One(ByteSet, usize),
    /// One piece after the other.
    Pieces(&'static [Segment]),
}

/// What may follow a token.
#[derive(Clone, Copy)]
pub(super) enum Boundary {
    /// Bytes of this set belong to the token.
    ExtendsWith(ByteSet),
    /// With a byte of this set behind it, it is no token.
    EndsBefore(ByteSet),
}

/// A token as its issuer writes it.
pub(super) struct Shape {
    pub(super) anchor: &'static str,
    /// The bytes of the token before the anchor: their set, the least and the most.
    pub(super) before: Option<(ByteSet, usize, usize)>,
    pub(super) body: Body,
    pub(super) end: Boundary,
}

impl Shape {
    /// The token whose anchor is at a place.
    pub(super) fn find(&self, text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
        // The automaton ignores case, and issuers do not.
        if text[anchor.clone()] != *self.anchor {
            return None;
        }
        let bytes = text.as_bytes();
        let start = match self.before {
            None => anchor.start,
            Some((set, least, most)) => {
                let before = bytes[..anchor.start].iter().rev().take(most);
                let length = before.take_while(|byte| set(**byte)).count();
                (length >= least).then(|| anchor.start - length)?
            }
        };
        let least = self.body.end(bytes, anchor.end)?;
        if !(begins(text, start)
            || self.is_distinctive() && plausibility::is_generated(&text[anchor.end..least]))
        {
            return None;
        }
        // Only a token is read to its end.
        if !plausibility::is_random(&[&text[start..anchor.start], &text[anchor.end..least]]) {
            return None;
        }
        let end = match self.end {
            Boundary::ExtendsWith(set) => least + run(&bytes[least..], set),
            Boundary::EndsBefore(set) => {
                (!bytes.get(least).is_some_and(|byte| set(*byte))).then_some(least)?
            }
        };
        Some(start..end)
    }

    /// Whether the anchor is in no other word, so that a token begins with it behind any text.
    fn is_distinctive(&self) -> bool {
        let (length, sign) = (self.anchor.len(), |sign: u8| self.anchor.as_bytes().contains(&sign));
        self.before.is_none() && (length >= 4 && sign(b'_') || length >= 5 && sign(b'-'))
    }
}

impl Body {
    /// Where the body ends that starts here.
    fn end(self, bytes: &[u8], start: usize) -> Option<usize> {
        match self {
            Body::One(set, count) => piece(Segment::Run(set, count, count), bytes, start),
            Body::Pieces(all) => all.iter().try_fold(start, |at, one| piece(*one, bytes, at)),
        }
    }
}

fn piece(piece: Segment, bytes: &[u8], at: usize) -> Option<usize> {
    match piece {
        Segment::Literal(text) => bytes[at..].starts_with(text.as_bytes()).then(|| at + text.len()),
        Segment::Run(set, least, most) => {
            let length = bytes[at..].iter().take(most).take_while(|byte| set(**byte)).count();
            (length >= least).then(|| at + length)
        }
    }
}

/// Whether a token can begin here: after nothing that it could be the rest of. What is written by an escape, as in
/// `\n` or `%3D`, ends where the escape does. Telegram has `/bot` before its tokens.
fn begins(text: &str, at: usize) -> bool {
    match &text.as_bytes()[..at] {
        [.., b'\\', b'n' | b'r' | b't'] | [.., b'b', b'o', b't'] | [] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => true,
        [.., last] => !(last.is_ascii_alphanumeric() || *last == b'+'),
    }
}

/// How many of the first bytes are of a set.
pub(super) fn run(bytes: &[u8], of: ByteSet) -> usize {
    bytes.iter().take_while(|byte| of(**byte)).count()
}

pub(super) fn hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

pub(super) fn any_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

pub(super) fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

pub(super) fn capital(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'A'..=b'Z')
}

pub(super) fn small(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'z')
}

pub(super) fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

pub(super) fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

pub(super) fn tilde(byte: u8) -> bool {
    dotted(byte) || byte == b'~'
}

pub(super) fn path(byte: u8) -> bool {
    dashed(byte) || matches!(byte, b'/' | b'+')
}

pub(super) fn base64(byte: u8) -> bool {
    path(byte) || byte == b'='
}

pub(super) fn url(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'.' | b'~' | b'%')
}
