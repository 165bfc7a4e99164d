//! Views compare the runs that they show with the records and with the tree.

use std::collections::BTreeMap;

use quorate_kernel::canonical;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::Store;
use quorate_ledger::runs::{ListedRun, RunFilter, RunFinding};
use quorate_ledger::store::address::StoreAddress;
use serde_json::{Map, Value, json};
use sqlx::{Connection as _, Row as _};

use super::world::{A, B, C, World, append, entry, review, seq_of};

/// The number of records that the last checkpoint covers.
const SEALED: usize = 24;

impl World {
    async fn opened(&self) -> Store {
        Store::open_read_only(&StoreAddress::from(&*self.db())).await.expect("it opens")
    }

    /// The verdicts in a list, by run.
    async fn listed(&self) -> BTreeMap<String, ListedRun> {
        let store = self.opened().await;
        let listed = store.listed_runs(&RunFilter::default(), 10).await.expect("listed");
        store.close().await;
        listed.into_iter().map(|listed| (listed.run.to_string(), listed)).collect()
    }

    /// The word that a list shows in place of the verdict.
    async fn shown(&self, run: &str) -> String {
        let listed = self.listed().await;
        let listed = listed.get(run).unwrap_or_else(|| panic!("{run} is not listed"));
        assert_eq!(listed.finding.is_some(), !listed.sealed, "{listed:?}");
        listed.verdict.clone().unwrap_or_else(|| "open".to_owned())
    }

    /// The word shown for a change in each record of a run.
    async fn whole(&self, run: &str) -> Option<&'static str> {
        let store = self.opened().await;
        let finding = store.compare_run(&run.into()).await.expect("compared");
        store.close().await;
        finding.map(|finding| finding.word())
    }
}

#[tokio::test]
async fn an_untouched_run_is_shown_and_sealed() {
    // D13
    let world = World::new().await;
    for (run, listed) in world.listed().await {
        assert_eq!((listed.verdict.as_deref(), listed.sealed, &listed.finding), (Some("SHIP"), true, &None));
        assert_eq!(world.whole(&run).await, None);
    }
    // Records after the last checkpoint are compared with their chain, and the run does not count as sealed.
    let store = Store::open(&world.db()).await.expect("it opens").store;
    append(&store, "rdddddddddddd", 0, &review(None)[..2]).await;
    append(&store, "reeeeeeeeeeee", 0, &review(None)).await;
    append(&store, A, 6, &[entry(Kind::Override, json!({"verdict": "HOLD", "logged": true}))]).await;
    store.close().await;
    let listed = world.listed().await;
    let words = |run: &str| (listed[run].verdict.as_deref(), listed[run].overridden.as_deref());
    assert_eq!(words("rdddddddddddd"), (None, None));
    assert_eq!(words("reeeeeeeeeeee"), (Some("SHIP"), None));
    assert_eq!(words(A), (Some("SHIP"), Some("HOLD")));
    for run in ["rdddddddddddd", "reeeeeeeeeeee", A] {
        assert_eq!((listed[run].sealed, &listed[run].finding), (false, &None), "{run}");
        assert_eq!(world.whole(run).await, None, "{run}");
    }
    assert!(listed[B].sealed);
}

#[tokio::test]
async fn a_row_that_differs_from_its_records_is_shown_as_altered() {
    // D13
    let world = World::new().await;
    for statement in [
        "UPDATE run SET verdict = 'HOLD' WHERE seq = 1",
        "UPDATE run SET verdict = NULL, decided_ms = NULL WHERE seq = 1",
        "UPDATE run SET verdict = NULL, decided_ms = NULL, ended = 0 WHERE seq = 1",
        "UPDATE run SET override = 'SHIP' WHERE seq = 1",
        "UPDATE run SET ended = 0 WHERE seq = 1",
        "UPDATE run SET subject = 'other.md' WHERE seq = 1",
        "UPDATE run SET artifact_type = 'legal' WHERE seq = 1",
        "UPDATE run SET artifact_sha256 = '00' WHERE seq = 1",
        "UPDATE run SET council = '' WHERE seq = 1",
        "UPDATE run SET log_path = '/elsewhere' WHERE seq = 1",
        "UPDATE run SET opened_ms = opened_ms - 1, decided_ms = decided_ms - 1 WHERE seq = 1",
        "UPDATE run_origin SET producer = 'eve' WHERE run = 'raaaaaaaaaaaa'",
        "UPDATE run_origin SET mode = 'voting' WHERE run = 'raaaaaaaaaaaa'",
        "DELETE FROM run_origin WHERE run = 'raaaaaaaaaaaa'",
        "INSERT INTO imported VALUES ('raaaaaaaaaaaa')",
        "DELETE FROM run WHERE seq = 1",
        "DELETE FROM run",
        "UPDATE run SET run = 'x' WHERE seq = 1; UPDATE run SET run = 'raaaaaaaaaaaa' WHERE seq = 3; \
         UPDATE run SET run = 'rcccccccccccc' WHERE run = 'x'; UPDATE run SET artifact_type = 'memo' WHERE seq = 3",
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        assert_eq!(copy.shown(A).await, "altered", "{statement}");
        assert_eq!(copy.whole(A).await, Some("altered"), "{statement}");
        if statement != "DELETE FROM run" {
            assert_eq!(copy.shown(B).await, "SHIP", "{statement}");
        }
    }
    // Rows without records, and a row that repeats another run's content.
    let copy = world.copy();
    copy.sql(
        "INSERT INTO run SELECT 9, 'rzzzzzzzzzzzz', opened_ms, subject, artifact_type, artifact_sha256, council, log_path, \
         verdict, decided_ms, override, ended FROM run WHERE seq = 1",
    )
    .await;
    assert_eq!((copy.shown("rzzzzzzzzzzzz").await, copy.shown(A).await), ("altered".into(), "SHIP".into()));
    // The newest row disappears without a gap in the numbers of the others.
    let copy = world.copy();
    copy.sql("DELETE FROM run WHERE seq = 3").await;
    assert_eq!((copy.shown(C).await, copy.shown(A).await), ("altered".into(), "SHIP".into()));
}

#[tokio::test]
async fn records_that_differ_from_the_tree_are_seen_by_the_row_that_shows_them() {
    // D13
    let world = World::new().await;
    let outcome = seq_of(A, 4);
    for statement in [
        format!("UPDATE record SET data = replace(data, 'SHIP', 'HOLD') WHERE seq = {outcome}"),
        format!("UPDATE record SET kind = 'rule' WHERE seq = {outcome}"),
        format!("DELETE FROM record WHERE seq = {outcome}"),
        format!("DELETE FROM record WHERE seq IN ({outcome}, {}); \
                 UPDATE run SET verdict = NULL, decided_ms = NULL, ended = 0 WHERE seq = 1", outcome + 1),
        format!("DELETE FROM record WHERE seq = {}", seq_of(A, 5)),
        "DELETE FROM record WHERE run = 'raaaaaaaaaaaa'".to_owned(),
        "UPDATE tile SET hashes = CAST(zeroblob(LENGTH(hashes)) AS BLOB)".to_owned(),
        "DELETE FROM tile".to_owned(),
        "UPDATE checkpoint SET root = SUBSTR(root, 2) || SUBSTR(root, 1, 1) WHERE size = (SELECT MAX(size) FROM checkpoint)"
            .to_owned(),
        format!("UPDATE record SET run = '{C}', n = 9 WHERE seq = {outcome}"),
    ] {
        let copy = world.copy();
        copy.sql(&statement).await;
        assert_eq!(copy.shown(A).await, "altered", "{statement}");
        assert_eq!(copy.whole(A).await, Some("altered"), "{statement}");
    }
    // The checkpoint that covers the last run is removed; earlier ones still cover the others.
    let copy = world.copy();
    copy.sql("DELETE FROM checkpoint WHERE size > 17").await;
    assert_eq!((copy.shown(C).await, copy.shown(A).await), ("altered".into(), "SHIP".into()));
    // Answers are not part of the row.
    for (statement, word) in [
        (
            format!("UPDATE record SET data = replace(data, 'do', 'not') WHERE seq = {}", seq_of(A, 2)),
            "altered",
        ),
        (format!("UPDATE record SET data = NULL WHERE seq = {}", seq_of(A, 2)), "damaged"),
        (
            "UPDATE record SET seq = -1 WHERE seq = 5; UPDATE record SET seq = 5 WHERE seq = 7; \
          UPDATE record SET seq = 7 WHERE seq = -1"
                .to_owned(),
            "altered",
        ),
        ("DELETE FROM body".to_owned(), "damaged"),
    ] {
        let copy = world.copy();
        copy.sql(&statement).await;
        assert_eq!(copy.whole(A).await, Some(word), "{statement}");
    }
    let copy = world.copy();
    copy.sql(&format!("UPDATE record SET data = NULL WHERE seq = {outcome}")).await;
    assert_eq!((copy.shown(A).await.as_str(), copy.whole(A).await), ("damaged", Some("damaged")));
}

#[tokio::test]
async fn records_that_were_hashed_again_are_altered() {
    // D13
    let world = World::new().await;
    let to_hold = |data: &mut Map<String, Value>| drop(data.insert("verdict".into(), json!("HOLD")));
    let row = "UPDATE run SET verdict = 'HOLD' WHERE seq = 1";
    for with_tree in [false, true] {
        let copy = world.copy();
        copy.rewrite(A, 4, to_hold).await;
        if with_tree {
            copy.rewrite_tiles(SEALED).await;
        }
        copy.sql(row).await;
        assert_eq!(
            (copy.shown(A).await.as_str(), copy.whole(A).await),
            ("altered", Some("altered")),
            "{with_tree}"
        );
    }
    // After the last checkpoint a duplicate key is found as well: readers could take either value.
    let copy = world.copy();
    let store = Store::open(&copy.db()).await.expect("it opens").store;
    append(&store, "rdddddddddddd", 0, &review(None)).await;
    store.close().await;
    let mut sqlite = copy.sqlite().await;
    let select = "SELECT head, data FROM record WHERE run = 'rdddddddddddd' AND n = 5";
    let ended = sqlx::query(select).fetch_one(&mut sqlite).await.expect("a record");
    let (head, data): (String, String) = (ended.get(0), ended.get(1));
    let twice = data.replacen('{', r#"{"logged":false,"#, 1);
    let mut head: Map<String, Value> = serde_json::from_str(&head).expect("a head");
    head.insert("data_sha256".into(), json!(sha256_hex(twice.as_bytes())));
    let update = sqlx::query("UPDATE record SET head = ?, data = ? WHERE run = 'rdddddddddddd' AND n = 5");
    update.bind(canonical::object(&head)).bind(twice).execute(&mut sqlite).await.expect("written");
    sqlite.close().await.expect("closed");
    assert_eq!(copy.shown("rdddddddddddd").await, "altered");
}

#[tokio::test]
async fn a_run_that_is_put_behind_the_checkpoint_is_altered() {
    // D13: the sealed run is removed, and another one with the same name is appended.
    let world = World::new().await;
    let copy = world.copy();
    copy.sql("UPDATE record SET seq = seq + 100 WHERE run = 'raaaaaaaaaaaa'").await;
    assert_eq!((copy.shown(A).await.as_str(), copy.whole(A).await), ("altered", Some("altered")));
    // One of its records may have been in the gap.
    assert_eq!(copy.shown(B).await, "altered");
}

#[tokio::test]
async fn an_outcome_that_an_erasure_accounts_for_is_erased() {
    // D13: only a record of the ledger that is sealed or signed by its key explains a missing body.
    let world = World::new().await;
    let erased = || {
        let records = json!([[4, 4]]);
        entry(
            Kind::Erased,
            json!({"run": A, "records": records, "bodies": [], "reason": "retention", "days": 3}),
        )
    };
    for (signed, word) in [(true, "erased"), (false, "damaged")] {
        let copy = world.copy();
        let key = copy.key();
        copy.forge("ledger", erased(), signed.then_some(&*key)).await;
        copy.sql(&format!("UPDATE record SET data = NULL WHERE seq = {}", seq_of(A, 4))).await;
        assert_eq!((copy.shown(A).await.as_str(), copy.whole(A).await), (word, Some(word)), "{signed}");
    }
    assert_eq!(RunFinding::Erased.difference(), None);
}
