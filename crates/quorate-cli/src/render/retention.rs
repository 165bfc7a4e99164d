//! The results of erasing, and the runs on hold.

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::retention::{LegalHold, Period, PlannedErasure};
use serde_json::{Value, json};

use super::layout::{prose, table};
use super::ledger::size;
use super::paint::{Paint, finish, one_line};
use super::wording::{amount, instant, minute};
use quorate::service::ledger::gc::GcResult;
use quorate::service::ledger::hold::HoldChange;

/// The most runs listed as text.
const SHOWN: usize = 20;

pub(crate) fn collected(collected: &GcResult, options: TextOptions) -> String {
    let GcResult { dry_run, due, held, open, .. } = collected;
    let mut out = String::new();
    if due.is_empty() {
        out.push_str("nothing to erase\n");
    } else {
        let row = |erasure: &PlannedErasure| {
            let ended = erasure.ended_ms.map_or_else(|| "goes on".to_owned(), minute);
            let period = match erasure.period {
                Period::Days(days) => format!("{days} days"),
                Period::UntilEnd => "until its end".to_owned(),
                Period::Forever => "for ever".to_owned(),
            };
            vec![
                one_line(&erasure.run),
                ended,
                period,
                erasure.count().to_string(),
                erasure.texts.len().to_string(),
                size(erasure.bytes),
            ]
        };
        let rows = due.iter().take(SHOWN).map(row).collect();
        out.push_str(&table(
            &["run", "ended (UTC)", "kept", "records", "texts", "bodies"],
            rows,
            0,
            options.width,
        ));
        if due.len() > SHOWN {
            out.push_str(&format!("… and {} more; `--format json` lists all\n", due.len() - SHOWN));
        }
        let done = if *dry_run { "would be erased" } else { "erased" };
        let records: u64 = due.iter().map(PlannedErasure::count).sum();
        let texts: usize = due.iter().map(|erasure| erasure.texts.len()).sum();
        let (records, texts) = (amount(records, "record"), amount(texts as u64, "text"));
        let total =
            format!("{done}: the bodies of {records} of {}, and {texts}", amount(due.len() as u64, "run"));
        out.push_str(&format!("\n{}\n", Paint::Strong.on(&total)));
    }
    let mut remarks = Vec::new();
    if !collected.logs.is_empty() {
        let logs: Vec<String> = collected.logs.iter().map(|log| one_line(log)).collect();
        remarks
            .push(format!("Not touched: {} has lines of these runs, with answers in them.", logs.join(", ")));
    }
    if let Some(elsewhere) = collected.elsewhere {
        remarks.push(format!("Not reached: it stays {elsewhere}."));
    }
    if !held.is_empty() {
        let runs: Vec<String> = held.iter().take(SHOWN).map(|run| one_line(run)).collect();
        let dots = if held.len() > SHOWN { ", …" } else { "" };
        remarks.push(format!("On hold, and left alone: {}{dots}.", runs.join(", ")));
    }
    if *open > 0 {
        remarks.push(format!("Not ended, and left alone: {open}."));
    }
    for remark in remarks {
        out.push_str(&prose(&remark, 0, options.width));
    }
    finish(&out, options)
}

/// `{ledger, dry_run, erased: [{run, ended, reason, days, records, count, bytes, bodies, log}], held, open, remains,
/// elsewhere}`.
pub(crate) fn collected_json(collected: &GcResult) -> String {
    let erasure_json = |due: &PlannedErasure| -> Value {
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
        "erased": collected.due.iter().map(erasure_json).collect::<Vec<_>>(),
        "held": collected.held.iter().map(|run| &**run).collect::<Vec<_>>(),
        "open": collected.open,
        "remains": collected.remains,
        "elsewhere": collected.elsewhere,
    });
    format!("{object:#}\n")
}

/// The result of a hold or a release, as text.
pub(crate) fn changed(changed: &HoldChange) -> String {
    let run = one_line(&changed.run);
    match (changed.held, changed.fresh) {
        (true, true) => format!("run {run} is on hold: its answers are never erased\n"),
        (true, false) => format!("run {run} was on hold already\n"),
        (false, true) => {
            format!("run {run} is released: past its retention, `quorate ledger gc` erases its answers\n")
        }
        (false, false) => format!("run {run} was not on hold\n"),
    }
}

pub(crate) fn changed_json(changed: &HoldChange) -> String {
    format!("{:#}\n", json!({"run": &*changed.run, "held": changed.held, "fresh": changed.fresh}))
}

/// The runs on hold, as text.
pub(crate) fn holds(holds: &[LegalHold], options: TextOptions) -> String {
    if holds.is_empty() {
        return "no run is on hold\n".to_owned();
    }
    let row = |hold: &LegalHold| {
        let reason = hold.reason.as_deref().map_or_else(|| "–".to_owned(), one_line);
        vec![one_line(&hold.run), minute(hold.since_ms), one_line(&hold.by), reason]
    };
    let rows = holds.iter().map(row).collect();
    finish(&table(&["run", "since (UTC)", "by", "reason"], rows, 0, options.width), options)
}

/// `{holds: [{run, since, by, reason}]}`.
pub(crate) fn holds_json(holds: &[LegalHold]) -> String {
    let hold_json = |hold: &LegalHold| json!({"run": &*hold.run, "since": instant(hold.since_ms), "by": hold.by, "reason": hold.reason});
    format!("{:#}\n", json!({"holds": holds.iter().map(hold_json).collect::<Vec<_>>()}))
}
