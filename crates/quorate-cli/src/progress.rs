//! Progress on standard error while members work. On a terminal a display is redrawn in place, and cleared at the end, so
//! that the verdict stands alone. Without a terminal, and on one that cannot move its cursor, each state of more than two
//! seconds gets one line.

mod council;
pub(crate) mod swarm;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use council::{CouncilBoard, Look, SweepBoard};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quorate::sweep::SweepEvent;
use quorate::{Error, Event, Observer, Run};
use tokio::time::Instant;

use crate::environment;
use crate::interrupt::{Interrupted, interrupt_next, until_interrupted};
use crate::render::layout::one_line;
use crate::render::wording::step as named;
pub(crate) use crate::terminal::Shown;
use crate::terminal::{status_text, width};

/// A state that lasts this long gets a line where nothing is redrawn.
const LASTING: Duration = Duration::from_secs(2);

/// The progress of one review or assembly run: a line for each member.
pub(crate) struct Progress {
    display: Display<CouncilBoard>,
}

/// The progress of a sweep: one bar for all drafts.
pub(crate) struct SweepProgress {
    display: Display<SweepBoard>,
}

/// The content of a display.
trait Board: Send + 'static {
    /// The lines of a terminal of this width.
    fn screen(&mut self, width: usize, now: Instant) -> Vec<String>;

    /// Lines on the states that last, each once.
    fn lasting(&mut self, now: Instant) -> Vec<String>;
}

/// A board, and where it is shown. A thread shows its changes from [`Display::start`] on.
struct Display<B: Board> {
    shown: Shown,
    view: Arc<Mutex<View<B>>>,
    ticker: Mutex<Option<Ticker>>,
}

struct View<B> {
    board: B,
    /// Without one, lines are printed.
    canvas: Option<Canvas>,
}

impl<B: Board> View<B> {
    fn tick(&mut self) {
        let now = Instant::now();
        match &mut self.canvas {
            Some(canvas) => canvas.draw(&self.board.screen(width(), now).join("\n")),
            None => self.board.lasting(now).iter().for_each(|line| say(line)),
        }
    }

    /// Writes a line that stays on the screen.
    fn print(&self, line: &str) {
        match &self.canvas {
            Some(canvas) => canvas.print(&one_line(line)),
            None => say(&one_line(line)),
        }
    }
}

impl<B: Board> Display<B> {
    fn new(shown: Shown, board: impl FnOnce(Look) -> B) -> Self {
        let has_colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
        let is_drawn = shown == Shown::All && is_redrawn();
        let canvas = is_drawn.then(|| Canvas::new(ProgressDrawTarget::stderr()));
        let board = board(Look { has_colours, frame: 0 });
        let view = Arc::new(Mutex::new(View { board, canvas }));
        Display { shown, view, ticker: Mutex::new(None) }
    }

    fn is_silent(&self) -> bool {
        self.shown == Shown::Nothing
    }

    fn view(&self) -> MutexGuard<'_, View<B>> {
        lock(&self.view)
    }

    fn start(&self) {
        let interval = if self.view().canvas.is_some() { TICK_INTERVAL } else { LINE_INTERVAL };
        lock(&self.ticker).get_or_insert_with(|| {
            let view = self.view.clone();
            Ticker::start(interval, move || lock(&view).tick())
        });
    }

    /// Removes the display from the screen.
    fn clear(&self) {
        // The ticker ends first, so that nothing is drawn later.
        let ticker = lock(&self.ticker).take();
        drop(ticker);
        if let Some(canvas) = &self.view().canvas {
            canvas.clear();
        }
    }

    /// Removes the display from the screen until it is started again.
    fn pause(&self) {
        self.clear();
        if let Some(canvas) = &mut self.view().canvas {
            *canvas = Canvas::new(ProgressDrawTarget::stderr());
        }
    }
}

impl<B: Board> Drop for Display<B> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Lines at the end of a terminal that are redrawn in place.
struct Canvas {
    lines: ProgressBar,
    /// The target of the drawing, until the first drawing.
    target: Option<ProgressDrawTarget>,
}

impl Canvas {
    fn new(target: ProgressDrawTarget) -> Canvas {
        let lines = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg}");
        let lines = lines.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Canvas { lines, target: Some(target) }
    }

    fn draw(&mut self, text: &str) {
        if let Some(target) = self.target.take() {
            self.lines.set_draw_target(target);
        }
        self.lines.set_message(text.to_owned());
    }

    fn print(&self, line: &str) {
        // Before the first drawing the lines have no target, and would lose it.
        match self.target {
            Some(_) => say(line),
            None => self.lines.println(status_text(line)),
        }
    }

    fn clear(&self) {
        self.lines.finish_and_clear();
        self.lines.set_draw_target(ProgressDrawTarget::hidden());
    }
}

impl Progress {
    pub(crate) fn new(shown: Shown) -> Progress {
        Progress { display: Display::new(shown, CouncilBoard::new) }
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
        let display = &self.display;
        if display.is_silent() {
            return;
        }
        if matches!(event, Event::Asked { .. }) {
            display.start();
        }
        let mut view = display.view();
        view.board.observe(&event);
        let line = match &event {
            // A display shows it with the member.
            Event::Waiting { .. } if view.canvas.is_some() => None,
            Event::Waiting { step, .. } => event.wait_line().map(|line| format!("{}: {line}", named(step))),
            _ => event.wait_line(),
        };
        if let Some(line) = line {
            view.print(&line);
        }
    }
}

impl SweepProgress {
    pub(crate) fn new(shown: Shown) -> SweepProgress {
        SweepProgress { display: Display::new(shown, SweepBoard::new) }
    }

    /// Removes the display from the screen.
    pub(crate) fn clear(&self) {
        self.display.clear();
    }

    pub(crate) fn show(&self, event: &SweepEvent<'_>) {
        match event {
            SweepEvent::Planned(reviews) => {
                self.display.view().board.planned(*reviews);
                if !self.display.is_silent() {
                    self.display.start();
                }
            }
            SweepEvent::Started(path) => self.display.view().board.started(path),
            SweepEvent::Waiting(line) if !self.display.is_silent() => self.display.view().print(line),
            SweepEvent::Waiting(_) => {}
            SweepEvent::Ended(swept) => self.display.view().board.ended(&swept.path),
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
/// How often states that last are looked for where nothing is redrawn.
const LINE_INTERVAL: Duration = Duration::from_millis(500);

/// Dropping it ends the thread.
struct Ticker {
    stopped: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. If that fails, the command runs without progress.
    fn start(interval: Duration, mut beat: impl FnMut() + Send + 'static) -> Ticker {
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
                wait = interval;
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

/// Whether the lines of the process's terminal can be redrawn.
fn is_redrawn() -> bool {
    environment::variable("TERM").as_deref() != Some("dumb")
}

fn say(text: &str) {
    anstream::eprintln!("{}", status_text(text));
}

#[cfg(test)]
mod tests;
