//! Progress on a live terminal. A review or an assembly run has a line for each member of the current step, within the
//! terminal's height, and one line for each finished step. A sweep has one bar with the number of finished drafts, the time,
//! and the current drafts.

use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Glyphs, Redraw};
use crate::render::layout::{one_line, truncate};
use crate::render::wording::{duration, status, step as named};

/// The longest shown reason for a re-prompt, in characters.
const MAX_REASON_CHARS: usize = 60;
/// The most member lines. Members that have ended give way to pending ones, and are counted in the heading.
const MAX_MEMBER_LINES: usize = 12;

/// A review or an assembly run.
pub(super) struct Board {
    lines: MultiProgress,
    glyphs: Glyphs,
    /// The target of the drawing, until the first tick draws.
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
    /// Its line, which measures time even while it is hidden.
    bar: ProgressBar,
    shown: bool,
    state: State,
}

impl Step {
    fn count(&self, state: State) -> usize {
        self.members.iter().filter(|member| member.state == state).count()
    }

    fn shown(&self) -> usize {
        self.members.iter().filter(|member| member.shown).count()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Thinking,
    Answered,
    Absent,
}

impl Board {
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> Board {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        Board { lines, glyphs, target: Some(target), step: None }
    }

    pub(super) fn asked(&mut self, id: &str, member: &str, word: &str) {
        if self.step.as_ref().is_none_or(|step| step.word != word) {
            self.close();
            let heading = self.add("{prefix:.bold}{msg}").with_prefix(named(&one_line(word)));
            self.step = Some(Step { word: word.to_owned(), heading, members: Vec::new() });
        }
        let style = self.style("  {spinner:.cyan} {prefix:16} {elapsed:>4} {wide_msg:.dim}");
        let bar = ProgressBar::hidden().with_style(style).with_prefix(one_line(member));
        if let Some(step) = &mut self.step {
            step.members.push(Member { id: id.to_owned(), bar, shown: false, state: State::Thinking });
        }
        self.fill();
    }

    /// Fills the screen with members: pending ones take the lines of those that have ended.
    fn fill(&mut self) {
        let Some(step) = &mut self.step else { return };
        while let Some(next) =
            step.members.iter().position(|member| !member.shown && member.state == State::Thinking)
        {
            if step.shown() >= MAX_MEMBER_LINES {
                let ended =
                    step.members.iter_mut().find(|member| member.shown && member.state != State::Thinking);
                let Some(ended) = ended else { break };
                ended.shown = false;
                ended.bar.finish_and_clear();
                self.lines.remove(&ended.bar);
            }
            let member = &mut step.members[next];
            member.shown = true;
            member.bar = self.lines.add(member.bar.clone());
        }
        let hidden = step.members.len() - step.shown();
        if hidden > 0 {
            let (answered, absent) = (step.count(State::Answered), step.count(State::Absent));
            let unanswered = if absent > 0 { format!(", {absent} without an answer") } else { String::new() };
            step.heading.set_message(format!(": {answered} of {} answered{unanswered}", step.members.len()));
        }
    }

    pub(super) fn asked_again(&self, id: &str, reason: &str) {
        self.set_message(id, format!("asked again: {}", truncate(&one_line(reason), MAX_REASON_CHARS)));
    }

    /// Shows how much of an answer came in. A token has about four bytes.
    pub(super) fn writing(&self, id: &str, bytes: usize) {
        self.set_message(
            id,
            match bytes {
                0 => "thinks".to_owned(),
                bytes => format!("{} tokens so far", bytes / 4 + 1),
            },
        );
    }

    fn set_message(&self, id: &str, message: String) {
        let step = self.step.as_ref();
        if let Some(member) = step.and_then(|step| step.members.iter().find(|member| member.id == id)) {
            member.bar.set_message(message);
        }
    }

    pub(super) fn ended(&mut self, id: &str, word: &str, took: Duration) {
        let glyphs = self.glyphs;
        let members = self.step.as_mut().map(|step| &mut step.members);
        let Some(member) = members.and_then(|all| all.iter_mut().find(|member| member.id == id)) else {
            return;
        };
        let (glyph, colour) = match word {
            "answered" => (glyphs.success(), "green"),
            _ => (glyphs.failure(), "red"),
        };
        member.state = if word == "answered" { State::Answered } else { State::Absent };
        member.bar.set_style(
            style(&format!("  {{spinner:.{colour}}} {{prefix:16}} {{wide_msg}}"))
                .tick_strings(&[glyph, glyph]),
        );
        let took = if took.is_zero() { String::new() } else { format!(" {}", duration(took)) };
        member.bar.finish_with_message(format!("{}{took}", status(&one_line(word))));
        self.fill();
    }

    /// Replaces the current step by one line.
    fn close(&mut self) {
        let Some(step) = self.step.take() else { return };
        let answered = step.count(State::Answered);
        for member in step.members.iter().filter(|member| member.shown) {
            member.bar.finish_and_clear();
            self.lines.remove(&member.bar);
        }
        step.heading.finish_with_message(format!(": {answered} of {} answered", step.members.len()));
    }

    fn add(&self, template: &str) -> ProgressBar {
        self.lines.add(ProgressBar::no_length()).with_style(self.style(template))
    }

    fn style(&self, template: &str) -> ProgressStyle {
        style(template).tick_chars(self.glyphs.spinner())
    }
}

impl Redraw for Board {
    fn tick(&mut self) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        let Some(step) = &self.step else { return };
        step.heading.tick();
        for member in step.members.iter().filter(|member| member.shown && member.state == State::Thinking) {
            member.bar.tick();
        }
    }

    fn print(&self, line: &str) {
        // Before the first tick the lines have no target, and would lose it.
        match self.target {
            Some(_) => anstream::eprintln!("{line}"),
            None => drop(self.lines.println(line)),
        }
    }

    fn clear(&mut self) {
        self.close();
        // If standard error is closed, there is nothing to clear.
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}

/// A style from a valid template of this file; falls back to the default.
pub(super) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A sweep.
pub(super) struct SweepBoard {
    lines: MultiProgress,
    bar: ProgressBar,
    target: Option<ProgressDrawTarget>,
    active_paths: Vec<String>,
}

impl SweepBoard {
    pub(super) fn new(glyphs: Glyphs, target: ProgressDrawTarget) -> SweepBoard {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let style = style("{spinner:.cyan} {bar:24} {pos}/{len} {elapsed} {wide_msg:.dim}");
        let style = style.tick_chars(glyphs.spinner()).progress_chars(glyphs.bar());
        let bar = lines.add(ProgressBar::new(0)).with_style(style);
        SweepBoard { lines, bar, target: Some(target), active_paths: Vec::new() }
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

    fn update_message(&self) {
        self.bar.set_message(self.active_paths.join(", "));
    }
}

impl Redraw for SweepBoard {
    fn print(&self, line: &str) {
        match self.target {
            Some(_) => anstream::eprintln!("{line}"),
            None => drop(self.lines.println(line)),
        }
    }

    fn clear(&mut self) {
        self.bar.finish_and_clear();
        // If standard error is closed, there is nothing to clear.
        let _ = self.lines.clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn tick(&mut self) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        self.bar.tick();
    }
}
