//! The progress of a sweep on a live terminal: one bar with the number of finished drafts, the time, and current drafts.

use std::sync::{Arc, Mutex};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};

use super::council::style;
use super::lock;
use super::screen::Glyphs;
use super::ticker::Ticker;
use crate::render::paint::one_line;

pub(super) struct Sweep {
    board: Arc<Mutex<Board>>,
    pulse: Mutex<Option<Ticker>>,
}

/// The content of the screen.
pub(super) struct Board {
    lines: MultiProgress,
    bar: ProgressBar,
    target: Option<ProgressDrawTarget>,
    active_paths: Vec<String>,
}

impl Sweep {
    /// Draws on the target from the first tick on.
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Sweep {
        Sweep { board: Arc::new(Mutex::new(Board::new(glyphs, target))), pulse: Mutex::new(None) }
    }

    pub(super) fn planned(&self, reviews: usize) {
        lock(&self.board).planned(reviews);
        let board = self.board.clone();
        *lock(&self.pulse) = Some(Ticker::start(move || lock(&board).tick()));
    }

    pub(super) fn started(&self, path: &str) {
        lock(&self.board).started(path);
    }

    pub(super) fn ended(&self, path: &str) {
        lock(&self.board).ended(path);
    }

    pub(super) fn clear(&self) {
        let pulse = lock(&self.pulse).take();
        drop(pulse);
        lock(&self.board).clear();
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Board {
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Board {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let style = style("{spinner:.cyan} {bar:24} {pos}/{len} {elapsed} {wide_msg:.dim}");
        let style = style.tick_chars(glyphs.spinner()).progress_chars(glyphs.bar());
        let bar = lines.add(ProgressBar::new(0)).with_style(style);
        Board { lines, bar, target: Some(target), active_paths: Vec::new() }
    }

    pub(super) fn planned(&self, reviews: usize) {
        self.bar.set_length(reviews as u64);
    }

    pub(super) fn started(&mut self, path: &str) {
        self.active_paths.push(one_line(path));
        self.update_message();
    }

    pub(super) fn ended(&mut self, path: &str) {
        let path = one_line(path);
        if let Some(at) = self.active_paths.iter().position(|active| *active == path) {
            self.active_paths.remove(at);
        }
        self.bar.inc(1);
        self.update_message();
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
        // If standard error is closed, there is nothing to clear.
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn update_message(&self) {
        self.bar.set_message(self.active_paths.join(", "));
    }

    /// Turns the spinner; the first call draws the bar.
    pub(super) fn tick(&mut self) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        self.bar.tick();
    }
}
