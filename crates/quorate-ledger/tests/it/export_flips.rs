//! Exports and proofs with single changed bits: all are refused, here and by `scripts/verify_ledger.py`, which checks a
//! share of them, and trees of many sizes (D2, D3).
//!
//! `QUORATE_FLIPS` sets the number of changed bits. If Python or its `cryptography` is missing, its share is skipped
//! with a message.

mod damages;
mod javascript;
mod limits;

use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::Command;

use crate::export::world;
use crate::merkle_tree::{MerkleTree, consistency, inclusion, root};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quorate_kernel::entropy::hex;
use quorate_kernel::ports::ledger::Kind;
use quorate_ledger::export::Selection;
use quorate_ledger::export::jsonl::{ExportReader, InvalidExport};
use quorate_ledger::import::{ImportOptions, verify};
use quorate_ledger::merkle::leaf;
use quorate_ledger::prove::{InvalidProof, TrustedKey, check_proof};
use quorate_protocol::Json;
use serde_json::json;
use world::{SIGNED, World, entry};

const FLIPS: usize = 400;
const PYTHON: usize = 2_000;

/// Pseudorandom numbers with a fixed seed.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Whether the export and the proof are valid here.
fn export_holds(bytes: &[u8], trusted: &[TrustedKey]) -> bool {
    let terms = ImportOptions { trusted: trusted.to_vec(), dry_run: true, ..ImportOptions::default() };
    verify(Cursor::new(bytes), &terms).is_ok()
}

fn proof_holds(bytes: &[u8], trusted: &[TrustedKey]) -> bool {
    let text = std::str::from_utf8(bytes);
    text.is_ok_and(|text| check_proof(text, trusted, &[]).is_ok_and(|proven| proven.trusted_key.is_some()))
}

/// Expected verdicts as exit codes: 0 and 1, and for an invalid document 5 here and 2 in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Holds,
    Broken,
    None,
}

fn judge_export(text: &str, trusted: &[TrustedKey]) -> Judgement {
    let read = || -> Result<Judgement, InvalidExport> {
        let mut reader = ExportReader::open(Cursor::new(text.as_bytes()), &[])?;
        while reader.next_entry()?.is_some() {}
        Ok(if reader.trusted_key(trusted).is_some() { Judgement::Holds } else { Judgement::Broken })
    };
    read().unwrap_or_else(|flaw| {
        if matches!(flaw, InvalidExport::NotAnExport(_)) { Judgement::None } else { Judgement::Broken }
    })
}

fn judge_proof(text: &str, trusted: &[TrustedKey]) -> Judgement {
    match check_proof(text, trusted, &[]) {
        Ok(proven) if proven.trusted_key.is_some() => Judgement::Holds,
        Ok(_) | Err(InvalidProof::InvalidPart { .. }) => Judgement::Broken,
        Err(InvalidProof::NotAProof(_)) => Judgement::None,
    }
}

/// Python's verdict for each document; `None` if Python is not available.
fn python(documents: &[Json]) -> Option<Vec<bool>> {
    let said = python_judges(documents)?;
    Some(said.into_iter().map(|said| said == Judgement::Holds).collect())
}

fn python_judges(documents: &[Json]) -> Option<Vec<Judgement>> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("batch.jsonl");
    let mut file = std::fs::File::create_new(&path).expect("a file");
    for document in documents {
        writeln!(file, "{document}").expect("written");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/verify_ledger.py");
    let output = Command::new("python3").arg(&script).arg("--batch").arg(&path).output();
    let output = match output {
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("needs the package") => {
            eprintln!("SKIPPED: python3 has no cryptography, so scripts/verify_ledger.py was not asked");
            return None;
        }
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: no python3 ({error}), so scripts/verify_ledger.py was not asked");
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

/// A small ledger with one of everything: a rotated key, a signed run, a text, floats.
async fn small() -> (World, Vec<u8>, Vec<u8>) {
    let world = World::empty().await;
    world.store.sign_run(&SIGNED.into(), std::sync::Arc::clone(&world.signer));
    let audit = json!({"signing": "required", "keyring": [world.signer.public().to_string()]});
    world.run(SIGNED, Some(audit), 1).await;
    world
        .append(
            "overlays/a",
            0,
            vec![entry(Kind::OverlayAdded, json!({"x": 1e21, "y": [0.1, -2.5e-9]}))],
            vec![],
        )
        .await;
    let new = std::sync::Arc::new(quorate_ledger::signing::SecretKey::from_seed(&[3; 32]));
    let durability = quorate_kernel::ports::ledger::Durability::Written;
    world.store.seal(&[world.ledger_key(), new], 5_000, false, durability).await.expect("sealed");
    let export = world.export(&Selection::default()).await.into_bytes();
    let proof = world.store.prove(&SIGNED.into(), None, &[]).await.expect("proven").text().expect("a text");
    (world, export, proof.into_bytes())
}

#[tokio::test]
async fn no_single_bit_is_another() {
    // D2, D3
    let (world, export, proof) = small().await;
    let trusted = [world.trusted()];
    let wanted = std::env::var("QUORATE_FLIPS").ok().and_then(|text| text.parse().ok()).unwrap_or(FLIPS);
    assert!(export_holds(&export, &trusted) && proof_holds(&proof, &trusted));
    let keys = vec![world.ledger_key().public().to_string()];
    let document =
        |kind: &str, bytes: &[u8]| json!({kind: STANDARD.encode(bytes), "keys": keys, "signers": []});
    let mut asked = vec![document("export", &export), document("proof", &proof)];
    let mut chance = Rng(7);
    for at in 0..wanted {
        let (kind, bytes) = if at % 2 == 0 { ("export", &export) } else { ("proof", &proof) };
        let bit = chance.below(bytes.len() * 8);
        let changed = flipped(bytes, bit);
        let holds =
            if at % 2 == 0 { export_holds(&changed, &trusted) } else { proof_holds(&changed, &trusted) };
        assert!(!holds, "bit {bit} of the {kind}: {}", String::from_utf8_lossy(&changed));
        if at < PYTHON {
            asked.push(document(kind, &changed));
        }
    }
    // A truncated export is invalid at every length.
    for at in 0..100 {
        let (kind, bytes) = if at % 2 == 0 { ("export", &export) } else { ("proof", &proof) };
        let cut = &bytes[..chance.below(bytes.len())];
        assert!(!(export_holds(cut, &trusted) || proof_holds(cut, &trusted)));
        asked.push(document(kind, cut));
    }
    let Some(said) = python(&asked) else { return };
    assert!(said[0] && said[1], "Python refuses what holds");
    assert_eq!(said[2..].iter().position(|holds| *holds), None, "Python takes what was changed");
}

/// The number of damages of each kind, unless `QUORATE_DAMAGES` sets another one.
const DAMAGES: usize = 600;

#[tokio::test]
async fn the_other_verifier_agrees_on_damages() {
    // D2, D3
    let (world, export, proof) = small().await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let part = world.export(&Selection { runs: vec![SIGNED.into()], since: 0 }).await;
    let rest = world.export(&Selection { runs: vec![], since: 2 }).await;
    let trusted = [world.trusted()];
    let keys = vec![world.ledger_key().public().to_string()];
    let wanted = std::env::var("QUORATE_DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(DAMAGES);
    let kinds = [
        ("export", damages::damaged_exports(&text(export))),
        ("export", damages::damaged_exports(&part)),
        ("export", damages::damaged_exports(&rest)),
        ("proof", damages::damaged_proofs(&text(proof))),
    ];
    let (mut asked, mut ours, mut whats, mut chance) = (Vec::new(), Vec::new(), Vec::new(), Rng(3));
    for (kind, mut damaged) in kinds {
        // Documents that were once wrongly accepted remain in the test.
        let once = |what: &str| {
            what.ends_with("is absent") || what.contains("missing") || what.contains("starts after")
        };
        damaged.sort_by_key(|damage| !once(&damage.what));
        let always = damaged.iter().take_while(|damage| once(&damage.what)).count();
        while damaged.len() > wanted.max(always) {
            damaged.swap_remove(always + chance.below(damaged.len() - always));
        }
        for damages::Damaged { what, text } in damaged {
            let bytes = text.as_bytes();
            let judged = match kind {
                "export" => judge_export(&text, &trusted),
                _ => judge_proof(&text, &trusted),
            };
            let holds = judged == Judgement::Holds;
            assert_eq!(
                holds && kind == "export",
                kind == "export" && export_holds(bytes, &trusted),
                "{what}"
            );
            assert!(!(holds && what.ends_with("is absent")), "{kind}: {what}");
            asked.push(json!({kind: STANDARD.encode(bytes), "keys": keys, "signers": []}));
            ours.push(judged);
            whats.push(what);
        }
    }
    // Data and texts may have been erased, and a run may have more records. Nothing else may be missing.
    let held: Vec<&str> = whats
        .iter()
        .zip(&ours)
        .filter(|(_, judged)| **judged == Judgement::Holds)
        .map(|(what, _)| what.as_str())
        .collect();
    // Keys may be in any order, and a listed run may have no records in this export.
    let may = |what: &&&str| {
        let less = what.contains("missing, with a last line that fits") && !what.starts_with("all up to");
        let fewer = less || what.starts_with("/records lacks its ");
        fewer
            || what.ends_with("/data is null")
            || what.ends_with("/keys is reversed")
            || what.ends_with("/runs has a text besides")
    };
    assert_eq!(held.iter().find(|what| !may(what)), None, "{held:?}");
    let Some(said) = python_judges(&asked) else { return };
    let differ: Vec<_> =
        said.iter().zip(&ours).zip(&whats).filter(|((said, ours), _)| said != ours).take(40).collect();
    assert!(differ.is_empty(), "Python says otherwise: {differ:?}");
    println!("{} damages, {} of which hold", whats.len(), held.len());
}

#[tokio::test]
async fn an_export_without_the_beginning_of_a_run_is_none() {
    // D2
    let (world, ..) = small().await;
    let part = world.export(&Selection { runs: vec![SIGNED.into()], since: 0 }).await;
    let damaged = damages::damaged_exports(&part);
    // Its first record and the line of its text.
    let what = "all up to line 3 is missing, with a last line that fits";
    let without = damaged.iter().find(|damage| damage.what == what).expect("it is among them");
    assert!(without.text.contains("\"end\"") && !without.text.contains("run.opened"), "{}", without.text);
    let trusted = vec![world.trusted()];
    let terms = ImportOptions { trusted, dry_run: true, ..ImportOptions::default() };
    let refused = verify(Cursor::new(without.text.as_bytes()), &terms).expect_err("its beginning is missing");
    assert!(refused.to_string().contains("earlier records of its run are missing"), "{refused}");
}

#[tokio::test]
async fn a_run_that_names_its_signer_does_not_hold_without_signatures() {
    // D3: under `optional`, only the first record shows that the run was signed.
    let world = World::empty().await;
    world.store.sign_run(&SIGNED.into(), std::sync::Arc::clone(&world.signer));
    let public = world.signer.public();
    let audit = json!({
        "signing": "optional", "signer": public.id().to_string(), "keyring": [public.to_string()],
    });
    world.run(SIGNED, Some(audit), 1).await;
    world.seal().await;
    let export = world.export(&Selection::default()).await;
    let proof = world.store.prove(&SIGNED.into(), None, &[]).await.expect("proven").text().expect("a text");
    let trusted = [world.trusted()];
    let keys = vec![world.ledger_key().public().to_string()];
    let (mut asked, mut ours) = (Vec::new(), Vec::new());
    for (kind, text) in [
        ("export", export.clone()),
        ("proof", proof.clone()),
        ("export", damages::unsigned(&export)),
        ("proof", damages::unsigned(&proof)),
    ] {
        let bytes = text.as_bytes();
        ours.push(match kind {
            "export" => export_holds(bytes, &trusted),
            _ => proof_holds(bytes, &trusted),
        });
        asked.push(json!({kind: STANDARD.encode(bytes), "keys": keys, "signers": []}));
    }
    assert_eq!(ours, [true, true, false, false]);
    if let Some(said) = python(&asked) {
        assert_eq!(said, ours);
    }
    world.sql("DELETE FROM signature").await;
    let mut out = Vec::new();
    let form = quorate_ledger::export::ExportFormat::Csv;
    let refused = world.store.export(&Selection::default(), form, &[], &mut out).await.expect_err("unsigned");
    assert!(refused.to_string().contains("but this record is not"), "{refused}");
}

#[tokio::test]
async fn the_other_verifier_agrees_on_whole_exports() {
    // D2, D3
    let world = World::full().await;
    let keys = vec![world.ledger_key().public().to_string()];
    let signers = vec![world.signer.public().to_string()];
    let stranger = vec![quorate_ledger::signing::SecretKey::from_seed(&[9; 32]).public().to_string()];
    let only = |run: &str| Selection { runs: vec![run.into()], since: 0 };
    let mut asked = Vec::new();
    let mut expected = Vec::new();
    for selection in [
        Selection::default(),
        only(SIGNED),
        Selection { runs: vec![], since: 7 },
        Selection { runs: vec![], since: 15 },
    ] {
        let text = STANDARD.encode(world.export(&selection).await);
        for (keys, signers, holds) in [
            (&keys, &signers, true),
            (&keys, &vec![], true),
            (&stranger, &signers, false),
            (&vec![], &vec![], false),
        ] {
            asked.push(json!({"export": text, "keys": keys, "signers": signers}));
            expected.push(holds);
        }
    }
    // The signed run required another signer.
    let text = STANDARD.encode(world.export(&only(SIGNED)).await);
    asked.push(json!({"export": text, "keys": keys, "signers": stranger}));
    expected.push(false);
    if let Some(said) = python(&asked) {
        assert_eq!(said, expected);
    }
}

#[test]
fn the_other_verifier_agrees_on_trees() {
    // D2: a sample of what tests/merkle.rs checks for all sizes.
    let mut tree = MerkleTree::new();
    (0..1025_u32).for_each(|at| tree.push(leaf(&at.to_be_bytes())));
    let hashes = |path: &[[u8; 32]]| path.iter().map(|hash| hex(hash)).collect::<Vec<_>>();
    let root_of = |size: u64| hex(&root(&tree, size));
    let (mut asked, mut expected, mut chance) = (Vec::new(), Vec::new(), Rng(11));
    for size in (1..=33).chain([63, 64, 65, 127, 128, 255, 256, 257, 511, 512, 513, 1024, 1025]) {
        for index in [0, size / 3, size / 2, size - 1] {
            let proof = inclusion(&tree, index, size);
            let hashed = hex(&leaf(&u32::try_from(index).expect("small").to_be_bytes()));
            asked.push(json!({"inclusion": [hashed, index, size, hashes(&proof.path), root_of(size)]}));
            expected.push(true);
            if size > 1 {
                let wrong =
                    (index + 1 + chance.below(usize::try_from(size - 1).expect("small")) as u64) % size;
                asked.push(json!({"inclusion": [hashed, wrong, size, hashes(&proof.path), root_of(size)]}));
                expected.push(false);
            }
            let old = index + 1;
            let proof = consistency(&tree, old, size);
            asked.push(json!({"consistency": [old, root_of(old), size, root_of(size), hashes(&proof.path)]}));
            expected.push(true);
            asked.push(json!({"consistency": [old, root_of(size), size, root_of(old), hashes(&proof.path)]}));
            expected.push(old == size);
        }
    }
    if let Some(said) = python(&asked) {
        assert_eq!(said, expected);
    }
}

#[test]
fn both_know_canonical_json() {
    // D2
    let (mut asked, mut expected) = (Vec::new(), Vec::new());
    for (text, is) in [
        (r#"{"a":1,"b":[true,false,null,"\n\t\u0001\"\\"]}"#, true),
        (r#"{"b":1,"a":1}"#, false),
        (r#"{"a":1,"a":1}"#, false),
        (r#"{"a": 1}"#, false),
        (r#"{"a":1.0}"#, false),
        (r#"{"a":1e3}"#, false),
        (r#"{"a":-0}"#, false),
        (r#"{"a":1e+21,"b":1e-7,"c":0.000001,"d":123456.789,"e":5e-324,"f":100000000000000000000}"#, true),
        (r#"{"a":9007199254740993}"#, false),
        (r#"{"a":9007199254740992}"#, true),
        (r#"{"a":NaN}"#, false),
        (r#"{"a":1e400}"#, false),
        (r#"{"a":"\u00fc"}"#, false),
        (r#"{"a":"\/"}"#, false),
        (r#"{"a":"\ud800"}"#, false),
        ("{\"\u{10000}\":1,\"\u{ffff}\":2}", true),
        ("{\"\u{ffff}\":2,\"\u{10000}\":1}", false),
        ("{\"a\":\"\u{7f}\u{2028}\"}", true),
    ] {
        assert_eq!(quorate_ledger::prove::from_canonical_json::<Json>(text).is_ok(), is, "{text}");
        asked.push(json!({"canonical": STANDARD.encode(text)}));
        expected.push(is);
    }
    for depth in [100, 126, 127, 128, 129, 5_000] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        asked.push(json!({"canonical": STANDARD.encode(&text)}));
        expected.push(quorate_ledger::prove::from_canonical_json::<Json>(&text).is_ok());
    }
    if let Some(said) = python(&asked) {
        assert_eq!(said, expected);
    }
}
