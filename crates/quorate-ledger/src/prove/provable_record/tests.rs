//! What a record in an export or a proof has to be, in itself.

use serde_json::json;

use super::*;
use crate::signing::{Context, SecretKey};

/// A head as it is written, with one field changed.
fn head_with(key: &str, value: Json) -> String {
    let mut head = json!({
        "at": "2026-11-15T08:00:00.000Z", "data_sha256": "ab".repeat(32), "kind": "rule", "n": 3,
        "prev": "cd".repeat(32), "run": "notes", "v": VERSION,
    });
    head[key] = value;
    canonical::text(&head).expect("canonical")
}

#[test]
fn a_head_has_one_form() {
    let (read, at_ms) = head(&head_with("n", json!(3))).expect("it is one");
    assert_eq!((read.n, rfc3339(at_ms)), (3, read.at));
    for (key, value) in [
        ("v", json!(VERSION + 1)),
        ("at", json!("2026-11-15T08:00:00Z")),
        ("at", json!("yesterday")),
        ("data_sha256", json!("ab")),
        ("prev", json!("cd")),
        ("prev", json!(null)),
        ("n", json!(0)),
        ("more", json!(1)),
    ] {
        assert!(head(&head_with(key, value.clone())).is_err(), "{key}: {value}");
    }
    let numbered = |n: u64| head(&head_with("n", json!(3)).replace("\"n\":3", &format!("\"n\":{n}")));
    assert!(numbered(canonical::MAX_EXACT_INTEGER).is_ok());
    assert!(numbered(canonical::MAX_EXACT_INTEGER + 1).is_err());
    assert!(head(&format!(" {}", head_with("n", json!(3)))).is_err());
}

#[test]
fn signatures_are_in_the_order_of_their_keys_one_each() {
    let head = head_with("n", json!(3));
    let leaf = merkle::leaf(head.as_bytes());
    let tree = TreeHead { size: 1, root: leaf };
    let mut keys: Vec<SecretKey> = (1..=3).map(|seed| SecretKey::from_seed(&[seed; 32])).collect();
    keys.sort_by_key(|key| key.public().id());
    let known: Vec<PublicKey> = keys.iter().map(SecretKey::public).collect();
    let signed_by = |order: &[usize]| {
        let envelope = |key: &SecretKey| {
            let signature = key.sign(Context::RECORD, &leaf).to_string();
            Envelope::new(&leaf, &key.public().id().to_string(), &signature)
        };
        let signatures = order.iter().map(|at| envelope(&keys[*at])).collect();
        let record =
            ProvableRecord { index: 0, head: head.clone(), data: None, path: Vec::new(), signatures };
        record.check(&tree, &known).map(|checked| checked.signers.len())
    };
    for (order, wanted) in [
        (&[][..], Some(0)),
        (&[1], Some(1)),
        (&[0, 1, 2], Some(3)),
        (&[0, 2], Some(2)),
        (&[1, 0], None),
        (&[1, 1], None),
        (&[0, 2, 1], None),
    ] {
        assert_eq!(signed_by(order).ok(), wanted, "{order:?}");
    }
}
