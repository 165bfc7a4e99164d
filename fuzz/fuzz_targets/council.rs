#![no_main]

use std::path::Path;

use quorate_fuzz::One;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let loaded = quorate_manifest::council::load(Path::new("council.yaml"), "council.yaml", &One(bytes));
    assert_eq!(loaded.value.is_some(), !loaded.report.refused());
});
