//! Reads one governance file.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, Report, codes};

use super::{Governance, MinimumRetention};
use crate::document::{self, Syntax};
use crate::duration::IsoDuration;
use crate::frontmatter;
use crate::keyring::{self, Key};
use crate::loader::Loader;
use crate::tree::{Field, Fields, Kind, SourceFile};
use crate::workspace::{Error, WorkspacePath};
use crate::{Source, source};

/// Reads a file; `None` if it has no effect or is refused.
pub(super) fn read(
    loader: &Loader<'_>,
    location: &WorkspacePath,
    bytes: Vec<u8>,
) -> (Option<Governance>, Report) {
    let Some(syntax) = detect_syntax(location.name(), &bytes) else { return (None, Report::new()) };
    let parsed = document::parse(&loader.display_name(location), bytes, syntax);
    if parsed.document.refused() {
        return (None, parsed.document.into_report());
    }
    let entries = match parsed.root.as_ref().map(|root| &root.kind) {
        Some(Kind::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let document = SourceFile::new(
        &loader.display_name(location),
        Arc::clone(parsed.document.text()),
        codes::GOVERNANCE_INVALID,
    );
    let mut fields = document.root(entries);
    let mut foreign = Vec::new();
    let inline = fields
        .optional("keys")
        .map(|field| keyring::keys(&field, loader.capabilities, Some(&mut foreign)).unwrap_or_default());
    let keyring = fields.optional("keyring").map(|field| load_keyring(loader, location, &field));
    let minimum_retention = fields.optional("retention").and_then(|field| minimum_retention(&field));
    let (ttl_min, ttl_max) = fields.optional("overlays").and_then(|field| ttl(&field)).unwrap_or_default();
    let approvals = fields.optional("approvals").map(|field| field.key_place());
    // Other tools may read other keys.
    drop(fields);
    let mut keyring_report = Report::new();
    let keys = match (inline, keyring) {
        (None, None) => None,
        (inline, keyring) => {
            let (listed, report) = keyring.unwrap_or_default();
            keyring_report = report;
            let mut keys = inline.unwrap_or_default();
            keys.extend(listed);
            refuse_duplicates(&document, &keys);
            Some(keys)
        }
    };
    let mut report = document.into_report();
    report.absorb(keyring_report);
    let governance =
        Governance { keys, foreign_keys: foreign, minimum_retention, ttl_min, ttl_max, approvals };
    ((!report.has_refusals()).then_some(governance), report)
}

/// The refusal of a file that cannot be read.
pub(super) fn unreadable(shown: &str, error: &Error) -> Report {
    let place = Place { file: shown.into(), span: 0..0, path: String::new() };
    let body = Body::new(format!("the governance file `{shown}` cannot be read: {error}")).at(place);
    let mut report = Report::new();
    report.add_source(shown, "");
    report.refuse(codes::GOVERNANCE_INVALID, body.help("correct the path, or create the file"));
    report
}

/// The syntax of a file; `None` for a text without frontmatter.
fn detect_syntax(name: &str, bytes: &[u8]) -> Option<Syntax> {
    let json = name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("json"));
    if json || Syntax::from_name(name) == Syntax::Yaml {
        // JSON is YAML.
        return Some(Syntax::Yaml);
    }
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    // Unclosed frontmatter is parsed, so that it is refused.
    let opens =
        text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.trim_end() == "---");
    (opens || frontmatter::split(text).is_ok()).then_some(Syntax::Frontmatter)
}

/// The keys of the keyring file that the governance file names.
fn load_keyring(loader: &Loader<'_>, location: &WorkspacePath, field: &Field<'_>) -> (Vec<Key>, Report) {
    let refused = |why: String| {
        let help = "write a path relative to this file, of a keyring that `quorate keys init` made";
        field.invalid_with(why, help);
        (Vec::new(), Report::new())
    };
    let Some(path) = field.non_blank_text() else { return (Vec::new(), Report::new()) };
    let Ok(found) = location.resolve_relative(path) else {
        return refused(format!("the keyring `{path}` lies outside of the workspace or the tenant"));
    };
    match loader.workspace.read(&found) {
        Ok(bytes) => {
            let loaded = keyring::load(
                Path::new(path),
                &loader.display_name(&found),
                &InMemorySource(bytes),
                loader.capabilities,
            );
            (loaded.value.unwrap_or_default(), loaded.report)
        }
        Err(error) => refused(format!("the keyring `{path}` cannot be read: {error}")),
    }
}

/// A source with the bytes of one file.
struct InMemorySource(Vec<u8>);

impl Source for InMemorySource {
    fn read(&self, _: &Path) -> Result<Vec<u8>, source::Error> {
        Ok(self.0.clone())
    }
}

fn refuse_duplicates(document: &SourceFile, keys: &[Key]) {
    for (at, key) in keys.iter().enumerate() {
        if let Some(first) = keys[..at].iter().find(|other| other.public == key.public)
            && first.place.file != key.place.file
        {
            let body = Body::new("this key is in the file and in its keyring").help("keep one of the two");
            let body = body.at(first.place.clone()).related(key.place.clone(), "also here");
            document.refuse(codes::GOVERNANCE_INVALID, body);
        }
    }
}

fn minimum_retention(field: &Field<'_>) -> Option<(MinimumRetention, Place)> {
    let mut fields = field.fields()?;
    let minimum = fields.optional("floor");
    fields.finish();
    let field = minimum?;
    let text = field.non_blank_text()?;
    let days = text.strip_prefix("days:").and_then(|days| days.parse().ok());
    match (text, days) {
        ("forever", _) => Some((MinimumRetention::Forever, field.place())),
        (_, Some(days)) => Some((MinimumRetention::Days(days), field.place())),
        _ => {
            field.invalid_with(
                "`retention.floor` is not a retention",
                "write it like `days:90`, or `forever`",
            );
            None
        }
    }
}

/// A limit of the lifetime of overlays, with its place.
type TtlLimit = Option<(IsoDuration, Place)>;

fn ttl(field: &Field<'_>) -> Option<(TtlLimit, TtlLimit)> {
    let mut fields = field.fields()?;
    let ttl = fields.optional("ttl");
    fields.finish();
    let mut fields = ttl?.fields()?;
    let limits = (ttl_limit(&mut fields, "min"), ttl_limit(&mut fields, "max"));
    fields.finish();
    Some(limits)
}

fn ttl_limit(fields: &mut Fields<'_>, key: &'static str) -> TtlLimit {
    let field = fields.optional(key)?;
    match field.non_blank_text()?.parse() {
        Ok(iso) => Some((iso, field.place())),
        Err(error) => {
            field
                .invalid_with(format!("`{}` is not a duration: {error}", field.path()), "write it like P14D");
            None
        }
    }
}
