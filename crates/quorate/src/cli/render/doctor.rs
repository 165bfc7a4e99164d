//! What the doctor saw, a line for each thing.

use quorate_diagnostics::render::Look;

use super::layout::table;
use super::paint::{Paint, finish, line};
use crate::service::doctor::{Check, State};

/// For people.
pub fn human(checks: &[Check], look: Look) -> String {
    let rows =
        checks.iter().map(|check| vec![word(check.state), line(&check.name), line(&check.detail)]).collect();
    let bad = checks.iter().filter(|check| check.state == State::Bad).count();
    let sum = match bad {
        0 => "Everything works.".to_owned(),
        1 => "1 thing does not work.".to_owned(),
        more => format!("{more} things do not work."),
    };
    finish(&format!("{}\n{sum}", table(&["", "what", "how it is"], rows, 0, look.width)), look)
}

fn word(state: State) -> String {
    match state {
        State::Good => Paint::Good.on("ok"),
        State::Noted => Paint::Fair.on("note"),
        State::Bad => Paint::Bad.on("bad"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_check() {
        let check = |name: &str, state, detail: &str| Check {
            name: name.to_owned(),
            state,
            detail: detail.to_owned(),
        };
        let checks = [
            check("ledger", State::Good, ".quorate/ledger.db can be written"),
            check("log", State::Noted, "council_log.jsonl: 2 lines cannot be read"),
            check("executor claude", State::Bad, "no answer within 60 s"),
        ];
        insta::assert_snapshot!(human(&checks, Look::default()), @"
              what             how it is
        ────────────────────────────────────────────────────────────────
        ok    ledger           .quorate/ledger.db can be written
        note  log              council_log.jsonl: 2 lines cannot be read
        bad   executor claude  no answer within 60 s

        1 thing does not work.
        ");
    }
}
