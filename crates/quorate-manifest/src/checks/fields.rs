//! Checks of single values that match the schema: fields, parameters and approvals without effect, values below
//! `metadata.quorate` (M13), numbers that cannot be recorded exactly (V3, X10), durations, and locked traits (L3, L4).
//!
//! The check of numbers runs before deserialization, since the manifest's type cannot represent such a number. A locked trait
//! is a regular expression if the document that declares it has match mode `regex`; a descendant's `regex` does not apply to
//! it (M9).

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use quorate_text::locks::TraitReach;
use serde_json::{Value, json};

use super::CheckContext;
use crate::assembly::{HEURISTICS, MatchMode, Mode};
use crate::config::{MAX_SAMPLES, MAX_STAND_INS};
use crate::decimal::Decimal;
use crate::document::schema_error;
use crate::duration::IsoDuration;
use crate::json_schema::CompiledSchema;
use crate::loader::Chain;
use crate::tree::reader::meant_or;
use crate::tree::{Kind, Node};

/// Fields of members, each with the only mode that reads it.
pub(super) const MODE_FIELDS: [(&str, Mode); 5] = [
    ("phase", Mode::Advisory),
    ("triggers", Mode::Advisory),
    ("weight", Mode::Voting),
    ("voteClass", Mode::Voting),
    ("parent", Mode::Hierarchy),
];

pub(super) fn check_fields_without_effect(view: &CheckContext<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        for (field, mode) in MODE_FIELDS {
            if mode == view.mode || member.key(field).is_none() {
                continue;
            }
            let message = format!("`{field}` has no effect in {} mode", view.mode.as_str());
            let place = view.key_place(member, field, format!("members[{at}].{field}"));
            let help = format!("remove it; it is a field of {} mode", mode.as_str());
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        }
    }
    check_unread_params(view);
    check_heuristic(view);
    check_approvals(view);
}

/// Parameters that a rule does not read: in this mode, after the first rule of their kind, or beside or without another
/// parameter.
fn check_unread_params(view: &CheckContext<'_, '_>) {
    let mut seen: Vec<(&str, &Node)> = Vec::new();
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(word) = rule.text_of("kind") else { continue };
        let Some((kind, params)) = view.loader.capabilities.rule_kind(word).zip(rule.key("params")) else {
            continue;
        };
        // Refused: it has no meaning in this mode at all.
        if !kind.modes.contains(&view.mode) {
            continue;
        }
        let warn = |name: &str, message: String, help: String| {
            let place = view.key_place(params, name, format!("synthesis.rules[{at}].params.{name}"));
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        };
        let first = seen.iter().find(|(kind, _)| *kind == word).map(|(_, rule)| *rule);
        for (name, modes) in kind.mode_params.iter().filter(|(name, _)| params.key(name).is_some()) {
            if !modes.contains(&view.mode) {
                let modes: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
                let message =
                    format!("a rule of kind `{word}` does not read `{name}` in {} mode", view.mode.as_str());
                warn(name, message, format!("remove it; it is a parameter of {} mode", modes.join(" and ")));
            }
        }
        let is_read = |name: &str| {
            let modes = kind.mode_params.iter().find(|(param, _)| *param == name);
            params.key(name).is_some() && modes.is_none_or(|(_, modes)| modes.contains(&view.mode))
        };
        for name in kind.first_rule_only_params.iter().filter(|name| is_read(name)) {
            if let Some(first) = first {
                let id = first.text_of("id").unwrap_or_default();
                let message = format!(
                    "`{name}` has an effect only in the first rule of kind `{word}`, which is `{id}`"
                );
                warn(name, message, format!("move it to `{id}`, or remove it"));
            }
        }
        for (name, other, value) in kind.dependent_params.iter().filter(|(name, ..)| is_read(name)) {
            if params.text_of(other) != Some(value) {
                let message = format!("`{name}` has no effect without `{other}: {value}`");
                warn(name, message, format!("add `{other}: {value}`, or remove `{name}`"));
            }
        }
        for (name, other) in kind.shadowed_params.iter().filter(|(name, _)| is_read(name)) {
            if is_read(other) {
                warn(
                    name,
                    format!("`{name}` has no effect beside `{other}`"),
                    "remove one of the two".to_owned(),
                );
            }
        }
        // A rule without the parameter also counts as the first of its kind.
        if first.is_none() {
            seen.push((word, rule));
        }
    }
}

/// A heuristic that `convene --if-due` refuses.
fn check_heuristic(view: &CheckContext<'_, '_>) {
    let Some(node) = view.root().at_path(&["defaults", "triggerHeuristic"]) else { return };
    let Some(written) = node.as_str().filter(|written| !HEURISTICS.contains(written)) else { return };
    let body = Body::new(format!("unknown trigger heuristic `{written}`: `convene --if-due` refuses it"));
    let help = meant_or(written.strip_prefix("custom:").unwrap_or(written), &HEURISTICS, || {
        format!("the heuristics are: {}", HEURISTICS.join(", "))
    });
    let place = view.place(node, "defaults.triggerHeuristic");
    view.warn(codes::FIELD_WITHOUT_EFFECT, body.at(place).help(help));
}

/// Quorate cannot check the approvals that governance requires, so `convene` refuses.
fn check_approvals(view: &CheckContext<'_, '_>) {
    for bound in &view.policies.files {
        let Some(place) = &bound.governance.approvals else { continue };
        let message =
            format!("{} requires `approvals`, which Quorate cannot check: `convene` refuses it", bound.file);
        let help =
            "check approvals elsewhere, for example in your forge, and remove `approvals` from this file";
        view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place.clone()).help(help));
    }
}

pub(super) fn check_metadata(view: &CheckContext<'_, '_>) {
    let Some(settings) = view.root().at_path(&["metadata", "quorate"]) else { return };
    let (table, text) = (json!({"type": "object"}), json!({"type": "string", "minLength": 1}));
    let path = "metadata.quorate";
    let stand_ins = json!({"type": "array", "items": text, "maxItems": MAX_STAND_INS, "uniqueItems": true});
    validate(view, settings, path, &table);
    let every = json!({"type": "integer", "minimum": 1});
    let samples = json!({"type": "integer", "minimum": 1, "maximum": MAX_SAMPLES});
    let own = [("executor", &text), ("fallback", &stand_ins), ("samples", &samples)];
    for (key, schema) in own.into_iter().chain([("everyMessages", &every)]) {
        if let Some(node) = settings.key(key) {
            validate(view, node, &format!("{path}.{key}"), schema);
        }
    }
    let Some(members) = settings.key("members") else { return };
    validate(view, members, &format!("{path}.members"), &table);
    for member in members.entries() {
        let path = format!("{path}.members.{}", member.key);
        validate(view, &member.value, &path, &table);
        for (key, schema) in own {
            if let Some(node) = member.value.key(key) {
                validate(view, node, &format!("{path}.{key}"), schema);
            }
        }
    }
}

/// Validates one value in its own document: `metadata` is merged key by key, so values may come from several documents.
fn validate(view: &CheckContext<'_, '_>, node: &Node, path: &str, schema: &Value) {
    let Some(schema) = CompiledSchema::parse(schema) else { return };
    let document = view.chain.document_of(node);
    for error in schema.errors(node) {
        let (body, span, path) = schema_error::describe(&document.text, node, &error, path);
        view.refuse(codes::ASSEMBLY_WORKSPACE_INVALID, body.at(document.place(span, path)));
    }
}

/// The largest integer up to which a double represents every integer exactly.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// Checks the weights and parameters of a merged assembly.
pub(crate) fn check_numbers(chain: &Chain) -> Report {
    let mut report = Report::new();
    for document in &chain.documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    }
    let items = |keys: &[&str]| chain.merged.items_at(keys);
    for (at, member) in items(&["members"]).iter().enumerate() {
        if let Some(weight) = member.key("weight") {
            check_decimal(chain, weight, &format!("members[{at}].weight"), &mut report);
        }
        if let Some(params) = member.at_path(&["gatherInput", "params"]) {
            check_recordable(chain, params, &format!("members[{at}].gatherInput.params"), &mut report);
        }
    }
    for (at, rule) in items(&["synthesis", "rules"]).iter().enumerate() {
        if let Some(params) = rule.key("params") {
            check_recordable(chain, params, &format!("synthesis.rules[{at}].params"), &mut report);
        }
    }
    report
}

/// Refuses a number with too many digits.
fn check_decimal(chain: &Chain, node: &Node, path: &str, report: &mut Report) {
    let Kind::Float(float) = &node.kind else { return };
    if let Err(error) = float.text.parse::<Decimal>() {
        let body = Body::new(format!("`{path}`: {error}")).at(chain.place(node, path));
        report.refuse(codes::NUMBER_UNUSABLE, body.help("write it with fewer digits"));
    }
}

/// Refuses the numbers in a parameter that a run's first record cannot represent exactly.
fn check_recordable(chain: &Chain, node: &Node, path: &str, report: &mut Report) {
    match node.integer() {
        Some(value) if value.unsigned_abs() > MAX_EXACT_INTEGER => {
            let body = Body::new(format!("`{path}` is {value}; integers are exact only up to 2^53"));
            let body = body.at(chain.place(node, path));
            report.refuse(codes::NUMBER_UNUSABLE, body.help("write a smaller number, or put it in quotes"));
        }
        Some(_) => {}
        None => check_decimal(chain, node, path, report),
    }
    for (at, item) in node.items().iter().enumerate() {
        check_recordable(chain, item, &format!("{path}[{at}]"), report);
    }
    for entry in node.entries() {
        check_recordable(chain, &entry.value, &format!("{path}.{}", entry.key), report);
    }
}

pub(super) fn check_trait_patterns(view: &CheckContext<'_, '_>) {
    let declared = crate::assembly::inherited_minimums::declared_match_modes(&view.chain.documents);
    for node in view.root().items_at(&["lockedTraits"]) {
        let Some(text) = node.as_str().filter(|_| declared[usize::from(node.document)] == MatchMode::Regex)
        else {
            continue;
        };
        if let Err(why) = view.loader.capabilities.check_pattern(text) {
            let body = Body::new(format!("`{text}` is not a valid regular expression: {why}"));
            let place = view.place(node, "lockedTraits");
            view.refuse(
                codes::PATTERN_INVALID,
                body.at(place).help("correct it, or match as text: `matchMode: substring`"),
            );
        }
    }
}

pub(super) fn check_doubtful_traits(view: &CheckContext<'_, '_>) {
    let declared = crate::assembly::inherited_minimums::declared_match_modes(&view.chain.documents);
    for node in view.root().items_at(&["lockedTraits"]) {
        let Some(text) = node.as_str() else { continue };
        let reach = view.loader.capabilities.trait_reach(text, declared[usize::from(node.document)]);
        let (message, help) = match reach {
            None => continue,
            Some(TraitReach::Never) => (
                format!("the locked trait `{text}` can never match"),
                "write words or a pattern that a text can contain, or remove the trait",
            ),
            Some(TraitReach::Always) => (
                format!("the locked trait `{text}` matches every text, so that no outcome can pass"),
                "write words or a pattern that only a text to refuse contains",
            ),
        };
        let body = Body::new(message).at(view.place(node, "lockedTraits"));
        view.warn(codes::LOCKED_TRAIT_DOUBTFUL, body.help(help));
    }
}

pub(super) fn check_trait_match_modes(view: &CheckContext<'_, '_>) {
    let has_embedder = view.loader.options.has_embedder || view.loader.capabilities.has_embedder();
    if view.manifest.match_mode != Some(MatchMode::Semantic) || has_embedder {
        return;
    }
    let place = view.root().key("matchMode").map(|node| view.place(node, "matchMode"));
    let mut body = Body::new("nothing compares meanings here; Quorate matches the locked traits as text");
    body.place = place;
    view.warn(
        codes::ASSEMBLY_LOCKED_TRAIT_MATCH_MODE_UNSUPPORTED,
        body.help("set `[meaning] executor` in quorate.toml, or list other words for each trait: synonyms are not found"),
    );
}

pub(super) fn check_default_ttl(view: &CheckContext<'_, '_>) {
    let Some(node) = view.root().at_path(&["audit", "overlays", "defaultTtl"]) else { return };
    let Some(Err(error)) = node.as_str().map(str::parse::<IsoDuration>) else { return };
    let place = view.place(node, "audit.overlays.defaultTtl");
    let body = Body::new(format!("`audit.overlays.defaultTtl` is not a usable duration: {error}"));
    view.refuse(codes::DURATION, body.at(place).help("write it like P14D"));
}
