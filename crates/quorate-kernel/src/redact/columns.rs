//! Columns whose header names a secret: in tables of Markdown, and in rows with commas, semicolons or tabs.

use std::ops::Range;

use super::assignment;

/// The longest line that is read as a row, in bytes. People write shorter rows.
const MAX_LINE_BYTES: usize = 4096;
/// The longest header that is read as a name, in bytes.
const MAX_HEADER_BYTES: usize = 40;

/// The cells that are likely to be secrets. A table ends at the first line without its sign.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut table: Option<Header<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_row = table.as_ref().is_some_and(|header| line.contains(header.sign));
        if line.len() > MAX_LINE_BYTES || !is_row {
            table = Some(line).filter(|line| line.len() <= MAX_LINE_BYTES).and_then(header);
            continue;
        }
        let Some(header) = &table else { continue };
        let cells: Vec<Range<usize>> = cells(line, header.sign).collect();
        if cells.len() != header.columns {
            continue;
        }
        let secrets = header
            .names
            .iter()
            .filter(|(column, name)| assignment::is_cell_of(name, &line[cells[*column].clone()]));
        spans.extend(secrets.map(|(column, _)| start + cells[*column].start..start + cells[*column].end));
    }
    spans
}

struct Header<'t> {
    sign: char,
    columns: usize,
    /// The columns that name a secret.
    names: Vec<(usize, &'t str)>,
}

fn header(line: &str) -> Option<Header<'_>> {
    let sign = ['|', '\t', ';', ','].into_iter().find(|sign| line.contains(*sign))?;
    let cells: Vec<&str> = cells(line, sign).map(|cell| &line[cell]).collect();
    if cells.iter().any(|cell| cell.len() > MAX_HEADER_BYTES) {
        return None;
    }
    let names = cells.iter().enumerate().filter(|(_, name)| is_name(name) && assignment::names_kind(name));
    let names: Vec<(usize, &str)> = names.map(|(column, name)| (column, *name)).collect();
    (!names.is_empty()).then_some(Header { sign, columns: cells.len(), names })
}

/// Whether a cell has words alone, as names have.
fn is_name(cell: &str) -> bool {
    cell.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b'.'))
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
