//! Convene: an assembly from its ASSEMBLY.md to a recorded outcome. Its inputs are checked against its mode, and its
//! `defaults` tell whether it is due: Quorate runs no scheduler (A7).

pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod spec;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quorate_diagnostics::invisible::{code_point, find_invisible, is_invisible};
use quorate_diagnostics::{Body, codes};
use quorate_kernel::history::History;
use quorate_kernel::observer::Observer;
use quorate_manifest::assembly::{Mode, Trigger};
use quorate_manifest::tree::reader::meant_or;
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::{Name, gather};
use serde_json::json;

use super::artifact::{self, Artifact, Draft};
use super::environment::Environment;
use super::error::Error;
use super::ledger::gc;
use super::resolve::{self, Resolution};
use super::run_opened::{self, is_assembly};
use super::run_spec::{self, RunOptions, RunSpec};
use super::session::LedgerSession;
use super::signer::{self, KeySource};
use super::workspace::{self, PathOverrides, Workspace};
use report::Decision;

/// An assembly to convene, and its settings.
#[derive(Debug, Clone, Default)]
pub struct ConveneRequest {
    /// The manifest, the directory that holds it, or the name of its directory below `assemblies/`.
    pub path: PathBuf,
    /// The workspace's root; `None` searches for it.
    pub root: Option<PathBuf>,
    /// The inputs of the run.
    pub inputs: Inputs,
    /// The options of the run.
    pub options: RunOptions,
}

/// Reads everything that a run needs, the subject with `read`, and asks no member. The setup follows from the manifest and
/// the request alone. The workspace's report includes the manifest's warnings.
///
/// # Errors
/// If manifest, subject or configuration are unusable, or the inputs do not fit the mode.
pub(crate) fn prepare(
    environment: &Environment,
    places: &PathOverrides,
    request: &ConveneRequest,
    read: impl FnOnce(&Draft) -> Result<Artifact, Error>,
) -> Result<(ConveneInput, Setup, Workspace), Error> {
    let mut view = resolution(environment, request.path.clone(), request.root.clone())?;
    let (asks, subject) = request.inputs.request_for(view.resolved.mode)?;
    if matches!(view.resolved.mode, Mode::Peer | Mode::Hierarchy) && view.resolved.members.is_empty() {
        let body = Body::new(format!("`{}` has no members to ask", view.resolved.name));
        let help = "list them under `members`, or convene a view that does";
        return Err(Error::configuration(codes::ASSEMBLY_EMPTY, body.help(help)));
    }
    let setup = Setup::from_resolved(&view.resolved, asks);
    ensure_known_class(&setup)?;
    ensure_known_phase(request.inputs.phase.as_deref(), &setup)?;
    let subject = read(&subject)?;
    ensure_conversation(&setup.request, &subject)?;
    ensure_proposal(&setup.request, &subject)?;
    let start = resolve::disk_path(&view.root, view.resolved.chain.leaf());
    let start = start.parent().unwrap_or(&environment.directory).to_owned();
    let mut workspace = workspace::load(environment, places, &start)?;
    workspace.guard.ensure_unrecorded(&subject)?;
    workspace.report.absorb(std::mem::take(&mut view.report));
    Ok((ConveneInput { resolution: view, subject }, setup, workspace))
}

fn resolution(environment: &Environment, path: PathBuf, root: Option<PathBuf>) -> Result<Resolution, Error> {
    let request = resolve::ResolveRequest { path, root, ..resolve::ResolveRequest::default() };
    let resolved = resolve::resolve(environment, &request, &*environment.registries);
    resolved.map_err(Error::refused_as_configuration)
}

/// Convenes at an opened session.
///
/// # Errors
/// If the ledger fails. Everything recorded until then stays, and the run can be resumed.
#[crate::boxed]
pub(crate) async fn convene(
    session: &LedgerSession,
    input: &ConveneInput,
    spec: &RunSpec<Setup>,
    observer: Arc<dyn Observer>,
) -> Result<Decision, Error> {
    let history = spec::start(spec, session, input, observer).await?;
    let report = report::load(session, &history).await;
    // The report has the answers even if the run erases them at its end.
    gc::after_run(session, history).await?;
    report
}

/// The assembly of a resumed run, from its present files.
///
/// # Errors
/// If the assembly has changed since the run was opened, or a file is missing.
pub(super) fn resumed_spec(
    session: &LedgerSession,
    history: &History,
    options: &RunOptions,
) -> Result<(RunSpec<Setup>, KeySource), Error> {
    let (input, setup) = reload_input(session, history)?;
    let options = options.resumed(&session.workspace, &history.opened);
    let spec = spec::build(&session.environment, &session.workspace, &input, setup, &options)?;
    run_spec::ensure_unchanged(history, &spec.fingerprint(&input.subject.sha256))?;
    let resolved = &input.resolution.resolved;
    signer::ensure_no_approvals(resolved)?;
    Ok((spec, KeySource::Resolved(resolved.policies.effective_keys())))
}

/// The inputs of a run, with the present state of its files.
fn reload_input(session: &LedgerSession, history: &History) -> Result<(ConveneInput, Setup), Error> {
    let opened = &history.opened;
    let setup = run_opened::assembly_setup(history).ok_or_else(|| run_opened::unknown_version(history))?;
    let path = opened.manifest.as_ref().map(PathBuf::from).unwrap_or_default();
    let view = resolution(&session.environment, path, opened.root.as_ref().map(PathBuf::from))?;
    let subject = match &opened.artifact_path {
        Some(path) => artifact::read(&Draft::File(PathBuf::from(path)), &session.environment.directory)?,
        // Standard input is consumed; only the ledger has its text.
        None => Artifact {
            display_name: opened.subject.clone().unwrap_or_else(|| "-".to_owned()),
            path: None,
            text: "".into(),
            sha256: run_opened::input_sha256(history),
            hidden: opened.hidden.clone().unwrap_or_default(),
        },
    };
    let setup = Setup::from_resolved(&view.resolved, setup.request);
    Ok((ConveneInput { resolution: view, subject }, setup))
}

/// The default interval of a periodic assembly, in milliseconds.
const DEFAULT_INTERVAL_MS: i64 = 60_000;
/// The default number of new messages that makes an assembly due; `metadata.quorate.everyMessages` overrides it.
const DEFAULT_EVERY_MESSAGES: u64 = 10;

/// Compares an assembly's `defaults` with its last run. Returns the reason why it is not due, if it is not. An assembly
/// without a run is due, unless only a person convenes it.
///
/// # Errors
/// If the ledger does not answer, or the heuristic is a custom one that is not registered.
#[crate::boxed]
pub(crate) async fn reason_not_due(
    session: &LedgerSession,
    input: &ConveneInput,
    spec: &RunSpec<Setup>,
) -> Result<Option<String>, Error> {
    let defaults = input.resolution.resolved.defaults.as_ref();
    let heuristic = defaults.and_then(|default| default.trigger_heuristic.as_deref());
    let interval_ms =
        defaults.and_then(|default| default.trigger_interval_ms).map_or(DEFAULT_INTERVAL_MS, i64::from);
    let Some(heuristic) = heuristic else { return Ok(None) };
    if heuristic == "manual" {
        return Ok(Some("only a person convenes it (triggerHeuristic: manual)".to_owned()));
    }
    let Some(last) = last_completed_run(session, &spec.setup.assembly).await? else { return Ok(None) };
    Ok(match heuristic {
        "periodic" => {
            let since_ms = session.environment.clock.now_ms() - last.opened_ms;
            (since_ms < interval_ms)
                .then(|| format!("it ran {since_ms} ms ago and is due every {interval_ms} ms"))
        }
        "on-mode-change" => (last.opened.setup["request"] == json!(spec.setup.request))
            .then(|| "its subject has not changed since the last run".to_owned()),
        "every-n-messages" => {
            let ours = input.resolution.resolved.metadata.get("quorate");
            let every =
                ours.and_then(|ours| ours.get("everyMessages")?.as_u64()).unwrap_or(DEFAULT_EVERY_MESSAGES);
            // All messages of another conversation are new.
            let same = last.opened.subject.as_ref() == Some(&input.subject.display_name);
            let before = last.opened.messages.filter(|_| same).unwrap_or(0);
            let new = message_count(input).saturating_sub(before);
            (new < every)
                .then(|| format!("{new} new messages since the last run, and it is due after {every}"))
        }
        other => {
            let body = Body::new(format!("unknown trigger heuristic `{other}`"));
            let help =
                "convene without --if-due, or write every-n-messages, on-mode-change, periodic or manual";
            return Err(Error::configuration(codes::KIND_UNKNOWN, body.help(help)));
        }
    })
}

/// The assembly's last run with an answer; a run without answers does not count.
async fn last_completed_run(
    session: &LedgerSession,
    assembly: &Name,
) -> Result<Option<quorate_kernel::history::History>, Error> {
    for run in session.store.runs_of_type(assembly).await? {
        let history = session.partial_history(&run).await?;
        let incomplete = || history.outcome().is_none_or(|outcome| outcome.is_incomplete());
        if is_assembly(&history) && !incomplete() {
            return Ok(Some(history));
        }
    }
    Ok(None)
}

/// The number of messages of a conversation; an unparsable text counts as one.
pub(crate) fn message_count(input: &ConveneInput) -> u64 {
    let subject = &input.subject;
    let read = (input.resolution.resolved.mode == Mode::Advisory)
        .then(|| gather::parse_conversation(&subject.display_name, &subject.text).ok())
        .flatten();
    read.map_or(1, |messages| messages.len() as u64)
}

/// An assembly that can be convened: resolved, with its subject.
pub(crate) struct ConveneInput {
    pub resolution: Resolution,
    /// The subject.
    pub subject: Artifact,
}

/// The default phase of an advisory run.
const DEFAULT_PHASE: &str = "session";

/// The inputs of a run: the subject, and what its mode asks for besides.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Advisory: the conversation.
    pub conversation: Option<Draft>,
    /// Advisory: the phase.
    pub phase: Option<String>,
    /// Advisory: the event that triggered the request.
    pub trigger: Option<Trigger>,
    /// Advisory: whether the sentinels come first.
    pub sentinel_first: bool,
    /// Voting: the proposal.
    pub proposal: Option<Draft>,
    /// Voting: its class.
    pub class: Option<String>,
    /// Peer: the topic.
    pub topic: Option<Draft>,
    /// Peer: the maximum number of rounds.
    pub rounds: Option<u32>,
    /// Hierarchy: the request to assess.
    pub request: Option<Draft>,
}

impl Inputs {
    /// The request and the subject for a mode.
    ///
    /// # Errors
    /// If an input is missing, or belongs to another mode.
    fn request_for(&self, mode: Mode) -> Result<(AssemblyRequest, Draft), Error> {
        let given_flags = [
            ("--conversation", Mode::Advisory, self.conversation.is_some()),
            ("--phase", Mode::Advisory, self.phase.is_some()),
            ("--trigger", Mode::Advisory, self.trigger.is_some()),
            ("--sentinel-first", Mode::Advisory, self.sentinel_first),
            ("--proposal", Mode::Voting, self.proposal.is_some()),
            ("--class", Mode::Voting, self.class.is_some()),
            ("--topic", Mode::Peer, self.topic.is_some()),
            ("--rounds", Mode::Peer, self.rounds.is_some()),
            ("--request", Mode::Hierarchy, self.request.is_some()),
        ];
        let needed = flags_of(mode);
        if let Some((flag, other, _)) =
            given_flags.iter().find(|(_, for_mode, given)| *given && *for_mode != mode)
        {
            let message =
                format!("`{flag}` is for {} mode, and this assembly is {}", other.as_str(), mode.as_str());
            return Err(usage(message, format!("it takes {needed}")));
        }
        let (subject, request) = match mode {
            Mode::Advisory => {
                let phase = self.phase.clone().unwrap_or_else(|| DEFAULT_PHASE.to_owned());
                let trigger = self.trigger.unwrap_or(Trigger::Manual).as_str().to_owned();
                let sentinel_first = self.sentinel_first;
                (&self.conversation, AssemblyRequest::Advisory { phase, trigger, sentinel_first })
            }
            Mode::Voting => (&self.proposal, AssemblyRequest::Voting { class: self.class.clone() }),
            Mode::Peer => (&self.topic, AssemblyRequest::Peer { rounds: self.rounds }),
            Mode::Hierarchy => (&self.request, AssemblyRequest::Hierarchy),
        };
        let Some(subject) = subject else {
            let message = format!("this assembly is {}: name its subject", mode.as_str());
            return Err(usage(message, format!("it takes {needed}")));
        };
        Ok((request, subject.clone()))
    }
}

/// Refuses a misspelled class: no member votes on it and no rule applies to it, so the rules of the intended class, a
/// veto included, would be skipped. A vote counts only for its classes (V1).
///
/// # Errors
/// A usage error with a suggestion.
fn ensure_known_class(setup: &Setup) -> Result<(), Error> {
    let AssemblyRequest::Voting { class: Some(class) } = &setup.request else { return Ok(()) };
    let known = setup.classes();
    if known.contains(&**class) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    let help = meant_or(class, &known, || match known.is_empty() {
        true => "leave `--class` out: every member votes on every proposal here".to_owned(),
        false => format!("its classes are {}", known.join(", ")),
    });
    Err(usage(format!("this assembly has no proposals of the class `{class}`"), help))
}

/// Phases that every assembly accepts: the program that sets the phase need not know the members.
const COMMON_PHASES: [&str; 3] = ["session", "standing", "sentinel"];

/// Refuses a phase that has no member if a person named it, as a misspelling: it would ask no member.
///
/// # Errors
/// A usage error with a suggestion.
fn ensure_known_phase(named: Option<&str>, setup: &Setup) -> Result<(), Error> {
    let Some(phase) = named else { return Ok(()) };
    let known: BTreeSet<&str> = setup.members.iter().filter_map(|member| member.phase.as_deref()).collect();
    if known.contains(phase) || COMMON_PHASES.contains(&phase) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    let phases: Vec<&str> = known.iter().copied().chain(COMMON_PHASES).collect();
    let help = meant_or(phase, &phases, || match known.is_empty() {
        true => "give its members a `phase`".to_owned(),
        false => format!("its phases are {}", known.join(", ")),
    });
    Err(usage(format!("no member of this assembly is in the phase `{phase}`"), help))
}

/// A mode's flags.
fn flags_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Advisory => "`--conversation FILE` [--phase PHASE] [--trigger TRIGGER] [--sentinel-first]",
        Mode::Voting => "`--proposal FILE` [--class CLASS]",
        Mode::Peer => "`--topic FILE` [--rounds N]",
        Mode::Hierarchy => "`--request FILE`",
    }
}

fn usage(message: String, help: String) -> Error {
    Error::usage(Body::new(message).help(help))
}

/// A proposal must not be empty or contain text that only a machine reads.
///
/// # Errors
/// If it is empty, or has tag characters, which spell invisible words.
fn ensure_proposal(request: &AssemblyRequest, subject: &Artifact) -> Result<(), Error> {
    if !matches!(request, AssemblyRequest::Voting { .. }) {
        return Ok(());
    }
    let name = &subject.display_name;
    if !subject.text.chars().any(|c| !c.is_whitespace() && !is_invisible(c)) {
        let body = Body::new(format!("{name} is empty")).help("write the proposal into the file");
        return Err(Error::configuration(codes::PROPOSAL_UNREADABLE, body));
    }
    let tag = find_invisible(&subject.text).find(|(_, c)| ('\u{e0020}'..='\u{e007e}').contains(c));
    let Some((at, c)) = tag else { return Ok(()) };
    let line = subject.text[..at].matches('\n').count() + 1;
    let body = Body::new(format!(
        "{name} has invisible text on line {line}: tag characters, from {} on",
        code_point(c)
    ));
    Err(Error::configuration(codes::PROPOSAL_UNREADABLE, body.help("remove it: members would see it")))
}

/// The text must parse as a conversation, as JSON lines or Markdown (X13).
///
/// # Errors
/// If a line is not a message.
fn ensure_conversation(request: &AssemblyRequest, subject: &Artifact) -> Result<(), Error> {
    if !matches!(request, AssemblyRequest::Advisory { .. }) {
        return Ok(());
    }
    gather::parse_conversation(&subject.display_name, &subject.text).map(|_| ()).map_err(|error| {
        let body = Body::new(format!("cannot read {} as a conversation: {error}", subject.display_name));
        let help =
            "write one {\"role\": …, \"content\": …} on each line, or text as `speaker: words` in a .md file";
        Error::configuration(codes::CONVERSATION_INVALID, body.help(help))
    })
}
