//! The plan of an assembly's run (`--dry-run`): the order in which it would ask members, with their prompts. Calls no
//! member.
//!
//! A rehearsal runs the whole pipeline on made-up answers, without calls or writes, to check that it terminates.

use std::collections::VecDeque;

use quorate_kernel::entropy;
use quorate_kernel::prompt::Layout;
use quorate_ledger::Store;
use quorate_manifest::assembly::{Mode, ResolvedAssembly};
use quorate_protocol::assembly::{AssemblyRequest, Rule, Setup, describe_operators, subject_kind};
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{Command, Event, Part, Protocol as _, TimedEvent, rules};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::environment::Environment;
use super::super::error::Error;
use super::super::estimate::{self, SampledMember, made_up_event};
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
#[crate::boxed]
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
        notes: notes(spec),
        first,
        later,
        never,
        rules: spec.setup.rules.iter().map(planned_rule).collect(),
        last_run_ms,
        stand_ins: stand_ins.map(planned_stand_ins).collect(),
        samples,
        locked_traits: spec
            .setup
            .locked_traits
            .iter()
            .map(|locked_trait| locked_trait.text.clone())
            .collect(),
    })
}

/// Notes on the outcome's recipients, on rules without effect, and on questions about locked traits.
fn notes(spec: &RunSpec<Setup>) -> Vec<String> {
    let setup = &spec.setup;
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
        .collect()
}

/// The members that are not asked first: later, or not at all.
fn deferred(spec: &RunSpec<Setup>, first: &[Question]) -> (Vec<DeferredQuestion>, Vec<DeferredQuestion>) {
    let (mut later, mut never) = (Vec::new(), Vec::new());
    for (member, prepared) in spec.setup.members.iter().zip(&spec.members) {
        let asked_first = first.iter().any(|question| *question.member == *member.id);
        let deferred_until = |when: String| DeferredQuestion {
            member: member.id.to_string(),
            executor: prepared.executor.name.to_string(),
            when,
        };
        match (&spec.setup.request, asked_first) {
            (AssemblyRequest::Peer { .. }, _) => {
                later.push(deferred_until(
                    "again in each further round, with the messages it has received".to_owned(),
                ));
            }
            (_, true) => {}
            (AssemblyRequest::Hierarchy, false) => {
                let children = spec
                    .setup
                    .members
                    .iter()
                    .filter(|candidate| candidate.parent.as_ref() == Some(&member.id));
                let children: Vec<&str> = children.map(|child| &*child.id).collect();
                let have = if children.len() == 1 { "has" } else { "have" };
                later.push(deferred_until(format!("when {} {have} ended", children.join(", "))));
            }
            (AssemblyRequest::Voting { class }, false) => {
                never.push(deferred_until(match class {
                    Some(class) => format!("it does not vote on the class {class}"),
                    None => "it does not vote on a proposal without a class".to_owned(),
                }));
            }
            (AssemblyRequest::Advisory { phase, trigger, sentinel_first }, false) => {
                let in_phase = member.phase.as_deref() == Some(phase)
                    && member.triggers.as_ref().is_none_or(|all| all.contains(trigger));
                match in_phase && *sentinel_first {
                    true => {
                        later.push(deferred_until("after the sentinels, unless they end the run".to_owned()))
                    }
                    false => {
                        never.push(deferred_until(format!("it is not in the phase {phase} for {trigger}")))
                    }
                }
            }
        }
    }
    (later, never)
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
            let mut phases: Vec<String> =
                setup.members.into_iter().filter_map(|member| member.phase).collect();
            phases.sort_unstable();
            phases.dedup();
            let request = |phase: String| AssemblyRequest::Advisory {
                phase,
                trigger: "manual".to_owned(),
                sentinel_first: true,
            };
            phases.into_iter().map(request).collect()
        }
        Mode::Voting => {
            let mut classes: Vec<Option<String>> = setup
                .members
                .into_iter()
                .flat_map(|member| member.vote_class.unwrap_or_default())
                .map(Some)
                .collect();
            classes.sort_unstable();
            classes.dedup();
            classes.push(None);
            classes.into_iter().map(|class| AssemblyRequest::Voting { class }).collect()
        }
        Mode::Peer => vec![AssemblyRequest::Peer { rounds: None }],
        Mode::Hierarchy => vec![AssemblyRequest::Hierarchy],
    }
}

fn rehearse_request(resolved: &ResolvedAssembly, request: AssemblyRequest) -> Result<(), String> {
    let part = Part::new(subject_kind(resolved.mode), "rehearsal.md", "user: This is a rehearsal.");
    let setup = Setup::from_resolved(resolved, request);
    let mut protocol = Assembly::new(setup).map_err(|error| error.to_string())?;
    let opened = Event::Opened {
        run: "rehearsal".into(),
        inputs: vec![part],
        priors: Vec::new(),
        overlays: Vec::new(),
    };
    let mut events = VecDeque::from([opened]);
    let mut severities = SEVERITIES.into_iter().cycle();
    while let Some(event) = events.pop_front() {
        for command in protocol.advance(&TimedEvent { at_ms: 0, event }) {
            if command == Command::Finish {
                return Ok(());
            }
            events.extend(made_up_event(command, severities.next().unwrap_or_default()));
        }
    }
    Err(format!("a {} run of `{}` does not terminate", resolved.mode.as_str(), resolved.name))
}
