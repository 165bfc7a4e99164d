//! Keyrings as they are written (D3, D9): `keyring.toml`, and the keys of a governance file. Each entry is a public key,
//! who has it, and when what it signs counts. Whether a text is a key at all the running program says
//! ([`Capabilities::check_public_key`]).

mod edit;

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};

pub use edit::{TimeField, add_key, add_voucher, set_time};

use crate::capabilities::{Capabilities, PublicKeyError};
use crate::timestamp;
use crate::tree::{Field, Format, Kind, ParsedFile, open};
use crate::{Loaded, Source};

/// How the text of a secret key is recognised.
const SECRET_MARKER: &str = ":seed:";

/// The length of a day in milliseconds.
const DAY_MS: i64 = 86_400_000;

/// A public key and when it may sign, in milliseconds since the Unix epoch. What is `None` sets no bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub public: Arc<str>,
    /// Who has it, for people.
    pub label: Option<String>,
    /// The first moment at which it may sign.
    pub not_before_ms: Option<i64>,
    /// The last moment at which it may sign.
    pub not_after_ms: Option<i64>,
    /// From this moment on nothing it signs counts.
    pub revoked_at_ms: Option<i64>,
    /// Other keys' word that its signatures count where theirs do, as `quorate keys vouch` writes it.
    pub vouchers: Vec<Arc<str>>,
    /// Where its text stands.
    pub place: Place,
}

/// Loads a keyring from its file. `path` is where it is, `shown` what the user calls it.
pub fn load(path: &Path, shown: &str, source: &dyn Source, host: &dyn Capabilities) -> Loaded<Vec<Key>> {
    let opened = match open(source, path, shown, Format::Toml, codes::KEYRING_INVALID) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let keys = read(&opened, host);
    let report = opened.source_file.into_report();
    Loaded { value: keys.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, host: &dyn Capabilities) -> Option<Vec<Key>> {
    let mut fields = opened.fields()?;
    let keys = fields.optional("keys").map_or_else(|| Some(Vec::new()), |field| keys(&field, host, None));
    fields.finish();
    keys
}

/// Reads a list of keys: each its text alone, or a mapping. A key that is there twice is refused. What is written as no
/// key of ours goes to `foreign`, or is refused where there is none.
pub(crate) fn keys(
    field: &Field<'_>,
    host: &dyn Capabilities,
    mut foreign: Option<&mut Vec<Place>>,
) -> Option<Vec<Key>> {
    let mut keys: Vec<Key> = Vec::new();
    for item in field.list()? {
        if let Some(foreign) = &mut foreign
            && is_foreign_key(&item, host)
        {
            foreign.push(item.place());
            continue;
        }
        let Some(key) = key(&item, host) else { continue };
        if let Some(first) = keys.iter().find(|one| one.public == key.public) {
            let body = Body::new("this key is in the list twice").help("keep one of the two");
            item.refuse_as_invalid(body.related(first.place.clone(), "first here"));
        }
        keys.push(key);
    }
    Some(keys)
}

fn key(item: &Field<'_>, host: &dyn Capabilities) -> Option<Key> {
    if let Kind::Str(_) = item.kind() {
        let (public, place) = public_key(item, host)?;
        let (label, bound) = (None, None);
        return Some(Key {
            public,
            label,
            not_before_ms: bound,
            not_after_ms: bound,
            revoked_at_ms: bound,
            vouchers: Vec::new(),
            place,
        });
    }
    let mut fields = item.fields()?;
    let public = fields.required("public", "a public key's text").and_then(|field| public_key(&field, host));
    let label = fields.optional("label").and_then(|field| field.non_blank_text().map(str::to_owned));
    let mut at = |key, end| fields.optional(key).and_then(|field| parse_time(&field, end));
    let (not_before_ms, not_after_ms, revoked_at_ms) = (
        at("not_before", DayBoundary::Start),
        at("not_after", DayBoundary::End),
        at("revoked_at", DayBoundary::Start),
    );
    let vouchers = fields.optional("vouched").map_or_else(Vec::new, |field| vouchers(&field));
    fields.finish();
    let (public, place) = public?;
    if let (Some(from), Some(to)) = (not_before_ms, not_after_ms)
        && to < from
    {
        item.invalid_with("this key would end before it begins", "put `not_after` behind `not_before`");
    }
    Some(Key { public, label, not_before_ms, not_after_ms, revoked_at_ms, vouchers, place })
}

/// Reads vouchers: each a key's name, a time and a signature. Whether they hold is for whoever records them to say.
fn vouchers(field: &Field<'_>) -> Vec<Arc<str>> {
    let mut vouchers = Vec::new();
    for item in field.list().unwrap_or_default() {
        let Some(text) = item.non_blank_text() else { continue };
        if text.split(' ').filter(|word| !word.is_empty()).count() == 3 {
            vouchers.push(text.into());
        } else {
            item.invalid_with(
                format!("`{}` is no voucher: a key's name, a time and a signature", item.path()),
                "take it out; `quorate keys vouch KEY` writes one",
            );
        }
    }
    vouchers
}

fn public_key(field: &Field<'_>, host: &dyn Capabilities) -> Option<(Arc<str>, Place)> {
    let text = field.non_blank_text()?;
    if is_secret(text) {
        field.invalid_with(
            format!("`{}` is a secret key; what stands here can be read by everybody", field.path()),
            "take it out, make another with `quorate keys rotate`, and put the public key here",
        );
        return None;
    }
    match host.check_public_key(text) {
        Ok(()) => Some((text.into(), field.place())),
        Err(why) => {
            let why = match why {
                PublicKeyError::Foreign => "it does not begin as one does".to_owned(),
                PublicKeyError::Malformed(why) => why,
            };
            field.invalid_with(
                format!("`{}` is no public key: {why}", field.path()),
                "`quorate keys export` prints the one to put here",
            );
            None
        }
    }
}

/// Whether an item is written as no key of ours is.
fn is_foreign_key(item: &Field<'_>, host: &dyn Capabilities) -> bool {
    let foreign =
        |text: &str| !is_secret(text) && host.check_public_key(text) == Err(PublicKeyError::Foreign);
    match item.kind() {
        Kind::Str(text) => foreign(text),
        Kind::Map(entries) => {
            let public = entries.iter().find(|entry| entry.key == "public");
            public.is_none_or(|entry| entry.value.as_str().is_some_and(foreign))
        }
        _ => false,
    }
}

/// Whether a text is a secret key's, or has one in it.
pub(crate) fn is_secret(text: &str) -> bool {
    text.contains(SECRET_MARKER)
}

/// A text with stars in the place of all secret keys, byte for byte; `None` where there are none.
pub(crate) fn mask_secrets(text: &str) -> Option<String> {
    let mut covered: Option<String> = None;
    for (at, _) in text.match_indices(SECRET_MARKER) {
        let from = at + SECRET_MARKER.len();
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
        let length = text[from..].find(|c| !base64(c)).unwrap_or(text.len() - from);
        let stars = "*".repeat(length);
        covered.get_or_insert_with(|| text.to_owned()).replace_range(from..from + length, &stars);
    }
    covered
}

/// Which moment of a day a date alone stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayBoundary {
    Start,
    End,
}

fn parse_time(field: &Field<'_>, end: DayBoundary) -> Option<i64> {
    let text = field.non_blank_text()?;
    let day = || {
        let date = text.len() == 10 && text.as_bytes().get(4) == Some(&b'-');
        let first = date.then(|| timestamp::parse(&format!("{text}T00:00:00Z"))).flatten()?;
        Some(if end == DayBoundary::End { first + DAY_MS - 1 } else { first })
    };
    let read = timestamp::parse(text).or_else(day);
    if read.is_none() {
        let message = format!("`{}` is no time", field.path());
        field.invalid_with(message, "write it like 2026-04-21T09:00:00Z, or a date like 2026-04-21");
    }
    read
}

#[cfg(test)]
mod tests;
