//! A review on a live terminal: under the step that is on a line for each member, finished steps as one line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::locked;
use super::pulse::Pulse;
use super::screen::Glyphs;
use crate::cli::render::paint::line;
use crate::cli::render::wording::{cut, duration, status, step as named};

/// How much of the reason for a second question is shown.
const WHY: usize = 60;

/// The lines.
pub(super) struct Council {
    board: Arc<Mutex<Board>>,
    pulse: Mutex<Option<Pulse>>,
}

/// What stands on the screen.
pub(super) struct Board {
    lines: MultiProgress,
    glyphs: Glyphs,
    /// Where it is drawn, until the first beat draws it.
    target: Option<ProgressDrawTarget>,
    step: Option<Step>,
}

struct Step {
    word: String,
    heading: ProgressBar,
    members: Vec<Member>,
}

struct Member {
    id: String,
    bar: ProgressBar,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Thinking,
    Answered,
    Absent,
}

impl Council {
    /// Draws on the target from the first beat on.
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Council {
        Council { board: Arc::new(Mutex::new(Board::new(glyphs, target))), pulse: Mutex::new(None) }
    }

    pub(super) fn asked(&self, id: &str, member: &str, step: &str) {
        locked(&self.board).asked(id, member, step);
        let mut pulse = locked(&self.pulse);
        if pulse.is_none() {
            let board = self.board.clone();
            *pulse = Some(Pulse::start(move || locked(&board).beat()));
        }
    }

    pub(super) fn asked_again(&self, id: &str, why: &str) {
        locked(&self.board).asked_again(id, why);
    }

    pub(super) fn ended(&self, id: &str, status: &str, took: Duration) {
        locked(&self.board).ended(id, status, took);
    }

    pub(super) fn clear(&self) {
        // The pulse goes first: after it nobody draws.
        let pulse = locked(&self.pulse).take();
        drop(pulse);
        locked(&self.board).clear();
    }
}

impl Drop for Council {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Board {
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Board {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        Board { lines, glyphs, target: Some(target), step: None }
    }

    pub(super) fn asked(&mut self, id: &str, member: &str, word: &str) {
        if self.step.as_ref().is_none_or(|step| step.word != word) {
            self.close();
            let heading = self.add("{prefix:.bold}{msg}").with_prefix(named(&line(word)));
            self.step = Some(Step { word: word.to_owned(), heading, members: Vec::new() });
        }
        let bar =
            self.add("  {spinner:.cyan} {prefix:16} {elapsed:>4} {wide_msg:.dim}").with_prefix(line(member));
        if let Some(step) = &mut self.step {
            step.members.push(Member { id: id.to_owned(), bar, state: State::Thinking });
        }
    }

    pub(super) fn asked_again(&self, id: &str, why: &str) {
        if let Some(member) = self.step.as_ref().and_then(|step| step.members.iter().find(|one| one.id == id))
        {
            member.bar.set_message(format!("asked again: {}", cut(&line(why), WHY)));
        }
    }

    pub(super) fn ended(&mut self, id: &str, word: &str, took: Duration) {
        let glyphs = self.glyphs;
        let members = self.step.as_mut().map(|step| &mut step.members);
        let Some(member) = members.and_then(|all| all.iter_mut().find(|one| one.id == id)) else { return };
        let (mark, colour) = match word {
            "answered" => (glyphs.done(), "green"),
            _ => (glyphs.lacking(), "red"),
        };
        member.state = if word == "answered" { State::Answered } else { State::Absent };
        member.bar.set_style(
            style(&format!("  {{spinner:.{colour}}} {{prefix:16}} {{wide_msg}}")).tick_strings(&[mark, mark]),
        );
        let took = if took.is_zero() { String::new() } else { format!(" {}", duration(took)) };
        member.bar.finish_with_message(format!("{}{took}", status(&line(word))));
    }

    /// Leaves one line of the step that was on.
    fn close(&mut self) {
        let Some(step) = self.step.take() else { return };
        let answered = step.members.iter().filter(|member| member.state == State::Answered).count();
        for member in &step.members {
            member.bar.finish_and_clear();
            self.lines.remove(&member.bar);
        }
        step.heading.finish_with_message(format!(": {answered} of {} answered", step.members.len()));
    }

    fn add(&self, template: &str) -> ProgressBar {
        let style = style(template).tick_chars(self.glyphs.spinner());
        self.lines.add(ProgressBar::no_length()).with_style(style)
    }

    /// Turns the spinners; the first time it brings everything onto the screen.
    pub(super) fn beat(&mut self) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        let Some(step) = &self.step else { return };
        step.heading.tick();
        for member in step.members.iter().filter(|member| member.state == State::Thinking) {
            member.bar.tick();
        }
    }

    pub(super) fn clear(&mut self) {
        self.close();
        // Standard error may be gone; then there is nothing to clear.
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// A template of this file, which is well-formed; the default stands in for one that is not.
pub(super) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
