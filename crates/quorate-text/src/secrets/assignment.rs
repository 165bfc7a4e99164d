//! Values of a name that promises a secret, by the table `joins.txt`, and cells in a column under such a name. The name decides what is
//! enough for the value to be a secret.

use std::ops::Range;
use std::sync::LazyLock;

use quorate_diagnostics::text;
use regex::Regex;

use super::plausible::{self, parts};
use super::shapes;

/// Each name that promises a secret has one of these.
pub(super) const WORDS: [&str; 10] =
    ["pass", "pwd", "secret", "token", "credential", "key", "_pat", "-pat", "bindpw", "psk"];
/// A part of a name that ends so promises a password.
const PASSWORDS: &str = "password passwords passwd passphrase passcode passwort pwd bindpw requirepass";
/// A part of a name that ends so promises a token.
const TOKENS: &str = "secret secrets token tokens credential credentials";
/// Right before the word `key`, these make it a secret one.
static KEY_PREFIXES: LazyLock<Vec<&str>> =
    LazyLock::new(|| text::section(include_str!("words.txt"), "key prefixes").collect());

/// The longest part of a name that is looked at on each side of a word.
const MAX_NAME_PART_BYTES: usize = 32;
/// The most bytes between a name and its value.
const MAX_DISTANCE_BYTES: usize = 256;
/// How much of a value says whether it is a secret.
const MAX_VALUE_BYTES: usize = 256;

/// What a name promises.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// What people choose, and choose short.
    Password,
    /// What a program makes.
    Token,
}

/// How a value is joined to its name: the sections of `joins.txt`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    /// `NAME=value`, as shells and environments have it.
    Environment,
    Assigned,
    Option,
    Tag,
    Items,
    Loose,
    Column,
}

static JOINS: LazyLock<Vec<(Join, Regex)>> = LazyLock::new(|| {
    let join = |(section, _, pattern): (&str, &str, &str)| {
        let join = match section {
            "tags" => Join::Tag,
            "items" => Join::Items,
            "assigned" => Join::Assigned,
            "options" => Join::Option,
            "columns" => Join::Column,
            _ => Join::Loose,
        };
        let pattern = pattern
            .replace("<close>", r#"\\{0,3}["'`]?\]?\*{0,2}"#)
            .replace("<open>", r#"(?:[a-z@]?\\{0,3}(?:"""|'''|["'`]))?"#);
        (join, shapes::compile(&format!("^(?:{pattern})")))
    };
    shapes::rows(include_str!("joins.txt")).map(join).collect()
});
/// What is between two items of a list, or between two lines below a name.
static NEXT_ITEM: LazyLock<Regex> =
    LazyLock::new(|| shapes::compile(r#"^(?:["'],\s{0,80}["']|["']?,?\r?\n(?:[ \t]{1,80}(?:- )?|- )["']?)"#));

/// Adds the values of the name around a word, if they are secrets. Returns how far the text is done with.
pub(super) fn find(text: &str, word: Range<usize>, spans: &mut Vec<Range<usize>>) -> usize {
    let name = name_around(text, &word);
    let Some(promise) = promise_of(&text[name.clone()]) else { return name.end };
    let Some((join, mut at)) = join_after(text, &name) else { return name.end };
    let mark = mark_before(text, at, join);
    let mut done = name.end;
    loop {
        let Some(length) = secret_length(text, at, &name, (promise, join, mark)) else { return done };
        done = at + length;
        spans.push(at..done);
        if join != Join::Items {
            return done;
        }
        match NEXT_ITEM.find(near(text, done)) {
            Some(between) => at = done + between.end(),
            None => return done,
        }
    }
}

/// Whether a name promises a secret.
pub(super) fn promises_secret(name: &str) -> bool {
    promise_of(name).is_some()
}

/// The name around a word. Prose parts the words before `key` by blanks: `API key`.
fn name_around(text: &str, word: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let before = |at: usize| bytes[..at].iter().rev().take(MAX_NAME_PART_BYTES).take_while(of_name).count();
    let after = bytes[word.end..].iter().take(MAX_NAME_PART_BYTES).take_while(of_name).count();
    let mut start = word.start - before(word.start);
    if start == word.start && text[word.clone()].eq_ignore_ascii_case("key") && text[..start].ends_with(' ') {
        start -= 1 + before(start - 1);
    }
    start..word.end + after
}

fn promise_of(name: &str) -> Option<Promise> {
    let parts: Vec<String> = parts(name).map(str::to_ascii_lowercase).collect();
    let promise = |at: usize| {
        let part = &*parts[at];
        let ends = |part: &str, words: &str| words.split(' ').any(|end| part.ends_with(end));
        if ends(part, PASSWORDS) || matches!(part, "pass" | "psk") {
            return Some((at, Promise::Password));
        }
        let key = || {
            let glued = part.trim_end_matches('s').strip_suffix("key")?;
            let before = if glued.is_empty() { &**parts[..at].last()? } else { glued };
            let is_environment = at + 1 == parts.len() && name.contains('_') && is_capital(name);
            (is_environment || KEY_PREFIXES.iter().any(|prefix| before.ends_with(prefix))).then_some(())
        };
        let is_token = ends(part, TOKENS) || part == "pat" || key().is_some();
        is_token.then_some((at, Promise::Token))
    };
    let (at, promise) = (0..parts.len()).rev().find_map(promise)?;
    let is_other = parts[..at].iter().any(|part| plausible::denies_secret(part))
        || parts[at + 1..].iter().any(|part| plausible::denies_secret_behind(part));
    (!is_other).then_some(promise)
}

fn is_capital(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// How a value is joined to a name, and where it begins.
fn join_after(text: &str, name: &Range<usize>) -> Option<(Join, usize)> {
    let before = &text[..name.start];
    let is_possible = |join: Join| match join {
        Join::Tag => before.ends_with(['<', ':', '"', '\'']) || text[name.end..].starts_with("</"),
        Join::Option => text[name.clone()].starts_with('-'),
        Join::Column => begins_line(before),
        _ => true,
    };
    let rest = near(text, name.end);
    let joins = JOINS.iter().filter(|(join, _)| is_possible(*join));
    let (join, length) = joins.filter_map(|(join, regex)| Some((*join, regex.find(rest)?.end()))).next()?;
    let is_environment = join == Join::Assigned
        && matches!(rest[..length].trim_end_matches(['"', '\'']), "=")
        && is_capital(&text[name.clone()])
        && !before.ends_with(['?', '&']);
    Some((if is_environment { Join::Environment } else { join }, name.end + length))
}

/// Whether nothing is before a name on its line but the signs of lists and quotations, or a command that sets it.
fn begins_line(before: &str) -> bool {
    let start = before.floor_char_boundary(before.len().saturating_sub(MAX_NAME_PART_BYTES));
    let line = before[start..].rsplit('\n').next().unwrap_or_default();
    let line = line.trim_matches([' ', '\t', '-', '*', '>', '|', '#']);
    ["", "ENV", "setx", "aws configure set"].contains(&line)
}

/// What ends the value that begins at a place.
fn mark_before(text: &str, at: usize, join: Join) -> Option<u8> {
    if join == Join::Tag {
        return Some(b'<');
    }
    text[..at].bytes().next_back().filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))
}

/// The most letters outside of ASCII in a secret: more are a sentence, in scripts without blanks.
const MAX_FOREIGN_LETTERS: usize = 12;

fn is_foreign_text(value: &str) -> bool {
    value.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).nth(MAX_FOREIGN_LETTERS).is_some()
}

/// The length of the secret that begins at a place.
fn secret_length(
    text: &str,
    at: usize,
    name: &Range<usize>,
    (promise, join, mark): (Promise, Join, Option<u8>),
) -> Option<usize> {
    // Only a secret is read to its end.
    let value = &text[at..at + value_length(text, at, mark, MAX_VALUE_BYTES)];
    if is_foreign_text(value) {
        return None;
    }
    if is_secret(promise, join, value) {
        let length = value_length(text, at, mark, usize::MAX);
        let rest = text[at + length..].trim_start_matches(['"', '\'', ' ']);
        let ends = rest.is_empty() || rest.starts_with(['\r', '\n', ',', ']', '}']);
        return (ends || !matches!(join, Join::Items | Join::Column)).then_some(length);
    }
    let is_bare = mark.is_none() && join == Join::Assigned && begins_line(&text[..name.start]);
    let length = phrase_length(near(text, at), mark, is_bare)?;
    (promise == Promise::Password && plausible::is_phrase(&text[at..at + length])).then_some(length)
}

/// The length of small letters and blanks up to a quotation mark, or up to the end of the line.
fn phrase_length(text: &str, mark: Option<u8>, is_bare: bool) -> Option<usize> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b' ').count();
    let ends = match (mark, text.as_bytes().get(length)) {
        (Some(mark), end) => end == Some(&mark),
        (None, end) => is_bare && matches!(end, None | Some(b'\r' | b'\n')),
    };
    ends.then(|| text[..length].trim_end().len())
}

/// The length of the value at a place, of which at most this many bytes are read.
fn value_length(text: &str, at: usize, mark: Option<u8>, most: usize) -> usize {
    let in_value = |byte: &u8| match mark {
        _ if byte.is_ascii_whitespace() || byte.is_ascii_control() => false,
        Some(mark) => *byte != mark && *byte != b'\\',
        None => !br#""'`;,<>()[]{}|\"#.contains(byte),
    };
    let length = text.as_bytes()[at..].iter().take(most).take_while(|byte| in_value(byte)).count();
    super::count_read(length);
    let value = &text[at..text.floor_char_boundary(at + length)];
    if mark == Some(b'<') {
        return value.trim_end_matches("]]>").len();
    }
    if mark.is_some() {
        return value.len();
    }
    // A placeholder, or a call.
    if value.starts_with('$') || text[at + value.len()..].starts_with(['(', '[', '{']) {
        return 0;
    }
    // The next field of a form begins behind an ampersand.
    let mut fields = value.match_indices('&').map(|(at, _)| at);
    let is_field = |at: &usize| value[at + 1..].split('&').next().is_some_and(|field| field.contains('='));
    let end = fields.find(is_field).unwrap_or(value.len());
    value[..end].trim_end_matches(['.', ':', '?', '*']).len()
}

fn is_secret(promise: Promise, join: Join, value: &str) -> bool {
    let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
    let is_loose = matches!(join, Join::Loose | Join::Column);
    let is_likely = match promise {
        Promise::Token => value.len() >= 16 && plausible::is_generated(value),
        Promise::Password if is_loose => {
            value.len() >= 8 && plausible::could_be_password(value) && !plausible::is_words(value)
        }
        Promise::Password => {
            plausible::could_be_password(value)
                || plausible::is_passphrase(value)
                || join == Join::Environment && plausible::is_single_word(value)
        }
    };
    value.len() >= 6
        && !value.contains(' ')
        && (is_likely || !is_loose && plausible::is_random_letters(value))
        && !plausible::is_placeholder(value)
        && !plausible::is_example(value)
        && !plausible::is_reference(value)
}

/// The part of the text behind a place that the rules read.
fn near(text: &str, at: usize) -> &str {
    super::count_read(MAX_DISTANCE_BYTES);
    &text[at..text.floor_char_boundary(at + MAX_DISTANCE_BYTES)]
}

/// The longest line that is read as a row, in bytes. People write shorter rows.
const MAX_LINE_BYTES: usize = 4096;
/// The longest heading of a column, in bytes.
const MAX_HEADING_BYTES: usize = 40;

/// The first row of a table.
struct Heading {
    sign: char,
    columns: usize,
    /// The columns whose heading promises a secret.
    secret: Vec<(usize, Promise)>,
}

/// The cells that are likely to be secrets, in tables of Markdown and CSV. A table ends at the first line without its sign.
pub(super) fn find_in_columns(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut heading: Option<Heading> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        match heading.as_ref().filter(|heading| line.len() <= MAX_LINE_BYTES && line.contains(heading.sign)) {
            None => heading = Some(line).filter(|line| line.len() <= MAX_LINE_BYTES).and_then(heading_of),
            Some(heading) => {
                let cells: Vec<Range<usize>> = cells(line, heading.sign).collect();
                let columns = heading.secret.iter().filter(|_| cells.len() == heading.columns);
                let columns = columns.map(|(column, promise)| (cells[*column].clone(), *promise));
                let secrets = columns.filter(|(cell, promise)| {
                    let value = &line[cell.clone()];
                    is_secret(*promise, Join::Loose, value) && !is_foreign_text(value)
                });
                spans.extend(secrets.map(|(cell, _)| start + cell.start..start + cell.end));
            }
        }
        start += line.len();
    }
    spans
}

fn heading_of(line: &str) -> Option<Heading> {
    let sign = ['|', '\t', ';', ','].into_iter().find(|sign| line.contains(*sign))?;
    let cells: Vec<&str> = cells(line, sign).map(|cell| &line[cell]).collect();
    let is_name = |cell: &str| {
        cell.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'.'))
    };
    let promises = cells.iter().enumerate().filter(|(_, cell)| is_name(cell));
    let secret: Vec<(usize, Promise)> =
        promises.filter_map(|(column, cell)| Some((column, promise_of(cell)?))).collect();
    let is_heading = !secret.is_empty() && cells.iter().all(|cell| cell.len() <= MAX_HEADING_BYTES);
    is_heading.then_some(Heading { sign, columns: cells.len(), secret })
}

/// The cells of a line without what encloses them.
fn cells(line: &str, sign: char) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    line.split(sign).map(move |cell| {
        let start = at;
        at += cell.len() + sign.len_utf8();
        let enclosing = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '*');
        let start = start + cell.len() - cell.trim_start_matches(enclosing).len();
        start..start + cell.trim_matches(enclosing).len()
    })
}
