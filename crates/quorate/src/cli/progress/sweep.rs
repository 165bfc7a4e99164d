//! A sweep on a live terminal: one bar with how many drafts are done, the time, and which are under way.

use std::sync::{Arc, Mutex};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};

use super::council::style;
use super::locked;
use super::pulse::Pulse;
use super::screen::Glyphs;
use crate::cli::render::paint::line;

/// The bar.
pub(super) struct Sweep {
    board: Arc<Mutex<Board>>,
    pulse: Mutex<Option<Pulse>>,
}

struct Board {
    lines: MultiProgress,
    bar: ProgressBar,
    target: Option<ProgressDrawTarget>,
    under_way: Vec<String>,
}

impl Sweep {
    /// Draws on the target from the first beat on.
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Sweep {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let style = style("{spinner:.cyan} {bar:24} {pos}/{len} {elapsed} {wide_msg:.dim}");
        let bar = lines.add(ProgressBar::new(0)).with_style(style.tick_chars(glyphs.spinner()).progress_chars(glyphs.bar()));
        let board = Board { lines, bar, target: Some(target), under_way: Vec::new() };
        Sweep { board: Arc::new(Mutex::new(board)), pulse: Mutex::new(None) }
    }

    pub(super) fn planned(&self, reviews: usize) {
        locked(&self.board).bar.set_length(reviews as u64);
        let board = self.board.clone();
        *locked(&self.pulse) = Some(Pulse::start(move || locked(&board).beat()));
    }

    pub(super) fn started(&self, path: &str) {
        let mut board = locked(&self.board);
        board.under_way.push(line(path));
        board.said();
    }

    pub(super) fn ended(&self, path: &str) {
        let mut board = locked(&self.board);
        let path = line(path);
        if let Some(at) = board.under_way.iter().position(|one| *one == path) {
            board.under_way.remove(at);
        }
        board.bar.inc(1);
        board.said();
    }

    pub(super) fn clear(&self) {
        let pulse = locked(&self.pulse).take();
        drop(pulse);
        let board = locked(&self.board);
        board.bar.finish_and_clear();
        // Standard error may be gone; then there is nothing to clear.
        let _ = board.lines.clear();
        board.lines.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// What a beat does, for tests that do not wait for one.
    #[cfg(test)]
    pub(super) fn beat(&self) {
        locked(&self.board).beat();
    }
}

impl Drop for Sweep {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Board {
    fn said(&self) {
        self.bar.set_message(self.under_way.join(", "));
    }

    fn beat(&mut self) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        self.bar.tick();
    }
}
