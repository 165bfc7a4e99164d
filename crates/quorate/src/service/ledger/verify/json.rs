//! A verification as one JSON object.

use quorate_kernel::entropy::hex;
use quorate_ledger::store::STREAM;
use quorate_ledger::verify::{AcceptedKey, Divergence, VerifyReport, Rollback};
use serde_json::{Value, json};

use super::Verification;

/// The version of the JSON.
pub const SCHEMA: &str = "quorate.verify/v1";

/// `{schema, holds, ledger, origin, records, erased, streams, size, root, since, checkpoints: {count, unsigned, sealed, signed,
/// unsealed, unproven}, keys: {own, given}, signatures: {runs, count, self_vouched, unsigned_own,
/// unsigned_records}, last_signed, kept: {copies, size, unreadable}, rollbacks: [{record, by, reason}], accepted_keys: [{record, key, by, reason}], witness, cosigned: {witness, size, at}, log, open, texts, found, divergences:
/// [{kind, part, run, n, place, until, what}]}`.
pub fn json(verified: &Verification) -> String {
    let Verification { ledger, log, witness, report, .. } = verified;
    let VerifyReport { tree, origin, since, records, erased, streams, texts, divergence_count: found, .. } = report;
    let kept = report.witness.as_ref().map(|kept| {
        json!({"file": witness, "checkpoints": kept.checkpoints, "size": kept.size, "torn": kept.fragments})
    });
    let lines = report.log.as_ref().map(|lines| {
        let first = lines.first_unknown.as_ref().map(|(number, run)| json!({"line": number, "run": &**run}));
        let elsewhere = lines.first_elsewhere.as_ref().map(|file| json!({"runs": lines.elsewhere, "file": file.display().to_string()}));
        json!({"file": log, "ours": lines.ours, "elsewhere": elsewhere, "unknown": lines.unknown, "first_unknown": first, "unreadable": lines.unreadable})
    });
    let object = json!({
        "schema": SCHEMA,
        "holds": report.is_clean(),
        "ledger": ledger,
        "origin": origin,
        "records": records,
        "erased": erased,
        "streams": streams,
        "texts": texts,
        "size": tree.map(|tree| tree.size),
        "root": tree.map(|tree| hex(&tree.root)),
        "since": since,
        "checkpoints": {
            "count": report.checkpoints, "unsigned": report.unsigned, "sealed": report.sealed,
            "signed": report.signed, "unsealed": report.unsealed, "unproven": report.unproven,
        },
        "keys": {"own": report.ledger_key_signed, "given": report.trusted_keys_signed},
        "signatures": {
            "runs": report.signed_runs, "count": report.signatures, "self_vouched": report.self_vouched_runs,
            "unsigned_own": report.unsigned_ledger_records, "unsigned_records": report.unsigned_records,
        },
        "last_signed": report.local_checkpoints.filter(|kept| kept.checkpoints > 0).map(|kept| kept.size),
        "kept": report.local_checkpoints.map(|kept| json!({"copies": kept.checkpoints, "size": kept.size, "unreadable": kept.fragments})),
        "rollbacks": report.rollbacks.iter().map(rollback).collect::<Vec<_>>(),
        "accepted_keys": report.key_changes.accepted.iter().map(accepted_key).collect::<Vec<_>>(),
        "witness": kept,
        "cosigned": report.cosignature.as_ref().map(|one| json!({"witness": one.name, "size": one.size, "at": one.at_s})),
        "log": lines,
        "open": {"count": report.open, "runs": report.open_runs.iter().map(|run| &**run).collect::<Vec<_>>()},
        "found": found,
        "divergences": report.divergences.iter().map(divergence).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn rollback(rollback: &Rollback) -> Value {
    json!({"record": format!("{STREAM}/{}", rollback.n), "by": rollback.by, "reason": rollback.reason})
}

fn accepted_key(accepted: &AcceptedKey) -> Value {
    let AcceptedKey { n, key, by, reason } = accepted;
    json!({"record": format!("{STREAM}/{n}"), "key": key, "by": by, "reason": reason})
}

fn divergence(divergence: &Divergence) -> Value {
    json!({
        "kind": divergence.kind.as_str(),
        "part": divergence.part.as_str(),
        "run": divergence.run.as_deref(),
        "n": divergence.n,
        "record": divergence.record().filter(|_| divergence.n.is_some()),
        "place": divergence.seq,
        "until": divergence.last_seq,
        "what": divergence.what,
    })
}
