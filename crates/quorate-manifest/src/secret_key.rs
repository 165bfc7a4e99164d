//! Secret keys that were pasted into a file.

/// Part of the text of every secret key.
const SECRET_MARKER: &str = ":seed:";

/// Whether a text contains a secret key.
pub(crate) fn is_in(text: &str) -> bool {
    text.contains(SECRET_MARKER)
}

/// The text with each byte of a secret key replaced by a star; `None` if it has no secret key.
pub(crate) fn mask(text: &str) -> Option<String> {
    let mut masked: Option<String> = None;
    for (at, _) in text.match_indices(SECRET_MARKER) {
        let from = at + SECRET_MARKER.len();
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
        let length = text[from..].find(|c| !base64(c)).unwrap_or(text.len() - from);
        let stars = "*".repeat(length);
        masked.get_or_insert_with(|| text.to_owned()).replace_range(from..from + length, &stars);
    }
    masked
}
