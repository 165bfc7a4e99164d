//! Kind strings stand once, as `const KIND` in their adapter; nothing inward of the adapters names one.

use super::Source;

/// Kinds that are words of other things, too: a key of JSON outputs, and the ledger's own engine.
const WORDS: [&str; 2] = ["file", "sqlite"];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let kinds: Vec<&str> = sources
        .iter()
        .filter(|one| one.path.starts_with("crates/quorate-adapters/src"))
        .flat_map(declared)
        .filter(|kind| !WORDS.contains(kind))
        .collect();
    let inward = |source: &&Source| {
        source.path.contains("/src/")
            && !["crates/quorate-adapters/", "crates/quorate-testkit/", "crates/xtask/"]
                .iter()
                .any(|dir| source.path.starts_with(dir))
            && !source.path.ends_with("tests.rs")
            && !source.path.ends_with("fixture.rs")
    };
    let mut complaints = Vec::new();
    for source in sources.iter().filter(inward) {
        for kind in &kinds {
            if source.without_tests().contains(&format!("\"{kind}\"")) {
                complaints.push(format!("{} names the kind \"{kind}\"", source.path));
            }
        }
    }
    if kinds.is_empty() {
        complaints.push("no adapter declares its kind; this rule looks in the wrong place".to_owned());
    }
    complaints
}

fn declared(source: &Source) -> Vec<&str> {
    let after = source.text.split("pub const KIND: &str = \"").skip(1);
    after.filter_map(|rest| rest.split('"').next()).collect()
}
