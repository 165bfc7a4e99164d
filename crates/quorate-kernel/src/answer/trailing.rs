//! Whether an object is a part of prose. Prose that leads into an object, or continues after it, quotes it, often to reject
//! it, so the object is not an answer (X4).

/// How much of the line before an object is read, in characters.
const MAX_LEAD: usize = 200;
/// The longest closing line, in characters.
const MAX_CLOSING_LINE: usize = 200;

/// Whether an object is a part of prose, given the texts before and after it: it stands within a sentence, or more than a
/// closing line follows it. A closing line is one line of its own that begins a sentence. Marks do not count: fences,
/// emphasis, brackets, tags such as `</answer>`, and tokens such as `<|return|>`.
pub(super) fn is_prose(before: &str, after: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric();
    let after = without_tags(after);
    let (same_line, lines) = after.split_once('\n').unwrap_or((&after, ""));
    if is_within_sentence(before) || same_line.contains(|letter: char| is_word(letter) || letter == '?') {
        return true;
    }
    let mut lines = lines.lines().map(str::trim).filter(|line| line.contains(is_word));
    let Some(closing) = lines.next() else { return false };
    lines.next().is_some()
        || closing.chars().find(|letter| is_word(*letter)).is_some_and(char::is_lowercase)
        || closing.chars().count() > MAX_CLOSING_LINE
}

/// Whether the text before an object leads into it as a sentence does ("I would not answer {…}"): it ends in a word on the
/// object's own line. The word of a fence (`json`) does not count.
fn is_within_sentence(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let start = line.char_indices().rev().nth(MAX_LEAD).map_or(0, |(at, _)| at);
    let line = without_tags(&line[start..]);
    let is_mark = |letter: char| letter.is_whitespace() || "*_`\"'“([".contains(letter);
    let lead = line.trim_end_matches(is_mark);
    let names_the_format = lead.trim_start_matches(['`', '~', ' ']).eq_ignore_ascii_case("json");
    lead.ends_with(|letter: char| letter.is_alphanumeric() || letter == ',') && !names_the_format
}

/// A text without its tags. A `<` that no `>` follows on its line stays.
fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let line_end = rest[open..].find('\n').map_or(rest.len(), |end| open + end);
        let is_tag = rest[open + 1..line_end].starts_with(|letter: char| letter == '/' || letter == '|');
        let end = rest[open..line_end].find('>').filter(|_| is_tag).map(|end| open + end + 1);
        plain.push_str(&rest[..open]);
        if end.is_none() {
            plain.push('<');
        }
        rest = &rest[end.unwrap_or(open + 1)..];
    }
    plain + rest
}
