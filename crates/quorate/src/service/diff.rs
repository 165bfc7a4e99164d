//! A unified diff that shows users what a command would change.

use std::time::Duration;

use similar::TextDiff;

/// How many lines of a diff are shown.
const MAX_SHOWN_LINES: usize = 300;

/// How long a diff may be sought; after that it is a longer one than need be.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// How many bytes a text may have that is compared line by line.
const MAX_DIFF_BYTES: usize = 1 << 20;

/// The way from one content of a file to another; nothing is a file that is not there. Empty where they are the same.
pub fn unified(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
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
    // An empty file has no lines that could differ.
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

#[cfg(test)]
mod tests {
    use super::*;

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
