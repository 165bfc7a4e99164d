//! The strategy `append`: adds a block at the end of a text, and finds, replaces and removes it again.

use std::time::Duration;

use similar::{Change, ChangeTag, TextDiff};

/// The time limit of the line search; after it, the search may miss lines.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The addition that appends a block to a text; `None` if the text already contains the block as whole lines.
pub fn addition(text: &str, block: &str) -> Option<String> {
    if contains_block(text, block) {
        return None;
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Some(format!("{separator}{block}"))
}

/// Whether a text contains a block as whole lines.
fn contains_block(text: &str, block: &str) -> bool {
    let block = block.trim_end_matches(['\n', '\r']);
    if block.is_empty() {
        return true;
    }
    text.match_indices(block).any(|(at, _)| {
        let rest = &text[at + block.len()..];
        (at == 0 || text[..at].ends_with('\n'))
            && (rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n"))
    })
}

/// The position of the addition, if it is still present: the last match, since it was added at the end.
pub fn find(text: &str, added: &str) -> Option<usize> {
    text.rfind(added)
}

/// The text without the addition; `None` if the addition is gone.
pub fn take_out(text: &str, added: &str) -> Option<String> {
    let at = find(text, added)?;
    let (before, after) = (&text[..at], &text[at + added.len()..]);
    // Also removes the separating line break, unless that would join two lines.
    let joined =
        added.starts_with('\n') && !before.is_empty() && !after.is_empty() && !after.starts_with('\n');
    let separator = if joined { "\n" } else { "" };
    Some(format!("{before}{separator}{after}"))
}

/// The text without the remaining lines of an edited addition; edited and inserted lines stay. `installed` is the text
/// right after the addition. `None` if no such line remains.
pub fn take_lines_out(text: &str, installed: &str, added: &str) -> Option<String> {
    let at = find(installed, added)?;
    // By lines, not bytes: a line break that separates the block also ends another author's line.
    let lead = added.len() - added.trim_start_matches('\n').len();
    let first = installed[..at + lead].split_inclusive('\n').count();
    let ours = first..first + added[lead..].split_inclusive('\n').count();
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(installed, text);
    let stands = |change: &Change<&str>| {
        change.tag() == ChangeTag::Equal && change.old_index().is_some_and(|line| ours.contains(&line))
    };
    let now = || diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Delete);
    now()
        .any(|change| stands(&change))
        .then(|| now().filter(|change| !stands(change)).map(|change| change.value()).collect())
}

/// The text with the addition replaced by another block, and the new addition.
pub fn exchange(text: &str, added: &str, old: &str, block: &str) -> Option<(String, String)> {
    let at = find(text, added)?;
    let (before, after) = (&text[..at], &text[at + added.len()..]);
    let separator = added.strip_suffix(old).unwrap_or_default();
    let joined = !after.is_empty() && !after.starts_with('\n') && !block.ends_with('\n');
    let added = format!("{separator}{block}{}", if joined { "\n" } else { "" });
    Some((format!("{before}{added}{after}"), added))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_added_as_whole_lines_and_only_once() {
        assert_eq!(addition("", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a", "x\n").as_deref(), Some("\nx\n"));
        assert_eq!(addition("a\nx", "x\n"), None);
        assert_eq!(addition("a\nx\r\nb\n", "x\n"), None);
        assert_eq!(addition("max\n", "x\n").as_deref(), Some("x\n"));
        assert_eq!(addition("a\n", ""), None);
    }

    #[test]
    fn an_addition_is_removed_from_any_surrounding_text() {
        for (before, block) in [("", "x\n"), ("a\n", "x\ny"), ("a", "x\n")] {
            let added = addition(before, block).expect("it is not there");
            let after = format!("{before}{added}");
            assert_eq!(take_out(&after, &added).as_deref(), Some(before));
            let more = format!("top\n{after}\nbottom\n");
            assert_eq!(take_out(&more, &added), Some(format!("top\n{before}\nbottom\n")));
        }
        assert_eq!(take_out("a\nx\nb\n", "\nx\n").as_deref(), Some("a\nb\n"));
        assert_eq!(take_out("a\n", "x\n"), None);
    }

    #[test]
    fn unchanged_lines_of_an_addition_are_removed_and_other_lines_stay() {
        let cases = [
            ("a\n", "x\ny\nz\n", "a\nx\nyy\nz\n", Some("a\nyy\n")),
            ("a\n", "x\ny\n", "a\nx\nmine\ny\n", Some("a\nmine\n")),
            // The same line existed before and is not the added one.
            ("x\n", "x\ny\n", "x\nb\ny\n", Some("x\nb\n")),
            ("a", "\nx\ny\n", "top\na\nx\n", Some("top\na\n")),
            ("a\n", "x\n", "a\nxx\n", None),
            ("a\n", "x\n", "a\n", None),
        ];
        for (before, added, now, left) in cases {
            let installed = format!("{before}{added}");
            assert_eq!(take_lines_out(now, &installed, added).as_deref(), left, "{now}");
        }
    }

    #[test]
    fn a_new_version_replaces_the_last_one_in_its_place() {
        let (text, added) = exchange("a\nx\nb\n", "x\n", "x\n", "y").expect("it is there");
        assert_eq!((text.as_str(), added.as_str()), ("a\ny\nb\n", "y\n"));
        let (text, added) = exchange("a\nx\n", "\nx\n", "x\n", "yy\n").expect("it is there");
        assert_eq!((text.as_str(), added.as_str()), ("a\nyy\n", "\nyy\n"));
        assert_eq!(take_out(&text, &added).as_deref(), Some("a"));
    }
}
