//! The doctor's checks, one line each.

use quorate_diagnostics::render::TextOptions;

use super::layout::table;
use super::paint::{Paint, finish, one_line};
use quorate::service::doctor::{Check, Status};

pub(crate) fn human(checks: &[Check], options: TextOptions) -> String {
    let rows = checks
        .iter()
        .map(|check| vec![word(check.status), one_line(&check.name), one_line(&check.detail)])
        .collect();
    let bad = checks.iter().filter(|check| check.status == Status::Failed).count();
    let sum = match bad {
        0 => "Everything works.".to_owned(),
        1 => "1 thing does not work.".to_owned(),
        more => format!("{more} things do not work."),
    };
    finish(&format!("{}\n{sum}", table(&["", "what", "how it is"], rows, 0, options.width)), options)
}

fn word(state: Status) -> String {
    match state {
        Status::Passed => Paint::Good.on("ok"),
        Status::Warning => Paint::Fair.on("note"),
        Status::Failed => Paint::Bad.on("bad"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_check() {
        let check = |name: &str, state, detail: &str| Check {
            name: name.to_owned(),
            status: state,
            detail: detail.to_owned(),
        };
        let checks = [
            check("ledger", Status::Passed, ".quorate/ledger.db can be written"),
            check("log", Status::Warning, "council_log.jsonl: 2 lines cannot be read"),
            check("executor claude", Status::Failed, "no answer within 60 s"),
        ];
        insta::assert_snapshot!(human(&checks, TextOptions::default()), @"
              what             how it is
        ────────────────────────────────────────────────────────────────
        ok    ledger           .quorate/ledger.db can be written
        note  log              council_log.jsonl: 2 lines cannot be read
        bad   executor claude  no answer within 60 s

        1 thing does not work.
        ");
    }
}
