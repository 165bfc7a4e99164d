//! The progress of a runtime: who is speaking, and every event with --verbose.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use quorate_kernel::ports::telemetry::{Event, EventKind, Telemetry};

use crate::render::layout::one_line;
use crate::terminal::status_text;

/// Prints progress and events on standard error.
pub(crate) struct SwarmProgress {
    watched: bool,
    verbose: bool,
    /// Whether the run has no end, where unanswered turns would be listed.
    endless: bool,
    /// Who is speaking, and whether the progress line is visible.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    speaking: Vec<String>,
    shown: bool,
}

impl SwarmProgress {
    /// `watched` shows a progress line, `verbose` prints every event, and `endless` prints unanswered turns at once, since the
    /// run has no end.
    pub(crate) fn new(watched: bool, verbose: bool, endless: bool) -> Self {
        SwarmProgress { watched, verbose, endless, state: Mutex::default() }
    }

    /// Removes the line from the screen.
    pub(crate) fn clear(&self) {
        self.with_state(State::clear);
    }

    /// The loop waits for new turns.
    pub(crate) fn waiting(&self) {
        if self.watched && !self.verbose {
            self.with_state(|state| state.show("waiting for what is new; Ctrl-C ends it"));
        }
    }

    /// Prints a line on standard error, from any thread.
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
                    state.speaking.retain(|id| **id != **participant);
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
        // Events that a user should know without --verbose.
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

fn is_always_shown(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::HookFailed { .. } | EventKind::StateFailed { .. } | EventKind::LedgerDiffers { .. }
    )
}

/// Events that the end of a run reports with the turn.
fn is_unanswered(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::GuardHit { .. } | EventKind::DispatchFailed { .. } | EventKind::ParticipantFailed { .. }
    )
}

/// An event in one line.
fn event_line(kind: &EventKind) -> String {
    match kind {
        EventKind::CycleStarted { trigger, by } => format!("cycle: {trigger} by {}", one_line(by)),
        EventKind::SubstrateRead { substrate, turns, ms } => {
            format!("{substrate}: {turns} new turns ({ms} ms)")
        }
        EventKind::DispatchDecided { dispatcher, selected, ms } => {
            let selected: Vec<&str> = selected.iter().map(|name| &**name).collect();
            let names = if selected.is_empty() { "no participant".to_owned() } else { selected.join(", ") };
            format!("{dispatcher}: {names} ({ms} ms)")
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
            format!("{trigger} ends a chain of {turns} participants' turns: no participant answers it")
        }
        EventKind::CycleIdle { trigger } => format!("idle: no participant answers {trigger}"),
        EventKind::CycleFinished { appended, failed, ms } => {
            format!("cycle over: {appended} appended, {failed} failed ({ms} ms)")
        }
        EventKind::EventsDropped { count } => format!("{count} events were dropped"),
        EventKind::LedgerDiffers { what } => {
            format!("the ledger was completed from the conversation: {}", one_line(what))
        }
    }
}
