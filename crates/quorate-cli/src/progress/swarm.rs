//! The progress of a runtime: who is speaking, and every event with --verbose.

use std::io::Write as _;

use quorate::conversation::SwarmEvent;
use quorate::ports::telemetry::{Event, EventKind};

use super::Shown;
use crate::render::layout::one_line;
use crate::terminal::status_text;

/// Prints progress and events on standard error.
pub(crate) struct SwarmProgress {
    shown: Shown,
    verbose: bool,
    /// Whether the run has no end, where unanswered turns would be listed.
    endless: bool,
    speaking: Vec<String>,
    /// Whether the progress line is visible.
    is_drawn: bool,
}

impl SwarmProgress {
    /// `verbose` prints every event, and `endless` prints unanswered turns at once, since the
    /// run has no end.
    pub(crate) fn new(shown: Shown, verbose: bool, endless: bool) -> Self {
        SwarmProgress { shown, verbose, endless, speaking: Vec::new(), is_drawn: false }
    }

    /// Shows an event of a run; those with turns and reports are the command's.
    pub(crate) fn observe(&mut self, event: &SwarmEvent) {
        match event {
            SwarmEvent::Step(event) => self.step(event),
            SwarmEvent::Waiting if self.shown == Shown::All && !self.verbose => {
                self.show("waiting for what is new; Ctrl-C ends it");
            }
            SwarmEvent::Waiting => {}
            SwarmEvent::EventsEnded(notice) => {
                self.clear();
                let _ = writeln!(std::io::stderr().lock(), "{}", one_line(notice));
            }
            _ => self.clear(),
        }
    }

    fn step(&mut self, event: &Event) {
        if self.verbose {
            let text = format!("{} #{} {}", event.at, event.cycle, event_line(&event.kind));
            let _ = writeln!(std::io::stderr().lock(), "{}", status_text(&text));
            return;
        }
        // Events that a user should know without --verbose.
        let waits =
            self.shown != Shown::Nothing && matches!(event.kind, EventKind::ParticipantWaiting { .. });
        if waits || is_always_shown(&event.kind) || self.endless && is_unanswered(&event.kind) {
            self.clear();
            let _ = writeln!(std::io::stderr().lock(), "{}", status_text(&event_line(&event.kind)));
        }
        if self.shown == Shown::All {
            self.progress(&event.kind);
        }
    }

    fn progress(&mut self, event: &EventKind) {
        match event {
            EventKind::ParticipantStarted { participant, .. } => self.speaking.push(participant.to_string()),
            EventKind::ParticipantFinished { participant, .. }
            | EventKind::ParticipantFailed { participant, .. } => {
                self.speaking.retain(|id| **id != **participant);
            }
            _ => return,
        }
        match self.speaking.is_empty() {
            true => self.clear(),
            false => self.show(&format!("asking {}", self.speaking.join(", "))),
        }
    }

    fn show(&mut self, text: &str) {
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r\u{1b}[2K{text}");
        let _ = out.flush();
        self.is_drawn = true;
    }

    /// Removes the line from the screen.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\u{1b}[2K");
            let _ = out.flush();
        }
    }
}

fn is_always_shown(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::HookFailed { .. }
            | EventKind::StateFailed { .. }
            | EventKind::LedgerDiffers { .. }
            | EventKind::ParticipantToolsRefused { .. }
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
        EventKind::ParticipantWaiting { line, .. } => one_line(line),
        EventKind::ParticipantToolsRefused { participant, tools } => {
            format!("{participant}: its program refused these tools: {}", one_line(&tools.join(", ")))
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
