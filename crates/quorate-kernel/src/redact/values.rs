//! Secrets recognized by value, in the encodings in which they may appear.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use regex::{Regex, RegexBuilder};
use serde_json::json;

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
pub(super) fn compile(values: &[String]) -> Result<Option<Regex>, regex::Error> {
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
