//! Suspicious places in a readable journal: text that belongs to no turn, duplicate ids, a turn that was cut off. Only the
//! newest part is checked, where it still matters.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use quorate_protocol::Name;

use super::disk;
use super::format::{self, Body, Header};

/// How much of the journal's end is checked, in bytes.
const TAIL_BYTES: u64 = 1024 * 1024;
/// How many places one warning names.
const MAX_NAMED: usize = 3;

/// The warnings for a journal. A file that cannot be read yields none: reading it reports the error.
pub(super) fn for_journal(path: &Path) -> Vec<String> {
    let Some(part) = Tail::read_from(path) else { return Vec::new() };
    let messages = Findings::scan(&part).messages(&part);
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
        let file = disk::open_read(path).ok()?;
        let len = file.metadata().ok()?.len();
        let from = len.saturating_sub(TAIL_BYTES);
        let mut text = vec![0; usize::try_from(len - from).ok()?];
        let read = disk::fill_at(&file, &mut text, from).ok()?;
        text.truncate(read);
        let skipped =
            if from == 0 { 0 } else { text.iter().position(|byte| *byte == b'\n').map_or(read, |at| at + 1) };
        text.drain(..skipped);
        Some(Tail { from: from + skipped as u64, text })
    }

    /// Its lines with their line feeds, each with its offset in the part.
    fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.text.split_inclusive(|byte| *byte == b'\n').scan(0, |next, line| {
            let at = *next;
            *next += line.len();
            Some((at, line))
        })
    }

    /// A position in words: a line number, or an offset.
    fn describe_position(&self, at: usize) -> String {
        match self.from {
            0 => format!("line {}", 1 + self.text[..at].iter().filter(|byte| **byte == b'\n').count()),
            from => format!("byte {}", from + at as u64),
        }
    }

    fn describe_positions(&self, places: &[usize]) -> String {
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

/// The findings, by offset in the part.
#[derive(Default)]
struct Findings {
    /// The offset of the first turn.
    first: Option<usize>,
    /// Lines that look like headers but are invalid.
    header_lookalikes: Vec<usize>,
    /// Turns with text after them that belongs to no turn.
    strays: Vec<usize>,
    /// Turns whose id occurred before: the id, the last earlier turn with it, and this turn.
    duplicate_ids: Vec<(Name, usize, usize)>,
    /// The last turn, if it was cut off.
    torn_turn: Option<(Header, usize)>,
    /// The offset of a header that was cut off at the end.
    cut_header: Option<usize>,
}

impl Findings {
    fn scan(part: &Tail) -> Self {
        let mut looked = Findings::default();
        let mut ids = HashMap::new();
        let mut current: Option<(Header, usize)> = None;
        // The start of the current turn's body, and its lines that look like headers.
        let (mut body, mut alike): (usize, Vec<usize>) = (0, Vec::new());
        let mut starts = Vec::new();
        for (at, line) in part.lines() {
            starts.push(at);
            let bom = if part.from == 0 && at == 0 { format::byte_order_mark(line) } else { 0 };
            let content = &line[bom..line.len() - usize::from(line.ends_with(b"\n"))];
            if let Ok(Some(header)) = format::parse_header(content) {
                looked.check_turn(part, current.as_ref(), body..at, &alike);
                looked.first.get_or_insert(at);
                if let Some(before) = ids.insert(header.id.clone(), at) {
                    looked.duplicate_ids.push((header.id.clone(), before, at));
                }
                current = Some((header, at));
                (body, alike) = (at + line.len(), Vec::new());
            } else if format::is_like_header(content) {
                alike.push(at);
            } else if let Some(lines) = cut_mark_lines(content) {
                // Lines that are marked as cut off belong to no turn.
                let first = starts.len().saturating_sub(lines + 1);
                alike.retain(|at| *at < starts[first]);
            }
        }
        looked.check_turn(part, current.as_ref(), body..part.text.len(), &alike);
        looked
    }

    /// Checks a turn at the end of its body, or the text before the first turn.
    fn check_turn(
        &mut self,
        part: &Tail,
        current: Option<&(Header, usize)>,
        body: Range<usize>,
        alike: &[usize],
    ) {
        let Some((header, at)) = current else {
            // In a part that does not begin with the journal this is the rest of a turn.
            if part.from == 0 {
                self.header_lookalikes.extend(alike);
            }
            return;
        };
        let last = body.end == part.text.len();
        let ended = part.text[..body.start].ends_with(b"\n");
        let body = Body { text: &part.text[body], is_last: last, header_line_ended: ended };
        let Ok(entry) = format::parse_turn(header, &body) else { return };
        if entry.has_stray_text {
            self.strays.push(*at);
        }
        let mut header_lookalikes = alike;
        // A header that was cut off may be followed by the beginning of its mark.
        if let [rest @ .., cut] = header_lookalikes
            && part.text[*cut..].split_inclusive(|byte| *byte == b'\n').count() <= entry.tail_repair.cut_lines
        {
            (header_lookalikes, self.cut_header) = (rest, Some(*cut));
        }
        // The id proves the content, even if a line looks like a header.
        if !header_lookalikes.is_empty()
            && (entry.has_stray_text || !format::proves(header, &entry.turn.content))
        {
            self.header_lookalikes.extend(header_lookalikes);
        }
        if entry.tail_repair.torn {
            self.torn_turn = Some((header.clone(), *at));
        }
    }

    fn messages(&self, part: &Tail) -> Vec<String> {
        let mut messages = Vec::new();
        if part.from == 0
            && let Some(line) = format::first_text_line(&part.text[..self.first.unwrap_or(part.text.len())])
        {
            messages.push(match self.first {
                None => format!(
                    "it has text (line {line}) and no turn, so that it is probably not a journal; nothing is appended to it"
                ),
                Some(_) => format!("the text before the first turn (line {line}) belongs to no turn"),
            });
        }
        if !self.header_lookalikes.is_empty() {
            messages.push(format!(
                "what looks like a header at {} is malformed and begins no turn; a header is `=== TURN id=… participant=… \
                 ts=… ===`, in this order and without white space in its words",
                part.describe_positions(&self.header_lookalikes)
            ));
        }
        if !self.strays.is_empty() {
            messages.push(format!(
                "after the turn at {} there is text without a header, which belongs to no turn; add a header",
                part.describe_positions(&self.strays)
            ));
        }
        for (id, before, at) in self.duplicate_ids.iter().take(MAX_NAMED) {
            messages.push(format!(
                "the turn at {} has the id `{id}` of the turn at {}, and of two turns with one id one alone is \
                 answered; give it another id",
                part.describe_position(*at),
                part.describe_position(*before)
            ));
        }
        if let Some((header, at)) = &self.torn_turn {
            messages.push(format!(
                "the last turn, `{}` of `{}` at {}, was cut off, so its text does not count as an answer",
                header.id,
                header.participant,
                part.describe_position(*at)
            ));
        }
        if let Some(at) = self.cut_header {
            messages.push(format!(
                "it ends at {} with a header that was cut off; that turn is lost",
                part.describe_position(at)
            ));
        }
        messages
    }
}

/// The number of lines before it that a line declares as cut off, if it is such a mark.
fn cut_mark_lines(line: &[u8]) -> Option<usize> {
    format::parse_cut_mark(std::str::from_utf8(line).ok()?.trim_end())
}
