//! Loads `council.yaml` as a [`Council`], one function for each top-level key. The keys of an executor's kind are passed on
//! verbatim.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place, codes};

use super::files::{CouncilFiles, FileAccess};
use super::{
    ADJUDICATOR, Council, CrossRead, Deliberator, OnFailure, Policy, Prompt, Protocol, Rounds, VerdictPolicy,
    Watch, policy, tiers,
};
use crate::config::load::{member_settings, parse_fallback, parse_retries, rest_block};
use crate::config::{ExecutorTable, MemberSettings};
use crate::duration::MAX_DURATION;
use crate::tree::{Field, Fields, Format, Kind, ParsedFile, open};
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
    let runtime = fields.read("runtime", parse_runtime);
    let roster = fields.required("deliberators", "a list of three or more, each with `id` and `prompt`");
    let written = fields.optional("policy");
    let policy = written.as_ref().and_then(|field| read_policy(field, roster.as_ref()));
    // A table that cannot be read may have meant to count them.
    let is_counted = policy.as_ref().map_or(written.is_some(), |written| written.policy.counts_weights());
    let weights = if is_counted { WeightUse::Counted } else { WeightUse::Recorded };
    let deliberators = roster.and_then(|field| deliberators(&field, files, weights));
    let adjudicator = fields
        .required("adjudicator", "a mapping with `prompt`")
        .and_then(|field| adjudicator(&field, files));
    let members = deliberators.as_ref().map_or(usize::MAX, |roster| roster.listed);
    let protocol = parse_protocol(fields.optional("protocol"), members);
    let (tiers, watch) = tiers_and_watch(&mut fields, files);
    let logging = super::parse_logging(fields.optional("logging"));
    fields.finish_with(|key| {
        let message = format!("`{key}` is not a key of a council, but of its members");
        let help =
            "write it beside the `prompt` of each member; for all, set `[defaults] executor` in quorate.toml";
        matches!(key, "executor" | "model").then(|| (message, help.to_owned()))
    });

    let (adjudicator, deliberators) = (adjudicator?, deliberators?.deliberators);
    let (policy, policy_rows) = match (policy, adjudicator.policy) {
        (Some(written), Some(_)) => {
            let body =
                Body::new("`policy` and `adjudicator.verdict_policy` exclude each other").at(written.key);
            opened.source_file.refuse(codes::COUNCIL_INVALID, body.help("keep `policy`"));
            return None;
        }
        (Some(written), None) => (Some(written.policy.with_weights(&deliberators)), written.rows),
        (None, named) => (named.map(Policy::Named), Vec::new()),
    };
    Some(Council {
        policy,
        policy_rows,
        dir,
        deliberators,
        adjudicator: adjudicator.prompt?,
        adjudicator_settings: Box::new(adjudicator.settings),
        protocol: protocol?,
        tiers,
        logging,
        watch,
        runtime,
        files: Vec::new(),
    })
}

fn tiers_and_watch(
    fields: &mut Fields<'_>,
    files: &mut CouncilFiles<'_>,
) -> (super::tiers::TierRules, Watch) {
    let (classifier, default) = tiers::classifier(fields.optional("tier_classifier"));
    let rules = tiers::rules(fields.optional("tier_rules"), files);
    let (watch, overrides) = tiers::watch(fields.optional("watch"));
    (super::tiers::TierRules::new(rules, overrides, default, classifier), watch)
}

/// Checks `version`, the version of the format: only 1.0 exists.
fn version(field: Option<Field<'_>>) {
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

/// Reads `protocol`. `members` is the number of deliberators.
pub(super) fn parse_protocol(field: Option<Field<'_>>, members: usize) -> Option<Protocol> {
    let mut protocol = Protocol::default();
    let Some(field) = field else { return Some(protocol) };
    let mut fields = field.fields()?;
    match fields.optional("rounds").and_then(|field| field.integer(1, 2)) {
        Some(1) => protocol.rounds = Rounds::One,
        _ => protocol.rounds = Rounds::Two,
    }
    if let Some(seen) = fields.read("cross_read", cross_read) {
        protocol.cross_read = seen;
    }
    if fields.read("fail_fast_on_runtime_error", Field::boolean) == Some(true) {
        protocol.fail_fast = OnFailure::End;
    }
    if let Some(field) = fields.optional("min_deliberators_for_verdict") {
        let max = i64::try_from(members.max(1)).unwrap_or(i64::MAX);
        let min = field.integer(1, max).and_then(|number| usize::try_from(number).ok());
        protocol.min_deliberators = min.unwrap_or(protocol.min_deliberators);
    }
    fields.finish();
    Some(protocol)
}

/// `cross_read`: the public tool's `true` and `false` are `verdicts` and `none`.
fn cross_read(field: &Field<'_>) -> Option<CrossRead> {
    let message = match field.kind() {
        Kind::Bool(true) => return Some(CrossRead::Verdicts),
        Kind::Bool(false) => return Some(CrossRead::None),
        Kind::Str(word) => match word.as_str() {
            "verdicts" => return Some(CrossRead::Verdicts),
            "findings" => return Some(CrossRead::Findings),
            "none" => return Some(CrossRead::None),
            other => format!("unknown value `{other}`"),
        },
        other => format!("`{}` is {}", field.path(), other.name()),
    };
    field.reject(message, "write true, false, verdicts, findings or none")
}

/// Reads `runtime`.
pub(super) fn parse_runtime(field: &Field<'_>) -> Option<ExecutorTable> {
    let mut fields = field.fields()?;
    let kind = fields
        .required("type", "how members are asked, for example `claude_cli`")
        .and_then(|field| field.named());
    let timeout = parse_timeout(&mut fields);
    let retries = parse_retries(&mut fields);
    let fallback = fields.read("fallback", parse_fallback);
    Some(ExecutorTable { kind: Some(kind?), timeout, retries, fallback, block: rest_block(field, &fields) })
}

/// Reads `timeout_seconds`, a number, as in the public tool; or `timeout`, a duration.
fn parse_timeout(fields: &mut Fields<'_>) -> Option<Duration> {
    let seconds = fields.optional("timeout_seconds");
    let duration = fields.optional("timeout");
    if let (Some(seconds), Some(duration)) = (&seconds, &duration) {
        let body = Body::new("`timeout` and `timeout_seconds` exclude each other").at(seconds.key_place());
        let body = body.related(duration.key_place(), "here too").help("keep one of the two");
        fields.source_file().refuse(codes::COUNCIL_INVALID, body);
        return None;
    }
    if let Some(field) = duration {
        return field.duration();
    }
    let field = seconds?;
    let number = field.number()?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() && duration <= MAX_DURATION => Some(duration),
        _ => {
            let body = Body::new(format!("{number:?} seconds is not a usable timeout"));
            field.refuse(codes::DURATION, body.help("write a number of seconds above 0"));
            None
        }
    }
}

/// The minimum number of deliberators.
const MIN_DELIBERATORS: usize = 3;

const MAX_ID_LENGTH: usize = 64;

/// The valid deliberators.
pub(super) struct Roster {
    pub(super) deliberators: Vec<Deliberator>,
    /// The number of deliberators in the file, valid or not.
    pub(super) listed: usize,
}

/// The adjudicator; invalid values are `None`.
pub(super) struct Adjudicator {
    pub(super) prompt: Option<Prompt>,
    pub(super) policy: Option<VerdictPolicy>,
    pub(super) settings: MemberSettings,
}

/// Reads `deliberators`.
pub(super) fn deliberators(
    field: &Field<'_>,
    files: &mut CouncilFiles<'_>,
    weights: WeightUse,
) -> Option<Roster> {
    let items = field.list()?;
    let listed = items.len();
    if listed < MIN_DELIBERATORS {
        let message = format!("a council has at least {MIN_DELIBERATORS} deliberators; here are {listed}");
        field.invalid_with(message, "with fewer, one failure leaves no verdict");
    }
    let mut seen = BTreeMap::new();
    let deliberators = items.iter().filter_map(|item| deliberator(item, files, weights, &mut seen)).collect();
    Some(Roster { deliberators, listed })
}

fn deliberator<'d>(
    item: &Field<'d>,
    files: &mut CouncilFiles<'_>,
    weights: WeightUse,
    seen: &mut BTreeMap<&'d str, Place>,
) -> Option<Deliberator> {
    let mut fields = item.fields()?;
    let id = fields.required("id", "a name, unique in the council").and_then(|field| id(&field, seen));
    let prompt = fields
        .required("prompt", "the path of a Markdown file, or `builtin:skeptic`")
        .and_then(|field| files.prompt(&field));
    let weight = fields.read("weight", |field| weight(field, weights));
    let context = fields.read("context_refs", Field::list).unwrap_or_default();
    let context = context.iter().filter_map(|field| files.context(field)).collect();
    let settings = settings(&mut fields);
    fields.finish();
    let (id, prompt, weight) = (id?, prompt?, weight.unwrap_or(1.0));
    Some(Deliberator { id, prompt, weight, context, settings })
}

/// Reads what a member is asked through: its own `runtime`, or `executor` and `model`.
fn settings(fields: &mut Fields<'_>) -> MemberSettings {
    let runtime = fields.read("runtime", parse_runtime);
    let settings = member_settings(fields);
    let named = [("executor", &settings.executor), ("model", &settings.model)];
    let named = named.into_iter().find_map(|(key, named)| Some((key, &named.as_ref()?.1)));
    if let (Some(runtime), Some((key, place))) = (&runtime, named) {
        let body = Body::new(format!("`{key}` and `runtime` exclude each other")).at(place.clone());
        let body = body.related(runtime.block.place.clone(), "here too");
        let help = "keep `executor` and `model`, or write `model` in `runtime`";
        fields.source_file().refuse(codes::COUNCIL_INVALID, body.help(help));
    }
    MemberSettings { runtime, ..settings }
}

fn id<'d>(field: &Field<'d>, seen: &mut BTreeMap<&'d str, Place>) -> Option<Arc<str>> {
    let id = field.non_blank_text()?;
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !plain || id.len() > MAX_ID_LENGTH {
        let help = format!("use up to {MAX_ID_LENGTH} of the characters A-Z a-z 0-9 _ -");
        return field.reject(format!("`{id}` cannot be an id"), help);
    }
    if id == ADJUDICATOR {
        field.invalid_with(
            "no deliberator can be called `adjudicator`",
            "give it another id; the adjudicator has its own key",
        );
        return None;
    }
    if let Some(first) = seen.get(id) {
        let body =
            Body::new(format!("two deliberators are called `{id}`")).related(first.clone(), "first here");
        field.refuse(codes::COUNCIL_INVALID, body);
        return None;
    }
    seen.insert(id, field.place());
    Some(id.into())
}

/// The effect of the deliberators' weights.
#[derive(Clone, Copy)]
pub(super) enum WeightUse {
    /// The policy counts them.
    Counted,
    /// They are recorded with the answers.
    Recorded,
}

/// Reads `weight`.
fn weight(field: &Field<'_>, weights: WeightUse) -> Option<f64> {
    let weight = field.number()?;
    if weight < 0.0 {
        field.invalid(format!("`{}` is less than 0", field.path()));
        return None;
    }
    #[expect(clippy::float_cmp, reason = "only exactly 1 needs no warning")]
    match weights {
        WeightUse::Counted => _ = policy::weight(field, weight)?,
        WeightUse::Recorded if weight != 1.0 => {
            let body = Body::new("a weight does not change the verdict: the policy counts members");
            let help =
                "count weights with a row such as `- {if: {block_weight: 2}, then: REVISE}` in `policy`";
            field.warn(codes::WEIGHT_UNCOUNTED, body.help(help));
        }
        WeightUse::Recorded => {}
    }
    Some(weight)
}

/// Reads `policy`. The table may name the deliberators of `roster`.
fn read_policy(field: &Field<'_>, roster: Option<&Field<'_>>) -> Option<policy::WrittenPolicy> {
    let ids: Vec<&str> = match roster.map(Field::kind) {
        Some(Kind::Seq(items)) => items.iter().filter_map(|item| item.text_of("id")).collect(),
        _ => Vec::new(),
    };
    policy::read(field, &ids)
}

/// Reads `adjudicator`.
pub(super) fn adjudicator(field: &Field<'_>, files: &mut CouncilFiles<'_>) -> Option<Adjudicator> {
    let mut fields = field.fields()?;
    let prompt = fields
        .required("prompt", "the path of a Markdown file, or `builtin:adjudicator`")
        .and_then(|field| files.prompt(&field));
    let policy = fields.read("verdict_policy", verdict_policy);
    let settings = settings(&mut fields);
    fields.finish();
    Some(Adjudicator { prompt, policy, settings })
}

/// Reads `verdict_policy`: a policy's name; or a mapping, as in the public tool, which only documents the tool's code. That
/// code behaves like `strict`, and `strict` is never milder than `seed` (C13).
fn verdict_policy(field: &Field<'_>) -> Option<VerdictPolicy> {
    match field.kind() {
        Kind::Map(_) => {
            let body = Body::new("a mapping as `verdict_policy` means `strict`; its content has no effect")
                .help("write `policy: strict`, which behaves like the public tool, `lenient`, or a table");
            field.warn(codes::FIELD_WITHOUT_EFFECT, body);
            Some(VerdictPolicy::Strict)
        }
        Kind::Seq(_) => {
            field.reject("`verdict_policy` has no table", "move the list to `policy`, beside `adjudicator`")
        }
        _ => policy::name(field, field.text()?),
    }
}

#[cfg(test)]
mod tests;
