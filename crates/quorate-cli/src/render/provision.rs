//! What provisioning did, would do, or found: for people, and as JSON.

use std::fmt::Write as _;

use quorate_diagnostics::Report;
use quorate_diagnostics::render::{TextOptions, json as diagnostics};
use serde_json::{Value, json};

use super::paint::{Paint, finish, one_line, sanitize};
use crate::arguments::HumanOrJson;
use quorate::service::provision::change::Action;
use quorate::service::provision::drift::Drift;
use quorate::service::provision::setup::State;
use quorate::service::provision::status::{FileStatus, ProfileStatus};
use quorate::service::provision::{FileReport, Outcome, WriteMode};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// To install.
    Install,
    /// To uninstall.
    Uninstall,
}

/// What came of an install or an uninstall.
pub(crate) fn outcome(outcome: &Outcome, verb: Verb, format: HumanOrJson, look: TextOptions) -> String {
    match format {
        HumanOrJson::Human => finish(&outcome_human(outcome, verb), look),
        HumanOrJson::Json => outcome_json(outcome),
    }
}

fn outcome_human(outcome: &Outcome, verb: Verb) -> String {
    let mut out = String::new();
    let refused = outcome.report.has_refusals();
    if outcome.resumed && !refused && outcome.run == WriteMode::Apply {
        out.push_str("What had been interrupted was completed.\n");
    }
    let width = outcome.files.iter().map(|told| told.action.word().len()).max().unwrap_or(0);
    let said = |told: &&FileReport| told.action != Action::Keep || !told.notes.is_empty();
    for told in outcome.files.iter().filter(said) {
        let word = paint(told.action).on(&format!("{:width$}", told.action.word()));
        let strategy = Paint::Faint.on(&format!("({})", told.strategy));
        let _ = writeln!(out, "{word}  {}  {strategy}", one_line(&told.dest));
        for note in &told.notes {
            let _ = writeln!(out, "{:width$}  {}", "", one_line(note));
        }
        out.push_str(&diff(&told.diff));
    }
    let what = format!("{} {}", one_line(&outcome.slug), one_line(&outcome.version));
    let place = |word: &str| match outcome.target.as_str() {
        "." => String::new(),
        target => format!(" {word} {}", one_line(target)),
    };
    let end = match (refused, outcome.run, verb) {
        (true, ..) => "Nothing was written.".to_owned(),
        _ if outcome.idle => format!("{what}: nothing to do."),
        (_, WriteMode::DryRun, _) => "This is a dry run: nothing was written.".to_owned(),
        (_, _, Verb::Install) => match &outcome.previous {
            Some(previous) => format!("{what} is installed{}, after {}.", place("in"), one_line(previous)),
            None => format!("{what} is installed{}.", place("in")),
        },
        (_, _, Verb::Uninstall) => format!("{what} is uninstalled{}.", place("from")),
    };
    out.push_str(&end);
    out
}

/// A diff below the line of its file.
fn diff(text: &str) -> String {
    let mut out = String::new();
    for shown in text.lines() {
        let paint = match shown.as_bytes().first() {
            _ if shown.starts_with("--- ") || shown.starts_with("+++ ") => Some(Paint::Strong),
            Some(b'+') => Some(Paint::Good),
            Some(b'-') => Some(Paint::Bad),
            Some(b'@') => Some(Paint::Faint),
            _ => None,
        };
        let shown = sanitize(shown);
        let _ = writeln!(out, "  {}", paint.map_or_else(|| shown.clone(), |paint| paint.on(&shown)));
    }
    out
}

fn paint(action: Action) -> Paint {
    match action {
        Action::Create | Action::PutBack | Action::Restore => Paint::Good,
        Action::Change | Action::Permit => Paint::Fair,
        Action::Delete | Action::Edited => Paint::Bad,
        Action::Keep | Action::Leave => Paint::Faint,
    }
}

/// `{slug, version, previous, target, dry_run, written, resumed, files: [{dest, strategy, action, notes, diff}],
/// diagnostics}`; `diff` is null where there is none.
fn outcome_json(outcome: &Outcome) -> String {
    let told = |told: &FileReport| {
        json!({
            "dest": told.dest,
            "strategy": told.strategy,
            "action": told.action.word(),
            "notes": told.notes,
            "diff": non_empty(&told.diff),
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
        "files": outcome.files.iter().map(told).collect::<Vec<_>>(),
        "diagnostics": diagnostics::diagnostics(&outcome.report),
    });
    format!("{value:#}\n")
}

/// How installed profiles stand, file by file.
pub(crate) fn status(
    standings: &[ProfileStatus],
    report: &Report,
    format: HumanOrJson,
    look: TextOptions,
) -> String {
    match format {
        HumanOrJson::Json => {
            let value = json!({
                "profiles": standings.iter().map(profile_json).collect::<Vec<_>>(),
                "diagnostics": diagnostics::diagnostics(report),
            });
            format!("{value:#}\n")
        }
        HumanOrJson::Human if standings.is_empty() => "no profiles\n".to_owned(),
        HumanOrJson::Human => {
            let mut out = String::new();
            for standing in standings {
                out.push_str(&head(standing));
                for file in &standing.files {
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
            finish(&out, look)
        }
    }
}

/// What is installed.
pub(crate) fn list(standings: &[ProfileStatus], format: HumanOrJson, look: TextOptions) -> String {
    match format {
        HumanOrJson::Json => {
            let value = json!({"profiles": standings.iter().map(profile_json).collect::<Vec<_>>()});
            format!("{value:#}\n")
        }
        HumanOrJson::Human if standings.is_empty() => "no profiles\n".to_owned(),
        HumanOrJson::Human => finish(&standings.iter().map(head).collect::<String>(), look),
    }
}

fn head(standing: &ProfileStatus) -> String {
    let count = standing.files.len();
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let how = match (standing.state, standing.is_intact()) {
        (State::Installing, _) => Paint::Bad.on("an install was interrupted"),
        (State::Removing, _) => Paint::Bad.on("an uninstall was interrupted"),
        (State::Installed, true) => Paint::Good.on("in place"),
        (State::Installed, false) => Paint::Fair.on("drifted"),
    };
    let name = Paint::Strong.on(&one_line(&standing.slug));
    format!("{name} {}  {files}, {how}, from {}\n", one_line(&standing.version), one_line(&standing.from))
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
fn profile_json(standing: &ProfileStatus) -> Value {
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
        "slug": standing.slug,
        "version": standing.version,
        "from": standing.from,
        "at": standing.at,
        "state": standing.state,
        "holds": standing.is_intact(),
        "files": standing.files.iter().map(file).collect::<Vec<_>>(),
    })
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
