//! Reports, and what they are made of.

use std::path::PathBuf;

use super::TestDir;

/// A run of each kind: the example, the command, and what its report has.
pub(crate) const EXAMPLES: [(&str, &str, &str); 5] = [
    (
        "release-board",
        "convene assemblies/release-board --proposal proposals/calendar-feed.md --class release --executor recorded",
        "Vote",
    ),
    (
        "design-critique",
        "convene assemblies/design-critique --topic topics/lending-page.md --executor recorded",
        "Messages",
    ),
    (
        "incident-review",
        "convene assemblies/incident-review --request incidents/friday-night.md --executor recorded",
        "Reports",
    ),
    (
        "council-of-mentors",
        "convene operators/support-agent --trigger sample --conversation conversations/flattery.jsonl --executor recorded",
        "Guidance",
    ),
    ("two-models", "review draft.md", "Positions"),
];

/// Writes a report of the newest run.
pub(crate) fn report(place: &TestDir, name: &str, more: &[&str]) -> PathBuf {
    place.run(&[&["report", "latest", "-o", name], more].concat()).assert_code(0);
    place.path(name)
}

/// The ledger's key as a verifier's line, as a public key, and its fingerprint.
pub(crate) fn ledger_key(place: &TestDir) -> (String, String, String) {
    let export = |more: &[&str]| {
        let said = place.run(&[&["keys", "export", "ledger"], more].concat()).assert_code(0).stdout;
        said.trim().to_owned()
    };
    let public = export(&[]);
    let mut fingerprint = quorate_kernel::entropy::sha256_hex(public.as_bytes());
    fingerprint.truncate(32);
    (export(&["--format", "note"]), public, fingerprint)
}
