//! The events of runs, one line each.

use quorate_diagnostics::render::TextOptions;

use super::paint::{Paint, finish, one_line};
use super::wording::{clock_time, list, step};
use quorate::service::watch::{WatchEvent, What};

/// The most characters of a run's id beside its subject.
const SHORT: usize = 7;

/// An event; with `named` the line starts with the run and its subject.
pub(crate) fn event(event: &WatchEvent, named: bool, options: TextOptions) -> String {
    let what = match &event.what {
        What::Opened => format!("opened: {}", one_line(&event.subject)),
        What::Asked(invocations) => asked(invocations),
        What::Answered { invocation, missing } => {
            let (member, missing) = (member(invocation), missing.as_deref());
            match missing {
                None => format!("{member} has answered"),
                Some(why) => {
                    format!("{member} {}", Paint::Absent.on(&format!("gave no answer: {}", one_line(why))))
                }
            }
        }
        What::Decided(word) => Paint::of_word(word).on(&one_line(word)),
        What::Overridden(word) => format!("a person decided {}", Paint::of_word(word).on(&one_line(word))),
        What::Ended => Paint::Faint.on("ended"),
    };
    let time = Paint::Faint.on(&clock_time(event.at_ms));
    let name = match named && event.what != What::Opened {
        true => format!("{}  {}  ", event.run.get(..SHORT).unwrap_or(&event.run), one_line(&event.subject)),
        false if named => format!("{}  ", event.run.get(..SHORT).unwrap_or(&event.run)),
        false => String::new(),
    };
    finish(&format!("{time}  {name}{what}\n"), options)
}

/// The members asked in each step.
fn asked(invocations: &[String]) -> String {
    let word = invocations.first().map_or("", |id| id.split('/').next().unwrap_or(id));
    let members: Vec<String> = invocations.iter().map(|id| member(id)).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    format!("{}: {} asked", step(word), list(&members))
}

fn member(invocation: &str) -> String {
    let name = invocation.split_once('/').map_or(invocation, |(_, member)| member);
    one_line(if name == "adjudicate" { "adjudicator" } else { name })
}
