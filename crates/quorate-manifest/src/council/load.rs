//! Loads `council.yaml` as a [`Council`]. Each top-level key has its own module; this one combines them.

use std::path::{Path, PathBuf};

use quorate_diagnostics::codes;

use super::files::{CouncilFiles, FileAccess};
use super::{Council, Watch};
use super::{logging, protocol, roster, runtime, tier_rules};
use crate::tree::{Field, Fields, Format, ParsedFile, open};
use crate::{Loaded, Source};

/// Loads a council. `shown` is the path as messages show it.
pub fn load(path: &Path, shown: &str, source: &dyn Source) -> Loaded<Council> {
    load_in(path, shown, source, FileAccess::NONE)
}

/// Like [`load`], with access to files outside of the council's directory.
pub fn load_in(path: &Path, shown: &str, source: &dyn Source, access: FileAccess<'_>) -> Loaded<Council> {
    let opened = match open(source, path, shown, Format::Yaml, codes::COUNCIL_INVALID) {
        Ok(opened) => opened,
        Err(report) => return Loaded { value: None, report },
    };
    let dir = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let dir = if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir };
    let mut files = CouncilFiles::new(source, &dir, shown, access);
    let council = read(&opened, path, dir, &mut files);
    let (files, reports) = files.finish();
    let council = council.map(|council| Council { files, ..council });
    let mut report = opened.source_file.into_report();
    reports.into_iter().for_each(|other| report.absorb(other));
    debug_assert!(council.is_some() || report.has_refusals(), "no council and no refusal");
    Loaded { value: council.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, path: &Path, dir: PathBuf, files: &mut CouncilFiles<'_>) -> Option<Council> {
    let mut fields = opened.fields()?;
    let name = path.file_name().map_or_else(|| "council.yaml".into(), |name| name.to_string_lossy());
    files.record_hash(&name, opened.sha256.clone());

    version(fields.optional("version"));
    let runtime = fields.optional("runtime").and_then(|field| runtime::read(&field));
    let deliberators = fields
        .required("deliberators", "a list of three or more, each with `id` and `prompt`")
        .and_then(|field| roster::deliberators(&field, files));
    let adjudicator = fields
        .required("adjudicator", "a mapping with `prompt`")
        .and_then(|field| roster::adjudicator(&field, files));
    let members = deliberators.as_ref().map_or(usize::MAX, |roster| roster.listed);
    let protocol = protocol::read(fields.optional("protocol"), members);
    let (tiers, watch) = tiers_and_watch(&mut fields, files);
    let logging = logging::read(fields.optional("logging"));
    fields.finish();

    let adjudicator = adjudicator?;
    Some(Council {
        dir,
        deliberators: deliberators?.deliberators,
        adjudicator: adjudicator.prompt?,
        adjudicator_runtime: adjudicator.runtime.map(Box::new),
        protocol: protocol?,
        tiers,
        logging,
        watch,
        runtime,
        policy: adjudicator.policy,
        files: Vec::new(),
    })
}

fn tiers_and_watch(
    fields: &mut Fields<'_>,
    files: &mut CouncilFiles<'_>,
) -> (super::tiers::TierRules, Watch) {
    let (classifier, default) = tier_rules::classifier(fields.optional("tier_classifier"));
    let rules = tier_rules::rules(fields.optional("tier_rules"), files);
    let (watch, overrides) = tier_rules::watch(fields.optional("watch"));
    (super::tiers::TierRules::new(rules, overrides, default, classifier), watch)
}

/// Checks `version`, the version of the format: only 1.0 exists.
fn version(field: Option<Field<'_>>) {
    use crate::tree::Kind;
    let Some(field) = field else { return };
    let known = match field.kind() {
        Kind::Str(text) => matches!(text.as_str(), "1" | "1.0"),
        Kind::Int(number) => *number == 1,
        Kind::Float(number) => number.value == 1.0,
        _ => false,
    };
    if !known {
        field.invalid_with("unknown version of the format", "write version: \"1.0\", or remove it");
    }
}

#[cfg(test)]
mod tests;
