//! What may follow what, record by record, in an export or a proof.

use quorate_kernel::consultation::object;
use quorate_protocol::Json;
use serde_json::json;

use super::*;
use crate::record::VERSION;
use crate::signing::{Context, SecretKey, Voucher};

const RUN: &str = "raaaaaaaaaaaa";
const NOTES: &str = "notes";

/// A record whose hash is its number, and which names the hash of the number before it.
fn record(run: &str, n: u64, kind: Kind, data: Json, signers: &[u8]) -> CheckedRecord {
    let leaf = |n: u64| [u8::try_from(n).expect("small"); 32];
    CheckedRecord {
        head: crate::record::Head {
            at: "2026-11-15T08:00:00.000Z".into(),
            data_sha256: String::new(),
            kind: kind.as_str().to_owned(),
            n,
            prev: n.checked_sub(1).map(|before| hex(&leaf(before))),
            run: run.to_owned(),
            v: VERSION,
        },
        leaf: leaf(n),
        at_ms: 0,
        data: Some(object(data)),
        signers: signers.iter().map(|seed| key(*seed).public().id()).collect(),
    }
}

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&[seed; 32])
}

fn opened(n: u64, audit: Json, signers: &[u8]) -> CheckedRecord {
    record(RUN, n, Kind::RunOpened, json!({"audit": audit}), signers)
}

fn rule(run: &str, n: u64, signers: &[u8]) -> CheckedRecord {
    record(run, n, Kind::Rule, json!({}), signers)
}

/// Takes records one after the other; gives how many were taken.
fn taken(gaps: GapRule, records: &[CheckedRecord]) -> usize {
    let mut chain = ChainChecker::new(gaps);
    records.iter().take_while(|record| chain.check_next(record).is_ok()).count()
}

#[track_caller]
fn assert_last_is_refused(gaps: GapRule, records: &[CheckedRecord]) {
    assert_eq!(taken(gaps, records), records.len() - 1);
}

#[track_caller]
fn assert_taken(gaps: GapRule, records: &[CheckedRecord]) {
    assert_eq!(taken(gaps, records), records.len());
}

#[test]
fn records_are_missing_where_the_rule_lets_them() {
    use GapRule::{Allowed, FromFirstRecord, NotWithinRun};
    let of = |numbers: &[u64]| numbers.iter().map(|n| rule(NOTES, *n, &[])).collect::<Vec<_>>();
    for gaps in [Allowed, NotWithinRun, FromFirstRecord] {
        assert_taken(gaps, &of(&[0, 1, 2]));
        assert_last_is_refused(gaps, &of(&[0, 1, 1]));
        assert_last_is_refused(gaps, &of(&[0, 1, 0]));
    }
    assert_taken(Allowed, &of(&[3, 5, 9]));
    assert_taken(NotWithinRun, &of(&[3, 4, 5]));
    assert_last_is_refused(NotWithinRun, &of(&[3, 4, 6]));
    assert_last_is_refused(NotWithinRun, &of(&[0, 2]));
    assert_last_is_refused(FromFirstRecord, &of(&[3]));
    assert_last_is_refused(FromFirstRecord, &of(&[0, 1, 3]));
}

#[test]
fn the_next_record_names_the_one_before_it() {
    let mut forged = rule(NOTES, 4, &[]);
    forged.head.prev = Some(hex(&[9; 32]));
    let before = rule(NOTES, 3, &[]);
    assert_last_is_refused(GapRule::Allowed, &[before.clone(), forged.clone()]);
    forged.head.n = 5;
    assert_taken(GapRule::Allowed, &[before, forged]);
    // Each run has a chain of its own.
    assert_taken(
        GapRule::FromFirstRecord,
        &[rule(NOTES, 0, &[]), rule("others", 0, &[]), rule(NOTES, 1, &[])],
    );
}

#[test]
fn a_run_is_opened_by_its_first_record() {
    let any = GapRule::Allowed;
    assert_taken(any, &[opened(0, json!(null), &[]), rule(RUN, 1, &[])]);
    assert_taken(any, &[rule(RUN, 1, &[])]);
    assert_last_is_refused(any, &[rule(RUN, 0, &[])]);
    assert_last_is_refused(any, &[opened(1, json!(null), &[])]);
    assert_last_is_refused(any, &[opened(0, json!(null), &[]), opened(1, json!(null), &[])]);
    assert_taken(any, &[rule(NOTES, 0, &[])]);
}

#[test]
fn a_run_is_signed_from_its_first_record_on_or_not_at_all() {
    let any = GapRule::Allowed;
    assert_taken(any, &[rule(NOTES, 0, &[1]), rule(NOTES, 1, &[2])]);
    assert_last_is_refused(any, &[rule(NOTES, 0, &[1]), rule(NOTES, 1, &[])]);
    assert_last_is_refused(any, &[rule(NOTES, 0, &[]), rule(NOTES, 1, &[1])]);
    // In the ledger's own stream each record is by itself, and a checkpoint is signed by its note alone.
    assert_taken(any, &[rule(STREAM, 0, &[]), rule(STREAM, 1, &[1]), rule(STREAM, 2, &[])]);
    let checkpoint = |run, signers: &[u8]| record(run, 0, Kind::Checkpoint, json!({}), signers);
    assert_taken(any, &[checkpoint(STREAM, &[])]);
    assert_last_is_refused(any, &[checkpoint(STREAM, &[1])]);
    assert_taken(any, &[checkpoint(NOTES, &[1])]);
}

#[test]
fn what_a_run_says_of_its_keys_holds_for_its_records() {
    let any = GapRule::Allowed;
    let public = |seed: u8| key(seed).public().to_string();
    let id = |seed: u8| key(seed).public().id().to_string();
    let required = json!({"signing": "required", "keyring": [public(1)]});
    assert_taken(any, &[opened(0, required.clone(), &[1]), rule(RUN, 1, &[1]), rule(RUN, 2, &[2, 1])]);
    assert_last_is_refused(any, &[opened(0, required.clone(), &[])]);
    assert_last_is_refused(any, &[opened(0, required.clone(), &[2])]);
    assert_last_is_refused(any, &[opened(0, required.clone(), &[1]), rule(RUN, 1, &[2])]);
    let named = json!({"signing": "optional", "keyring": [public(1), public(2)], "signer": id(1)});
    assert_taken(any, &[opened(0, named.clone(), &[1, 2]), rule(RUN, 1, &[2])]);
    assert_last_is_refused(any, &[opened(0, named.clone(), &[2])]);
    assert_last_is_refused(any, &[opened(0, named, &[])]);
    // A key that one of them vouches for may sign from there on, and no other key.
    let adds = |by: u8, of: u8, signers: &[u8]| {
        let vouched = Voucher::sign(Context::VOUCHER, &key(by), &key(of).public(), 0);
        record(RUN, 1, Kind::Keyring, json!({"vouched": [vouched.to_json()]}), signers)
    };
    let first = opened(0, required, &[1]);
    assert_taken(any, &[first.clone(), adds(1, 2, &[2]), rule(RUN, 2, &[2])]);
    assert_last_is_refused(any, &[first.clone(), adds(3, 2, &[1])]);
    assert_last_is_refused(any, &[first, adds(1, 2, &[1]), rule(RUN, 2, &[3])]);
    // Only what opens a run says so.
    let says = json!({"audit": {"signing": "required", "keyring": [public(1)]}});
    assert_taken(any, &[record(NOTES, 0, Kind::Rule, says.clone(), &[])]);
    assert_taken(any, &[record(NOTES, 3, Kind::Rule, says, &[])]);
}
