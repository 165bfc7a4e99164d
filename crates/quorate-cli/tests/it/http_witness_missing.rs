//! A witness with a URL, in a build without the feature: the refusal names the feature to build with.
#![cfg(not(feature = "http-witness"))]

use crate::support;
use support::TestDir;

/// A verifier's line of type 0x04, of the key whose seed is 32 bytes of 5.
const KEY: &str = "witness.example/1+6b27e291+BG56HN0psLeP0Tr0xVmP7/TvKpcWbjym8uT7/M2AUFvx";

#[test]
fn it_says_how_to_build_it() {
    let table = format!("[ledger]\nwitness = \"https://witness.example\"\nwitness_key = \"{KEY}\"\n");
    let refused = TestDir::with("quorate.toml", table).run(&["runs"]).assert_code(5);
    refused
        .assert_stderr_contains("quorate:feature_missing")
        .assert_stderr_contains("--features http-witness");
}
