//! The lines of a run, with one for each member, and those of a sweep.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use quorate::{Caps, Event, Money, Name, Status};
use tokio::time::Instant;

use super::{Board, LASTING};
use crate::render::layout::{one_line, truncate};
use crate::render::wording::{amount, dollars, duration, list_limited, status, step as named};

/// The longest reason in a line, in characters.
const MAX_REASON_CHARS: usize = 80;
/// The most member lines. Members that have ended give way to pending ones, and are counted in the head line.
const MAX_MEMBER_LINES: usize = 12;
/// The most names in a line.
pub(super) const MAX_NAMES: usize = 4;
/// The cells of a bar.
const BAR_CELLS: usize = 24;

/// A review or an assembly run. Each member keeps its line until the end.
pub(super) struct CouncilBoard {
    look: Look,
    began: Instant,
    /// The current step, in words.
    step: String,
    spent: Option<(u32, Money, Caps)>,
    members: Vec<Member>,
}

struct Member {
    name: String,
    /// The last invocation, and what it is for, in words.
    invocation: Name,
    step: String,
    asked: Instant,
    timeout: Duration,
    state: State,
    /// Why it was asked again.
    reason: Option<String>,
    /// When it was asked last, until a line says that it has not answered.
    unreported: Option<Instant>,
}

enum State {
    /// Waits until its executor has a place; its limit has not begun.
    Queued,
    /// Asked, with the bytes of the answer so far if the executor streams.
    Asked(Option<usize>),
    /// Waits until it is asked again; the line says why and how long.
    Pausing(String),
    Answered(Duration, Option<&'static str>),
    Absent(String, Duration),
}

impl State {
    fn is_over(&self) -> bool {
        matches!(self, State::Answered(..) | State::Absent(..))
    }
}

impl Member {
    fn text(&self, now: Instant) -> String {
        let reason = self.reason.as_deref().map_or_else(String::new, |reason| format!("  {reason}"));
        let elapsed = clock(now.saturating_duration_since(self.asked));
        let time = format!("{elapsed} of {}", clock(self.timeout));
        match &self.state {
            State::Queued => format!("queued for its executor  {elapsed}"),
            State::Asked(None) if self.reason.is_some() => format!("asked again  {time}{reason}"),
            State::Asked(None) => format!("waiting  {time}"),
            State::Asked(Some(0)) => format!("thinking  {time}"),
            // A token has about four bytes.
            State::Asked(Some(bytes)) => format!("writing  {time}  {} tokens so far", bytes / 4 + 1),
            State::Pausing(line) => line.clone(),
            State::Answered(took, position) => {
                format!("answered  {}  {}", duration(*took), position.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            }
            State::Absent(status, took) if took.is_zero() => format!("{status}{reason}"),
            State::Absent(status, took) => format!("{status}  {}{reason}", duration(*took)),
        }
    }
}

impl CouncilBoard {
    pub(super) fn new(look: Look) -> CouncilBoard {
        CouncilBoard { look, began: Instant::now(), step: String::new(), spent: None, members: Vec::new() }
    }

    /// Takes note of an event.
    pub(super) fn observe(&mut self, event: &Event) {
        let invocation = match event {
            Event::Asked { invocation, member, step, timeout } => {
                return self.asked(invocation, member, step, *timeout);
            }
            Event::Spent { calls, money, caps } => {
                self.spent = Some((*calls, *money, *caps));
                return;
            }
            Event::Writing { invocation, .. }
            | Event::Retried { invocation, .. }
            | Event::Waiting { invocation, .. }
            | Event::Noted { invocation, .. }
            | Event::Queued { invocation }
            | Event::Admitted { invocation }
            | Event::Answered { invocation, .. } => invocation,
            _ => return,
        };
        let Some(member) = self.members.iter_mut().find(|member| member.invocation == *invocation) else {
            return;
        };
        match event {
            Event::Writing { bytes, .. } => member.state = State::Asked(Some(*bytes)),
            Event::Retried { why, .. } => {
                member.state = State::Asked(None);
                member.reason = Some(truncate(&one_line(why), MAX_REASON_CHARS));
                member.unreported = Some(Instant::now());
            }
            Event::Waiting { .. } => {
                let line = event.wait_line().unwrap_or_default();
                let line = line.split_once(": ").map_or(&*line, |(_, why)| why);
                member.state = State::Pausing(one_line(line));
                member.unreported = None;
            }
            Event::Queued { .. } => member.state = State::Queued,
            Event::Admitted { .. } => {
                member.state = State::Asked(None);
                member.asked = Instant::now();
                member.unreported = Some(member.asked);
            }
            // A stand-in has a limit of its own.
            Event::Noted { .. } => member.asked = Instant::now(),
            Event::Answered { status: Status::Answered, took, position, .. } => {
                member.state = State::Answered(*took, *position);
            }
            Event::Answered { status: word, took, .. } => {
                member.state = State::Absent(status(&one_line(word.as_str())), *took);
            }
            _ => {}
        }
    }

    fn asked(&mut self, invocation: &Name, member: &str, step: &str, timeout: Duration) {
        let now = Instant::now();
        self.step = named(&one_line(step));
        let asked = Member {
            name: one_line(member),
            invocation: invocation.clone(),
            step: self.step.clone(),
            asked: now,
            timeout,
            state: State::Asked(None),
            reason: None,
            unreported: Some(now),
        };
        match self.members.iter_mut().find(|known| known.name == asked.name) {
            Some(known) => *known = asked,
            None => self.members.push(asked),
        }
    }

    /// The step, the elapsed time, calls and money.
    fn head(&self, now: Instant) -> String {
        let mut head = self.step.clone();
        if self.members.len() > MAX_MEMBER_LINES {
            let current = || self.members.iter().filter(|member| member.step == self.step);
            let answered = current().filter(|member| matches!(member.state, State::Answered(..))).count();
            let absent = current().filter(|member| matches!(member.state, State::Absent(..))).count();
            head.push_str(&format!(": {answered} of {} answered", current().count()));
            if absent > 0 {
                head.push_str(&format!(", {absent} without an answer"));
            }
        }
        head.push_str(&format!("   {}", clock(now.saturating_duration_since(self.began))));
        if let Some((calls, money, caps)) = self.spent {
            head.push_str(&match caps.calls {
                Some(cap) => format!("   {calls} of at most {}", amount(cap.into(), "call")),
                None => format!("   {}", amount(calls.into(), "call")),
            });
            head.push_str(&match caps.money {
                Some(cap) => format!("   ${} of ${}", dollars(money), dollars(cap)),
                None if money > Money::ZERO => format!("   ${}", dollars(money)),
                None => String::new(),
            });
        }
        head
    }

    fn line(&self, member: &Member, now: Instant) -> String {
        let width = |text: fn(&Member) -> &str| {
            self.members.iter().map(|member| text(member).chars().count()).max().unwrap_or(0)
        };
        let (names, steps) = (width(|member| &member.name), width(|member| &member.step));
        format!("{:names$}  {:steps$}  {}", member.name, member.step, member.text(now))
    }

    /// The members with a line, in the order in which they were asked: pending ones first, then the last that ended.
    fn shown(&self) -> Vec<&Member> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|at| {
            let is_over = self.members[*at].state.is_over();
            (is_over, is_over.then_some(Reverse(*at)))
        });
        order.truncate(MAX_MEMBER_LINES);
        order.sort_unstable();
        order.into_iter().map(|at| &self.members[at]).collect()
    }
}

impl Board for CouncilBoard {
    fn screen(&mut self, width: usize, now: Instant) -> Vec<String> {
        self.look.frame += 1;
        let look = &self.look;
        let head = look.paint(Style::new().bold(), &truncate(&self.head(now), width.saturating_sub(1)));
        let line = |member: &Member| {
            let mark = match member.state {
                State::Answered(..) => look.paint(AnsiColor::Green.on_default(), "✓"),
                State::Absent(..) => look.paint(AnsiColor::Red.on_default(), "✗"),
                _ => look.spinner(),
            };
            format!("{mark} {}", truncate(&self.line(member, now), width.saturating_sub(3)))
        };
        std::iter::once(head).chain(self.shown().into_iter().map(line)).collect()
    }

    fn lasting(&mut self, now: Instant) -> Vec<String> {
        let mut late: BTreeMap<_, (Duration, Vec<&str>)> = BTreeMap::new();
        for member in self.members.iter_mut().filter(|member| !member.state.is_over()) {
            let is_late = |since: &mut Instant| now.saturating_duration_since(*since) >= LASTING;
            let Some(since) = member.unreported.take_if(is_late) else { continue };
            let limit = (!matches!(member.state, State::Queued)).then_some(member.timeout);
            let (longest, names) = late.entry((member.step.as_str(), limit)).or_default();
            *longest = now.saturating_duration_since(since).max(*longest);
            names.push(&member.name);
        }
        let mut lines = Vec::new();
        for ((step, limit), (waited, names)) in late {
            let (names, waited) = (list_limited(&names, MAX_NAMES), waited.as_secs());
            lines.push(match limit.map(clock) {
                Some(limit) => format!("{step}: still waiting for {names} after {waited} s (limit {limit})"),
                None => format!("{step}: queued for {waited} s until their executor has a place: {names}"),
            });
        }
        lines
    }
}

/// A sweep: one line with a bar, the elapsed time and the drafts under review.
pub(super) struct SweepBoard {
    look: Look,
    began: Instant,
    planned: usize,
    done: usize,
    /// The drafts under review, each with its beginning until a line names it.
    active: Vec<(String, Option<Instant>)>,
}

impl SweepBoard {
    pub(super) fn new(look: Look) -> SweepBoard {
        SweepBoard { look, began: Instant::now(), planned: 0, done: 0, active: Vec::new() }
    }

    pub(super) fn planned(&mut self, reviews: usize) {
        self.planned = reviews;
    }

    pub(super) fn started(&mut self, path: &str) {
        self.active.push((one_line(path), Some(Instant::now())));
    }

    pub(super) fn ended(&mut self, path: &str) {
        let path = one_line(path);
        if let Some(at) = self.active.iter().position(|(active, _)| *active == path) {
            self.active.remove(at);
        }
        self.done += 1;
    }
}

impl Board for SweepBoard {
    fn screen(&mut self, width: usize, now: Instant) -> Vec<String> {
        self.look.frame += 1;
        let filled = (BAR_CELLS * self.done).checked_div(self.planned).unwrap_or(0).min(BAR_CELLS);
        let bar = "█".repeat(filled) + &"░".repeat(BAR_CELLS - filled);
        let paths: Vec<&str> = self.active.iter().map(|(path, _)| &**path).collect();
        let time = clock(now.saturating_duration_since(self.began));
        let text = format!("{bar} {}/{} {time} {}", self.done, self.planned, paths.join(", "));
        vec![format!("{} {}", self.look.spinner(), truncate(&text, width.saturating_sub(3)))]
    }

    fn lasting(&mut self, now: Instant) -> Vec<String> {
        let mut late = Vec::new();
        for (path, began) in &mut self.active {
            if began.take_if(|began| now.saturating_duration_since(*began) >= LASTING).is_some() {
                late.push(&**path);
            }
        }
        let line = || {
            let names = list_limited(&late, MAX_NAMES);
            format!("reviewing {names} ({} of {} done)", self.done, self.planned)
        };
        (!late.is_empty()).then(line).into_iter().collect()
    }
}

/// The frames of a spinner.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The colours of a terminal, and the number of its present picture.
pub(super) struct Look {
    pub(super) has_colours: bool,
    pub(super) frame: usize,
}

impl Look {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.has_colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    pub(super) fn spinner(&self) -> String {
        self.paint(AnsiColor::Cyan.on_default(), SPINNER[self.frame % SPINNER.len()])
    }
}

/// A time in minutes and seconds: `0:08`, `12:00`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
