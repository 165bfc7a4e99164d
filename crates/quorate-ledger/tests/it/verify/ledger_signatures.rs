//! Signatures in the ledger's own stream that were added or removed (D11).

use quorate_kernel::ports::ledger::{Durability, Kind};
use quorate_kernel::record::AcceptedKey;
use quorate_ledger::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use quorate_ledger::merkle::TreeHead;
use quorate_ledger::note::{Checkpoint, Note, Signer};
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::Succession;
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyOptions};
use quorate_ledger::witness::Witness;
use quorate_ledger::{Store, keys};
use serde_json::{Value, json};

use super::world::{A, AT_MS, B, World, append, entry, review};

/// A world with a sealed hold. Returns the hold's number in the stream.
async fn world_with_hold() -> (World, u64) {
    let world = World::new().await;
    let store = Store::open(&world.db()).await.expect("it opens").store;
    store
        .append_ledger_record(entry(Kind::Held, json!({"run": A, "by": "ada"})), &world.key())
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
    // D3, D11: a signature by an unknown key, and a signature of another record.
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
            let kind = if n == hold { DivergenceKind::Changed } else { DivergenceKind::Inserted };
            assert_eq!((found.kind, found.part, found.n), (kind, LedgerPart::Signature, Some(n)), "{found}");
        }
    }
}

#[tokio::test]
async fn records_that_nothing_proves_are_counted_and_no_strict_ledger() {
    // D2, D3: an attacker with write access appends valid records, and an unsigned checkpoint proves nothing about
    // them.
    let world = World::new().await;
    let strict = || VerifyOptions {
        strict: true,
        local_checkpoints: Some(local_checkpoints(&world)),
        ..world.options()
    };
    let report = world.verify(strict()).await;
    assert_eq!(
        (report.divergences, report.checkpoints.unproven, report.signatures.unsigned_records),
        (vec![], 0, 15)
    );
    let override_of = |reason: &str| {
        let data = json!({"verdict": "HOLD", "reason": reason, "by": "mallory", "logged": true});
        entry(Kind::Override, data)
    };
    world.forge(A, override_of("Because."), None).await;
    world.sql(&format!("UPDATE run SET override = 'HOLD' WHERE run = '{A}'")).await;
    let store = Store::open(&world.db()).await.unwrap().store;
    store.seal(&[], AT_MS, false, Durability::Synced).await.unwrap();
    store.close().await;
    world.forge(A, override_of("Again."), None).await;
    let report = world.verify(world.options()).await;
    assert_eq!(
        (report.divergences, report.checkpoints.unproven, report.checkpoints.unsealed),
        (vec![], 2, 1)
    );
    let found = world.first_divergence(strict()).await;
    assert_eq!(
        (found.kind, found.part, found.seq, found.last_seq),
        (DivergenceKind::Inserted, LedgerPart::Checkpoint, Some(26), Some(28))
    );
    assert!(found.what.contains("quorate ledger checkpoint"), "{found}");
    let store = Store::open(&world.db()).await.unwrap().store;
    store.seal(&[world.key()], AT_MS, false, Durability::Synced).await.unwrap();
    store.close().await;
    assert_eq!(world.verify(strict()).await.divergences, []);
}

/// The saved copy of its last checkpoint.
fn local_checkpoints(world: &World) -> LocalCheckpoints {
    let notes = Witness::parse(&std::fs::read_to_string(world.witness_path()).expect("read")).notes;
    let copy = CheckpointCopy { path: "kept".into(), note: Ok(notes.last().expect("a checkpoint").clone()) };
    LocalCheckpoints { copies: vec![copy], replaced_origin: None, accepted_keys: Vec::new() }
}

#[tokio::test]
async fn a_signature_that_is_gone_is_found_under_a_checkpoint() {
    // D11: it is the first record of its kind, so no other record shows that the stream is signed.
    let (world, hold) = world_with_hold().await;
    world.sql("DELETE FROM signature WHERE run = 'ledger'").await;
    for since in [None, Some(StartPoint::Size(24))] {
        let options = VerifyOptions { since, ..world.options() };
        let found = world.first_divergence(options).await;
        assert_eq!(
            (found.kind, found.part, found.n),
            (DivergenceKind::Removed, LedgerPart::Signature, Some(hold)),
            "{found}"
        );
    }
    let found = world.first_divergence(Default::default()).await;
    assert_eq!(found.kind, DivergenceKind::Removed, "the checkpoints name the key: {found}");
}

#[tokio::test]
async fn what_was_signed_before_the_first_checkpoint_is_by_its_key() {
    // D11: no key is known from earlier, and none is given here.
    let world = World { dir: tempfile::tempdir().expect("a directory") };
    let store = Store::open(&world.db()).await.expect("it opens").store;
    append(&store, A, 0, &review(None)).await;
    append(&store, B, 0, &review(None)).await;
    let held = |run: &str| entry(Kind::Held, json!({"run": run, "by": "ada"}));
    let own =
        keys::KeyDirectory::new(world.dir.path()).load_or_create(keys::KeyPurpose::Ledger).expect("made");
    world.forge("ledger", held(A), None).await;
    store.append_ledger_record(held(B), &own).await.expect("written");
    world.sql(&format!("INSERT OR IGNORE INTO held VALUES ('{A}')")).await;
    let report = world.verify(VerifyOptions::default()).await;
    assert_eq!((report.divergences, report.signatures.unsigned_own), (vec![], 2), "nothing says which key");
    let report =
        world.verify(VerifyOptions { ledger_keys: vec![own.public()], ..VerifyOptions::default() }).await;
    let found: Vec<_> = report.divergences.iter().map(|found| (found.kind, found.part, found.n)).collect();
    assert_eq!(
        found,
        [(DivergenceKind::Inserted, LedgerPart::Signature, Some(0))],
        "no checkpoint is over it"
    );
    assert_eq!(report.signatures.unsigned_own, 0);
    store.sign_unsigned_ledger_records(&own).await.expect("signed");
    store.seal(&[], AT_MS, false, Durability::Synced).await.expect("sealed");
    store.seal(&[own.into()], AT_MS, true, Durability::Synced).await.expect("sealed");
    store.close().await;
    for options in [VerifyOptions::default(), world.options()] {
        assert_eq!(world.verify(options).await.divergences, []);
    }
    for forged in [
        "signature = (SELECT signature FROM signature WHERE n = 0)",
        "key = '00000000000000000000000000000000'",
    ] {
        let copy = World { dir: tempfile::tempdir().expect("a directory") };
        std::fs::copy(world.db(), copy.db()).expect("copied");
        copy.sql(&format!("UPDATE signature SET {forged} WHERE n = 1")).await;
        let found = copy.first_divergence(VerifyOptions::default()).await;
        assert_eq!(
            (found.kind, found.part, found.n),
            (DivergenceKind::Changed, LedgerPart::Signature, Some(1)),
            "{found}"
        );
    }
}

#[tokio::test]
async fn an_unsigned_record_behind_the_last_checkpoint_was_put_in() {
    // D11
    let world = World::new().await;
    let n = world.forge("ledger", entry(Kind::Held, json!({"run": A, "by": "mallory"})), None).await;
    world.sql(&format!("INSERT INTO held VALUES ('{A}')")).await;
    let report = world.verify(world.options()).await;
    let found: Vec<_> = report.divergences.iter().map(|found| (found.kind, found.part, found.n)).collect();
    assert_eq!(found, [(DivergenceKind::Inserted, LedgerPart::Signature, Some(n))]);
}

#[tokio::test]
async fn an_unsigned_checkpoint_claims_nothing_that_takes_a_signature() {
    // D2: the last record, which no other one covers, is rewritten without its signature.
    let world = World::new().await;
    let rewritten = async |key: &str, value: Value| {
        let copy = world.copy();
        copy.rewrite("ledger", 3, |data| {
            data.extend([("note".to_owned(), json!(null)), ("keys".to_owned(), json!([]))]);
            data.insert(key.to_owned(), value.clone());
        })
        .await;
        let report = copy.verify(copy.options()).await;
        report.divergences.iter().map(|found| (found.kind, found.part, found.n)).collect::<Vec<_>>()
    };
    assert_eq!(rewritten("note", json!(null)).await, []);
    let key = world.key().public();
    let accepted = json!([{"key": key.to_string(), "by": "ada", "reason": "lost"}]);
    for (key, value) in [
        ("origin", json!("quorate/elsewhere")),
        ("accepted", accepted),
        ("keys", json!(["quorate/x+00000000+AQ=="])),
    ] {
        let found = rewritten(key, value).await;
        assert_eq!(found, [(DivergenceKind::Changed, LedgerPart::Checkpoint, Some(3))], "{key}");
    }
}

#[tokio::test]
async fn a_note_says_what_its_record_says_and_no_more() {
    // D2: it is signed by the ledger's key as well.
    let world = World::new().await;
    let report = world.verify(world.options()).await;
    let notes = Witness::parse(&std::fs::read_to_string(world.witness_path()).expect("read")).notes;
    let tree =
        *Checkpoint::parse(Note::parse(notes[3].as_bytes()).expect("a note").text()).expect("one").tree();
    let origin = report.origin.expect("sealed");
    let other = TreeHead { root: [7; 32], ..tree };
    let signed = |checkpoint: Checkpoint| {
        let signer = Signer::new(&origin, world.key()).expect("a name");
        checkpoint.sign(&signer).expect("signed").to_string()
    };
    let extended = || {
        let mut note =
            Note::new(&format!("{}more\n", Checkpoint::new(&origin, tree).expect("one"))).expect("one");
        note.sign(&Signer::new(&origin, world.key()).expect("a name")).expect("signed");
        note.to_string()
    };
    let own = Checkpoint::new(&origin, tree).expect("one");
    for (note, holds) in [
        (signed(own), true),
        (extended(), false),
        (signed(Checkpoint::new(&origin, other).expect("one")), false),
    ] {
        let copy = world.copy();
        copy.rewrite("ledger", 3, |data| drop(data.insert("note".to_owned(), json!(note)))).await;
        let report = copy.verify(copy.options()).await;
        let found: Vec<_> = report.divergences.iter().map(|found| (found.part, found.n)).collect();
        assert_eq!(found.contains(&(LedgerPart::Checkpoint, Some(3))), !holds, "{note}: {found:?}");
        assert_eq!(report.holds, holds);
    }
}

#[tokio::test]
async fn a_key_that_the_verifier_trusts_follows_without_a_voucher() {
    // D11: the old key was lost, and the new one is known from another source.
    let world = World::new().await;
    let new = std::sync::Arc::new(SecretKey::from_seed(&[8; 32]));
    let accepted = AcceptedKey { key: new.public().to_string(), by: "ada".into(), reason: "lost".into() };
    let says = Succession { accepted: vec![accepted], ..Succession::default() };
    let store = Store::open(&world.db()).await.expect("it opens").store;
    for says in [says, Succession::default()] {
        let keys = std::slice::from_ref(&new);
        store.seal_with(keys, AT_MS, true, Durability::Synced, says).await.expect("sealed");
    }
    store.close().await;
    let trusted = |trusted_keys| VerifyOptions { trusted_keys, ..VerifyOptions::default() };
    let report = world.verify(trusted(vec![new.public()])).await;
    assert_eq!((report.divergences, report.key_changes.accepted.len()), (vec![], 1));
    assert_eq!(report.key_changes.signers, [world.key().public(), new.public()]);
    let found = world.first_divergence(trusted(Vec::new())).await;
    assert_eq!((found.part, found.n), (LedgerPart::Checkpoint, Some(4)), "{found}");
}
