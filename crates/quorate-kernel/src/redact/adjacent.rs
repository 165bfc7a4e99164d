//! Values that no sign joins to their name: in the adjacent pair, in a list, on the lines below, behind a command. Each
//! check reads a bounded number of bytes.

use std::ops::Range;

/// The most bytes that are looked at between a name and its value.
const MAX_DISTANCE_BYTES: usize = 256;
/// The most blanks between two words.
const MAX_BLANKS: usize = 80;

fn blank(bytes: &[u8], most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn space(bytes: &[u8]) -> usize {
    bytes.iter().take(MAX_BLANKS).take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn starts(bytes: &[u8], word: &str) -> bool {
    bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

fn ends(bytes: &[u8], word: &str) -> bool {
    let at = bytes.len().saturating_sub(word.len());
    bytes[at..].eq_ignore_ascii_case(word.as_bytes())
}

/// The text before a position, without trailing blanks and quotation marks.
fn before(text: &str, at: usize) -> &[u8] {
    let bytes = &text.as_bytes()[..at];
    let gap =
        bytes.iter().rev().take(8).take_while(|byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\'));
    &bytes[..at - gap.count()]
}

/// The word before a key that prose parts from it by a blank: `API key`, `secret access key`.
pub(super) fn word_before<'t>(text: &'t str, name: &Range<usize>, anchor: &Range<usize>) -> Option<&'t str> {
    const WORDS: [&str; 9] =
        ["api", "access", "secret", "private", "encryption", "signing", "master", "account", "storage"];
    let rest = text[..name.start].strip_suffix(' ')?;
    let is_key = name.start == anchor.start && text[anchor.clone()].eq_ignore_ascii_case("key");
    let letters = rest.bytes().rev().take(16).take_while(u8::is_ascii_alphabetic).count();
    let word = rest.get(rest.len() - letters..).filter(|_| is_key)?;
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)).then_some(word)
}

/// Where the value begins in the pair beside a name: `{"name": "DB_PASSWORD", "value": "…"}`, or on the next line of YAML.
/// `at` is behind the name and its quotation mark.
pub(super) fn value_of_pair(text: &str, name: &Range<usize>, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let preceding = before(text, name.start);
    let sign = preceding.strip_suffix(b":").or_else(|| preceding.strip_suffix(b"="))?;
    let key = before(text, sign.len());
    if !ends(key, "name") && !ends(key, "key") {
        return None;
    }
    let comma = usize::from(bytes.get(at) == Some(&b','));
    let gap = space(&bytes[at + comma..]);
    let parted = comma > 0 || bytes[at..at + gap].contains(&b'\n');
    let mut at = at + comma + gap;
    at += bytes[at..].iter().take(4).take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    if !parted || !starts(&bytes[at..], "value") {
        return None;
    }
    at += "value".len();
    at += bytes[at..].iter().take(4).take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    at += blank(&bytes[at..], 16);
    let is_sign = matches!(bytes.get(at), Some(b':' | b'='));
    is_sign.then(|| at + 1 + blank(&bytes[at + 1..], 16))
}

/// Where the default of a variable of Terraform begins: `variable "db_password" { default = "…" }`.
pub(super) fn terraform_default(text: &str, name: &Range<usize>, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = at + blank(&bytes[at..], 16);
    if bytes.get(at) != Some(&b'{') || !ends(before(text, name.start), "variable") {
        return None;
    }
    let inside = &bytes[at..bytes.len().min(at + MAX_DISTANCE_BYTES)];
    let inside = &inside[..inside.iter().position(|byte| *byte == b'}').unwrap_or(inside.len())];
    let word = inside.windows(8).position(|word| !word[0].is_ascii_graphic() && &word[1..] == b"default")?;
    let at = at + word + 8;
    let at = at + blank(&bytes[at..], 16);
    let is_sign = bytes.get(at) == Some(&b'=');
    is_sign.then(|| at + 1 + blank(&bytes[at + 1..], 16))
}

/// Whether a name and its value are the operands of a command: `ENV NAME value`, `setx NAME value`, `aws configure set`.
/// In SQL the value is quoted.
pub(super) fn is_command_operand(text: &str, name: &Range<usize>, quoted: bool) -> bool {
    let bytes = text.as_bytes();
    let preceding = before(text, name.start);
    let word = &text[name.clone()];
    let alone = |word: &str| {
        let at = preceding.len().saturating_sub(word.len());
        ends(preceding, word) && !preceding[..at].last().is_some_and(u8::is_ascii_graphic)
    };
    let of_sql = quoted
        && word.eq_ignore_ascii_case("password")
        && (word == "PASSWORD" || alone("with") || alone("encrypted"));
    let of_docker =
        preceding.ends_with(b"ENV") && alone("env") && !matches!(bytes.get(name.end), Some(b'\n'));
    of_sql || of_docker || alone("setx") || ends(preceding, "configure set")
}

/// The length of what YAML says about a value before it: `!!str `, `&anchor `.
pub(super) fn yaml_tag_len(bytes: &[u8]) -> usize {
    let length = match bytes {
        [b'!', b'!', ..] | [b'&', b'A'..=b'Z' | b'a'..=b'z', ..] => {
            let of_tag =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'!' | b'&' | b'_' | b'-');
            bytes.iter().take(32).take_while(|byte| of_tag(byte)).count()
        }
        _ => return 0,
    };
    match blank(&bytes[length..], 16) {
        0 => 0,
        gap => length + gap,
    }
}

/// The length of the stars that Markdown has around a name, or behind its colon, where `parted` asks for a blank.
pub(super) fn emphasis_len(bytes: &[u8], parted: bool) -> usize {
    let stars = bytes.iter().take(3).take_while(|byte| **byte == b'*').count();
    match parted && !matches!(bytes.get(stars), Some(b' ' | b'\t')) {
        true => 0,
        false => stars,
    }
}

/// Where the first value begins on the line below: indented, or an item of a list. The mark that it is quoted in.
pub(super) fn value_below(text: &str, at: usize) -> Option<(usize, Option<u8>)> {
    let rest = text[at..].strip_prefix("\r\n").or_else(|| text[at..].strip_prefix('\n'))?;
    let bytes = rest.as_bytes();
    let indentation = blank(bytes, MAX_BLANKS);
    let item = if bytes[indentation..].starts_with(b"- ") { 2 } else { 0 };
    let mark = bytes.get(indentation + item).filter(|byte| matches!(byte, b'"' | b'\'')).copied();
    let start = text.len() - rest.len() + indentation + item + usize::from(mark.is_some());
    let length = word(text, start, mark, MAX_DISTANCE_BYTES);
    let end = start + length + usize::from(mark.is_some());
    // With more on its line it is a key, or prose.
    let alone = matches!(text.as_bytes().get(end), None | Some(b'\n' | b'\r'));
    (indentation + item > 0 && length > 0 && alone).then_some((start, mark))
}

fn word(text: &str, at: usize, mark: Option<u8>, most: usize) -> usize {
    let of_word = |byte: &u8| byte.is_ascii_graphic() && Some(*byte) != mark;
    text.as_bytes()[at..].iter().take(most).take_while(|byte| of_word(byte)).count()
}

/// The first value below a name.
pub(super) fn first_value(text: &str, at: usize, mark: Option<u8>) -> Range<usize> {
    at..at + word(text, at, mark, MAX_DISTANCE_BYTES)
}

/// All values below a name, from the first one to the last that begins as it does.
pub(super) fn all_values(text: &str, at: usize, mark: Option<u8>) -> Range<usize> {
    let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
    let begins = &text[line..at];
    let mut end = at + word(text, at, mark, usize::MAX);
    if !begins.contains('-') {
        return at..end;
    }
    loop {
        let rest = &text[end..];
        let rest = mark.and_then(|mark| rest.strip_prefix(char::from(mark))).unwrap_or(rest);
        let next = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'));
        let Some(next) = next.and_then(|next| next.strip_prefix(begins)) else { return at..end };
        let from = text.len() - next.len();
        match word(text, from, mark, usize::MAX) {
            0 => return at..end,
            length => end = from + length,
        }
    }
}

/// Where the first string of a list begins, and its mark.
pub(super) fn first_in_list(bytes: &[u8]) -> Option<(usize, u8)> {
    let gap = space(bytes.strip_prefix(b"[")?);
    match bytes.get(1 + gap) {
        Some(mark @ (b'"' | b'\'')) => Some((2 + gap, *mark)),
        _ => None,
    }
}

/// From the first string of a list to the end of the last.
pub(super) fn strings(text: &str, first: Range<usize>, mark: u8) -> Range<usize> {
    let bytes = text.as_bytes();
    let mut end = first.end;
    loop {
        // `", "`
        if bytes.get(end) != Some(&mark) {
            return first.start..end;
        }
        let comma = end + 1 + space(&bytes[end + 1..]);
        if bytes.get(comma) != Some(&b',') {
            return first.start..end;
        }
        let next = comma + 1 + space(&bytes[comma + 1..]);
        if bytes.get(next) != Some(&mark) {
            return first.start..end;
        }
        let length =
            bytes[next + 1..].iter().take_while(|byte| !matches!(byte, b'\n' | b'\\') && **byte != mark);
        end = next + 1 + length.count();
    }
}

/// The length of a quoted phrase: small letters and blanks up to the mark.
pub(super) fn phrase_len(bytes: &[u8], mark: u8) -> usize {
    let length = bytes
        .iter()
        .take(MAX_DISTANCE_BYTES)
        .take_while(|byte| byte.is_ascii_lowercase() || **byte == b' ')
        .count();
    if bytes.get(length) == Some(&mark) { length } else { 0 }
}

/// The length of a phrase that is the rest of its line.
pub(super) fn phrase_line_len(bytes: &[u8]) -> usize {
    let of_phrase = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b' ';
    let length = bytes.iter().take(MAX_DISTANCE_BYTES).take_while(of_phrase).count();
    let ends = matches!(bytes.get(length), None | Some(b'\n' | b'\r'));
    if ends { bytes[..length].trim_ascii_end().len() } else { 0 }
}
