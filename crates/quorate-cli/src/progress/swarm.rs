//! A runtime at work, for whoever watches: who is speaking, and every event where that was asked for.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};

use crate::render::paint::one_line;
use crate::workflow::status_text;

/// Says on standard error what happens.
pub(crate) struct SwarmProgress {
    watched: bool,
    verbose: bool,
    /// Whether nothing is said at the end of what was not answered.
    endless: bool,
    /// Who is asked at present, and whether a line stands on the screen.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    speaking: Vec<String>,
    shown: bool,
}

impl SwarmProgress {
    /// With a line of progress where somebody watches; with every event where that was asked for; with what was not
    /// answered as it happens, for a run without an end.
    pub(crate) fn new(watched: bool, verbose: bool, endless: bool) -> Self {
        SwarmProgress { watched, verbose, endless, state: Mutex::default() }
    }

    /// Takes the line off the screen.
    pub(crate) fn clear(&self) {
        self.with_state(State::clear);
    }

    /// The loop waits for what is new.
    pub(crate) fn waiting(&self) {
        if self.watched && !self.verbose {
            self.with_state(|state| state.show("waiting for what is new; Ctrl-C ends it"));
        }
    }

    /// Says something on standard error, from any thread.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        let _ = writeln!(std::io::stderr().lock(), "{}", one_line(text));
    }

    fn with_state(&self, does: impl FnOnce(&mut State)) {
        does(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn progress(&self, event: &EventKind) {
        self.with_state(|state| {
            match event {
                EventKind::ParticipantStarted { participant, .. } => {
                    state.speaking.push(participant.to_string())
                }
                EventKind::ParticipantFinished { participant, .. }
                | EventKind::ParticipantFailed { participant, .. } => {
                    state.speaking.retain(|one| **one != **participant);
                }
                _ => return,
            }
            match state.speaking.is_empty() {
                true => state.clear(),
                false => state.show(&format!("asking {}", state.speaking.join(", "))),
            }
        });
    }
}

impl State {
    fn show(&mut self, text: &str) {
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r\u{1b}[2K{text}");
        let _ = out.flush();
        self.shown = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\u{1b}[2K");
            let _ = out.flush();
        }
    }
}

impl Telemetry for SwarmProgress {
    fn emit(&self, event: &Event) {
        if self.verbose {
            let mut out = std::io::stderr().lock();
            let text = format!("{} #{} {}", event.at, event.cycle, event_line(&event.kind));
            let _ = writeln!(out, "{}", status_text(&text));
            return;
        }
        // What a person should know whether or not it was asked for.
        if is_always_shown(&event.kind) || self.endless && is_unanswered(&event.kind) {
            self.clear();
            let mut out = std::io::stderr().lock();
            let _ = writeln!(out, "{}", status_text(&event_line(&event.kind)));
        }
        if self.watched {
            self.progress(&event.kind);
        }
    }
}

fn is_always_shown(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::HookFailed { .. } | EventKind::StateFailed { .. } | EventKind::LedgerDiffers { .. }
    )
}

/// What the end of a run says, with the turn.
fn is_unanswered(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::GuardHit { .. } | EventKind::DispatchFailed { .. } | EventKind::ParticipantFailed { .. }
    )
}

/// An event in a line.
fn event_line(what: &EventKind) -> String {
    match what {
        EventKind::CycleStarted { trigger, by } => format!("cycle: {trigger} by {}", one_line(by)),
        EventKind::SubstrateRead { substrate, turns, ms } => {
            format!("{substrate}: {turns} new turns ({ms} ms)")
        }
        EventKind::DispatchDecided { dispatcher, selected, ms } => {
            let selected: Vec<&str> = selected.iter().map(|one| &**one).collect();
            let whom = if selected.is_empty() { "nobody".to_owned() } else { selected.join(", ") };
            format!("{dispatcher}: {whom} ({ms} ms)")
        }
        EventKind::DispatchFailed { dispatcher, error } => {
            format!("{dispatcher} could not decide: {}", one_line(error))
        }
        EventKind::ParticipantStarted { participant, executor } => {
            format!("{participant}: asked ({executor})")
        }
        EventKind::ParticipantFinished { participant, ms, bytes } => {
            format!("{participant}: said {bytes} bytes in {ms} ms")
        }
        EventKind::ParticipantFailed { participant, status, error } => {
            format!("{participant}: {status}: {}", one_line(error))
        }
        EventKind::SubstrateAppended { turn, participant } => format!("{participant}: appended {turn}"),
        EventKind::StateWritten { participant } => format!("{participant}: state written"),
        EventKind::StateFailed { participant, error } => {
            format!("{participant}: its state was not written: {}", one_line(error))
        }
        EventKind::HookFailed { hook, error } => format!("the hook {hook} failed: {}", one_line(error)),
        EventKind::GuardHit { trigger, turns } => {
            format!("{turns} turns of participants in a row without a person's: nobody answers {trigger}")
        }
        EventKind::CycleIdle { trigger } => format!("idle: nobody answers {trigger}"),
        EventKind::CycleFinished { appended, failed, ms } => {
            format!("cycle over: {appended} appended, {failed} failed ({ms} ms)")
        }
        EventKind::EventsDropped { count } => format!("{count} events were dropped"),
        EventKind::LedgerDiffers { what } => format!("the ledger was made good: {}", one_line(what)),
    }
}
