//! Rehearsal: runs an assembly's whole pipeline on made-up answers, without calls or writes, to check that it terminates.

use std::collections::VecDeque;

use quorate_manifest::assembly::{Mode, Resolved};
use quorate_protocol::assembly::{AssemblyRequest, HostOptions, Setup, subject_kind};
use quorate_protocol::modes::assembly::Assembly;
use quorate_protocol::{Command, Event, Part, Protocol as _, TimedEvent};

use crate::service::estimate::made_up_event;

/// The made-up answers, used in turn, so that rules see different ones.
const SEVERITIES: [u8; 4] = [9, 2, 5, 0];

/// Rehearses every request that an assembly accepts.
///
/// # Errors
/// A sentence, if a rehearsal does not terminate.
pub fn rehearse(resolved: &Resolved) -> Result<(), String> {
    possible_requests(resolved).into_iter().try_for_each(|request| rehearse_request(resolved, request))
}

/// Every request that an assembly accepts: each phase, each class of proposals.
fn possible_requests(resolved: &Resolved) -> Vec<AssemblyRequest> {
    let setup = Setup::from_resolved(resolved, AssemblyRequest::Hierarchy, HostOptions::default());
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

fn rehearse_request(resolved: &Resolved, request: AssemblyRequest) -> Result<(), String> {
    let part = Part::new(subject_kind(resolved.mode), "rehearsal.md", "user: This is a rehearsal.");
    let setup = Setup::from_resolved(resolved, request, HostOptions::default());
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
