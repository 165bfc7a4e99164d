//! Suspicious places in a readable journal: text that belongs to no turn, duplicate ids, a turn that was cut off. A journal
//! of more than [`MAX_BYTES`] is not looked through.

use std::collections::HashMap;
use std::path::Path;

use quorate_protocol::Name;

use super::format::{self, Scanner};
use quorate_kernel::files;

/// The largest journal that is looked through.
const MAX_BYTES: u64 = 64 << 20;
/// How many places one warning names.
const MAX_NAMED: usize = 3;

/// The warnings for a journal. A file that cannot be read yields none: reading it reports the error.
pub(super) fn for_journal(path: &Path) -> Vec<String> {
    let messages = files::read(path, MAX_BYTES).ok().and_then(|text| messages(&text)).unwrap_or_default();
    messages.into_iter().map(|message| format!("the journal {}: {message}", path.display())).collect()
}

fn messages(text: &[u8]) -> Option<Vec<String>> {
    let mut scanner = Scanner::new(text, 0);
    let (mut first, mut lookalikes, mut strays) = (None, Vec::new(), Vec::new());
    let (mut ids, mut duplicates, mut end) = (HashMap::<Name, u64>::new(), Vec::new(), None);
    let line = |at: u64| {
        let before = &text[..at as usize];
        format!("line {}", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    };
    while let Some(raw) = scanner.next().ok()? {
        first.get_or_insert(raw.offset);
        let Ok(entry) = raw.parse() else { continue };
        if entry.has_stray_text {
            strays.push(raw.offset);
        }
        // The id proves the content, even if a line looks like a header.
        if entry.has_stray_text || !raw.header.proves(&entry.turn.content) {
            let header = text[raw.offset as usize..].split_inclusive(|byte| *byte == b'\n').next();
            lookalikes.extend(header_lookalikes(raw.body, raw.offset + header.map_or(0, <[u8]>::len) as u64));
        }
        if entry.has_cut_header {
            let at = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) as u64;
            lookalikes.retain(|lookalike| *lookalike != at);
            let place = line(at);
            end = Some(format!("it ends at {place} with a header that was cut off; that turn is lost"));
        } else if entry.pending && !raw.body.is_empty() {
            end = Some(format!(
                "the last turn, `{}` of `{}` at {}, was cut off, so its text does not count as an answer",
                raw.header.id,
                raw.header.participant,
                line(raw.offset)
            ));
        }
        if let Some(before) = ids.insert(entry.turn.id.clone(), raw.offset) {
            duplicates.push((entry.turn.id, before, raw.offset));
        }
    }
    let lines = |places: &[u64]| {
        let mut lines: Vec<String> = places.iter().take(MAX_NAMED).map(|at| line(*at)).collect();
        if places.len() > MAX_NAMED {
            lines.push(format!("{} more", places.len() - MAX_NAMED));
        }
        match &lines[..] {
            [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => lines.concat(),
        }
    };
    let mut messages = Vec::new();
    let before = &text[..first.map_or(text.len(), |first| first as usize)];
    messages.extend(format::first_text_line(before).map(|line| match first {
        None => format!(
            "it has text (line {line}) and no turn, so that it is probably not a journal; nothing is appended to it"
        ),
        Some(_) => format!("the text before the first turn (line {line}) belongs to no turn"),
    }));
    if first.is_some() {
        lookalikes.splice(0..0, header_lookalikes(before, 0));
    }
    if !lookalikes.is_empty() {
        messages.push(format!(
            "what looks like a header at {} is malformed and begins no turn; a header is `=== TURN id=… participant=… \
             ts=… ===`, in this order and without white space in its words",
            lines(&lookalikes)
        ));
    }
    if !strays.is_empty() {
        messages.push(format!(
            "after the turn at {} there is text without a header, which belongs to no turn; add a header",
            lines(&strays)
        ));
    }
    messages.extend(duplicates.into_iter().take(MAX_NAMED).map(|(id, before, at)| {
        format!(
            "the turn at {} has the id `{id}` of the turn at {}, and of two turns with one id one alone is answered; \
             give it another id",
            line(at),
            line(before)
        )
    }));
    messages.extend(end);
    Some(messages)
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
