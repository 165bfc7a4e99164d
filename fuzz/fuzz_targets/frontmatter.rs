#![no_main]

use quorate_manifest::format::{frontmatter, orders};
use quorate_manifest::frontmatter::split;
use quorate_manifest::tree::{emit, yaml};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(parts) = split(text) else { return };
    assert!(parts.yaml.end <= parts.body.start && parts.body.end == text.len());
    let (Some(tree), problems) = yaml::parse(&text[parts.yaml]) else { return };
    if problems.is_empty() {
        // What is emitted reads back, and formatting is done after once.
        let written = emit(&tree);
        assert_eq!(yaml::parse(&written).0.map(|again| emit(&again)), Some(written));
        if let Ok(once) = frontmatter(text, &orders::ASSEMBLY) {
            assert_eq!(frontmatter(&once, &orders::ASSEMBLY), Ok(once));
        }
    }
});
