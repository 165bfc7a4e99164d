//! Progress on standard error while members work. It is cleared at the end, so that the verdict stands alone; without a
//! terminal only long waits are shown, a line for each. A terminal that cannot move its cursor gets a line for each event.

mod council;
pub(crate) mod swarm;

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::ProgressDrawTarget;
use quorate::sweep::{SweepObserver, SweptFile, SweptOutcome};
use quorate::{Error, Event, Observer, Run};

use crate::environment;
use crate::interrupt::{Interrupted, interrupt_next, until_interrupted};
use crate::render::layout::one_line;
use crate::render::wording::{duration, status, step};
pub(crate) use crate::terminal::Shown;
use crate::terminal::status_text;

/// The progress of one review or assembly run: a line for each member of the current step.
pub(crate) struct Progress {
    display: Display<council::Board, CouncilLines>,
}

/// The progress of a sweep: one bar for all drafts.
pub(crate) struct SweepProgress {
    display: Display<council::SweepBoard, SweepLines>,
}

/// A live display, or lines.
enum Display<B: Redraw, L> {
    Nothing,
    Waits,
    Lines(L),
    Live(Live<B>),
}

impl<B: Redraw, L> Display<B, L> {
    fn new(shown: Shown, lines: L, board: impl FnOnce(Glyphs, ProgressDrawTarget) -> B) -> Self {
        match Screen::of_stderr(shown == Shown::All) {
            Screen::Off if shown == Shown::Nothing => Display::Nothing,
            Screen::Off => Display::Waits,
            Screen::Lines => Display::Lines(lines),
            Screen::Live(glyphs) => {
                let board = Arc::new(Mutex::new(board(glyphs, ProgressDrawTarget::stderr())));
                Display::Live(Live { board, ticker: Mutex::new(None) })
            }
        }
    }

    /// Writes a line on a wait, which stays on the screen.
    fn say_wait(&self, line: &str) {
        match self {
            Display::Nothing => {}
            Display::Waits | Display::Lines(_) => say(&one_line(line)),
            Display::Live(live) => live.board().print(&one_line(line)),
        }
    }

    /// Removes the display from the screen.
    fn clear(&self) {
        if let Display::Live(live) = self {
            live.clear();
        }
    }
}

/// The content of a screen that is redrawn.
trait Redraw: Send + 'static {
    /// Turns the spinners; the first call draws everything.
    fn tick(&mut self);

    /// Writes a line above the display.
    fn print(&self, line: &str);

    fn clear(&mut self);
}

/// A live display: a thread redraws it from [`Live::start`] on.
struct Live<B: Redraw> {
    board: Arc<Mutex<B>>,
    ticker: Mutex<Option<Ticker>>,
}

impl<B: Redraw> Live<B> {
    fn board(&self) -> MutexGuard<'_, B> {
        lock(&self.board)
    }

    fn start(&self) {
        let board = &self.board;
        lock(&self.ticker).get_or_insert_with(|| {
            let board = board.clone();
            Ticker::start(move || lock(&board).tick())
        });
    }

    fn clear(&self) {
        // The ticker ends first, so that nothing is drawn later.
        let ticker = lock(&self.ticker).take();
        drop(ticker);
        self.board().clear();
    }
}

impl<B: Redraw> Drop for Live<B> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Progress {
    pub(crate) fn new(shown: Shown) -> Progress {
        Progress { display: Display::new(shown, CouncilLines::default(), council::Board::new) }
    }

    /// Shows the progress of an operation until it ends. A signal interrupts it; if its outcome was recorded before, the
    /// signal interrupts what is run next. A signal while it opens or closes the ledger ends the process.
    pub(crate) async fn follow<T>(&self, mut run: Run<T>) -> Result<T, Error> {
        let mut stage = run.stage();
        let mut is_interrupted = false;
        let mut is_interruptible = false;
        loop {
            let step = async {
                tokio::select! {
                    biased;
                    () = self.observe_all(&mut run) => true,
                    () = stage.is_interruptible(!is_interruptible) => false,
                }
            };
            let has_ended = match is_interruptible {
                false => Ok(step.await),
                true => until_interrupted(step).await,
            };
            match has_ended {
                Ok(false) => is_interruptible = !is_interruptible,
                Ok(true) => break,
                Err(Interrupted) => {
                    is_interrupted = true;
                    break;
                }
            }
        }
        self.display.clear();
        if is_interrupted {
            run.interrupt();
        }
        let result = run.finish().await;
        if is_interrupted && result.is_ok() {
            interrupt_next();
        }
        result
    }

    async fn observe_all<T>(&self, run: &mut Run<T>) {
        while let Some(event) = run.next().await {
            self.observe(event);
        }
    }
}

impl Observer for Progress {
    fn observe(&self, event: Event) {
        if let Some(line) = event.wait_line() {
            self.display.say_wait(&line);
        }
        match (&self.display, event) {
            (Display::Lines(lines), Event::Asked { invocation, .. }) => lines.asked(&invocation),
            (Display::Lines(lines), Event::Retried { invocation, why, .. }) => {
                lines.asked_again(&invocation, &why);
            }
            (Display::Lines(lines), Event::Answered { invocation, status, took, .. }) => {
                lines.ended(&invocation, status.as_str(), took);
            }
            (Display::Live(live), Event::Asked { invocation, member, step }) => {
                live.board().asked(&invocation, &member, &step);
                live.start();
            }
            (Display::Live(live), Event::Writing { invocation, bytes, .. }) => {
                live.board().writing(&invocation, bytes);
            }
            (Display::Live(live), Event::Retried { invocation, why, .. }) => {
                live.board().asked_again(&invocation, &why);
            }
            (Display::Live(live), Event::Answered { invocation, status, took, .. }) => {
                live.board().ended(&invocation, status.as_str(), took);
            }
            _ => {}
        }
    }
}

impl SweepProgress {
    pub(crate) fn new(shown: Shown) -> SweepProgress {
        SweepProgress { display: Display::new(shown, SweepLines::default(), council::SweepBoard::new) }
    }

    /// Removes the display from the screen.
    pub(crate) fn clear(&self) {
        self.display.clear();
    }
}

impl SweepObserver for SweepProgress {
    fn planned(&self, reviews: usize) {
        match &self.display {
            Display::Nothing | Display::Waits => {}
            Display::Lines(lines) => lines.planned(reviews),
            Display::Live(live) => {
                live.board().planned(reviews);
                live.start();
            }
        }
    }

    fn started(&self, path: &str) {
        if let Display::Live(live) = &self.display {
            live.board().started(path);
        }
    }

    fn waiting(&self, line: &str) {
        self.display.say_wait(line);
    }

    fn ended(&self, swept: &SweptFile) {
        match &self.display {
            Display::Nothing | Display::Waits => {}
            Display::Lines(lines) => lines.ended(swept),
            Display::Live(live) => live.board().ended(&swept.path),
        }
    }
}

/// Locks; state that a panicking thread left behind is good enough to display.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first call comes late, so that short work shows no progress at all.
const FIRST_DELAY: Duration = Duration::from_millis(150);
/// The pace of a spinner.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Dropping it ends the thread.
struct Ticker {
    stopped: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. If that fails, the command runs without progress.
    fn start(mut beat: impl FnMut() + Send + 'static) -> Ticker {
        let stopped = Arc::new((Mutex::new(false), Condvar::new()));
        let state = stopped.clone();
        let body = move || {
            let mut wait = FIRST_DELAY;
            loop {
                let (error, wake) = &*state;
                let waited = wake.wait_timeout_while(lock(error), wait, |error| !*error);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                beat();
                wait = TICK_INTERVAL;
            }
        };
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(body).ok();
        Ticker { stopped, thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *lock(&self.stopped.0) = true;
        self.stopped.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A function that panicked shows nothing any more.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// No terminal.
    Off,
    /// A terminal that cannot move its cursor: a line for each event.
    Lines,
    /// A terminal whose lines can be redrawn.
    Live(Glyphs),
}

/// The characters that a terminal can display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glyphs {
    Unicode,
    Ascii,
}

impl Screen {
    fn of_stderr(watched: bool) -> Screen {
        if !watched {
            return Screen::Off;
        }
        let variable = |name| environment::variable(name).filter(|value| !value.is_empty());
        let locale = variable("LC_ALL").or_else(|| variable("LC_CTYPE")).or_else(|| variable("LANG"));
        Screen::of_terminal(variable("TERM").as_deref(), locale.as_deref())
    }

    fn glyphs(self) -> Glyphs {
        match self {
            Screen::Live(glyphs) => glyphs,
            Screen::Off | Screen::Lines => Glyphs::Ascii,
        }
    }

    /// The screen of a terminal with this `TERM` and this locale.
    fn of_terminal(term: Option<&str>, locale: Option<&str>) -> Screen {
        let unicode = cfg!(windows)
            || locale
                .map(str::to_ascii_lowercase)
                .is_some_and(|name| name.contains("utf-8") || name.contains("utf8"));
        match term {
            Some("dumb") => Screen::Lines,
            Some("linux") => Screen::Live(Glyphs::Ascii),
            _ if unicode => Screen::Live(Glyphs::Unicode),
            _ => Screen::Live(Glyphs::Ascii),
        }
    }
}

impl Glyphs {
    /// The characters of standard output; Unicode if it is not a terminal, so that files look the same everywhere.
    pub(crate) fn of_stdout() -> Glyphs {
        match std::io::stdout().is_terminal() {
            true => Screen::glyphs(Screen::of_stderr(true)),
            false => Glyphs::Unicode,
        }
    }

    /// The frames of a spinner; the last one is for standstill.
    fn spinner(self) -> &'static str {
        match self {
            Glyphs::Unicode => "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ",
            Glyphs::Ascii => "|/-\\ ",
        }
    }

    /// The cells of a bar: done, current, to do.
    fn bar(self) -> &'static str {
        match self {
            Glyphs::Unicode => "█▌░",
            Glyphs::Ascii => "=> ",
        }
    }

    /// Marks a valid answer.
    fn success(self) -> &'static str {
        match self {
            Glyphs::Unicode => "✓",
            Glyphs::Ascii => "+",
        }
    }

    /// Marks a missing answer.
    fn failure(self) -> &'static str {
        match self {
            Glyphs::Unicode => "✗",
            Glyphs::Ascii => "x",
        }
    }
}

#[derive(Default)]
struct CouncilLines {
    /// The step whose heading was written last.
    step: Mutex<String>,
}

#[derive(Default)]
struct SweepLines {
    planned: AtomicUsize,
    done: AtomicUsize,
}

impl CouncilLines {
    fn asked(&self, id: &str) {
        let word = id.split('/').next().unwrap_or(id);
        let mut current = lock(&self.step);
        if *current != word {
            say(&step(word));
            *current = word.to_owned();
        }
    }

    fn asked_again(&self, id: &str, reason: &str) {
        say(&format!("  {} asked again: {}", member(id), one_line(reason)));
    }

    fn ended(&self, id: &str, word: &str, took: Duration) {
        say(&format!("  {} {} after {}", member(id), status(&one_line(word)), duration(took)));
    }
}

impl SweepLines {
    fn planned(&self, reviews: usize) {
        self.planned.store(reviews, Ordering::Relaxed);
    }

    fn ended(&self, swept: &SweptFile) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let outcome = match &swept.outcome {
            SweptOutcome::Judged { verdict, .. } => verdict.as_str().to_owned(),
            SweptOutcome::Failed { why: reason } => one_line(reason),
            _ => "passed over".to_owned(),
        };
        say(&format!("{done}/{} {}: {outcome}", self.planned.load(Ordering::Relaxed), one_line(&swept.path)));
    }
}

/// The member of an invocation: `skeptic` of `r1/skeptic`.
fn member(id: &str) -> String {
    let name = id.split_once('/').map_or(id, |(_, member)| member);
    one_line(if name == "adjudicate" { "adjudicator" } else { name })
}

fn say(text: &str) {
    anstream::eprintln!("{}", status_text(text));
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod screen_tests {
    use super::*;

    #[test]
    fn terminals_differ() {
        assert_eq!(Screen::of_stderr(false), Screen::Off);
        assert_eq!(Screen::of_terminal(Some("dumb"), Some("en_GB.UTF-8")), Screen::Lines);
        assert_eq!(
            Screen::of_terminal(Some("xterm-256color"), Some("en_GB.UTF-8")),
            Screen::Live(Glyphs::Unicode)
        );
        assert_eq!(Screen::of_terminal(Some("linux"), Some("en_GB.UTF-8")), Screen::Live(Glyphs::Ascii));
        #[cfg(not(windows))]
        assert_eq!(Screen::of_terminal(None, Some("C")), Screen::Live(Glyphs::Ascii));
    }
}
