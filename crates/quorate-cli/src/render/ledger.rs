//! The ledger: its statistics and checkpoints, the result of a verification, verified proofs, exports and imports, erased
//! answers, and the runs on hold.

use std::collections::BTreeMap;

use quorate::service::ledger::AcceptedKeys;
use quorate::service::ledger::AcceptedRollback;
use quorate::service::ledger::gc::GcResult;
use quorate::service::ledger::gc::HoldChange;
use quorate::service::ledger::prove::ExportCheck;
use quorate::service::ledger::verify::Verification;
use quorate::service::ledger::{LedgerStats, RECENT_DAYS};
use quorate_diagnostics::render::TextOptions;
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::export::ExportSummary;
use quorate_ledger::import::ImportSummary;
use quorate_ledger::prove::{ProvenRecord, VerifiedProof};
use quorate_ledger::retention::{LegalHold, Period, PlannedErasure};
use quorate_ledger::signing::PublicKey;
use quorate_ledger::store::{CheckpointRecord, STREAM};
use quorate_ledger::verify::{Cosignature, Divergence, VerifyReport};
use serde_json::{Value, json};

use super::layout::{Paint, finish, one_line};
use super::layout::{prose, table};
use super::wording::{amount, instant, minute};

/// The ledger's own records that were signed belatedly.
pub(crate) fn accepted_unsigned(records: &[u64]) -> String {
    match records {
        [] => "the ledger's own records are all signed\n".to_owned(),
        some => {
            let names: Vec<String> = some.iter().map(|n| format!("{STREAM}/{n}")).collect();
            format!("signed {}\n", names.join(", "))
        }
    }
}

/// The signed note; for an unsigned checkpoint the content of a note.
pub(crate) fn checkpoint(sealed: &CheckpointRecord) -> String {
    sealed.note.clone().unwrap_or_else(|| sealed.unsigned_text())
}

/// `{origin, size, root, note, keys, record, fresh}`.
pub(crate) fn checkpoint_json(sealed: &CheckpointRecord) -> String {
    let mut object = checkpoint_object(sealed);
    object["fresh"] = json!(sealed.is_new);
    format!("{object:#}\n")
}

fn checkpoint_object(sealed: &CheckpointRecord) -> Value {
    json!({
        "origin": sealed.origin,
        "size": sealed.tree.size,
        "root": hex(&sealed.tree.root),
        "note": sealed.note,
        "keys": sealed.keys,
        "record": format!("{}/{}", quorate_ledger::store::STREAM, sealed.n),
    })
}

/// The result of accepting a rollback, as text.
pub(crate) fn accepted(accepted: &AcceptedRollback) -> String {
    match &accepted.departs {
        Some(departs) => format!(
            "accepted: {}\nthis machine now keeps the checkpoint over {} records\n",
            one_line(departs),
            accepted.size
        ),
        None => format!(
            "nothing to accept: the ledger contains its kept checkpoints; it now has {} records\n",
            accepted.size
        ),
    }
}

/// `{accepted, departs, size}`.
pub(crate) fn accepted_json(accepted: &AcceptedRollback) -> String {
    let AcceptedRollback { departs, size } = accepted;
    format!("{:#}\n", json!({"accepted": departs.is_some(), "departs": departs, "size": size}))
}

/// The result of accepting keys, as text.
pub(crate) fn accepted_keys(accepted: &AcceptedKeys) -> String {
    let AcceptedKeys { keys, size } = accepted;
    match keys.as_slice() {
        [] => format!(
            "nothing to accept: an earlier key vouches for each key of the ledger; it now has {size} records\n"
        ),
        keys => {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            format!(
                "accepted: {}\nthe last checkpoint is over {size} records; send the new key to everyone who verifies the ledger\n",
                keys.join(", ")
            )
        }
    }
}

/// `{accepted: [key], size}`.
pub(crate) fn accepted_keys_json(accepted: &AcceptedKeys) -> String {
    let AcceptedKeys { keys, size } = accepted;
    let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
    format!("{:#}\n", json!({"accepted": keys, "size": size}))
}

pub(crate) fn stats(counted: &LedgerStats, options: TextOptions) -> String {
    let LedgerStats { ledger, file_bytes, stats } = counted;
    let sealed = match &stats.last_checkpoint {
        None => Paint::Absent.on("none yet"),
        Some((sealed, at_ms)) => {
            let signers = match sealed.keys.as_slice() {
                [] => "unsigned".to_owned(),
                keys => format!(
                    "signed by {}",
                    keys.iter().map(|key| one_line(key)).collect::<Vec<_>>().join(" and ")
                ),
            };
            format!("over {} records, {} (UTC), {signers}", sealed.tree.size, minute(*at_ms))
        }
    };
    let unsealed = match stats.since_checkpoint {
        0 => Paint::Good.on("none"),
        more => Paint::Fair.on(&more.to_string()),
    };
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let rows = vec![
        row("ledger", format!("{}, {}", one_line(ledger), size(*file_bytes))),
        row("records", format!("{}, {} of heads and bodies", stats.records, size(stats.record_bytes))),
        row("texts", format!("{}, {}", stats.bodies, size(stats.body_bytes))),
        row("runs", format!("{}, {} of them open, {} signed", stats.runs, stats.open, stats.signed)),
        row(
            "conversations",
            format!("{}, {} of the records", stats.conversations, stats.conversation_records),
        ),
        row("kept or erased", format!("{} runs on hold, {} records erased", stats.held, stats.erased)),
        row("from elsewhere", format!("{} runs", stats.imported)),
        row(
            &format!("last {RECENT_DAYS} days"),
            format!(
                "{} runs, {} records, {}",
                stats.recent.runs,
                stats.recent.records,
                size(stats.recent.bytes)
            ),
        ),
        row("last checkpoint", sealed),
        row("not sealed yet", unsealed),
    ];
    finish(&table(&["what", "how much"], rows, 0, options.width), options)
}

/// `{ledger, file_bytes, records, record_bytes, erased, runs, open, conversations, conversation_records, signed, held,
/// imported, bodies, body_bytes, recent: {days, runs, records, bytes}, checkpoint, checkpoint_at, unsealed}`.
pub(crate) fn stats_json(counted: &LedgerStats) -> String {
    let LedgerStats { ledger, file_bytes, stats } = counted;
    let object = json!({
        "ledger": ledger,
        "file_bytes": file_bytes,
        "records": stats.records,
        "record_bytes": stats.record_bytes,
        "erased": stats.erased,
        "runs": stats.runs,
        "open": stats.open,
        "conversations": stats.conversations,
        "conversation_records": stats.conversation_records,
        "signed": stats.signed,
        "held": stats.held,
        "imported": stats.imported,
        "bodies": stats.bodies,
        "body_bytes": stats.body_bytes,
        "recent": {"days": RECENT_DAYS, "runs": stats.recent.runs, "records": stats.recent.records, "bytes": stats.recent.bytes},
        "checkpoint": stats.last_checkpoint.as_ref().map(|(sealed, _)| checkpoint_object(sealed)),
        "checkpoint_at": stats.last_checkpoint.as_ref().map(|(_, at_ms)| instant(*at_ms)),
        "unsealed": stats.since_checkpoint,
    });
    format!("{object:#}\n")
}

/// A number of bytes in readable units.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut amount = (bytes, "bytes");
    let mut tenths = 0;
    for unit in UNITS {
        if amount.0 < 1024 {
            break;
        }
        tenths = amount.0 % 1024 * 10 / 1024;
        amount = (amount.0 / 1024, unit);
    }
    match amount {
        (bytes, "bytes") => format!("{bytes} bytes"),
        (whole, unit) => format!("{whole}.{tenths} {unit}"),
    }
}

/// A verified proof as text. `is_report` states whether the proof comes from a report that shows its content.
pub(crate) fn proven(proven: &VerifiedProof, is_report: bool, options: TextOptions) -> String {
    let VerifiedProof { origin, tree, trusted_key: vouched, keys, records } = proven;
    let mut text = match vouched {
        Some(key) => {
            format!("{} against the key {}\n\n", Paint::Good.on("Holds"), one_line(&key.to_string()))
        }
        None => {
            let keys: Vec<String> = keys.iter().map(|key| one_line(&key.to_string())).collect();
            format!("{} {}\n\n", Paint::Fair.on("Holds against an untrusted key:"), keys.join(" and "))
        }
    };
    let mut runs: BTreeMap<&str, Vec<&ProvenRecord>> = BTreeMap::new();
    records.iter().for_each(|fact| runs.entry(&fact.run).or_default().push(fact));
    for (run, facts) in &runs {
        let count = facts.len();
        let (first, last) =
            (facts.first().map_or("", |fact| &fact.at), facts.last().map_or("", |fact| &fact.at));
        let signed = facts.iter().filter(|fact| !fact.signers.is_empty()).count();
        text += &format!(
            "{}: {count} records from {first} to {last}, {signed} of them signed; {}\n",
            Paint::Strong.on(&one_line(run)),
            outcome_text(facts)
        );
    }
    text += &format!(
        "They are among the first {} records of the ledger {}, unchanged.\n\n",
        tree.size,
        one_line(origin)
    );
    if is_report {
        text += "The report shows the content of these records, and nothing else.\n\n";
    }
    let rows = records.iter().map(evidence_row).collect();
    text += &table(&["record", "kind", "at (UTC)", "place", "body", "signed by"], rows, 0, options.width);
    finish(&text, options)
}

/// The outcome of a run, and a person's override.
fn outcome_text(facts: &[&ProvenRecord]) -> String {
    let word = |word: &str| Paint::of_word(word).on(&one_line(word).to_uppercase());
    let mut text = facts
        .iter()
        .rev()
        .find_map(|fact| fact.verdict.as_deref())
        .map_or_else(|| "its outcome is missing".to_owned(), |verdict| format!("verdict {}", word(verdict)));
    let left_out = facts.iter().filter(|fact| fact.kind == Kind::Override.as_str() && fact.data.is_none());
    match left_out.count() {
        0 => {}
        1 => text += &format!("; {}", Paint::Bad.on("a person's decision is left out")),
        more => text += &format!("; {}", Paint::Bad.on(&format!("{more} persons' decisions are left out"))),
    }
    let gaps: Vec<String> = gaps(facts).map(|(from, to)| span(from, to)).collect();
    if !gaps.is_empty() {
        text += &format!("; {}", Paint::Absent.on(&format!("missing records: {}", gaps.join(", "))));
    }
    let decisions = facts.iter().filter_map(|fact| Some((fact.override_decision.as_ref()?, &fact.at)));
    for (decided, at) in decisions {
        let by = decided.by.as_deref().map_or_else(|| "a person".to_owned(), one_line);
        let council =
            decided.council.as_deref().map_or_else(String::new, |council| format!(" over {}", word(council)));
        text += &format!("; {by} decided {}{council} on {at}, an override", word(&decided.verdict));
    }
    text
}

/// The first and last number of each gap between the present records. Records after the last one are unknown.
fn gaps(facts: &[&ProvenRecord]) -> impl Iterator<Item = (u64, u64)> {
    let mut next = 0;
    facts.iter().filter_map(move |fact| {
        let expected = std::mem::replace(&mut next, fact.n + 1);
        (fact.n > expected).then(|| (expected, fact.n - 1))
    })
}

fn span(from: u64, to: u64) -> String {
    if from == to { from.to_string() } else { format!("{from} to {to}") }
}

fn evidence_row(fact: &ProvenRecord) -> Vec<String> {
    let signers: Vec<String> = fact.signers.iter().map(ToString::to_string).collect();
    vec![
        format!("{}/{}", one_line(&fact.run), fact.n),
        one_line(&fact.kind),
        fact.at.clone(),
        (fact.index + 1).to_string(),
        if fact.data.is_some() { "here".to_owned() } else { Paint::Absent.on("not here") },
        if signers.is_empty() { Paint::Absent.on("none") } else { signers.join(" ") },
    ]
}

/// `{holds, report, vouched, origin, size, root, keys, records: [{run, n, kind, at, index, data, signers, verdict, override}]}`;
/// `vouched` is whether a person vouched for the key; `verdict` is an outcome's, `override` a person's decision.
pub(crate) fn proven_json(proven: &VerifiedProof, is_report: bool) -> String {
    let fact = |fact: &ProvenRecord| {
        json!({
            "run": fact.run,
            "n": fact.n,
            "kind": fact.kind,
            "at": fact.at,
            "index": fact.index,
            "data": fact.data.is_some(),
            "signers": fact.signers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "verdict": fact.verdict,
            "override": fact.override_decision.as_ref().map(|decision| {
                json!({"verdict": decision.verdict, "by": decision.by, "council_verdict": decision.council})
            }),
        })
    };
    let object = json!({
        "holds": proven.trusted_key.is_some(),
        "report": is_report,
        "vouched": proven.trusted_key.as_ref().map(ToString::to_string),
        "origin": proven.origin,
        "size": proven.tree.size,
        "root": hex(&proven.tree.root),
        "keys": proven.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "records": proven.records.iter().map(fact).collect::<Vec<Value>>(),
    });
    format!("{object:#}\n")
}

/// The result of an export.
pub(crate) fn export_written(written: &ExportSummary, file: &str) -> String {
    let ExportSummary { records, bodies, signatures, .. } = written;
    format!("{file}: {records} records, {bodies} texts, {signatures} signatures")
}

/// The result of an import as text.
pub(crate) fn imported(imported: &ImportSummary, dry_run: bool) -> String {
    let ImportSummary { verified, runs, unchanged_runs: known, skipped_streams: passed_over } = imported;
    let records: u64 = runs.values().sum();
    let verb = if dry_run { "would be merged" } else { "merged" };
    let mut text = format!(
        "{} runs with {records} records {verb}, {known} already present\nverified: {} records of {}, signed by {}\n",
        runs.len(),
        verified.totals.records,
        one_line(&verified.header.origin),
        one_line(&verified.key)
    );
    for (run, count) in runs {
        text += &format!("  {}  {count} records\n", one_line(run));
    }
    if !passed_over.is_empty() {
        let streams: Vec<String> = passed_over.iter().map(|stream| one_line(stream)).collect();
        text += &format!("not merged, since they are not runs: {}\n", streams.join(", "));
    }
    text
}

/// A verified export as text.
pub(crate) fn export_checked(checked: &ExportCheck) -> String {
    let ExportCheck { header, counted, vouched } = checked;
    let by = match vouched {
        Some(key) => format!("Holds against the key {}", one_line(key)),
        None => "Holds, but its key is not trusted".to_owned(),
    };
    let extent = match (&header.runs, &header.from) {
        (Some(runs), _) => format!("of {} runs alone", runs.len()),
        (None, Some(from)) => format!("all after the first {}", from.size),
        (None, None) => "all of them".to_owned(),
    };
    format!(
        "{by}\n\n{} of the {} records of {}, {extent}; {} texts, {} signatures\n",
        counted.records,
        header.size,
        one_line(&header.origin),
        counted.bodies,
        counted.signatures
    )
}

/// `{holds, key, origin, size, root, from, runs, records, texts, signatures}`.
pub(crate) fn export_checked_json(checked: &ExportCheck) -> String {
    let ExportCheck { header, counted, vouched } = checked;
    let object = json!({
        "holds": vouched.is_some(),
        "key": vouched,
        "origin": header.origin,
        "size": header.size,
        "root": header.root,
        "from": header.from.as_ref().map(|from| from.size),
        "runs": header.runs,
        "records": counted.records,
        "texts": counted.bodies,
        "signatures": counted.signatures,
    });
    format!("{object:#}\n")
}

/// `{dry_run, runs: {run: records}, known, passed_over, origin, size, root, key, file_sha256}`.
pub(crate) fn imported_json(imported: &ImportSummary, dry_run: bool) -> String {
    let ImportSummary { verified, runs, unchanged_runs: known, skipped_streams: passed_over } = imported;
    let object = json!({
        "dry_run": dry_run,
        "runs": runs,
        "known": known,
        "passed_over": passed_over,
        "origin": verified.header.origin,
        "size": verified.header.size,
        "root": verified.header.root,
        "key": verified.key,
        "file_sha256": verified.file_sha256,
    });
    format!("{object:#}\n")
}

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
pub(crate) fn hold_changed(changed: &HoldChange) -> String {
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

pub(crate) fn hold_changed_json(changed: &HoldChange) -> String {
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

pub(crate) fn verification(verified: &Verification, options: TextOptions) -> String {
    let Verification { ledger, report, .. } = verified;
    let mut text = match report.divergence_count {
        0 => format!("{} {}\n\n", one_line(ledger), Paint::Good.on("holds")),
        1 => format!("{} {}: in one place\n\n", one_line(ledger), Paint::Bad.on("diverges")),
        found => format!("{} {}: in {found} places\n\n", one_line(ledger), Paint::Bad.on("diverges")),
    };
    if let Some(first) = report.divergences.first() {
        text += &format!("First: {}\n\n", one_line(&first.to_string()));
        let rows = report.divergences.iter().map(verification_row).collect();
        text += &table(&["what", "of", "record", "place", "how"], rows, 4, options.width);
        if report.divergence_count > report.divergences.len() as u64 {
            text += &format!("and {} more\n", report.divergence_count - report.divergences.len() as u64);
        }
        text.push('\n');
    }
    for sentence in findings(verified) {
        text += &format!("- {sentence}\n");
    }
    finish(&text, options)
}

fn verification_row(divergence: &Divergence) -> Vec<String> {
    vec![
        Paint::Bad.on(divergence.kind.as_str()),
        divergence.part.as_str().to_owned(),
        one_line(&divergence.record().unwrap_or_default()),
        record_place(divergence),
        one_line(&divergence.what),
    ]
}

/// `<run>/<n>`, or the run alone.
fn record_place(divergence: &Divergence) -> String {
    match (divergence.seq, divergence.last_seq) {
        (Some(place), Some(until)) => format!("{place} to {until}"),
        (Some(place), None) => place.to_string(),
        _ => String::new(),
    }
}

/// The checks and their results, one sentence each.
fn findings(verified: &Verification) -> Vec<String> {
    let Verification { report, log, witness, .. } = verified;
    let mut sentences = Vec::new();
    let since = match report.since {
        0 => String::new(),
        since => format!(", behind {since} that a trusted checkpoint is over"),
    };
    sentences.push(format!(
        "{} records of {} runs and other streams, {} without their body, {} texts{since}",
        report.records, report.streams, report.erased, report.texts
    ));
    sentences.push(match (&report.origin, report.checkpoints) {
        (Some(origin), count) if count > 0 => format!(
            "{count} checkpoints of {}, the last over {} records; {} of them unsigned; {} records not sealed yet",
            one_line(origin),
            report.sealed,
            report.unsigned,
            report.unsealed
        ),
        (_, _) => format!("no checkpoint; {} records not sealed yet", report.unsealed),
    });
    if report.unproven > 0 {
        sentences.push(format!(
            "{} records are neither signed nor under a signed checkpoint, so their author is unproven: a crash leaves such \
             records, and a person with write access to the ledger can add some; inspect them, then seal them with `quorate \
             ledger checkpoint`",
            report.unproven
        ));
    }
    sentences.push(match report.ledger_key_signed {
        Some(true) => format!("verified with the ledger's own key, which signed {} records", report.signed),
        Some(false) => "the ledger's own key did not sign the last checkpoint".to_owned(),
        None if report.signed > 0 => {
            "verified only with keys that the ledger names: its own key is not on this machine".to_owned()
        }
        None => "no checkpoint is signed".to_owned(),
    });
    match (
        report.trusted_keys_signed.len(),
        report.trusted_keys_signed.iter().filter(|signed| **signed).count(),
    ) {
        (0, _) => sentences.push("verified with no key from `--key`".to_owned()),
        (keys, good) if keys == good => sentences.push("verified with every given key".to_owned()),
        (keys, good) => sentences.push(format!("verified with {good} of the {keys} given keys")),
    }
    if let Some(copies_kept) = &report.local_checkpoints {
        sentences.push(match (copies_kept.checkpoints, copies_kept.fragments) {
            (0, 0) => "this machine keeps no checkpoint of the ledger: this is its first use here, or the copies were \
                       removed"
                .to_owned(),
            (copies, _) => format!(
                "consistent with {copies} copies of the last checkpoint signed on this machine, over {} records",
                copies_kept.size
            ),
        });
    }
    for rollback in &report.rollbacks {
        sentences.push(format!(
            "a rollback was accepted by {}: {} (ledger/{})",
            one_line(&rollback.by),
            one_line(&rollback.reason),
            rollback.n
        ));
    }
    for accepted in &report.key_changes.accepted {
        let key = PublicKey::from_text(&accepted.key).map(|key| key.id().to_string());
        sentences.push(format!(
            "the key {} was accepted by {}, since no earlier key could vouch for it: {} (ledger/{})",
            key.unwrap_or_else(|_| one_line(&accepted.key)),
            one_line(&accepted.by),
            one_line(&accepted.reason),
            accepted.n
        ));
    }
    match (&report.witness, witness) {
        (Some(witness_kept), Some(name)) => {
            let fragments = match witness_kept.fragments {
                0 => String::new(),
                fragments => format!("; {fragments} parts of it are not signed notes"),
            };
            sentences.push(format!(
                "the witness {} has {} checkpoints, the largest over {} records{fragments}",
                one_line(name),
                witness_kept.checkpoints,
                witness_kept.size
            ));
        }
        _ if report.cosignature.is_none() => sentences.push("no witness".to_owned()),
        _ => {}
    }
    if let Some(Cosignature { name, size, at_s }) = &report.cosignature {
        let at_ms = i64::try_from(*at_s).unwrap_or(i64::MAX).saturating_mul(1000);
        let at = instant(at_ms);
        sentences.push(format!("the witness {} signed {size} records at {at}, by its clock", one_line(name)));
    }
    sentences.push(format!(
        "{} runs are signed, with {} signatures; {} of them by keys that only they name",
        report.signed_runs, report.signatures, report.self_vouched_runs
    ));
    if report.unsigned_ledger_records > 0 {
        sentences.push(format!(
            "{} of the ledger's own records are not signed, and no known key should have signed them",
            report.unsigned_ledger_records
        ));
    }
    if let Some(logged) = &report.log {
        sentences.push(format!("{} lines of {} belong to its runs", logged.ours, one_line(log)));
        if let Some((number, run)) = &logged.first_unknown {
            sentences.push(format!(
                "{} lines of the log name runs that this ledger does not have: the first is line {number}, {}",
                logged.unknown,
                one_line(run)
            ));
        }
        if let Some(elsewhere) = &logged.first_elsewhere {
            sentences.push(format!(
                "{} runs log elsewhere ({}); their lines were not checked",
                logged.elsewhere,
                one_line(&elsewhere.display().to_string())
            ));
        }
        if logged.unreadable > 0 {
            sentences.push(format!(
                "{} lines of the log cannot be read, or follow up on a run without naming it; they are not counted",
                logged.unreadable
            ));
        }
    }
    if report.open > 0 {
        let open_runs: Vec<String> = report.open_runs.iter().map(|run| one_line(run)).collect();
        let more = if report.open > open_runs.len() as u64 { " and others" } else { "" };
        sentences.push(format!("{} runs are open: {}{more}", report.open, open_runs.join(", ")));
    }
    sentences.push(undetectable(report));
    sentences
}

/// What these checks cannot detect.
fn undetectable(report: &VerifyReport) -> String {
    let kept_size = report.local_checkpoints.map_or(0, |copies| copies.size);
    let witnessed = report.witness.map_or(0, |witness| witness.size);
    let cosigned = report.cosignature.as_ref().map_or(0, |cosigned| cosigned.size);
    let covered = kept_size.max(witnessed).max(cosigned);
    let cut = match covered {
        0 => "whether records were cut off at the end".to_owned(),
        covered => format!("whether records after the first {covered} were cut off"),
    };
    let anew = match witnessed.max(cosigned) {
        0 => "with the ledger's key and access to every copy",
        _ => "with the ledger's key and access to every copy and the witness",
    };
    let added = match report.unsigned_records {
        0 => String::new(),
        unsigned => format!(
            ", whether a person with write access added any of the {unsigned} unsigned records before they were sealed \
             (`sign = \"optional\"` or `\"required\"` in `[keys]` signs the records of later runs, and a witness shows when \
             they existed)"
        ),
    };
    format!("not detectable here: {cut}{added}, and a ledger rewritten by a person {anew}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        let sizes = [0, 1023, 1024, 1536, 1024 * 1024, 5 * 1024 * 1024 * 1024 + 1].map(size);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB"]);
    }
}
