//! What the id of a turn proves: it is a hash over author, time and content.

use super::format::Header;

/// The most line feeds at the end of a content that an id is tried with.
const MAX_TRAILING_FEEDS: usize = 16;

/// Whether the id in a header proves that all lines are what was said, in one of several readings. Line feeds at its end are
/// not told from those that the journal puts between turns, so each number of them is tried.
pub(super) fn proves_any(header: &Header, lines: &[&str], readings: [String; 2]) -> bool {
    let feeds = lines.iter().rev().take_while(|line| line.is_empty()).count().min(MAX_TRAILING_FEEDS);
    readings.iter().any(|reading| {
        let mut said = reading.trim_end_matches('\n').to_owned();
        (0..=feeds).any(|_| {
            let proven = proves(header, &said);
            said.push('\n');
            proven
        })
    })
}

/// Whether the id in a header is that of a turn which says this.
pub(super) fn proves(header: &Header, content: &str) -> bool {
    super::super::turn_id(&header.participant, &header.timestamp, content) == header.id
}
