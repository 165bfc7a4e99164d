//! The plan of an assembly's run (`--dry-run`): the order in which it would ask members, with their prompts. Calls no
//! member.
//!
//! A rehearsal runs the whole pipeline on made-up answers, without calls or writes, to check that it terminates.

use std::collections::BTreeSet;

use quorate_kernel::entropy;
use quorate_kernel::prompt::Layout;
use quorate_ledger::Store;
use quorate_manifest::assembly::{Mode, ResolvedAssembly};
use quorate_protocol::assembly::{
    AssemblyRequest, Member, Rule, SENTINEL, Setup, describe_operators, subject_kind,
};
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::modes::peer;
use quorate_protocol::{Command, Event, Part, TimedEvent, rules};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::environment::Environment;
use super::super::error::Error;
use super::super::estimate::{self, SampledMember};
use super::super::executor::SelectedExecutor;
use super::super::overlays;
use super::super::run_spec::{ProtocolSetup as _, RunSpec};
use super::super::workspace::Workspace;
use super::{ConveneInput, spec};

/// The version of a plan's JSON.
pub(crate) const SCHEMA: &str = "quorate.plan/v1";

/// A planned run, as `quorate convene --dry-run --format json` prints it; `quorate schema plan` prints its schema.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    title = "Who would be asked what, as `quorate convene --dry-run --format json` prints it",
    description = ""
)]
pub struct Plan {
    /// The version of the JSON.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// The assembly's name.
    pub assembly: String,
    /// The assembly's title.
    #[serde(skip)]
    pub title: String,
    /// The assembly's mode.
    pub mode: Mode,
    /// The request to the mode.
    #[serde(skip)]
    pub request: AssemblyRequest,
    /// The subject: a path, or `-`.
    #[serde(skip)]
    pub subject: String,
    /// Always true: no member was asked.
    #[schemars(extend("const" = true))]
    pub dry_run: bool,
    /// Notes: rules without effect, or where advice goes.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Questions that are asked first.
    pub first: Vec<Question>,
    /// Members asked later, and when.
    pub later: Vec<DeferredQuestion>,
    /// Members that this run does not ask, and why.
    pub never: Vec<DeferredQuestion>,
    /// The rules, in order.
    pub rules: Vec<PlannedRule>,
    /// The members that are asked several times for each answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<SampledMember>,
    /// The executors that are asked only if the service of a member's executor fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<PlannedStandIns>,
    /// How long the last run of the same assembly with the same executors took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub last_run_ms: Option<u64>,
    /// The locked traits.
    #[serde(rename = "lockedTraits")]
    pub locked_traits: Vec<String>,
}

/// The executors that stand in for a member's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct PlannedStandIns {
    /// The member's id; `[meaning]` for the executor that compares texts with locks.
    pub member: String,
    /// The executors, in the order in which they are asked.
    pub executors: Vec<String>,
}

/// A rule that will be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct PlannedRule {
    /// Its id in the manifest.
    pub id: String,
    /// Its kind.
    pub kind: String,
}

/// A question that is asked first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct Question {
    /// Its id in the run's records.
    pub invocation: String,
    /// The member's id.
    pub member: String,
    /// The name of the member's executor.
    pub executor: String,
    /// Its deadline, in milliseconds.
    pub timeout_ms: u64,
    /// The prompt; a real run has another nonce in its markers. Null if the run gathers first.
    pub prompt: Option<String>,
}

/// A member that is asked later or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "deferred", deny_unknown_fields)]
pub struct DeferredQuestion {
    /// The member's id.
    pub member: String,
    /// The name of the member's executor.
    pub executor: String,
    /// When, or why not.
    pub when: String,
}

/// Plans a run. Calls no member and creates no ledger.
///
/// # Errors
/// If an existing ledger cannot be read.
pub(crate) async fn build(
    environment: &Environment,
    workspace: &Workspace,
    input: &ConveneInput,
    spec: &RunSpec<Setup>,
) -> Result<Plan, Error> {
    let now_ms = environment.clock.now_ms();
    let (overlays, last_run_ms) = match workspace.ledger.may_exist() {
        true => {
            let store = Box::pin(Store::open_at(&workspace.ledger)).await?.store;
            let texts = overlays::active_texts(&store, &spec.setup, now_ms).await?;
            let last_run_ms = estimate::last_run_ms(spec, &store).await;
            store.close().await;
            (texts, last_run_ms?)
        }
        false => (Vec::new(), None),
    };
    let mut protocol = spec.setup.protocol()?;
    let (part, _) = spec::redacted_input(spec, input).await?;
    let event = Event::Opened { run: "r".into(), inputs: vec![part], priors: Vec::new(), overlays };
    let layout = Layout { nonce: entropy::nonce(&entropy::bytes()) };
    let mut first = Vec::new();
    for command in protocol.advance(&TimedEvent { at_ms: now_ms, event }) {
        let (invocation, member, prompt) = match &command {
            Command::Invoke(invoke) => {
                let role = spec.members.iter().find(|member| member.id == invoke.member);
                let prompt = layout.prompt(invoke, &[], role.map_or("", |persona| &persona.prompt));
                (&invoke.id, &invoke.member, Some(prompt.text.to_string()))
            }
            Command::Gather(gather) => (&gather.id, &gather.member, None),
            _ => continue,
        };
        let Some(prepared) = spec.members.iter().find(|prepared| prepared.id == *member) else { continue };
        first.push(Question {
            invocation: invocation.to_string(),
            member: member.to_string(),
            executor: prepared.executor.name.to_string(),
            timeout_ms: u64::try_from(prepared.timeout.as_millis()).unwrap_or(u64::MAX),
            prompt,
        });
    }
    let (later, never) = deferred(spec, &first);
    let members = spec.members.iter().map(|member| (&*member.id, &member.executor));
    let asked = spec.meaning.iter().filter_map(|meaning| Some(("[meaning]", meaning.asked.as_ref()?)));
    let stand_ins = members.chain(asked).filter(|(_, executor)| !executor.stand_ins.is_empty());
    let planned_stand_ins = |(member, executor): (&str, &SelectedExecutor)| PlannedStandIns {
        member: member.to_owned(),
        executors: executor.stand_ins.iter().map(|one| one.name.to_string()).collect(),
    };
    let is_asked = |member: &SampledMember| never.iter().all(|question| question.member != member.member);
    let samples = spec.members.iter().filter_map(SampledMember::of).filter(is_asked).collect();
    let planned_rule = |rule: &Rule| PlannedRule { id: rule.id.to_string(), kind: rule.kind.to_string() };
    Ok(Plan {
        schema: SCHEMA,
        dry_run: true,
        assembly: spec.setup.assembly.to_string(),
        title: input.resolution.resolved.title.clone(),
        mode: spec.setup.mode,
        request: spec.setup.request.clone(),
        subject: input.subject.display_name.clone(),
        notes: notes(spec, first.is_empty()).chain(spec.obstacle(environment, first.len() as u64)).collect(),
        first,
        later,
        never,
        rules: spec.setup.rules.iter().map(planned_rule).collect(),
        last_run_ms,
        stand_ins: stand_ins.map(planned_stand_ins).collect(),
        samples,
        locked_traits: spec.setup.locked_traits.iter().map(|locked| locked.text.clone()).collect(),
    })
}

/// Notes on the outcome's recipients, on rules without effect, on questions about locked traits, and on a run that asks no
/// member or not all to their end.
fn notes(spec: &RunSpec<Setup>, asks_none: bool) -> impl Iterator<Item = String> {
    let setup = &spec.setup;
    let votes = setup.mode == Mode::Voting;
    let ends = match (votes, asks_none) {
        (true, true) => Some("No member votes on it, so the run is refused."),
        (false, true) => Some("No member is asked in the run, so its outcome is empty."),
        (true, false) => setup.early_decision.then_some(
            "The vote ends as soon as the missing votes cannot change the result (`early_decision`).",
        ),
        (false, false) => None,
    };
    let asked = spec.meaning.as_ref().and_then(|meaning| meaning.asked.as_ref());
    let asked = asked.map(|asked| {
        let name = &asked.name;
        format!(
            "Each text of an outcome is a question to `{name}` for each locked trait, and counts as a call."
        )
    });
    let advice =
        (setup.mode == Mode::Advisory).then(|| format!("Advice {}.", describe_operators(&setup.operators)));
    let members = setup.members.iter().map(|member| (&*member.id, member.vote_class.as_deref()));
    rules::class_warnings(&setup.request, &setup.rules, members)
        .into_iter()
        .chain(advice)
        .chain(asked)
        .chain(ends.map(str::to_owned))
}

/// The members that are not asked first: later, or not at all.
fn deferred(spec: &RunSpec<Setup>, first: &[Question]) -> (Vec<DeferredQuestion>, Vec<DeferredQuestion>) {
    let (setup, mut later, mut never) = (&spec.setup, Vec::new(), Vec::new());
    for (member, prepared) in setup.members.iter().zip(&spec.members) {
        let is_first = first.iter().any(|question| *question.member == *member.id);
        let (list, when) = match (&setup.request, is_first) {
            (AssemblyRequest::Peer { .. }, _) => match peer::rounds(setup) {
                0 | 1 => continue,
                last => (
                    &mut later,
                    format!(
                        "again in each further round, up to round {last}, with the messages it has received"
                    ),
                ),
            },
            (_, true) => continue,
            (AssemblyRequest::Hierarchy, false) => {
                let is_child = |candidate: &&Member| candidate.parent.as_ref() == Some(&member.id);
                let children: Vec<&str> =
                    setup.members.iter().filter(is_child).map(|child| &*child.id).collect();
                let have = if children.len() == 1 { "has" } else { "have" };
                (&mut later, format!("when {} {have} ended", children.join(", ")))
            }
            (AssemblyRequest::Voting { class }, false) => (&mut never, why_no_vote(member, class.as_deref())),
            (AssemblyRequest::Advisory { phase, trigger, sentinel_first }, false) => {
                match why_no_advice(member, (phase, trigger), *sentinel_first) {
                    Some(why) => (&mut never, why),
                    None => (&mut later, "after the sentinels, unless they end the run".to_owned()),
                }
            }
        };
        list.push(DeferredQuestion {
            member: member.id.to_string(),
            executor: prepared.executor.name.to_string(),
            when,
        });
    }
    (later, never)
}

/// Why a member does not vote on a proposal of this class (V1).
fn why_no_vote(member: &Member, class: Option<&str>) -> String {
    let classes = member.vote_class.as_deref().unwrap_or_default().join(" or ");
    match (&*classes, class) {
        ("", _) => "its `voteClass` is empty, so it votes on no proposal".to_owned(),
        (classes, Some(class)) => format!("it votes only on proposals of the class {classes}, not {class}"),
        (classes, None) => {
            format!("it votes only on proposals of the class {classes}; `--class` names the proposal's class")
        }
    }
}

/// Why a member does not advise in this phase on this trigger (A1); `None` if it does.
fn why_no_advice(member: &Member, (phase, trigger): (&str, &str), sentinel_first: bool) -> Option<String> {
    let Some(own) = member.phase.as_deref() else { return Some("it has no `phase`".to_owned()) };
    if own != phase && !(sentinel_first && own == SENTINEL) {
        let help = if own == SENTINEL { "; `--sentinel-first` asks it too" } else { "" };
        return Some(format!("its phase is {own}, and this run asks the phase {phase}{help}"));
    }
    let triggers = member.triggers.as_ref().filter(|triggers| !triggers.iter().any(|own| own == trigger))?;
    Some(match triggers.is_empty() {
        true => "its `triggers` are empty, so it is never asked".to_owned(),
        false => format!("its triggers are {}, and this run's is {trigger}", triggers.join(", ")),
    })
}

/// The made-up answers, used in turn, so that rules see different ones.
const SEVERITIES: [u8; 4] = [9, 2, 5, 0];

/// Rehearses every request that an assembly accepts.
///
/// # Errors
/// A sentence, if a rehearsal does not terminate.
pub(crate) fn rehearse(resolved: &ResolvedAssembly) -> Result<(), String> {
    possible_requests(resolved).into_iter().try_for_each(|request| rehearse_request(resolved, request))
}

/// Every request that an assembly accepts: each phase, each class of proposals.
fn possible_requests(resolved: &ResolvedAssembly) -> Vec<AssemblyRequest> {
    let setup = Setup::from_resolved(resolved, AssemblyRequest::Hierarchy);
    match resolved.mode {
        Mode::Advisory => {
            let phases: BTreeSet<String> =
                setup.members.into_iter().filter_map(|member| member.phase).collect();
            let request = |phase: String| AssemblyRequest::Advisory {
                phase,
                trigger: "manual".to_owned(),
                sentinel_first: true,
            };
            phases.into_iter().map(request).collect()
        }
        Mode::Voting => {
            let classes = setup.classes().into_iter().map(|class| Some(class.to_owned())).chain([None]);
            classes.map(|class| AssemblyRequest::Voting { class }).collect()
        }
        Mode::Peer => vec![AssemblyRequest::Peer { rounds: None }],
        Mode::Hierarchy => vec![AssemblyRequest::Hierarchy],
    }
}

fn rehearse_request(resolved: &ResolvedAssembly, request: AssemblyRequest) -> Result<(), String> {
    let part = Part::new(subject_kind(resolved.mode), "rehearsal.md", "user: This is a rehearsal.");
    let setup = Setup::from_resolved(resolved, request);
    let mut protocol = Assembly::new(setup).map_err(|error| error.to_string())?;
    match estimate::rehearse(&mut protocol, part, &SEVERITIES, |_| {}) {
        true => Ok(()),
        false => Err(format!("a {} run of `{}` does not terminate", resolved.mode.as_str(), resolved.name)),
    }
}
