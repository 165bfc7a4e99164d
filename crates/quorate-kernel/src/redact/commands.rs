//! Passwords in commands, statements and files of databases: `mysql -p…`, `IDENTIFIED BY '…'`, `.pgpass`.

use std::ops::Range;

use super::context::MAX_LOOKAHEAD_BYTES;
use super::kind::{Detector, Kind};
use super::{assignment, plausibility};

/// What leads to each, and what finds it.
pub(super) const KINDS: &[Kind] = &[
    by_context("password on a command line", &["-p", "-a"], option),
    by_context("cookie on a command line", &["-b", "--cookie"], cookie_option),
    by_context("cookies of a program", &["cookies"], cookies),
    by_context("password of a statement", &["identified by"], statement),
    by_context("password of a .pgpass", &[":5432:", ":5433:", ":6432:"], pgpass),
    by_context("password of an Oracle URL", &["jdbc:oracle:"], oracle),
];

const fn by_context(name: &'static str, anchors: &'static [&'static str], find: super::kind::Detect) -> Kind {
    Kind { name, detector: Detector::Place(anchors, find) }
}

/// The bounded text before an option in its command; `None` if no option can begin here.
fn command<'t>(text: &'t str, anchor: &Range<usize>) -> Option<&'t [u8]> {
    let bytes = &text.as_bytes()[..anchor.start];
    if !matches!(bytes.last(), Some(b' ' | b'\t')) {
        return None;
    }
    let near = &bytes[bytes.len().saturating_sub(MAX_LOOKAHEAD_BYTES / 2)..];
    let from =
        near.iter().rposition(|byte| matches!(byte, b'\n' | b';' | b'|' | b'&')).map_or(0, |at| at + 1);
    Some(&near[from..])
}

/// Whether a command has a word that begins so.
fn has_word(command: &[u8], word: &str) -> bool {
    let begins = |at: usize| at == 0 || !command[at - 1].is_ascii_alphanumeric();
    command.windows(word.len()).enumerate().any(|(at, one)| one == word.as_bytes() && begins(at))
}

/// The value of an option: `mysql` has it right behind, the others behind a blank.
fn option(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let command = command(text, &anchor)?;
    let gap = text[anchor.end..].bytes().take(4).take_while(|byte| *byte == b' ').count();
    let is_one = match (&text[anchor.clone()], gap) {
        ("-p", 0) => ["mysql", "mariadb"].iter().any(|word| has_word(command, word)),
        ("-p", _) => {
            has_word(command, "sshpass") || has_word(command, "login") && !has_word(command, "mysql")
        }
        ("-a", 1..) => has_word(command, "redis-cli"),
        _ => false,
    };
    is_one.then(|| assignment::password_at(text, anchor.end + gap)).flatten()
}

/// The cookie that `curl` sends, if a value in it is random. A file of cookies is not.
fn cookie_option(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    if !has_word(command(text, &anchor)?, "curl") {
        return None;
    }
    let rest = &text.as_bytes()[anchor.end..];
    let gap = rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'=' | b'"' | b'\'')).count();
    let quoted = gap > 0 && matches!(rest[gap - 1], b'"' | b'\'');
    let of_it = |byte: &&u8| {
        !byte.is_ascii_control() && !matches!(byte, b'"' | b'\'' | b'\\') && (quoted || **byte != b' ')
    };
    let length = rest[gap..].iter().take(MAX_LOOKAHEAD_BYTES).take_while(of_it).count();
    let at = anchor.end + gap;
    let command = &text[at..plausibility::floor_char_boundary(text, at + length)];
    let mut values = command.split(';').filter_map(|pair| pair.split_once('='));
    let found = values.any(|(_, value)| {
        value.len() >= 16 && plausibility::is_generated(value) && !plausibility::is_example(value)
    });
    (gap > 0 && found).then(|| at..at + command.len())
}

/// The first random value of a table of cookies.
fn cookies(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let at = assignment::value_after_colon(text, anchor.end)?;
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    let inside = &bytes[at..bytes.len().min(at + MAX_LOOKAHEAD_BYTES)];
    let inside = &inside[..inside.iter().position(|byte| *byte == b'}').unwrap_or(inside.len())];
    let mut from = 0;
    // Between marks, every string in turn.
    while let Some(open) = inside[from..].iter().position(|byte| matches!(byte, b'"' | b'\'')) {
        let start = from + open + 1;
        let length = inside[start..].iter().position(|byte| *byte == inside[start - 1])?;
        let command = text.get(at + start..at + start + length)?;
        if command.len() >= 16 && plausibility::is_generated(command) && !plausibility::is_example(command) {
            return Some(at + start..at + start + length);
        }
        from = start + length + 1;
    }
    None
}

fn statement(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let gap = text[anchor.end..].bytes().take(16).take_while(u8::is_ascii_whitespace).count();
    (gap > 0).then(|| assignment::password_at(text, anchor.end + gap)).flatten()
}

/// The last of the five fields of a line, `host:port:database:user:password`.
fn pgpass(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let of_host = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'*');
    let host = bytes[..anchor.start].iter().rev().take(MAX_LOOKAHEAD_BYTES / 2).take_while(of_host).count();
    let begins = !bytes[..anchor.start - host].last().is_some_and(u8::is_ascii_graphic);
    let mut at = anchor.end;
    for _ in ["database", "user"] {
        let of_field = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b':' | b'/' | b'"' | b'\'');
        let length = bytes[at..].iter().take(64).take_while(of_field).count();
        if length == 0 || bytes.get(at + length) != Some(&b':') {
            return None;
        }
        at += length + 1;
    }
    (host > 0 && begins).then(|| assignment::password_at(text, at)).flatten()
}

/// `jdbc:oracle:thin:user/password@…`
fn oracle(text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
    let rest = &text.as_bytes()[anchor.end..];
    let rest = &rest[..rest.len().min(MAX_LOOKAHEAD_BYTES)];
    let driver = rest.iter().take(8).position(|byte| *byte == b':')? + 1;
    let of_it =
        |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<' | b'\\');
    let user = rest[driver..].iter().take_while(of_it).count();
    let start = driver + user + 1;
    if user == 0 || rest.get(start - 1) != Some(&b'/') {
        return None;
    }
    let length = rest[start..].iter().take_while(of_it).count();
    let password = &text[anchor.end + start..anchor.end + start + length];
    let is_one =
        length >= 3 && rest.get(start + length) == Some(&b'@') && !plausibility::is_placeholder(password);
    is_one.then(|| anchor.end + start..anchor.end + start + length)
}
