//! The state of a workspace: provisioned profiles, and the doctor's checks.

use std::fmt::Write as _;

use quorate::service::doctor::{CheckStatus, DoctorCheck};
use quorate::service::provision::change::Drift;
use quorate::service::provision::change::FileAction;
use quorate::service::provision::setup::State;
use quorate::service::provision::status::{FileStatus, ProfileStatus};
use quorate::service::provision::{FileReport, ProvisionOutcome, WriteMode};
use quorate_diagnostics::Report;
use quorate_diagnostics::render::TextOptions;
use quorate_diagnostics::render::machine::diagnostics_json;
use serde_json::{Value, json};

use super::layout::{Paint, finish, one_line, sanitize, table};
use crate::arguments::HumanOrJson;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Install,
    Uninstall,
}

/// The result of an install or an uninstall.
pub(crate) fn outcome(
    outcome: &ProvisionOutcome,
    verb: Verb,
    format: HumanOrJson,
    options: TextOptions,
) -> String {
    match format {
        HumanOrJson::Human => finish(&outcome_human(outcome, verb), options),
        HumanOrJson::Json => outcome_json(outcome),
    }
}

fn outcome_human(outcome: &ProvisionOutcome, verb: Verb) -> String {
    let mut out = String::new();
    let refused = outcome.report.has_refusals();
    if outcome.resumed && !refused && outcome.run == WriteMode::Apply {
        out.push_str("Completed an interrupted run.\n");
    }
    let width = outcome.files.iter().map(|file| file.action.word().len()).max().unwrap_or(0);
    let is_shown = |file: &&FileReport| file.action != FileAction::Keep || !file.notes.is_empty();
    for file in outcome.files.iter().filter(is_shown) {
        let word = paint(file.action).on(&format!("{:width$}", file.action.word()));
        let strategy = Paint::Faint.on(&format!("({})", file.strategy));
        let _ = writeln!(out, "{word}  {}  {strategy}", one_line(&file.dest));
        for note in &file.notes {
            let _ = writeln!(out, "{:width$}  {}", "", one_line(note));
        }
        out.push_str(&diff(&file.diff));
    }
    let profile = format!("{} {}", one_line(&outcome.slug), one_line(&outcome.version));
    let place = |word: &str| match outcome.target.as_str() {
        "." => String::new(),
        target => format!(" {word} {}", one_line(target)),
    };
    let end = match (refused, outcome.run, verb) {
        (true, ..) => "Nothing was written.".to_owned(),
        _ if outcome.idle => format!("{profile}: nothing to do."),
        (_, WriteMode::DryRun, _) => "This is a dry run: nothing was written.".to_owned(),
        (_, _, Verb::Install) => match &outcome.previous {
            Some(previous) => format!("{profile} is installed{}, after {}.", place("in"), one_line(previous)),
            None => format!("{profile} is installed{}.", place("in")),
        },
        (_, _, Verb::Uninstall) => format!("{profile} is uninstalled{}.", place("from")),
    };
    out.push_str(&end);
    out
}

/// A diff below its file's line.
fn diff(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let paint = match line.as_bytes().first() {
            _ if line.starts_with("--- ") || line.starts_with("+++ ") => Some(Paint::Strong),
            Some(b'+') => Some(Paint::Good),
            Some(b'-') => Some(Paint::Bad),
            Some(b'@') => Some(Paint::Faint),
            _ => None,
        };
        let line = sanitize(line);
        let _ = writeln!(out, "  {}", paint.map_or_else(|| line.clone(), |paint| paint.on(&line)));
    }
    out
}

fn paint(action: FileAction) -> Paint {
    match action {
        FileAction::Create | FileAction::PutBack | FileAction::Restore => Paint::Good,
        FileAction::Change | FileAction::Permit => Paint::Fair,
        FileAction::Delete | FileAction::Edited => Paint::Bad,
        FileAction::Keep | FileAction::Leave => Paint::Faint,
    }
}

/// `{slug, version, previous, target, dry_run, written, resumed, files: [{dest, strategy, action, notes, diff}],
/// diagnostics}`; `diff` may be null.
fn outcome_json(outcome: &ProvisionOutcome) -> String {
    let file_json = |file: &FileReport| {
        json!({
            "dest": file.dest,
            "strategy": file.strategy,
            "action": file.action.word(),
            "notes": file.notes,
            "diff": non_empty(&file.diff),
        })
    };
    let value = json!({
        "slug": outcome.slug,
        "version": outcome.version,
        "previous": outcome.previous,
        "target": outcome.target,
        "dry_run": outcome.run == WriteMode::DryRun,
        "written": outcome.run == WriteMode::Apply && !outcome.report.has_refusals() && !outcome.idle,
        "resumed": outcome.resumed,
        "files": outcome.files.iter().map(file_json).collect::<Vec<_>>(),
        "diagnostics": diagnostics_json(&outcome.report),
    });
    format!("{value:#}\n")
}

/// The status of installed profiles, file by file.
pub(crate) fn status(
    statuses: &[ProfileStatus],
    report: &Report,
    format: HumanOrJson,
    options: TextOptions,
) -> String {
    match format {
        HumanOrJson::Json => {
            let value = json!({
                "profiles": statuses.iter().map(profile_json).collect::<Vec<_>>(),
                "diagnostics": diagnostics_json(report),
            });
            format!("{value:#}\n")
        }
        HumanOrJson::Human if statuses.is_empty() => "no profiles\n".to_owned(),
        HumanOrJson::Human => {
            let mut out = String::new();
            for status in statuses {
                out.push_str(&head(status));
                for file in &status.files {
                    let (word, paint) = drift_word(file);
                    let word = paint.on(&format!("{word:<8}"));
                    let strategy = Paint::Faint.on(&format!("({})", file.strategy));
                    let shared = match file.shared.as_slice() {
                        [] => String::new(),
                        others => format!(", shared with {}", one_line(&others.join(" and "))),
                    };
                    let _ = writeln!(out, "  {word}  {}  {strategy}{shared}", one_line(&file.dest));
                    out.push_str(&diff(&file.diff));
                }
            }
            finish(&out, options)
        }
    }
}

pub(crate) fn list(statuses: &[ProfileStatus], format: HumanOrJson, options: TextOptions) -> String {
    match format {
        HumanOrJson::Json => {
            let value = json!({"profiles": statuses.iter().map(profile_json).collect::<Vec<_>>()});
            format!("{value:#}\n")
        }
        HumanOrJson::Human if statuses.is_empty() => "no profiles\n".to_owned(),
        HumanOrJson::Human => finish(&statuses.iter().map(head).collect::<String>(), options),
    }
}

fn head(status: &ProfileStatus) -> String {
    let count = status.files.len();
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let state = match (status.state, status.is_intact()) {
        (State::Installing, _) => Paint::Bad.on("an install was interrupted"),
        (State::Removing, _) => Paint::Bad.on("an uninstall was interrupted"),
        (State::Installed, true) => Paint::Good.on("in place"),
        (State::Installed, false) => Paint::Fair.on("drifted"),
    };
    let name = Paint::Strong.on(&one_line(&status.slug));
    format!("{name} {}  {files}, {state}, from {}\n", one_line(&status.version), one_line(&status.from))
}

fn drift_word(file: &FileStatus) -> (&'static str, Paint) {
    match file.stands {
        Drift::InPlace => ("in place", Paint::Good),
        Drift::EditedAround => ("extended", Paint::Good),
        Drift::Edited => ("edited", Paint::Bad),
        Drift::Missing => ("missing", Paint::Absent),
    }
}

/// `{slug, version, from, at, state, holds, files: [{dest, strategy, stands, diff}]}`.
fn profile_json(status: &ProfileStatus) -> Value {
    let file = |file: &FileStatus| {
        json!({
            "dest": file.dest,
            "strategy": file.strategy,
            "stands": drift_word(file).0,
            "note": file.note,
            "diff": non_empty(&file.diff),
        })
    };
    json!({
        "slug": status.slug,
        "version": status.version,
        "from": status.from,
        "at": status.at,
        "state": status.state,
        "holds": status.is_intact(),
        "files": status.files.iter().map(file).collect::<Vec<_>>(),
    })
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

pub(crate) fn doctor_checks(checks: &[DoctorCheck], options: TextOptions) -> String {
    let rows = checks
        .iter()
        .map(|check| vec![word(check.status), one_line(&check.name), one_line(&check.detail)])
        .collect();
    let bad = checks.iter().filter(|check| check.status == CheckStatus::Failed).count();
    let sum = match bad {
        0 => "Everything works.".to_owned(),
        1 => "1 thing does not work.".to_owned(),
        more => format!("{more} things do not work."),
    };
    finish(&format!("{}\n{sum}", table(&["", "what", "how it is"], rows, 0, options.width)), options)
}

fn word(state: CheckStatus) -> String {
    match state {
        CheckStatus::Passed => Paint::Good.on("ok"),
        CheckStatus::Warning => Paint::Fair.on("note"),
        CheckStatus::Failed => Paint::Bad.on("bad"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_check() {
        let check = |name: &str, state, detail: &str| DoctorCheck {
            name: name.to_owned(),
            status: state,
            detail: detail.to_owned(),
        };
        let checks = [
            check("ledger", CheckStatus::Passed, ".quorate/ledger.db can be written"),
            check("log", CheckStatus::Warning, "council_log.jsonl: 2 lines cannot be read"),
            check("executor claude", CheckStatus::Failed, "no answer within 60 s"),
        ];
        insta::assert_snapshot!(doctor_checks(&checks, TextOptions::default()), @"
              what             how it is
        ────────────────────────────────────────────────────────────────
        ok    ledger           .quorate/ledger.db can be written
        note  log              council_log.jsonl: 2 lines cannot be read
        bad   executor claude  no answer within 60 s

        1 thing does not work.
        ");
    }
}
