//! Keyrings (D3, D9): `keyring.toml`, and the keys of a governance file. Each entry is a public key with its owner's label
//! and validity. [`Capabilities::check_public_key`] decides whether a text is a key.

mod edit;

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};

pub use edit::{TimeField, add_key, add_voucher, set_time};

use crate::capabilities::{Capabilities, PublicKeyError};
use crate::secret_key;
use crate::timestamp;
use crate::tree::{Field, Format, Kind, ParsedFile, open};
use crate::{Loaded, Source};

const DAY_MS: i64 = 86_400_000;

/// A public key and its validity, in milliseconds since the Unix epoch. `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub public: Arc<str>,
    /// The owner, for people.
    pub label: Option<String>,
    /// Inclusive.
    pub not_before_ms: Option<i64>,
    /// Inclusive.
    pub not_after_ms: Option<i64>,
    /// Signatures from this time on are invalid.
    pub revoked_at_ms: Option<i64>,
    /// Signed statements of other keys that this key is as trusted as they are, as `quorate keys vouch` writes them.
    pub vouchers: Vec<Arc<str>>,
    pub place: Place,
}

/// Loads a keyring. `shown` is the path as messages show it.
pub fn load(
    path: &Path,
    shown: &str,
    source: &dyn Source,
    capabilities: &dyn Capabilities,
) -> Loaded<Vec<Key>> {
    let opened = match open(source, path, shown, Format::Toml, codes::KEYRING_INVALID) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let keys = read(&opened, capabilities);
    let report = opened.source_file.into_report();
    Loaded { value: keys.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, capabilities: &dyn Capabilities) -> Option<Vec<Key>> {
    let mut fields = opened.fields()?;
    let keys =
        fields.optional("keys").map_or_else(|| Some(Vec::new()), |field| keys(&field, capabilities, None));
    fields.finish();
    keys
}

/// Reads a list of keys, each a text or a mapping. Refuses duplicates. Keys of other formats go to `foreign`; without it
/// they are refused.
pub(crate) fn keys(
    field: &Field<'_>,
    capabilities: &dyn Capabilities,
    mut foreign: Option<&mut Vec<Place>>,
) -> Option<Vec<Key>> {
    let mut keys: Vec<Key> = Vec::new();
    for item in field.list()? {
        if let Some(foreign) = &mut foreign
            && is_foreign_key(&item, capabilities)
        {
            foreign.push(item.place());
            continue;
        }
        let Some(key) = key(&item, capabilities) else { continue };
        if let Some(first) = keys.iter().find(|other| other.public == key.public) {
            let body = Body::new("this key is in the list twice").help("keep one of the two");
            item.refuse_as_invalid(body.related(first.place.clone(), "first here"));
        }
        keys.push(key);
    }
    Some(keys)
}

fn key(item: &Field<'_>, capabilities: &dyn Capabilities) -> Option<Key> {
    if let Kind::Str(_) = item.kind() {
        let (public, place) = public_key(item, capabilities)?;
        return Some(Key {
            public,
            label: None,
            not_before_ms: None,
            not_after_ms: None,
            revoked_at_ms: None,
            vouchers: Vec::new(),
            place,
        });
    }
    let mut fields = item.fields()?;
    let public =
        fields.required("public", "a public key's text").and_then(|field| public_key(&field, capabilities));
    let label = fields.optional("label").and_then(|field| field.non_blank_text().map(str::to_owned));
    let mut time = |key, boundary| fields.optional(key).and_then(|field| parse_time(&field, boundary));
    let (not_before_ms, not_after_ms, revoked_at_ms) = (
        time("not_before", DayBoundary::Start),
        time("not_after", DayBoundary::End),
        time("revoked_at", DayBoundary::Start),
    );
    let vouchers = fields.optional("vouched").map_or_else(Vec::new, |field| vouchers(&field));
    fields.finish();
    let (public, place) = public?;
    if let (Some(from), Some(to)) = (not_before_ms, not_after_ms)
        && to < from
    {
        item.invalid_with("`not_after` is before `not_before`", "write a later `not_after`");
    }
    Some(Key { public, label, not_before_ms, not_after_ms, revoked_at_ms, vouchers, place })
}

/// Reads vouchers: each a key's name, a time and a signature. The ledger verifies them.
fn vouchers(field: &Field<'_>) -> Vec<Arc<str>> {
    let mut vouchers = Vec::new();
    for item in field.list().unwrap_or_default() {
        let Some(text) = item.non_blank_text() else { continue };
        if text.split(' ').filter(|word| !word.is_empty()).count() == 3 {
            vouchers.push(text.into());
        } else {
            item.invalid_with(
                format!("`{}` is not a voucher: a key's name, a time and a signature", item.path()),
                "remove it; `quorate keys vouch KEY` writes one",
            );
        }
    }
    vouchers
}

fn public_key(field: &Field<'_>, capabilities: &dyn Capabilities) -> Option<(Arc<str>, Place)> {
    let text = field.non_blank_text()?;
    if secret_key::is_in(text) {
        field.invalid_with(
            format!("`{}` is a secret key, but this file is public", field.path()),
            "remove it, make another key with `quorate keys rotate`, and write its public key here",
        );
        return None;
    }
    match capabilities.check_public_key(text) {
        Ok(()) => Some((text.into(), field.place())),
        Err(error) => {
            let reason = match error {
                PublicKeyError::Foreign => "it has another prefix".to_owned(),
                PublicKeyError::Malformed(reason) => reason,
            };
            field.invalid_with(
                format!("`{}` is not a public key: {reason}", field.path()),
                "write the key that `quorate keys export` prints",
            );
            None
        }
    }
}

/// Whether an item is a key of another format.
fn is_foreign_key(item: &Field<'_>, capabilities: &dyn Capabilities) -> bool {
    let foreign = |text: &str| {
        !secret_key::is_in(text) && capabilities.check_public_key(text) == Err(PublicKeyError::Foreign)
    };
    match item.kind() {
        Kind::Str(text) => foreign(text),
        Kind::Map(entries) => {
            let public = entries.iter().find(|entry| entry.key == "public");
            public.is_none_or(|entry| entry.value.as_str().is_some_and(foreign))
        }
        _ => false,
    }
}

/// The moment that a date without a time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayBoundary {
    Start,
    End,
}

fn parse_time(field: &Field<'_>, boundary: DayBoundary) -> Option<i64> {
    let text = field.non_blank_text()?;
    let day = || {
        let date = text.len() == 10 && text.as_bytes().get(4) == Some(&b'-');
        let first = date.then(|| timestamp::parse(&format!("{text}T00:00:00Z"))).flatten()?;
        Some(if boundary == DayBoundary::End { first + DAY_MS - 1 } else { first })
    };
    let read = timestamp::parse(text).or_else(day);
    if read.is_none() {
        let message = format!("`{}` is not a time", field.path());
        field.invalid_with(message, "write it like 2026-04-21T09:00:00Z, or a date like 2026-04-21");
    }
    read
}

#[cfg(test)]
mod tests;
