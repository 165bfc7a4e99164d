//! The inputs of an assembly's run, checked against the assembly's mode: each mode needs a different subject.

use std::collections::BTreeSet;
use std::path::PathBuf;

use quorate_diagnostics::invisible::{code_point, find_invisible, is_invisible};
use quorate_diagnostics::{Body, codes};
use quorate_manifest::assembly::Mode;
use quorate_manifest::assembly::Trigger;
use quorate_manifest::tree::reader::nearest;
use quorate_protocol::assembly::{AssemblyRequest, Setup};
use quorate_protocol::gather;

use super::super::artifact::{Artifact, Subject};
use super::super::error::{ExitClass, ServiceError};
use crate::service::resolve::Resolution;

/// An assembly that can be convened: resolved, with its subject.
pub struct ConveneInput {
    pub resolution: Resolution,
    /// The request to the mode.
    pub request: AssemblyRequest,
    /// The subject.
    pub subject: Artifact,
}

/// The default phase of an advisory run.
const DEFAULT_PHASE: &str = "session";

/// Command-line inputs; files are paths, or `-` for standard input.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Advisory: the conversation.
    pub conversation: Option<PathBuf>,
    /// Advisory: the phase.
    pub phase: Option<String>,
    /// Advisory: the event that triggered the request.
    pub trigger: Option<Trigger>,
    /// Advisory: whether the sentinels come first.
    pub sentinel_first: bool,
    /// Voting: the proposal.
    pub proposal: Option<PathBuf>,
    /// Voting: its class.
    pub class: Option<String>,
    /// Peer: the topic.
    pub topic: Option<PathBuf>,
    /// Peer: the maximum number of rounds.
    pub rounds: Option<u32>,
    /// Hierarchy: the request to assess.
    pub request: Option<PathBuf>,
}

impl Inputs {
    /// The request and the subject for a mode.
    ///
    /// # Errors
    /// If an input is missing, or belongs to another mode.
    pub fn request_for(&self, mode: Mode) -> Result<(AssemblyRequest, Subject), ServiceError> {
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
        let (file, request) = match mode {
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
        let Some(file) = file else {
            let message = format!("this assembly is {}: name its subject", mode.as_str());
            return Err(usage(message, format!("it takes {needed}")));
        };
        let subject = match file.as_os_str() == "-" {
            true => Subject::Stdin,
            false => Subject::File(file.clone()),
        };
        Ok((request, subject))
    }
}

/// Refuses a misspelled class: no member votes on it and no rule applies to it, so the rules of the intended class, a veto
/// included, would be skipped (V1).
///
/// # Errors
/// A usage error with a suggestion.
pub(super) fn ensure_known_class(setup: &Setup) -> Result<(), ServiceError> {
    let AssemblyRequest::Voting { class: Some(class) } = &setup.request else { return Ok(()) };
    let known = setup.classes();
    if known.contains(&**class) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    let help = match nearest(class, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => {
            "leave `--class` out: every member votes on every proposal here".to_owned()
        }
        None => format!("its classes are {}", known.join(", ")),
    };
    Err(usage(format!("this assembly has no proposals of the class `{class}`"), help))
}

/// Phases that every assembly accepts: the program that sets the phase need not know the members.
const COMMON_PHASES: [&str; 3] = ["session", "standing", "sentinel"];

/// Refuses a phase that has no member if a person named it, as a misspelling: it would ask no member.
///
/// # Errors
/// A usage error with a suggestion.
pub(super) fn ensure_known_phase(named: Option<&str>, setup: &Setup) -> Result<(), ServiceError> {
    let Some(phase) = named else { return Ok(()) };
    let known: BTreeSet<&str> = setup.members.iter().filter_map(|member| member.phase.as_deref()).collect();
    if known.contains(phase) || COMMON_PHASES.contains(&phase) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    let phases: Vec<&str> = known.iter().copied().chain(COMMON_PHASES).collect();
    let help = match nearest(phase, &phases) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "give its members a `phase`".to_owned(),
        None => format!("its phases are {}", known.join(", ")),
    };
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

fn usage(message: String, help: String) -> ServiceError {
    ServiceError::new(ExitClass::Usage, codes::USAGE, Body::new(message).help(help))
}

/// A proposal must not be empty or contain text that only a machine reads.
///
/// # Errors
/// If it is empty, or has tag characters, which spell invisible words.
pub(super) fn ensure_proposal(request: &AssemblyRequest, subject: &Artifact) -> Result<(), ServiceError> {
    if !matches!(request, AssemblyRequest::Voting { .. }) {
        return Ok(());
    }
    let name = &subject.display_name;
    if !subject.text.chars().any(|c| !c.is_whitespace() && !is_invisible(c)) {
        let body = Body::new(format!("{name} is empty")).help("write the proposal into the file");
        return Err(ServiceError::configuration(codes::PROPOSAL_UNREADABLE, body));
    }
    let tag = find_invisible(&subject.text).find(|(_, c)| ('\u{e0020}'..='\u{e007e}').contains(c));
    let Some((at, c)) = tag else { return Ok(()) };
    let line = subject.text[..at].matches('\n').count() + 1;
    let body = Body::new(format!(
        "{name} has invisible text on line {line}: tag characters, from {} on",
        code_point(c)
    ));
    Err(ServiceError::configuration(codes::PROPOSAL_UNREADABLE, body.help("remove it: members would see it")))
}

/// The text must parse as a conversation (X13).
///
/// # Errors
/// If a line is not a message.
pub(super) fn ensure_conversation(request: &AssemblyRequest, subject: &Artifact) -> Result<(), ServiceError> {
    if !matches!(request, AssemblyRequest::Advisory { .. }) {
        return Ok(());
    }
    gather::parse_conversation(&subject.display_name, &subject.text).map(|_| ()).map_err(|error| {
        let body = Body::new(format!("cannot read {} as a conversation: {error}", subject.display_name));
        let help =
            "write one {\"role\": …, \"content\": …} on each line, or text as `speaker: words` in a .md file";
        ServiceError::configuration(codes::CONVERSATION_INVALID, body.help(help))
    })
}
