//! Redaction: what the configured patterns match is replaced before anything is recorded, shown or fed on
//! (SEMANTICS X10).

use quorate_protocol::Json;
use regex::Regex;

use crate::answer;

/// What stands in place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// A set of patterns.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    patterns: Vec<Regex>,
}

impl Redactor {
    /// From regular expressions.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn new(patterns: &[String]) -> Result<Self, regex::Error> {
        let patterns = patterns.iter().map(|one| Regex::new(one)).collect::<Result<_, _>>()?;
        Ok(Redactor { patterns })
    }

    /// Whether nothing is a secret.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The text without secrets, and how many there were.
    pub fn redact(&self, text: &str) -> (String, usize) {
        let mut count = 0;
        let mut clean = text.to_owned();
        for pattern in &self.patterns {
            let found =
                pattern.find_iter(&clean).filter(|one| !one.is_empty() && one.as_str() != REDACTED).count();
            if found > 0 {
                count += found;
                clean = pattern.replace_all(&clean, REDACTED).into_owned();
            }
        }
        (clean, count)
    }

    /// A member's output without secrets, also those that an escape in its JSON hides until it is read: an object with
    /// one is written anew, before what stands around it is looked at. A pattern so cannot tear an object open.
    pub fn redact_output(&self, output: &str) -> (String, usize) {
        let mut clean = output.to_owned();
        let mut count = 0;
        if self.patterns.is_empty() {
            return (clean, count);
        }
        for object in answer::objects(output).unwrap_or_default() {
            if let Some((text, found)) = self.redact_text_of_json(object) {
                count += found;
                clean = clean.replace(object, &text);
            }
        }
        let (clean, around) = self.redact(&clean);
        (clean, count + around)
    }

    /// Lines of JSON without secrets, each value redacted as it reads; a line that is no JSON as it stands.
    pub fn redact_lines(&self, text: &str) -> (String, usize) {
        let mut count = 0;
        let clean: Vec<String> = text
            .split('\n')
            .map(|line| match serde_json::from_str::<Json>(line).is_ok() {
                true => self.redact_text_of_json(line).map_or_else(
                    || line.to_owned(),
                    |(clean, found)| {
                        count += found;
                        clean
                    },
                ),
                false => {
                    let (clean, found) = self.redact(line);
                    count += found;
                    clean
                }
            })
            .collect();
        (clean.join("\n"), count)
    }

    /// The text of a JSON value, written anew without its secrets; `None` where it has none, or is no JSON.
    fn redact_text_of_json(&self, text: &str) -> Option<(String, usize)> {
        let (value, found) = self.redact_json(serde_json::from_str(text).ok()?);
        (found > 0).then(|| (value.to_string(), found))
    }

    /// A value without secrets in any of its strings, keys included.
    pub fn redact_json(&self, value: Json) -> (Json, usize) {
        if self.patterns.is_empty() {
            return (value, 0);
        }
        match value {
            Json::String(text) => {
                let (clean, count) = self.redact(&text);
                (Json::String(clean), count)
            }
            Json::Array(all) => {
                let (all, counts): (Vec<_>, Vec<_>) =
                    all.into_iter().map(|one| self.redact_json(one)).unzip();
                (Json::Array(all), counts.into_iter().sum())
            }
            Json::Object(all) => {
                let mut count = 0;
                let clean = all.into_iter().map(|(key, value)| {
                    let (key, in_key) = self.redact(&key);
                    let (value, found) = self.redact_json(value);
                    count += in_key + found;
                    (key, value)
                });
                let clean = clean.collect();
                (Json::Object(clean), count)
            }
            other => (other, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_is_replaced_and_counted() {
        // X10
        let redactor = Redactor::new(&["sk-[a-z0-9]+".into(), "(?i)acme".into()]).expect("patterns");
        assert_eq!(
            redactor.redact("key sk-abc1 of ACME and acme"),
            ("key [REDACTED] of [REDACTED] and [REDACTED]".into(), 3)
        );
        let escaped = r#"Here: {"would_block": false, "notes": "sk\u002dabc", "sk\u002dk": 1}"#;
        let (clean, count) = redactor.redact_output(escaped);
        assert_eq!((clean.contains("002d"), clean.contains("sk-"), count), (false, false, 2), "{clean}");
        let greedy = Redactor::new(&["sk-.*".into()]).expect("a pattern");
        let torn = r#"{"suggestion": "use sk-1"}"#;
        assert_eq!(greedy.redact_output(torn), (r#"{"suggestion":"use [REDACTED]"}"#.into(), 1));
        let lines = "{\"content\": \"I am \\u0073k-1\"}\nsk-2 is no JSON\n{\"content\": \"fine\"}";
        let clean = "{\"content\":\"I am [REDACTED]\"}\n[REDACTED]\n{\"content\": \"fine\"}";
        assert_eq!(greedy.redact_lines(lines), (clean.into(), 2));
        let answer = serde_json::json!({"notes": ["sk-1", {"deep": "of acme"}], "score": 4});
        let clean = serde_json::json!({"notes": ["[REDACTED]", {"deep": "of [REDACTED]"}], "score": 4});
        assert_eq!(redactor.redact_json(answer), (clean, 2));
        assert_eq!(redactor.redact("nothing"), ("nothing".into(), 0));
    }
}
