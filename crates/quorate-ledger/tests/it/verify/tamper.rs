//! Tampering by an attacker who can write the file.

use quorate_kernel::ports::ledger::{Durability, Entry, Kind};
use quorate_kernel::record::AcceptedKey;
use quorate_ledger::record::PreparedEntry;
use quorate_ledger::signing::SecretKey;
use quorate_ledger::store::Succession;
use quorate_ledger::verify::{Divergence, DivergenceKind, LedgerPart, VerifyOptions};
use quorate_ledger::{Store, keys};
use serde_json::json;

use super::world::{A, B, C, World, assert_divergence, seq_of};

/// A statement, and the expected divergence: kind, run and number.
type Case<'a> = (&'a str, DivergenceKind, &'a str, u64);

#[tokio::test]
async fn a_record_that_is_touched_is_named() {
    // D2
    let world = World::new().await;
    let cases: &[Case<'_>] = &[
        (
            "UPDATE record SET data = replace(data, 'It will do', 'It won''t do') WHERE seq = 5",
            DivergenceKind::Changed,
            A,
            2,
        ),
        ("UPDATE record SET data = '' WHERE seq = 16", DivergenceKind::Changed, "playbooks", 1),
        ("UPDATE record SET data = NULL WHERE seq = 6", DivergenceKind::Removed, B, 2),
        (
            "UPDATE record SET head = replace(head, '2026', '2027') WHERE seq = 12",
            DivergenceKind::Changed,
            B,
            4,
        ),
        ("UPDATE record SET head = replace(head, ',', ' ,') WHERE seq = 1", DivergenceKind::Changed, A, 0),
        ("UPDATE record SET head = 'x' WHERE seq = 9", DivergenceKind::Changed, A, 5),
        ("UPDATE record SET head = x'ff' WHERE seq = 9", DivergenceKind::Changed, "", 9),
        (
            "UPDATE record SET head = replace(head, '\"v\":1', '\"v\":2') WHERE seq = 20",
            DivergenceKind::Changed,
            C,
            2,
        ),
        ("UPDATE record SET kind = 'attempt' WHERE seq = 5", DivergenceKind::Changed, A, 2),
        ("UPDATE record SET run = 'rzzzzzzzzzzzz' WHERE seq = 9", DivergenceKind::Changed, A, 5),
        ("UPDATE record SET n = 50 WHERE seq = 17", DivergenceKind::Changed, "playbooks", 2),
        ("DELETE FROM record WHERE seq = 1", DivergenceKind::Removed, A, 0),
        ("DELETE FROM record WHERE seq = 8", DivergenceKind::Removed, A, 4),
        ("DELETE FROM record WHERE seq = 9", DivergenceKind::Removed, A, 5),
        ("DELETE FROM record WHERE seq = 14", DivergenceKind::Removed, "ledger", 1),
        ("DELETE FROM record WHERE seq = 25", DivergenceKind::Cut, "ledger", 3),
        ("DELETE FROM record WHERE run = 'rbbbbbbbbbbbb'", DivergenceKind::Removed, B, 0),
        ("DELETE FROM record WHERE run = 'rcccccccccccc'", DivergenceKind::Removed, C, 0),
    ];
    for (statement, kind, run, n) in cases {
        let copy = world.copy();
        copy.sql(statement).await;
        let report = copy.verify(copy.options()).await;
        let first = &report.divergences[0];
        if run.is_empty() {
            assert_eq!((first.kind, first.seq), (*kind, Some(*n)), "{statement}: {first}");
            continue;
        }
        assert_eq!(
            (first.kind, first.seq),
            (*kind, Some(seq_of(run, usize::try_from(*n).expect("small")))),
            "{statement}: {first}"
        );
        // A missing record is named by the next one of its run, or by the row of its run.
        let names = |found: &Divergence| found.run.as_deref() == Some(run);
        assert!(report.divergences.iter().any(names), "{statement}: {:?}", report.divergences);
        if *kind == DivergenceKind::Changed {
            assert_eq!(first.n, Some(*n), "{statement}: {first}");
        }
    }
}

/// Swaps two positions.
fn swap(one: u64, other: u64) -> String {
    format!(
        "UPDATE record SET seq = -1 WHERE seq = {one}; UPDATE record SET seq = {one} WHERE seq = {other}; \
         UPDATE record SET seq = {other} WHERE seq = -1"
    )
}

/// Moves all records from a position on by one.
fn make_room(from: u64) -> String {
    format!(
        "UPDATE record SET seq = -seq WHERE seq >= {from}; UPDATE record SET seq = 1 - seq WHERE seq < 0;"
    )
}

/// Closes the gap at a position.
fn close_up(from: u64) -> String {
    format!(
        "UPDATE record SET seq = -seq WHERE seq > {from}; UPDATE record SET seq = -seq - 1 WHERE seq < 0;"
    )
}

#[tokio::test]
async fn what_was_moved_is_reordered() {
    // D2
    let world = World::new().await;
    for (one, other) in [(7, 8), (15, 17), (20, 21), (5, 6), (4, 16), (1, 3), (10, 14), (9, 10)] {
        let copy = world.copy();
        copy.sql(&swap(one, other)).await;
        for options in [copy.options(), copy.witnessed()] {
            let found = copy.first_divergence(options).await;
            eprintln!("{one} and {other}: {found}");
            assert_eq!(
                (found.kind, found.part, found.seq),
                (DivergenceKind::Reordered, LedgerPart::Record, Some(one)),
                "{found}"
            );
        }
    }
}

#[tokio::test]
async fn what_was_taken_out_without_a_gap_is_removed() {
    // D2
    let world = World::new().await;
    for gone in [2, 6, 9, 16, 23] {
        let copy = world.copy();
        copy.sql(&format!("DELETE FROM record WHERE seq = {gone}; {}", close_up(gone))).await;
        let found = copy.first_divergence(copy.options()).await;
        eprintln!("{gone}: {found}");
        assert_eq!((found.kind, found.seq), (DivergenceKind::Removed, Some(gone)), "{found}");
    }
}

#[tokio::test]
async fn what_was_put_in_is_inserted() {
    // D2
    let world = World::new().await;
    let copy_of = |from: u64, to: u64, n: u64| {
        format!(
            "{} INSERT INTO record (seq, run, n, kind, head, data) SELECT {to}, run, {n}, kind, head, data FROM record \
             WHERE seq = {}",
            make_room(to),
            if from >= to { from + 1 } else { from },
        )
    };
    // A copy of a record later in its run.
    let copy = world.copy();
    copy.sql(&copy_of(5, 9, 77)).await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!((found.kind, found.seq, found.n), (DivergenceKind::Inserted, Some(9), Some(2)), "{found}");
    // At an impossible position.
    let copy = world.copy();
    copy.sql("INSERT INTO record SELECT -3, run, 78, kind, head, data FROM record WHERE seq = 5").await;
    assert_eq!(copy.first_divergence(copy.options()).await.kind, DivergenceKind::Inserted);
    // A forged run with consistent hashes, inserted among sealed records.
    for at in [5, 15] {
        let copy = world.copy();
        let rule = Entry { kind: Kind::Rule, at_ms: 1, data: serde_json::Map::new() };
        let forged = PreparedEntry::prepare(rule).unwrap();
        let forged = forged.encode("rddddddddddddd", 0, None).unwrap();
        let (head, data) = (&forged.head, &forged.data);
        let insert =
            format!("INSERT INTO record VALUES ({at}, 'rddddddddddddd', 0, 'rule', '{head}', '{data}')");
        copy.sql(&format!("{} {insert}", make_room(at))).await;
        let found = copy.first_divergence(copy.options()).await;
        assert_eq!((found.kind, found.seq), (DivergenceKind::Inserted, Some(at)), "{found}");
        assert_eq!(found.run.as_deref(), Some("rddddddddddddd"));
    }
}

#[tokio::test]
async fn a_run_that_was_written_anew_is_found_by_the_tree() {
    // D2
    let world = World::new().await;
    let to_hold = |data: &mut serde_json::Map<String, serde_json::Value>| {
        data.insert("verdict".into(), json!("HOLD"));
    };
    let copy = world.copy();
    copy.rewrite(B, 4, to_hold).await;
    copy.sql(&format!("UPDATE run SET verdict = 'HOLD' WHERE run = '{B}'")).await;
    for options in [copy.options(), copy.witnessed()] {
        let found = copy.first_divergence(options).await;
        assert_divergence(&found, DivergenceKind::Changed, B, 4);
        assert_eq!(found.part, LedgerPart::Record);
    }
    // If the stored leaves are changed as well, the checkpoints narrow it down.
    copy.rewrite_tiles(24).await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!(
        (found.kind, found.seq, found.last_seq),
        (DivergenceKind::Changed, Some(10), Some(13)),
        "{found}"
    );
    // In a signed run it is found exactly.
    let copy = world.copy();
    copy.rewrite(C, 4, to_hold).await;
    copy.rewrite_tiles(24).await;
    let report = copy.verify(copy.options()).await;
    let signature = report.divergences.iter().find(|found| found.part == LedgerPart::Signature).unwrap();
    assert_divergence(signature, DivergenceKind::Changed, C, 4);
}

#[tokio::test]
async fn a_stored_tree_that_was_written_anew_differs() {
    // D2
    let world = World::new().await;
    for statement in [
        "UPDATE tile SET hashes = x'00' || substr(hashes, 2) WHERE level = 0",
        "UPDATE tile SET hashes = zeroblob(768) WHERE level = 0",
        "UPDATE tile SET hashes = hashes || zeroblob(32) WHERE level = 0",
        "UPDATE tile SET hashes = substr(hashes, 1, 32) WHERE level = 0",
        "UPDATE tile SET idx = 1",
        "UPDATE tile SET level = 8",
        "DELETE FROM tile",
        "INSERT INTO tile VALUES (8, 0, zeroblob(32))",
        "DROP TABLE tile",
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        assert!(!copy.verify(copy.options()).await.holds, "{statement}");
    }
}

#[tokio::test]
async fn a_checkpoint_that_is_touched_differs() {
    // D2
    let world = World::new().await;
    for (statement, kind) in [
        ("DELETE FROM checkpoint WHERE size = 13", DivergenceKind::Removed),
        ("UPDATE checkpoint SET root = replace(root, '0', '1') WHERE size = 13", DivergenceKind::Changed),
        ("UPDATE checkpoint SET n = 9 WHERE size = 13", DivergenceKind::Changed),
        ("INSERT INTO checkpoint SELECT 99, root, 4 FROM checkpoint WHERE size = 13", DivergenceKind::Cut),
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        let found = copy.first_divergence(copy.options()).await;
        assert_eq!((found.kind, found.part), (kind, LedgerPart::Checkpoint), "{statement}: {found}");
    }
    // The last record, which nothing else covers, rewritten with all its hashes.
    for (key, value) in [
        ("size", json!(23)),
        ("root", json!("00".repeat(32))),
        ("origin", json!("quorate/elsewhere")),
        ("keys", json!([])),
        ("note", json!("no note")),
    ] {
        let copy = world.copy();
        copy.rewrite("ledger", 3, |data| {
            data.insert(key.into(), value.clone());
        })
        .await;
        let report = copy.verify(copy.options()).await;
        let mut about = report.divergences.iter().filter(|found| found.part == LedgerPart::Checkpoint);
        assert!(about.any(|found| found.n == Some(3)), "{key}: {:?}", report.divergences);
    }
    // Without its signature it is reported as unsigned. The witness has seen more records.
    let copy = world.copy();
    copy.rewrite("ledger", 3, |data| {
        data.insert("note".into(), json!(null));
        data.insert("keys".into(), json!([]));
    })
    .await;
    let report = copy.verify(copy.options()).await;
    assert_eq!((report.divergence_count, report.checkpoints.unsigned, report.checkpoints.signed), (0, 1, 23));
}

#[tokio::test]
async fn a_checkpoint_by_another_key_differs() {
    // D2
    let world = World::new().await;
    let cut = "DELETE FROM record WHERE seq > 13; DELETE FROM checkpoint WHERE size >= 13; DELETE FROM run WHERE run = 'rcccccccccccc'; DELETE FROM run_origin WHERE run = 'rcccccccccccc'; \
               DELETE FROM signature; UPDATE tile SET hashes = substr(hashes, 1, 9 * 32)";
    world.sql(cut).await;
    let stranger = std::sync::Arc::new(SecretKey::from_seed(&[9; 32]));
    let store = Store::open(&world.db()).await.unwrap().store;
    let refused = store.seal(std::slice::from_ref(&stranger), 2_000, false, Durability::Synced).await;
    assert!(refused.unwrap_err().to_string().contains("none of its keys"), "the writer asks the verifier");
    // The ledger's own acceptance of the key is signed by the attacker's key.
    let accepted = AcceptedKey {
        key: stranger.public().to_string(),
        by: "ada".into(),
        reason: "the old one was lost".into(),
    };
    let says = Succession { accepted: vec![accepted], ..Succession::default() };
    for again in [false, true] {
        let says = if again { Succession::default() } else { says.clone() };
        let keys = std::slice::from_ref(&stranger);
        store.seal_with(keys, 2_000, again, Durability::Synced, says).await.unwrap();
    }
    store.close().await;
    for ledger_keys in [vec![world.key().public()], Vec::new()] {
        let report = world.verify(VerifyOptions { ledger_keys, ..VerifyOptions::default() }).await;
        let found = &report.divergences[0];
        assert_eq!(found.part, LedgerPart::Checkpoint);
        assert_divergence(found, DivergenceKind::Changed, "ledger", 1);
    }
    assert!(
        !world
            .verify(VerifyOptions { ledger_keys: vec![stranger.public()], ..VerifyOptions::default() })
            .await
            .holds
    );
}

#[tokio::test]
async fn a_signature_that_is_touched_differs() {
    // D3
    let world = World::new().await;
    let other = keys::KeyDirectory::new(world.dir.path())
        .load(keys::KeyPurpose::Ledger)
        .unwrap()
        .unwrap()
        .public()
        .id();
    let insert = format!("INSERT INTO signature SELECT '{A}', 2, key, signature FROM signature WHERE n = 0");
    let stranger = format!("UPDATE signature SET key = '{other}' WHERE n = 3");
    for (statement, kind, run, n) in [
        ("DELETE FROM signature WHERE n = 3", DivergenceKind::Removed, C, 3),
        ("DELETE FROM signature WHERE n = 0", DivergenceKind::Removed, C, 0),
        ("DELETE FROM signature", DivergenceKind::Removed, C, 0),
        (
            "UPDATE signature SET signature = (SELECT signature FROM signature WHERE n = 1) WHERE n = 2",
            DivergenceKind::Changed,
            C,
            2,
        ),
        ("UPDATE signature SET signature = 'x' WHERE n = 5", DivergenceKind::Changed, C, 5),
        (
            "UPDATE signature SET n = -n WHERE n IN (1, 2); UPDATE signature SET n = 3 + n WHERE n < 0",
            DivergenceKind::Changed,
            C,
            1,
        ),
        (&stranger, DivergenceKind::Changed, C, 3),
        (&insert, DivergenceKind::Inserted, A, 2),
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        let found = copy.first_divergence(copy.options()).await;
        assert_eq!(found.part, LedgerPart::Signature, "{statement}: {found}");
        assert_divergence(&found, kind, run, n);
    }
    let copy = world.copy();
    copy.sql("INSERT INTO signature SELECT run, 99, key, signature FROM signature WHERE n = 0").await;
    let found = copy.first_divergence(copy.options()).await;
    assert_eq!(
        (found.kind, found.part, found.n),
        (DivergenceKind::Inserted, LedgerPart::Signature, Some(99))
    );
}

#[tokio::test]
async fn an_index_that_is_touched_differs() {
    // D2
    let world = World::new().await;
    for (statement, kind, part) in [
        ("UPDATE run SET verdict = 'HOLD' WHERE seq = 1", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET verdict = NULL WHERE seq = 1", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET override = 'HOLD' WHERE seq = 2", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET ended = 0 WHERE seq = 2", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET opened_ms = 5 WHERE seq = 3", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET decided_ms = 5 WHERE seq = 3", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET subject = 'other.md' WHERE seq = 3", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run SET log_path = '/elsewhere' WHERE seq = 3", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run_origin SET producer = 'other'", DivergenceKind::Changed, LedgerPart::Index),
        ("UPDATE run_origin SET mode = 'voting'", DivergenceKind::Changed, LedgerPart::Index),
        ("DELETE FROM run_origin", DivergenceKind::Changed, LedgerPart::Index),
        (
            "INSERT INTO run_origin VALUES ('rzzzzzzzzzzzz', 'council', 'other')",
            DivergenceKind::Inserted,
            LedgerPart::Index,
        ),
        ("UPDATE run SET seq = 9 WHERE seq = 1", DivergenceKind::Reordered, LedgerPart::Index),
        ("DELETE FROM run WHERE seq = 1", DivergenceKind::Removed, LedgerPart::Index),
        (
            "INSERT INTO run SELECT 9, 'rzzzzzzzzzzzz', opened_ms, '', '', '', '', '', NULL, NULL, NULL, 0 FROM run WHERE seq = 1",
            DivergenceKind::Inserted,
            LedgerPart::Index,
        ),
        ("INSERT INTO held VALUES ('raaaaaaaaaaaa')", DivergenceKind::Inserted, LedgerPart::Index),
        ("INSERT INTO imported VALUES ('raaaaaaaaaaaa')", DivergenceKind::Inserted, LedgerPart::Index),
        ("UPDATE body SET text = text || '.'", DivergenceKind::Changed, LedgerPart::Body),
        ("UPDATE body SET text = x'ff'", DivergenceKind::Changed, LedgerPart::Body),
        ("DELETE FROM body", DivergenceKind::Removed, LedgerPart::Body),
        (
            "INSERT INTO body VALUES ('6b23c0d5f35d1b11f9b683f0b0a617355deb11277d91ae091d399c655b87940d', 'C')",
            DivergenceKind::Inserted,
            LedgerPart::Body,
        ),
        ("DROP TABLE run", DivergenceKind::Changed, LedgerPart::Index),
    ] {
        let copy = world.copy();
        copy.sql(statement).await;
        let found = copy.first_divergence(copy.options()).await;
        assert_eq!((found.kind, found.part), (kind, part), "{statement}: {found}");
    }
}

#[tokio::test]
async fn an_end_that_was_cut_off_is_cut() {
    // D2
    let world = World::new().await;
    for from in 2..=25 {
        let copy = world.copy();
        copy.sql(&format!("DELETE FROM record WHERE seq >= {from}")).await;
        for options in [copy.options(), copy.witnessed()] {
            let found = copy.first_divergence(options).await;
            assert_eq!(found.kind, DivergenceKind::Cut, "from {from}: {found}");
        }
    }
}

#[tokio::test]
async fn what_was_cut_off_only_the_witness_knows() {
    // D2
    let world = World::new().await;
    let last = seq_of("ledger", 1);
    // Everything after the second checkpoint, and all rows derived from it.
    world
        .sql(&format!(
            "DELETE FROM record WHERE seq > {last}; DELETE FROM checkpoint WHERE size >= {last}; DELETE FROM signature; \
             DELETE FROM run WHERE run = '{C}'; DELETE FROM run_origin WHERE run = '{C}'; UPDATE tile SET hashes = substr(hashes, 1, 13 * 32)"
        ))
        .await;
    let report = world.verify(world.options()).await;
    assert_eq!((report.divergences, report.records), (Vec::new(), 14), "nothing in the file tells");
    let found = world.first_divergence(world.witnessed()).await;
    assert_eq!(
        (found.kind, found.part, found.seq, found.last_seq),
        (DivergenceKind::Cut, LedgerPart::Witness, Some(15), Some(24))
    );
    // If the stored tree remains, it shows the cut.
    let world = World::new().await;
    world
        .sql(&format!("DELETE FROM record WHERE seq > {last}; DELETE FROM checkpoint WHERE size >= {last}"))
        .await;
    let found = world.first_divergence(world.options()).await;
    assert_eq!((found.kind, found.seq), (DivergenceKind::Cut, Some(15)), "{found}");
}

/// A record with unreadable data is reported, although all its hashes are correct: an earlier version wrote such
/// records.
#[tokio::test]
async fn what_cannot_be_read_does_not_hold() {
    let world = World::new().await;
    for (levels, reads) in [(60, true), (126, true), (127, false), (3_000, false)] {
        let copy = world.copy();
        let data = format!("{{\"answer\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        let sha256 = quorate_kernel::entropy::sha256_hex(data.as_bytes());
        let head = format!(
            "{{\"at\":\"2026-11-15T08:00:00.000Z\",\"data_sha256\":\"{sha256}\",\"kind\":\"consultation\",\"n\":0,\
             \"prev\":null,\"run\":\"turns/swarm/0\",\"v\":1}}"
        );
        copy.sql(&format!(
            "INSERT INTO record SELECT MAX(seq) + 1, 'turns/swarm/0', 0, 'consultation', '{head}', '{data}' FROM record"
        ))
        .await;
        let found = copy.verify(copy.options()).await.divergences;
        let unread = found
            .iter()
            .any(|divergence| divergence.what.contains("its data cannot be read: recursion limit"));
        assert_eq!((unread, found.len()), (!reads, usize::from(!reads)), "{levels}: {found:?}");
    }
}
