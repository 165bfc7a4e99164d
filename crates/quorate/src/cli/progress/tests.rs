//! What a terminal shows at each point, on a terminal that remembers.

use std::io;
use std::sync::Arc;

use indicatif::{ProgressDrawTarget, TermLike};
use quorate_protocol::policy::Verdict;

use super::screen::Glyphs;
use super::*;
use crate::service::sweep::Fate;

/// A terminal of 60 columns that knows which lines it shows.
#[derive(Debug, Clone, Default)]
struct Terminal(Arc<Mutex<Screenful>>);

#[derive(Debug, Default)]
struct Screenful {
    lines: Vec<String>,
    row: usize,
    writes: usize,
}

impl Terminal {
    fn target(&self) -> ProgressDrawTarget {
        ProgressDrawTarget::term_like_with_hz(Box::new(self.clone()), 255)
    }

    fn shown(&self) -> String {
        let screen = self.0.lock().unwrap();
        let lines: Vec<String> = screen.lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()).collect();
        lines.join("\n")
    }

    fn writes(&self) -> usize {
        self.0.lock().unwrap().writes
    }

    fn with(&self, change: impl FnOnce(&mut Screenful)) -> io::Result<()> {
        change(&mut self.0.lock().unwrap());
        Ok(())
    }
}

impl Screenful {
    fn line(&mut self) -> &mut String {
        while self.lines.len() <= self.row {
            self.lines.push(String::new());
        }
        &mut self.lines[self.row]
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        60
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.row = screen.row.saturating_sub(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.row += n)
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.with(|screen| {
            screen.writes += 1;
            screen.line().push_str(text);
            screen.row += 1;
        })
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.with(|screen| {
            screen.writes += 1;
            screen.line().push_str(text);
        })
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(|screen| screen.line().clear())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_for_each_member_of_the_step_that_is_on() {
    let terminal = Terminal::default();
    let council = council::Council::new(Glyphs::Ascii, terminal.target());
    for member in ["skeptic", "evidence"] {
        council.asked(&format!("r1/{member}"), member, "r1");
    }
    council.beat();
    insta::assert_snapshot!(terminal.shown(), @"");
    council.asked_again("r1/skeptic", "`would_block` is\nmissing");
    council.ended("r1/evidence", "timed_out", Duration::from_secs(90));
    council.beat();
    insta::assert_snapshot!(terminal.shown(), @"");
    council.ended("r1/skeptic", "answered", Duration::from_millis(3200));
    council.asked("adjudicate", "adjudicator", "adjudicate");
    council.beat();
    insta::assert_snapshot!(terminal.shown(), @"");
    council.ended("r1/nobody", "late", Duration::ZERO);
    council.clear();
    assert_eq!(terminal.shown(), "");
}

#[test]
fn what_is_over_before_the_first_beat_is_never_drawn() {
    let terminal = Terminal::default();
    let council = council::Council::new(Glyphs::Unicode, terminal.target());
    council.asked("r1/skeptic", "skeptic", "r1");
    council.ended("r1/skeptic", "answered", Duration::ZERO);
    drop(council);
    assert_eq!(terminal.writes(), 0);
}

#[test]
fn a_bar_for_a_sweep() {
    let terminal = Terminal::default();
    let sweep = sweep::Sweep::new(Glyphs::Ascii, terminal.target());
    sweep.planned(4);
    sweep.started("a.md");
    sweep.started("b.md");
    sweep.ended("a.md");
    sweep.beat();
    insta::assert_snapshot!(terminal.shown(), @"");
    sweep.clear();
    assert_eq!(terminal.shown(), "");
}

#[test]
fn unwatched_progress_remembers_the_run_and_shows_nothing() {
    let progress = Progress::new(false);
    assert_eq!(progress.run(), None);
    progress.opened("r7k2m9q4xa1bc");
    progress.asked("r1/skeptic", "skeptic", "r1");
    progress.ended("r1/skeptic", "answered", Duration::ZERO);
    progress.clear();
    assert_eq!(progress.run().as_deref(), Some("r7k2m9q4xa1bc"));
    let sweep = SweepProgress::new(false);
    sweep.planned(1);
    let fate = Fate::Judged { run: "r7k2m9q4xa1bc".to_owned(), verdict: Verdict::Ship };
    sweep.ended(&Swept { path: "a.md".to_owned(), tier: 1, artifact_type: "post".to_owned(), fate });
    sweep.clear();
}
