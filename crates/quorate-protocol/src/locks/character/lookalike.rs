//! What characters look like: the confusables of UTS 39, and the few that it leaves out.

use unicode_security::confusable_detection::skeleton;

use super::{case, is_mark};

/// What a folded text looks like, in small letters: prototypes of prototypes, until nothing more changes. Marks and
/// signs that a prototype brings along are left out, unless nothing else is left.
pub(in crate::locks) fn look(text: &str) -> String {
    let mut now = text.to_owned();
    for _ in 0..4 {
        let next = skeleton_once(&now);
        if next == now {
            break;
        }
        now = next;
    }
    now
}

fn skeleton_once(text: &str) -> String {
    let seen = skeleton(text).filter(|c| !is_mark(*c)).map(small_capital).flat_map(case);
    let letters: String = seen.filter(|c| c.is_alphanumeric()).collect();
    if letters.is_empty() { text.to_owned() } else { letters }
}

/// What a character looks like as it stands, where that is anything else.
pub(super) fn look_as_is(c: char) -> Option<String> {
    let seen: String = skeleton(c.encode_utf8(&mut [0; 4])).filter(|c| !is_mark(*c)).collect();
    (!seen.is_empty() && !seen.chars().eq([c]) && seen.chars().any(char::is_alphanumeric)).then_some(seen)
}

/// Whether it looks like a letter, without being one: `∣`, `˛`, `∞`.
pub(super) fn is_letter(c: char) -> bool {
    look_as_is(c).is_some_and(|seen| seen.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// What a sign is compared as: its look, where that is one ASCII character.
pub(super) fn sign(c: char) -> char {
    let mut room = [0; 4];
    let mut seen = skeleton(c.encode_utf8(&mut room));
    match (seen.next(), seen.next()) {
        (Some(only), None) if only.is_ascii_punctuation() => only,
        _ => c,
    }
}

/// With `i`, `l`, `1` and `|` as one and `o` and `0` as one: which of them it was is looked at afterwards.
pub(super) fn coarse(text: &str) -> String {
    let one = |c| match c {
        'l' | '1' | '|' => 'i',
        '0' => 'o',
        c => c,
    };
    text.chars().map(one).collect()
}

/// Small capitals and Greek letters that UTS 39 gives prototypes of their own.
fn small_capital(c: char) -> char {
    match c {
        'ᴀ' => 'a',
        'ʙ' | 'ß' => 'b',
        'ᴅ' => 'd',
        'ᴇ' | 'ɛ' => 'e',
        'ꜰ' => 'f',
        'ɢ' => 'g',
        'ʜ' => 'h',
        'ᴊ' => 'j',
        'ĸ' => 'k',
        'ʟ' => 'l',
        'ʍ' | 'ᴍ' => 'm',
        'ɴ' => 'n',
        'ᴘ' => 'p',
        'ǫ' => 'q',
        'ʀ' => 'r',
        'ᴛ' => 't',
        'μ' => 'u',
        'ω' => 'w',
        'χ' => 'x',
        c => c,
    }
}
