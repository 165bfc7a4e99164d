//! The documents of the ledger's outcomes.

use std::collections::BTreeMap;

use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::import::ImportSummary;
use quorate_ledger::prove::ProvenRecord;
use quorate_ledger::retention::Period;
use quorate_ledger::store::STREAM;
use quorate_ledger::verify::{Cosignature, OtherLogs, UnknownLine, WitnessCheck};

use super::wording::{amount, instant, minute};
use super::{Doc, Entry, Table, Text, Tone};
use crate::ledger::{
    AcceptedKeys, AcceptedRollback, CheckedProof, Divergence, Erasure, ExportCheck, HoldChange, Holds,
    Import, LedgerCounts, LedgerStats, LegalHold, PlannedErasure, PublicKey, Sealed, Verification,
    VerifiedProof, VerifyReport,
};

/// A document of lines.
fn lines<T: Into<Text>>(lines: impl IntoIterator<Item = T>) -> Doc {
    let mut doc = Doc::new();
    lines.into_iter().for_each(|line| doc.line(line));
    doc
}

impl Sealed {
    /// The ledger's own records that were signed belatedly; empty unless that was requested. The note itself is
    /// [`Sealed::note`], whose bytes count.
    pub fn doc(&self) -> Doc {
        lines(self.signed.iter().map(|signed| match signed.as_slice() {
            [] => "the ledger's own records are all signed".to_owned(),
            some => {
                let names: Vec<String> = some.iter().map(|n| format!("{STREAM}/{n}")).collect();
                format!("signed {}", names.join(", "))
            }
        }))
    }
}

impl AcceptedRollback {
    /// The accepted loss.
    pub fn doc(&self) -> Doc {
        let size = self.size;
        match &self.departs {
            Some(departs) => lines([
                format!("accepted: {departs}"),
                format!("this machine now keeps the checkpoint over {size} records"),
            ]),
            None => lines([format!(
                "nothing to accept: the ledger contains its kept checkpoints; it now has {size} records"
            )]),
        }
    }
}

impl AcceptedKeys {
    /// The accepted keys.
    pub fn doc(&self) -> Doc {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let size = self.size;
        match keys.as_slice() {
            [] => lines([format!(
                "nothing to accept: an earlier key vouches for each key of the ledger; it now has {size} records"
            )]),
            keys => lines([
                format!("accepted: {}", keys.join(", ")),
                format!(
                    "the last checkpoint is over {size} records; send the new key to everyone who verifies the ledger"
                ),
            ]),
        }
    }
}

impl LedgerStats {
    /// The numbers as a table.
    pub fn doc(&self) -> Doc {
        let LedgerStats { ledger, file_bytes, counts } = self;
        let LedgerCounts { recent, .. } = counts;
        let sealed = match (&counts.checkpoint, counts.checkpoint_at_ms) {
            (Some(sealed), Some(at_ms)) => {
                let signers = match sealed.keys.as_slice() {
                    [] => "unsigned".to_owned(),
                    keys => format!("signed by {}", keys.join(" and ")),
                };
                format!("over {} records, {} (UTC), {signers}", sealed.tree.size, minute(at_ms)).into()
            }
            _ => Text::toned(Tone::Absent, "none yet"),
        };
        let unsealed = match counts.unsealed {
            0 => Text::toned(Tone::Good, "none"),
            more => Text::toned(Tone::Fair, more.to_string()),
        };
        let row = |what: &str, how: String| [Text::from(what), Text::from(how)];
        let LedgerCounts { records, runs, open, signed, held, erased, imported, bodies, .. } = counts;
        let rows = [
            row("ledger", format!("{ledger}, {}", size(*file_bytes))),
            row("records", format!("{records}, {} of heads and bodies", size(counts.record_bytes))),
            row("texts", format!("{bodies}, {}", size(counts.body_bytes))),
            row("runs", format!("{runs}, {open} of them open, {signed} signed")),
            row(
                "conversations",
                format!("{}, {} of the records", counts.conversations, counts.conversation_records),
            ),
            row("kept or erased", format!("{held} runs on hold, {erased} records erased")),
            row("from elsewhere", format!("{imported} runs")),
            row(
                &format!("last {} days", recent.days),
                format!("{} runs, {} records, {}", recent.runs, recent.records, size(recent.bytes)),
            ),
            ["last checkpoint".into(), sealed],
            ["not sealed yet".into(), unsealed],
        ];
        let mut doc = Doc::new();
        doc.table(Table::new(["what", "how much"]).with_rows(rows));
        doc
    }
}

/// A number of bytes in readable units.
fn size(bytes: u64) -> String {
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

impl CheckedProof {
    /// The proven records, and what they say.
    pub fn doc(&self) -> Doc {
        let VerifiedProof { origin, tree, trusted_key, keys, records } = &self.proven;
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let mut doc = Doc::new();
        doc.title(match trusted_key {
            Some(key) => Text::toned(Tone::Good, "Holds").and(format!(" against the key {key}")),
            None => Text::toned(Tone::Fair, "Holds against an untrusted key:")
                .and(format!(" {}", keys.join(" and "))),
        });
        let mut runs: BTreeMap<&str, Vec<&ProvenRecord>> = BTreeMap::new();
        records.iter().for_each(|fact| runs.entry(&fact.run).or_default().push(fact));
        doc.items(runs.iter().map(|(run, facts)| {
            let at = |fact: Option<&&ProvenRecord>| fact.map_or(String::new(), |fact| fact.at.clone());
            let signed = facts.iter().filter(|fact| !fact.signers.is_empty()).count();
            let counts = format!(": {} records, {signed} of them signed; ", facts.len());
            let body = lines([format!("from {} to {}", at(facts.first()), at(facts.last()))]);
            Entry { line: Text::strong(*run).and(counts).and(outcome(facts)), body }
        }));
        doc.line(format!(
            "They are among the first {} records of the ledger {origin}, unchanged.",
            tree.size
        ));
        if self.is_report {
            doc.line("The report shows the content of these records, and nothing else.");
        }
        let row = |fact: &ProvenRecord| -> [Text; 6] {
            let signers: Vec<String> = fact.signers.iter().map(ToString::to_string).collect();
            let known = |is_known, text: String, otherwise| match is_known {
                true => Text::from(text),
                false => Text::toned(Tone::Absent, otherwise),
            };
            [
                format!("{}/{}", fact.run, fact.n).into(),
                (&fact.kind).into(),
                (&fact.at).into(),
                (fact.index + 1).to_string().into(),
                known(fact.data.is_some(), "here".to_owned(), "not here"),
                known(!signers.is_empty(), signers.join(" "), "none"),
            ]
        };
        let table = Table::new(["record", "kind", "at (UTC)", "place", "body", "signed by"]);
        doc.table(table.with_rows(records.iter().map(row)));
        doc
    }
}

/// The outcome of a run, and a person's override.
fn outcome(facts: &[&ProvenRecord]) -> Text {
    let word = |word: &str| Text::toned(Tone::of_word(word), word.to_uppercase());
    let mut text = match facts.iter().rev().find_map(|fact| fact.verdict.as_deref()) {
        Some(verdict) => Text::from("verdict ").and(word(verdict)),
        None => "its outcome is missing".into(),
    };
    let left_out = facts.iter().filter(|fact| fact.kind == Kind::Override.as_str() && fact.data.is_none());
    let left_out = match left_out.count() {
        0 => None,
        1 => Some("a person's decision is left out".to_owned()),
        more => Some(format!("{more} persons' decisions are left out")),
    };
    if let Some(left_out) = left_out {
        text = text.and("; ").and(Text::toned(Tone::Bad, left_out));
    }
    let gaps: Vec<String> = gaps(facts).map(|(from, to)| span(from, to)).collect();
    if !gaps.is_empty() {
        let gaps = format!("missing records: {}", gaps.join(", "));
        text = text.and("; ").and(Text::toned(Tone::Absent, gaps));
    }
    for fact in facts {
        let Some(decided) = &fact.override_decision else { continue };
        let by = decided.by.as_deref().unwrap_or("a person");
        text = text.and(format!("; {by} decided ")).and(word(&decided.verdict));
        if let Some(council) = &decided.council {
            text = text.and(" over ").and(word(council));
        }
        text = text.and(format!(" on {}, an override", fact.at));
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

impl Import {
    /// The merged runs.
    pub fn doc(&self) -> Doc {
        let ImportSummary { verified, runs, unchanged_runs, skipped_streams } = &self.summary;
        let (count, merged) = (runs.len(), runs.values().sum::<u64>());
        let verb = if self.dry_run { "would be merged" } else { "merged" };
        let mut doc =
            lines([format!("{count} runs with {merged} records {verb}, {unchanged_runs} already present")]);
        let records = format!("{} records of {}", verified.totals.records, verified.header.origin);
        doc.facts([("verified", records), ("signed by", verified.key.clone())]);
        doc.items(runs.iter().map(|(run, count)| format!("{run}: {count} records")));
        if !skipped_streams.is_empty() {
            let streams: Vec<&str> = skipped_streams.iter().map(String::as_str).collect();
            doc.line(format!("not merged, since they are not runs: {}", streams.join(", ")));
        }
        doc
    }
}

impl ExportCheck {
    /// The verified records.
    pub fn doc(&self) -> Doc {
        let extent = match (&self.runs, self.from) {
            (Some(runs), _) => format!("of {} runs alone", runs.len()),
            (None, Some(from)) => format!("all after the first {from}"),
            (None, None) => "all of them".to_owned(),
        };
        lines([
            match &self.key {
                Some(key) => format!("Holds against the key {key}"),
                None => "Holds, but its key is not trusted".to_owned(),
            },
            format!(
                "{} of the {} records of {}, {extent}; {} texts, {} signatures",
                self.records, self.size, self.origin, self.texts, self.signatures
            ),
        ])
    }
}

/// The most runs that a document lists.
const SHOWN: usize = 20;

impl Erasure {
    /// The erased records by run, and what was left alone.
    pub fn doc(&self) -> Doc {
        let mut doc = Doc::new();
        if self.due.is_empty() {
            doc.line("nothing to erase");
        } else {
            self.add_due(&mut doc);
        }
        if !self.logs.is_empty() {
            let logs = self.logs.join(", ");
            doc.line(format!("Not touched: {logs} has lines of these runs, with answers in them."));
        }
        if let Some(elsewhere) = self.elsewhere {
            doc.line(format!("Not reached: it stays {elsewhere}."));
        }
        if !self.held.is_empty() {
            let runs: Vec<&str> = self.held.iter().take(SHOWN).map(|run| &**run).collect();
            let dots = if self.held.len() > SHOWN { ", …" } else { "" };
            doc.line(format!("On hold, and left alone: {}{dots}.", runs.join(", ")));
        }
        if self.open > 0 {
            doc.line(format!("Not ended, and left alone: {}.", self.open));
        }
        doc
    }

    fn add_due(&self, doc: &mut Doc) {
        let due = &self.due;
        let row = |erasure: &PlannedErasure| {
            let period = match erasure.period {
                Period::Days(days) => format!("{days} days"),
                Period::UntilEnd => "until its end".to_owned(),
                Period::Forever => "for ever".to_owned(),
            };
            [
                erasure.run.to_string(),
                erasure.ended_ms.map_or_else(|| "goes on".to_owned(), minute),
                period,
                erasure.count().to_string(),
                erasure.texts.len().to_string(),
                size(erasure.bytes),
            ]
        };
        let table = Table::new(["run", "ended (UTC)", "kept", "records", "texts", "bodies"]);
        doc.table(table.with_rows(due.iter().take(SHOWN).map(row)));
        if due.len() > SHOWN {
            doc.line(format!("… and {} more; `--format json` lists all", due.len() - SHOWN));
        }
        let done = if self.dry_run { "would be erased" } else { "erased" };
        let records: u64 = due.iter().map(PlannedErasure::count).sum();
        let texts: usize = due.iter().map(|erasure| erasure.texts.len()).sum();
        let (records, texts) = (amount(records, "record"), amount(texts as u64, "text"));
        let runs = amount(due.len() as u64, "run");
        doc.line(Text::strong(format!("{done}: the bodies of {records} of {runs}, and {texts}")));
    }
}

impl HoldChange {
    /// Whether the run is on hold now.
    pub fn doc(&self) -> Doc {
        let run = &self.run;
        lines([match (self.held, self.fresh) {
            (true, true) => format!("run {run} is on hold: its answers are never erased"),
            (true, false) => format!("run {run} was on hold already"),
            (false, true) => {
                format!("run {run} is released: past its retention, `quorate ledger gc` erases its answers")
            }
            (false, false) => format!("run {run} was not on hold"),
        }])
    }
}

impl Holds {
    /// The runs as a table.
    pub fn doc(&self) -> Doc {
        if self.holds.is_empty() {
            return lines(["no run is on hold"]);
        }
        let row = |hold: &LegalHold| {
            let reason = hold.reason.clone().unwrap_or_else(|| "–".to_owned());
            [hold.run.to_string(), minute(hold.since_ms), hold.by.clone(), reason]
        };
        let mut doc = Doc::new();
        doc.table(Table::new(["run", "since (UTC)", "by", "reason"]).with_rows(self.holds.iter().map(row)));
        doc
    }
}

impl Verification {
    /// The differences, then the checks and their results.
    pub fn doc(&self) -> Doc {
        let Verification(report) = self;
        let mut doc = Doc::new();
        let (tone, word) = match report.divergence_count {
            0 => (Tone::Good, "holds"),
            _ => (Tone::Bad, "diverges"),
        };
        let places = match report.divergence_count {
            0 => String::new(),
            1 => ": in one place".to_owned(),
            found => format!(": in {found} places"),
        };
        doc.title(Text::from(&report.ledger).and(" ").and(Text::toned(tone, word)).and(places));
        if let Some(first) = report.divergences.first() {
            doc.line(format!("First: {first}"));
            let table = Table::new(["what", "of", "record", "place", "how"]);
            doc.table(table.with_rows(report.divergences.iter().map(divergence)));
            let unlisted = report.divergence_count - report.divergences.len() as u64;
            if unlisted > 0 {
                doc.line(format!("and {unlisted} more"));
            }
        }
        doc.items(findings(report));
        doc
    }
}

fn divergence(divergence: &Divergence) -> [Text; 5] {
    [
        Text::toned(Tone::Bad, divergence.kind.to_string()),
        divergence.part.to_string().into(),
        divergence.record.as_deref().or(divergence.run.as_deref()).unwrap_or_default().into(),
        record_place(divergence).into(),
        (&divergence.what).into(),
    ]
}

/// The positions in the ledger.
fn record_place(divergence: &Divergence) -> String {
    match (divergence.seq, divergence.last_seq) {
        (Some(place), Some(until)) => format!("{place} to {until}"),
        (Some(place), None) => place.to_string(),
        _ => String::new(),
    }
}

/// The checks and their results, one sentence each.
fn findings(report: &VerifyReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let since = match report.since {
        0 => String::new(),
        since => format!(", behind {since} that a trusted checkpoint is over"),
    };
    sentences.push(format!(
        "{} records of {} runs and other streams, {} without their body, {} texts{since}",
        report.records, report.streams, report.erased, report.texts
    ));
    sentences.push(match (&report.origin, report.checkpoints.count) {
        (Some(origin), count) if count > 0 => format!(
            "{count} checkpoints of {origin}, the last over {} records; {} of them unsigned; {} records not sealed yet",
            report.checkpoints.sealed,
            report.checkpoints.unsigned,
            report.checkpoints.unsealed
        ),
        (_, _) => format!("no checkpoint; {} records not sealed yet", report.checkpoints.unsealed),
    });
    if report.checkpoints.unproven > 0 {
        sentences.push(format!(
            "{} records are neither signed nor under a signed checkpoint, so their author is unproven: a crash leaves such \
             records, and a person with write access to the ledger can add some; inspect them, then seal them with `quorate \
             ledger checkpoint`",
            report.checkpoints.unproven
        ));
    }
    sentences.push(match report.keys.own {
        Some(true) => {
            format!("verified with the ledger's own key, which signed {} records", report.checkpoints.signed)
        }
        Some(false) => "the ledger's own key did not sign the last checkpoint".to_owned(),
        None if report.checkpoints.signed > 0 => {
            "verified only with keys that the ledger names: its own key is not on this machine".to_owned()
        }
        None => "no checkpoint is signed".to_owned(),
    });
    match (report.keys.given.len(), report.keys.given.iter().filter(|signed| **signed).count()) {
        (0, _) => sentences.push("verified with no key from `--key`".to_owned()),
        (keys, good) if keys == good => sentences.push("verified with every given key".to_owned()),
        (keys, good) => sentences.push(format!("verified with {good} of the {keys} given keys")),
    }
    if let Some(kept) = &report.kept {
        sentences.push(match (kept.copies, kept.unreadable) {
            (0, 0) => "this machine keeps no checkpoint of the ledger: this is its first use here, or the copies were \
                       removed"
                .to_owned(),
            (copies, _) => format!(
                "consistent with {copies} copies of the last checkpoint signed on this machine, over {} records",
                kept.size
            ),
        });
    }
    for rollback in &report.rollbacks {
        sentences.push(format!(
            "a rollback was accepted by {}: {} (ledger/{})",
            rollback.by, rollback.reason, rollback.n
        ));
    }
    for accepted in &report.key_changes.accepted {
        let key = PublicKey::from_text(&accepted.key).map(|key| key.id().to_string());
        sentences.push(format!(
            "the key {} was accepted by {}, since no earlier key could vouch for it: {} (ledger/{})",
            key.unwrap_or_else(|_| accepted.key.clone()),
            accepted.by,
            accepted.reason,
            accepted.n
        ));
    }
    match &report.witness {
        Some(WitnessCheck { file: Some(file), checkpoints, size, fragments }) => {
            let fragments = match fragments {
                0 => String::new(),
                fragments => format!("; {fragments} parts of it are not signed notes"),
            };
            sentences.push(format!(
                "the witness {file} has {checkpoints} checkpoints, the largest over {size} records{fragments}"
            ));
        }
        _ if report.cosignature.is_none() => sentences.push("no witness".to_owned()),
        _ => {}
    }
    if let Some(Cosignature { name, size, at_s }) = &report.cosignature {
        let at_ms = i64::try_from(*at_s).unwrap_or(i64::MAX).saturating_mul(1000);
        let at = instant(at_ms);
        sentences.push(format!("the witness {name} signed {size} records at {at}, by its clock"));
    }
    sentences.push(format!(
        "{} runs are signed, with {} signatures; {} of them by keys that only they name",
        report.signatures.runs, report.signatures.count, report.signatures.self_vouched
    ));
    if report.signatures.unsigned_own > 0 {
        sentences.push(format!(
            "{} of the ledger's own records are not signed, and no known key should have signed them",
            report.signatures.unsigned_own
        ));
    }
    if let Some(logged) = &report.log {
        sentences.push(format!("{} lines of {} belong to its runs", logged.ours, logged.file));
        if let Some(UnknownLine { line, run }) = &logged.first_unknown {
            sentences.push(format!(
                "{} lines of the log name runs that this ledger does not have: the first is line {line}, {run}",
                logged.unknown
            ));
        }
        if let Some(OtherLogs { runs, file }) = &logged.elsewhere {
            sentences.push(format!("{runs} runs log elsewhere ({file}); their lines were not checked"));
        }
        if logged.unreadable > 0 {
            sentences.push(format!(
                "{} lines of the log cannot be read, or follow up on a run without naming it; they are not counted",
                logged.unreadable
            ));
        }
    }
    if report.open.count > 0 {
        let open_runs: Vec<&str> = report.open.runs.iter().map(|run| &**run).collect();
        let more = if report.open.count > open_runs.len() as u64 { " and others" } else { "" };
        sentences.push(format!("{} runs are open: {}{more}", report.open.count, open_runs.join(", ")));
    }
    sentences.push(undetectable(report));
    sentences
}

/// What these checks cannot detect.
fn undetectable(report: &VerifyReport) -> String {
    let kept_size = report.kept.map_or(0, |copies| copies.size);
    let witnessed = report.witness.as_ref().map_or(0, |witness| witness.size);
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
    let added = match report.signatures.unsigned_records {
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
