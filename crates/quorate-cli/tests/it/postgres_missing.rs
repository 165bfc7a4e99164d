//! A ledger in a Postgres database, in a build without the feature: the refusal names the feature to build with.
#![cfg(not(feature = "postgres"))]

use crate::support;
use support::TestDir;

#[test]
fn it_says_how_to_build_it() {
    let refused =
        TestDir::new().run(&["runs", "--ledger", "postgres://ada:s3cret@db/quorate"]).assert_code(5);
    refused.assert_stderr_contains("quorate:feature_missing").assert_stderr_contains("--features postgres");
    // X10
    assert!(!refused.stderr.contains("s3cret"), "{}", refused.stderr);
}
