//! Single characters: their case, the marks and invisible characters that folding drops, and the letters that they look like.

use quorate_diagnostics::invisible::is_ignorable;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};
use unicode_security::confusable_detection::skeleton;

/// Stands in a skeleton for an upright stroke of another script, which may be read as `i` or as `l`.
pub(super) const STROKE: char = '\u{1}';

/// A character's case folded, through all the forms that it shares a case with: `ß` and `ẞ` are `ss`, `ς` is `σ`.
pub(super) fn case(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Whether it is drawn on or around the preceding character. Marks that turn one kana into another stay: without
/// them が and か would be the same.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii()
        && matches!(c.general_category(), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark)
        && !matches!(c, '\u{3099}' | '\u{309a}')
}

/// Whether it is not seen: controls, format characters, fillers, characters of private use or without a meaning.
pub(super) fn is_invisible(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_control(),
        false => is_ignorable(c) || c.general_category_group() == GeneralCategoryGroup::Other,
    }
}

/// Whether it is blank, as white space and the empty pattern of Braille are.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}'
}

/// Whether it ends a line.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A character without the brackets, circle or square around it, and punctuation as ASCII has it, where Unicode defines
/// no decomposition to that.
pub(super) fn simplified(c: char) -> char {
    const ENCLOSED: [u32; 5] = [0x249c, 0x1f110, 0x1f150, 0x1f170, 0x1f1e6];
    let code = u32::from(c);
    if let Some(first) = ENCLOSED.into_iter().find(|first| (*first..first + 26).contains(&code)) {
        return char::from_u32(u32::from('a') + code - first).unwrap_or(c);
    }
    match c {
        '‘' | '’' | '‛' | 'ʼ' => '\'',
        '“' | '”' | '‟' => '"',
        _ if !c.is_ascii() && c.general_category() == GeneralCategory::DashPunctuation => '-',
        _ => c,
    }
}

/// Adds what a character looks like, in small letters, to a skeleton: an ASCII letter or figure is itself, any other is
/// its prototype in UTS 39, or that of its small or capital form if only that has one in ASCII.
pub(super) fn push_look(c: char, skeleton: &mut String) {
    match c {
        'm' | 'M' => skeleton.push_str("rn"),
        _ if c.is_ascii() => skeleton.push(c.to_ascii_lowercase()),
        _ => {
            let forms = [Some(c), single(c.to_lowercase()), single(c.to_uppercase())];
            let look = forms.into_iter().flatten().find_map(ascii_look);
            match look.as_deref() {
                Some("l") if c.is_alphanumeric() => skeleton.push(STROKE),
                // A pipe separates; it is not a letter.
                Some("l") => skeleton.push('|'),
                Some(look) => look.chars().for_each(|c| push_look(c, skeleton)),
                None => skeleton.extend(case(c)),
            }
        }
    }
}

fn single(mut chars: impl Iterator<Item = char>) -> Option<char> {
    chars.next().filter(|_| chars.next().is_none())
}

/// The ASCII letters and figures that a character looks like.
fn ascii_look(c: char) -> Option<String> {
    // Fonts of small capitals are popular, and UTS 39 knows half of them.
    const SMALL_CAPITALS: &str = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘǫʀꜱᴛᴜᴠᴡ";
    let cased: String = case(c).collect();
    if cased.is_ascii() {
        return Some(cased);
    }
    let mut room = [0; 4];
    let prototype = skeleton(c.encode_utf8(&mut room)).filter(|c| !is_mark(*c));
    let plain = |c: char| match SMALL_CAPITALS.chars().position(|small| small == c) {
        Some(at) => ('a'..='w').nth(at).unwrap_or(c),
        None => c,
    };
    let look: String = prototype.map(plain).collect();
    (!look.is_empty() && look.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_looks_like_the_letter_of_its_prototype() {
        let looks = [
            ('a', "a"),
            ('M', "rn"),
            ('а', "a"),
            ('Н', "h"),
            ('н', "h"),
            ('Ν', "n"),
            ('ν', "v"),
            ('ᴡ', "w"),
            ('ᴛ', "t"),
            ('ß', "ss"),
            ('¢', "c"),
            ('ж', "ж"),
            ('Ӏ', "\u{1}"),
            ('∣', "|"),
            ('!', "!"),
            ('漢', "漢"),
        ];
        for (c, look) in looks {
            let mut skeleton = String::new();
            push_look(c, &mut skeleton);
            assert_eq!(skeleton, look, "{c}");
        }
    }

    #[test]
    fn enclosed_letters_and_punctuation_are_simplified() {
        for (c, plain) in
            [('⒜', 'a'), ('🅦', 'w'), ('🇿', 'z'), ('’', '\''), ('—', '-'), ('x', 'x'), ('•', '•')]
        {
            assert_eq!(simplified(c), plain, "{c}");
        }
    }
}
