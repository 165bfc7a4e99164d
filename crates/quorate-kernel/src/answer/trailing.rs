//! Whether what follows an object makes it a part of prose. Prose that goes on after an object quotes it, often to reject
//! it, so the object is not an answer (X4).

/// The longest closing line, in characters.
const MAX_CLOSING_LINE: usize = 200;

/// Whether more than a closing line follows an object, given the texts before and after it. A closing line is one line of
/// its own that begins a sentence; after an object within a sentence, which begins a line or follows a colon otherwise,
/// there is none. Marks do not count: fences, emphasis, brackets, tags such as `</answer>`, and tokens such as `<|return|>`.
pub(super) fn is_prose(before: &str, after: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric();
    let after = without_tags(after);
    let (same_line, lines) = after.split_once('\n').unwrap_or((&after, ""));
    let mut lines = lines.lines().map(str::trim).filter(|line| line.contains(is_word));
    let Some(closing) = lines.next() else {
        return same_line.contains(|letter: char| is_word(letter) || letter == '?');
    };
    let lead = without_tags(before.rsplit('\n').next().unwrap_or_default());
    let is_within_sentence = match lead.rfind(is_word) {
        Some(last) => !lead[last..].contains(':'),
        None => false,
    };
    same_line.contains(|letter: char| is_word(letter) || letter == '?')
        || lines.next().is_some()
        || is_within_sentence
        || closing.chars().find(|letter| is_word(*letter)).is_some_and(char::is_lowercase)
        || closing.chars().count() > MAX_CLOSING_LINE
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
