//! Wording of codes and values: statuses, durations, dates, amounts, lists of names.

use std::time::Duration;

use quorate_kernel::ports::executor::Usage;

use super::layout::one_line;
use crate::service::member_usage::Failure;

pub use crate::service::time_text::duration;
pub use crate::service::time_text::{day, digit_groups, dollars, instant, minute};

/// Stands for a missing value.
pub const DASH: &str = "–";

/// The status of a missing answer in words.
pub fn status(word: &str) -> String {
    match word {
        "schema_failed" => "answer did not fit".to_owned(),
        "late" => "too late".to_owned(),
        code => code.replace('_', " "),
    }
}

/// A step of a protocol in words.
pub fn step(word: &str) -> String {
    match word {
        "r1" => "round 1".to_owned(),
        "r2" => "round 2".to_owned(),
        "adjudicate" => "adjudication".to_owned(),
        "ask" => "asking".to_owned(),
        "node" => "reports".to_owned(),
        code => match code.strip_prefix("round") {
            Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!("round {number}"),
            _ => code.to_owned(),
        },
    }
}

/// Why a member gave no answer, in a sentence: `skeptic (round 1): timed out: no answer within 5 s`.
pub fn failure(member: &str, round: Option<u8>, failure: &Failure) -> String {
    let round = round.map_or_else(String::new, |round| format!(" (round {round})"));
    format!("{}{round}: {}: {}", one_line(member), status(&failure.kind), one_line(&failure.message))
}

/// The note on an undecided run. Only the ledger in which it was recorded can resume it,
/// and only a worker one of the queue.
pub fn undecided(run: &str, imported: bool, queued: bool) -> String {
    match imported {
        false if queued => {
            "Nothing is decided yet. It is a task of the queue, and a worker continues it: `quorate queue list`.".to_owned()
        }
        false => format!(
            "Nothing is decided yet. `quorate resume {}` continues from the recorded answers.",
            one_line(run)
        ),
        true => "Nothing is decided yet. Only the ledger that it was imported from can resume it.".to_owned(),
    }
}

/// The note on how to continue a run that lacks answers, without its beginning: the command, and what it does.
pub fn continuation(notes: &[String]) -> Option<&str> {
    notes.iter().find_map(|note| note.strip_prefix(KEPT))
}

/// The beginning of that note.
pub const KEPT: &str = "Everything answered so far is kept: ";

/// How long the last run took: `The last run took 3 min 20 s.`
pub fn last_run(ms: u64) -> String {
    format!("The last run took {}.", duration(Duration::from_millis(ms)))
}

/// An amount with its noun, with `s` unless it is one.
pub fn amount(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", digit_groups(number), if number == 1 { "" } else { "s" })
}

/// The cost of calls: `, 12,040 tokens read, 2,310 written, US$ 0.42`; empty if unknown.
pub fn cost(usage: &Usage) -> String {
    let mut cost = String::new();
    if usage.tokens_in.is_some() || usage.tokens_out.is_some() {
        let (read, written) = (usage.tokens_in.unwrap_or(0), usage.tokens_out.unwrap_or(0));
        cost = format!(", {} read, {} written", amount(read, "token"), digit_groups(written));
    }
    if let Some(money) = usage.money {
        cost.push_str(&format!(", US$ {}", dollars(money)));
    }
    cost
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// As [`list`], of any names.
pub fn joined<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<S> = names.into_iter().collect();
    list(&names.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// The names of each key, in the order of the first ones.
pub fn grouped<K: PartialEq, N>(all: impl IntoIterator<Item = (K, N)>) -> Vec<(K, Vec<N>)> {
    let mut groups: Vec<(K, Vec<N>)> = Vec::new();
    for (key, name) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, names)) => names.push(name),
            None => groups.push((key, vec![name])),
        }
    }
    groups
}

/// As [`list`], with at most `most` names and the number of further ones.
pub fn list_limited(names: &[&str], most: usize) -> String {
    match names.len().checked_sub(most) {
        None | Some(0) => list(names),
        Some(more) => format!("{} and {} more", names[..most].join(", "), digit_groups(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn durations_say_what_matters() {
        let texts = [0, 21, 999, 1000, 3249, 59_999, 60_000, 245_000, 3_600_000]
            .map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(
            texts,
            ["0 ms", "21 ms", "999 ms", "1.0 s", "3.2 s", "59.9 s", "1 min 00 s", "4 min 05 s", "1 h 00 min"]
        );
    }

    #[test]
    fn steps_are_said_in_words() {
        assert_eq!(
            ["r2", "round12", "node", "ask", "roundabout"].map(step),
            ["round 2", "round 12", "reports", "asking", "roundabout"]
        );
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(minute(1_772_600_700_000), "2026-03-04 05:05");
        assert_eq!(instant(1_772_600_700_007), "2026-03-04T05:05:00.007Z");
        assert_eq!(instant(i64::MAX), "9223372036854775807 ms");
        assert_eq!(day(20_516), "2026-03-04");
    }

    #[test]
    fn amounts_and_lists() {
        assert_eq!(
            [amount(1, "call"), amount(0, "call"), amount(1_234_567, "token")],
            ["1 call", "0 calls", "1,234,567 tokens"]
        );
        assert_eq!([list(&[]), list(&["a"]), list(&["a", "b", "c"])], ["", "a", "a, b and c"]);
        assert_eq!(
            [list_limited(&["a", "b"], 2), list_limited(&["a", "b", "c"], 1)],
            ["a and b", "a and 2 more"]
        );
    }
}
