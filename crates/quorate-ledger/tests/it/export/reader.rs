//! The verdict of an export's reader on each line, and the location that it names for each damage.

use std::io::Cursor;

use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::export::jsonl::{ExportReader, InvalidExport};
use quorate_ledger::prove::{SignedCheckpoint, TrustedKey};
use serde_json::{Value, json};

use super::world::{PLAIN, SIGNED, World, entry};
use super::{all, only, read, rewritten, since};

fn open(text: &str) -> Result<(), InvalidExport> {
    ExportReader::open(Cursor::new(text.as_bytes()), &[]).map(drop)
}

#[tokio::test]
async fn a_line_that_is_wrong_is_named_by_its_number() {
    let world = World::full().await;
    let text = world.export(&all()).await;
    let lines: Vec<&str> = text.lines().collect();
    for at in [1, 2, lines.len() - 2, lines.len() - 1] {
        let mut changed: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        changed[at] = "{}\n".to_owned();
        let Err(InvalidExport::InvalidLine { line, .. }) = read(&changed.concat(), &[]) else {
            panic!("line {at} is wrong")
        };
        assert_eq!(line, at as u64 + 1);
    }
    // So does an end of the file within a line.
    let end = text.lines().take(5).map(|line| line.len() + 1).sum::<usize>() - 1;
    let cut = read(&text[..end], &[]);
    assert!(matches!(cut, Err(InvalidExport::InvalidLine { line: 5, .. })), "{cut:?}");
    // After the last line everything is present, and the hash of the file is known.
    let mut reader = ExportReader::open(Cursor::new(text.as_bytes()), &[]).expect("it opens");
    assert_eq!(reader.file_sha256.as_deref(), None);
    while reader.next_entry().expect("it reads").is_some() {}
    assert_eq!(reader.file_sha256.as_deref(), Some(&*sha256_hex(text.as_bytes())));
    assert!(reader.next_entry().expect("it is at the end").is_none());
}

#[tokio::test]
async fn a_header_says_what_can_be() {
    // D2
    let world = World::full().await;
    let with = |text: &str, pointer: &str, value: Value| {
        rewritten(text, |_, lines| *lines[0].pointer_mut(pointer).expect("there") = value.clone())
    };
    let part = world.export(&only(PLAIN)).await;
    open(&part).expect("it opens");
    for runs in [json!([]), json!([PLAIN, PLAIN]), json!([SIGNED, PLAIN])] {
        assert!(open(&with(&part, "/runs", runs.clone())).is_err(), "{runs}");
    }
    open(&with(&part, "/runs", json!([PLAIN, SIGNED]))).expect("it opens");
    // An export from a later start proves that earlier records are of the same ledger.
    world.append("turns/t/1", 0, vec![entry(Kind::Turn, json!({}))], vec![]).await;
    world.seal().await;
    let tail = world.export(&since(15)).await;
    open(&tail).expect("it opens");
    for (pointer, value) in [
        ("/from/root", json!("00".repeat(32))),
        ("/from/root", json!("00")),
        ("/from/path", json!([])),
        ("/from/path/0", json!("00".repeat(32))),
        ("/from/size", json!(14)),
        ("/from/size", json!(0)),
    ] {
        assert!(open(&with(&tail, pointer, value.clone())).is_err(), "{pointer}: {value}");
    }
}

#[tokio::test]
async fn records_of_several_runs_are_in_the_ledgers_order() {
    // D2: the records of a part alone lead to no root.
    let world = World::full().await;
    let both = quorate_ledger::export::Selection { runs: vec![SIGNED.into(), PLAIN.into()], since: 0 };
    let text = world.export(&both).await;
    read(&text, &[]).expect("it holds");
    let of = |line: &Value, run: &str| line["head"].as_str().is_some_and(|head| head.contains(run));
    // The last record of the first run is after all of the second. Each run is still complete.
    let swapped = rewritten(&text, |_, lines| {
        let last = lines.iter().rposition(|line| of(line, SIGNED)).expect("there");
        let moved = lines.remove(last);
        lines.push(moved);
    });
    assert_ne!(swapped, text);
    assert!(read(&swapped, &[]).is_err());
}

#[tokio::test]
async fn the_ledgers_own_records_need_no_signer_of_runs() {
    // D11: they are signed by the ledger's key.
    let world = World::full().await;
    let key = world.ledger_key();
    let held = entry(Kind::Held, json!({"run": PLAIN, "by": "ada"}));
    world.store.append_ledger_record(held, &key).await.expect("written");
    world.seal().await;
    let text = world.export(&all()).await;
    read(&text, &world.signers()).expect("it holds");
    assert!(read(&text, &[key.public()]).is_err(), "the signed run is by another key");
}

#[tokio::test]
async fn a_checkpoint_is_signed_by_its_keys_and_no_others() {
    // D2: otherwise a bit of the accompanying key could differ.
    let world = World::full().await;
    let text = world.export(&all()).await;
    let header: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let keys: Vec<String> = serde_json::from_value(header["keys"].clone()).expect("keys");
    let note = header["note"].as_str().expect("signed");
    let opened = SignedCheckpoint::open(note, &keys).expect("it holds");
    let other = World::full().await;
    let theirs: Value =
        serde_json::from_str(other.export(&all()).await.lines().next().expect("a line")).expect("JSON");
    let their_line = theirs["note"].as_str().expect("signed").lines().last().expect("a signature");
    let their_key = theirs["keys"][0].as_str().expect("a key").to_owned();
    let signed_by_more = format!("{note}{their_line}\n");
    assert!(SignedCheckpoint::open(&signed_by_more, &keys).is_err());
    assert!(SignedCheckpoint::open(note, &[keys[0].clone(), their_key.clone()]).is_err());
    assert!(SignedCheckpoint::open(note, &[]).is_err());
    // A key is trusted under the name of its log, or for any log.
    let trusts = |key: &str| opened.trusted_key(&[TrustedKey::from_text(key).expect("a key")]).is_some();
    assert!(trusts(&keys[0]) && trusts(&world.ledger_key().public().to_string()));
    assert!(!trusts(&their_key) && !trusts(&other.ledger_key().public().to_string()));
}

#[tokio::test]
async fn a_record_under_another_number_is_not_exported() {
    // D2
    let world = World::full().await;
    world.sql("UPDATE record SET n = 99 WHERE run = 'r0000000000p1' AND n = 7").await;
    let mut out = Vec::new();
    let format = quorate_ledger::export::ExportFormat::Jsonl;
    let refused = world.store.export(&only(PLAIN), format, &world.signers(), &mut out).await.unwrap_err();
    assert!(refused.to_string().contains("its head belongs to another record"), "{refused}");
}
