//! Redaction: secrets are replaced before a text is recorded, shown or passed on (X10). This file applies it to texts, documents and
//! members' outputs, and knows the secrets that are configured: values and patterns. `quorate_text::secrets` finds all others.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};
use quorate_protocol::Json;
use quorate_text::secrets;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, json};

use crate::answer;

pub use secrets::{VERSION, is_worth_redacting, names_a_secret};

/// The replacement of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// From this many bytes on a text is redacted on a thread of its own.
const BLOCKING_BYTES: usize = 64 << 10;

/// The configured kinds of secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// Whether to redact texts in the shape of a secret.
    pub builtin: bool,
    /// Regular expressions; each match is redacted.
    pub patterns: Vec<String>,
    /// Values to redact, also where they are escaped or encoded.
    pub values: Vec<String>,
}

/// Takes secrets out of texts. Cheap to clone.
#[derive(Clone, Default)]
pub struct Redactor {
    builtin: bool,
    patterns: Arc<[Regex]>,
    values: Option<Regex>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor")
            .field("builtin", &self.builtin)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

impl Redactor {
    /// From regular expressions alone.
    ///
    /// # Errors
    /// When one does not compile.
    pub fn new(patterns: &[String]) -> Result<Self, regex::Error> {
        Redactor::from_secrets(&Secrets { patterns: patterns.to_owned(), ..Secrets::default() })
    }

    /// From everything that is a secret.
    ///
    /// # Errors
    /// When a pattern does not compile, or the values are too many.
    pub fn from_secrets(secrets: &Secrets) -> Result<Self, regex::Error> {
        Ok(Redactor {
            builtin: secrets.builtin,
            patterns: secrets.patterns.iter().map(|pattern| Regex::new(pattern)).collect::<Result<_, _>>()?,
            values: compile(&secrets.values)?,
        })
    }

    /// Without the patterns: what is left never takes a quotation mark or a brace from the text.
    #[must_use]
    pub fn without_patterns(&self) -> Self {
        Redactor { patterns: Arc::default(), ..self.clone() }
    }

    /// Whether it redacts nothing.
    pub fn is_empty(&self) -> bool {
        !self.builtin && self.patterns.is_empty() && self.values.is_none()
    }

    /// Does work of redaction. Where it has many bytes to read, it is done on a blocking thread: patterns may take long, and
    /// signals and other tasks must be heard meanwhile.
    pub async fn run_blocking_if_large<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&Redactor) -> T + Send + 'static,
    ) -> T {
        if bytes < BLOCKING_BYTES || self.is_empty() {
            return work(self);
        }
        let redactor = self.clone();
        match tokio::task::spawn_blocking(move || work(&redactor)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime ends, and drops this with everything else.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// The text without secrets, and how many there were. Lines stay where they are.
    pub fn redact(&self, text: &str) -> (String, usize) {
        let mut count = 0;
        let mut clean = text.to_owned();
        for pattern in self.values.iter().chain(&*self.patterns) {
            let found =
                pattern.find_iter(&clean).filter(|found| !found.is_empty() && found.as_str() != REDACTED);
            let found: Vec<Range<usize>> = found.map(|one| one.range()).collect();
            if !found.is_empty() {
                count += found.len();
                clean = replace_spans(&clean, &found);
            }
        }
        if self.builtin {
            let found = secrets::find(&clean);
            if !found.is_empty() {
                (clean, count) = (replace_spans(&clean, &found), count + found.len());
            }
        }
        (clean, count)
    }

    /// A member's output without secrets, also those that an escape in its JSON hides until it is read: an object with
    /// one is rewritten, before what stands around it is looked at. A pattern so cannot tear an object open.
    pub fn redact_output(&self, output: &str) -> (String, usize) {
        let mut count = 0;
        // If nothing was redacted, only a user's pattern can break an object.
        let objects = !self.patterns.is_empty() || !self.is_empty() && output.contains('\\');
        let redacted = objects.then(|| {
            answer::rewrite_objects(output, |object| {
                let (text, found) = self.redact_text_of_json(object)?;
                count += found;
                Some(text)
            })
        });
        let clean = redacted.as_deref().unwrap_or(output);
        let (clean, around) = self.redact(clean);
        (clean, count + around)
    }

    /// Lines of JSON without secrets, each value redacted as it reads; a line that is not JSON as text.
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
        // Secrets that span several lines that are not JSON.
        let (clean, over_lines) = self.redact(&clean.join("\n"));
        (clean, count + over_lines)
    }

    /// The text of a JSON value, rewritten without its secrets; `None` if it has none or is not JSON.
    fn redact_text_of_json(&self, text: &str) -> Option<(String, usize)> {
        let (value, found) = self.redact_json(serde_json::from_str(text).ok()?);
        (found > 0).then(|| (value.to_string(), found))
    }

    /// A value without secrets in any of its strings, keys included.
    pub fn redact_json(&self, value: Json) -> (Json, usize) {
        if self.is_empty() { (value, 0) } else { self.redact_value_of("", value) }
    }

    /// What is under a key, which may give away what its strings are.
    fn redact_value_of(&self, key: &str, value: Json) -> (Json, usize) {
        match value {
            Json::String(text) => {
                let (clean, count) = self.redact(&text);
                let is_secret = count == 0 && self.builtin && secrets::is_value_of(key, &text);
                if is_secret { (json!(REDACTED), 1) } else { (Json::String(clean), count) }
            }
            Json::Array(all) => {
                let (all, counts): (Vec<_>, Vec<_>) =
                    all.into_iter().map(|value| self.redact_value_of(key, value)).unzip();
                (Json::Array(all), counts.into_iter().sum())
            }
            Json::Object(all) => {
                let mut count = 0;
                let mut clean = Map::new();
                let mut numbers = HashMap::new();
                // `{"name": "DB_PASSWORD", "value": "…"}`
                let named = ["name", "key"].iter().find_map(|key| all.get(*key)?.as_str()).map(str::to_owned);
                for (key, value) in all {
                    let (key, in_key) = self.redact(&key);
                    let name = named.as_deref().filter(|_| key == "value").unwrap_or(&key);
                    let (value, found) = self.redact_value_of(name, value);
                    count += in_key + found;
                    clean.insert(unused_key(&clean, &mut numbers, key), value);
                }
                (Json::Object(clean), count)
            }
            other => (other, 0),
        }
    }
}

/// A key that is not taken: two secrets that were keys are still two. `numbers` has the last number of each key.
fn unused_key(taken: &Map<String, Json>, numbers: &mut HashMap<String, usize>, key: String) -> String {
    if !taken.contains_key(&key) {
        return key;
    }
    let number = numbers.entry(key.clone()).or_insert(1);
    loop {
        *number += 1;
        let free = format!("{key} {number}");
        if !taken.contains_key(&free) {
            return free;
        }
    }
}

/// A text without what is at these places, which are in order and apart. Its line breaks stay, so that every line has
/// the number that it had.
fn replace_spans(text: &str, spans: &[Range<usize>]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        clean.push_str(&text[at..span.start]);
        clean.push_str(REDACTED);
        clean.extend(text[span.clone()].chars().filter(|c| *c == '\n'));
        at = span.end;
    }
    clean.push_str(&text[at..]);
    clean
}

/// The shortest text that is looked for.
const MIN_VALUE_BYTES: usize = 8;
/// The shortest line of a value of several lines that is looked for by itself.
const MIN_LINE_BYTES: usize = 24;
/// The largest compiled expression, in bytes.
const MAX_REGEX_BYTES: usize = 64 << 20;

/// An expression that finds the values in any of their forms, the longest first; `None` where there is nothing to find.
///
/// # Errors
/// If there are so many that the automaton would be too large.
fn compile(values: &[String]) -> Result<Option<Regex>, regex::Error> {
    let forms: BTreeSet<String> = values
        .iter()
        .filter(|value| value.len() >= MIN_VALUE_BYTES)
        .flat_map(|value| {
            let lines = value
                .lines()
                .map(str::trim)
                .filter(|line| line.len() >= MIN_LINE_BYTES && value.len() > line.len());
            let lines: Vec<String> = lines.map(str::to_owned).collect();
            [forms(value), lines].concat()
        })
        .collect();
    if forms.is_empty() {
        return Ok(None);
    }
    let mut forms: Vec<String> = forms.into_iter().collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    let forms: Vec<String> = forms.iter().map(|form| regex::escape(form)).collect();
    RegexBuilder::new(&forms.join("|")).size_limit(MAX_REGEX_BYTES).build().map(Some)
}

/// A value as it stands, in JSON, in a URL, and in base64.
fn forms(value: &str) -> Vec<String> {
    let json = json!(value).to_string();
    let percent: String = value.bytes().map(percent).collect();
    let mut forms = vec![value.to_owned(), json[1..json.len() - 1].to_owned(), percent];
    for alphabet in [&alphabet::STANDARD, &alphabet::URL_SAFE] {
        let engine = GeneralPurpose::new(alphabet, NO_PAD);
        forms.extend((0..3).map(|offset| base64_core(&engine, value, offset)));
    }
    forms.retain(|form| form.len() >= MIN_VALUE_BYTES);
    forms
}

fn percent(byte: u8) -> String {
    match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    }
}

/// The part of the base64 of a longer text that depends on nothing but the value, which is at an offset in it.
fn base64_core(engine: &GeneralPurpose, value: &str, offset: usize) -> String {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value.as_bytes());
    let text = engine.encode(&bytes);
    // Six bits a character: the first ones, and the last one, may have bits of what stands around.
    let (first, last) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    text[first..last].to_owned()
}

#[cfg(test)]
mod tests;
