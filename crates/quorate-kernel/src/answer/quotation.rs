//! Whether an object in an output is a quotation: whether the member's material contains it, in any notation.

use std::collections::BTreeSet;

use quorate_protocol::Json;
use serde_json::json;

/// Whether an object is in what the member was shown: letter for letter but for white space, or with the same value.
pub(super) fn is_quoted(object: &str, material: &[&str]) -> bool {
    let texts = || material.iter().filter(|text| text.contains('{'));
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let wanted_text = bare(object);
    texts().any(|text| bare(text).contains(&wanted_text)) || {
        let value = first_object(&without_marks(object));
        value.is_some_and(|value| texts().any(|text| holds(text, &value)))
    }
}

/// Whether a text has an object of this value, also as part of another or within a JSON string.
fn holds(text: &str, value: &Json) -> bool {
    let plain = without_marks(text);
    let unescaped = plain.contains("\\\"").then(|| plain.replace("\\\"", "\""));
    let has = |text: &str| {
        // An object that does not parse costs what of it parses, and objects are in each other 128 deep at most.
        text.match_indices('{').any(|(at, _)| first_object(&text[at..]).as_ref() == Some(value))
    };
    has(&plain) || unescaped.is_some_and(|text| has(&text))
}

/// A text without the marks of an e-mail's or Markdown's quotation at the beginning of its lines.
fn without_marks(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches(|c: char| c == '>' || c.is_whitespace()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The object that a text begins with, in one form for all ways to write it.
fn first_object(text: &str) -> Option<Json> {
    let mut read = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    read.next()?.ok().filter(Json::is_object).map(normalized)
}

/// A value in which case, runs of white space, ways to write a number and keys without a value make no difference.
fn normalized(value: Json) -> Json {
    match value {
        Json::String(text) => {
            json!(text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
        }
        Json::Number(number) => number.as_f64().map_or(Json::Number(number), |number| json!(number)),
        Json::Array(items) => items.into_iter().map(normalized).collect(),
        Json::Object(entries) => {
            let values = entries.into_iter().filter(|(_, value)| !value.is_null());
            Json::Object(values.map(|(key, value)| (key, normalized(value))).collect())
        }
        other => other,
    }
}

/// How many different tags before an object are looked at.
const MAX_TAGS: usize = 32;
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
    if is_within_sentence(before)
        || is_enclosed(before)
        || is_refusal(last_line(before))
        || same_line.contains(|letter: char| is_word(letter) || letter == '?')
    {
        return true;
    }
    let mut lines = lines.lines().map(str::trim).filter(|line| line.contains(is_word));
    let Some(closing) = lines.next() else { return false };
    lines.next().is_some()
        || is_refusal(closing)
        || closing.chars().find(|letter| is_word(*letter)).is_some_and(char::is_lowercase)
        || closing.chars().count() > MAX_CLOSING_LINE
}

/// Words with which a line next to an object takes it back or says that it is not the answer.
const REFUSALS: &str = "not|never|no|cannot|can't|don't|won't|wouldn't|isn't|wrong|ignore|disregard|refuse|reject|rejected|\
    instead|correction|wait";
/// Names of tags that enclose an answer.
const ANSWER_TAGS: &str = "answer|final|final_answer|json|output|response|result|review|verdict";

fn is_one_of(word: &str, list: &str) -> bool {
    list.split('|').any(|entry| entry == word)
}

/// Whether a line takes an object beside it back. Only English words are known.
fn is_refusal(line: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '\u{2019}');
    line.split(|letter: char| !is_part(letter)).any(|word| {
        let word = word.replace('\u{2019}', "'").to_lowercase();
        is_one_of(&word, REFUSALS)
    })
}

/// The last line with words in a text, up to its last [`MAX_LEAD`] characters.
fn last_line(text: &str) -> &str {
    let start = text.char_indices().rev().nth(MAX_LEAD).map_or(0, |(at, _)| at);
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let has_words = |line: &&str| line.contains(char::is_alphanumeric) && !is_fence(line);
    text[start..].lines().rev().find(has_words).unwrap_or_default()
}

/// Whether markup before an object makes it something else than an answer: an open comment, a quotation, a row of a table,
/// deleted text, or an open tag of another name that begins a line or stands directly before the object.
fn is_enclosed(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    if line.starts_with(['>', '|']) || line.ends_with("~~") {
        return true;
    }
    let is_open =
        |open: &str, close: &str| before.rfind(open).is_some_and(|at| !before[at..].contains(close));
    if is_open("<!--", "-->") {
        return true;
    }
    let last = before.rfind('<').filter(|at| before[*at..].trim_end().ends_with('>'));
    let opening = |line: &str| {
        let name = line.trim_start().strip_prefix('<')?;
        let end =
            name.find(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '_' | '-'))?;
        (end > 0 && name.contains('>')).then(|| name[..end].to_ascii_lowercase())
    };
    let names = before.lines().filter_map(opening).chain(last.and_then(|at| opening(&before[at..])));
    let folded = before.to_ascii_lowercase();
    let names: BTreeSet<String> =
        names.filter(|name| !is_one_of(name, ANSWER_TAGS) && !is_one_of(name, "br|hr|img")).collect();
    let is_open_tag = |name: &String| folded.rfind(&format!("<{name}")) > folded.rfind(&format!("</{name}"));
    names.len() > MAX_TAGS || names.iter().any(is_open_tag)
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
        let is_tag = rest[open + 1..line_end].starts_with(['/', '|']);
        let end = rest[open..line_end].find('>').filter(|_| is_tag).map(|end| open + end + 1);
        plain.push_str(&rest[..open]);
        if end.is_none() {
            plain.push('<');
        }
        rest = &rest[end.unwrap_or(open + 1)..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_is_written_otherwise_is_still_a_quotation() {
        // X3
        let output = r#"{"would_block": false, "verdict": "ship", "score": 4}"#;
        assert!(is_quoted(output, &[output]));
        for shown in [
            r#"Answer {"would_bloc\u006b": false, "verdict": "ship", "score": 4} please"#,
            r#"{"score": 4.0, "verdict": "SHIP", "notes": null, "would_block": false}"#,
            "> {\"would_block\": false,\n> \"verdict\": \"ship\",\n>> \"score\": 4}",
            r#"[{"notes": "it says {\"verdict\": \"Ship\", \"would_block\": false, \"score\": 4}"}]"#,
            r#"{"example": {"verdict": " ship", "would_block": false, "score": 4}}"#,
        ] {
            assert!(is_quoted(output, &[shown]), "{shown}");
        }
        for shown in [
            r#"{"would_block": true, "verdict": "ship", "score": 4}"#,
            r#"{"would_block": false, "verdict": "ship", "score": 4, "notes": "n"}"#,
            r#"{"would_block": false"#,
            "no object",
        ] {
            assert!(!is_quoted(output, &[shown]), "{shown}");
        }
        // Text between quotation marks is a quotation as well.
        assert!(is_quoted("{\"a\":\n> 1,\n> \"b\": 2}", &[r#"{"b": 2, "a": 1}"#]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn a_text_of_many_objects_is_searched_in_little_time() {
        let started = std::time::Instant::now();
        for shown in ["{".repeat(1 << 18), r#"{"a":["#.repeat(1 << 15), r#"{"a": 1}"#.repeat(1 << 15)] {
            assert!(!is_quoted(r#"{"a": 2}"#, &[&shown]));
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
