//! Signatures in the ledger's own stream that were added or taken away (D11).

use quorate_kernel::ports::ledger::{Durability, Kind as Word};
use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use quorate_ledger::verify::{Kind, Options, Part, StartPoint};
use quorate_ledger::witness::Witness;
use serde_json::json;

use super::world::{A, AT_MS, World, entry};

/// A world with a hold that is sealed; gives the hold's number in the stream.
async fn world_with_hold() -> (World, u64) {
    let world = World::new().await;
    let store = Store::open(&world.db()).await.expect("it opens").store;
    store
        .append_ledger_record(entry(Word::Held, json!({"run": A, "by": "ada"})), &world.key())
        .await
        .expect("written");
    store.seal(&[world.key()], AT_MS, false, Durability::Synced).await.expect("written");
    store.close().await;
    world.sql(&format!("INSERT OR IGNORE INTO held VALUES ('{A}')")).await;
    assert_eq!(world.verify(world.options()).await.divergences, []);
    (world, 4)
}

#[tokio::test]
async fn a_forged_signature_is_found_on_every_record() {
    // D3, D11: a row by an unknown key, and one that is of another record.
    let (world, hold) = world_with_hold().await;
    let own = world.key().public().id();
    for key in ["00000000000000000000000000000000", &own.to_string()] {
        for n in 0..=hold + 1 {
            let copy = world.copy();
            copy.sql(&format!(
                "INSERT OR REPLACE INTO signature SELECT 'ledger', {n}, '{key}', signature FROM signature \
                 WHERE run <> 'ledger' LIMIT 1"
            ))
            .await;
            let found = copy.first_divergence(copy.options()).await;
            let kind = if n == hold { Kind::Changed } else { Kind::Inserted };
            assert_eq!((found.kind, found.part, found.n), (kind, Part::Signature, Some(n)), "{found}");
        }
    }
}

#[tokio::test]
async fn records_that_nothing_proves_are_counted_and_no_strict_ledger() {
    // D2, D3: who can write the file appends what fits, and an unsigned checkpoint proves nothing of it.
    let world = World::new().await;
    let strict =
        || Options { strict: true, local_checkpoints: Some(local_checkpoints(&world)), ..world.options() };
    let report = world.verify(strict()).await;
    assert_eq!((report.divergences, report.unproven, report.unsigned_records), (vec![], 0, 15));
    let override_of = |reason: &str| {
        let data = json!({"verdict": "HOLD", "reason": reason, "by": "mallory", "logged": true});
        entry(Word::Override, data)
    };
    world.forge(A, override_of("Because."), None).await;
    world.sql(&format!("UPDATE run SET override = 'HOLD' WHERE run = '{A}'")).await;
    let store = Store::open(&world.db()).await.unwrap().store;
    store.seal(&[], AT_MS, false, Durability::Synced).await.unwrap();
    store.close().await;
    world.forge(A, override_of("Again."), None).await;
    let report = world.verify(world.options()).await;
    assert_eq!((report.divergences, report.unproven, report.unsealed), (vec![], 2, 1));
    let found = world.first_divergence(strict()).await;
    assert_eq!(
        (found.kind, found.part, found.seq, found.last_seq),
        (Kind::Inserted, Part::Checkpoint, Some(26), Some(28))
    );
    assert!(found.what.contains("quorate ledger checkpoint"), "{found}");
    let store = Store::open(&world.db()).await.unwrap().store;
    store.seal(&[world.key()], AT_MS, false, Durability::Synced).await.unwrap();
    store.close().await;
    assert_eq!(world.verify(strict()).await.divergences, []);
}

/// A copy of its last checkpoint, as it is kept.
fn local_checkpoints(world: &World) -> LocalCheckpoints {
    let notes = Witness::parse(&std::fs::read_to_string(world.witness_path()).expect("read")).notes;
    let copy = CheckpointCopy { path: "kept".into(), note: Ok(notes.last().expect("a checkpoint").clone()) };
    LocalCheckpoints { copies: vec![copy], replaced_origin: None, accepted_keys: Vec::new() }
}

#[tokio::test]
async fn a_signature_that_is_gone_is_found_under_a_checkpoint() {
    // D11: it is the first record of its kind, so no other one says that the stream is signed.
    let (world, hold) = world_with_hold().await;
    world.sql("DELETE FROM signature WHERE run = 'ledger'").await;
    for since in [None, Some(StartPoint::Size(24))] {
        let options = Options { since, ..world.options() };
        let found = world.first_divergence(options).await;
        assert_eq!(
            (found.kind, found.part, found.n),
            (Kind::Removed, Part::Signature, Some(hold)),
            "{found}"
        );
    }
    let found = world.first_divergence(Default::default()).await;
    assert_eq!(found.kind, Kind::Removed, "the checkpoints name the key: {found}");
}
