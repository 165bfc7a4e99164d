//! The ledger compared with checkpoints that others keep (D12): a witness file, the copies on this machine, and an HTTP
//! witness. They detect records that were rewritten with the ledger's own key, which the file alone cannot show.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use quorate_kernel::entropy::{hex, unhex};
use quorate_kernel::ports::ledger::{Append, Durability, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use quorate_ledger::merkle::TreeHead;
use quorate_ledger::note::Cosigner;
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::verify::{
    Cosignature, Divergence, DivergenceKind, KeptCheckpoints, LedgerPart, StartPoint, VerifyOptions, verify,
};
use quorate_ledger::witness::Witness;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::world::{AT_MS, C, World, entry};

/// The last checkpoint after all records from position 15 on were replaced by as many others, sealed with the ledger's
/// own key.
async fn rewritten(world: &World) -> World {
    let copy = world.copy();
    copy.sql(&format!(
        "DELETE FROM record WHERE seq > 14; DELETE FROM checkpoint WHERE size >= 14; DELETE FROM signature; \
         DELETE FROM run WHERE run = '{C}'; DELETE FROM run_origin WHERE run = '{C}'; \
         UPDATE tile SET hashes = substr(hashes, 1, 13 * 32)"
    ))
    .await;
    let store = Store::open(&copy.db()).await.expect("it opens").store;
    let turns: Vec<_> = (0..9).map(|n| entry(Kind::Turn, json!({"n": n}))).collect();
    let run = "turns/t/1".into();
    let append = Append { run, from: 0, entries: turns, bodies: Vec::new(), durability: Durability::Written };
    store.append(append).await.expect("appended");
    for again in [false, true] {
        store.seal(&[copy.key()], AT_MS, again, Durability::Synced).await.expect("sealed");
    }
    store.close().await;
    copy
}

/// The notes of the witness, oldest first.
fn notes(world: &World) -> Vec<String> {
    Witness::parse(&std::fs::read_to_string(world.witness_path()).expect("read")).notes
}

fn copies(notes: &[Result<&str, &str>]) -> LocalCheckpoints {
    let copy = |note: &Result<&str, &str>| CheckpointCopy {
        path: "kept".into(),
        note: note.map(str::to_owned).map_err(str::to_owned),
    };
    LocalCheckpoints { copies: notes.iter().map(copy).collect(), ..LocalCheckpoints::default() }
}

/// A witness's key, and a note with its signature.
fn cosigned(note: &str, time: u64) -> (Cosigner, String) {
    let secret = SigningKey::from_bytes(&[7; 32]);
    let typed = [&[4], &secret.verifying_key().to_bytes()[..]].concat();
    let id = &Sha256::digest([b"w.example/1\n", &typed[..]].concat())[..4];
    let cosigner = Cosigner::from_text(&format!("w.example/1+{}+{}", hex(id), STANDARD.encode(&typed)));
    let text = note.split("\n\n").next().expect("a text");
    let message = format!("cosignature/v1\ntime {time}\n{text}\n");
    let signature = [id, &time.to_be_bytes(), &secret.sign(message.as_bytes()).to_bytes()].concat();
    (cosigner.expect("a key"), format!("{note}\u{2014} w.example/1 {}\n", STANDARD.encode(signature)))
}

fn asked(note: &str) -> VerifyOptions {
    let (cosigner, note) = cosigned(note, 1_679_315_147);
    let copy = CheckpointCopy { path: "cosigned".into(), note: Ok(note) };
    VerifyOptions { remote_witness: Some((cosigner, Some(copy))), ..VerifyOptions::default() }
}

fn parts(found: &[Divergence]) -> Vec<(DivergenceKind, LedgerPart)> {
    found.iter().map(|found| (found.kind, found.part)).collect()
}

#[tokio::test]
async fn what_the_ledgers_own_key_has_written_anew_is_found_by_others() {
    // D2, D12
    let world = World::new().await;
    let forged = rewritten(&world).await;
    let report = forged.verify(forged.options()).await;
    assert_eq!((report.divergences, report.records), (vec![], 25), "nothing in the file tells");
    let notes = notes(&world);
    let kept =
        |of: &str| VerifyOptions { local_checkpoints: Some(copies(&[Ok(of)])), ..VerifyOptions::default() };
    for options in [forged.witnessed(), kept(&notes[3]), kept(&notes[2]), asked(&notes[3])] {
        let options = VerifyOptions { ledger_keys: vec![forged.key().public()], ..options };
        for since in
            [None, Some(StartPoint::Size(13)), Some(StartPoint::Number(2)), Some(StartPoint::Size(24))]
        {
            let report = forged.verify(VerifyOptions { since, ..options.clone() }).await;
            let found = &report.divergences[0];
            assert_eq!(
                (found.kind, found.part),
                (DivergenceKind::Changed, LedgerPart::Witness),
                "{since:?}: {found}"
            );
            assert!(report.divergences.iter().all(|found| found.part == LedgerPart::Witness), "{since:?}");
        }
    }
    // After a checkpoint whose tree differs from the kept one, all records are walked.
    let options = VerifyOptions { since: Some(StartPoint::Size(24)), ..forged.witnessed() };
    let report = forged.verify(options).await;
    assert_eq!((report.since, report.divergences[0].last_seq), (0, Some(23)));
    assert!(report.divergences[0].what.ends_with("that is kept elsewhere"), "{}", report.divergences[0]);
    // The same for a ledger at an address with another ledger's copies.
    let replaced =
        LocalCheckpoints { replaced_origin: Some("quorate/other".into()), ..copies(&[Ok(&*notes[3])]) };
    let report = forged.verify(VerifyOptions { local_checkpoints: Some(replaced), ..forged.options() }).await;
    assert!(
        parts(&report.divergences).contains(&(DivergenceKind::Changed, LedgerPart::Witness)),
        "{:?}",
        report.divergences
    );
    let same_size = VerifyOptions { since: Some(StartPoint::Size(24)), ..kept(&notes[3]) };
    assert_eq!(forged.verify(same_size).await.since, 24, "the first walked place tells");
    // A checkpoint from before the change is of both ledgers.
    for options in [kept(&notes[0]), kept(&notes[1]), asked(&notes[1])] {
        for since in [None, Some(StartPoint::Size(24))] {
            assert_eq!(forged.verify(VerifyOptions { since, ..options.clone() }).await.divergences, []);
        }
    }
}

#[tokio::test]
async fn what_others_keep_is_counted() {
    // D12
    let world = World::new().await;
    let notes = notes(&world);
    let last = &*notes[3];
    let kept = async |kept: LocalCheckpoints, strict| {
        let options = VerifyOptions { local_checkpoints: Some(kept), strict, ..world.options() };
        let report = world.verify(options).await;
        (report.kept.expect("compared"), parts(&report.divergences))
    };
    let check = |copies, size, unreadable| KeptCheckpoints { copies, size, unreadable };
    let wrong = (DivergenceKind::Changed, LedgerPart::LocalCheckpoint);
    assert_eq!(kept(copies(&[Ok(&*notes[2]), Ok(last)]), true).await, (check(2, 24, 0), vec![]));
    assert_eq!(kept(copies(&[Ok(last), Ok(&*notes[2])]), true).await, (check(2, 24, 0), vec![]));
    assert_eq!(
        kept(copies(&[Ok(last), Err("torn"), Err("torn")]), true).await,
        (check(1, 24, 2), vec![wrong; 2])
    );
    assert_eq!(kept(copies(&[]), false).await, (check(0, 0, 0), vec![]));
    let none = (check(0, 0, 0), vec![(DivergenceKind::Removed, LedgerPart::LocalCheckpoint)]);
    assert_eq!(kept(copies(&[]), true).await, none, "a strict check asks for one");
    // The copies are of another ledger: its checkpoints are compared, and the replacement is reported.
    let replaced = |origin: &str, notes: &[Result<&str, &str>]| LocalCheckpoints {
        replaced_origin: Some(origin.to_owned()),
        ..copies(notes)
    };
    let origin = world.verify(world.options()).await.origin.expect("sealed");
    assert_eq!(kept(replaced(&origin, &[Ok(last)]), false).await, (check(1, 24, 0), vec![]));
    assert_eq!(kept(replaced("quorate/other", &[Ok(last)]), false).await, (check(1, 24, 0), vec![wrong]));
    // A ledger without a checkpoint cannot be compared with the copies.
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let store = Store::open(&path).await.expect("it opens").store;
    let turns = (0..9).map(|n| entry(Kind::Turn, json!({"n": n}))).collect();
    let run = "turns/t/1".into();
    let append = Append { run, from: 0, entries: turns, bodies: Vec::new(), durability: Durability::Synced };
    store.append(append).await.expect("appended");
    store.close().await;
    let store = Store::open_read_only(&StoreAddress::from(&*path)).await.expect("it opens");
    for (local, size, wanted) in [
        (replaced("quorate/other", &[Ok(&*notes[0])]), 0, vec![wrong]),
        (copies(&[Ok(&*notes[0])]), 9, vec![(DivergenceKind::Changed, LedgerPart::Witness), wrong]),
        (copies(&[Ok(&*notes[1])]), 13, vec![(DivergenceKind::Cut, LedgerPart::LocalCheckpoint), wrong]),
    ] {
        let report =
            verify(&store, VerifyOptions { local_checkpoints: Some(local), ..VerifyOptions::default() })
                .await;
        let report = report.expect("verified");
        assert_eq!((report.kept.expect("compared").size, parts(&report.divergences)), (size, wanted));
    }
    store.close().await;
}

#[tokio::test]
async fn as_many_records_as_were_seen_are_enough() {
    // D2: the checkpoint's own record follows those that it covers.
    let world = World::new().await;
    world.sql("DELETE FROM record WHERE seq = 25").await;
    let report = world.verify(world.witnessed()).await;
    assert!(
        report.divergences.iter().all(|found| found.part != LedgerPart::Witness),
        "{:?}",
        report.divergences
    );
    world.sql("DELETE FROM record WHERE seq = 24").await;
    let report = world.verify(world.witnessed()).await;
    let witness = report.divergences.iter().find(|found| found.part == LedgerPart::Witness).expect("found");
    assert_eq!(
        (witness.kind, witness.seq, witness.last_seq),
        (DivergenceKind::Cut, Some(24), None),
        "{witness}"
    );
}

#[tokio::test]
async fn what_a_witness_signed_is_said() {
    // D12
    let world = World::new().await;
    let note = &notes(&world)[2];
    let report =
        world.verify(VerifyOptions { ledger_keys: world.options().ledger_keys, ..asked(note) }).await;
    let wanted = Cosignature { name: "w.example/1".into(), size: 23, at_s: 1_679_315_147 };
    assert_eq!((report.divergences, report.cosignature), (vec![], Some(wanted)));
    // Signed by no key of the witness, or not a saved one.
    let cosigner = cosigned(note, 5).0;
    let unsigned = CheckpointCopy { path: "cosigned".into(), note: Ok(note.clone()) };
    for (copy, wanted) in
        [(Some(unsigned), vec![(DivergenceKind::Changed, LedgerPart::Witness)]), (None, vec![])]
    {
        let options = VerifyOptions { remote_witness: Some((cosigner.clone(), copy)), ..world.options() };
        let report = world.verify(options).await;
        assert_eq!((report.cosignature, parts(&report.divergences)), (None, wanted));
    }
}

#[tokio::test]
async fn a_trusted_checkpoint_is_over_records_that_are_there() {
    // D2
    let world = World::new().await;
    let whole = world.verify(world.options()).await;
    let root = whole.root.as_deref().and_then(unhex).expect("whole");
    let whole = TreeHead { size: whole.size.expect("whole"), root };
    let found = async |tree: TreeHead| {
        let report =
            world.verify(VerifyOptions { since: Some(StartPoint::Tree(tree)), ..world.options() }).await;
        assert_eq!((report.since, report.records), (0, 25));
        let found = &report.divergences[0];
        (found.kind, found.part, found.seq, found.last_seq)
    };
    let cut = (DivergenceKind::Cut, LedgerPart::Checkpoint, Some(26), Some(28));
    assert_eq!(found(TreeHead { size: 28, ..whole }).await, cut);
    assert_eq!(
        found(TreeHead { size: 26, ..whole }).await,
        (DivergenceKind::Cut, LedgerPart::Checkpoint, Some(26), None)
    );
    // The stored tree does not cover all of them, so the records are read.
    let report =
        world.verify(VerifyOptions { since: Some(StartPoint::Tree(whole)), ..world.options() }).await;
    assert_eq!(
        (report.since, parts(&report.divergences)),
        (0, vec![(DivergenceKind::Changed, LedgerPart::Tree)])
    );
    // The tables of holds and imports are checked as well.
    world.sql(&format!("INSERT INTO held VALUES ('{C}')")).await;
    let report =
        world.verify(VerifyOptions { since: Some(StartPoint::Tree(whole)), ..world.options() }).await;
    assert!(
        parts(&report.divergences).contains(&(DivergenceKind::Inserted, LedgerPart::Index)),
        "{:?}",
        report.divergences
    );
}

#[tokio::test]
async fn a_checkpoint_of_which_the_record_is_damaged_still_counts_where_the_walk_begins() {
    // D2
    let world = World::new().await;
    world.sql("UPDATE record SET head = replace(head, ',', ' ,') WHERE seq = 25").await;
    let since = VerifyOptions {
        since: Some(StartPoint::Size(24)),
        trusted_keys: vec![world.key().public()],
        ..world.options()
    };
    let report = world.verify(since).await;
    let found = &report.divergences[0];
    assert_eq!(
        (report.divergence_count, found.kind, found.n),
        (2, DivergenceKind::Changed, Some(3)),
        "{found}"
    );
    assert_eq!(
        (report.checkpoints.sealed, report.checkpoints.signed, report.checkpoints.unsealed),
        (24, 24, 0)
    );
    assert_eq!((report.keys.given, report.keys.own), (vec![true], Some(true)));
    assert!(report.origin.is_some());
}
