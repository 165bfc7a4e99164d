//! Invisible characters: a reader misses them, a model reads them, and a matcher may fail on them. They are tags,
//! zero-width characters, soft hyphens, variation selectors, fillers, controls, bidirectional controls, and line and
//! paragraph separators.
//!
//! Some scripts need some of them. These uses are expected: a variation selector after an emoji or an ideograph, a joiner
//! between two emoji or after a letter of a joining script, the tags of the flags of England, Scotland and Wales, and the
//! Braille blank beside Braille. Every other use is reported.

use std::borrow::Cow;

/// The flags of England, Scotland and Wales, which are encoded with tag characters.
const FLAGS: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Whether a character has no visible form by itself. Line breaks and tabs count as visible space.
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t');
    }
    is_ignorable(c)
        || matches!(
            c,
            '\u{80}'..='\u{9f}'
                | '\u{2028}'..='\u{2029}'
                | '\u{2800}'
                | '\u{fdd0}'..='\u{fdef}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{1d159}'
        )
}

/// Whether a character has the property Default_Ignorable_Code_Point, which includes the bidirectional controls.
pub fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The invisible characters of a text that are not expected there, with their byte offsets.
pub fn find_invisible(text: &str) -> impl Iterator<Item = (usize, char)> {
    // The end of the flag that contains the current character.
    let mut flag = 0;
    text.char_indices().filter(move |(at, c)| {
        if *c == '\u{1f3f4}' {
            let length =
                FLAGS.iter().find(|flag| text[*at..].starts_with(**flag)).map_or(0, |flag| flag.len());
            flag = flag.max(at + length);
        }
        *at >= flag && is_invisible(*c) && !is_expected(&text[..*at], *c, &text[at + c.len_utf8()..])
    })
}

/// The first unexpected invisible character, for messages: `U+200B at line 1, character 12`.
pub fn first_invisible(text: &str) -> Option<String> {
    let (at, c) = find_invisible(text).next()?;
    let line = text[..at].matches('\n').count() + 1;
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let character = text[start..at].chars().count() + 1;
    Some(format!("{} at line {line}, character {character}", code_point(c)))
}

/// A character's code point: `U+200B`.
pub fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// The text with each unexpected invisible character written as `[U+200B]`.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    escape_invisible_except(text, |_| false)
}

/// Like [`escape_invisible`], but leaves the characters that `keep` accepts.
pub fn escape_invisible_except(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    escape_with(text, keep, |shown, c| shown.push_str(&format!("[{}]", code_point(c))))
}

/// The same JSON values, with each unexpected invisible character as a `\u` escape.
pub fn escape_invisible_json(json: &str) -> Cow<'_, str> {
    escape_with(
        json,
        |_| false,
        |shown, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        },
    )
}

fn escape_with(text: &str, keep: impl Fn(char) -> bool, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let (mut shown, mut from) = (String::new(), 0);
    for (at, c) in find_invisible(text).filter(|(_, c)| !keep(*c)) {
        shown.push_str(&text[from..at]);
        write(&mut shown, c);
        from = at + c.len_utf8();
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(&text[from..]);
    Cow::Owned(shown)
}

/// Whether the surrounding text needs this invisible character.
fn is_expected(before: &str, c: char, after: &str) -> bool {
    let Some(base) = before.chars().next_back() else { return false };
    let next = after.chars().next();
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            is_emoji(base) || (matches!(base, '0'..='9' | '#' | '*') && next == Some('\u{20e3}'))
        }
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => is_ideograph(base),
        '\u{180b}'..='\u{180f}' => matches!(base, '\u{1820}'..='\u{18aa}'),
        '\u{200d}' if next.is_some_and(is_emoji) => {
            let is_modifier = |c: &char| *c == '\u{fe0f}' || matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
            before.chars().rev().take(3).find(|c| !is_modifier(c)).is_some_and(is_emoji)
        }
        '\u{200c}' | '\u{200d}' => {
            is_joining_script(base) && (is_virama(base) || next.is_some_and(is_joining_script))
        }
        '\u{2800}' => is_braille(base) || next.is_some_and(is_braille),
        _ => false,
    }
}

/// Whether a character is an emoji, by itself or with a variation selector.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}'
            | '\u{ae}'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2122}'
            | '\u{2139}'
            | '\u{2194}'..='\u{21aa}'
            | '\u{231a}'..='\u{23ff}'
            | '\u{24c2}'
            | '\u{25aa}'..='\u{25fe}'
            | '\u{2600}'..='\u{27bf}'
            | '\u{2934}'..='\u{2935}'
            | '\u{2b05}'..='\u{2b55}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}')
}

fn is_braille(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28ff}')
}

/// Whether a character belongs to a script that uses joiners and non-joiners: Arabic and related scripts, Mongolian, and
/// the scripts of South and Southeast Asia.
fn is_joining_script(c: char) -> bool {
    matches!(
        c,
        '\u{620}'..='\u{6ff}'
            | '\u{700}'..='\u{8ff}'
            | '\u{900}'..='\u{dff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17b3}'
            | '\u{17b6}'..='\u{17ff}'
            | '\u{1820}'..='\u{18aa}'
            | '\u{fb50}'..='\u{fdcf}'
            | '\u{fe70}'..='\u{fefc}'
    )
}

/// Whether a character is a virama: it removes the vowel of an Indic letter. A joiner after it selects the half form, also
/// at the end of a word.
fn is_virama(c: char) -> bool {
    let code = u32::from(c);
    (0x900..0xd80).contains(&code) && matches!(code & 0x7f, 0x4d) || c == '\u{dca}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexpected_characters_are_escaped() {
        for (text, expected) in [
            ("plain\ttext\r\n", "plain\ttext\r\n"),
            ("a\u{e0041}\u{e007f}b", "a[U+E0041][U+E007F]b"),
            (
                "a\u{200b}b\u{200c}c\u{200d}d\u{2060}e\u{feff}",
                "a[U+200B]b[U+200C]c[U+200D]d[U+2060]e[U+FEFF]",
            ),
            ("so\u{ad}ft", "so[U+00AD]ft"),
            ("a\u{fe0f}b\u{fe00}c\u{e0100}", "a[U+FE0F]b[U+FE00]c[U+E0100]"),
            ("\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}", "[U+115F][U+1160][U+3164][U+FFA0][U+2800]"),
            ("a\u{85}b\u{2028}c\u{2029}d\u{202e}e\u{7}", "a[U+0085]b[U+2028]c[U+2029]d[U+202E]e[U+0007]"),
            (
                "\u{180e}\u{34f}\u{61c}\u{2063}\u{fff9}\u{1d173}",
                "[U+180E][U+034F][U+061C][U+2063][U+FFF9][U+1D173]",
            ),
            ("\u{1f600}\u{e0101}\u{e0102}", "\u{1f600}[U+E0101][U+E0102]"),
            ("\u{2764}\u{fe0f}\u{fe0f}", "\u{2764}\u{fe0f}[U+FE0F]"),
            ("\u{1f3f4}\u{e0068}\u{e0069}\u{e007f}", "\u{1f3f4}[U+E0068][U+E0069][U+E007F]"),
            ("\u{1f469}\u{200d} a", "\u{1f469}[U+200D] a"),
            ("\u{645}\u{200c}\u{200c}\u{62e}", "\u{645}[U+200C][U+200C]\u{62e}"),
        ] {
            assert_eq!(escape_invisible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn characters_that_a_script_needs_are_expected() {
        for text in [
            "\u{2764}\u{fe0f} and 1\u{fe0f}\u{20e3}",
            "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb}",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{1f3f3}\u{fe0f}\u{200d}\u{1f308}",
            "\u{1f937}\u{1f3fb}\u{200d}\u{2640}\u{fe0f}",
            FLAGS[1],
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}, \u{d28}\u{d4d}\u{200d}.",
            "\u{845b}\u{e0100}\u{57ce}",
            "\u{2813}\u{2800}\u{283a}",
            "e\u{301} \u{a0}\u{3000}\u{2003}",
        ] {
            assert_eq!(find_invisible(text).collect::<Vec<_>>(), [], "{text:?}");
        }
    }

    #[test]
    fn the_first_one_is_located_and_json_stays_equal() {
        assert_eq!(first_invisible("ab\nc\u{200b}d").as_deref(), Some("U+200B at line 2, character 2"));
        assert_eq!(first_invisible("abc"), None);
        let json = serde_json::json!({"a\u{200b}": "x\u{e0041}\u{85}y"});
        let shown = escape_invisible_json(&json.to_string()).into_owned();
        assert_eq!(shown, r#"{"a\u200b":"x\udb40\udc41\u0085y"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).expect("JSON"), json);
    }

    // Each decision looks at a bounded number of neighbours.
    #[test]
    fn long_runs_take_linear_time() {
        for piece in ["\u{200d}", "\u{1f469}\u{200d}", "\u{1f3f4}\u{e0067}", "\u{1f3fb}\u{fe0f}"] {
            let text = piece.repeat(50_000);
            let _ = escape_invisible(&text);
        }
    }
}
