//! `tier_rules`, `tier_classifier` and `watch`: the artifacts of a sweep and their tiers.

use quorate_diagnostics::{Body, codes};

use super::Watch;
use super::files::CouncilFiles;
use super::glob::Glob;
use super::tiers::{Classifier, Rule, Tier};
use crate::tree::{Field, Fields, Kind};

/// Reads `tier_classifier`: what decides on tiers, and the tier of artifacts that match no rule.
pub(super) fn classifier(field: Option<Field<'_>>) -> (Classifier, Tier) {
    let default = (Classifier::Rules, Tier::Two);
    let Some(mut fields) = field.and_then(|field| field.fields()) else { return default };
    let classifier = fields.optional("type").and_then(|field| {
        let word = field.text()?;
        let known = Classifier::ALL.into_iter().find(|classifier| classifier.as_str() == word);
        if known.is_none() {
            field.invalid_with(
                format!("there is no tier classifier `{word}`"),
                "it is `rules`, `model` or `hybrid`",
            );
        }
        known
    });
    let classifier = classifier.unwrap_or(Classifier::Rules);
    let written = fields.optional("default_tier");
    if let Some(field) = written.as_ref().filter(|_| classifier != Classifier::Rules) {
        let message = format!("`default_tier` has no effect with `type: {}`", classifier.as_str());
        let help = "remove it: where no rule decides, a model does, and without its answer tier 1 counts";
        field.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).help(help));
    }
    let tier = written.and_then(|field| tier(&field)).unwrap_or(Tier::Two);
    fields.finish();
    (classifier, tier)
}

fn tier(field: &Field<'_>) -> Option<Tier> {
    field.integer(1, 3).and_then(|number| u64::try_from(number).ok()).and_then(Tier::from_number)
}

/// Reads `tier_rules`: the rules, or the path of a file that has them at its top level or below `tier_rules`.
pub(super) fn rules(field: Option<Field<'_>>, files: &mut CouncilFiles<'_>) -> Vec<Rule> {
    let Some(field) = field else { return Vec::new() };
    if !matches!(field.kind(), Kind::Str(_)) {
        return field.fields().map(rules_by_tier).unwrap_or_default();
    }
    let read_file = |mut fields: Fields<'_>| match fields.optional("tier_rules") {
        None => rules_by_tier(fields),
        Some(field) => {
            fields.finish();
            field.fields().map(rules_by_tier).unwrap_or_default()
        }
    };
    files.tier_rules(&field, read_file).unwrap_or_default()
}

fn rules_by_tier(mut fields: Fields<'_>) -> Vec<Rule> {
    let keys = ["tier_1", "tier_2", "tier_3"];
    let mut rules = Vec::new();
    for (key, tier) in keys.into_iter().zip(Tier::ALL) {
        if let Some(field) = fields.optional(key) {
            rules.extend(rules_of(&field, tier));
        }
    }
    fields.finish();
    rules
}

/// Reads one tier's rules: a mapping from artifact types to globs, or a list of globs, whose texts give the types.
fn rules_of(field: &Field<'_>, tier: Tier) -> Vec<Rule> {
    match field.kind() {
        Kind::Seq(_) => {
            let globs = globs(field);
            globs
                .into_iter()
                .map(|glob| Rule { tier, artifact_type: derived_type(glob.as_str()), glob })
                .collect()
        }
        Kind::Map(_) => {
            let rules = |(artifact_type, field): (&str, Field<'_>)| {
                let rule = |glob| Rule { tier, artifact_type: artifact_type.to_owned(), glob };
                globs(&field).into_iter().map(rule).collect::<Vec<_>>()
            };
            field.entries().unwrap_or_default().into_iter().flat_map(rules).collect()
        }
        other => {
            let message = format!("`{}` is {}", field.path(), other.name());
            field.invalid_with(
                message,
                "write a list of globs, or a mapping from artifact types to such lists",
            );
            Vec::new()
        }
    }
}

fn globs(field: &Field<'_>) -> Vec<Glob> {
    let items = field.list().unwrap_or_default();
    items.iter().filter_map(|item| item.non_blank_text()).map(Glob::new).collect()
}

/// The artifact type of a glob in a plain list, as in the public tool: the stem without leading stars and underscores, or
/// `unknown`.
fn derived_type(glob: &str) -> String {
    let name = glob.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => &name[..dot],
        _ => name,
    };
    match stem.trim_start_matches('*').trim_start_matches('_') {
        "" => "unknown".to_owned(),
        derived => derived.to_owned(),
    }
}

/// Reads `watch`: the paths of a sweep, and the tiers that override the rules.
pub(super) fn watch(field: Option<Field<'_>>) -> (Watch, Vec<(Glob, Tier)>) {
    let Some(mut fields) = field.and_then(|field| field.fields()) else {
        return (Watch::default(), Vec::new());
    };
    let paths = fields.optional("paths").and_then(|field| field.list()).unwrap_or_default();
    let paths = paths.iter().filter_map(|item| item.non_blank_text()).map(str::to_owned).collect();
    let overrides = fields.optional("tier_overrides").and_then(|field| field.entries()).unwrap_or_default();
    let overrides = overrides.into_iter().filter_map(|(glob, field)| Some((Glob::new(glob), tier(&field)?)));
    let overrides = overrides.collect();
    fields.finish();
    (Watch { paths }, overrides)
}

#[cfg(test)]
mod tests {
    use super::derived_type;

    #[test]
    fn a_flat_list_names_its_types() {
        for (glob, expected) in [
            ("*_substack_*.md", "substack_*"),
            ("*linkedin*", "linkedin*"),
            ("shared/learnings.md", "learnings"),
            ("drafts/**", "unknown"),
            ("*", "unknown"),
            ("*.md", "unknown"),
            (".hidden", ".hidden"),
            ("a/b/", "b"),
        ] {
            assert_eq!(derived_type(glob), expected, "{glob}");
        }
    }
}
