//! Checks content against the id of a turn, which is a hash of author, time and content.

use super::format::Header;

/// The most line feeds at the end of a content that are tried.
const MAX_TRAILING_FEEDS: usize = 16;

/// Whether the id proves that all lines are the content, in one of several readings. Line feeds at the content's end cannot
/// be distinguished from those between turns, so each number of them is tried.
pub(super) fn proves_any(header: &Header, lines: &[&str], readings: [String; 2]) -> bool {
    let feeds = lines.iter().rev().take_while(|line| line.is_empty()).count().min(MAX_TRAILING_FEEDS);
    readings.iter().any(|reading| {
        let mut content = reading.trim_end_matches('\n').to_owned();
        (0..=feeds).any(|_| {
            let proven = proves(header, &content);
            content.push('\n');
            proven
        })
    })
}

/// Whether the id is that of a turn with this content.
pub(super) fn proves(header: &Header, content: &str) -> bool {
    super::super::turn_id(&header.participant, &header.timestamp, content) == header.id
}
