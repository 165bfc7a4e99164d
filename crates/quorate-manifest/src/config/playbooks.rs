//! `[playbooks]` and `[locks.<id>]`: how playbooks are promoted, and the locked traits of operators.

use super::{Lock, Playbooks};
use crate::tree::Field;

/// The bounds of `max_active`.
const MAX_ACTIVE_BOUNDS: (i64, i64) = (1, 1_000);
/// The bounds of `error_rate`.
const ERROR_RATE_BOUNDS: std::ops::RangeInclusive<f64> = 0.000_1..=0.2;

/// The value of `judge` that turns the judge off.
const OFF: &str = "off";

/// Reads `[playbooks]`.
pub(super) fn read(field: &Field<'_>) -> Playbooks {
    let Some(mut fields) = field.fields() else { return Playbooks::default() };
    let mut named = |key| {
        fields.optional(key).and_then(|field| Some((field.non_blank_text()?.to_owned(), field.place())))
    };
    let (judge, reflector, governance) = (named("judge"), named("reflector"), named("governance"));
    let (judge, judge_off) = match judge {
        Some((name, place)) if name == OFF => (None, Some(place)),
        judge => (judge, None),
    };
    let max_active = fields
        .optional("max_active")
        .and_then(|field| field.integer(MAX_ACTIVE_BOUNDS.0, MAX_ACTIVE_BOUNDS.1));
    let scorer = fields.optional("scorer").and_then(|field| {
        let place = field.place();
        let words = texts(&field)?;
        if words.is_empty() {
            field.invalid_with("`scorer` names no command", "write it like [\"python3\", \"score.py\"]");
            return None;
        }
        Some((words, place))
    });
    let min_sample = fields.optional("min_sample").and_then(|field| field.integer(2, 100_000));
    let error_rate = fields.optional("error_rate").and_then(|field| {
        let rate = field.number()?;
        let valid = ERROR_RATE_BOUNDS.contains(&rate);
        if !valid {
            field.invalid_with("`error_rate` is out of bounds", "write it like 0.05; from 0.0001 to 0.2");
        }
        valid.then_some(rate)
    });
    fields.finish();
    let default = Playbooks::default();
    Playbooks {
        max_active: max_active.and_then(|n| usize::try_from(n).ok()).unwrap_or(default.max_active),
        min_sample: min_sample.and_then(|n| u32::try_from(n).ok()).unwrap_or(default.min_sample),
        error_rate: error_rate.unwrap_or(default.error_rate),
        judge,
        judge_off,
        reflector,
        governance,
        scorer,
    }
}

/// Reads `[locks.<id>]`.
pub(super) fn lock(id: &str, field: &Field<'_>) -> Option<Lock> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let valid_start = (2..=64).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_lowercase());
    if !valid_start || !id.chars().all(plain) {
        let message = format!("`{id}` cannot be the id of a locked trait");
        field.invalid_with(
            message,
            "use 2 to 64 lower-case letters, digits and dashes, beginning with a letter",
        );
        return None;
    }
    let mut fields = field.fields()?;
    let description =
        fields.optional("description").and_then(|field| field.non_blank_text().map(str::to_owned));
    let mut list = |key| fields.optional(key).and_then(|field| texts(&field));
    let (words, phrases, operators) = (list("words"), list("phrases"), list("operators"));
    fields.finish();
    Some(Lock {
        description,
        words: words.unwrap_or_default(),
        phrases: phrases.unwrap_or_default(),
        operators,
    })
}

fn texts(field: &Field<'_>) -> Option<Vec<String>> {
    let items = field.list()?;
    items.iter().map(|item| item.non_blank_text().map(str::to_owned)).collect()
}
