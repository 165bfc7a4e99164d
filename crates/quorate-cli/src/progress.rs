//! Progress on standard error while members work. It is cleared at the end, so that the verdict stands alone; without a
//! terminal nothing is shown.

mod council;
mod lines;
mod screen;
pub(crate) mod swarm;
mod sweep;
mod ticker;

use std::sync::{Mutex, MutexGuard, PoisonError};

use quorate_kernel::observer::{Observer, RunEvent};

use quorate::service::sweep::{SweepObserver, SweptFile};
pub(super) use screen::Glyphs;
use screen::Screen;

/// The progress of one review or assembly run: a line for each member of the current step.
pub(crate) struct Progress {
    run: Mutex<Option<String>>,
    display: Display<council::Council, lines::Council>,
}

/// The progress of a sweep: one bar for all drafts.
pub(crate) struct SweepProgress {
    display: Display<sweep::Sweep, lines::Sweep>,
}

/// A live display, or lines.
enum Display<L, P> {
    Nothing,
    Lines(P),
    Live(L),
}

impl Progress {
    /// `watched` tells whether standard error is a terminal.
    pub(crate) fn new(watched: bool) -> Progress {
        let display = match Screen::of_stderr(watched) {
            Screen::Off => Display::Nothing,
            Screen::Lines => Display::Lines(lines::Council::new()),
            Screen::Live(glyphs) => Display::Live(council::Council::new(glyphs, screen::stderr())),
        };
        Progress { run: Mutex::new(None), display }
    }

    /// The run, once it is recorded and can be resumed.
    pub(crate) fn run(&self) -> Option<String> {
        lock(&self.run).clone()
    }

    /// Removes the display from the screen.
    pub(crate) fn clear(&self) {
        if let Display::Live(live) = &self.display {
            live.clear();
        }
    }
}

impl Observer for Progress {
    fn observe(&self, event: RunEvent) {
        if let RunEvent::Opened { run } = &event {
            *lock(&self.run) = Some(run.to_string());
        }
        match (&self.display, event) {
            (Display::Lines(lines), RunEvent::Asked { invocation, .. }) => lines.asked(&invocation),
            (Display::Lines(lines), RunEvent::Retried { invocation, why, .. }) => {
                lines.asked_again(&invocation, &why);
            }
            (Display::Lines(lines), RunEvent::Answered { invocation, status, took, .. }) => {
                lines.ended(&invocation, status.as_str(), took);
            }
            (Display::Live(live), RunEvent::Asked { invocation, member, step }) => {
                live.asked(&invocation, &member, &step);
            }
            (Display::Live(live), RunEvent::Writing { invocation, bytes, .. }) => {
                live.writing(&invocation, bytes);
            }
            (Display::Live(live), RunEvent::Retried { invocation, why, .. }) => {
                live.asked_again(&invocation, &why)
            }
            (Display::Live(live), RunEvent::Answered { invocation, status, took, .. }) => {
                live.ended(&invocation, status.as_str(), took);
            }
            _ => {}
        }
    }
}

impl SweepProgress {
    /// `watched` tells whether standard error is a terminal.
    pub(crate) fn new(watched: bool) -> SweepProgress {
        let display = match Screen::of_stderr(watched) {
            Screen::Off => Display::Nothing,
            Screen::Lines => Display::Lines(lines::Sweep::default()),
            Screen::Live(glyphs) => Display::Live(sweep::Sweep::new(glyphs, screen::stderr())),
        };
        SweepProgress { display }
    }

    /// Removes the display from the screen.
    pub(crate) fn clear(&self) {
        if let Display::Live(live) = &self.display {
            live.clear();
        }
    }
}

impl SweepObserver for SweepProgress {
    fn planned(&self, reviews: usize) {
        match &self.display {
            Display::Nothing => {}
            Display::Lines(lines) => lines.planned(reviews),
            Display::Live(live) => live.planned(reviews),
        }
    }

    fn started(&self, path: &str) {
        if let Display::Live(live) = &self.display {
            live.started(path);
        }
    }

    fn ended(&self, swept: &SweptFile) {
        match &self.display {
            Display::Nothing => {}
            Display::Lines(lines) => lines.ended(swept),
            Display::Live(live) => live.ended(&swept.path),
        }
    }
}

/// Locks; state that a panicking thread left behind is good enough to display.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
