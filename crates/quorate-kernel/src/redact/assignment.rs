//! Values that are assigned to a name that promises a secret: in programs, in configuration, in XML, in tables, on command
//! lines and in prose. The name decides what is enough for the value to be one.

use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text;

use super::plausibility;

/// What leads to a name: each of them is a part of one.
pub(super) const ANCHORS: &[&str] =
    &["pass", "pwd", "secret", "token", "credential", "key", "_pat", "-pat", "mnemonic", "bindpw", "psk"];

/// The longest part of a name that is looked at on each side of an anchor.
const MAX_NAME_PART_BYTES: usize = 32;
/// How much of a value says whether it is a secret.
const MAX_VALUE_BYTES: usize = 256;
/// What makes a key a secret one, where it is right before the word.
static KEY_PREFIXES: LazyLock<Vec<&str>> =
    LazyLock::new(|| text::section(include_str!("words.txt"), "key prefixes").collect());

/// What a name promises.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretKind {
    /// What people choose, and choose short.
    Password,
    /// What a program makes.
    Token,
}

/// How a value is joined to its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `NAME=value`, as shells and environments have it.
    Environment,
    Sign,
    Tags,
    /// On the lines below, indented.
    Block,
    /// On the lines below, without a sign that opens a block: one value, or the items of a list.
    Below,
    /// In a list of strings.
    Listed,
    /// By words or space alone.
    Loosely,
}

/// The value that a name leads to, where it is likely to be a secret.
pub(super) fn find(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let name = name(text, &anchor);
    let (joined, at, quote) = find_separator(text, &name)?;
    let before = word_before(text, &name, &anchor).unwrap_or(&text[name.start..anchor.start]);
    let promise = promised_kind(before, &text[anchor.clone()], &text[anchor.end..name.end])?;
    let read = |most| match joined {
        Separator::Block => block(text, at, most),
        Separator::Below if most <= MAX_VALUE_BYTES => first_value(text, at, quote),
        Separator::Below => all_values(text, at, quote),
        _ => value(text, at..text.len().min(at.saturating_add(most)), joined, quote),
    };
    // Only a secret is read to its end.
    if is_secret(promise, joined, &text[read(MAX_VALUE_BYTES)]) {
        let all = read(usize::MAX);
        return Some(match quote.filter(|_| joined == Separator::Listed) {
            Some(mark) => strings(text, all, mark),
            None => all,
        });
    }
    let length = match quote {
        Some(mark) => phrase_len(&text.as_bytes()[at..], mark),
        None if joined == Separator::Sign && begins_line(text, name.start) => {
            phrase_line_len(&text.as_bytes()[at..])
        }
        None => return None,
    };
    let is_phrase = promise == SecretKind::Password && plausibility::is_phrase(&text[at..at + length]);
    is_phrase.then_some(at..at + length)
}

/// The password that begins here and is one for certain, by what leads to it.
pub(super) fn password_at(text: &str, at: usize) -> Option<Range<usize>> {
    let (opening, quote) = quotation(&text.as_bytes()[at..]);
    let at = at + opening;
    let read = |most: usize| value(text, at..text.len().min(at.saturating_add(most)), Separator::Sign, quote);
    let is_one = is_secret(SecretKind::Password, Separator::Environment, &text[read(MAX_VALUE_BYTES)]);
    is_one.then(|| read(usize::MAX))
}

/// Whether a string is a secret for the key that it is under; `None` where the key promises no kind of secret.
pub(super) fn is_value_of(key: &str, value: &str) -> Option<bool> {
    kind_of(key).map(|promise| is_secret(promise, Separator::Sign, value))
}

/// Whether the header of a column promises a secret.
pub(super) fn names_kind(header: &str) -> bool {
    kind_of(&header.replace(' ', "_")).is_some()
}

/// Whether a cell is a secret for the header of its column.
pub(super) fn is_cell_of(header: &str, cell: &str) -> bool {
    kind_of(&header.replace(' ', "_")).is_some_and(|promise| is_secret(promise, Separator::Loosely, cell))
}

fn kind_of(key: &str) -> Option<SecretKind> {
    let lower = key.to_ascii_lowercase();
    ANCHORS.iter().find_map(|anchor| {
        let at = lower.rfind(anchor)?;
        promised_kind(&key[..at], &key[at..at + anchor.len()], &key[at + anchor.len()..])
    })
}

/// Whether only blanks and the signs of lists and quotations are before a name on its line.
fn begins_line(text: &str, at: usize) -> bool {
    let before = text.as_bytes()[..at].iter().rev().take_while(|byte| **byte != b'\n');
    before.take(MAX_NAME_PART_BYTES).all(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'*' | b'>' | b'|'))
}

fn is_secret(promise: SecretKind, joined: Separator, value: &str) -> bool {
    let value = &value[..plausibility::floor_char_boundary(value, MAX_VALUE_BYTES)];
    let looks_like_one = match (promise, joined) {
        (SecretKind::Password, Separator::Environment) => {
            plausibility::could_be_password(value)
                || plausibility::is_passphrase(value)
                || plausibility::is_single_word(value)
        }
        (SecretKind::Password, Separator::Loosely | Separator::Below) => {
            value.len() >= 8 && plausibility::could_be_password(value) && !plausibility::is_words(value)
        }
        (SecretKind::Password, _) => {
            plausibility::could_be_password(value)
                || plausibility::is_passphrase(value)
                || plausibility::is_phrase(value)
        }
        (SecretKind::Token, _) => value.len() >= 16 && plausibility::is_generated(value),
    };
    let is_assigned = matches!(joined, Separator::Environment | Separator::Sign);
    value.len() >= 6
        && (looks_like_one || is_assigned && plausibility::is_random_letters(value))
        && !plausibility::is_placeholder(value)
        && !plausibility::is_example(value)
        && !plausibility::is_reference(value)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The word around an anchor.
fn name(text: &str, anchor: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let before = bytes[..anchor.start]
        .iter()
        .rev()
        .take(MAX_NAME_PART_BYTES)
        .take_while(|byte| is_name_byte(**byte))
        .count();
    let after =
        bytes[anchor.end..].iter().take(MAX_NAME_PART_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    anchor.start - before..anchor.end + after
}

/// The confidence that a name gives, by its matched part and the text before and after that.
fn promised_kind(before: &str, anchor: &str, after: &str) -> Option<SecretKind> {
    let anchor = anchor.to_ascii_lowercase();
    let ends =
        |rest: &str| rest.is_empty() || plausibility::parts(rest).all(plausibility::may_follow_secret_word);
    let (promise, rest) = match &*anchor {
        "pass" => {
            let word = ["words", "word", "wd", "phrase", "code", ""]
                .into_iter()
                .find(|word| after.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))?;
            (SecretKind::Password, &after[word.len()..])
        }
        "pwd" => (SecretKind::Password, after),
        // Directives of their own, and no ends of other words.
        "bindpw" | "psk" => (!before.ends_with(|c: char| c.is_ascii_alphanumeric()))
            .then_some((SecretKind::Password, after))?,
        "key" => {
            let low = before.to_ascii_lowercase();
            let low = low.trim_end_matches(['_', '-', '.']);
            if !KEY_PREFIXES.iter().any(|prefix| low.ends_with(prefix)) && !is_environment_name(before, after)
            {
                return None;
            }
            (SecretKind::Token, after.strip_prefix(['s', 'S']).unwrap_or(after))
        }
        _ => {
            (SecretKind::Token, after.strip_prefix('s').or_else(|| after.strip_prefix('S')).unwrap_or(after))
        }
    };
    // A lower-case continuation is another word: a tokenizer, a passenger, a keyboard.
    let goes_on = rest.starts_with(|c: char| c.is_ascii_lowercase())
        && !rest.starts_with("value")
        && !rest.starts_with("key");
    let is_named = !goes_on && ends(rest) && !plausibility::parts(before).any(plausibility::denies_secret);
    // A short word needs an end before it, too: a compass, a bypass.
    let begins = anchor != "pass"
        || promise == SecretKind::Password
            && (rest.len() != after.len()
                || before == "require"
                || !before.ends_with(|c: char| c.is_ascii_lowercase()));
    (is_named && begins).then_some(promise)
}

/// Whether it is the name of a variable of the environment, `STRIPE_KEY`.
fn is_environment_name(before: &str, after: &str) -> bool {
    after.is_empty()
        && before.len() > 1
        && before.ends_with('_')
        && before.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// The length of a quotation mark with the escapes before it, and the mark.
fn quotation(bytes: &[u8]) -> (usize, Option<u8>) {
    let escapes = bytes.iter().take(4).take_while(|byte| **byte == b'\\').count();
    match bytes.get(escapes) {
        Some(mark @ (b'"' | b'\'' | b'`')) => (escapes + 1, Some(*mark)),
        _ => (0, None),
    }
}

pub(super) fn blank(bytes: &[u8], most: usize) -> usize {
    bytes.iter().take(most).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// How a value is joined to the preceding name, where it begins, and its quotation mark.
fn find_separator(text: &str, name: &Range<usize>) -> Option<(Separator, usize, Option<u8>)> {
    let bytes = text.as_bytes();
    let (closing, mark) = quotation(&bytes[name.end..]);
    let mut at = name.end + closing;
    let before = text[..name.start].bytes().next_back();
    if let Some(at) = element_text(text, name, at, mark) {
        return Some((Separator::Tags, at, None));
    }
    if let Some(at) = attribute(text, at, mark) {
        return Some((Separator::Sign, at, Some(b'"')));
    }
    if let Some(at) = value_of_pair(text, name, at).or_else(|| terraform_default(text, name, at)) {
        let (opening, quote) = quotation(&bytes[at..]);
        return Some((Separator::Sign, at + opening, quote));
    }
    at += usize::from(mark.is_some() && bytes.get(at) == Some(&b']'));
    at += emphasis_len(&bytes[at..], false);
    let gap = blank(&bytes[at..], 16);
    let rest = &bytes[at + gap..];
    let is_option = text[name.clone()].starts_with('-');
    let (joined, length) = match rest {
        [b'=', b'>', ..] | [b':', b'=', ..] | [b'=', b'=', ..] => (Separator::Sign, 2),
        [b'=', ..] if gap == 0 && mark.is_none() && !is_option => (Separator::Environment, 1),
        [b'=' | b':', ..] => (Separator::Sign, 1),
        [b'%', b'3', b'D' | b'd', ..] => (Separator::Sign, 3),
        [b'|', ..] => (Separator::Loosely, 1),
        [b',', ..] if mark.is_some() => (Separator::Loosely, 1),
        [b'(', ..] if mark.is_none() && gap == 0 => (Separator::Loosely, 1),
        [b'i', b's', b' ' | b':', ..] if gap > 0 => (Separator::Loosely, 3),
        _ if gap > 0 && is_option => (Separator::Sign, 0),
        _ if gap > 0 && is_directive(&text[name.clone()]) => (Separator::Sign, 0),
        _ if gap > 0 && is_command_operand(text, name, rest.starts_with(b"'")) => (Separator::Sign, 0),
        _ if bytes.get(at) == Some(&b'\t') => (Separator::Loosely, 0),
        _ => return None,
    };
    at += gap + length;
    let typed = type_annotation_len(&bytes[at..]);
    at += typed + blank(&bytes[at + typed..], 16);
    if let Some(at) = first_block_line(text, at) {
        return Some((Separator::Block, at, None));
    }
    if let Some((at, mark)) = value_below(text, at).filter(|_| rest.starts_with(b":")) {
        return Some((Separator::Below, at, mark));
    }
    if length > 0 {
        let stars = emphasis_len(&bytes[at..], true);
        at += stars + if stars > 0 { blank(&bytes[at + stars..], 16) } else { yaml_tag_len(&bytes[at..]) };
    }
    if let Some((opening, mark)) = first_in_list(&bytes[at..]).filter(|_| joined != Separator::Loosely) {
        return Some((Separator::Listed, at + opening, Some(mark)));
    }
    // `b"…"`, `@"…"`
    at += usize::from(matches!(bytes[at..], [b'a'..=b'z' | b'@', b'"' | b'\'', ..]));
    let (mut opening, quote) = quotation(&bytes[at..]);
    // `"""…"""`
    if let Some(mark) = quote.filter(|mark| bytes[at + opening..].starts_with(&[*mark, *mark])) {
        opening += if bytes.get(at + opening + 2) == Some(&mark) { 0 } else { 2 };
    }
    let spaced = bytes[at - 1].is_ascii_whitespace();
    let in_small = text[name.clone()].bytes().any(|byte| byte.is_ascii_lowercase());
    let joined = match joined {
        Separator::Environment if in_small || spaced || matches!(before, Some(b'?' | b'&')) => {
            Separator::Sign
        }
        joined => joined,
    };
    // In a call and in a list only what is quoted is a value.
    let must = matches!(rest.first(), Some(b',' | b'(')) && quote.is_none();
    (!must).then_some((joined, at + opening, quote))
}

/// Whether a name is a directive of a server, which its value follows.
fn is_directive(name: &str) -> bool {
    matches!(name, "bindpw" | "requirepass")
}

/// The length of a type between a colon and an equals sign, `: str =`.
fn type_annotation_len(bytes: &[u8]) -> usize {
    let of_type = |byte: &u8| {
        byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'&' | b'\'' | b'<' | b'>' | b'_' | b':')
    };
    let length = bytes.iter().take(32).take_while(|byte| of_type(byte)).count();
    match bytes[length..] {
        [b'=', b' ', b'"' | b'\'', ..] if length > 0 => length + 1,
        _ => 0,
    }
}

/// Where the text of an element begins: `<password>…`, `<entry key="password">…`, `<key>password</key><string>…`.
fn element_text(text: &str, name: &Range<usize>, at: usize, mark: Option<u8>) -> Option<usize> {
    let before = text[..name.start].bytes().next_back();
    let rest = &text[at..];
    let is_tag = matches!(before, Some(b'<' | b':')) || mark.is_some() && is_attribute(&text[..name.start]);
    if let Some(plist) = rest.strip_prefix("</key>") {
        let string = plist.trim_start_matches([' ', '\t', '\n', '\r']).strip_prefix("<string>")?;
        return Some(text.len() - string.len());
    }
    let inside = rest.strip_prefix('>').filter(|_| is_tag)?;
    let inside = inside.strip_prefix("<![CDATA[").unwrap_or(inside);
    let gap = inside.bytes().take(80).take_while(u8::is_ascii_whitespace).count();
    Some(text.len() - inside.len() + gap)
}

/// Whether a text leads to the value of `key` or `name`.
fn is_attribute(before: &str) -> bool {
    let before = before.trim_end_matches(['"', '\'']);
    before.ends_with("key=") || before.ends_with("name=")
}

/// Where the value of an attribute begins that is beside the one with the name: `key="password" value="…"`.
fn attribute(text: &str, at: usize, mark: Option<u8>) -> Option<usize> {
    mark?;
    let bytes = text.as_bytes();
    let gap = bytes[at..].iter().take(32).take_while(|byte| byte.is_ascii_whitespace()).count();
    let rest = text[at + gap..].strip_prefix("value").filter(|_| gap > 0)?;
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix('=')?.trim_start_matches([' ', '\t']);
    value.starts_with(['"', '\'']).then(|| text.len() - value.len() + 1)
}

/// Where the first line of a block begins that `|` or `>` opens.
fn first_block_line(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix(['|', '>'])?;
    let rest = rest.trim_start_matches(|c: char| matches!(c, '-' | '+' | ' ') || c.is_ascii_digit());
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let gap = blank(rest.as_bytes(), 80);
    (gap > 0).then(|| text.len() - rest.len() + gap)
}

/// The lines of a block, each of one word, that have the indentation of the first; none that begins far behind it.
fn block(text: &str, at: usize, most: usize) -> Range<usize> {
    let indentation =
        text.as_bytes()[..at].iter().rev().take(80).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let mut end = at;
    let mut line = at;
    while line - at < most {
        let word =
            text.as_bytes()[line..].iter().take(most).take_while(|byte| byte.is_ascii_graphic()).count();
        if word == 0 {
            break;
        }
        end = line + word;
        let next = &text[end..];
        let Some(next) = next.strip_prefix("\r\n").or_else(|| next.strip_prefix('\n')) else { break };
        if blank(next.as_bytes(), 80) != indentation {
            break;
        }
        line = text.len() - next.len() + indentation;
    }
    at..end
}

/// The value that begins at the start of a range, and does not reach over its end.
fn value(
    text: &str,
    Range { start: at, end }: Range<usize>,
    joined: Separator,
    quote: Option<u8>,
) -> Range<usize> {
    let text = &text[..plausibility::floor_char_boundary(text, end)];
    let bytes = text.as_bytes();
    let first = bytes.get(at).copied().unwrap_or_default();
    let of_value = |byte: u8| match (joined, quote) {
        _ if byte.is_ascii_whitespace() || byte.is_ascii_control() => false,
        (Separator::Tags, _) => byte != b'<',
        (Separator::Environment, None) if byte == b'&' => true,
        (_, Some(mark)) => byte != mark && byte != b'\\',
        _ => !matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'&'
                | b';'
                | b','
                | b'<'
                | b'>'
                | b'('
                | b')'
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'|'
                | b'\\'
        ),
    };
    // A placeholder, which is longer than its first characters.
    if quote.is_none() && matches!(first, b'$' | b'<' | b'{' | b'[' | b'(') {
        return at..at;
    }
    let length = bytes[at..].iter().take_while(|byte| of_value(**byte)).count();
    let value = &text[at..at + length];
    if joined == Separator::Tags {
        return at..at + value.trim_end_matches("]]>").len();
    }
    if quote.is_some() {
        return at..at + length;
    }
    // A function call is not a value.
    if matches!(bytes.get(at + length), Some(b'(' | b'[' | b'{')) {
        return at..at;
    }
    at..at + value.trim_end_matches(['.', ',', ':', '?', '*']).len()
}

/// From where on a header or a key says its value: behind a quotation mark, a sign and another quotation mark.
/// Where the next argument of a call begins, behind a quoted one: `set("Authorization", "…")`.
pub(super) fn argument_after(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (closing, mark) = quotation(&bytes[at..]);
    let at = at + closing;
    let comma = mark.is_some() && bytes.get(at) == Some(&b',');
    let at = at + 1 + blank(bytes.get(at + 1..)?, 4);
    let (opening, mark) = quotation(&bytes[at..]);
    (comma && mark.is_some()).then_some(at + opening)
}

pub(super) fn value_after_colon(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = at + quotation(&bytes[at..]).0;
    let at = at + blank(&bytes[at..], 4);
    let at = match bytes[at..] {
        [b'=', b'>', ..] => at + 2,
        [b'=' | b':', ..] => at + 1,
        _ => return None,
    };
    let at = at + blank(&bytes[at..], 4);
    Some(at + quotation(&bytes[at..]).0)
}

/// The most bytes that are looked at between a name and its value.
const MAX_DISTANCE_BYTES: usize = 256;
/// The most blanks between two words.
const MAX_BLANKS: usize = 80;

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
