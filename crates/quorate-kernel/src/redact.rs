//! Redaction: secrets are replaced before a text is recorded, shown or passed on (X10). This file owns the redactor and the secrets
//! known by value; `redact/shape.rs` recognizes tokens by their issuers' documented shape, `redact/context.rs` and
//! `redact/assignment.rs` recognize others by their context. Configured patterns add more.
//!
//! One automaton finds the anchors of all kinds in one pass. At each anchor its kind reads a bounded number of bytes, so that the time is
//! proportional to the length of the text.

mod assignment;
mod context;
mod plausibility;
mod shape;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, BuildError};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};
use quorate_diagnostics::invisible::is_invisible;
use quorate_protocol::Json;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, json};

use crate::answer;
use shape::Shape;

pub use plausibility::{is_worth_redacting, names_a_secret};

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
        if self.builtin
            && let Some((without, found)) = redact(&clean)
        {
            (clean, count) = (without, count + found);
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
        if self.is_empty() {
            return (value, 0);
        }
        match value {
            Json::String(text) => {
                let (clean, count) = self.redact(&text);
                (Json::String(clean), count)
            }
            Json::Array(all) => {
                let (all, counts): (Vec<_>, Vec<_>) =
                    all.into_iter().map(|value| self.redact_json(value)).unzip();
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

    /// What is under a key, which may give away what its strings are.
    fn redact_value_of(&self, key: &str, value: Json) -> (Json, usize) {
        match value {
            Json::String(text) => {
                let (clean, count) = self.redact(&text);
                let is_secret = count == 0 && self.builtin && is_value_of(key, &text);
                if is_secret { (json!(REDACTED), 1) } else { (Json::String(clean), count) }
            }
            Json::Array(all) => {
                let (all, counts): (Vec<_>, Vec<_>) =
                    all.into_iter().map(|value| self.redact_value_of(key, value)).unzip();
                (Json::Array(all), counts.into_iter().sum())
            }
            value => self.redact_json(value),
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

/// A kind of secrets.
struct Kind {
    name: &'static str,
    detector: Detector,
}

/// How a kind is recognized.
enum Detector {
    Shape(Shape),
    /// By context: the texts that lead to it, in any case, and the function that finds it from there.
    Place(&'static [&'static str], Detect),
}

/// Finds the secret that an anchor leads to. It reads a bounded number of bytes, or none that it has read for an anchor
/// before, unless it finds one.
type Detect = fn(&str, Range<usize>) -> Option<Range<usize>>;

impl Kind {
    fn anchors(&self) -> &[&'static str] {
        match &self.detector {
            Detector::Shape(shape) => std::slice::from_ref(&shape.anchor),
            Detector::Place(anchors, _) => anchors,
        }
    }

    fn find(&self, text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
        match &self.detector {
            Detector::Shape(shape) => shape.find(text, anchor),
            Detector::Place(_, find) => find(text, anchor),
        }
    }
}

struct Folded {
    text: String,
    /// Where the two texts shift against each other: places in the folded text, and in the source.
    shifts: Vec<(usize, usize)>,
}

/// `None` where the text is as it looks.
fn fold(text: &str) -> Option<Folded> {
    if text.is_ascii() && !text.chars().any(is_invisible) {
        return None;
    }
    let mut folded = Folded { text: String::new(), shifts: vec![(0, 0)] };
    let mut kept = 0;
    for (at, c) in text.char_indices() {
        let plain = match c {
            c if is_invisible(c) => None,
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
            _ => continue,
        };
        folded.text.push_str(&text[kept..at]);
        folded.shifts.push((folded.text.len(), at));
        folded.text.extend(plain);
        kept = at + c.len_utf8();
        folded.shifts.push((folded.text.len(), kept));
    }
    folded.text.push_str(&text[kept..]);
    (kept > 0).then_some(folded)
}

impl Folded {
    /// A place of the folded text in the source.
    fn source(&self, span: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let (folded, source) = self.shifts[self.shifts.partition_point(|(folded, _)| *folded <= at) - 1];
            source + at - folded
        };
        place(span.start)..place(span.end)
    }
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

/// What changes when other texts would be taken for secrets. It is in the fingerprint of a run.
pub const VERSION: u32 = 4;

/// The shortest text in which there can be a secret of any kind.
const MIN_TEXT_BYTES: usize = 10;

fn all() -> impl Iterator<Item = &'static Kind> {
    context::KINDS.iter().chain(context::COMMAND_KINDS).chain(shape::KINDS).chain(shape::SERVICE_KINDS)
}

/// The names of all kinds.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    all().map(|kind| kind.name)
}

/// The texts that lead to secrets of any kind.
#[cfg(test)]
fn anchors() -> impl Iterator<Item = &'static str> {
    all().flat_map(Kind::anchors).copied()
}

/// The text without secrets, and how many there were; `None` where it has none.
fn redact(text: &str) -> Option<(String, usize)> {
    // Compiled once in a process, on first use.
    static COMPILED: OnceLock<Option<Compiled>> = OnceLock::new();
    if text.len() < MIN_TEXT_BYTES {
        return None;
    }
    let spans = match COMPILED.get_or_init(|| Compiled::new().ok()) {
        Some(compiled) => match fold(text) {
            Some(folded) => compiled.spans(&folded.text).iter().map(|span| folded.source(span)).collect(),
            None => compiled.spans(text),
        },
        // A test sees to it that they compile. Were it otherwise, nothing of the text would be safe to show.
        None => std::iter::once(0..text.len()).collect(),
    };
    (!spans.is_empty()).then(|| (replace_spans(text, &spans), spans.len()))
}

struct Compiled {
    anchors: AhoCorasick,
    /// The kind of each anchor, with its number.
    kinds: Vec<(usize, &'static Kind)>,
}

impl Compiled {
    fn new() -> Result<Self, BuildError> {
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).kind(Some(AhoCorasickKind::ContiguousNFA));
        let anchors_of =
            |(number, kind): (usize, &'static Kind)| kind.anchors().iter().map(move |_| (number, kind));
        Ok(Compiled {
            anchors: builder.build(all().flat_map(Kind::anchors))?,
            kinds: all().enumerate().flat_map(anchors_of).collect(),
        })
    }

    /// Where secrets stand, in order and apart.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = context::spans(text);
        // Where the last secret of each kind ends.
        let mut ends: Vec<usize> = Vec::new();
        for anchor in self.anchors.find_overlapping_iter(text) {
            let (number, kind) = self.kinds[anchor.pattern().as_usize()];
            if ends.get(number).is_some_and(|end| anchor.start() < *end) {
                continue;
            }
            if let Some(span) = kind.find(text, anchor.range()) {
                if ends.len() <= number {
                    ends.resize(number + 1, 0);
                }
                ends[number] = span.end;
                spans.push(span);
            }
        }
        merge_spans(spans)
    }
}

/// Spans in order; those that touch become one.
fn merge_spans(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut disjoint: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match disjoint.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => disjoint.push(span),
        }
    }
    disjoint
}

/// Whether a string is a secret for the key that it is under, in a document.
fn is_value_of(key: &str, value: &str) -> bool {
    let of_one = !value.contains(char::is_whitespace) || plausibility::is_phrase(value);
    let named = plausibility::names_a_secret(key) && of_one;
    let is_value = || {
        assignment::is_value_of(key, value).unwrap_or_else(|| redact(&format!("{key}=\"{value}\"")).is_some())
    };
    named && is_value()
}

#[cfg(test)]
mod tests;
