//! The content of a terminal at each point.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressDrawTarget, TermLike};
use quorate::Verdict;

use super::Glyphs;
use super::*;
use quorate::sweep::SweptOutcome;

const WIDTH: usize = 60;

/// A terminal of sixty columns that records its content.
#[derive(Debug, Clone, Default)]
struct Terminal(Arc<Mutex<Screenful>>);

#[derive(Debug, Default)]
struct Screenful {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    writes: usize,
}

impl Terminal {
    fn target(&self) -> ProgressDrawTarget {
        ProgressDrawTarget::term_like_with_hz(Box::new(self.clone()), 255)
    }

    fn shown(&self) -> String {
        let screen = self.0.lock().unwrap();
        let rows = screen.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
        // On a slow machine a second may pass.
        rows.collect::<Vec<_>>().join("\n").trim_end().replace(" 1s", " 0s")
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
    fn write(&mut self, text: &str) {
        self.writes += 1;
        for c in anstream::adapter::strip_str(text).to_string().chars() {
            match c {
                '\r' => self.column = 0,
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                c => self.put(c),
            }
        }
    }

    /// Wraps to the next line only when there is more to write, as a real terminal does.
    fn put(&mut self, c: char) {
        if self.column == WIDTH {
            (self.row, self.column) = (self.row + 1, 0);
        }
        self.rows.resize(self.rows.len().max(self.row + 1), vec![' '; WIDTH]);
        self.rows[self.row][self.column] = c;
        self.column += 1;
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        WIDTH as u16
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.row = screen.row.saturating_sub(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.row += n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.column = (screen.column + n).min(WIDTH))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.with(|screen| screen.column = screen.column.saturating_sub(n))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.with(|screen| screen.write(&format!("{text}\n")))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.with(|screen| screen.write(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.with(|screen| {
            screen.column = 0;
            let row = screen.row;
            if let Some(row) = screen.rows.get_mut(row) {
                row.fill(' ');
            }
        })
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_for_each_member_of_the_step_that_is_on() {
    let terminal = Terminal::default();
    let mut council = council::Board::new(Glyphs::Ascii, terminal.target());
    for member in ["skeptic", "evidence"] {
        council.asked(&format!("r1/{member}"), member, "r1");
    }
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    round 1
      / skeptic            0s
      / evidence           0s
    ");
    council.asked_again("r1/skeptic", "`would_block` is\nmissing");
    council.ended("r1/evidence", "timed_out", Duration::from_secs(90));
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    round 1
      - skeptic            0s asked again: `would_block` is miss
      x evidence         timed out 1 min 30 s
    ");
    council.ended("r1/skeptic", "answered", Duration::from_millis(3200));
    council.asked("adjudicate", "adjudicator", "adjudicate");
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    round 1: 1 of 2 answered
    adjudication
      / adjudicator        0s
    ");
    council.ended("r1/nobody", "late", Duration::ZERO);
    council.clear();
    assert_eq!(terminal.shown(), "");
}

#[test]
fn an_answer_that_comes_in_is_counted() {
    let terminal = Terminal::default();
    let mut council = council::Board::new(Glyphs::Ascii, terminal.target());
    for member in ["skeptic", "evidence"] {
        council.asked(&format!("r1/{member}"), member, "r1");
    }
    council.writing("r1/skeptic", 0);
    council.writing("r1/evidence", 4_000);
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    round 1
      / skeptic            0s thinks
      / evidence           0s 1001 tokens so far
    ");
}

#[test]
fn many_members_take_turns_on_the_screen() {
    let terminal = Terminal::default();
    let mut council = council::Board::new(Glyphs::Ascii, terminal.target());
    for member in 1..=500 {
        council.asked(&format!("round3/m{member}"), &format!("m{member}"), "round3");
    }
    for member in 1..=490 {
        let word = if member % 100 == 0 { "failed" } else { "answered" };
        council.ended(&format!("round3/m{member}"), word, Duration::from_millis(5));
    }
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    round 3: 486 of 500 answered, 4 without an answer
      / m491               0s
      / m492               0s
      / m493               0s
      / m494               0s
      / m495               0s
      / m496               0s
      / m497               0s
      / m498               0s
      / m499               0s
      / m500               0s
    ");
    council.clear();
    assert_eq!(terminal.shown(), "");
}

#[test]
fn a_hierarchy_is_one_step_that_grows() {
    let terminal = Terminal::default();
    let mut council = council::Board::new(Glyphs::Ascii, terminal.target());
    for member in 1..=14 {
        council.asked(&format!("node/m{member}"), &format!("m{member}"), "node");
        council.ended(&format!("node/m{member}"), "answered", Duration::from_millis(5));
    }
    council.asked("node/root", "root", "node");
    council.tick();
    insta::assert_snapshot!(terminal.shown(), @"
    reports: 14 of 15 answered
      / root               0s
    ");
}

#[test]
fn what_is_over_before_the_first_beat_is_never_drawn() {
    let terminal = Terminal::default();
    let mut council = council::Board::new(Glyphs::Unicode, terminal.target());
    council.asked("r1/skeptic", "skeptic", "r1");
    council.ended("r1/skeptic", "answered", Duration::ZERO);
    council.clear();
    assert_eq!(terminal.writes(), 0);
}

#[test]
fn a_pulse_ends_with_its_owner() {
    let beats = Arc::new(());
    let beats_of_thread = beats.clone();
    let pulse = Ticker::start(move || drop(beats_of_thread.clone()));
    drop(pulse);
    assert_eq!(Arc::strong_count(&beats), 1);
}

#[test]
fn a_bar_for_a_sweep() {
    let terminal = Terminal::default();
    let mut sweep = council::SweepBoard::new(Glyphs::Ascii, terminal.target());
    sweep.planned(4);
    sweep.started("a.md");
    sweep.started("b.md");
    sweep.ended("a.md");
    sweep.tick();
    insta::assert_snapshot!(terminal.shown(), @"- ======>                  1/4 0s b.md");
    // A line on a wait stays above the bar.
    sweep.print("skeptic: HTTP 503 from 127.0.0.1:8080, trying again in 8 s");
    sweep.tick();
    let shown = terminal.shown();
    assert!(shown.starts_with("skeptic: HTTP 503") && shown.ends_with("b.md"), "{shown}");
    sweep.clear();
    assert!(terminal.shown().starts_with("skeptic: HTTP 503"), "{}", terminal.shown());
}

#[test]
fn unwatched_progress_shows_nothing() {
    let progress = Progress::new(Shown::Nothing);
    let (invocation, member, step) = ("r1/skeptic".into(), "skeptic".into(), "r1".into());
    progress.observe(Event::Asked { invocation, member, step });
    let (invocation, member, step) = ("r1/skeptic".into(), "skeptic".into(), "r1".into());
    progress.observe(Event::Answered {
        invocation,
        member,
        step,
        status: quorate::Status::Answered,
        took: Duration::ZERO,
    });
    progress.display.clear();
    let sweep = SweepProgress::new(Shown::Nothing);
    sweep.planned(1);
    let outcome = SweptOutcome::Judged {
        run: "r7k2m9q4xa1bc".to_owned(),
        verdict: Verdict::Ship,
        fix: None,
        has_stand_ins: false,
    };
    sweep.ended(&SweptFile {
        path: "a.md".to_owned(),
        tier: 1,
        artifact_type: "post".to_owned(),
        tier_reason: None,
        outcome,
    });
    sweep.clear();
}
