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
//! - The next append marks a turn that was cut off with the line `<!-- quorate: {"torn":true} -->` at its end. A header
//!   that was cut off is followed by `<!-- quorate: {"cut":1} -->`, which tells how many lines before it are not part of
//!   the content.
//!
//! A header line may end with a carriage return, as some editors and programs write it: then a carriage return at the end
//! of each line of that turn is not part of the content. Quorate ends lines with line feeds alone. A byte order mark
//! before the first line is ignored. Bytes that are not UTF-8 are read as U+FFFD.

use std::borrow::Cow;
use std::io::{self, BufRead};

use quorate_kernel::conversation::{Stamp, Turn};
use quorate_kernel::ports::substrate::IdProof;
use quorate_protocol::Json;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::super::turn_id;

const OPENING: &str = "=== TURN id=";
const CLOSING: &str = " ===";
/// How a line begins that may be meant as a header.
const HEADER_LIKE: &str = "=== TURN ";
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The prefixes of content lines that must be escaped.
const TURN: &str = "=== TURN";
const NOTE: &str = "<!-- quorate:";
const NOTE_OPENING: &str = "<!-- quorate: ";
/// How every note that Quorate writes begins.
const OWN_NOTE_OPENING: &str = r#"<!-- quorate: {"bytes":"#;
const NOTE_CLOSING: &str = " -->";
const TORN: &str = r#"<!-- quorate: {"torn":true} -->"#;
const CUT: &str = r#"<!-- quorate: {"cut":"#;
/// The metadata of a turn that was cut off.
const TORN_KEY: &str = "torn";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header<'a> {
    pub(super) id: &'a str,
    pub(super) participant: &'a str,
    pub(super) timestamp: &'a str,
    /// Whether its line ends with a carriage return, as those of its turn then do.
    has_carriage_returns: bool,
}

impl<'a> Header<'a> {
    /// The header in a line.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        if !line.starts_with(OPENING.as_bytes()) {
            return None;
        }
        let line = std::str::from_utf8(line).ok()?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let (line, has_carriage_returns) = match line.strip_suffix('\r') {
            Some(line) => (line, true),
            None => (line, false),
        };
        let mut words = line.strip_prefix(OPENING)?.strip_suffix(CLOSING)?.split(' ');
        let id = words.next()?;
        let participant = words.next()?.strip_prefix("participant=")?;
        let timestamp = words.next()?.strip_prefix("ts=")?;
        let is_word = |word: &str| !word.is_empty() && !word.contains(is_space);
        (words.next().is_none() && [id, participant, timestamp].into_iter().all(is_word)).then_some(Header {
            id,
            participant,
            timestamp,
            has_carriage_returns,
        })
    }

    /// Whether the id is that of a turn with this content.
    pub(super) fn proves(&self, content: &str) -> bool {
        *turn_id(self.participant, self.timestamp, content) == *self.id
    }
}

/// White space by the public reader's `\s`.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Whether a line looks like a header, valid or not.
pub(super) fn is_like_header(line: &[u8]) -> bool {
    let line = line.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(line);
    line.starts_with(HEADER_LIKE.as_bytes())
}

/// Whether a line is a mark that declares lines before it as cut off.
pub(super) fn is_cut_mark(line: &[u8]) -> bool {
    line.starts_with(CUT.as_bytes())
}

/// Whether a line is the beginning of a header. Some file systems set a file's new length before they write its bytes.
fn is_cut_header(line: &str) -> bool {
    let prefix = line.trim_end_matches('\0');
    !line.is_empty() && (OPENING.starts_with(prefix) || prefix.starts_with(OPENING))
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

/// A turn as read from the journal.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) turn: Turn,
    /// Whether the journal ends within it: it is being written, or was cut off. It is shown when something follows it.
    pub(super) pending: bool,
    /// Whether text follows that belongs to no turn: a program has appended text without a header.
    pub(super) has_stray_text: bool,
    /// Whether the journal's last line is a header that was cut off.
    pub(super) has_cut_header: bool,
    /// What must be appended before the next turn.
    pub(super) repair: String,
}

/// A header and the text up to the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawTurn<'a> {
    /// Where its header begins.
    pub(super) offset: u64,
    pub(super) header: Header<'a>,
    pub(super) body: &'a [u8],
    /// Whether the journal ends with it.
    pub(super) is_last: bool,
    /// Whether its last line has no line feed.
    is_open: bool,
}

/// Splits a text into turns. Text before the first header belongs to no turn.
pub(super) struct Scanner<R> {
    lines: R,
    /// The offset of the next line.
    at: u64,
    header: Vec<u8>,
    body: Vec<u8>,
    /// The line of the next turn's header, and its offset.
    next: Vec<u8>,
    next_offset: u64,
}

impl<R: BufRead> Scanner<R> {
    /// Scans text that begins at this offset of the journal, with a line.
    pub(super) fn new(lines: R, at: u64) -> Self {
        Scanner { lines, at, header: Vec::new(), body: Vec::new(), next: Vec::new(), next_offset: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RawTurn<'_>>> {
        if self.next.is_empty() && !self.read_body()? {
            return Ok(None);
        }
        std::mem::swap(&mut self.header, &mut self.next);
        let offset = self.next_offset;
        let is_last = !self.read_body()?;
        let is_open = is_last && self.body.last().or(self.header.last()) != Some(&b'\n');
        let header = Header::parse(&self.header);
        Ok(header.map(|header| RawTurn { offset, header, body: &self.body, is_last, is_open }))
    }

    /// Reads up to the next header; returns whether there is one.
    fn read_body(&mut self) -> io::Result<bool> {
        self.body.clear();
        self.next.clear();
        loop {
            let (begin, offset) = (self.body.len(), self.at);
            self.at += self.lines.read_until(b'\n', &mut self.body)? as u64;
            let line = &self.body[begin..];
            let mark = if offset == 0 { BYTE_ORDER_MARK } else { "" };
            let line = line.strip_prefix(mark.as_bytes()).unwrap_or(line);
            if Header::parse(line).is_some() {
                self.next.extend_from_slice(line);
                self.next_offset = offset;
                self.body.truncate(begin);
                return Ok(true);
            }
            if self.body.len() == begin {
                return Ok(false);
            }
        }
    }
}

impl RawTurn<'_> {
    /// Whether it may have a key, or is not what it seems.
    pub(super) fn needs_parsing(&self) -> bool {
        self.is_last || self.body.starts_with(NOTE.as_bytes())
    }

    /// Reads the turn.
    ///
    /// # Errors
    /// When its note cannot be read. It may hold a participant's state, so it is not shown as content.
    pub(super) fn parse(&self) -> Result<Entry, serde_json::Error> {
        let header = &self.header;
        // The check is much faster than the replacement.
        let valid = std::str::from_utf8(self.body).map(Cow::Borrowed);
        let mut text = valid.unwrap_or_else(|_| String::from_utf8_lossy(self.body));
        if header.has_carriage_returns {
            let replaced = text.replace("\r\n", "\n");
            text = Cow::Owned(replaced.strip_suffix('\r').unwrap_or(&replaced).to_owned());
        }
        let (first, after_first) = text.split_once('\n').unwrap_or((&text, ""));
        let json =
            first.strip_prefix(NOTE_OPENING).filter(|_| first != TORN && !is_cut_mark(first.as_bytes()));
        let (note, rest): (Option<Note>, &str) = match json.map(|json| json.strip_suffix(NOTE_CLOSING)) {
            Some(Some(json)) => (Some(serde_json::from_str(json)?), after_first),
            // A note that was cut off is not content.
            Some(None) if first.starts_with(OWN_NOTE_OPENING) => (None, after_first),
            _ => (Some(Note::default()), &*text),
        };
        let (rest, is_marked) = strip_marks(rest);
        let is_cut_note = note.is_none();
        let note = note.unwrap_or_default();
        let mut content = join_content(&rest, &note);
        let mut has_cut_header = false;
        if self.is_open
            && let Some((before, last)) = rest.rsplit_once('\n').or(Some(("", &*rest)))
            && is_cut_header(last)
        {
            let before = join_content(before, &note);
            has_cut_header = last.starts_with(HEADER_LIKE) || header.proves(&before);
            if has_cut_header {
                content = before;
            }
        }
        let has_stray_text = !is_marked && is_stray(header, &note, &content);
        if has_stray_text {
            content.truncate(note.bytes.unwrap_or_default());
        }
        let mut turn = Turn {
            id: header.id.into(),
            participant: header.participant.into(),
            timestamp: header.timestamp.into(),
            content: content.into(),
            meta: note.meta,
            stamp: note.stamp,
        };
        // A line that a person shortened keeps the number of lines; a write that was cut off leaves fewer.
        let is_short = note.bytes.is_some_and(|bytes| turn.content.len() < bytes)
            && line_feeds(&turn.content) < note.lines;
        let may_be_cut = self.is_open || self.body.is_empty();
        let is_unproven = may_be_cut && !has_stray_text && id_proof(&turn) == IdProof::Broken;
        let is_torn = !is_marked && (is_cut_note || self.is_last && (is_short || is_unproven));
        if is_marked || is_torn {
            turn.content = turn.content.trim_end_matches(['\n', '\0']).into();
            turn.meta.insert(TORN_KEY.to_owned(), Json::Bool(true));
            turn.stamp = None;
        }
        let mut repair = String::from(if self.is_open { "\n" } else { "" });
        if has_cut_header {
            repair.extend([CUT, "1} -->\n"]);
        }
        if is_torn {
            repair.extend([TORN, "\n"]);
        }
        let pending = self.is_last && (self.body.is_empty() || is_torn);
        Ok(Entry { turn, pending, has_stray_text, has_cut_header, repair })
    }
}

/// Whether the content consists of the whole content by its note, proved by the id, and more lines.
fn is_stray(header: &Header<'_>, note: &Note, content: &str) -> bool {
    let Some((original, rest)) = note.bytes.and_then(|bytes| content.split_at_checked(bytes)) else {
        return false;
    };
    // Words that were added to its last line change the content.
    let starts_line = original.ends_with('\n') || rest.starts_with('\n');
    starts_line && !rest.is_empty() && header.proves(original)
}

/// The text without marks and the lines that they declare as cut off, and whether the turn is marked as cut off.
fn strip_marks(text: &str) -> (Cow<'_, str>, bool) {
    if !text.contains(NOTE_OPENING) {
        return (Cow::Borrowed(text), false);
    }
    let (mut lines, mut is_torn) = (Vec::new(), false);
    for line in text.split('\n') {
        let cut = line.strip_prefix(CUT).and_then(|rest| rest.strip_suffix("} -->")?.parse::<usize>().ok());
        match cut {
            _ if line == TORN => is_torn = true,
            Some(cut) => lines.truncate(lines.len().saturating_sub(cut)),
            None => lines.push(line),
        }
    }
    (Cow::Owned(lines.join("\n")), is_torn)
}

fn join_content(text: &str, note: &Note) -> String {
    let mut content = unescape(text.trim_end_matches('\n')).into_owned();
    content.extend(std::iter::repeat_n('\n', note.newlines));
    content
}

fn is_plain(text: &str) -> bool {
    !text.contains(TURN) && !text.contains(NOTE)
}

/// Whether a line is escaped but for its first `\`, or must be.
fn is_escapable(line: &str) -> bool {
    let rest = line.trim_start_matches('\\');
    rest.starts_with(TURN) || rest.starts_with(NOTE)
}

fn escape(content: &str) -> Cow<'_, str> {
    if is_plain(content) {
        return Cow::Borrowed(content);
    }
    let escaped = content.split('\n').map(|line| match is_escapable(line) {
        true => Cow::Owned(format!("\\{line}")),
        false => Cow::Borrowed(line),
    });
    Cow::Owned(escaped.collect::<Vec<_>>().join("\n"))
}

fn unescape(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n');
    let unescaped = lines.map(|line| line.strip_prefix('\\').filter(|_| is_escapable(line)).unwrap_or(line));
    Cow::Owned(unescaped.collect::<Vec<_>>().join("\n"))
}

/// The most line feeds at the end of a content that are tried.
const MAX_TRAILING_FEEDS: usize = 16;

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
    let readings = [
        Cow::Borrowed(&*turn.content),
        escape(&turn.content),
        Cow::Owned(turn.content.replace('\n', "\r\n")),
    ];
    let proves = |reading: Cow<'_, str>| {
        let mut content = reading.trim_end_matches('\n').to_owned();
        (0..=MAX_TRAILING_FEEDS).any(|_| {
            let proven = turn_id(&turn.participant, &turn.timestamp, &content) == turn.id;
            content.push('\n');
            proven
        })
    };
    match readings.into_iter().any(proves) {
        true => IdProof::Holds,
        false => IdProof::Broken,
    }
}

/// The first line (from 1) that is neither blank nor a heading, a comment, or a header that was cut off. A file without
/// turns that has such a line is not a journal.
pub(super) fn first_text_line(text: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(text);
    let mut commented = false;
    let mut lines = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).lines();
    lines.position(|line| !is_cut_header(line) && has_text(line, &mut commented)).map(|at| at + 1)
}

/// Whether a line has words outside of comments and is not a heading.
fn has_text(line: &str, commented: &mut bool) -> bool {
    let mut rest = line.trim();
    loop {
        if *commented {
            let Some((_, behind)) = rest.split_once(NOTE_CLOSING.trim_start()) else { return false };
            (*commented, rest) = (false, behind.trim_start());
        }
        match rest.strip_prefix("<!--") {
            Some(comment) => (*commented, rest) = (true, comment),
            None => break,
        }
    }
    let title = rest.trim_start_matches('#');
    let is_heading = title.len() < rest.len() && (title.is_empty() || title.starts_with([' ', '\t']));
    !rest.is_empty() && !is_heading
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
