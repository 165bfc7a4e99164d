//! HTML character references: `&eacute;`, `&#119;`, `&#x77`, and references to the ampersand of another: `&amp;#119;`.

use std::collections::HashMap;
use std::sync::LazyLock;

use entities::{Codepoints, ENTITIES};

/// The characters that a reference stands for; the second exists for few of them.
pub(super) type Characters = (char, Option<char>);

/// How often a reference may be wrapped in another.
const MAX_NESTING: usize = 32;

/// The longest name, without `&` and `;`.
const MAX_NAME_BYTES: usize = 31;

/// The names, with their semicolon if they need one.
static NAMES: LazyLock<HashMap<&'static str, Characters>> = LazyLock::new(|| {
    let c = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    let named = |entity: &'static entities::Entity| {
        let characters = match entity.codepoints {
            Codepoints::Single(only) => (c(only), None),
            Codepoints::Double(first, second) => (c(first), Some(c(second))),
        };
        (&entity.entity[1..], characters)
    };
    ENTITIES.iter().map(named).collect()
});

/// The characters of the reference that a text begins with, and its length in bytes.
pub(super) fn reference(text: &str) -> Option<(Characters, usize)> {
    let (mut characters, mut len) = single(text.strip_prefix('&')?).map(|(c, len)| (c, len + 1))?;
    for _ in 0..MAX_NESTING {
        match single(&text[len..]) {
            Some((inner, more)) if characters == ('&', None) => (characters, len) = (inner, len + more),
            _ => break,
        }
    }
    Some((characters, len))
}

/// The reference whose ampersand is before the text.
fn single(text: &str) -> Option<(Characters, usize)> {
    if let Some(number) = text.strip_prefix('#') {
        let (radix, prefix) = if number.starts_with(['x', 'X']) { (16, 1) } else { (10, 0) };
        let digits = number[prefix..].find(|c: char| !c.is_digit(radix)).unwrap_or(number.len() - prefix);
        let end = prefix + digits;
        let code = number[prefix..end].trim_start_matches('0');
        let c = u32::from_str_radix(code, radix).ok().and_then(char::from_u32);
        let len = 1 + end + usize::from(number[end..].starts_with(';'));
        return (digits > 0).then_some(((c.unwrap_or(char::REPLACEMENT_CHARACTER), None), len));
    }
    let letters = text.bytes().take(MAX_NAME_BYTES).take_while(u8::is_ascii_alphanumeric).count();
    let longest = letters + usize::from(text[letters..].starts_with(';'));
    // Some old names need no semicolon, so that text may follow.
    (2..=longest).rev().find_map(|len| Some((*NAMES.get(&text[..len])?, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_browsers_read_them() {
        let rows = [
            ("&#119;armth", "w", 6),
            ("&#x77;armth", "w", 6),
            ("&#0000119 armth", "w", 9),
            ("&amp;#119;", "w", 10),
            ("&amp;amp;#119;", "w", 14),
            ("&#38;#38#119;", "w", 13),
            ("&eacute;", "é", 8),
            ("&eacutem", "é", 7),
            ("&wscr;", "𝓌", 6),
            ("&NotEqualTilde;", "≂\u{338}", 15),
            ("&#x110000;", "\u{fffd}", 10),
            ("&ampx", "&", 4),
        ];
        for (text, characters, len) in rows {
            let ((first, second), found) = reference(text).unwrap_or_else(|| panic!("{text} is a reference"));
            let read: String = [Some(first), second].into_iter().flatten().collect();
            assert_eq!((read.as_str(), found), (characters, len), "{text}");
        }
    }

    #[test]
    fn an_ampersand_may_be_just_that() {
        for text in ["&", "& co", "&D", "&#", "&#x", "&#;", "&;", "&wscr", "&zzzz;", "&é"] {
            assert_eq!(reference(text), None, "{text}");
        }
    }
}
