//! Proofs (D2, D3): a proven record can be checked without the ledger, and other records cannot pass as proven.

use crate::export::world;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::prove::{InvalidProof, Proof, ProveError, TrustedKey, check_proof};
use quorate_ledger::signing::SecretKey;
use serde_json::json;
use world::{PLAIN, SIGNED, World, entry};

#[tokio::test]
async fn a_proof_holds_without_the_ledger() {
    // D2, D3
    let world = World::full().await;
    for (run, n, records) in [(SIGNED, None, 6), (SIGNED, Some(4), 1), (PLAIN, None, 8), (PLAIN, Some(0), 1)]
    {
        let proof = world.store.prove(&run.into(), n, &world.signers()).await.expect("proven");
        let text = proof.text().unwrap();
        assert_eq!(world.store.prove(&run.into(), n, &world.signers()).await.unwrap().text().unwrap(), text);
        let proven = check_proof(&text, &[world.trusted()], &[]).expect("it holds");
        assert!(proven.trusted_key.is_some());
        assert_eq!(proven.records.len(), records);
        assert_eq!(proven.tree.size, 15);
        let stranger = TrustedKey::Public(SecretKey::from_seed(&[9; 32]).public());
        assert_eq!(
            check_proof(&text, &[stranger], &[]).expect("it verifies with its own key").trusted_key,
            None
        );
        let asked = check_proof(&text, &[world.trusted()], &world.signers());
        assert_eq!(asked.is_ok(), run == SIGNED, "{asked:?}");
        let verdicts: Vec<_> = proven.records.iter().filter_map(|fact| fact.verdict.as_deref()).collect();
        assert_eq!(verdicts, if n == Some(0) { vec![] } else { vec!["SHIP"] });
    }
    // The run names its keys itself.
    let proof = world.store.prove(&SIGNED.into(), None, &[]).await.expect("proven");
    assert_eq!(proof.signers, [world.signer.public().to_string()]);
}

#[tokio::test]
async fn what_is_not_sealed_signed_or_there_is_not_proven() {
    let world = World::full().await;
    let none = world.store.prove(&"r9".into(), None, &[]).await;
    assert!(matches!(none, Err(ProveError::UnknownRecord { .. })));
    let none = world.store.prove(&PLAIN.into(), Some(8), &[]).await;
    assert!(matches!(none, Err(ProveError::UnknownRecord { .. })));
    world.append(PLAIN, 8, vec![entry(Kind::Override, json!({"verdict": "HOLD"}))], vec![]).await;
    let unsealed = world.store.prove(&PLAIN.into(), None, &[]).await;
    let Err(ProveError::NotSealed { id }) = unsealed else { panic!("{unsealed:?}") };
    assert_eq!(id, format!("{PLAIN}/8"));
    world.store.prove(&PLAIN.into(), Some(7), &[]).await.expect("that one is sealed");

    let world = World::empty().await;
    world.run(PLAIN, None, 1).await;
    let durability = quorate_kernel::ports::ledger::Durability::Written;
    world.store.seal(&[], 0, false, durability).await.expect("sealed");
    let unsigned = world.store.prove(&PLAIN.into(), None, &[]).await;
    assert!(matches!(unsigned, Err(ProveError::UnsignedCheckpoint)));
}

#[tokio::test]
async fn an_erased_body_leaves_its_proof() {
    // D4
    let world = World::full().await;
    world.sql("UPDATE record SET data = NULL WHERE kind = 'consultation'").await;
    let proof = world.store.prove(&SIGNED.into(), None, &[]).await.expect("proven");
    let proven = check_proof(&proof.text().unwrap(), &[world.trusted()], &world.signers()).expect("it holds");
    assert_eq!(proven.records.iter().filter(|fact| fact.data.is_none()).count(), 3);
}

#[tokio::test]
async fn what_was_put_together_by_hand_does_not_hold() {
    // D2, D3
    let world = World::full().await;
    let signed = world.store.prove(&SIGNED.into(), None, &[]).await.unwrap();
    let plain = world.store.prove(&PLAIN.into(), None, &[]).await.unwrap();
    let other = World::full().await.store.prove(&SIGNED.into(), None, &[]).await.unwrap();
    type Change<'a> = &'a dyn Fn(&mut Proof);
    let changes: [(&str, Change<'_>); 11] = [
        ("a record of another ledger", &|proof| proof.records[1] = other.records[1].clone()),
        ("another checkpoint", &|proof| proof.checkpoint.clone_from(&other.checkpoint)),
        ("another key", &|proof| proof.keys.clone_from(&other.keys)),
        ("another log", &|proof| proof.origin.clone_from(&other.origin)),
        ("a record twice", &|proof| proof.records.push(proof.records[5].clone())),
        ("the order", &|proof| proof.records.swap(1, 2)),
        ("another's name", &|proof| proof.records[1].id = proof.records[2].id.clone()),
        ("another's data", &|proof| proof.records[1].record.data = proof.records[2].record.data.clone()),
        ("another's signature", &|proof| {
            proof.records[1].record.signatures = proof.records[2].record.signatures.clone()
        }),
        ("no signature", &|proof| proof.records[1].record.signatures.clear()),
        ("no signatures", &|proof| {
            proof.records.iter_mut().for_each(|record| record.record.signatures.clear());
            proof.signers.clear();
        }),
    ];
    for (what, change) in changes {
        let mut changed = signed.clone();
        change(&mut changed);
        assert_ne!(changed, signed, "{what}");
        let checked = check_proof(&changed.text().unwrap(), &[world.trusted()], &[]);
        assert!(checked.is_err(), "{what}");
    }
    // One file may contain records of several runs, and may omit some.
    let mut picked = signed.clone();
    picked.records.remove(2);
    picked.records.extend(plain.records.iter().skip(3).cloned());
    check_proof(&picked.text().unwrap(), &[world.trusted()], &[]).expect("it holds");
}

#[tokio::test]
async fn what_is_no_proof_is_said_to_be_none() {
    let world = World::full().await;
    let text = world.store.prove(&PLAIN.into(), Some(0), &[]).await.unwrap().text().unwrap();
    let deep = "[".repeat(100_000);
    for garbage in [
        "",
        "\n",
        "{}\n",
        "null\n",
        "[]\n",
        &deep,
        text.trim_end(),
        &format!(" {text}"),
        &format!("{text}\n"),
        &text.replace("\"v\":1", "\"v\":2"),
    ] {
        let failed = check_proof(garbage, &[], &[]);
        assert!(matches!(failed, Err(InvalidProof::NotAProof(_))), "{failed:?}");
    }
}

#[tokio::test]
async fn a_proof_from_a_long_ledger_takes_no_time() {
    // D2: a proof grows by a few hashes with the ledger. `QUORATE_RECORDS` sets the ledger's size.
    let wanted = std::env::var("QUORATE_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let world = World::empty().await;
    for from in (0..wanted).step_by(1_000) {
        let fill: Vec<_> = (0..1_000).map(|n| entry(Kind::Turn, json!({"n": n}))).collect();
        world.append("turns/t/1", from, fill, vec![]).await;
    }
    world.seal().await;
    let started = tokio::time::Instant::now();
    for at in 0..100 {
        world.store.prove(&"turns/t/1".into(), Some(at * (wanted / 100)), &[]).await.expect("proven");
    }
    let each = started.elapsed() / 100;
    eprintln!("a proof from {wanted} records takes {each:?}");
    assert!(each.as_millis() < 100, "a proof takes {each:?}");
}

#[tokio::test]
async fn a_proof_says_what_a_person_decided() {
    // D2
    let world = World::full().await;
    let decided = [
        json!({"verdict": "HOLD", "by": "ada", "council_verdict": "SHIP"}),
        json!({"verdict": "HOLD", "by": ""}),
        json!({"verdict": "", "by": "ada"}),
    ];
    let entries = decided.into_iter().map(|data| entry(Kind::Override, data)).collect();
    world.append(PLAIN, 8, entries, vec![]).await;
    world.seal().await;
    let mut said = Vec::new();
    for n in [7, 8, 9, 10] {
        let text = world.store.prove(&PLAIN.into(), Some(n), &[]).await.expect("proven").text().unwrap();
        let proven = check_proof(&text, &[], &[]).expect("it holds");
        let decided = proven.records[0].override_decision.clone();
        said.push(decided.map(|decided| (decided.verdict, decided.by, decided.council)));
    }
    let hold = |by: Option<&str>, council: Option<&str>| {
        let (by, council) = (by.map(str::to_owned), council.map(str::to_owned));
        Some(("HOLD".to_owned(), by, council))
    };
    assert_eq!(said, [None, hold(Some("ada"), Some("SHIP")), hold(None, None), None]);
}

#[tokio::test]
async fn a_ledger_that_was_changed_proves_nothing() {
    // D2
    let world = World::full().await;
    world.sql("UPDATE record SET n = 99 WHERE run = 'r0000000000p1' AND n = 4").await;
    let failed = world.store.prove(&PLAIN.into(), Some(99), &[]).await.unwrap_err().to_string();
    assert!(failed.contains("its head belongs to another record"), "{failed}");
    let world = World::full().await;
    world.sql("UPDATE tile SET hashes = CAST(substr(hashes, 1, 320) || zeroblob(32) || substr(hashes, 353) AS BLOB)").await;
    let failed = world.store.prove(&PLAIN.into(), Some(0), &[]).await.unwrap_err().to_string();
    assert!(failed.contains("its root differs from the checkpoint's"), "{failed}");
}

#[test]
fn a_proof_is_read_up_to_64_mebibytes() {
    const MOST: usize = 64 * 1024 * 1024;
    let mut text = " ".repeat(MOST);
    for (longer, said) in [(false, "does not end in a line end"), (true, "more than the maximum")] {
        if longer {
            text.push(' ');
        }
        let failed = check_proof(&text, &[], &[]).unwrap_err().to_string();
        assert!(failed.contains(said), "{failed}");
    }
}
