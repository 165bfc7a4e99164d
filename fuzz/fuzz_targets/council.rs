#![no_main]

use std::path::Path;

use quorate_fuzz::OneFile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let loaded = quorate_manifest::council::load(Path::new("council.yaml"), "council.yaml", &OneFile(bytes));
    assert_eq!(loaded.value.is_some(), !loaded.report.has_refusals());
});
