//! The texts beside the records: each matches the hash in a record, and divergences name the record.

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Append, Body, Durability, Entry, Kind, Ledger as _, PlaybookEvent};
use quorate_ledger::Store;
use quorate_ledger::verify::{DivergenceKind, LedgerPart, StartPoint, VerifyOptions, VerifyReport};
use serde_json::json;

use super::world::{A, World, entry};

const PROMPT: &str = "What the member was asked.";
const SHADOW: &str = "What a shadow would have been asked.";
const NOTE: &str = "What an entry was changed to.";

/// A world in which a playbook's stream names texts: two composed ones, and one in another event.
async fn with_texts() -> World {
    let world = World::new().await;
    let store = Store::open(&world.db()).await.expect("it opens").store;
    let sha256 = |text: &str| sha256_hex(text.as_bytes());
    let composed = json!({"sha256": sha256(PROMPT), "shadows": {"a-playbook": {"sha256": sha256(SHADOW)}}});
    let entries: Vec<Entry> = vec![
        entry(Kind::Playbook(PlaybookEvent::Composed), composed),
        entry(Kind::Rule, json!({"output": {"kept": sha256(NOTE)}})),
    ];
    let bodies = [PROMPT, SHADOW, NOTE].map(|text| Body { sha256: sha256(text), text: text.into() });
    let run = "playbooks".into();
    let append = Append { run, from: 3, entries, bodies: bodies.into(), durability: Durability::Written };
    store.append(append).await.expect("appended");
    store.close().await;
    world
}

/// The reported divergences of texts: kind, run and number.
fn of_texts(report: &VerifyReport) -> Vec<(DivergenceKind, Option<&str>, Option<u64>)> {
    let found = report.divergences.iter().filter(|found| found.part == LedgerPart::Body);
    found.map(|found| (found.kind, found.run.as_deref(), found.n)).collect()
}

#[tokio::test]
async fn a_text_that_is_gone_or_changed_is_said_of_the_record_that_names_it() {
    // D2
    let world = with_texts().await;
    let report = world.verify(world.options()).await;
    assert_eq!((report.divergences, report.texts), (vec![], 4));
    let is = |text: &str| format!("WHERE sha256 = '{}'", sha256_hex(text.as_bytes()));
    let reviewed = is("What is reviewed.");
    for (statement, wanted) in [
        (
            format!("DELETE FROM body {}", is(PROMPT)),
            Some((DivergenceKind::Removed, Some("playbooks"), Some(3))),
        ),
        (
            format!("DELETE FROM body {}", is(SHADOW)),
            Some((DivergenceKind::Removed, Some("playbooks"), Some(3))),
        ),
        (format!("DELETE FROM body {reviewed}"), Some((DivergenceKind::Removed, Some(A), Some(0)))),
        (
            format!("UPDATE body SET text = 'x' {}", is(PROMPT)),
            Some((DivergenceKind::Changed, Some("playbooks"), Some(3))),
        ),
        (format!("UPDATE body SET text = 'x' {reviewed}"), Some((DivergenceKind::Changed, Some(A), Some(0)))),
        // A text that only other records name need not exist; if it exists, it must have the right hash.
        (format!("DELETE FROM body {}", is(NOTE)), None),
        (format!("UPDATE body SET text = 'x' {}", is(NOTE)), Some((DivergenceKind::Changed, None, None))),
    ] {
        let copy = world.copy();
        copy.sql(&statement).await;
        assert_eq!(of_texts(&copy.verify(copy.options()).await), Vec::from_iter(wanted), "{statement}");
    }
}

#[tokio::test]
async fn a_text_that_no_record_names_was_put_in() {
    // D2
    let world = with_texts().await;
    let composed = sha256_hex(PROMPT.as_bytes());
    for text in ["Another text.".to_owned(), format!("It names {composed}.")] {
        let copy = world.copy();
        let sha256 = sha256_hex(text.as_bytes());
        copy.sql(&format!("INSERT INTO body VALUES ('{sha256}', '{text}')")).await;
        let report = copy.verify(copy.options()).await;
        let said: Vec<_> = report.divergences.iter().map(|found| (found.kind, found.part)).collect();
        assert_eq!(said, [(DivergenceKind::Inserted, LedgerPart::Body)], "{text}");
        assert!(report.divergences.iter().all(|found| found.what.contains(&sha256)), "{text}");
        // If the walk does not include all records, references are unknown.
        let since = VerifyOptions { since: Some(StartPoint::Size(24)), ..copy.options() };
        assert_eq!(of_texts(&copy.verify(since).await), []);
    }
    // The same if the first record of a run or stream, which may name texts, has lost its body.
    let put_in = format!("INSERT INTO body VALUES ('{}', 'x')", sha256_hex(b"x"));
    for lost in ["n = 0 AND kind = 'run.opened'", "seq = 15"] {
        let copy = world.copy();
        copy.sql(&format!("UPDATE record SET data = NULL WHERE {lost}; {put_in}")).await;
        assert_eq!(of_texts(&copy.verify(copy.options()).await), [], "{lost}");
    }
}
