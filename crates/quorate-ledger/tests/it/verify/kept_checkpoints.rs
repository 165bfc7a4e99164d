//! The ledger against checkpoints that others keep (D12): a witness's file, the copies on this machine, and a witness that is
//! asked over HTTP. They detect records that were rewritten with the ledger's own key; the file alone cannot show that.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::{Append, Durability, Kind as Word, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::{CheckpointCopy, LocalCheckpoints};
use quorate_ledger::merkle::TreeHead;
use quorate_ledger::note::Cosigner;
use quorate_ledger::store::address::Address;
use quorate_ledger::verify::{
    Cosignature, Divergence, Kind, Options, Part, StartPoint, WitnessCheck, verify,
};
use quorate_ledger::witness::Witness;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::world::{AT_MS, C, World, entry};

/// What is signed after everything from place 15 on was replaced: as many other records, sealed by the ledger's own key.
async fn rewritten(world: &World) -> World {
    let copy = world.copy();
    copy.sql(&format!(
        "DELETE FROM record WHERE seq > 14; DELETE FROM checkpoint WHERE size >= 14; DELETE FROM signature; \
         DELETE FROM run WHERE run = '{C}'; DELETE FROM run_origin WHERE run = '{C}'; \
         UPDATE tile SET hashes = substr(hashes, 1, 13 * 32)"
    ))
    .await;
    let store = Store::open(&copy.db()).await.expect("it opens").store;
    let turns: Vec<_> = (0..9).map(|n| entry(Word::Turn, json!({"n": n}))).collect();
    let run = "turns/t/1".into();
    let append = Append { run, from: 0, entries: turns, bodies: Vec::new(), durability: Durability::Written };
    store.append(append).await.expect("appended");
    for again in [false, true] {
        store.seal(&[copy.key()], AT_MS, again, Durability::Synced).await.expect("sealed");
    }
    store.close().await;
    copy
}

/// The notes that the witness keeps, the first one first.
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

fn asked(note: &str) -> Options {
    let (cosigner, note) = cosigned(note, 1_679_315_147);
    let copy = CheckpointCopy { path: "cosigned".into(), note: Ok(note) };
    Options { remote_witness: Some((cosigner, Some(copy))), ..Options::default() }
}

fn parts(found: &[Divergence]) -> Vec<(Kind, Part)> {
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
    let kept = |of: &str| Options { local_checkpoints: Some(copies(&[Ok(of)])), ..Options::default() };
    for options in [forged.witnessed(), kept(&notes[3]), kept(&notes[2]), asked(&notes[3])] {
        let options = Options { ledger_keys: vec![forged.key().public()], ..options };
        for since in
            [None, Some(StartPoint::Size(13)), Some(StartPoint::Number(2)), Some(StartPoint::Size(24))]
        {
            let report = forged.verify(Options { since, ..options.clone() }).await;
            let found = &report.divergences[0];
            assert_eq!((found.kind, found.part), (Kind::Changed, Part::Witness), "{since:?}: {found}");
            assert!(report.divergences.iter().all(|one| one.part == Part::Witness), "{since:?}");
        }
    }
    // From a checkpoint on whose tree is not the one that was kept, all records are walked over.
    let options = Options { since: Some(StartPoint::Size(24)), ..forged.witnessed() };
    let report = forged.verify(options).await;
    assert_eq!((report.since, report.divergences[0].last_seq), (0, Some(23)));
    assert!(report.divergences[0].what.ends_with("which is kept elsewhere"), "{}", report.divergences[0]);
    // So are those of a ledger that another one was kept for.
    let replaced =
        LocalCheckpoints { replaced_origin: Some("quorate/other".into()), ..copies(&[Ok(&*notes[3])]) };
    let report = forged.verify(Options { local_checkpoints: Some(replaced), ..forged.options() }).await;
    assert!(parts(&report.divergences).contains(&(Kind::Changed, Part::Witness)), "{:?}", report.divergences);
    let same_size = Options { since: Some(StartPoint::Size(24)), ..kept(&notes[3]) };
    assert_eq!(forged.verify(same_size).await.since, 24, "the first walked place tells");
    // One of before the change is of both.
    for options in [kept(&notes[0]), kept(&notes[1]), asked(&notes[1])] {
        for since in [None, Some(StartPoint::Size(24))] {
            assert_eq!(forged.verify(Options { since, ..options.clone() }).await.divergences, []);
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
        let options = Options { local_checkpoints: Some(kept), strict, ..world.options() };
        let report = world.verify(options).await;
        (report.local_checkpoints.expect("compared"), parts(&report.divergences))
    };
    let check = |checkpoints, size, fragments| WitnessCheck { checkpoints, size, fragments };
    let wrong = (Kind::Changed, Part::LocalCheckpoint);
    assert_eq!(kept(copies(&[Ok(&*notes[2]), Ok(last)]), true).await, (check(2, 24, 0), vec![]));
    assert_eq!(kept(copies(&[Ok(last), Ok(&*notes[2])]), true).await, (check(2, 24, 0), vec![]));
    assert_eq!(
        kept(copies(&[Ok(last), Err("torn"), Err("torn")]), true).await,
        (check(1, 24, 2), vec![wrong; 2])
    );
    assert_eq!(kept(copies(&[]), false).await, (check(0, 0, 0), vec![]));
    let none = (check(0, 0, 0), vec![(Kind::Removed, Part::LocalCheckpoint)]);
    assert_eq!(kept(copies(&[]), true).await, none, "a strict check asks for one");
    // Another ledger was kept for this file: its checkpoints are compared, and the exchange is said.
    let replaced = |origin: &str, notes: &[Result<&str, &str>]| LocalCheckpoints {
        replaced_origin: Some(origin.to_owned()),
        ..copies(notes)
    };
    let origin = world.verify(world.options()).await.origin.expect("sealed");
    assert_eq!(kept(replaced(&origin, &[Ok(last)]), false).await, (check(1, 24, 0), vec![]));
    assert_eq!(kept(replaced("quorate/other", &[Ok(last)]), false).await, (check(1, 24, 0), vec![wrong]));
    // One without a checkpoint is no ledger that the copies could be compared with.
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let store = Store::open(&path).await.expect("it opens").store;
    let turns = (0..9).map(|n| entry(Word::Turn, json!({"n": n}))).collect();
    let run = "turns/t/1".into();
    let append = Append { run, from: 0, entries: turns, bodies: Vec::new(), durability: Durability::Synced };
    store.append(append).await.expect("appended");
    store.close().await;
    let store = Store::open_read_only(&Address::from(&*path)).await.expect("it opens");
    for (local, size, wanted) in [
        (replaced("quorate/other", &[Ok(&*notes[0])]), 0, vec![wrong]),
        (copies(&[Ok(&*notes[0])]), 9, vec![(Kind::Changed, Part::Witness), wrong]),
        (copies(&[Ok(&*notes[1])]), 13, vec![(Kind::Cut, Part::LocalCheckpoint), wrong]),
    ] {
        let report = verify(&store, Options { local_checkpoints: Some(local), ..Options::default() }).await;
        let report = report.expect("verified");
        assert_eq!(
            (report.local_checkpoints.expect("compared").size, parts(&report.divergences)),
            (size, wanted)
        );
    }
    store.close().await;
}

#[tokio::test]
async fn as_many_records_as_were_seen_are_enough() {
    // D2: the checkpoint's own record is behind those that it is over.
    let world = World::new().await;
    world.sql("DELETE FROM record WHERE seq = 25").await;
    let report = world.verify(world.witnessed()).await;
    assert!(report.divergences.iter().all(|found| found.part != Part::Witness), "{:?}", report.divergences);
    world.sql("DELETE FROM record WHERE seq = 24").await;
    let report = world.verify(world.witnessed()).await;
    let witness = report.divergences.iter().find(|found| found.part == Part::Witness).expect("found");
    assert_eq!((witness.kind, witness.seq, witness.last_seq), (Kind::Cut, Some(24), None), "{witness}");
}

#[tokio::test]
async fn what_a_witness_signed_is_said() {
    // D12
    let world = World::new().await;
    let note = &notes(&world)[2];
    let report = world.verify(Options { ledger_keys: world.options().ledger_keys, ..asked(note) }).await;
    let wanted = Cosignature { name: "w.example/1".into(), size: 23, at_s: 1_679_315_147 };
    assert_eq!((report.divergences, report.cosignature), (vec![], Some(wanted)));
    // By no key of the witness, or not kept.
    let cosigner = cosigned(note, 5).0;
    let unsigned = CheckpointCopy { path: "cosigned".into(), note: Ok(note.clone()) };
    for (copy, wanted) in [(Some(unsigned), vec![(Kind::Changed, Part::Witness)]), (None, vec![])] {
        let options = Options { remote_witness: Some((cosigner.clone(), copy)), ..world.options() };
        let report = world.verify(options).await;
        assert_eq!((report.cosignature, parts(&report.divergences)), (None, wanted));
    }
}

#[tokio::test]
async fn a_trusted_checkpoint_is_over_records_that_are_there() {
    // D2
    let world = World::new().await;
    let whole = world.verify(world.options()).await.tree.expect("whole");
    let found = async |tree: TreeHead| {
        let report = world.verify(Options { since: Some(StartPoint::Tree(tree)), ..world.options() }).await;
        assert_eq!((report.since, report.records), (0, 25));
        let found = &report.divergences[0];
        (found.kind, found.part, found.seq, found.last_seq)
    };
    let cut = (Kind::Cut, Part::Checkpoint, Some(26), Some(28));
    assert_eq!(found(TreeHead { size: 28, ..whole }).await, cut);
    assert_eq!(found(TreeHead { size: 26, ..whole }).await, (Kind::Cut, Part::Checkpoint, Some(26), None));
    // The stored tree is not over all of them, so that the records are.
    let report = world.verify(Options { since: Some(StartPoint::Tree(whole)), ..world.options() }).await;
    assert_eq!((report.since, parts(&report.divergences)), (0, vec![(Kind::Changed, Part::Tree)]));
    // And so are the tables of holds and imports.
    world.sql(&format!("INSERT INTO held VALUES ('{C}')")).await;
    let report = world.verify(Options { since: Some(StartPoint::Tree(whole)), ..world.options() }).await;
    assert!(parts(&report.divergences).contains(&(Kind::Inserted, Part::Index)), "{:?}", report.divergences);
}

#[tokio::test]
async fn a_checkpoint_of_which_the_record_is_damaged_still_counts_where_the_walk_begins() {
    // D2
    let world = World::new().await;
    world.sql("UPDATE record SET head = replace(head, ',', ' ,') WHERE seq = 25").await;
    let since = Options {
        since: Some(StartPoint::Size(24)),
        trusted_keys: vec![world.key().public()],
        ..world.options()
    };
    let report = world.verify(since).await;
    let found = &report.divergences[0];
    assert_eq!((report.divergence_count, found.kind, found.n), (2, Kind::Changed, Some(3)), "{found}");
    assert_eq!((report.sealed, report.signed, report.unsealed), (24, 24, 0));
    assert_eq!((report.trusted_keys_signed, report.ledger_key_signed), (vec![true], Some(true)));
    assert!(report.origin.is_some());
}
