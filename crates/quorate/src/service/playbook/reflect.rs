//! Reflect: somebody reads what came of earlier runs and proposes what an operator should learn from it. Each proposal
//! then goes through the same checks as one that was written by hand.
//!
//! Everything that is read stands between markers as material (X3): an artifact that asks for a playbook is a finding at
//! most. Without a `reflector` the rubric proposes what deliberators have found again and again.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_ledger::runs::Run;
use quorate_manifest::timestamp;
use quorate_playbook::delta::{Delta, Misread};
use quorate_protocol::answers::{Schema, reflection};
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use super::asking::Asking;
use super::change::Keeping;
use super::library::Known;
use super::propose::{Proposal, delta};
use super::rollback::status_word;
use crate::service::convene::is_assembly;
use crate::service::stop::Stop;
use crate::service::{overlays, report};

/// How many runs are read unless they are named.
const RUNS: u32 = 200;
/// How many findings of one run are shown.
const FINDINGS: usize = 40;

const ROLE: &str = "# Reflection\n\nYou look at what came of an agent's work and propose what it should do differently from now \
    on: small additions to its prompt, each about one thing that came up again and again. Address the agent. Say what to do, \
    not what went wrong, and never mention that anybody judges its work. Leave who it is as it is. Propose nothing that it \
    is told already, and nothing at all where the runs do not show a pattern. Give the runs that show it as evidence.";
const TASK: &str = "Propose what the agent should learn from these runs.";

/// What reflection came to.
#[derive(Debug)]
pub struct Reflected {
    /// What is proposed.
    pub proposals: Vec<Proposal>,
    /// How many runs were read.
    pub runs: usize,
    /// Who reflected.
    pub by: String,
}

/// Has somebody reflect on an operator's runs.
///
/// # Errors
/// When there is no such operator or run, nobody can be asked, or there is no answer.
pub async fn reflect(
    keeping: &Keeping,
    operator: &str,
    from: &[String],
    executor: Option<&str>,
) -> Result<Reflected, Stop> {
    let slug = operator.rsplit('/').next().unwrap_or(operator);
    let Some(known) = keeping.library.operators.iter().find(|known| known.slug == slug) else {
        let body = Body::new(format!("there is no operator `{operator}`"));
        let help = "its manifest is operators/<slug>/OPERATOR.md";
        return Err(Stop::not_found(codes::OPERATOR_UNRESOLVABLE, body.help(help)));
    };
    let named = keeping.library.workspace.host.playbooks.reflector.as_ref();
    let asking = match (executor, named) {
        (Some(name), _) => Asking::of(keeping, Some(name), None)?,
        (None, Some((name, place))) => Asking::of(keeping, Some(name), Some(place))?,
        (None, None) => Asking::of(keeping, None, None)?,
    };
    let runs = runs(keeping, slug, from).await?;
    let question = Question {
        role: ROLE.to_owned(),
        task: TASK.to_owned(),
        parts: parts(keeping, known, &runs).await?,
        form: Schema::Deltas,
    };
    let answer = asking.ask(&format!("reflect/{slug}"), question).await?.map_err(|why| {
        let body = Body::new(why).help("`quorate doctor` says whether the executor can be called");
        Stop::configuration(codes::OPERATOR_FAILED, body)
    })?;
    let unreadable = |why: String| {
        let body = Body::new(format!("`{}` proposes nothing that can be read: {why}", asking.name()));
        Stop::configuration(codes::DELTA_INVALID, body)
    };
    let objects =
        reflection::deltas(&answer).ok_or_else(|| unreadable("it is no list of deltas".to_owned()))?;
    let proposals = objects.into_iter().map(|object| for_it(delta(Json::Object(object)), slug)).collect();
    Ok(Reflected { proposals, runs: runs.len(), by: asking.name().to_owned() })
}

/// Whoever reflects on one operator proposes for that one alone: a delta that names another one is refused.
fn for_it(proposal: Proposal, slug: &str) -> Proposal {
    let Proposal::Delta(delta) = proposal else { return proposal };
    let Delta::Add(mut add) = *delta else { return Proposal::Delta(delta) };
    if !add.targets.iter().all(|all| names_only(all, slug))
        || !add.selector.iter().all(|all| selects_only(all, slug))
    {
        let misread = Misread {
            why: format!("it is not for `{slug}` alone, whose runs it was learned from"),
            help: Some(
                "leave `targets` and `selector` out; or reflect on the operators that it is for".to_owned(),
            ),
        };
        return Proposal::Unusable { slug: add.slug, misread };
    }
    if add.selector.is_none() {
        add.targets = Some(json!([{"kind": "operator", "ref": slug}]));
    }
    Proposal::Delta(Box::new(Delta::Add(add)))
}

/// Whether targets name an operator by its slug or its ref, and nobody else.
fn names_only(targets: &Json, slug: &str) -> bool {
    let is_it = |one: &Json| {
        let reference = one.get("ref").and_then(Json::as_str).unwrap_or_default();
        let bare = reference.strip_prefix("ws://operators/").or(reference.strip_prefix("operator/"));
        one.get("kind").and_then(Json::as_str) == Some("operator") && bare.unwrap_or(reference) == slug
    };
    targets.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_it))
}

/// Whether a selector asks for this identity, whatever else it asks for.
fn selects_only(selector: &Json, slug: &str) -> bool {
    let identity = selector.get("identity");
    let one = identity.and_then(Json::as_array).and_then(|all| all.first().filter(|_| all.len() == 1));
    one.or(identity).and_then(Json::as_str) == Some(slug)
}

async fn parts(keeping: &Keeping, known: &Known, runs: &[Json]) -> Result<Vec<Part>, Stop> {
    let standing = keeping.library.standing(known);
    let mut playbooks = Vec::new();
    for one in &standing {
        let title = keeping.library.book(&one.overlay.id).map(|book| book.playbook.title.as_str());
        playbooks.push(json!({
            "slug": one.overlay.id, "title": title, "status": status_word(one.status),
            "priority": one.overlay.priority, "body": one.overlay.text,
        }));
    }
    let named = known.named(&keeping.library.scope);
    let advice = overlays::holding(&keeping.desk.store, None).await?;
    let advice: Vec<&str> =
        advice.iter().filter(|one| one.operator == named).map(|one| one.text.as_str()).collect();
    let pretty = |value: &Json| serde_json::to_string_pretty(value).unwrap_or_default();
    Ok(vec![
        Part::new(PartKind::Runs, "", pretty(&json!(runs))),
        Part::new(PartKind::Persona, "", known.base.prompt()),
        Part::new(PartKind::Playbooks, "", pretty(&json!(playbooks))),
        Part::new(PartKind::Overlays, "", pretty(&json!(advice))),
    ])
}

/// What runs came to, as they are shown to whoever reflects: those that were named, else the newest that are about what
/// the operator has made, or do not say who made it.
async fn runs(keeping: &Keeping, operator: &str, from: &[String]) -> Result<Vec<Json>, Stop> {
    let named = !from.is_empty();
    let mut found: Vec<Run> = Vec::new();
    for prefix in from {
        found.push(keeping.desk.find(prefix).await?);
    }
    if !named {
        found = keeping.desk.store.runs(RUNS).await?;
        found.reverse();
    }
    let mut shown = Vec::new();
    for run in found {
        let records = keeping.desk.store.records(&run.run).await?;
        if records.iter().any(|one| one.is(Kind::Violation)) && !named {
            continue;
        }
        let Ok(history) = History::of_what_is_left(&run.run, records) else { continue };
        let made_by = history.opened.get("producer").and_then(|one| one.get("operator")?.as_str());
        if !named && made_by.is_some_and(|made_by| made_by != operator) {
            continue;
        }
        if run.verdict.is_none() {
            continue;
        }
        shown.push(if is_assembly(&history) { advised(&run, &history) } else { reviewed(&run, &history) });
    }
    Ok(shown)
}

fn reviewed(run: &Run, history: &History) -> Json {
    let report = report::Report::of(history, None);
    let findings = report.findings.iter().take(FINDINGS);
    let findings: Vec<Json> = findings
        .map(|one| json!({"by": one.by, "issue": one.issue, "fix": one.fix, "quote": one.quote}))
        .collect();
    json!({
        "run": &*run.run, "at": timestamp::write(run.opened_ms), "artifact_type": run.artifact_type,
        "subject": run.subject, "verdict": run.overridden.as_ref().or(run.verdict.as_ref()),
        "findings": findings, "brief": report.revision_brief,
    })
}

fn advised(run: &Run, history: &History) -> Json {
    let outcome = history.outcome();
    let of =
        |key: &str| outcome.as_ref().and_then(|outcome| outcome.get(key)).and_then(Json::as_array).cloned();
    let findings: Vec<Json> = of("fragments")
        .unwrap_or_default()
        .iter()
        .take(FINDINGS)
        .map(|one| json!({"by": one["member"], "issue": one["text"], "fix": one["text"], "quote": ""}))
        .collect();
    let severity = outcome.as_ref().and_then(|outcome| outcome.get("risk")?.get("severity").cloned());
    json!({
        "run": &*run.run, "at": timestamp::write(run.opened_ms), "artifact_type": run.artifact_type,
        "subject": run.subject, "verdict": run.verdict, "severity": severity, "findings": findings,
    })
}
