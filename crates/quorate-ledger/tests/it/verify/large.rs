//! A ledger with several pages and several stored rows: the second of each is checked like the first.

use std::time::Duration;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Kind, Ledger as _};
use quorate_ledger::Store;
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyOptions, VerifyReport};
use serde_json::json;

use super::world::{AT_MS, World, entry};

const TALK: &str = "turns/t/1";
/// More records than a page has, and more hashes than eight stored rows have.
const TURNS: u64 = 2_100;

/// Conversation turns only, sealed twice, the first time before the last hundred.
async fn long_talk() -> World {
    let world = World { dir: tempfile::tempdir().expect("a directory") };
    let store = Store::open(&world.db()).await.expect("it opens").store;
    let append = async |from: u64, to: u64| {
        let entries = (from..to).map(|n| entry(Kind::Turn, json!({"n": n}))).collect();
        let run = TALK.into();
        let append = Append { run, from, entries, bodies: Vec::new(), durability: Durability::Written };
        store.append(append).await.expect("appended");
    };
    append(0, TURNS - 100).await;
    world.seal(&store, false).await;
    append(TURNS - 100, TURNS).await;
    world.seal(&store, false).await;
    store.close().await;
    world
}

/// Kind, part, record, first and last position of a divergence.
type Found = (DivergenceKind, LedgerPart, Option<u64>, Option<u64>, Option<u64>);

fn found(report: &VerifyReport) -> Vec<Found> {
    let found = report.divergences.iter();
    found.map(|found| (found.kind, found.part, found.n, found.seq, found.last_seq)).collect()
}

#[tokio::test]
async fn every_stored_hash_is_compared() {
    // D2
    let world = long_talk().await;
    let report = world.verify(world.witnessed()).await;
    assert_eq!((found(&report), report.records, report.checkpoints.signed), (vec![], TURNS + 2, TURNS + 1));
    assert!(report.records_duration > Duration::ZERO);
    let since = || Some(StartPoint::Size(TURNS - 100));
    let report = world.verify(VerifyOptions { since: since(), ..world.witnessed() }).await;
    assert_eq!((found(&report), report.records), (vec![], 102));
    let zeroed = |level: u32, idx: u64, at: usize| {
        format!(
            "UPDATE tile SET hashes = CAST(substr(hashes, 1, {from}) || zeroblob(32) || substr(hashes, {rest}) AS BLOB) \
             WHERE level = {level} AND idx = {idx}",
            from = at * 32,
            rest = at * 32 + 33,
        )
    };
    let leaf = |n: u64, seq: u64| vec![(DivergenceKind::Changed, LedgerPart::Tree, Some(n), Some(seq), None)];
    let upper = |kind| vec![(kind, LedgerPart::Tree, None, None, None)];
    let changed = upper(DivergenceKind::Changed);
    let moved = [upper(DivergenceKind::Inserted), upper(DivergenceKind::Removed)].concat();
    let cases: Vec<(String, Vec<Found>)> = vec![
        (zeroed(0, 1, 44), leaf(300, 301)),
        // The first checkpoint is at position 2001.
        (zeroed(0, 7, 255), leaf(2046, 2048)),
        (zeroed(0, 8, 40), leaf(2087, 2089)),
        (zeroed(8, 0, 0), changed.clone()),
        (zeroed(8, 0, 3), changed.clone()),
        (zeroed(8, 0, 7), changed.clone()),
        ("UPDATE tile SET hashes = substr(hashes, 1, 224) WHERE level = 8".into(), changed.clone()),
        (
            "UPDATE tile SET hashes = CAST(hashes || zeroblob(32) AS BLOB) WHERE level = 8".into(),
            changed.clone(),
        ),
        ("UPDATE tile SET idx = 1 WHERE level = 8".into(), moved),
        ("DELETE FROM tile WHERE level = 8".into(), upper(DivergenceKind::Removed)),
        ("INSERT INTO tile VALUES (16, 0, zeroblob(32))".into(), upper(DivergenceKind::Inserted)),
    ];
    for (statement, wanted) in cases {
        let copy = world.copy();
        copy.sql(&statement).await;
        assert_eq!(found(&copy.verify(copy.options()).await), wanted, "{statement}");
        // After a trusted checkpoint the upper hashes before it are not computed again; only their number is checked.
        let options = VerifyOptions { since: since(), ..copy.options() };
        let found = found(&copy.verify(options).await);
        let is_after = wanted[0].3.is_some_and(|seq| seq > TURNS - 100)
            || (wanted[0].3.is_none() && !statement.contains("zeroblob(32) ||"));
        assert!(!is_after || found.contains(&wanted[0]), "{statement}: {found:?}");
    }
}

#[tokio::test]
async fn stored_leaves_are_in_whole_rows_without_gaps() {
    // D2
    let world = long_talk().await;
    let leaves = TURNS + 1;
    for (statement, seq) in [
        ("UPDATE tile SET idx = -1 WHERE level = 0 AND idx = 0", leaves + 1),
        ("UPDATE tile SET idx = 9 WHERE level = 0 AND idx = 8", leaves + 1),
        // All existing ones, and an incomplete row before the last one.
        (
            "UPDATE tile SET hashes = CAST(hashes || zeroblob(32) AS BLOB) WHERE level = 0 AND idx = 1; \
             UPDATE tile SET hashes = substr(hashes, 1, 255 * 32) WHERE level = 0 AND idx = 2",
            leaves + 1,
        ),
        ("UPDATE tile SET hashes = CAST(hashes || x'00' AS BLOB) WHERE level = 0 AND idx = 8", leaves + 1),
        ("UPDATE tile SET hashes = substr(hashes, 1, 8191) WHERE level = 0 AND idx = 2", leaves),
        ("DELETE FROM tile WHERE level = 0 AND idx = 8", 8 * 256 + 1),
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        let found = found(&copy.verify(copy.options()).await);
        assert!(
            found.contains(&(DivergenceKind::Removed, LedgerPart::Tree, None, Some(seq), None)),
            "{statement}: {found:?}"
        );
    }
}

#[tokio::test]
async fn what_follows_missing_records_is_still_compared() {
    // D2: the stored leaves replace them, as far as they exist.
    let world = long_talk().await;
    let copy = world.copy();
    copy.sql("DELETE FROM record WHERE seq BETWEEN 300 AND 399").await;
    copy.sql("UPDATE tile SET hashes = CAST(zeroblob(32) || substr(hashes, 33) AS BLOB) WHERE level = 0 AND idx = 3").await;
    let report = copy.verify(copy.options()).await;
    let wanted = [
        (DivergenceKind::Removed, LedgerPart::Record, None, Some(300), Some(399)),
        (DivergenceKind::Removed, LedgerPart::Record, Some(299), Some(400), None),
        (DivergenceKind::Changed, LedgerPart::Tree, Some(768), Some(769), None),
    ];
    assert_eq!(found(&report), wanted);
    assert!(report.root.is_some(), "the root is known");
    // A range of positions without leaves ends that, and is passed as well.
    for by in [70_000, 4_000_000_000_u64] {
        let copy = world.copy();
        copy.sql(&format!(
            "UPDATE record SET seq = -seq WHERE seq > 2050; UPDATE record SET seq = {by} - seq WHERE seq < 0"
        ))
        .await;
        let report = copy.verify(copy.options()).await;
        let missing = (DivergenceKind::Removed, LedgerPart::Record, None, Some(2051), Some(2050 + by));
        assert!(found(&report).contains(&missing), "{:?}", found(&report));
        assert_eq!((report.size, report.records), (None, TURNS + 2));
    }
}

#[tokio::test]
async fn tables_of_several_pages_are_compared() {
    // D2: the same number of runs, each with its own text.
    const RUNS: usize = 1_003;
    let world = World { dir: tempfile::tempdir().expect("a directory") };
    let store = Store::open(&world.db()).await.expect("it opens").store;
    let runs: Vec<(String, String)> =
        (0..RUNS).map(|at| (format!("r{at:012}"), format!("Text {at}."))).collect();
    let appended = runs.iter().map(|(run, text)| {
        let sha256 = sha256_hex(text.as_bytes());
        let opened = json!({
            "protocol": "council/1",
            "inputs": [{"kind": "artifact", "name": "draft.md", "sha256": sha256}],
        });
        let append = Append {
            run: run.as_str().into(),
            from: 0,
            entries: vec![entry(Kind::RunOpened, opened), entry(Kind::Outcome, json!({"verdict": "SHIP"}))],
            bodies: vec![Body { sha256, text: text.as_str().into() }],
            durability: Durability::Written,
        };
        store.append(append)
    });
    for appended in futures::future::join_all(appended).await {
        appended.expect("appended");
    }
    store.seal(&[world.key()], AT_MS, false, Durability::Synced).await.expect("sealed");
    store.close().await;
    let report = world.verify(world.options()).await;
    assert_eq!((found(&report), report.texts, report.open.count), (vec![], RUNS as u64, RUNS as u64));
    world.sql("UPDATE run SET verdict = 'HOLD' WHERE seq = 1002").await;
    let last = "SELECT sha256 FROM body ORDER BY sha256 DESC LIMIT 1";
    world.sql(&format!("UPDATE body SET text = text || '.' WHERE sha256 = ({last})")).await;
    let report = world.verify(world.options()).await;
    let parts: Vec<_> = report.divergences.iter().map(|found| (found.kind, found.part)).collect();
    assert_eq!(
        parts,
        [(DivergenceKind::Changed, LedgerPart::Body), (DivergenceKind::Changed, LedgerPart::Index)]
    );
}

#[tokio::test]
async fn what_is_before_an_unreadable_stretch_is_still_verified() {
    // D2: a page of the file with records was overwritten.
    let world = long_talk().await;
    let (mut bytes, page) = with_page(&world);
    bytes[page].fill(0);
    let copy = world.copy();
    std::fs::write(copy.db(), bytes).expect("written");
    let report = copy.verify(copy.options()).await;
    let ended =
        report.divergences.iter().find(|found| found.what.contains("cannot read any records from here on"));
    let ended = ended.expect("it is said where").seq.expect("a place");
    assert!((1_400..=1_501).contains(&ended), "{ended}");
    assert_eq!(report.records, ended - 1, "all before it are verified");
    // A change before it is found.
    copy.sql("UPDATE record SET data = '{}' WHERE seq = 700").await;
    let found = found(&copy.verify(copy.options()).await);
    assert_eq!(found[0], (DivergenceKind::Changed, LedgerPart::Record, Some(699), Some(700), None));
}

/// The bytes of its file, and the offset of the page that contains turn 1,500.
fn with_page(world: &World) -> (Vec<u8>, std::ops::Range<usize>) {
    let bytes = std::fs::read(world.db()).expect("read");
    let head = b"\"kind\":\"turn\",\"n\":1500,";
    let at = bytes.windows(head.len()).position(|window| window == head).expect("it is in the file");
    let size = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    (bytes, at / size * size..(at / size + 1) * size)
}

#[tokio::test]
async fn a_file_that_gives_its_rows_in_no_order_ends_the_walk() {
    // D2: two rows of a page swapped, which the database does not notice.
    let world = long_talk().await;
    let (mut bytes, page) = with_page(&world);
    // A leaf page has a header of eight bytes, followed by the offsets of its rows, two bytes each.
    let rows = &mut bytes[page][8..12];
    rows.rotate_left(2);
    let copy = world.copy();
    std::fs::write(copy.db(), bytes).expect("written");
    let report = copy.verify(copy.options()).await;
    assert!(
        report.divergences[0].what.ends_with("the database returns its rows out of order"),
        "{}",
        report.divergences[0]
    );
    assert_eq!((report.divergences[0].seq, report.records), (Some(1), 0));
}
