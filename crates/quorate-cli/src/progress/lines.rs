//! Progress on a terminal that cannot move its cursor: a line for each event.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::lock;
use crate::render::paint::one_line;
use crate::render::wording::{duration, status, step};
use crate::workflow::status_text;
use quorate::service::sweep::{Outcome, SweptFile};

pub(super) struct Council {
    /// The step whose heading was written last.
    step: Mutex<String>,
}

#[derive(Default)]
pub(super) struct Sweep {
    planned: AtomicUsize,
    done: AtomicUsize,
}

impl Council {
    pub(super) fn new() -> Council {
        Council { step: Mutex::new(String::new()) }
    }

    pub(super) fn asked(&self, id: &str) {
        let word = id.split('/').next().unwrap_or(id);
        let mut current = lock(&self.step);
        if *current != word {
            say(&step(word));
            *current = word.to_owned();
        }
    }

    pub(super) fn asked_again(&self, id: &str, reason: &str) {
        say(&format!("  {} asked again: {}", member(id), one_line(reason)));
    }

    pub(super) fn ended(&self, id: &str, word: &str, took: Duration) {
        say(&format!("  {} {} after {}", member(id), status(&one_line(word)), duration(took)));
    }
}

impl Sweep {
    pub(super) fn planned(&self, reviews: usize) {
        self.planned.store(reviews, Ordering::Relaxed);
    }

    pub(super) fn ended(&self, swept: &SweptFile) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let outcome = match &swept.outcome {
            Outcome::Judged { verdict, .. } => verdict.as_str().to_owned(),
            Outcome::Failed { why: reason } => one_line(reason),
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
