//! `quorate mcp` in a program that was built without the feature: it says so, and how to get it.
#![cfg(not(feature = "mcp"))]

use crate::support;
use support::Place;

#[test]
fn it_says_how_to_build_it() {
    let refused = Place::new().run(&["mcp"]).expect(5);
    refused.says("quorate:feature_missing").says("--features mcp");
    assert_eq!(refused.stdout, "");
}
