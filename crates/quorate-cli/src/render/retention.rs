//! What was erased, and what nothing is erased of.

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::retention::{LegalHold, Period, PlannedErasure};
use serde_json::{Value, json};

use super::layout::{prose, table};
use super::ledger::size;
use super::paint::{Paint, finish, one_line};
use super::wording::{amount, instant, minute};
use quorate::service::ledger::gc::GcResult;
use quorate::service::ledger::hold::HoldChange;

/// How many runs are listed to people.
const SHOWN: usize = 20;

/// For people.
pub(crate) fn collected(collected: &GcResult, look: TextOptions) -> String {
    let GcResult { dry_run, due, held, open, .. } = collected;
    let mut out = String::new();
    if due.is_empty() {
        out.push_str("nothing to erase\n");
    } else {
        let row = |one: &PlannedErasure| {
            let ended = one.ended_ms.map_or_else(|| "goes on".to_owned(), minute);
            let kept = match one.period {
                Period::Days(days) => format!("{days} days"),
                Period::UntilEnd => "until its end".to_owned(),
                Period::Forever => "for ever".to_owned(),
            };
            vec![
                one_line(&one.run),
                ended,
                kept,
                one.count().to_string(),
                one.texts.len().to_string(),
                size(one.bytes),
            ]
        };
        let rows = due.iter().take(SHOWN).map(row).collect();
        out.push_str(&table(
            &["run", "ended (UTC)", "kept", "records", "texts", "bodies"],
            rows,
            0,
            look.width,
        ));
        if due.len() > SHOWN {
            out.push_str(&format!("… and {} more; `--format json` lists all\n", due.len() - SHOWN));
        }
        let done = if *dry_run { "would be erased" } else { "erased" };
        let records: u64 = due.iter().map(PlannedErasure::count).sum();
        let texts: usize = due.iter().map(|one| one.texts.len()).sum();
        let (records, texts) = (amount(records, "record"), amount(texts as u64, "text"));
        let said =
            format!("{done}: the bodies of {records} of {}, and {texts}", amount(due.len() as u64, "run"));
        out.push_str(&format!("\n{}\n", Paint::Strong.on(&said)));
    }
    let mut more = Vec::new();
    if !collected.logs.is_empty() {
        let logs: Vec<String> = collected.logs.iter().map(|log| one_line(log)).collect();
        more.push(format!("Not touched: {} has lines of these runs, with answers in them.", logs.join(", ")));
    }
    if let Some(elsewhere) = collected.elsewhere {
        more.push(format!("Not reached: it stays {elsewhere}."));
    }
    if !held.is_empty() {
        let runs: Vec<String> = held.iter().take(SHOWN).map(|run| one_line(run)).collect();
        let dots = if held.len() > SHOWN { ", …" } else { "" };
        more.push(format!("On hold, and left alone: {}{dots}.", runs.join(", ")));
    }
    if *open > 0 {
        more.push(format!("Not ended, and left alone: {open}."));
    }
    for one in more {
        out.push_str(&prose(&one, 0, look.width));
    }
    finish(&out, look)
}

/// `{ledger, dry_run, erased: [{run, ended, reason, days, records, count, bytes, bodies, log}], held, open, remains,
/// elsewhere}`.
pub(crate) fn collected_json(collected: &GcResult) -> String {
    let one = |due: &PlannedErasure| -> Value {
        json!({
            "run": &*due.run,
            "ended": due.ended_ms.map(instant),
            "reason": due.period.reason(),
            "days": due.period.days(),
            "records": due.records.iter().map(|(first, last)| [first, last]).collect::<Vec<_>>(),
            "count": due.count(),
            "bytes": due.bytes,
            "bodies": due.texts,
            "log": due.log_path,
        })
    };
    let object = json!({
        "ledger": collected.ledger,
        "dry_run": collected.dry_run,
        "erased": collected.due.iter().map(one).collect::<Vec<_>>(),
        "held": collected.held.iter().map(|run| &**run).collect::<Vec<_>>(),
        "open": collected.open,
        "remains": collected.remains,
        "elsewhere": collected.elsewhere,
    });
    format!("{object:#}\n")
}

/// What a hold or a release came to, for people.
pub(crate) fn changed(changed: &HoldChange) -> String {
    let run = one_line(&changed.run);
    match (changed.held, changed.fresh) {
        (true, true) => format!("run {run} is on hold: nothing of it is erased\n"),
        (true, false) => format!("run {run} was on hold already\n"),
        (false, true) => {
            format!("run {run} is released: once it is of age, `quorate ledger gc` erases its answers\n")
        }
        (false, false) => format!("run {run} was not on hold\n"),
    }
}

/// `{run, held, fresh}`.
pub(crate) fn changed_json(changed: &HoldChange) -> String {
    format!("{:#}\n", json!({"run": &*changed.run, "held": changed.held, "fresh": changed.fresh}))
}

/// The runs on hold, for people.
pub(crate) fn holds(holds: &[LegalHold], look: TextOptions) -> String {
    if holds.is_empty() {
        return "no run is on hold\n".to_owned();
    }
    let row = |one: &LegalHold| {
        let reason = one.reason.as_deref().map_or_else(|| "–".to_owned(), one_line);
        vec![one_line(&one.run), minute(one.since_ms), one_line(&one.by), reason]
    };
    let rows = holds.iter().map(row).collect();
    finish(&table(&["run", "since (UTC)", "by", "reason"], rows, 0, look.width), look)
}

/// `{holds: [{run, since, by, reason}]}`.
pub(crate) fn holds_json(holds: &[LegalHold]) -> String {
    let one = |held: &LegalHold| json!({"run": &*held.run, "since": instant(held.since_ms), "by": held.by, "reason": held.reason});
    format!("{:#}\n", json!({"holds": holds.iter().map(one).collect::<Vec<_>>()}))
}
