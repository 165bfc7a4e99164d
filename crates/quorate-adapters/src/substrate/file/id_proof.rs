//! Checks content against the id of a turn, which is a hash of author, time and content.

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
