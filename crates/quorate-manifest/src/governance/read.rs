//! A governance file as it is written: its keys, one by one.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use super::{Floor, Governance};
use crate::duration::Iso;
use crate::frontmatter;
use crate::keyring::{self, Key};
use crate::layer::{self, Holding};
use crate::round::Round;
use crate::tree::{Document, Field, Fields, Kind};
use crate::workspace::{Error, Spot};
use crate::{Source, source};

/// Reads a file; `None` where it says nothing that binds, or is refused.
pub(super) fn read(round: &Round<'_>, spot: &Spot, bytes: Vec<u8>) -> (Option<Governance>, Report) {
    let Some(holding) = holding(spot.name(), &bytes) else { return (None, Report::new()) };
    let parsed = layer::parse(&round.shown(spot), bytes, holding);
    if parsed.document.refused() {
        return (None, parsed.document.into_report());
    }
    let entries = match parsed.root.as_ref().map(|root| &root.kind) {
        Some(Kind::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let document =
        Document::new(&round.shown(spot), Arc::clone(parsed.document.text()), codes::GOVERNANCE_INVALID);
    let mut fields = document.root(entries);
    let mut foreign = Vec::new();
    let inline = fields
        .optional("keys")
        .map(|field| keyring::keys(&field, round.host, Some(&mut foreign)).unwrap_or_default());
    let elsewhere = fields.optional("keyring").map(|field| elsewhere(round, spot, &field));
    let floor = fields.optional("retention").and_then(|field| floor(&field));
    let (ttl_min, ttl_max) = fields.optional("overlays").and_then(|field| ttl(&field)).unwrap_or_default();
    let approvals = fields.optional("approvals").map(|field| field.key_place());
    // What else stands there is somebody else's to read.
    drop(fields);
    let mut said = Report::new();
    let keys = match (inline, elsewhere) {
        (None, None) => None,
        (inline, elsewhere) => {
            let (listed, report) = elsewhere.unwrap_or_default();
            said = report;
            let mut keys = inline.unwrap_or_default();
            keys.extend(listed);
            twice(&document, &keys);
            Some(keys)
        }
    };
    let mut report = document.into_report();
    report.absorb(said);
    let says = Governance { keys, foreign, floor, ttl_min, ttl_max, approvals };
    ((!report.refused()).then_some(says), report)
}

/// The refusal of a file that cannot be read.
pub(super) fn unreadable(shown: &str, error: &Error) -> Report {
    let place = Place { file: shown.into(), span: 0..0, path: String::new() };
    let body = Body::new(format!("the governance file `{shown}` cannot be read: {error}")).at(place);
    let mut report = Report::new();
    report.source(shown, "");
    report.refuse(codes::GOVERNANCE_INVALID, body.help("correct the path, or make the file"));
    report
}

/// How a file holds its keys; `None` where it is a text without any.
fn holding(name: &str, bytes: &[u8]) -> Option<Holding> {
    let json = name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"));
    if json || Holding::of(name) == Holding::Plain {
        // JSON is YAML.
        return Some(Holding::Plain);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    // Frontmatter that does not end was meant to be some.
    let begun =
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim_end() == "---");
    (begun || frontmatter::split(text).is_ok()).then_some(Holding::Frontmatter)
}

/// The keys of a keyring beside the file.
fn elsewhere(round: &Round<'_>, spot: &Spot, field: &Field<'_>) -> (Vec<Key>, Report) {
    let refused = |why: String| {
        let help = "a path is relative to this file, and leads to a keyring as `quorate keys init` makes one";
        field.invalid_with(why, help);
        (Vec::new(), Report::new())
    };
    let Some(path) = field.some_text() else { return (Vec::new(), Report::new()) };
    let Ok(found) = spot.beside(path) else {
        return refused(format!("the keyring `{path}` lies outside of the workspace or the tenant"));
    };
    match round.workspace.read(&found) {
        Ok(bytes) => {
            let loaded = keyring::load(Path::new(path), &round.shown(&found), &Held(bytes), round.host);
            (loaded.value.unwrap_or_default(), loaded.report)
        }
        Err(error) => refused(format!("the keyring `{path}` cannot be read: {error}")),
    }
}

/// Bytes that were read already.
struct Held(Vec<u8>);

impl Source for Held {
    fn read(&self, _: &Path) -> Result<Vec<u8>, source::Error> {
        Ok(self.0.clone())
    }
}

fn twice(document: &Document, keys: &[Key]) {
    for (at, key) in keys.iter().enumerate() {
        if let Some(first) = keys[..at].iter().find(|one| one.public == key.public)
            && first.place.file != key.place.file
        {
            let body = Body::new("this key is in the file and in its keyring").help("keep one of the two");
            let body = body.at(first.place.clone()).related(key.place.clone(), "also here");
            document.refuse(codes::GOVERNANCE_INVALID, body);
        }
    }
}

fn floor(field: &Field<'_>) -> Option<(Floor, Place)> {
    let mut fields = field.fields()?;
    let floor = fields.optional("floor");
    fields.finish();
    let field = floor?;
    let text = field.some_text()?;
    let days = text.strip_prefix("days:").and_then(|days| days.parse().ok());
    match (text, days) {
        ("forever", _) => Some((Floor::Forever, field.place())),
        (_, Some(days)) => Some((Floor::Days(days), field.place())),
        _ => {
            field.invalid_with("`retention.floor` is no time", "write it like `days:90`, or `forever`");
            None
        }
    }
}

/// A bound of the time that advice may hold, and where it stands.
type Limit = Option<(Iso, Place)>;

fn ttl(field: &Field<'_>) -> Option<(Limit, Limit)> {
    let mut fields = field.fields()?;
    let ttl = fields.optional("ttl");
    fields.finish();
    let mut fields = ttl?.fields()?;
    let limits = (limit(&mut fields, "min"), limit(&mut fields, "max"));
    fields.finish();
    Some(limits)
}

fn limit(fields: &mut Fields<'_>, key: &'static str) -> Limit {
    let field = fields.optional(key)?;
    match field.some_text()?.parse() {
        Ok(iso) => Some((iso, field.place())),
        Err(error) => {
            field.invalid_with(format!("`{}` is no duration: {error}", field.path()), "write it like P14D");
            None
        }
    }
}
