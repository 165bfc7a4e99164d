//! Reads and writes the journal's text.
//!
//! The public format: a header line `=== TURN id=… participant=… ts=… ===`, then the content, then a line feed if the
//! content does not end with one. The public reader takes every other line for content and drops all line feeds at the
//! end. Quorate's additions, so that a turn is read back unchanged:
//!
//! - One line `<!-- quorate: {json} -->` right after the header, if there is a stamp or metadata, or if the content ends
//!   with line feeds. It has the length of the content in bytes and its number of line feeds, which reveal a turn that
//!   was cut off, and the number of line feeds at its end. Every `>` in it is written `\u003e`.
//! - A content line that begins with any number of `\` and then with `=== TURN` or `<!-- quorate:` is written with one
//!   more `\`.
//! - The next append marks a turn that was cut off with the line `<!-- quorate: {"torn":true} -->` at its end. A cut-off
//!   line that belongs to no turn (a header, one of these marks) is followed by `<!-- quorate: {"cut":1} -->`, which
//!   tells how many lines before it are not part of the content.
//!
//! A header line may end with a carriage return, as some editors and programs write it: then a carriage return at the end
//! of each line of that turn is not part of the content. Quorate ends lines with line feeds alone. A byte order mark
//! before the first line is ignored.

use std::borrow::Cow;

use quorate_kernel::conversation::{Stamp, Turn};
use quorate_kernel::ports::substrate::IdProof;
use quorate_protocol::{Json, Name};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::format;

const OPENING: &str = "=== TURN id=";
const CLOSING: &str = " ===";
/// How a line begins that may be meant as a header.
const HEADER_LIKE: &str = "=== TURN ";
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The prefix of content lines that must be escaped.
const TURN: &str = "=== TURN";
const NOTE: &str = "<!-- quorate:";
const NOTE_OPENING: &str = "<!-- quorate: ";
/// How every note that Quorate writes begins.
const OWN_NOTE_OPENING: &str = r#"<!-- quorate: {"bytes":"#;
const NOTE_CLOSING: &str = " -->";
const TORN: &str = r#"<!-- quorate: {"torn":true} -->"#;
/// The metadata of a turn that was cut off.
const TORN_KEY: &str = "torn";
const CUT: &str = r#"<!-- quorate: {"cut":"#;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: Name,
    pub(super) participant: Name,
    pub(super) timestamp: Name,
    /// Whether its line ends with a carriage return, as those of its turn then do.
    has_carriage_returns: bool,
}

/// The header in a line (without its line feed). A header that is not UTF-8 is an error: the offset of the bad byte.
pub(super) fn parse_header(line: &[u8]) -> Result<Option<Header>, usize> {
    let has_carriage_returns = line.ends_with(b"\r");
    let line = &line[..line.len() - usize::from(has_carriage_returns)];
    if !line.starts_with(OPENING.as_bytes()) || !line.ends_with(CLOSING.as_bytes()) {
        return Ok(None);
    }
    let line = std::str::from_utf8(line).map_err(|error| error.valid_up_to())?;
    let inner = line.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(CLOSING));
    let mut words = inner.unwrap_or_default().split(' ');
    let (Some(id), Some(participant), Some(timestamp), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(None);
    };
    let (Some(participant), Some(timestamp)) =
        (participant.strip_prefix("participant="), timestamp.strip_prefix("ts="))
    else {
        return Ok(None);
    };
    let is_word = |word: &str| !word.is_empty() && !word.contains(is_space);
    Ok([id, participant, timestamp].into_iter().all(is_word).then(|| Header {
        id: id.into(),
        participant: participant.into(),
        timestamp: timestamp.into(),
        has_carriage_returns,
    }))
}

/// Whether the id is that of a turn with this content.
pub(super) fn proves(header: &Header, content: &str) -> bool {
    super::super::turn_id(&header.participant, &header.timestamp, content) == header.id
}

/// What the id of a turn proves. A program that takes no note of line feeds at the end of a text, escapes nothing or ends
/// lines with carriage returns has made the id of the text as it had it. A turn that was cut off has the id of the whole.
pub(super) fn id_proof(turn: &Turn) -> IdProof {
    let proof = super::super::id_proof(turn);
    if proof != IdProof::Broken {
        return proof;
    }
    if turn.stamp.is_none() && turn.meta.get(TORN_KEY) == Some(&Json::Bool(true)) {
        return IdProof::Absent;
    }
    let proves =
        |content: &str| super::super::turn_id(&turn.participant, &turn.timestamp, content) == turn.id;
    let readings =
        [(*turn.content).to_owned(), escape(&turn.content).into_owned(), turn.content.replace('\n', "\r\n")];
    match readings.into_iter().any(|reading| proves_with_line_feeds(reading, MAX_TRAILING_FEEDS, proves)) {
        true => IdProof::Holds,
        false => IdProof::Broken,
    }
}

/// The length of the byte order mark at the beginning of a text.
pub(super) fn byte_order_mark(text: &[u8]) -> usize {
    if text.starts_with(BYTE_ORDER_MARK.as_bytes()) { BYTE_ORDER_MARK.len() } else { 0 }
}

/// Whether a line looks like a header, valid or not.
pub(super) fn is_like_header(line: &[u8]) -> bool {
    line[byte_order_mark(line)..].starts_with(HEADER_LIKE.as_bytes())
}

/// White space by the public reader's `\s`.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// The JSON in the line after the header.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    /// The length of the content, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The number of line feeds in the content.
    #[serde(default)]
    lines: usize,
    /// The number of line feeds at the end of the content.
    #[serde(default, skip_serializing_if = "is_zero")]
    newlines: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stamp: Option<Stamp>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    meta: Map<String, Json>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn line_feeds(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The journal's text of a turn.
pub(super) fn render(turn: &Turn) -> Result<String, serde_json::Error> {
    let Turn { id, participant, timestamp, content, meta, stamp } = turn;
    let mut text = format!("{OPENING}{id} participant={participant} ts={timestamp}{CLOSING}\n");
    let newlines = content.len() - content.trim_end_matches('\n').len();
    if stamp.is_some() || !meta.is_empty() || newlines > 0 {
        let note = Note {
            bytes: Some(content.len()),
            lines: line_feeds(content),
            newlines,
            stamp: stamp.clone(),
            meta: meta.clone(),
        };
        // In JSON, `>` occurs only in strings.
        let note = serde_json::to_string(&note)?.replace('>', "\\u003e");
        text.extend([NOTE_OPENING, &note, NOTE_CLOSING, "\n"]);
    }
    text.push_str(&escape(content));
    if newlines == 0 {
        text.push('\n');
    }
    Ok(text)
}

/// What must be appended to the end of the journal before the next turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TailRepair {
    /// Its last line has no line feed.
    pub(super) line_feed: bool,
    /// The number of lines at its end that are not part of the last turn.
    pub(super) cut_lines: usize,
    /// The last turn was cut off.
    pub(super) torn: bool,
}

impl TailRepair {
    /// The text that repairs the end.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if self.line_feed {
            text.push('\n');
        }
        if self.cut_lines > 0 {
            text.push_str(&format!("{CUT}{}}}{NOTE_CLOSING}\n", self.cut_lines));
        }
        if self.torn {
            text.push_str(TORN);
            text.push('\n');
        }
        text
    }
}

/// A turn as read from the journal.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) turn: Turn,
    /// Whether only its header exists: it is being written, or was cut off at once. It is shown when something follows it.
    pub(super) pending: bool,
    /// Whether text follows that belongs to no turn: a program has appended text without a header.
    pub(super) has_stray_text: bool,
    pub(super) tail_repair: TailRepair,
}

/// The text between two headers.
pub(super) struct Body<'a> {
    pub(super) text: &'a [u8],
    /// Whether it is at the journal's end.
    pub(super) is_last: bool,
    /// Whether the header's line has its line feed.
    pub(super) header_line_ended: bool,
}

#[derive(Debug)]
pub(super) enum ParseError {
    /// The body is not UTF-8 at this offset.
    Text(usize),
    /// It has a complete note that cannot be read: it may hold a participant's state, so it is not shown as content.
    Note(serde_json::Error),
}

pub(super) fn parse_turn(header: &Header, body: &Body<'_>) -> Result<Entry, ParseError> {
    let ended = body.text.last().map_or(body.header_line_ended, |byte| *byte == b'\n');
    let open = body.is_last && !ended;
    // A text that was cut off may end within a character, with or without its mark.
    let (text, split) = match std::str::from_utf8(body.text) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(error) => {
            let rest = &body.text[error.valid_up_to()..];
            let prefix_len = rest.iter().take_while(|byte| **byte >= 0x80).count().min(3);
            let is_begun =
                std::str::from_utf8(&rest[..prefix_len]).is_err_and(|error| error.error_len().is_none());
            let split = body.is_last && is_begun && may_follow_a_cut(&rest[prefix_len..]);
            let lossy = String::from_utf8_lossy(body.text);
            match split || lossy.lines().any(|line| line == TORN || parse_cut_mark(line).is_some()) {
                true => (lossy, split),
                false => return Err(ParseError::Text(error.valid_up_to())),
            }
        }
    };
    let text = if header.has_carriage_returns { strip_carriage_returns(&text) } else { text };
    if let Some(entry) = parse_plain(header, body, &text) {
        return Ok(entry);
    }
    let mut lines: Vec<&str> = text.split('\n').collect();
    let first = lines[0];
    let (note, flaw) = match parse_note(first) {
        Ok(note) => (note, None),
        Err(error) => (None, Some(error)),
    };
    // A note that was cut off is neither note nor content.
    let broken = note.is_none() && is_cut_note(first);
    // Another program's content may begin like a note. The id then proves that it is content.
    let like_a_note = flaw.is_some() || first.starts_with(OWN_NOTE_OPENING);
    let is_note = broken
        && like_a_note
        && !proves_any(&lines, [join_content(&lines, None), lines.join("\n")], |content| {
            proves(header, content)
        });
    if note.is_some() {
        lines.remove(0);
    }
    let marks = strip_marks(&mut lines);
    if let Some(error) = flaw.filter(|_| is_note && !marks.torn && !first.contains('\0')) {
        return Err(ParseError::Note(error));
    }
    let mut tail_repair = TailRepair { line_feed: open, ..TailRepair::default() };
    let is_whole = |lines: &[&str]| {
        let content = join_content(lines, note.as_ref());
        let bytes = note.as_ref().and_then(|note| note.bytes);
        bytes == Some(content.len()) || proves(header, &content)
    };
    let mut torn = marks.torn;
    let mut headed = false;
    if body.is_last {
        // A repair that was cut off after its first byte leaves a line feed behind the text that it repairs.
        let end = (!open && lines.len() > 2 && lines.last() == Some(&"")).then(|| lines.pop());
        let short = |lines: &[&str]| {
            let bytes = note.as_ref().and_then(|note| note.bytes);
            bytes.is_some_and(|bytes| join_content(lines, note.as_ref()).len() < bytes)
        };
        let mark = match &lines[..] {
            [rest @ .., mark] if open && is_cut_mark(mark) && (note.is_some() || !rest.is_empty()) => {
                // Any few bytes may be the beginning of a mark, but only behind other cut-off text.
                let header = |rest: &[&str]| {
                    rest.split_last().is_some_and(|(last, rest)| is_cut_header(last) && is_whole(rest))
                };
                split || mark.len() > "<!--".len() || header(rest) || short(rest)
            }
            _ => false,
        };
        if mark {
            lines.pop();
            tail_repair.cut_lines += 1;
        }
        let header = lines.len() > 1 && lines.last().is_some_and(|line| is_cut_header(line));
        let sure = open && lines.last().is_some_and(|line| line.starts_with(HEADER_LIKE));
        if header && (sure || marks.any || is_whole(&lines[..lines.len() - 1])) {
            lines.pop();
            tail_repair.cut_lines += 1;
            headed = true;
        } else if mark {
            // The beginning of a mark without a cut-off header: the mark of a turn that was cut off.
            torn = true;
        }
        if tail_repair.cut_lines == 0 {
            lines.extend(end.flatten());
        }
    }
    if is_note || broken && (marks.torn || (open && lines.len() == 1)) {
        lines.retain(|line| !std::ptr::eq(*line, first));
        torn = true;
    }
    let mut content = join_content(&lines, note.as_ref());
    let note = note.unwrap_or_default();
    let has_stray_text = !marks.torn && is_stray(header, &note, &content);
    if has_stray_text {
        // The turn is complete, whatever was cut off behind it.
        content.truncate(note.bytes.unwrap_or_default());
        torn = false;
        // Half a character can be read once it is marked.
        tail_repair.cut_lines = tail_repair.cut_lines.max(usize::from(split));
    } else if body.is_last && !torn {
        let empty = open && !body.text.is_empty() && body.text.iter().all(|byte| *byte == 0);
        torn =
            empty || (split && !headed) || is_truncated(&content, &note, open && tail_repair.cut_lines == 0);
    }
    tail_repair.torn = torn && !marks.torn;
    let content = match torn {
        true => content.trim_end_matches(['\n', '\0']).to_owned(),
        false => content,
    };
    let mut meta = note.meta;
    if torn {
        meta.insert(TORN_KEY.to_owned(), Json::Bool(true));
    }
    let pending = body.is_last && (body.text.is_empty() || (tail_repair.torn && content.is_empty()));
    let turn = build_turn(header, content, meta, note.stamp.filter(|_| !torn));
    Ok(Entry { turn, pending, has_stray_text, tail_repair })
}

/// Reads a turn that others follow and that has nothing unusual in it, which most do.
fn parse_plain(header: &Header, body: &Body<'_>, text: &str) -> Option<Entry> {
    let (first, rest) = text.split_once('\n')?;
    let note = parse_note(first).ok()?;
    let rest = if note.is_some() { rest } else { text };
    if body.is_last || !is_plain(rest) {
        return None;
    }
    let note = note.unwrap_or_default();
    let mut content = rest.trim_end_matches('\n').to_owned();
    content.extend(std::iter::repeat_n('\n', note.newlines));
    let has_stray_text = is_stray(header, &note, &content);
    if has_stray_text {
        content.truncate(note.bytes.unwrap_or_default());
    }
    let turn = build_turn(header, content, note.meta, note.stamp);
    Some(Entry { turn, pending: false, has_stray_text, tail_repair: TailRepair::default() })
}

/// Whether the content consists of the whole content by its note, proved by the id, and more lines.
fn is_stray(header: &Header, note: &Note, content: &str) -> bool {
    let Some((original, rest)) = note.bytes.and_then(|bytes| content.split_at_checked(bytes)) else {
        return false;
    };
    // Words that were added to its last line change the content.
    let starts_line = original.ends_with('\n') || rest.starts_with('\n');
    starts_line && !rest.is_empty() && proves(header, original)
}

/// The lines without carriage returns at their ends.
fn strip_carriage_returns(text: &str) -> Cow<'static, str> {
    let mut text = text.replace("\r\n", "\n");
    if text.ends_with('\r') {
        text.pop();
    }
    text.into()
}

fn build_turn(header: &Header, content: String, meta: Map<String, Json>, stamp: Option<Stamp>) -> Turn {
    Turn {
        id: header.id.clone(),
        participant: header.participant.clone(),
        timestamp: header.timestamp.clone(),
        content: content.into(),
        meta,
        stamp,
    }
}

/// Whether the content at the journal's end is shorter than its note tells. A line that a person shortened keeps the
/// number of lines; a write that was cut off leaves fewer, or one without a line feed.
fn is_truncated(content: &str, note: &Note, open: bool) -> bool {
    let content = if open { content.trim_end_matches('\0') } else { content };
    note.bytes.is_some_and(|bytes| content.len() < bytes && (open || line_feeds(content) < note.lines))
}

/// The note in a line; an error if the line has the form of a note and cannot be read.
fn parse_note(line: &str) -> Result<Option<Note>, serde_json::Error> {
    let json = line.strip_prefix(NOTE_OPENING).and_then(|rest| rest.strip_suffix(NOTE_CLOSING));
    let json = json.filter(|_| line != TORN && parse_cut_mark(line).is_none());
    json.map(serde_json::from_str).transpose()
}

/// The number of lines before it that a mark declares as cut off.
pub(super) fn parse_cut_mark(line: &str) -> Option<usize> {
    let number = line.strip_prefix(CUT)?.strip_suffix("} -->")?;
    number.parse().ok()
}

/// The marks in a body.
#[derive(Default)]
struct TailMarks {
    torn: bool,
    any: bool,
}

/// Removes the marks from a body, with the lines that they declare as cut off.
fn strip_marks(lines: &mut Vec<&str>) -> TailMarks {
    let mut marks = TailMarks::default();
    if !lines.iter().any(|line| line.starts_with(NOTE_OPENING)) {
        return marks;
    }
    let mut content: Vec<&str> = Vec::with_capacity(lines.len());
    for line in lines.iter() {
        if *line == TORN {
            marks = TailMarks { torn: true, any: true };
        } else if let Some(number) = parse_cut_mark(line) {
            marks.any = true;
            content.truncate(content.len().saturating_sub(number));
        } else {
            content.push(line);
        }
    }
    *lines = content;
    marks
}

// Remains of a write that was cut off. Some file systems set a file's new length before they write its new bytes.

/// Whether a line is the beginning of a header, or empty.
pub(super) fn is_cut_header(line: &str) -> bool {
    let prefix = line.trim_end_matches('\0');
    !line.is_empty() && (OPENING.starts_with(prefix) || prefix.starts_with(OPENING))
}

/// Whether a line is the beginning of a mark.
fn is_cut_mark(line: &str) -> bool {
    let prefix = line.trim_end_matches('\0');
    let number = |rest: &str| {
        " -->".starts_with(rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('}'))
    };
    !prefix.is_empty()
        && (TORN.starts_with(prefix)
            || CUT.starts_with(prefix)
            || prefix.strip_prefix(CUT).is_some_and(number))
}

/// Whether a text can follow a character that was cut off: it is empty, or the beginning of a repair.
fn may_follow_a_cut(rest: &[u8]) -> bool {
    let is_mark = |mark: &[u8]| mark.is_empty() || std::str::from_utf8(mark).is_ok_and(is_cut_mark);
    rest.iter().all(|byte| *byte == 0) || rest.strip_prefix(b"\n").is_some_and(is_mark)
}

/// Whether the line after the header is the beginning of a note, and no mark.
fn is_cut_note(line: &str) -> bool {
    let prefix = line.trim_end_matches('\0');
    let note = prefix.starts_with(NOTE_OPENING) || (NOTE_OPENING.starts_with(prefix) && !prefix.is_empty());
    note && line != TORN && parse_cut_mark(line).is_none()
}

fn join_content(lines: &[&str], note: Option<&Note>) -> String {
    let mut text = lines.join("\n");
    text.truncate(text.trim_end_matches('\n').len());
    let mut text = unescape(text);
    text.extend(std::iter::repeat_n('\n', note.map_or(0, |note| note.newlines)));
    text
}

/// The number of `\` at the beginning of a line whose rest must be escaped.
fn backslashes(line: &str) -> Option<usize> {
    let rest = line.trim_start_matches('\\');
    (rest.starts_with(TURN) || rest.starts_with(NOTE)).then(|| line.len() - rest.len())
}

fn is_plain(text: &str) -> bool {
    !text.contains(TURN) && !text.contains(NOTE)
}

fn escape(content: &str) -> Cow<'_, str> {
    if is_plain(content) {
        return Cow::Borrowed(content);
    }
    let line = |line| match backslashes(line) {
        Some(_) => Cow::Owned(format!("\\{line}")),
        None => Cow::Borrowed(line),
    };
    Cow::Owned(content.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

fn unescape(text: String) -> String {
    if is_plain(&text) {
        return text;
    }
    let line = |line| match backslashes(line) {
        Some(1..) => &line[1..],
        _ => line,
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The first line (from 1) that is neither blank nor a heading, a comment, or a header that was cut off. A file without
/// turns that has such a line is not a journal.
pub(super) fn first_text_line(text: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(&text[format::byte_order_mark(text)..]);
    let mut commented = false;
    text.lines()
        .position(|line| !format::is_cut_header(line) && has_text(line, &mut commented))
        .map(|at| at + 1)
}

/// Whether a line has words outside of comments and is not a heading.
fn has_text(line: &str, commented: &mut bool) -> bool {
    let mut rest = line.trim();
    loop {
        if *commented {
            let Some((_, behind)) = rest.split_once("-->") else { return false };
            (*commented, rest) = (false, behind.trim_start());
        }
        match rest.strip_prefix("<!--") {
            Some(comment) => (*commented, rest) = (true, comment),
            None => return !rest.is_empty() && !is_heading(rest),
        }
    }
}

fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    title.len() < line.len() && (title.is_empty() || title.starts_with([' ', '\t']))
}

/// The most line feeds at the end of a content that are tried.
pub(super) const MAX_TRAILING_FEEDS: usize = 16;

/// Whether an id proves that all lines are the content, in one of several readings; `proves` says whether it is that of a
/// turn with such a content. Line feeds at the content's end cannot be distinguished from those between turns, so each
/// number of them is tried.
pub(super) fn proves_any(lines: &[&str], readings: [String; 2], proves: impl Fn(&str) -> bool) -> bool {
    let feeds = lines.iter().rev().take_while(|line| line.is_empty()).count().min(MAX_TRAILING_FEEDS);
    readings.into_iter().any(|reading| proves_with_line_feeds(reading, feeds, &proves))
}

/// Whether an id proves a content with up to so many line feeds at its end.
pub(super) fn proves_with_line_feeds(
    mut content: String,
    feeds: usize,
    proves: impl Fn(&str) -> bool,
) -> bool {
    content.truncate(content.trim_end_matches('\n').len());
    (0..=feeds).any(|_| {
        let proven = proves(&content);
        content.push('\n');
        proven
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_comments_are_no_words() {
        for text in [
            "",
            "\n \n",
            "# Launch",
            "\u{feff}# Launch\r\n\r\n###\r\n",
            "<!-- a --> <!-- b -->\n<!--\nc\n\n--> \n# d\n",
            "<!-- never closed\nx",
            "=== TURN id=t_5f",
            "===",
            "\0\0\0",
        ] {
            assert_eq!(first_text_line(text.as_bytes()), None, "{text:?}");
        }
        for (text, line) in [
            ("hello", 1),
            ("# Launch\n\nhello\n", 3),
            ("#!/bin/sh\n", 1),
            ("<!-- a --> b", 1),
            ("<!--\na\n--> b", 3),
            ("schema: agentruntimes/v1\n", 1),
            ("---\n", 1),
        ] {
            assert_eq!(first_text_line(text.as_bytes()), Some(line), "{text:?}");
        }
        assert_eq!(first_text_line(b"\n\xff"), Some(2));
    }
}
