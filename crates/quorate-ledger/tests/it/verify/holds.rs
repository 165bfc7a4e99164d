//! Valid ledgers, the keys and checkpoints that they are compared with, and the report.

use quorate_kernel::entropy;
use quorate_kernel::ports::ledger::{Append, Durability, Entry, Kind, Ledger as _};
use quorate_ledger::merkle::TreeHead;
use quorate_ledger::signing::{ExternalKeys, Keyring, KeyringEntry, SecretKey, SigningContext, Voucher};
use quorate_ledger::store::Succession;
use quorate_ledger::store::address::StoreAddress;
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyError, VerifyOptions, verify};
use quorate_ledger::{Store, keys};

use super::world::{C, World, assert_divergence, sha256};

#[tokio::test]
async fn an_untouched_file_verifies() {
    // D2, D3
    let world = World::new().await;
    let before = sha256(&world.db());
    let report = world.verify(world.witnessed()).await;
    assert_eq!(report.divergences, []);
    assert_eq!(
        (report.records, report.checkpoints.count, report.checkpoints.sealed, report.checkpoints.unsealed),
        (25, 4, 24, 0)
    );
    assert_eq!((report.signatures.runs, report.signatures.count, report.streams), (1, 6, 5));
    assert_eq!(
        (report.keys.own, report.checkpoints.signed, report.open.count, report.texts),
        (Some(true), 24, 0, 1)
    );
    let witness = report.witness.unwrap();
    assert_eq!((witness.checkpoints, witness.size, witness.fragments), (4, 24, 0));
    assert_eq!(report.size.unwrap(), 25);
    assert_eq!(sha256(&world.db()), before, "nothing was written");
    assert!(!world.dir.path().join("aside").exists());
}

#[tokio::test]
async fn a_checkpoint_is_trusted_and_what_follows_is_held() {
    // D2
    let world = World::new().await;
    for since in [StartPoint::Size(13), StartPoint::Number(1)] {
        let report = world.verify(VerifyOptions { since: Some(since), ..world.witnessed() }).await;
        assert_eq!(report.divergences, []);
        assert_eq!(
            (report.since, report.records, report.checkpoints.count, report.checkpoints.sealed),
            (13, 12, 3, 24)
        );
    }
    let store = Store::open_read_only(&StoreAddress::from(&*world.db())).await.unwrap();
    for since in [StartPoint::Size(12), StartPoint::Number(7)] {
        let refused =
            verify(&store, VerifyOptions { since: Some(since), ..world.options() }).await.unwrap_err();
        assert!(matches!(refused, VerifyError::Since(_)), "{refused}");
    }
    store.close().await;
    // Records before the start are not checked, all later ones are.
    let since = || VerifyOptions { since: Some(StartPoint::Size(13)), ..world.options() };
    world.sql("UPDATE record SET data = '{}' WHERE seq = 5").await;
    assert!(world.verify(since()).await.holds);
    world.sql("UPDATE record SET data = '{}' WHERE seq = 20").await;
    assert_divergence(&world.first_divergence(since()).await, DivergenceKind::Changed, C, 2);
    // A root that the stored tree lacks is compared with the records themselves.
    let tree = TreeHead { size: 13, root: [7; 32] };
    let report = world.verify(VerifyOptions { since: Some(StartPoint::Tree(tree)), ..world.options() }).await;
    assert_eq!((report.since, report.records, report.holds), (0, 25, false));
}

#[tokio::test]
async fn a_key_that_is_given_has_to_have_signed() {
    // D2
    let world = World::new().await;
    let stranger = SecretKey::from_seed(&[9; 32]).public();
    let trusted_keys = vec![world.key().public(), stranger];
    let report = world.verify(VerifyOptions { trusted_keys, ..world.options() }).await;
    assert_eq!(report.keys.given, [true, false]);
    assert_eq!(
        (report.divergences[0].kind, report.divergences[0].part),
        (DivergenceKind::Changed, LedgerPart::Checkpoint)
    );
    let report =
        world.verify(VerifyOptions { ledger_keys: vec![stranger], ..VerifyOptions::default() }).await;
    assert_eq!(report.keys.own, Some(false));
    assert!(!report.holds);
    let report = world.verify(VerifyOptions::default()).await;
    assert_eq!((report.keys.own, report.holds), (None, true), "the missing signature is reported");
}

#[tokio::test]
async fn a_new_key_is_brought_in_by_the_old_one() {
    // D2
    let world = World::new().await;
    let old = world.key();
    let (new, keys) = (SecretKey::generate(), keys::KeyDirectory::new(world.dir.path()));
    keys.rotate(keys::KeyPurpose::Ledger, SecretKey::from_text(&new.to_text()).unwrap(), 1_000).unwrap();
    let new = std::sync::Arc::new(new);
    let store = Store::open(&world.db()).await.unwrap().store;
    store.seal(&[old.clone(), new.clone()], 2_000, true, Durability::Synced).await.unwrap();
    store.seal(std::slice::from_ref(&new), 2_000, true, Durability::Synced).await.unwrap();
    store.seal(&[], 2_000, true, Durability::Synced).await.unwrap();
    store.close().await;
    for ledger_keys in [vec![new.public()], vec![new.public(), old.public()]] {
        let report = world
            .verify(VerifyOptions {
                ledger_keys,
                trusted_keys: vec![old.public()],
                ..VerifyOptions::default()
            })
            .await;
        assert_eq!(report.divergences, []);
        assert_eq!((report.checkpoints.count, report.checkpoints.unsigned), (7, 1));
        assert!(report.checkpoints.signed < report.checkpoints.sealed);
    }
    let report =
        world.verify(VerifyOptions { ledger_keys: vec![old.public()], ..VerifyOptions::default() }).await;
    assert_eq!(report.keys.own, Some(false));
}

#[tokio::test]
async fn a_new_key_follows_by_the_word_of_the_old_one_alone() {
    // D2, D10
    let world = World::new().await;
    let (old, new) = (world.key(), std::sync::Arc::new(SecretKey::from_seed(&[8; 32])));
    let third = std::sync::Arc::new(SecretKey::from_seed(&[9; 32]));
    let word = |context, by: &SecretKey, of: &SecretKey| Voucher::sign(context, by, &of.public(), 1_000);
    let store = Store::open(&world.db()).await.unwrap().store;
    let seal = async |key: &std::sync::Arc<SecretKey>, vouched| {
        let succession = Succession { vouched, ..Succession::default() };
        store.seal_with(std::slice::from_ref(key), 2_000, true, Durability::Synced, succession).await
    };
    for vouched in [
        Vec::new(),
        vec![word(SigningContext::VOUCHER, &old, &new)],
        vec![word(SigningContext::LEDGER_VOUCHER, &new, &new)],
        vec![word(SigningContext::LEDGER_VOUCHER, &old, &third)],
    ] {
        let refused = seal(&new, vouched).await.unwrap_err().to_string();
        assert!(
            refused.contains("none of its keys")
                || refused.contains("voucher")
                || refused.contains("vouches"),
            "{refused}"
        );
    }
    let chain = vec![
        word(SigningContext::LEDGER_VOUCHER, &old, &new),
        word(SigningContext::LEDGER_VOUCHER, &new, &third),
    ];
    let sealed = seal(&third, chain).await.unwrap();
    assert!(seal(&old, Vec::new()).await.is_err() && seal(&new, Vec::new()).await.is_err());
    seal(&third, Vec::new()).await.unwrap();
    store.close().await;
    for since in [None, Some(StartPoint::Size(sealed.tree.size))] {
        let options = VerifyOptions { ledger_keys: vec![third.public()], since, ..VerifyOptions::default() };
        let report = world.verify(options).await;
        assert_eq!((report.divergences, report.keys.own), (Vec::new(), Some(true)));
    }
}

#[tokio::test]
async fn the_times_of_a_key_count() {
    // D3, D9
    let world = World::new().await;
    let public = SecretKey::from_seed(&[5; 32]).public();
    let at_ms = 1_795_000_000_000;
    let within = KeyringEntry {
        not_before_ms: Some(at_ms),
        not_after_ms: Some(at_ms),
        ..KeyringEntry::unbounded(public)
    };
    for (key, holds) in [
        (KeyringEntry::unbounded(public), true),
        (within, true),
        (KeyringEntry { not_before_ms: Some(at_ms + 1), ..KeyringEntry::unbounded(public) }, false),
        (KeyringEntry { not_after_ms: Some(at_ms - 1), ..KeyringEntry::unbounded(public) }, false),
        (KeyringEntry { revoked_at_ms: Some(at_ms), ..KeyringEntry::unbounded(public) }, false),
        (KeyringEntry::unbounded(SecretKey::from_seed(&[6; 32]).public()), false),
    ] {
        let mut keyring = Keyring::new();
        keyring.insert(key).unwrap();
        let outside = ExternalKeys { keyring: Some(keyring), signers: Vec::new() };
        let report = world.verify(VerifyOptions { outside, ..world.options() }).await;
        assert_eq!(report.holds, holds, "{:?}", report.divergences.first());
        if !holds {
            assert_eq!(report.divergences[0].part, LedgerPart::Signature);
            assert_divergence(&report.divergences[0], DivergenceKind::Changed, C, 0);
        }
    }
    let report = world.verify(world.options()).await;
    assert_eq!(report.signatures.self_vouched, 1, "without a keyring only the run names its keys");
}

#[tokio::test]
async fn a_torn_witness_is_said_and_another_ledgers_differs() {
    // D2
    let (world, other) = (World::new().await, World::new().await);
    let text = std::fs::read_to_string(world.witness_path()).unwrap();
    std::fs::write(world.witness_path(), &text[..text.len() - 20]).unwrap();
    let report = world.verify(world.witnessed()).await;
    let witness = report.witness.unwrap();
    assert_eq!((report.divergence_count, witness.checkpoints, witness.fragments), (0, 3, 1));
    let theirs = VerifyOptions { witness: other.witnessed().witness, ..world.options() };
    let report = world.verify(theirs).await;
    assert!(
        report.divergences.iter().all(|divergence| divergence.part == LedgerPart::Witness),
        "{:?}",
        report.divergences
    );
    assert_eq!(
        report.divergence_count, 4,
        "each checkpoint is of another ledger, and there are no other divergences"
    );
    assert!(report.divergences.iter().all(|divergence| divergence.what.contains("is of another ledger")));
    assert_eq!(report.witness.unwrap().checkpoints, 0);
}

#[tokio::test]
async fn an_open_run_is_said_and_no_divergence() {
    // D2
    let world = World::new().await;
    let store = Store::open(&world.db()).await.unwrap().store;
    let run = entropy::run_id();
    let entry = Entry { kind: Kind::RunOpened, at_ms: 3_000, data: serde_json::Map::new() };
    store.append(Append::one(&run, 0, entry, Durability::Synced)).await.unwrap();
    store.close().await;
    let report = world.verify(world.options()).await;
    assert_eq!(report.divergences, []);
    assert_eq!((report.open.count, report.open.runs, report.checkpoints.unsealed), (1, vec![run], 1));
    assert_eq!(
        world.verify(VerifyOptions { ledger_keys: Vec::new(), ..world.witnessed() }).await.divergence_count,
        0
    );
}
