//! Reflect: an executor reads outcomes of earlier runs and proposes what an operator should learn. Each proposal then goes
//! through the same checks as a handwritten one.
//!
//! The prompt puts all input between markers (X3), so an artifact cannot instruct the reflector. Without a `reflector` the
//! rubric proposes the findings that deliberators repeated.

use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::ports::dispatcher::Question;
use quorate_kernel::ports::ledger::{Kind, Ledger as _};
use quorate_ledger::runs::RunRow;
use quorate_manifest::timestamp;
use quorate_playbook::delta::{Delta, DeltaError};
use quorate_protocol::answers::{Schema, reflection};
use quorate_protocol::{Json, Part, PartKind};
use serde_json::json;

use super::consultant::Consultant;
use super::library::KnownOperator;
use super::propose::{Proposal, Proposed, Proposer, proposal_from_json, propose};
use super::writer::LibraryWriter;
use crate::service::error::Error;
use crate::service::run_opened::is_assembly;
use crate::service::{overlays, report};
use crate::view::Doc;
use crate::view::wording::amount;

/// The default number of runs.
const MAX_RUNS: u32 = 200;
/// The maximum number of findings shown per run.
const MAX_FINDINGS: usize = 40;

const ROLE: &str = "# Reflection\n\nYou look at what came of an agent's work and propose what it should do differently from now \
    on: small additions to its prompt, each about one thing that came up again and again. Address the agent. Say what to do, \
    not what went wrong, and never mention that anybody judges its work. Leave who it is as it is. Propose nothing that it \
    is told already, and nothing at all where the runs do not show a pattern. Give the runs that show it as evidence.";
const TASK: &str = "Propose what the agent should learn from these runs.";

/// What the reflector reads
///
/// ```
/// use quorate::playbook::ReflectRequest;
///
/// let request = ReflectRequest { operator: "alice".to_owned(), is_dry_run: true, ..ReflectRequest::default() };
/// assert!(request.from.is_empty(), "it reads the newest runs");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReflectRequest {
    /// The operator, by the name of its folder in `operators/`
    pub operator: String,
    /// Only these runs, by id; without any, the newest ones on the operator's work
    pub from: Vec<String>,
    /// The executor that reflects; by default `reflector` of quorate.toml, else the rubric
    pub executor: Option<String>,
    /// Leaves the proposals to the caller
    pub is_dry_run: bool,
}

/// The result of a reflection
#[derive(Debug)]
pub struct Reflection {
    pub(super) proposals: Vec<Proposal>,
    /// The number of runs read
    pub runs: usize,
    /// The executor
    pub by: String,
    /// The results of the proposals; `None` in a dry run
    pub proposed: Option<Proposed>,
}

impl Reflection {
    /// The proposals as JSON, which can be proposed later.
    pub fn deltas(&self) -> Json {
        let deltas = self.proposals.iter().filter_map(|proposal| match proposal {
            Proposal::Delta(delta) => Some(delta),
            Proposal::Manifest { .. } | Proposal::Unusable { .. } => None,
        });
        json!({"deltas": deltas.collect::<Vec<_>>()})
    }

    /// The executor, and how much it read and proposes; in a dry run also what was unusable.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        let (runs, playbooks) =
            (amount(self.runs as u64, "run"), amount(self.proposals.len() as u64, "playbook"));
        doc.line(format!("{} has read {runs} and proposes {playbooks}", self.by));
        for proposal in &self.proposals {
            if let (Proposal::Unusable { slug, misread }, None) = (proposal, &self.proposed) {
                doc.line(format!("skipped `{slug}`: {}", misread.reason));
            }
        }
        doc
    }
}

/// Lets the reflector read an operator's runs.
///
/// # Errors
/// If the operator or a run is unknown, no executor is available, or the executor does not answer.
#[crate::boxed]
pub(super) async fn reflect(
    writer: &mut LibraryWriter,
    request: ReflectRequest,
) -> Result<Reflection, Error> {
    let ReflectRequest { operator, from, executor, .. } = &request;
    let slug = operator.rsplit('/').next().unwrap_or(operator);
    let Some(known) = writer.library.operators.iter().find(|known| known.slug == slug) else {
        let body = Body::new(format!("unknown operator `{operator}`"));
        let help = "run `quorate check operators` to see the available operators";
        return Err(Error::not_found(codes::OPERATOR_UNRESOLVABLE, body.help(help)));
    };
    let named = writer.library.workspace.config.playbooks.reflector.as_ref();
    let (name, place) = match executor {
        Some(name) => (Some(name), None),
        None => named.map(|(name, place)| (name, place)).unzip(),
    };
    let asking = Consultant::resolve(writer, name.map(String::as_str), place)?;
    let runs = runs(writer, slug, from).await?;
    let question = Question {
        role: ROLE.to_owned(),
        task: TASK.to_owned(),
        parts: prompt_parts(writer, known, &runs).await?,
        answer_schema: Schema::Deltas,
    };
    let answer = asking.ask(&format!("reflect/{slug}"), question).await?.map_err(|why| {
        let body = Body::new(why).help("run `quorate doctor` to check the executor");
        Error::configuration(codes::OPERATOR_FAILED, body)
    })?;
    let objects = reflection::read_deltas(&answer).ok_or_else(|| {
        let message = format!("cannot read the proposals of `{}`: not a list of deltas", asking.name());
        Error::configuration(codes::DELTA_INVALID, Body::new(message))
    })?;
    let redactor = &writer.session.workspace.redaction.redactor;
    let proposals = objects
        .into_iter()
        .map(|object| restrict_to(proposal_from_json(Json::Object(object), redactor), slug))
        .collect();
    let (by, runs) = (asking.name().to_owned(), runs.len());
    let mut reflection = Reflection { proposals, runs, by, proposed: None };
    if !request.is_dry_run {
        let proposer = Proposer { by: reflection.by.clone(), operator: Some(operator.clone()) };
        reflection.proposed = Some(propose(writer, &reflection.proposals, &proposer, None).await?);
    }
    Ok(reflection)
}

/// A reflection on an operator may propose only for this operator: refuses a delta that names another.
fn restrict_to(proposal: Proposal, slug: &str) -> Proposal {
    let Proposal::Delta(delta) = proposal else { return proposal };
    let Delta::Add(mut add) = *delta else { return Proposal::Delta(delta) };
    if !add.targets.iter().all(|all| names_only(all, slug))
        || !add.selector.iter().all(|all| selects_only(all, slug))
    {
        let misread = DeltaError {
            reason: format!("it targets other operators than `{slug}`, whose runs it was learned from"),
            help: Some("omit `targets` and `selector`, or reflect on the other operators".to_owned()),
        };
        return Proposal::Unusable { slug: add.slug, misread };
    }
    if add.selector.is_none() {
        add.targets = Some(json!([{"kind": "operator", "ref": slug}]));
    }
    Proposal::Delta(Box::new(Delta::Add(add)))
}

/// Whether targets name only this operator, by its slug or its ref.
fn names_only(targets: &Json, slug: &str) -> bool {
    let is_it = |one: &Json| {
        let reference = one.get("ref").and_then(Json::as_str).unwrap_or_default();
        let bare = reference.strip_prefix("ws://operators/").or(reference.strip_prefix("operator/"));
        one.get("kind").and_then(Json::as_str) == Some("operator") && bare.unwrap_or(reference) == slug
    };
    targets.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_it))
}

/// Whether a selector requires this identity.
fn selects_only(selector: &Json, slug: &str) -> bool {
    let identity = selector.get("identity");
    let one = identity.and_then(Json::as_array).and_then(|all| all.first().filter(|_| all.len() == 1));
    one.or(identity).and_then(Json::as_str) == Some(slug)
}

async fn prompt_parts(
    writer: &LibraryWriter,
    known: &KnownOperator,
    runs: &[Json],
) -> Result<Vec<Part>, Error> {
    let candidates = writer.library.candidates_for(known);
    let mut playbooks = Vec::new();
    for candidate in &candidates {
        let title = writer.library.book(&candidate.slug).map(|book| book.playbook.title.as_str());
        playbooks.push(json!({
            "slug": candidate.slug, "title": title, "status": candidate.status,
            "priority": candidate.priority, "body": candidate.text,
        }));
    }
    let named = known.overlay_name(&writer.library.scope);
    let advice = overlays::unevicted(&writer.session.store, None).await?;
    let advice: Vec<&str> = advice
        .iter()
        .filter(|overlay| overlay.operator == named)
        .map(|overlay| overlay.text.as_str())
        .collect();
    let pretty = |value: &Json| serde_json::to_string_pretty(value).unwrap_or_default();
    Ok(vec![
        Part::new(PartKind::Runs, "", pretty(&json!(runs))),
        Part::new(PartKind::Persona, "", known.base.render()),
        Part::new(PartKind::Playbooks, "", pretty(&json!(playbooks))),
        Part::new(PartKind::Overlays, "", pretty(&json!(advice))),
    ])
}

/// The outcomes shown to the reflector: of the named runs, else of the newest runs about this operator's texts or without a
/// producer.
async fn runs(writer: &LibraryWriter, operator: &str, from: &[String]) -> Result<Vec<Json>, Error> {
    let named = !from.is_empty();
    let mut found: Vec<RunRow> = Vec::new();
    for prefix in from {
        found.push(writer.session.find_run(prefix).await?);
    }
    if !named {
        found = writer.session.store.runs(MAX_RUNS).await?;
        found.reverse();
    }
    let mut shown = Vec::new();
    for run in found {
        let records = writer.session.store.records(&run.run).await?;
        if records.iter().any(|record| record.is(Kind::Violation)) && !named {
            continue;
        }
        let Ok(history) = History::from_remaining_records(&run.run, records) else { continue };
        let made_by = history.opened.producer.as_ref().map(|producer| &*producer.operator);
        if !named && made_by.is_some_and(|made_by| made_by != operator) {
            continue;
        }
        if run.verdict.is_none() {
            continue;
        }
        shown.push(if is_assembly(&history) {
            advice_summary(&run, &history)
        } else {
            review_summary(&run, &history)
        });
    }
    Ok(shown)
}

fn review_summary(run: &RunRow, history: &History) -> Json {
    let report = report::Review::of(history, None);
    let findings = report.findings.iter().take(MAX_FINDINGS);
    let findings: Vec<Json> = findings
        .map(|finding| json!({"by": finding.by, "issue": finding.issue, "fix": finding.fix, "quote": finding.quote}))
        .collect();
    json!({
        "run": &*run.run, "at": timestamp::format(run.opened_ms), "artifact_type": run.artifact_type,
        "subject": run.subject, "verdict": run.overridden.as_ref().or(run.verdict.as_ref()),
        "findings": findings, "brief": report.revision_brief,
    })
}

fn advice_summary(run: &RunRow, history: &History) -> Json {
    let outcome = history.outcome().unwrap_or_default();
    let fragments = outcome.fragments.iter().take(MAX_FINDINGS);
    let findings: Vec<Json> = fragments
        .map(|one| json!({"by": one.member, "issue": one.text, "fix": one.text, "quote": ""}))
        .collect();
    let severity = outcome.risk.map(|risk| risk.severity);
    json!({
        "run": &*run.run, "at": timestamp::format(run.opened_ms), "artifact_type": run.artifact_type,
        "subject": run.subject, "verdict": run.verdict, "severity": severity, "findings": findings,
    })
}
