//! The progress of a runtime: who is speaking, and every event with --verbose.

use std::io::Write as _;

use quorate::conversation::SwarmEvent;
use quorate::ports::telemetry::{Event, EventKind};
use tokio::time::Instant;

use super::council::{Look, MAX_NAMES, clock};
use super::{Board, Display, LASTING, Shown};
use crate::render::layout::{one_line, truncate};
use crate::render::wording::list_limited;
use crate::terminal::status_text;

/// Prints progress and events on standard error.
pub(crate) struct SwarmProgress {
    display: Display<SwarmBoard>,
    verbose: bool,
    /// Whether the run has no end, where unanswered turns would be listed.
    endless: bool,
}

impl SwarmProgress {
    /// `verbose` prints every event, and `endless` prints unanswered turns at once, since the
    /// run has no end.
    pub(crate) fn new(shown: Shown, verbose: bool, endless: bool) -> Self {
        let shown = if verbose { Shown::Nothing } else { shown };
        SwarmProgress { display: Display::new(shown, SwarmBoard::new), verbose, endless }
    }

    /// Shows an event of a run; those with turns and reports are the command's.
    pub(crate) fn observe(&self, event: &SwarmEvent) {
        match event {
            SwarmEvent::Step(event) => self.step(event),
            SwarmEvent::Waiting => {
                self.display.view().board.is_idle = true;
                self.start();
            }
            SwarmEvent::EventsEnded(notice) => self.display.view().print(notice),
            _ => self.clear(),
        }
    }

    fn step(&self, event: &Event) {
        if self.verbose {
            let text = format!("{} #{} {}", event.at, event.cycle, event_line(&event.kind));
            let _ = writeln!(std::io::stderr().lock(), "{}", status_text(&text));
            return;
        }
        let mut view = self.display.view();
        // Events that a user should know without --verbose.
        let waits = !self.display.is_silent() && matches!(event.kind, EventKind::ParticipantWaiting { .. });
        if waits || is_always_shown(&event.kind) || self.endless && is_unanswered(&event.kind) {
            view.print(&event_line(&event.kind));
        }
        view.board.observe(&event.kind);
        let is_asking = !view.board.speaking.is_empty();
        drop(view);
        if is_asking { self.start() } else { self.clear() }
    }

    fn start(&self) {
        if !self.display.is_silent() {
            self.display.start();
        }
    }

    /// Removes the display from the screen until the next step.
    pub(crate) fn clear(&self) {
        self.display.pause();
    }
}

/// The participants that speak, or the wait for new turns.
pub(super) struct SwarmBoard {
    look: Look,
    /// Each with its beginning, and whether a line says that it has not answered.
    speaking: Vec<(String, Instant, bool)>,
    is_idle: bool,
}

impl SwarmBoard {
    pub(super) fn new(look: Look) -> SwarmBoard {
        SwarmBoard { look, speaking: Vec::new(), is_idle: false }
    }

    pub(super) fn observe(&mut self, event: &EventKind) {
        self.is_idle = false;
        match event {
            EventKind::ParticipantStarted { participant, .. } => {
                self.speaking.push((one_line(participant), Instant::now(), false));
            }
            EventKind::ParticipantFinished { participant, .. }
            | EventKind::ParticipantFailed { participant, .. } => {
                self.speaking.retain(|(id, ..)| *id != **participant);
            }
            _ => {}
        }
    }
}

impl Board for SwarmBoard {
    fn screen(&mut self, width: usize, now: Instant) -> Vec<String> {
        if self.is_idle {
            return vec!["waiting for what is new; Ctrl-C ends it".to_owned()];
        }
        self.look.frame += 1;
        let spinner = self.look.spinner();
        let names = self.speaking.iter().map(|(id, ..)| id.chars().count()).max().unwrap_or_default();
        let line = |(id, began, _): &(String, Instant, bool)| {
            let elapsed = clock(now.saturating_duration_since(*began));
            format!(
                "{spinner} {}",
                truncate(&format!("{id:names$}  waiting  {elapsed}"), width.saturating_sub(3))
            )
        };
        self.speaking.iter().map(line).collect()
    }

    fn lasting(&mut self, now: Instant) -> Vec<String> {
        let mut late = Vec::new();
        for (id, began, is_reported) in &mut self.speaking {
            if !*is_reported && now.saturating_duration_since(*began) >= LASTING {
                *is_reported = true;
                late.push(&**id);
            }
        }
        let line =
            || format!("still waiting for {} after {} s", list_limited(&late, MAX_NAMES), LASTING.as_secs());
        (!late.is_empty()).then(line).into_iter().collect()
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
