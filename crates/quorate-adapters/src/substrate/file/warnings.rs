//! Suspicious places in a readable journal: text that belongs to no turn, duplicate ids, a turn that was cut off. Only the
//! newest part is checked, where it still matters.

use std::collections::HashMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use quorate_protocol::Name;

use super::format::{self, RawTurn, Scanner};
use quorate_kernel::files;

/// How much of the journal's end is checked, in bytes.
const TAIL_BYTES: u64 = 1024 * 1024;
/// How many places one warning names.
const MAX_NAMED: usize = 3;

/// The warnings for a journal. A file that cannot be read yields none: reading it reports the error.
pub(super) fn for_journal(path: &Path) -> Vec<String> {
    let messages = Tail::read_from(path).and_then(|tail| tail.messages()).unwrap_or_default();
    messages.into_iter().map(|message| format!("the journal {}: {message}", path.display())).collect()
}

/// The end of a journal, from the beginning of a line on.
struct Tail {
    /// Its offset in the file.
    from: u64,
    text: Vec<u8>,
}

impl Tail {
    fn read_from(path: &Path) -> Option<Self> {
        let mut file = files::open(path).ok()?;
        let from = file.metadata().ok()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(from)).ok()?;
        let mut text = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut text).ok()?;
        let skipped = match from {
            0 => 0,
            _ => text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1),
        };
        text.drain(..skipped);
        Some(Tail { from: from + skipped as u64, text })
    }

    fn messages(&self) -> Option<Vec<String>> {
        let mut scanner = Scanner::new(&self.text[..], self.from);
        let (mut first, mut lookalikes, mut strays) = (None, Vec::new(), Vec::new());
        let (mut ids, mut duplicates, mut end) = (HashMap::<Name, u64>::new(), Vec::new(), None);
        while let Some(raw) = scanner.next().ok()? {
            first.get_or_insert(raw.offset);
            let Ok(entry) = raw.parse() else { continue };
            if entry.has_stray_text {
                strays.push(raw.offset);
            }
            // The id proves the content, even if a line looks like a header.
            if entry.has_stray_text || !raw.header.proves(&entry.turn.content) {
                lookalikes.extend(self.lookalikes(&raw));
            }
            if entry.has_cut_header {
                let line = self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let at = self.from + line as u64;
                lookalikes.retain(|lookalike| *lookalike != at);
                let position = self.describe_position(at);
                end =
                    Some(format!("it ends at {position} with a header that was cut off; that turn is lost"));
            } else if entry.pending && !raw.body.is_empty() {
                end = Some(format!(
                    "the last turn, `{}` of `{}` at {}, was cut off, so its text does not count as an answer",
                    raw.header.id,
                    raw.header.participant,
                    self.describe_position(raw.offset)
                ));
            }
            if let Some(before) = ids.insert(entry.turn.id.clone(), raw.offset) {
                duplicates.push((entry.turn.id, before, raw.offset));
            }
        }
        let mut messages = Vec::new();
        if self.from == 0 {
            let before = &self.text[..first.map_or(self.text.len(), |first| first as usize)];
            let line = format::first_text_line(before);
            messages.extend(line.map(|line| match first {
                None => format!(
                    "it has text (line {line}) and no turn, so that it is probably not a journal; nothing is appended to it"
                ),
                Some(_) => format!("the text before the first turn (line {line}) belongs to no turn"),
            }));
            if first.is_some() {
                lookalikes.splice(0..0, header_lookalikes(before, 0));
            }
        }
        if !lookalikes.is_empty() {
            messages.push(format!(
                "what looks like a header at {} is malformed and begins no turn; a header is `=== TURN id=… participant=… \
                 ts=… ===`, in this order and without white space in its words",
                self.describe_positions(&lookalikes)
            ));
        }
        if !strays.is_empty() {
            messages.push(format!(
                "after the turn at {} there is text without a header, which belongs to no turn; add a header",
                self.describe_positions(&strays)
            ));
        }
        messages.extend(duplicates.into_iter().take(MAX_NAMED).map(|(id, before, at)| {
            format!(
                "the turn at {} has the id `{id}` of the turn at {}, and of two turns with one id one alone is answered; \
                 give it another id",
                self.describe_position(at),
                self.describe_position(before)
            )
        }));
        messages.extend(end);
        Some(messages)
    }

    /// The lines of a turn that look like headers.
    fn lookalikes(&self, raw: &RawTurn<'_>) -> Vec<u64> {
        let header = &self.text[(raw.offset - self.from) as usize..];
        let header = header.iter().position(|byte| *byte == b'\n').map_or(header.len(), |at| at + 1);
        header_lookalikes(raw.body, raw.offset + header as u64)
    }

    /// A position in words: a line number, or an offset.
    fn describe_position(&self, at: u64) -> String {
        match self.from {
            0 => {
                let before = &self.text[..at as usize];
                format!("line {}", 1 + before.iter().filter(|byte| **byte == b'\n').count())
            }
            _ => format!("byte {at}"),
        }
    }

    fn describe_positions(&self, places: &[u64]) -> String {
        let mut positions: Vec<String> =
            places.iter().take(MAX_NAMED).map(|at| self.describe_position(*at)).collect();
        if places.len() > MAX_NAMED {
            positions.push(format!("{} more", places.len() - MAX_NAMED));
        }
        match &positions[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => positions.concat(),
        }
    }
}

/// The offsets of the lines that look like headers in a text that begins at an offset; not of those that are marked as cut
/// off.
fn header_lookalikes(text: &[u8], from: u64) -> Vec<u64> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').peekable();
    let (mut at, mut found) = (from, Vec::new());
    while let Some(line) = lines.next() {
        if format::is_like_header(line) && !lines.peek().is_some_and(|next| format::is_cut_mark(next)) {
            found.push(at);
        }
        at += line.len() as u64;
    }
    found
}
