//! HTML character references, as browsers read them: named and numeric, the old names also without their semicolon, and
//! references to the ampersand of another reference.

use std::sync::OnceLock;

use entities::{Codepoints, ENTITIES};

/// How often a reference may be wrapped in another.
const MAX_NESTING: usize = 32;

/// The longest name there is, without `&` and `;`.
const MAX_NAME_BYTES: usize = 31;

/// The characters that a reference stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    /// The characters; the second is there for few of them.
    pub(super) stands_for: (char, Option<char>),
    /// How many bytes it takes.
    pub(super) len: usize,
}

/// The reference that a text begins with, wrapped ones unwrapped: `&amp;amp;#119;` is `w`.
pub(super) fn reference(text: &str) -> Option<Reference> {
    let mut found = single(text.as_bytes(), 1)?;
    for _ in 0..MAX_NESTING {
        if found.stands_for != ('&', None) {
            break;
        }
        match single(text.as_bytes(), found.len) {
            Some(inner) => found = inner,
            None => break,
        }
    }
    Some(found)
}

/// The reference whose ampersand has been read and whose name begins at `from`.
fn single(bytes: &[u8], from: usize) -> Option<Reference> {
    let (stands_for, len) = match bytes.get(from)? {
        b'#' => numeric(&bytes[from + 1..]).map(|(c, len)| ((c, None), len + 1))?,
        b'a'..=b'z' | b'A'..=b'Z' => named(&bytes[from..])?,
        _ => return None,
    };
    Some(Reference { stands_for, len: from + len })
}

fn numeric(bytes: &[u8]) -> Option<(char, usize)> {
    let (radix, prefix) = if matches!(bytes.first()?, b'x' | b'X') { (16, 1) } else { (10, 0) };
    let digits = bytes[prefix..].iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    if digits == 0 {
        return None;
    }
    let code = bytes[prefix..prefix + digits].iter().fold(0u32, |code, byte| {
        code.saturating_mul(radix).saturating_add(char::from(*byte).to_digit(radix).unwrap_or(0))
    });
    let end = prefix + digits;
    let semicolon = usize::from(bytes.get(end) == Some(&b';'));
    Some((char_of_code(code), end + semicolon))
}

/// A numeric reference's character: Windows-1252 for ISO 8859-1 controls, and the replacement character for invalid ones.
fn char_of_code(code: u32) -> char {
    const WINDOWS: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match code {
        0x80..=0x9f => WINDOWS[code as usize - 0x80],
        0 => char::REPLACEMENT_CHARACTER,
        code => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// The longest name that the bytes begin with; without a semicolon only one of the old ones.
fn named(bytes: &[u8]) -> Option<((char, Option<char>), usize)> {
    let letters = bytes.iter().take(MAX_NAME_BYTES).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let name = &bytes[..letters];
    if bytes.get(letters) == Some(&b';')
        && let Some(stands_for) = look_up(&bytes[..=letters])
    {
        return Some((stands_for, letters + 1));
    }
    (2..=name.len()).rev().find_map(|len| Some((look_up(&name[..len])?, len)))
}

type Named = (&'static [u8], (char, Option<char>));

/// The characters of a name, with its semicolon if it has one.
fn look_up(name: &[u8]) -> Option<(char, Option<char>)> {
    static TABLE: OnceLock<Vec<Named>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let c = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        let one = |entity: &'static entities::Entity| {
            let stands_for = match entity.codepoints {
                Codepoints::Single(only) => (c(only), None),
                Codepoints::Double(first, second) => (c(first), Some(c(second))),
            };
            (&entity.entity.as_bytes()[1..], stands_for)
        };
        let mut table: Vec<Named> = ENTITIES.iter().map(one).collect();
        table.sort_unstable_by_key(|(name, _)| *name);
        table
    });
    table.binary_search_by_key(&name, |(name, _)| *name).ok().map(|at| table[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, stands_for: &str, len: usize) {
        let found = reference(text).unwrap_or_else(|| panic!("{text} is a reference"));
        let replacement: String =
            [Some(found.stands_for.0), found.stands_for.1].into_iter().flatten().collect();
        assert_eq!((replacement.as_str(), found.len), (stands_for, len), "{text}");
    }

    #[test]
    fn references_are_read_as_browsers_read_them() {
        check("&#119;armth", "w", 6);
        check("&#x77;armth", "w", 6);
        check("&#0000119 armth", "w", 9);
        check("&amp;#119;", "w", 10);
        check("&amp;amp;#119;", "w", 14);
        check("&#38;#38#119;", "w", 13);
        check("&eacute;", "é", 8);
        check("&eacutem", "é", 7);
        check("&wscr;", "𝓌", 6);
        check("&NotEqualTilde;", "≂\u{338}", 15);
        check("&#150;", "–", 6);
        check("&#x110000;", "\u{fffd}", 10);
        check("&ampx", "&", 4);
    }

    #[test]
    fn an_ampersand_may_be_just_that() {
        for text in ["&", "& co", "&D", "&#", "&#x", "&#;", "&;", "&wscr", "&zzzz;"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
