//! Whether an object in an output is a quotation: whether the member's material contains it, in any notation.

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
        // What the member quotes with marks is a quotation as well.
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
