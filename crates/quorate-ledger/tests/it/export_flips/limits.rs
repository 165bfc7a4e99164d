//! Numbers and times at the limits of a head: both verifiers have the same limits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_ledger::merkle::{TreeHead, leaf};
use quorate_ledger::note::{Checkpoint, Signer};
use quorate_ledger::prove::{Proof, ProofRecord, ProvableRecord, TrustedKey};
use quorate_ledger::signing::SecretKey;
use serde_json::json;

use super::{Judgement, judge_proof, python, python_judges};

const ORIGIN: &str = "quorate/limits";
const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A proof of one record with a given head, under a correctly signed checkpoint.
fn proof(key: &SecretKey, n: u64, at: &str) -> String {
    let head = format!(
        r#"{{"at":"{at}","data_sha256":"{HASH}","kind":"outcome","n":{n},"prev":"{HASH}","run":"overlays/a","v":1}}"#
    );
    let tree = TreeHead { size: 1, root: leaf(head.as_bytes()) };
    let signer = Signer::new(ORIGIN, SecretKey::from_text(&key.to_text()).expect("a key")).expect("a name");
    let note = Checkpoint::new(ORIGIN, tree).expect("a checkpoint").sign(&signer).expect("signed");
    let id = format!("overlays/a/{n}");
    let record = ProofRecord {
        id,
        record: ProvableRecord { data: None, head, index: 0, path: Vec::new(), signatures: Vec::new() },
    };
    Proof {
        checkpoint: note.to_string(),
        keys: vec![signer.verifier().to_string()],
        origin: ORIGIN.to_owned(),
        records: vec![record],
        signers: Vec::new(),
        v: 1,
    }
    .text()
    .expect("a text")
}

#[test]
fn both_end_the_numbers_and_the_calendar_at_the_same_place() {
    // D2
    const EXACT: u64 = 1 << 53;
    let noon = "2026-05-18T12:00:00.000Z";
    let key = SecretKey::from_seed(&[4; 32]);
    let trusted = [TrustedKey::Public(key.public())];
    let (mut asked, mut ours, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (n, at, holds) in [
        (1, noon, true),
        (EXACT - 1, noon, true),
        (EXACT, noon, true),
        (EXACT + 1, noon, false),
        (EXACT + 2, noon, false),
        (1 << 60, noon, false),
        (1 << 63, noon, false),
        (u64::MAX, noon, false),
        (1, "0000-01-01T00:00:00.000Z", true),
        (1, "9999-12-30T22:00:01.000Z", true),
        (1, "9999-12-31T23:59:59.999Z", true),
        (1, "9999-12-31T23:59:60.000Z", false),
        (1, "9999-12-32T00:00:00.000Z", false),
        (1, "9999-02-29T00:00:00.000Z", false),
        (1, "9999-12-31T23:59:59Z", false),
    ] {
        let text = proof(&key, n, at);
        ours.push(judge_proof(&text, &trusted) == Judgement::Holds);
        asked
            .push(json!({"proof": STANDARD.encode(text), "keys": [key.public().to_string()], "signers": []}));
        expected.push(holds);
    }
    assert_eq!(ours, expected);
    if let Some(said) = python(&asked) {
        assert_eq!(said, expected);
    }
}

#[test]
fn a_count_past_what_a_double_holds_is_none() {
    // D2: 2^53 + 2 is a double, so it is canonical JSON.
    let key = SecretKey::from_seed(&[4; 32]);
    let text = proof(&key, 1, "2026-05-18T12:00:00.000Z");
    let (mut asked, mut ours) = (Vec::new(), Vec::new());
    for index in ["9007199254740994", "1152921504606846976"] {
        let text = text.replace("\"index\":0", &format!("\"index\":{index}"));
        ours.push(judge_proof(&text, &[]));
        asked.push(json!({"proof": STANDARD.encode(text), "keys": [], "signers": []}));
    }
    assert_eq!(ours, [Judgement::None; 2]);
    if let Some(said) = python_judges(&asked) {
        assert_eq!(said, [Judgement::None; 2]);
    }
}
