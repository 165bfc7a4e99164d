//! The web pages' verifier, `crates/quorate-web/src/assets/verify.js`, compared with the other two. All three agree on
//! damaged proofs of signed runs, of rotated keys, and in trees of more than 2^32 leaves.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::merkle::{Hash, TreeHead, leaf, node};
use quorate_ledger::note::{Checkpoint, Signer};
use quorate_ledger::prove::{Proof, TrustedKey};
use quorate_ledger::signing::{SecretKey, SigningContext, Voucher};
use quorate_protocol::Json;
use serde_json::{Value, json};

use super::damages::{Damaged, damaged_proofs};
use super::world::{SIGNED, World, entry};
use super::{Judgement, Rng, flipped, judge_proof, python_judges, small};
use crate::merkle_tree::{MerkleTree, inclusion, root};

const SKIPPED: i32 = 3;

/// The script's verdict on documents; `None` if it cannot run.
fn javascript_judges(documents: &[Json]) -> Option<Vec<Judgement>> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("batch.jsonl");
    let mut file = std::fs::File::create_new(&path).expect("a file");
    for document in documents {
        writeln!(file, "{document}").expect("written");
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("node");
    command.arg("--no-warnings").arg(here.join("tests/it/export_flips/verify.mjs"));
    command.arg(here.join("../quorate-web/src/assets/verify.js")).arg(&path);
    let output = match command.output() {
        Ok(output) if output.status.code() == Some(SKIPPED) => {
            eprintln!("SKIPPED: Node has no Ed25519, so verify.js was not asked");
            return None;
        }
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no Node ({error}), so verify.js was not asked");
            return None;
        }
    };
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let judged = |line: &str| match line {
        "holds" => Judgement::Holds,
        "unusable" => Judgement::None,
        _ => Judgement::Broken,
    };
    let said: Vec<Judgement> = said.lines().map(judged).collect();
    assert_eq!(said.len(), documents.len());
    Some(said)
}

/// A proof, and the key of its ledger.
struct Case {
    name: &'static str,
    proof: String,
    trusted: String,
}

/// A run that a second key continued, with the first one's voucher.
async fn continued() -> Case {
    let world = World::empty().await;
    let (first, second) = (world.signer.clone(), std::sync::Arc::new(SecretKey::from_seed(&[8; 32])));
    world.store.sign_run(&SIGNED.into(), first.clone());
    let audit = json!({"signing": "required", "signer": first.public().id().to_string(), "keyring": [first.public().to_string()]});
    world.run(SIGNED, Some(audit), 1).await;
    world.store.sign_run(&SIGNED.into(), second.clone());
    let vouched = Voucher::sign(SigningContext::VOUCHER, &first, &second.public(), 1_700_000_000_000);
    let keyring = json!({"vouched": [serde_json::to_value(&vouched).expect("JSON")]});
    let more =
        vec![entry(Kind::Keyring, keyring), entry(Kind::Override, json!({"verdict": "HOLD", "by": "ada"}))];
    world.append(SIGNED, 4, more, vec![]).await;
    world.seal().await;
    let known = [first.public(), second.public()];
    let proof = world.store.prove(&SIGNED.into(), None, &known).await.expect("proven");
    assert_eq!(proof.signers.len(), 2, "both keys signed");
    Case {
        name: "continued",
        proof: proof.text().expect("a text"),
        trusted: world.ledger_key().public().to_string(),
    }
}

/// A proof whose records are far right in a tree of more than 2^32 leaves, most of which are unknown.
fn in_a_large_tree(text: &str, size: u64) -> Case {
    let mut proof: Proof = serde_json::from_str(text).expect("a proof");
    proof.records.truncate(1);
    let record = &mut proof.records[0];
    record.record.index = size - 1 - size / 3;
    let (mut at, mut last) = (record.record.index, size - 1);
    let mut hashed: Hash = leaf(record.record.head.as_bytes());
    let mut path = Vec::new();
    while last > 0 {
        let other = leaf(&path.len().to_be_bytes());
        if at % 2 == 1 || at < last {
            hashed = if at % 2 == 1 { node(&other, &hashed) } else { node(&hashed, &other) };
            path.push(hex(&other));
        }
        (at, last) = (at / 2, last / 2);
    }
    record.record.path = path;
    let key = SecretKey::from_seed(&[4; 32]);
    let trusted = key.public().to_string();
    let signer = Signer::new(&proof.origin, key).expect("a name");
    let checkpoint = Checkpoint::new(&proof.origin, TreeHead { size, root: hashed }).expect("a checkpoint");
    proof.checkpoint = checkpoint.sign(&signer).expect("signed").to_string();
    proof.keys = vec![signer.verifier().to_string()];
    Case { name: "large", proof: proof.text().expect("a text"), trusted }
}

/// Points of small order and non-canonical signatures in place of keys and signatures.
fn weakened(text: &str) -> Vec<Damaged> {
    let small = [
        [0; 32],
        {
            let mut one = [0; 32];
            one[0] = 1;
            one
        },
        {
            let mut ed = [0xff; 32];
            (ed[0], ed[31]) = (0xed, 0x7f);
            ed
        },
    ];
    let mut all = Vec::new();
    for point in small {
        for sign in [0, 0x80] {
            let mut point = point;
            point[31] |= sign;
            let key = format!("quorate:ed25519:public:{}", STANDARD.encode(point));
            let mut proof: Value = serde_json::from_str(text).expect("JSON");
            proof["signers"] = json!([key]);
            all.push(Damaged { what: "a signer of small order".into(), text: canonical(&proof) });
            let mut proof: Value = serde_json::from_str(text).expect("JSON");
            let mut signature = [0; 64];
            signature[..32].copy_from_slice(&point);
            proof["records"][0]["signatures"][0]["signatures"][0]["sig"] = json!(STANDARD.encode(signature));
            all.push(Damaged { what: "a signature's point of small order".into(), text: canonical(&proof) });
        }
    }
    let mut proof: Value = serde_json::from_str(text).expect("JSON");
    let sig =
        proof["records"][0]["signatures"][0]["signatures"][0]["sig"].as_str().expect("signed").to_owned();
    let mut signature = STANDARD.decode(sig).expect("base64");
    add_order(&mut signature[32..]);
    proof["records"][0]["signatures"][0]["signatures"][0]["sig"] = json!(STANDARD.encode(signature));
    all.push(Damaged { what: "S past the group's order".into(), text: canonical(&proof) });
    all
}

fn canonical(value: &Value) -> String {
    quorate_kernel::canonical::text(value).expect("it can be written") + "\n"
}

/// Adds the order of the group to a 32-byte little-endian number.
fn add_order(number: &mut [u8]) {
    let order =
        quorate_kernel::entropy::unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut carry = 0;
    for (byte, add) in number.iter_mut().zip(order.expect("32 bytes")) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = (sum % 256) as u8;
        carry = sum / 256;
    }
}

#[tokio::test]
async fn three_verifiers_agree_on_damaged_proofs() {
    let (world, _, proof) = small().await;
    let proof = String::from_utf8(proof).expect("UTF-8");
    let (mut asked, mut ours, mut whats) = (Vec::new(), Vec::new(), Vec::new());
    let mut ask = |case: &Case, damaged: Damaged| {
        let trusted = [TrustedKey::from_text(&case.trusted).expect("a key")];
        ours.push(judge_proof(&damaged.text, &trusted));
        asked.push(json!({"proof": STANDARD.encode(damaged.text), "keys": [case.trusted], "signers": []}));
        whats.push(format!("{}: {}", case.name, damaged.what));
    };
    let large: Vec<Case> = [(1 << 32) + 5, (1 << 40) + 12_345, (1 << 53) - 1, 1 << 53]
        .map(|size| in_a_large_tree(&proof, size))
        .into();
    let rotated = Case { name: "rotated", proof, trusted: world.ledger_key().public().to_string() };
    let mut chance = Rng(5);
    for case in [rotated, continued().await].into_iter().chain(large) {
        ask(&case, Damaged { what: "undamaged".into(), text: case.proof.clone() });
        let mut damaged = damaged_proofs(&case.proof);
        while damaged.len() > 350 {
            damaged.swap_remove(chance.below(damaged.len()));
        }
        damaged.extend(weakened(&case.proof));
        for _ in 0..30 {
            let bytes = flipped(case.proof.as_bytes(), chance.below(case.proof.len() * 8));
            damaged.extend(String::from_utf8(bytes).ok().map(|text| Damaged { what: "a bit".into(), text }));
        }
        for one in damaged {
            ask(&case, one);
        }
    }
    assert!(asked.len() > 1_000, "{}", asked.len());
    let undamaged: Vec<_> = whats.iter().zip(&ours).filter(|(what, _)| what.ends_with("undamaged")).collect();
    assert!(undamaged.iter().all(|(_, judged)| **judged == Judgement::Holds), "{undamaged:?}");
    for (name, said) in
        [("verify.js", javascript_judges(&asked)), ("verify_ledger.py", python_judges(&asked))]
    {
        let Some(said) = said else { continue };
        let differ: Vec<_> =
            said.iter().zip(&ours).zip(&whats).filter(|((said, ours), _)| said != ours).take(40).collect();
        assert!(differ.is_empty(), "{name} says otherwise: {differ:?}");
    }
    let held = ours.iter().filter(|judged| **judged == Judgement::Holds).count();
    println!("{} damaged proofs, {held} of which hold", asked.len());
}

#[test]
fn the_pages_verifier_agrees_on_trees() {
    let mut tree = MerkleTree::new();
    (0..1025_u32).for_each(|at| tree.push(leaf(&at.to_be_bytes())));
    let (mut asked, mut expected) = (Vec::new(), Vec::new());
    for size in (1..=33).chain([63, 64, 65, 128, 257, 513, 1024, 1025]) {
        let top = hex(&root(&tree, size));
        for index in [0, size / 3, size / 2, size - 1] {
            let proof = inclusion(&tree, index, size);
            let path: Vec<String> = proof.path.iter().map(|hash| hex(hash)).collect();
            let hashed = hex(&leaf(&u32::try_from(index).expect("small").to_be_bytes()));
            for other in [index, index + 1, size] {
                asked.push(json!({"inclusion": [hashed, other, size, path, top]}));
                expected.push(if other == index { Judgement::Holds } else { Judgement::Broken });
            }
        }
    }
    if let Some(said) = javascript_judges(&asked) {
        assert_eq!(said, expected);
    }
}
