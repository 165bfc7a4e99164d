//! Verified proofs, and the results of export and import.

use std::collections::BTreeMap;

use quorate_diagnostics::render::TextOptions;
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::export::ExportSummary;
use quorate_ledger::import::ImportSummary;
use quorate_ledger::prove::{ProvenRecord, VerifiedProof};
use serde_json::{Value, json};

use super::layout::table;
use super::paint::{Paint, finish, one_line};
use quorate::service::ledger::check_export::ExportCheck;

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
    let rows = records.iter().map(row).collect();
    text += &table(&["record", "kind", "at (UTC)", "place", "body", "signed by"], rows, 0, options.width);
    finish(&text, options)
}

/// The outcome of a run, and a person's override.
fn outcome_text(facts: &[&ProvenRecord]) -> String {
    let word = |word: &str| Paint::of_word(word).on(&one_line(word).to_uppercase());
    let mut text = facts.iter().rev().find_map(|fact| fact.verdict.as_deref()).map_or_else(
        || "its outcome is missing".to_owned(),
        |verdict| format!("verdict {}", word(verdict)),
    );
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

fn row(fact: &ProvenRecord) -> Vec<String> {
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
pub(crate) fn written(written: &ExportSummary, file: &str) -> String {
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
pub(crate) fn checked(checked: &ExportCheck) -> String {
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
pub(crate) fn checked_json(checked: &ExportCheck) -> String {
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
