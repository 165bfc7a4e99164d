//! `quorate mcp` in a build without the feature: the refusal names the feature to build with.
#![cfg(not(feature = "mcp"))]

use crate::support;
use support::TestDir;

#[test]
fn it_says_how_to_build_it() {
    let refused = TestDir::new().run(&["mcp"]).assert_code(5);
    refused.assert_stderr_contains("quorate:feature_missing").assert_stderr_contains("--features mcp");
    assert_eq!(refused.stdout, "");
}
