//! A ledger in a Postgres database, for a program that was built without the feature: it says so, and how to get it.
#![cfg(not(feature = "postgres"))]

use crate::support;
use support::Place;

#[test]
fn it_says_how_to_build_it() {
    let refused = Place::new().run(&["runs", "--ledger", "postgres://ada:s3cret@db/quorate"]).expect(5);
    refused.says("quorate:feature_missing").says("--features postgres");
    // X10
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
}
