//! Loads `council.yaml` as a [`Council`]: the keys as written are in `schema.rs`, and the checks beyond their schema here. The
//! keys of an executor's kind are passed on verbatim.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quorate_diagnostics::{Body, Place, codes};
use serde_json::Value;

use super::files::{CouncilFiles, FileAccess};
use super::{
    ADJUDICATOR, Council, CrossRead, Deliberator, Logging, OnFailure, OwnPolicy, Policy, Protocol, Rounds,
    VerdictPolicy, Watch, policy, schema, tiers,
};
use crate::config::load::{check_duration, check_secret_pattern};
use crate::config::{Block, ExecutorTable, MemberSettings};
use crate::doctype::{Doctype, compiled_schema};
use crate::duration::MAX_DURATION;
use crate::tree::{Field, Format, Kind, ParsedFile, open};
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
    let name = path.file_name().map_or_else(|| "council.yaml".into(), |name| name.to_string_lossy());
    files.record_hash(&name, opened.sha256.clone());
    let council = read(&opened, dir, &mut files);
    let (files, reports) = files.finish();
    let council = council.map(|council| Council { files, ..council });
    let mut report = opened.source_file.into_report();
    reports.into_iter().for_each(|other| report.absorb(other));
    Loaded { value: council.filter(|_| !report.has_refusals()), report }
}

fn read(opened: &ParsedFile, dir: PathBuf, files: &mut CouncilFiles<'_>) -> Option<Council> {
    let schema = compiled_schema(Doctype::Council)?;
    let (mut tiers, mut policy_rows) = (tiers::TierRules::default(), Vec::new());
    let written: schema::Council = opened.read(schema, |root| {
        check(root, files);
        tiers = tiers::read(root, files);
        policy_rows = root.at("policy").iter().flat_map(Field::items).map(|row| row.place()).collect();
    })?;
    let text = opened.source_file.text();
    let deliberator = |written: schema::Deliberator| {
        let context = written.context_refs.unwrap_or_default();
        Some(Deliberator {
            prompt: files.prompt(&written.prompt)?,
            weight: written.weight.unwrap_or(1.0),
            context: context.into_iter().map(|path| files.context(path)).collect::<Option<_>>()?,
            settings: MemberSettings {
                executor: written.executor,
                model: written.model,
                fallback: written.fallback,
                samples: written.samples,
                ..settings(written.runtime, text)
            },
            id: written.id,
        })
    };
    let deliberators: Vec<Deliberator> =
        written.deliberators.into_iter().map(deliberator).collect::<Option<_>>()?;
    let adjudicator = written.adjudicator;
    let policy = match (written.policy, adjudicator.verdict_policy) {
        (Some(schema::Policy::Own(rows)), _) => {
            Some(Policy::Own(OwnPolicy { rows, weights: BTreeMap::new() }).with_weights(&deliberators))
        }
        (Some(schema::Policy::Named(word)), _) | (None, Some(Value::String(word))) => {
            VerdictPolicy::named(&word).map(Policy::Named)
        }
        // A mapping only documents the public tool's code, which behaves like `strict` (C13).
        (None, Some(_)) => Some(Policy::Named(VerdictPolicy::Strict)),
        (None, None) => None,
    };
    let logging = written.logging.unwrap_or_default();
    Some(Council {
        policy,
        policy_rows,
        dir,
        deliberators,
        adjudicator: files.prompt(&adjudicator.prompt)?,
        adjudicator_settings: Box::new(MemberSettings {
            executor: adjudicator.executor,
            model: adjudicator.model,
            fallback: adjudicator.fallback,
            samples: adjudicator.samples,
            ..settings(adjudicator.runtime, text)
        }),
        protocol: protocol(written.protocol.unwrap_or_default()),
        tiers,
        logging: Logging {
            log_path: logging.log_path,
            redact_patterns: logging.redact_patterns.unwrap_or_default(),
        },
        watch: Watch { paths: written.watch.and_then(|watch| watch.paths).unwrap_or_default() },
        runtime: written.runtime.map(|runtime| executor_table(runtime, text)),
        files: Vec::new(),
    })
}

fn settings(runtime: Option<schema::Runtime>, source: &Arc<str>) -> MemberSettings {
    let runtime = runtime.map(|runtime| executor_table(runtime, source));
    MemberSettings { runtime, source: Arc::clone(source), ..MemberSettings::default() }
}

fn executor_table(written: schema::Runtime, source: &Arc<str>) -> ExecutorTable {
    let seconds = written.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    ExecutorTable {
        kind: Some(written.kind),
        timeout: written.timeout.or(seconds),
        retries: written.retries,
        fallback: written.fallback,
        block: Block { source: Arc::clone(source), ..written.block },
    }
}

/// `cross_read`: the public tool's `true` and `false` are `verdicts` and `none`.
fn protocol(written: schema::Protocol) -> Protocol {
    let default = Protocol::default();
    Protocol {
        rounds: if written.rounds == Some(1) { Rounds::One } else { Rounds::Two },
        cross_read: match written.cross_read.unwrap_or_default() {
            Value::Bool(false) => CrossRead::None,
            Value::String(word) if word == "none" => CrossRead::None,
            Value::String(word) if word == "findings" => CrossRead::Findings,
            _ => CrossRead::Verdicts,
        },
        fail_fast: match written.fail_fast_on_runtime_error {
            Some(true) => OnFailure::End,
            _ => OnFailure::Continue,
        },
        min_deliberators: written.min_deliberators_for_verdict.unwrap_or(default.min_deliberators),
    }
}

/// The checks beyond the schema. The files that the council names are read.
fn check(root: &Field<'_>, files: &mut CouncilFiles<'_>) {
    for field in ["executor", "model"].into_iter().filter_map(|key| root.get(key)) {
        let body = Body::new(format!("`{}` is not a key of a council, but of its members", field.path()));
        field.refuse_key(body.help(
            "write it beside the `prompt` of each member; for all, set `[defaults] executor` in quorate.toml",
        ));
    }
    let members = root.at("deliberators.*");
    check_ids(&members);
    for member in members.iter().chain(&root.get("adjudicator")) {
        check_settings(member);
        member.at("prompt").iter().for_each(|field| files.check_prompt(field));
        member.at("context_refs.*").iter().for_each(|field| files.check_context(field));
    }
    for runtime in ["runtime", "*.runtime", "deliberators.*.runtime"].iter().flat_map(|path| root.at(path)) {
        check_timeout(&runtime);
    }
    check_policies(root, &members);
    check_weights(root, &members);
    for field in root.at("protocol.min_deliberators_for_verdict") {
        if let Kind::Int(most) = field.kind()
            && !members.is_empty()
            && usize::try_from(*most).is_ok_and(|most| most > members.len())
        {
            let most = format!("it has to be between 1 and {}", members.len());
            field.invalid(format!("`{}` is {}; {most}", field.path(), field.node().to_json()));
        }
    }
    for field in root.at("logging.archive_dir") {
        let body = Body::new("`archive_dir` has no effect: the ledger keeps every run");
        let help = "remove `archive_dir`; `quorate show RUN` shows a run";
        field.warn(codes::FIELD_WITHOUT_EFFECT, body.help(help));
    }
    root.at("logging.redact_patterns.*").iter().for_each(check_secret_pattern);
}

/// A member is asked through its own `runtime`, or `executor` and `model`.
fn check_settings(member: &Field<'_>) {
    let named = ["executor", "model"].into_iter().find_map(|key| Some((key, member.get(key)?)));
    if let (Some(runtime), Some((key, named))) = (member.get("runtime"), named) {
        let body = Body::new(format!("`{key}` and `runtime` exclude each other"));
        let help = "keep `executor` and `model`, or write `model` in `runtime`";
        named.refuse(codes::COUNCIL_INVALID, body.related(runtime.key_place(), "here too").help(help));
    }
}

/// `timeout_seconds`, a number, as in the public tool; or `timeout`, a duration.
fn check_timeout(runtime: &Field<'_>) {
    let (seconds, duration) = (runtime.get("timeout_seconds"), runtime.get("timeout"));
    if let (Some(seconds), Some(duration)) = (&seconds, &duration) {
        let body = Body::new("`timeout` and `timeout_seconds` exclude each other");
        seconds.refuse_key(body.related(duration.key_place(), "here too").help("keep one of the two"));
    }
    duration.iter().for_each(check_duration);
    if let Some((number, field)) = seconds.and_then(|field| Some((field.node().number()?, field))) {
        let duration = Duration::try_from_secs_f64(number);
        if !duration.is_ok_and(|duration| !duration.is_zero() && duration <= MAX_DURATION) {
            let body = Body::new(format!("{number:?} seconds is not a usable timeout"));
            field.refuse(codes::DURATION, body.help("write a number of seconds above 0"));
        }
    }
}

fn check_ids(members: &[Field<'_>]) {
    let mut seen: BTreeMap<&str, Place> = BTreeMap::new();
    for (id, field) in
        members.iter().filter_map(|member| member.get("id")).filter_map(|id| Some((id.text()?, id)))
    {
        if id == ADJUDICATOR {
            let help = "give it another id; the adjudicator has its own key";
            field.invalid_with("no deliberator can be called `adjudicator`", help);
        } else if let Some(first) = seen.get(id) {
            let body = Body::new(format!("two deliberators are called `{id}`"));
            field.refuse(codes::COUNCIL_INVALID, body.related(first.clone(), "first here"));
        } else {
            seen.insert(id, field.place());
        }
    }
}

/// A weight that no row of the policy counts is only recorded with the answers.
fn check_weights(root: &Field<'_>, members: &[Field<'_>]) {
    let table = root.get("policy").filter(|policy| !matches!(policy.kind(), Kind::Str(_)));
    // A table that cannot be read may have meant to count them.
    let is_counted = table.is_some_and(|table| {
        !matches!(table.kind(), Kind::Seq(_)) || !table.at("*.if.block_weight").is_empty()
    });
    for field in members.iter().filter_map(|member| member.get("weight")) {
        match field.node().number() {
            Some(_) if is_counted => policy::check_weight(&field),
            #[expect(clippy::float_cmp, reason = "only exactly 1 needs no warning")]
            Some(weight) if weight >= 0.0 && weight != 1.0 => {
                let body = Body::new("a weight does not change the verdict: the policy counts members");
                let help =
                    "count weights with a row such as `- {if: {block_weight: 2}, then: REVISE}` in `policy`";
                field.warn(codes::WEIGHT_UNCOUNTED, body.help(help));
            }
            _ => {}
        }
    }
}

/// `policy` is a name or a table. `verdict_policy` is a name; or a mapping, as in the public tool, which only documents the
/// tool's code. That code behaves like `strict`, and `strict` is never milder than `seed` (C13).
fn check_policies(root: &Field<'_>, members: &[Field<'_>]) {
    let named = root.at("adjudicator.verdict_policy").pop();
    if let Some(field) = &named {
        match field.kind() {
            Kind::Map(_) => {
                let message = "a mapping as `verdict_policy` means `strict`; its content has no effect";
                let help =
                    "write `policy: strict`, which behaves like the public tool, `lenient`, or a table";
                field.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).help(help));
            }
            Kind::Seq(_) => field.invalid_with(
                "`verdict_policy` has no table",
                "move the list to `policy`, beside `adjudicator`",
            ),
            _ => policy::check_name(field),
        }
    }
    let Some(written) = root.get("policy") else { return };
    if named.is_some() {
        let body = Body::new("`policy` and `adjudicator.verdict_policy` exclude each other");
        written.refuse_key(body.help("keep `policy`"));
    }
    policy::check_name(&written);
    let ids: Vec<&str> = members.iter().filter_map(|member| member.get("id")?.text()).collect();
    policy::check_rows(&written.items(), &ids);
}

#[cfg(test)]
mod tests;
