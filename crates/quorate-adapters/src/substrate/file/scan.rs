//! Reading a stretch of the journal turn by turn, never more than one of them at a time.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};

use super::format::{self, Body, Entry, Header, Unreadable};
use super::trouble::Trouble;

/// How much is read at once.
const BUFFER: usize = 64 * 1024;

/// A turn and where its header begins.
pub(super) struct Found {
    pub(super) offset: u64,
    pub(super) entry: Entry,
}

/// The turns of a stretch that begins with a header, or with the journal.
pub(super) struct Scan<'a> {
    lines: BufReader<Stretch<'a>>,
    /// Where the next line begins.
    at: u64,
    line: Vec<u8>,
    body: Vec<u8>,
    next: Option<Begun>,
}

struct Begun {
    offset: u64,
    header: Header,
    /// Whether the header's line is ended.
    ended: bool,
}

impl<'a> Scan<'a> {
    /// From one offset up to another one, which is taken for the end of the journal.
    pub(super) fn of(file: &'a File, from: u64, to: u64) -> Self {
        Scan::buffered(file, from, to, BUFFER)
    }

    /// The same, with a buffer of this size.
    pub(super) fn buffered(file: &'a File, from: u64, to: u64, size: usize) -> Self {
        let stretch = Stretch { file, at: from, to };
        let lines = BufReader::with_capacity(size, stretch);
        Scan { lines, at: from, line: Vec::new(), body: Vec::new(), next: None }
    }

    pub(super) fn next(&mut self) -> Result<Option<Found>, Trouble> {
        self.body.clear();
        loop {
            self.line.clear();
            let offset = self.at;
            let read = self.lines.read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return self.next.take().map(|begun| self.found(begun, true)).transpose();
            }
            self.at += read as u64;
            let ended = self.line.ends_with(b"\n");
            let mark = if offset == 0 { format::byte_order_mark(&self.line) } else { 0 };
            let line = &self.line[mark..read - usize::from(ended)];
            let header = format::header(line).map_err(|byte| Trouble::Text(offset + (mark + byte) as u64))?;
            match header {
                Some(header) => {
                    let before = self.next.replace(Begun { offset, header, ended });
                    if let Some(before) = before {
                        return self.found(before, false).map(Some);
                    }
                }
                // What stands before the first header is nobody's.
                None if self.next.is_some() => self.body.extend_from_slice(&self.line),
                None => {}
            }
        }
    }

    fn found(&self, begun: Begun, last: bool) -> Result<Found, Trouble> {
        let body = Body { text: &self.body, last, begun: begun.ended };
        let header = begun.header;
        let entry = format::read(&header, &body).map_err(|unreadable| {
            let end = if last { self.at } else { self.at - self.line.len() as u64 };
            let begin = end - self.body.len() as u64;
            match unreadable {
                Unreadable::Text(byte) => Trouble::Text(begin + byte as u64),
                Unreadable::Note(error) => Trouble::Note { byte: begin, turn: header.id.clone(), error },
            }
        })?;
        Ok(Found { offset: begun.offset, entry })
    }
}

/// A stretch of a file, whatever others do with its cursor.
struct Stretch<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl Read for Stretch<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.to.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        let read = super::disk::read_at(self.file, &mut buffer[..size], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
