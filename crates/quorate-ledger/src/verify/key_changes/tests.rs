//! Who vouches for a key of the ledger that no key before it vouches for: a person's word under a signed checkpoint, and
//! this machine.

use quorate_kernel::record;

use super::*;
use crate::local_checkpoints::LocalCheckpoints;
use crate::signing::SecretKey;
use crate::verify::divergence::Divergence;

fn key(seed: u8) -> PublicKey {
    SecretKey::from_seed(&[seed; 32]).public()
}

/// The keys that this machine accepts, that a person is about to accept, and that are its own.
fn changes(accepted: &[u8], candidates: &[u8], own: &[u8]) -> KeyChanges {
    let keys = |seeds: &[u8]| seeds.iter().map(|seed| key(*seed)).collect::<Vec<_>>();
    let kept = LocalCheckpoints { copies: Vec::new(), replaced_origin: None, accepted_keys: keys(accepted) };
    KeyChanges::new(&Options {
        local_checkpoints: Some(kept),
        candidate_keys: keys(candidates),
        ledger_keys: keys(own),
        ..Options::default()
    })
}

fn says(seed: u8) -> Succession {
    let accepted =
        record::AcceptedKey { key: key(seed).to_string(), by: "ada".into(), reason: "lost".into() };
    Succession { accepted: vec![accepted], ..Succession::default() }
}

fn finish(mut changes: KeyChanges, signed_size: u64) -> (KeyChangeReport, Vec<Divergence>) {
    let mut findings = Findings::default();
    let report = changes.finish(signed_size, vec![key(1)], &mut findings);
    (report, findings.into_parts().0)
}

#[test]
fn a_key_counts_where_ledger_and_machine_both_say_so() {
    // D11
    let mut both = changes(&[2], &[], &[]);
    both.add((4, 20), vec![key(2)]).unwrap();
    both.add_statements((4, 20), &says(2));
    let (report, found) = finish(both, 20);
    let accepted = AcceptedKey { n: 4, key: key(2).to_string(), by: "ada".into(), reason: "lost".into() };
    assert_eq!(
        report,
        KeyChangeReport {
            accepted: vec![accepted],
            pending: vec![],
            signers: vec![key(1)],
            own_refused: false,
        }
    );
    assert_eq!(found, []);
    // The machine alone: the ledger does not say who accepted it, or says so of another key.
    for of in [None, Some(3)] {
        let mut alone = changes(&[2], &[], &[]);
        alone.add((4, 20), vec![key(2)]).unwrap();
        if let Some(of) = of {
            alone.add_statements((4, 20), &says(of));
        }
        let found = finish(alone, 20).1;
        let named: Vec<_> = found.iter().map(|found| (found.kind, found.n, found.seq)).collect();
        assert_eq!(named, [(Kind::Removed, Some(4), Some(20))]);
    }
    // The ledger alone proves nothing.
    let refused = changes(&[], &[], &[]).add((4, 20), vec![key(2)]).unwrap_err();
    assert!(refused.contains(&key(2).id().to_string()), "{refused}");
}

#[test]
fn a_statement_counts_under_a_signed_checkpoint() {
    let stated = |signed_size| {
        let mut changes = changes(&[2], &[], &[]);
        changes.add_statements((4, 20), &says(2));
        finish(changes, signed_size)
    };
    for covered in [20, 21] {
        let (report, found) = stated(covered);
        assert_eq!((report.accepted.len(), found), (1, vec![]));
    }
    let (report, found) = stated(19);
    let named: Vec<_> = found.iter().map(|found| (found.kind, found.n, found.seq)).collect();
    assert_eq!((report.accepted, named), (vec![], vec![(Kind::Inserted, Some(4), Some(20))]));
    // Of one that a person is about to accept nothing is said yet; of another one it is.
    let mut pending = changes(&[], &[2], &[]);
    pending.add_statements((4, 20), &says(2));
    pending.add_statements((5, 22), &says(3));
    let named: Vec<_> = finish(pending, 0).1.iter().map(|found| found.n).collect();
    assert_eq!(named, [Some(5)]);
}

#[test]
fn keys_that_a_person_still_has_to_accept_are_named_once() {
    let mut pending = changes(&[], &[2, 3], &[]);
    for (n, of) in [(4, 2), (5, 3), (6, 2)] {
        pending.add((n, 20 + n), vec![key(9), key(of)]).unwrap();
    }
    let (report, found) = finish(pending, 99);
    assert_eq!((report.pending, found), (vec![key(2), key(3)], vec![]));
    // A key that is accepted here, and of which the ledger says nothing yet, is still to be accepted.
    let mut known = changes(&[2], &[2], &[]);
    known.add((4, 20), vec![key(2)]).unwrap();
    assert_eq!(finish(known, 99).0.pending, [key(2)]);
}

#[test]
fn a_refused_key_of_this_machine_is_reported_as_such() {
    let mut refused = changes(&[], &[], &[7]);
    refused.add((4, 20), vec![key(2)]).unwrap_err();
    assert!(!refused.own_refused);
    refused.add((5, 22), vec![key(2), key(7)]).unwrap_err();
    refused.add((6, 24), vec![key(2)]).unwrap_err();
    assert!(finish(refused, 99).0.own_refused);
}
