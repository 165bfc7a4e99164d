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

    /// A member's output without secrets, also those that an escape in its JSON hides until it is read: an object
    /// with such a one is written anew.
    pub fn redact_output(&self, output: &str) -> (String, usize) {
        let (mut clean, mut count) = self.redact(output);
        if self.patterns.is_empty() || !clean.contains('\\') {
            return (clean, count);
        }
        for object in
            answer::objects(&clean).unwrap_or_default().into_iter().map(str::to_owned).collect::<Vec<_>>()
        {
            let Ok(value) = serde_json::from_str(&object) else { continue };
            let (value, found) = self.redact_json(value);
            if found > 0 {
                count += found;
                clean = clean.replace(&object, &value.to_string());
            }
        }
        (clean, count)
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
        let answer = serde_json::json!({"notes": ["sk-1", {"deep": "of acme"}], "score": 4});
        let clean = serde_json::json!({"notes": ["[REDACTED]", {"deep": "of [REDACTED]"}], "score": 4});
        assert_eq!(redactor.redact_json(answer), (clean, 2));
        assert_eq!(redactor.redact("nothing"), ("nothing".into(), 0));
    }
}
