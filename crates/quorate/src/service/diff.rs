//! Differences of texts: a unified diff of a command's changes, and differences by word.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

/// The maximum number of lines of a diff.
const MAX_SHOWN_LINES: usize = 300;

/// The time limit of the search; a diff found at the limit may be longer than necessary.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The maximum size of a text that is compared line by line, in bytes.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// The unified diff from one content of a file to another; `None` is a missing file. Empty if the contents are equal.
pub(crate) fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    if old == new {
        return String::new();
    }
    let name = |side: &str, bytes: Option<&[u8]>| match bytes {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let heads = (name("a", old), name("b", new));
    let text = |bytes: Option<&[u8]>| {
        let bytes = bytes.unwrap_or_default();
        std::str::from_utf8(bytes)
            .ok()
            .filter(|text| text.len() <= MAX_DIFF_BYTES && !text.contains('\0'))
            .map(str::to_owned)
    };
    let (Some(old_text), Some(new_text)) = (text(old), text(new)) else {
        let size = |bytes: Option<&[u8]>| {
            bytes.map_or("nothing".to_owned(), |bytes| format!("{} bytes", bytes.len()))
        };
        return format!(
            "--- {}\n+++ {}\nnot compared line by line: {} before, {} after\n",
            heads.0,
            heads.1,
            size(old),
            size(new)
        );
    };
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&old_text, &new_text);
    let shown = diff.unified_diff().context_radius(3).header(&heads.0, &heads.1).to_string();
    // An empty file has no lines.
    if shown.is_empty() {
        return format!("--- {}\n+++ {}\n", heads.0, heads.1);
    }
    let all = shown.lines().count();
    if all <= MAX_SHOWN_LINES {
        return shown;
    }
    let head: String = shown.lines().take(MAX_SHOWN_LINES).flat_map(|line| [line, "\n"]).collect();
    format!("{head}and {} more lines\n", all - MAX_SHOWN_LINES)
}

/// What became of a piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// In both texts
    Same,
    /// In the old text alone
    Removed,
    /// In the new text alone
    Added,
}

/// A piece of two texts that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Piece {
    /// Which of the texts contain the piece
    pub change: Change,
    /// The words of the piece, with white space
    pub text: String,
}

impl Piece {
    /// Whether only the old text has it.
    pub fn is_removed(&self) -> bool {
        self.change == Change::Removed
    }

    /// Whether only the new text has it.
    pub fn is_added(&self) -> bool {
        self.change == Change::Added
    }
}

/// The differences between two texts by word; empty if the texts are equal.
pub(crate) fn words(old: &str, new: &str) -> Vec<Piece> {
    if old == new {
        return Vec::new();
    }
    if old.len().max(new.len()) > MAX_DIFF_BYTES {
        let whole = [(Change::Removed, old), (Change::Added, new)];
        return whole.map(|(change, text)| Piece { change, text: text.to_owned() }).into();
    }
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_words(old, new);
    let mut pieces: Vec<Piece> = Vec::new();
    for part in diff.iter_all_changes() {
        let change = match part.tag() {
            ChangeTag::Equal => Change::Same,
            ChangeTag::Delete => Change::Removed,
            ChangeTag::Insert => Change::Added,
        };
        match pieces.last_mut() {
            Some(last) if last.change == change => last.text.push_str(part.value()),
            _ => pieces.push(Piece { change, text: part.value().to_owned() }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_are_told_from_the_others() {
        let shown = |old: &str, new: &str| -> Vec<(Change, String)> {
            words(old, new).into_iter().map(|piece| (piece.change, piece.text)).collect()
        };
        assert_eq!(shown("a b", "a b"), []);
        let expected = [
            (Change::Same, "cut "),
            (Change::Removed, "half"),
            (Change::Added, "all"),
            (Change::Same, " of it"),
        ];
        assert_eq!(
            shown("cut half of it", "cut all of it"),
            expected.map(|(change, text)| (change, text.to_owned()))
        );
        for (old, new) in [("", "new"), ("one two\nthree", "three\none"), ("日本 語", "日本 の 語")] {
            let side = |without: Change| -> String {
                words(old, new)
                    .into_iter()
                    .filter(|piece| piece.change != without)
                    .map(|piece| piece.text)
                    .collect()
            };
            assert_eq!((side(Change::Added).as_str(), side(Change::Removed).as_str()), (old, new));
        }
        let long = "x".repeat(MAX_DIFF_BYTES + 1);
        assert_eq!(words(&long, "y").len(), 2);
    }

    #[test]
    fn it_shows_what_changes() {
        assert_eq!(unified("x", Some(b"a\n"), Some(b"a\n")), "");
        let shown = unified("x", Some(b"a\nb\n"), Some(b"a\nc\n"));
        assert_eq!(shown, "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert!(unified("x", None, Some(b"a\n")).starts_with("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"));
        assert!(unified("x", Some(b"\xff"), None).contains("1 bytes before, nothing after"));
        assert_eq!(unified("x", None, Some(b"")), "--- /dev/null\n+++ b/x\n");
        let long: String = (0..1_000).map(|line| format!("{line}\n")).collect();
        assert!(unified("x", None, Some(long.as_bytes())).ends_with("more lines\n"));
    }
}
