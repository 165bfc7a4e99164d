//! Reads a stretch of the journal turn by turn, with at most one of them in memory.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use super::disk;
use super::error::JournalError;
use super::format::{self, Body, Entry, Header, ParseError};

const BUFFER_BYTES: usize = 64 * 1024;

/// The line of a turn's header, counted from 1; of the last one, if several turns have the id.
pub(super) fn line_of(journal: &Path, id: &str) -> Option<usize> {
    let file = BufReader::with_capacity(BUFFER_BYTES, disk::open(journal).ok()?);
    let mut found = None;
    for (at, line) in file.split(b'\n').enumerate() {
        let line = line.ok()?;
        let bom = if at == 0 { format::byte_order_mark(&line) } else { 0 };
        let header = format::parse_header(&line[bom..]).ok().flatten();
        found = header.filter(|header| &*header.id == id).map(|_| at + 1).or(found);
    }
    found
}

/// A turn and the offset of its header.
pub(super) struct ScannedTurn {
    pub(super) offset: u64,
    pub(super) entry: Entry,
}

/// The turns of a stretch, which must begin with a header or at the journal's start.
pub(super) struct Scan<'a> {
    lines: BufReader<FileRange<'a>>,
    /// The offset of the next line.
    at: u64,
    line: Vec<u8>,
    body: Vec<u8>,
    next: Option<OpenHeader>,
}

struct OpenHeader {
    offset: u64,
    header: Header,
    /// Whether the header's line has its line feed.
    line_ended: bool,
}

impl<'a> Scan<'a> {
    /// Scans from one offset to another one, which counts as the end of the journal.
    pub(super) fn new(file: &'a File, from: u64, to: u64) -> Self {
        Scan::buffered(file, from, to, BUFFER_BYTES)
    }

    /// The same, with a given buffer size.
    pub(super) fn buffered(file: &'a File, from: u64, to: u64, size: usize) -> Self {
        let stretch = FileRange { file, at: from, to };
        let lines = BufReader::with_capacity(size, stretch);
        Scan { lines, at: from, line: Vec::new(), body: Vec::new(), next: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<ScannedTurn>, JournalError> {
        self.body.clear();
        loop {
            self.line.clear();
            let offset = self.at;
            let read = self.lines.read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return self.next.take().map(|header| self.finish_turn(header, true)).transpose();
            }
            self.at += read as u64;
            let line_ended = self.line.ends_with(b"\n");
            let bom = if offset == 0 { format::byte_order_mark(&self.line) } else { 0 };
            let line = &self.line[bom..read - usize::from(line_ended)];
            let header = format::parse_header(line)
                .map_err(|byte| JournalError::NotUtf8(offset + (bom + byte) as u64))?;
            match header {
                Some(header) => {
                    let before = self.next.replace(OpenHeader { offset, header, line_ended });
                    if let Some(before) = before {
                        return self.finish_turn(before, false).map(Some);
                    }
                }
                // Text before the first header belongs to no turn.
                None if self.next.is_some() => self.body.extend_from_slice(&self.line),
                None => {}
            }
        }
    }

    fn finish_turn(&self, open: OpenHeader, last: bool) -> Result<ScannedTurn, JournalError> {
        let body = Body { text: &self.body, is_last: last, header_line_ended: open.line_ended };
        let header = open.header;
        let entry = format::parse_turn(&header, &body).map_err(|unreadable| {
            let end = if last { self.at } else { self.at - self.line.len() as u64 };
            let begin = end - self.body.len() as u64;
            match unreadable {
                ParseError::Text(byte) => JournalError::NotUtf8(begin + byte as u64),
                ParseError::Note(error) => {
                    JournalError::UnreadableNote { byte: begin, turn: header.id.clone(), error }
                }
            }
        })?;
        Ok(ScannedTurn { offset: open.offset, entry })
    }
}

/// A stretch of a file, independent of the file's cursor.
struct FileRange<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for FileRange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let remaining = usize::try_from(self.to.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let size = buffer.len().min(remaining);
        let read = disk::read_at(self.file, &mut buffer[..size], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
