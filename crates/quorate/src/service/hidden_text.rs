//! Invisible text of drafts: content credentials, which no prompt contains, and other blocks of invisible characters, which
//! members see and people do not.
//!
//! C2PA marks a text with a manifest of thousands of characters: after U+FEFF each byte is a variation selector. The bytes
//! are `C2PATXT\0`, the version 1, the length of the manifest in four bytes, and the manifest. (C2PA specification 2.3,
//! *Embedding manifests into unstructured text*.) Anything that does not parse as such a wrapper stays in the text.

use std::borrow::Cow;
use std::ops::Range;

use quorate_diagnostics::invisible::find_invisible;
use quorate_diagnostics::text::{LineIndex, Position};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::record::{Gap, HiddenText, RunOpened};

use super::time_text::digit_groups;

const MAGIC: &[u8] = b"C2PATXT\0";
const VERSION: u8 = 1;
/// The bytes of magic, version and length.
const HEADER: usize = 13;
/// So many invisible characters that no script needs are worth a note.
const MIN_INVISIBLE: usize = 200;

/// The text without its content credentials, and what is hidden in it. C2PA allows one wrapper in a text; several stay in
/// it.
pub(crate) fn separate(text: &str) -> (Cow<'_, str>, HiddenText) {
    let found = manifests(text);
    let [block] = &found[..] else {
        let least = if found.is_empty() { MIN_INVISIBLE } else { 1 };
        return (Cow::Borrowed(text), invisible_block(text, least));
    };
    let characters = text[block.clone()].chars().count() as u64;
    let rest = &text[block.end..];
    let visible = format!("{}{rest}", &text[..block.start]);
    let Position { line, column } = LineIndex::new(&visible).position(block.start);
    let gap = Gap { line: line as u64, column: column as u64, characters };
    let hidden = HiddenText {
        credentials: Some(characters),
        visible_sha256: Some(sha256_hex(visible.as_bytes())),
        gap: Some(gap).filter(|_| !rest.is_empty() && !rest.starts_with(['\r', '\n'])),
        ..invisible_block(&visible, MIN_INVISIBLE)
    };
    (Cow::Owned(visible), hidden)
}

/// The column in the draft of a column in the text that members see.
pub(crate) fn column_in_draft(hidden: Option<&HiddenText>, line: u64, column: u64) -> u64 {
    match hidden.and_then(|hidden| hidden.gap.as_ref()) {
        Some(gap) if gap.line == line && gap.column <= column => column.saturating_add(gap.characters),
        _ => column,
    }
}

/// The notes on hidden text for the report of a run.
pub(crate) fn notes(opened: &RunOpened) -> Vec<String> {
    let Some(HiddenText { credentials, invisible, line, .. }) = &opened.hidden else { return Vec::new() };
    let credentials = credentials.map(|count| {
        format!(
            "The draft carries C2PA content credentials ({} invisible characters), which were left out of the prompts. \
             Quorate did not check what they hold.",
            digit_groups(count)
        )
    });
    let invisible = invisible.map(|count| {
        let place = line.map(|line| format!(", most of them from line {line} on")).unwrap_or_default();
        format!(
            "The draft has {} invisible characters that no script needs{place}; members see them.",
            digit_groups(count)
        )
    });
    credentials.into_iter().chain(invisible).collect()
}

/// The wrappers of manifests, each with its U+FEFF.
fn manifests(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('\u{feff}').map(|offset| at + offset) {
        at = start + '\u{feff}'.len_utf8();
        if let Some(length) = wrapper_length(&text[at..]) {
            at += length;
            found.push(start..at);
        }
    }
    found
}

/// The length of the whole wrapper that a text begins with.
fn wrapper_length(text: &str) -> Option<usize> {
    let mut bytes = text.char_indices().map_while(|(at, c)| Some((at + c.len_utf8(), selected_byte(c)?)));
    let header: Vec<u8> = bytes.by_ref().take(HEADER).map(|(_, byte)| byte).collect();
    let (magic, rest) = header.split_at_checked(MAGIC.len())?;
    let (version, length) = rest.split_first()?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    if magic != MAGIC || *version != VERSION {
        return None;
    }
    bytes.nth(length.checked_sub(1)?).map(|(end, _)| end)
}

/// The byte that a variation selector stands for.
fn selected_byte(c: char) -> Option<u8> {
    let code = u32::from(c);
    match c {
        '\u{fe00}'..='\u{fe0f}' => u8::try_from(code - 0xfe00).ok(),
        '\u{e0100}'..='\u{e01ef}' => u8::try_from(code - 0xe0100 + 16).ok(),
        _ => None,
    }
}

/// The number of invisible characters that neither a script nor an emoji needs, if it is at least `least`, and the line
/// where the longest row of them begins.
fn invisible_block(text: &str, least: usize) -> HiddenText {
    let (mut count, mut row, mut start, mut end) = (0, 0, 0, 0);
    let mut longest = (0, 0);
    for (at, c) in find_invisible(text).filter(|(at, c)| !is_needed(text, *at, *c)) {
        count += 1;
        (row, start) = if at == end { (row + 1, start) } else { (1, at) };
        end = at + c.len_utf8();
        if row > longest.0 {
            longest = (row, start);
        }
    }
    if count < least {
        return HiddenText::default();
    }
    let line = text[..longest.1].matches('\n').count() + 1;
    HiddenText { invisible: Some(count as u64), line: Some(line as u64), ..HiddenText::default() }
}

/// Whether texts have many of this character: soft hyphens, blanks between words of scripts that write none, and the
/// marks of direction in a line that is written from right to left.
fn is_needed(text: &str, at: usize, c: char) -> bool {
    let is_right_to_left =
        |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    match c {
        '\u{ad}' => true,
        '\u{200b}' => text[..at].chars().next_back().is_some_and(
            |before| matches!(before, '\u{e00}'..='\u{fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'),
        ),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => {
            let before = text[..at].chars().rev().take_while(|c| *c != '\n');
            let after = text[at..].chars().take_while(|c| *c != '\n');
            before.take(NEAR).chain(after.take(NEAR)).any(is_right_to_left)
        }
        _ => false,
    }
}

/// How many characters around a mark of direction are searched for its script.
const NEAR: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn selectors(bytes: &[u8]) -> String {
        let selector = |byte: &u8| match byte {
            0..=15 => char::from_u32(0xfe00 + u32::from(*byte)),
            _ => char::from_u32(0xe0100 + u32::from(*byte) - 16),
        };
        bytes.iter().filter_map(selector).collect()
    }

    fn wrapper(magic: &[u8], version: u8, length: u32, manifest: usize) -> String {
        let manifest = (0..=255).cycle().take(manifest);
        let bytes: Vec<u8> =
            magic.iter().copied().chain([version]).chain(length.to_be_bytes()).chain(manifest).collect();
        format!("\u{feff}{}", selectors(&bytes))
    }

    fn marked(manifest: u32) -> String {
        wrapper(MAGIC, VERSION, manifest, manifest as usize)
    }

    #[test]
    fn content_credentials_are_separated_from_the_text() {
        let all = (marked(3_000), 3_014);
        for (before, after) in [
            ("# A\n\nText.", ""),
            ("# A\r\n\r\nTe", "xt.\r\n"),
            ("", ""),
            ("\u{feff}# A \u{2764}\u{fe0f}", "\n"),
            ("a\u{feff}", "\u{fe0f}"),
        ] {
            let text = format!("{before}{}{after}", all.0);
            let (visible, hidden) = separate(&text);
            assert_eq!(
                (&*visible, hidden.credentials),
                (&*format!("{before}{after}"), Some(all.1)),
                "{before:?}"
            );
            assert_eq!(hidden.invisible, None, "{before:?}");
            assert_eq!(hidden.visible_sha256, Some(sha256_hex(visible.as_bytes())), "{before:?}");
        }
    }

    #[test]
    fn columns_count_what_was_left_out_of_a_line() {
        for (before, after, expected) in [
            ("One\nTwo three", " four\r\nFive\r\n", [(2, 9, 9), (2, 10, 26), (2, 15, 31), (3, 11, 11)]),
            ("", "One\nTwo", [(1, 1, 17), (1, 3, 19), (2, 1, 1), (2, 3, 3)]),
            ("One", "\r\nTwo", [(1, 1, 1), (1, 4, 4), (2, 1, 1), (2, 4, 4)]),
        ] {
            let text = format!("{before}{}{after}", marked(2));
            let (_, hidden) = separate(&text);
            for (line, column, expected) in expected {
                let found = column_in_draft(Some(&hidden), line, column);
                assert_eq!(found, expected, "{before:?} {line}:{column}");
            }
        }
        assert_eq!(column_in_draft(None, 2, 10), 10);
    }

    #[test]
    fn another_block_stays_and_is_noted() {
        for (block, count) in [
            (wrapper(b"C2PATXT\x01", VERSION, 400, 400), 414),
            (wrapper(MAGIC, 2, 400, 400), 414),
            (wrapper(MAGIC, VERSION, 401, 400), 414),
            (wrapper(MAGIC, VERSION, u32::MAX, 400), 414),
            (marked(400)[3..].to_owned(), 413),
            (marked(400).replacen('\u{e0110}', "x\u{e0110}", 1), 414),
            (format!("{0}{0}", marked(400)), 828),
            (format!("{} two {}", marked(300), marked(1)), 329),
            (format!("{0}two{0}", marked(10)), 48),
            ("\u{e0041}".repeat(200), 200),
            ("\u{200b}".repeat(250), 250),
            ("a\u{202e}".repeat(200), 200),
            ("\u{2764}\u{fe0f}\u{fe0f}".repeat(300), 300),
        ] {
            let text = format!("One\nTwo {block} three\n");
            let (visible, hidden) = separate(&text);
            assert_eq!((&*visible, hidden.credentials), (&*text, None), "{block:?}");
            assert_eq!((hidden.invisible, hidden.line), (Some(count), Some(2)), "{block:?}");
        }
    }

    #[test]
    fn characters_that_texts_need_are_not_noted() {
        for piece in [
            "\u{2764}\u{fe0f} ",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{1820}\u{180b}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "\u{845b}\u{e0100}",
            "so\u{ad}ft ",
            "\u{e01}\u{e02}\u{200b}",
            "\u{5d0}\u{200f}! ",
            "line\r\n",
        ] {
            let text = piece.repeat(500);
            assert_eq!(separate(&text), (Cow::Borrowed(&*text), HiddenText::default()), "{piece:?}");
        }
        let few = format!("\u{feff}a{}", "\u{200b}".repeat(199 - 1));
        assert_eq!(separate(&few).1, HiddenText::default());
    }

    #[test]
    fn a_run_notes_hidden_text_once() {
        let hidden = |credentials, invisible, line| {
            let hidden = HiddenText { credentials, invisible, line, ..HiddenText::default() };
            notes(&RunOpened { hidden: Some(hidden), ..RunOpened::default() })
        };
        let credentials = "The draft carries C2PA content credentials (4,312 invisible characters), which were left out of the \
                           prompts. Quorate did not check what they hold.";
        assert_eq!(hidden(Some(4_312), None, None), [credentials]);
        let block = "The draft has 250 invisible characters that no script needs, most of them from line 7 on; members see them.";
        assert_eq!(hidden(Some(4_312), Some(250), Some(7)), [credentials, block]);
        assert!(notes(&RunOpened::default()).is_empty());
    }
}
