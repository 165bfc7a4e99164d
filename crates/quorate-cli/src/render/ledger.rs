//! The statistics of the ledger, and its checkpoints.

use quorate_diagnostics::render::TextOptions;
use quorate_kernel::entropy::hex;
use quorate_ledger::store::CheckpointRecord;
use quorate_ledger::store::STREAM;
use serde_json::{Value, json};

use super::layout::table;
use super::paint::{Paint, finish, one_line};
use super::wording::{instant, minute};
use quorate::service::ledger::accept_key::AcceptedKeys;
use quorate::service::ledger::rollback::AcceptedRollback;
use quorate::service::ledger::stats::{LedgerStats, RECENT_DAYS};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_say_them() {
        let sizes = [0, 1023, 1024, 1536, 1024 * 1024, 5 * 1024 * 1024 * 1024 + 1].map(size);
        assert_eq!(sizes, ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB"]);
    }
}
