//! Verse: short lines that are broken on purpose, mostly within a sentence.

/// The fewest lines of a stanza.
const MIN_STANZA_LINES: usize = 3;
/// The longest line of verse, in characters; prose wraps later.
const MAX_LINE_CHARS: usize = 60;

/// Whether a paragraph is a stanza. Short sentences one below the other, as in an advertisement, are not.
pub(super) fn is_stanza(paragraph: &str) -> bool {
    let lines: Vec<&str> = paragraph.trim().lines().map(str::trim).collect();
    let short = lines.iter().all(|line| line.chars().count() <= MAX_LINE_CHARS);
    let ends =
        |line: &&&str| line.trim_end_matches(['"', '”', ')', '*', '_', '\\']).ends_with(['.', '!', '?', ':']);
    lines.len() >= MIN_STANZA_LINES && short && lines.iter().filter(ends).count() * 2 <= lines.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_broken_in_the_middle_of_a_sentence() {
        assert!(is_stanza(
            "Always the gulls come back to the wall,\nalways the salt in the gate,\nand never the boat."
        ));
        assert!(!is_stanza("Buy it today.\nIt is the best.\nIt is free forever!"));
        assert!(!is_stanza("Two lines,\nno more"));
        let wrapped = "This paragraph was wrapped by an editor at the end of the line, which is\nlate, as the next line\n\
                       and this one are not";
        assert!(!is_stanza(wrapped));
    }
}
