//! Redaction: what the configured patterns match is replaced before anything is recorded, shown or fed on
//! (SEMANTICS X10).

use quorate_protocol::Json;
use regex::Regex;

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

    /// A value without secrets in any of its strings. Keys stay: they are ours, or an answer's field names.
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
                    let (value, found) = self.redact_json(value);
                    count += found;
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
        let answer = serde_json::json!({"notes": ["sk-1", {"deep": "of acme"}], "score": 4});
        let clean = serde_json::json!({"notes": ["[REDACTED]", {"deep": "of [REDACTED]"}], "score": 4});
        assert_eq!(redactor.redact_json(answer), (clean, 2));
        assert_eq!(redactor.redact("nothing"), ("nothing".into(), 0));
    }
}
