//! The content of a terminal at each point.

use std::io;

use indicatif::TermLike;
use quorate::ports::telemetry::EventKind;
use quorate::{Caps, Status};

use super::*;

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
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
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

/// A board on a terminal, at the time of its beginning.
struct Shot<B> {
    terminal: Terminal,
    canvas: Canvas,
    board: B,
    began: Instant,
}

impl<B: Board> Shot<B> {
    fn new(board: impl FnOnce(Look) -> B) -> Shot<B> {
        let terminal = Terminal::default();
        let canvas = Canvas::new(terminal.target());
        let board = board(Look { has_colours: false, frame: 0 });
        Shot { terminal, canvas, board, began: Instant::now() }
    }

    fn draw(&mut self) -> String {
        self.canvas.draw(&self.board.screen(WIDTH, self.began).join("\n"));
        self.terminal.shown()
    }

    fn clear(&self) -> String {
        self.canvas.clear();
        self.terminal.shown()
    }
}

const LIMIT: Duration = Duration::from_secs(120);

fn asked(step: &str, member: &str) -> Event {
    let invocation = format!("{step}/{member}").into();
    Event::Asked { invocation, member: member.into(), step: step.into(), timeout: LIMIT }
}

fn writing(step: &str, member: &str, bytes: usize) -> Event {
    Event::Writing { invocation: format!("{step}/{member}").into(), member: member.into(), bytes }
}

fn answered(step: &str, member: &str, status: Status, ms: u64, position: Option<&'static str>) -> Event {
    let invocation = format!("{step}/{member}").into();
    let (member, step, took) = (member.into(), step.into(), Duration::from_millis(ms));
    Event::Answered { invocation, member, step, status, took, position }
}

fn retried(step: &str, member: &str, why: &str) -> Event {
    let invocation = format!("{step}/{member}").into();
    Event::Retried { invocation, member: member.into(), step: step.into(), why: why.to_owned() }
}

fn waiting(step: &str, member: &str) -> Event {
    let invocation = format!("{step}/{member}").into();
    let (why, wait) = ("HTTP 503".to_owned(), Duration::from_secs(8));
    Event::Waiting { invocation, member: member.into(), step: step.into(), why, wait, retry: Some((2, 3)) }
}

fn spent(calls: u32, money: &str) -> Event {
    let caps = Caps { calls: Some(40), money: "1 USD".parse().ok(), ..Caps::default() };
    Event::Spent { calls, money: money.parse().unwrap(), caps }
}

#[test]
fn each_member_keeps_its_line_until_the_end() {
    let mut shot = Shot::new(CouncilBoard::new);
    for member in ["skeptic", "evidence"] {
        shot.board.observe(&asked("r1", member));
    }
    insta::assert_snapshot!(shot.draw(), @"
    round 1   0:00
    ⠙ skeptic   round 1  waiting  0:00 of 2:00
    ⠙ evidence  round 1  waiting  0:00 of 2:00
    ");
    shot.board.observe(&retried("r1", "skeptic", "`would_block` is\nmissing"));
    shot.board.observe(&answered("r1", "evidence", Status::TimedOut, 90_000, None));
    shot.board.observe(&spent(3, "0.02 USD"));
    insta::assert_snapshot!(shot.draw(), @"
    round 1   0:00   3 of at most 40 calls   $0.02 of $1.00
    ⠹ skeptic   round 1  asked again  0:00 of 2:00  `would_blo…
    ✗ evidence  round 1  timed out  1 min 30 s
    ");
    shot.board.observe(&answered("r1", "skeptic", Status::Answered, 3_200, Some("ships")));
    shot.board.observe(&asked("adjudicate", "adjudicator"));
    shot.board.observe(&waiting("adjudicate", "adjudicator"));
    insta::assert_snapshot!(shot.draw(), @"
    adjudication   0:00   3 of at most 40 calls   $0.02 of $1.…
    ✓ skeptic      round 1       answered  3.2 s  ships
    ✗ evidence     round 1       timed out  1 min 30 s
    ⠸ adjudicator  adjudication  HTTP 503, trying again in 8 s…
    ");
    shot.board.observe(&answered("r1", "nobody", Status::Late, 0, None));
    assert_eq!(shot.clear(), "");
}

#[test]
fn an_answer_that_comes_in_is_counted() {
    let mut shot = Shot::new(CouncilBoard::new);
    for (member, bytes) in [("skeptic", 0), ("evidence", 4_000)] {
        shot.board.observe(&asked("r1", member));
        shot.board.observe(&writing("r1", member, bytes));
    }
    insta::assert_snapshot!(shot.draw(), @"
    round 1   0:00
    ⠙ skeptic   round 1  thinking  0:00 of 2:00
    ⠙ evidence  round 1  writing  0:00 of 2:00  1001 tokens so…
    ");
}

#[test]
fn many_members_take_turns_on_the_screen() {
    let mut shot = Shot::new(CouncilBoard::new);
    for member in 1..=500 {
        shot.board.observe(&asked("round3", &format!("m{member}")));
    }
    for member in 1..=490 {
        let status = if member % 100 == 0 { Status::Failed } else { Status::Answered };
        shot.board.observe(&answered("round3", &format!("m{member}"), status, 5, None));
    }
    insta::assert_snapshot!(shot.draw(), @"
    round 3: 486 of 500 answered, 4 without an answer   0:00
    ✓ m489  round 3  answered  5 ms
    ✓ m490  round 3  answered  5 ms
    ⠙ m491  round 3  waiting  0:00 of 2:00
    ⠙ m492  round 3  waiting  0:00 of 2:00
    ⠙ m493  round 3  waiting  0:00 of 2:00
    ⠙ m494  round 3  waiting  0:00 of 2:00
    ⠙ m495  round 3  waiting  0:00 of 2:00
    ⠙ m496  round 3  waiting  0:00 of 2:00
    ⠙ m497  round 3  waiting  0:00 of 2:00
    ⠙ m498  round 3  waiting  0:00 of 2:00
    ⠙ m499  round 3  waiting  0:00 of 2:00
    ⠙ m500  round 3  waiting  0:00 of 2:00
    ");
    assert_eq!(shot.clear(), "");
}

#[test]
fn a_state_that_lasts_is_said_once() {
    let mut board = Shot::new(CouncilBoard::new).board;
    for member in ["skeptic", "evidence", "brand"] {
        board.observe(&asked("r1", member));
    }
    board.observe(&answered("r1", "brand", Status::Answered, 5, Some("blocks")));
    let began = Instant::now();
    assert!(board.lasting(began).is_empty());
    let later = began + Duration::from_secs(30);
    let line = "round 1: still waiting for skeptic and evidence after 30 s (limit 2:00)";
    assert_eq!(board.lasting(later), [line]);
    assert!(board.lasting(later).is_empty());
    // A place in the queue is a state of its own, and does not count against the limit.
    board.observe(&Event::Queued { invocation: "r1/evidence".into() });
    let text = board.screen(80, later).join("\n");
    assert!(text.contains("evidence  round 1  queued for its executor  0:30"), "{text}");
    board.observe(&Event::Admitted { invocation: "r1/evidence".into() });
    let text = board.screen(80, Instant::now()).join("\n");
    assert!(text.contains("evidence  round 1  waiting  0:00 of 2:00"), "{text}");
    board.observe(&answered("r1", "evidence", Status::Answered, 5, Some("ships")));
    // A second request is a new state.
    board.observe(&retried("r1", "skeptic", "HTTP 503"));
    let line = "round 1: still waiting for skeptic after 30 s (limit 2:00)";
    assert_eq!(board.lasting(later + Duration::from_millis(500)), [line]);
}

#[test]
fn work_that_ends_before_the_first_tick_is_never_drawn() {
    let mut shot = Shot::new(CouncilBoard::new);
    shot.board.observe(&asked("r1", "skeptic"));
    shot.board.observe(&answered("r1", "skeptic", Status::Answered, 0, None));
    shot.clear();
    assert_eq!(shot.terminal.writes(), 0);
}

#[test]
fn a_ticker_ends_with_its_owner() {
    let beats = Arc::new(());
    let beats_of_thread = beats.clone();
    let ticker = Ticker::start(TICK_INTERVAL, move || drop(beats_of_thread.clone()));
    drop(ticker);
    assert_eq!(Arc::strong_count(&beats), 1);
}

#[test]
fn speakers_are_shown_with_the_time_that_they_take() {
    let mut shot = Shot::new(swarm::SwarmBoard::new);
    for participant in ["ada", "barbara"] {
        let (participant, executor) = (participant.into(), "script".into());
        shot.board.observe(&EventKind::ParticipantStarted { participant, executor });
    }
    insta::assert_snapshot!(shot.draw(), @"
    ⠙ ada      waiting  0:00
    ⠙ barbara  waiting  0:00
    ");
    let later = Instant::now() + LASTING;
    assert_eq!(shot.board.lasting(later), ["still waiting for ada and barbara after 2 s"]);
    assert!(shot.board.lasting(later).is_empty());
    shot.board.observe(&EventKind::ParticipantFinished { participant: "ada".into(), ms: 5, bytes: 9 });
    assert!(shot.draw().ends_with("barbara  waiting  0:00"));
}

#[test]
fn a_bar_for_a_sweep() {
    let mut shot = Shot::new(SweepBoard::new);
    shot.board.planned(4);
    shot.board.started("a.md");
    shot.board.started("b.md");
    shot.board.ended("a.md");
    insta::assert_snapshot!(shot.draw(), @"⠙ ██████░░░░░░░░░░░░░░░░░░ 1/4 0:00 b.md");
    // A line on a wait stays above the bar.
    shot.canvas.print("skeptic: HTTP 503 from 127.0.0.1:8080, trying again in 8 s");
    let shown = shot.draw();
    assert!(shown.starts_with("skeptic: HTTP 503") && shown.ends_with("b.md"), "{shown}");
    let shown = shot.clear();
    assert!(shown.starts_with("skeptic: HTTP 503"), "{shown}");
    let later = Instant::now() + LASTING;
    assert_eq!(shot.board.lasting(later), ["reviewing b.md (1 of 4 done)"]);
    assert!(shot.board.lasting(later).is_empty());
}

#[test]
fn unwatched_progress_shows_nothing() {
    let progress = Progress::new(Shown::Nothing);
    progress.observe(asked("r1", "skeptic"));
    progress.observe(answered("r1", "skeptic", Status::Answered, 0, None));
    assert!(lock(&progress.display.ticker).is_none());
    let sweep = SweepProgress::new(Shown::Nothing);
    sweep.show(&SweepEvent::Planned(1));
    sweep.show(&SweepEvent::Started("a.md"));
    assert!(lock(&sweep.display.ticker).is_none());
}
