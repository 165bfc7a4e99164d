//! Keys added after a run began: which of them may continue the run, and what is reported of the others (D10).

use std::sync::Arc;

use quorate_kernel::ports::ledger::{Append, Durability, Kind, Ledger as _, LedgerError};
use quorate_ledger::Store;
use quorate_ledger::signing::{ExternalKeys, Keyring, KeyringEntry, SecretKey, SigningContext, Voucher};
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyOptions};
use serde_json::{Value, json};

use super::world::{A, AT_MS, C, World, entry};

fn key(seed: u8) -> Arc<SecretKey> {
    Arc::new(SecretKey::from_seed(&[seed; 32]))
}

/// The key that signs the run, and a later one.
const OLD: u8 = 5;
const NEW: u8 = 6;

fn voucher(by: u8, of: u8) -> Voucher {
    Voucher::sign(SigningContext::VOUCHER, &key(by), &key(of).public(), AT_MS)
}

fn keyring(vouchers: &[Voucher]) -> quorate_kernel::ports::ledger::Entry {
    entry(Kind::Keyring, json!({"vouched": vouchers}))
}

fn overrides() -> quorate_kernel::ports::ledger::Entry {
    entry(Kind::Override, json!({"verdict": "HOLD", "reason": "Not yet.", "by": "ada", "logged": true}))
}

async fn append(
    store: &Store,
    n: u64,
    entry: quorate_kernel::ports::ledger::Entry,
) -> Result<u64, LedgerError> {
    store.append(Append::one(&C.into(), n, entry, Durability::Synced)).await
}

fn outside(keyring: Option<Keyring>) -> ExternalKeys {
    ExternalKeys { keyring, signers: Vec::new() }
}

/// The workspace's keyring: the old key ends where the new one begins, unless a test sets other times.
fn ring(change: impl Fn(&mut KeyringEntry)) -> Keyring {
    let mut old = KeyringEntry { not_after_ms: Some(AT_MS), ..KeyringEntry::unbounded(key(OLD).public()) };
    change(&mut old);
    let mut ring = Keyring::new();
    ring.insert(old).expect("the first one");
    ring.insert(KeyringEntry { not_before_ms: Some(AT_MS), ..KeyringEntry::unbounded(key(NEW).public()) })
        .expect("another one");
    ring
}

#[tokio::test]
async fn a_key_that_the_old_one_vouches_for_goes_on() {
    // D10
    let world = World::new().await;
    let store = Store::open(&world.db()).await.unwrap().store;
    store.set_external_keys(|| Ok(outside(Some(ring(|_| {})))));
    store.sign_run(&C.into(), key(NEW));
    // Without a voucher nothing is written, because verification would never succeed again.
    let refused = append(&store, 6, overrides()).await.unwrap_err();
    assert!(matches!(refused, LedgerError::InvalidRecord { .. }), "{refused}");
    for forged in [voucher(9, NEW), voucher(NEW, NEW), Voucher { by: voucher(OLD, 9).by, ..voucher(9, NEW) }]
    {
        let refused = append(&store, 6, keyring(&[forged])).await.unwrap_err();
        assert!(matches!(refused, LedgerError::InvalidRecord { .. }), "{refused}");
    }
    assert_eq!(store.records(&C.into()).await.unwrap().len(), 6);
    append(&store, 6, keyring(&[voucher(OLD, NEW)])).await.unwrap();
    append(&store, 7, overrides()).await.unwrap();
    assert_eq!(store.run_keys(&C.into()).await.unwrap().unwrap().len(), 2);
    world.seal(&store, false).await;
    store.close().await;
    // Another process looks up the run's keys.
    let store = Store::open(&world.db()).await.unwrap().store;
    store.sign_run(&C.into(), key(NEW));
    append(&store, 8, overrides()).await.unwrap();
    world.seal(&store, false).await;
    store.close().await;
    for keyring in [None, Some(ring(|_| {}))] {
        for since in [None, Some(StartPoint::Size(24)), Some(StartPoint::Size(27))] {
            let report = world
                .verify(VerifyOptions { outside: outside(keyring.clone()), since, ..world.witnessed() })
                .await;
            assert_eq!(report.divergences, [], "{since:?}");
        }
    }
}

#[tokio::test]
async fn an_unauthorized_keyring_record_is_found() {
    // D10: an attacker with write access but without these keys uses a new key, or a key of another run.
    let world = World::new().await;
    let stranger = key(9);
    let cases: &[(&str, Value, Option<&SecretKey>, DivergenceKind)] = &[
        (C, json!({"vouched": [voucher(OLD, NEW)]}), None, DivergenceKind::Removed),
        (C, json!({"vouched": [voucher(9, 9)]}), Some(&stranger), DivergenceKind::Changed),
        (
            C,
            json!({"vouched": [Voucher { by: voucher(OLD, NEW).by, ..voucher(9, 9) }]}),
            Some(&stranger),
            DivergenceKind::Changed,
        ),
        // A voucher for another key, with this key inserted.
        (
            C,
            json!({"vouched": [Voucher { key: voucher(9, 9).key, ..voucher(OLD, NEW) }]}),
            Some(&stranger),
            DivergenceKind::Changed,
        ),
        (C, json!({"keyring": [stranger.public().to_string()]}), Some(&stranger), DivergenceKind::Changed),
        (C, json!({"vouched": "all"}), Some(&stranger), DivergenceKind::Changed),
        (A, json!({"vouched": [voucher(OLD, NEW)]}), None, DivergenceKind::Inserted),
        (A, json!({"vouched": [voucher(OLD, NEW)]}), Some(&stranger), DivergenceKind::Inserted),
    ];
    for (run, data, by, kind) in cases {
        let copy = world.copy();
        let n = copy.forge(run, entry(Kind::Keyring, data.clone()), *by).await;
        let found = copy.first_divergence(copy.options()).await;
        assert_eq!(
            (found.kind, found.part, found.n),
            (*kind, LedgerPart::Signature, Some(n)),
            "{data}: {found}"
        );
        // It is not sealed either, because the ledger's key would vouch for it.
        let store = Store::open(&copy.db()).await.unwrap().store;
        let refused = store.seal(&[copy.key()], AT_MS, false, Durability::Synced).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Corrupt { .. }), "{refused}");
        store.close().await;
    }
    // A voucher counts from its record on, not before.
    let copy = world.copy();
    copy.forge(C, overrides(), Some(&*key(NEW))).await;
    copy.forge(C, keyring(&[voucher(OLD, NEW)]), Some(&*key(NEW))).await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!((found.part, found.n), (LedgerPart::Signature, Some(6)), "{found}");
}

#[tokio::test]
async fn a_revoked_key_neither_goes_on_nor_brings_in_another() {
    // D10: a thief can claim any time.
    let world = World::new().await;
    let revoked = |at_ms: i64| VerifyOptions {
        outside: outside(Some(ring(|old| {
            (old.not_after_ms, old.revoked_at_ms) = (None, Some(at_ms));
        }))),
        ..world.options()
    };
    let before = |entry: quorate_kernel::ports::ledger::Entry| quorate_kernel::ports::ledger::Entry {
        at_ms: AT_MS - 1,
        ..entry
    };
    // After a checkpoint from after the revocation, an earlier time is not credible.
    let copy = world.copy();
    copy.sql("DELETE FROM record WHERE seq > 99").await;
    copy.forge(C, before(overrides()), Some(&*key(OLD))).await;
    copy.sql("UPDATE run SET override = 'HOLD' WHERE run = 'rcccccccccccc'").await;
    assert!(copy.verify(revoked(AT_MS + 1)).await.holds, "no checkpoint is from after that");
    let report = copy.verify(revoked(AT_MS)).await;
    assert!(
        report
            .divergences
            .iter()
            .any(|divergence| divergence.n == Some(6) && divergence.what.contains("revoked"))
    );
    // It vouches for no key that the workspace does not know, at any time.
    let copy = world.copy();
    let stolen = Voucher::sign(SigningContext::VOUCHER, &key(OLD), &key(9).public(), AT_MS - 5);
    copy.forge(C, keyring(&[stolen]), Some(&*key(9))).await;
    let found = copy.first_divergence(revoked(AT_MS + 1)).await;
    assert_eq!((found.part, found.n), (LedgerPart::Signature, Some(6)), "{found}");
    // For a key that the workspace knows, its earlier vouchers count.
    let copy = world.copy();
    copy.forge(C, keyring(&[voucher(OLD, NEW)]), Some(&*key(NEW))).await;
    assert_eq!(copy.verify(revoked(AT_MS + 1)).await.divergences, []);
    assert!(!copy.verify(revoked(AT_MS)).await.holds);
}

#[tokio::test]
async fn what_a_key_may_no_longer_sign_is_not_written() {
    // D10: the key ends, is revoked or has not begun while the run continues, or is no longer in the keyring.
    let world = World::new().await;
    let may = |change: fn(&mut KeyringEntry)| {
        move || {
            let mut own = KeyringEntry::unbounded(key(OLD).public());
            change(&mut own);
            let mut keyring = Keyring::new();
            keyring.insert(own).unwrap();
            Ok(ExternalKeys { keyring: Some(keyring), signers: Vec::new() })
        }
    };
    let store = Store::open(&world.db()).await.unwrap().store;
    store.sign_run(&C.into(), key(OLD));
    let changes: [fn(&mut KeyringEntry); 4] = [
        |own| own.not_after_ms = Some(AT_MS - 1),
        |own| own.not_before_ms = Some(AT_MS + 1),
        |own| own.revoked_at_ms = Some(AT_MS),
        |own| own.public = key(9).public(),
    ];
    for change in changes {
        store.set_external_keys(may(change));
        let refused = append(&store, 6, overrides()).await.unwrap_err();
        assert!(matches!(refused, LedgerError::InvalidRecord { .. }), "{refused}");
    }
    store.set_external_keys(|| Err("the keyring cannot be read".to_owned()));
    assert!(append(&store, 6, overrides()).await.unwrap_err().to_string().contains("cannot be read"));
    store.set_external_keys(may(|_| {}));
    append(&store, 6, overrides()).await.unwrap();
    store.close().await;
    assert_eq!(world.verify(world.options()).await.divergences, []);
}

#[tokio::test]
async fn a_run_that_says_that_it_is_signed_is_signed() {
    // D3, D10
    let world = World::new().await;
    let store = Store::open(&world.db()).await.unwrap().store;
    for (audit, by) in [
        (json!({"signing": "required", "keyring": [key(OLD).public().to_string()]}), None),
        (json!({"signing": "optional", "signer": key(OLD).public().id().to_string()}), None),
        (json!({"signing": "required", "keyring": [key(NEW).public().to_string()]}), Some(OLD)),
        (
            json!({"signing": "required", "keyring": [key(OLD).public().to_string()], "signer": key(NEW).public().id().to_string()}),
            Some(OLD),
        ),
    ] {
        let run = quorate_kernel::entropy::run_id();
        if let Some(by) = by {
            store.sign_run(&run, key(by));
        }
        let opened = entry(Kind::RunOpened, json!({"audit": audit}));
        let refused = store.append(Append::one(&run, 0, opened, Durability::Synced)).await.unwrap_err();
        assert!(
            matches!(refused, LedgerError::NoSigningKey { .. } | LedgerError::InvalidRecord { .. }),
            "{refused}"
        );
    }
    store.close().await;
    assert_eq!(world.verify(world.options()).await.divergences, []);
}

#[tokio::test]
async fn a_run_that_says_so_is_signed_from_its_first_record_on() {
    // D3: written without the program, which would have refused it.
    let keyring = json!([key(OLD).public().to_string(), key(NEW).public().to_string()]);
    let named =
        json!({"signing": "optional", "keyring": keyring, "signer": key(OLD).public().id().to_string()});
    let required = json!({"signing": "required", "keyring": keyring});
    let removed = |n: u64| Some((DivergenceKind::Removed, LedgerPart::Signature, Some(n)));
    for (audit, by, wanted) in [
        (&required, None, removed(0)),
        (&required, Some(NEW), None),
        (&named, None, removed(0)),
        (&named, Some(NEW), Some((DivergenceKind::Changed, LedgerPart::Signature, Some(0)))),
        (&named, Some(OLD), None),
        (&json!({"signing": "optional", "keyring": keyring}), None, None),
    ] {
        let world = World::new().await;
        let run = "rddddddddddd0";
        let by = by.map(key);
        let opened = entry(Kind::RunOpened, json!({"protocol": "council/1", "audit": audit}));
        world.forge(run, opened, by.as_deref()).await;
        world
            .sql(&format!(
                "INSERT INTO run (run, opened_ms, subject, artifact_type, artifact_sha256, council, log_path, ended) \
                 VALUES ('{run}', {AT_MS}, '', '', '', '', '', 0); INSERT INTO run_origin VALUES ('{run}', 'council', '')"
            ))
            .await;
        let report = world.verify(world.options()).await;
        let found: Vec<_> =
            report.divergences.iter().map(|found| (found.kind, found.part, found.n)).collect();
        assert_eq!(found, Vec::from_iter(wanted), "{audit}");
    }
}
