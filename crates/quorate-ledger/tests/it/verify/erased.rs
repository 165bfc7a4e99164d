//! Erasures, holds and imports that must not be recorded (D11), and those that an older version recorded.

use quorate_kernel::ports::ledger::{Durability, Entry, Kind, LedgerError};
use quorate_kernel::record::RunOpened;
use quorate_ledger::Store;
use quorate_ledger::retention::RetentionSettings;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::WipeMode;
use quorate_ledger::verify::{DivergenceKind, LedgerPart, VerifyOptions};
use serde_json::{Value, json};

use super::world::{A, AT_MS, B, World, append, entry, review};

const DAY_MS: i64 = 24 * 3_600_000;

/// An erasure of a run's only answer, this number of days after the run's end.
fn erased(run: &str, days: i64) -> Entry {
    let data = json!({"run": run, "records": [[2, 2]], "bodies": [], "reason": "retention", "days": 1});
    Entry { at_ms: AT_MS + days * DAY_MS, ..entry(Kind::Erased, data) }
}

async fn nulled(world: &World, run: &str) {
    world.sql(&format!("UPDATE record SET data = NULL WHERE run = '{run}' AND n = 2")).await;
}

/// Holds that neither verification nor sealing accepts the stream.
async fn is_found(world: &World, n: u64, part: LedgerPart) {
    let report = world.verify(world.options()).await;
    let found = report
        .divergences
        .iter()
        .find(|divergence| divergence.run.as_deref() == Some("ledger") && divergence.n == Some(n));
    assert_eq!(found.map(|divergence| divergence.part), Some(part), "{:?}", report.divergences);
}

async fn seal(world: &World) -> Result<(), LedgerError> {
    let store = Store::open(&world.db()).await.expect("it opens").store;
    let sealed = store.seal(&[world.key()], AT_MS + 9 * DAY_MS, false, Durability::Synced).await;
    store.close().await;
    sealed.map(|_| ())
}

#[tokio::test]
async fn what_the_ledgers_key_did_not_sign_erases_nothing() {
    // D11
    let world = World::new().await;
    let stranger = SecretKey::from_seed(&[9; 32]);
    for by in [None, Some(&stranger), Some(&SecretKey::from_seed(&[5; 32]))] {
        for data in [
            erased(A, 2),
            entry(Kind::Held, json!({"run": A, "by": "ada"})),
            entry(Kind::Released, json!({"run": A, "by": "ada"})),
            entry(Kind::Imported, json!({"runs": [A], "erased": {A: [2]}})),
        ] {
            let copy = world.copy();
            let kind = data.kind;
            let n = copy.forge("ledger", data, by).await;
            nulled(&copy, A).await;
            is_found(&copy, n, LedgerPart::Signature).await;
            let refused = seal(&copy).await.unwrap_err();
            assert!(matches!(refused, LedgerError::Corrupt { n: at, .. } if at == n), "{kind:?}: {refused}");
        }
    }
    // A signature of the key over another record is invalid for this one.
    let copy = world.copy();
    let n = copy.forge("ledger", erased(A, 2), Some(&*copy.key())).await;
    let m = copy.forge("ledger", erased(B, 2), None).await;
    nulled(&copy, B).await;
    copy.sql(&format!("INSERT INTO signature SELECT run, {m}, key, signature FROM signature WHERE run = 'ledger' AND n = {n}")).await;
    is_found(&copy, m, LedgerPart::Signature).await;
    assert!(seal(&copy).await.is_err());
    // Records after a signed record must be signed as well, whatever a later checkpoint covers.
    let copy = world.copy();
    copy.forge("ledger", erased(A, 2), Some(&*copy.key())).await;
    let n = copy.forge("ledger", erased(B, 2), None).await;
    is_found(&copy, n, LedgerPart::Signature).await;
}

#[tokio::test]
async fn what_may_not_be_erased_is_not_by_the_ledgers_key_either() {
    // D4, D11: hold, retention, time, and the plan that the erasure names.
    let world = World::new().await;
    let with = |key: &str, value: Value| {
        let mut entry = erased(A, 2);
        entry.data.insert(key.to_owned(), value);
        entry
    };
    let text = quorate_kernel::entropy::sha256_hex(b"What is reviewed.");
    for wrong in [
        erased(A, 0),
        with("days", json!(3)),
        with("days", json!(null)),
        with("reason", json!("consultations_off")),
        with("reason", json!("because")),
        with("run", json!("rzzzzzzzzzzzz")),
        with("records", json!([[2, 99]])),
        with("records", json!("all")),
        // A text that another run of the same age needs, which is on hold.
        with("bodies", json!([text])),
    ] {
        let copy = world.copy();
        copy.forge("ledger", entry(Kind::Held, json!({"run": B, "by": "ada"})), Some(&*copy.key())).await;
        copy.sql(&format!("INSERT INTO held VALUES ('{B}')")).await;
        let n = copy.forge("ledger", wrong.clone(), Some(&*copy.key())).await;
        nulled(&copy, A).await;
        is_found(&copy, n, LedgerPart::Record).await;
    }
    // Under a hold, and after its release.
    for released in [false, true] {
        let copy = world.copy();
        copy.forge("ledger", entry(Kind::Held, json!({"run": A, "by": "ada"})), Some(&*copy.key())).await;
        match released {
            true => {
                copy.forge("ledger", entry(Kind::Released, json!({"run": A})), Some(&*copy.key())).await;
            }
            false => copy.sql(&format!("INSERT INTO held VALUES ('{A}')")).await,
        }
        let n = copy.forge("ledger", erased(A, 2), Some(&*copy.key())).await;
        nulled(&copy, A).await;
        match released {
            true => assert_eq!(copy.verify(copy.options()).await.divergences, []),
            false => is_found(&copy, n, LedgerPart::Record).await,
        }
    }
    // An outcome is never erased.
    let copy = world.copy();
    copy.forge("ledger", with("records", json!([4])), Some(&*copy.key())).await;
    copy.sql(&format!("UPDATE record SET data = NULL WHERE run = '{A}' AND n = 4")).await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!(
        (found.kind, found.part, found.n),
        (DivergenceKind::Removed, LedgerPart::Record, Some(4)),
        "{found}"
    );
}

#[tokio::test]
async fn what_was_erased_as_it_should_holds_and_is_sealed() {
    // D4, D11
    let world = World::new().await;
    let store = Store::open(&world.db()).await.unwrap().store;
    store
        .append_ledger_record(entry(Kind::Held, json!({"run": B, "by": "ada"})), &world.key())
        .await
        .unwrap();
    // Removing a run from the index of holds does not end its hold.
    world.sql("DELETE FROM held").await;
    let unsaid = |opened: &RunOpened| opened.audit.is_none().then_some(1);
    let now_ms = AT_MS + 2 * DAY_MS;
    let terms = RetentionSettings { now_ms, default_days: &unsaid, conversation_days: None };
    let plan = store.plan_erasure(&terms).await.unwrap();
    assert!(
        store.erase(plan, now_ms, WipeMode::Rebuild, None).await.is_err(),
        "without a key the erasure cannot be signed"
    );
    let plan = store.plan_erasure(&terms).await.unwrap();
    let done = store.erase(plan, now_ms, WipeMode::Rebuild, Some(&*world.key())).await.unwrap();
    assert_eq!(done.runs.iter().map(|due| &*due.run).collect::<Vec<_>>(), [A]);
    world.sql(&format!("INSERT INTO held VALUES ('{B}')")).await;
    store.close().await;
    seal(&world).await.unwrap();
    assert_eq!(world.verify(world.options()).await.divergences, []);
    // The text that the others need still exists, and would otherwise be reported.
    world.sql("DELETE FROM body").await;
    let found = world.first_divergence(world.options()).await;
    assert_eq!((found.kind, found.part), (DivergenceKind::Removed, LedgerPart::Body), "{found}");
}

#[tokio::test]
async fn what_an_older_version_left_unsigned_counts_once_a_person_has_it_signed() {
    // D11
    let world = World::new().await;
    let n = world.forge("ledger", erased(A, 2), None).await;
    nulled(&world, A).await;
    // Its key vouches for it after the user has accepted it.
    is_found(&world, n, LedgerPart::Signature).await;
    assert!(seal(&world).await.is_err());
    // An older version has sealed it.
    let old = world.copy();
    old.sql("UPDATE record SET kind = 'checkpoint' WHERE 1 = 0").await;
    let store = Store::open(&old.db()).await.unwrap().store;
    assert_eq!(store.sign_unsigned_ledger_records(&old.key()).await.unwrap(), [n]);
    assert_eq!(store.sign_unsigned_ledger_records(&old.key()).await.unwrap(), [0; 0]);
    store.close().await;
    seal(&old).await.unwrap();
    assert_eq!(old.verify(old.options()).await.divergences, []);
    // Under a signed checkpoint the result is the same: the record looks like a signed record that was altered.
    old.sql("DELETE FROM signature WHERE run = 'ledger'").await;
    is_found(&old, n, LedgerPart::Signature).await;
    let store = Store::open(&old.db()).await.unwrap().store;
    assert_eq!(store.sign_unsigned_ledger_records(&old.key()).await.unwrap(), [n]);
    store.close().await;
    assert_eq!(old.verify(old.options()).await.divergences, []);
    // A missing key is reported.
    let report = world.verify(VerifyOptions::default()).await;
    assert!(!report.holds, "the checkpoints name one");
}

#[tokio::test]
async fn answers_of_a_conversation_go_once_they_are_settled_and_of_age() {
    // D4, D11: each record has its own period.
    let world = World::new().await;
    let talk = "turns/t/1";
    let answer = |at_ms: i64| Entry { at_ms, ..entry(Kind::Consultation, json!({"text": "It will do."})) };
    let (turn, late) = (entry(Kind::Turn, json!({})), AT_MS + DAY_MS / 2);
    for said in [answer(AT_MS), turn.clone(), answer(late), turn, answer(AT_MS)] {
        world.forge(talk, said, None).await;
    }
    let erase = async |records: Value, n: &[u64], at_ms: i64| {
        let copy = world.copy();
        let data = json!({"run": talk, "records": records, "bodies": [], "reason": "retention", "days": 1});
        let at = copy.forge("ledger", Entry { at_ms, ..entry(Kind::Erased, data) }, Some(&*copy.key())).await;
        for n in n {
            copy.sql(&format!("UPDATE record SET data = NULL WHERE run = '{talk}' AND n = {n}")).await;
        }
        let report = copy.verify(copy.options()).await;
        assert_eq!(report.erased, n.len() as u64);
        match report.holds {
            true => true,
            false => {
                is_found(&copy, at, LedgerPart::Record).await;
                false
            }
        }
    };
    assert!(erase(json!([0]), &[0], AT_MS + DAY_MS).await);
    assert!(erase(json!([[0, 2]]), &[0, 2], late + DAY_MS).await);
    assert!(!erase(json!([0]), &[0], AT_MS + DAY_MS - 1).await, "it is not a day old");
    assert!(!erase(json!([0, 2]), &[0, 2], late + DAY_MS - 1).await, "the other is not a day old");
    assert!(!erase(json!([0, 4]), &[0, 4], late + DAY_MS).await, "no turn has settled the last one");
    assert!(!erase(json!([5]), &[], late + DAY_MS).await, "there is no such record");
    // An erasure may name all records of a run.
    let copy = world.copy();
    let mut whole = erased(A, 2);
    whole.data.insert("records".to_owned(), json!([[1, 5]]));
    copy.forge("ledger", whole, Some(&*copy.key())).await;
    nulled(&copy, A).await;
    assert_eq!(copy.verify(copy.options()).await.divergences, []);
}

#[tokio::test]
async fn a_text_goes_once_every_run_that_names_it_allows_it() {
    // D4, D11
    let world = World { dir: tempfile::tempdir().unwrap() };
    let store = Store::open(&world.db()).await.unwrap().store;
    append(&store, A, 0, &review(None)).await;
    let later = |entry: Entry| Entry { at_ms: AT_MS + 5 * DAY_MS, ..entry };
    append(&store, B, 0, &review(None).into_iter().map(later).collect::<Vec<_>>()).await;
    world.seal(&store, false).await;
    store.close().await;
    let text = quorate_kernel::entropy::sha256_hex(b"What is reviewed.");
    for (days, allowed) in [(2, false), (5, true)] {
        let copy = world.copy();
        let mut erased = erased(A, days);
        erased.data.insert("bodies".to_owned(), json!([text]));
        let n = copy.forge("ledger", erased, Some(&*copy.key())).await;
        nulled(&copy, A).await;
        copy.sql("DELETE FROM body").await;
        match allowed {
            true => assert_eq!(copy.verify(copy.options()).await.divergences, []),
            false => is_found(&copy, n, LedgerPart::Record).await,
        }
    }
}

#[tokio::test]
async fn what_was_erased_before_it_was_imported_is_missing_rightly() {
    // D4: the other ledger's export shows it, and this ledger's key signs that.
    let world = World::new().await;
    let imported = json!({"runs": [A], "erased": {A: [2]}, "from": "quorate/other"});
    world.forge("ledger", entry(Kind::Imported, imported), Some(&*world.key())).await;
    world.sql(&format!("INSERT INTO imported VALUES ('{A}')")).await;
    nulled(&world, A).await;
    let report = world.verify(world.options()).await;
    assert_eq!((report.divergences, report.erased), (vec![], 1));
    world.sql(&format!("UPDATE record SET data = NULL WHERE run = '{A}' AND n = 3")).await;
    let found = world.first_divergence(world.options()).await;
    assert_eq!(
        (found.kind, found.part, found.n),
        (DivergenceKind::Removed, LedgerPart::Record, Some(3)),
        "{found}"
    );
}
