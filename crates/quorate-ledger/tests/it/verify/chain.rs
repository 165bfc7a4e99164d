//! Records that do not continue their run, with and without a checkpoint over them: the report names the right record
//! and nothing else.

use quorate_kernel::ports::ledger::{Entry, Kind};
use quorate_ledger::record::{self, PreparedEntry};
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyOptions, VerifyReport};
use serde_json::json;

use super::world::{A, B, C, World, entry};

/// Kind, part, run, number, first and last position of a divergence.
type Found<'a> = (DivergenceKind, LedgerPart, Option<&'a str>, Option<u64>, Option<u64>, Option<u64>);

fn found(report: &VerifyReport) -> Vec<Found<'_>> {
    let found = report.divergences.iter();
    found
        .map(|found| (found.kind, found.part, found.run.as_deref(), found.n, found.seq, found.last_seq))
        .collect()
}

fn of_record(kind: DivergenceKind, run: &str, n: u64, seq: u64) -> Found<'_> {
    (kind, LedgerPart::Record, Some(run), Some(n), Some(seq), None)
}

fn rule() -> Entry {
    entry(Kind::Rule, json!({"rule": "policy"}))
}

/// Writes a record at a position, with a chosen number and predecessor hash.
async fn put(world: &World, seq: u64, (run, n): (&str, u64), prev: Option<&str>, entry: Entry) -> String {
    let forged = PreparedEntry::prepare(entry).expect("an entry");
    let forged = forged.encode(run, n, prev).expect("a record");
    let (kind, head, data) = (forged.kind, &forged.head, &forged.data);
    world
        .sql(&format!("INSERT INTO record VALUES ({seq}, '{run}', {n}, '{kind}', '{head}', '{data}')"))
        .await;
    record::leaf(&forged.head)
}

#[tokio::test]
async fn a_run_without_a_gap_in_its_hashes_may_still_have_lost_records() {
    // D2: an attacker who removes the last records of a run writes the next one with the hash of the remaining last
    // record.
    let world = World::new().await;
    let stream = "turns/t/1";
    let first = put(&world, 26, (stream, 0), None, rule()).await;
    assert_eq!(found(&world.verify(world.options()).await), []);
    put(&world, 27, (stream, 5), Some(&first), rule()).await;
    assert_eq!(
        found(&world.verify(world.options()).await),
        [of_record(DivergenceKind::Removed, stream, 1, 27)]
    );
    // A stream must not begin after its first record either.
    let world = World::new().await;
    put(&world, 26, (stream, 5), None, rule()).await;
    assert_eq!(
        found(&world.verify(world.options()).await),
        [of_record(DivergenceKind::Removed, stream, 0, 26)]
    );
    // Its first record must follow no other.
    let world = World::new().await;
    put(&world, 26, (stream, 0), Some(&first), rule()).await;
    assert_eq!(
        found(&world.verify(world.options()).await),
        [of_record(DivergenceKind::Changed, stream, 0, 26)]
    );
}

#[tokio::test]
async fn an_unsealed_record_that_was_replaced_is_found() {
    // D2: no tree shows which of two records was changed, so the report is about the later one and names both.
    let world = World::new().await;
    let stream = "turns/t/1";
    let first = put(&world, 26, (stream, 0), None, rule()).await;
    let second = put(&world, 27, (stream, 1), Some(&first), rule()).await;
    put(&world, 28, (stream, 2), Some(&second), rule()).await;
    assert_eq!(found(&world.verify(world.options()).await), []);
    world.sql("DELETE FROM record WHERE seq = 27").await;
    put(&world, 27, (stream, 1), Some(&first), entry(Kind::Rule, json!({"rule": "another"}))).await;
    let report = world.verify(world.options()).await;
    assert_eq!(found(&report), [of_record(DivergenceKind::Changed, stream, 2, 28)]);
    assert!(report.divergences[0].what.contains("turns/t/1/1 before it"), "{}", report.divergences[0]);
}

#[tokio::test]
async fn of_two_sealed_records_the_one_that_is_not_in_the_tree_was_changed() {
    // D2
    let world = World::new().await;
    let from_row = |seq: u64| format!("(SELECT head FROM record WHERE seq = {seq})");
    let hash = async |world: &World, seq: u64| {
        let mut sqlite = world.sqlite().await;
        let head: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(from_row(seq)[1..from_row(seq).len() - 1].to_owned()))
                .fetch_one(&mut sqlite)
                .await
                .expect("a head");
        record::leaf(&head)
    };
    // The record before it was rewritten with all its hashes.
    let copy = world.copy();
    let before = hash(&copy, 15).await;
    copy.sql("DELETE FROM record WHERE seq = 16").await;
    put(&copy, 16, ("playbooks", 1), Some(&before), rule()).await;
    assert_eq!(
        found(&copy.verify(copy.options()).await)[0],
        of_record(DivergenceKind::Changed, "playbooks", 1, 16)
    );
    // It names another record than the preceding one.
    let copy = world.copy();
    copy.sql("DELETE FROM record WHERE seq = 17").await;
    put(&copy, 17, ("playbooks", 2), Some(&before), rule()).await;
    let report = copy.verify(copy.options()).await;
    assert_eq!(found(&report)[0], of_record(DivergenceKind::Changed, "playbooks", 2, 17));
    assert_eq!(report.divergences[0].what, "its head differs from the sealed one");
    // The preceding record is before the start of the walk and is not blamed.
    let copy = world.copy();
    let stream = "turns/t/1";
    put(&copy, 26, (stream, 0), None, rule()).await;
    let store = quorate_ledger::Store::open(&copy.db()).await.expect("it opens").store;
    copy.seal(&store, false).await;
    store.close().await;
    put(&copy, 28, (stream, 1), Some(&before), rule()).await;
    let since = VerifyOptions { since: Some(StartPoint::Size(26)), ..copy.options() };
    assert_eq!(found(&copy.verify(since).await), [of_record(DivergenceKind::Changed, stream, 1, 28)]);
    // A checkpoint that a person remembers, and that the ledger is too short for.
    let since = VerifyOptions { since: Some(StartPoint::Size(500)), ..copy.options() };
    let report = copy.verify(since).await;
    assert!(
        found(&report).contains(&(
            DivergenceKind::Cut,
            LedgerPart::Checkpoint,
            None,
            None,
            Some(29),
            Some(500)
        )),
        "{report:?}"
    );
}

#[tokio::test]
async fn each_missing_record_is_reported_at_its_place_and_named_by_the_next_one() {
    // D2
    let world = World::new().await;
    let gap = |seq, last| (DivergenceKind::Removed, LedgerPart::Record, None, None, Some(seq), last);
    let named = |run, n, seq| of_record(DivergenceKind::Removed, run, n, seq);
    let cases: [(&str, Vec<Found<'_>>); 4] = [
        ("seq IN (7, 8)", vec![gap(7, Some(8)), named(A, 3, 9)]),
        ("seq IN (5, 8)", vec![gap(5, None), named(A, 2, 7), gap(8, None), named(A, 4, 9)]),
        ("seq IN (5, 11)", vec![gap(5, None), named(A, 2, 7), gap(11, None), named(B, 3, 12)]),
        (
            "seq IN (16, 20, 21)",
            vec![gap(16, None), named("playbooks", 1, 17), gap(20, Some(21)), named(C, 2, 22)],
        ),
    ];
    for (places, wanted) in cases {
        let copy = world.copy();
        copy.sql(&format!("DELETE FROM record WHERE {places}")).await;
        let report = copy.verify(copy.options()).await;
        let missing: Vec<_> = found(&report)
            .into_iter()
            .filter(|found| found.0 == DivergenceKind::Removed && found.1 == LedgerPart::Record)
            .collect();
        assert_eq!(missing, wanted, "{places}");
    }
    let copy = world.copy();
    copy.sql("DELETE FROM record WHERE seq IN (7, 8)").await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!(found.what, "the records at 2 places are missing");
}

#[tokio::test]
async fn a_row_is_named_as_it_is_found_where_it_fits() {
    // D2: the head names another run, and the row's run continues.
    let world = World::new().await;
    for (change, n) in [(format!("'{A}', '{B}'"), 2), ("'\"n\":2', '\"n\":4'".to_owned(), 2)] {
        let copy = world.copy();
        copy.sql(&format!("UPDATE record SET head = replace(head, {change}) WHERE seq = 5")).await;
        let report = copy.verify(copy.options()).await;
        assert_eq!(found(&report)[0], of_record(DivergenceKind::Changed, A, n, 5), "{change}");
    }
}

#[tokio::test]
async fn a_record_that_does_not_hold_says_nothing_of_its_run() {
    // D2: its data differs from the recorded data, so the table of runs is not compared with it.
    let world = World::new().await;
    world.sql("UPDATE record SET data = replace(data, 'SHIP', 'HOLD') WHERE seq = 8").await;
    let consequence = of_record(DivergenceKind::Inserted, A, 5, 9);
    assert_eq!(
        found(&world.verify(world.options()).await),
        [of_record(DivergenceKind::Changed, A, 4, 8), consequence]
    );
}

#[tokio::test]
async fn a_record_that_its_run_does_not_allow_is_found() {
    // D2
    let world = World::new().await;
    let n = world.forge(A, rule(), None).await;
    assert_eq!(found(&world.verify(world.options()).await), [of_record(DivergenceKind::Inserted, A, n, 26)]);
    let world = World::new().await;
    world.forge("rddddddddddd0", rule(), None).await;
    assert_eq!(
        found(&world.verify(world.options()).await),
        [of_record(DivergenceKind::Changed, "rddddddddddd0", 0, 26)]
    );
    // A stream's records about keys and signatures have no effect on a run.
    let world = World::new().await;
    let says = json!({"audit": {"signing": "required", "keyring": []}});
    world.forge("notes", entry(Kind::Rule, says), None).await;
    assert_eq!(found(&world.verify(world.options()).await), []);
}
