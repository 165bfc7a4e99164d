//! Keyrings as they are read, and as single lines of them are changed.

use std::path::Path;

use quorate_diagnostics::Report;

use super::*;
use crate::capabilities::NoCapabilities;
use crate::workspace::SourceError;

struct SingleFile(String);

impl Source for SingleFile {
    fn read(&self, _: &Path) -> Result<Vec<u8>, SourceError> {
        Ok(self.0.clone().into_bytes())
    }
}

fn loaded(text: &str) -> Loaded<Vec<Key>> {
    load(Path::new("keyring.toml"), "keyring.toml", &SingleFile(text.to_owned()), &NoCapabilities)
}

fn first(report: &Report) -> (&str, &str) {
    let refusal = report.refusals.first().expect("it is refused");
    let place = refusal.body.place.as_ref();
    let quoted = place.map_or("", |place| &report.sources[&place.file][place.span.clone()]);
    (&refusal.body.message, quoted)
}

#[test]
fn entries_have_their_times() {
    // D3: a date counts from its first moment to its last.
    let text = "[[keys]]\npublic = \"a\"\nlabel = \"ada\"\nnot_before = 2026-01-01\nnot_after = \"2026-01-01\"\n\
                revoked_at = 1970-01-01T00:00:01Z\n";
    let keys = loaded(text).value.expect("a keyring");
    let [key] = keys.as_slice() else { panic!("one key") };
    let day_ms = 1_767_225_600_000;
    assert_eq!((&*key.public, key.label.as_deref()), ("a", Some("ada")));
    assert_eq!((key.not_before_ms, key.not_after_ms), (Some(day_ms), Some(day_ms + DAY_MS - 1)));
    assert_eq!(key.revoked_at_ms, Some(1000));
    assert_eq!(&text[key.place.span.clone()], "\"a\"");
    assert!(loaded("").value.expect("an empty keyring").is_empty());
}

#[test]
fn what_cannot_be_meant_is_refused_where_it_stands() {
    for (text, says, quoted) in [
        ("keys = 7\n", "a list", "7"),
        ("[[keys]]\nlabel = \"x\"\n", "`public` is missing", "label"),
        ("[[keys]]\npublic = \"a\"\n[[keys]]\npublic = \"a\"\n", "twice", "public"),
        ("[[keys]]\npublic = \"a\"\nnot_before = \"soon\"\n", "is not a time", "\"soon\""),
        ("[[keys]]\npublic = \"a\"\nrevoked = true\n", "not a key", "revoked"),
        (
            "[[keys]]\npublic = \"a\"\nnot_before = 2026-01-02\nnot_after = 2026-01-01\n",
            "before `not_before`",
            "public",
        ),
        ("key = []\n", "not a key here", "key"),
    ] {
        let Loaded { value, report } = loaded(text);
        assert!(value.is_none(), "{text}");
        let (message, place) = first(&report);
        assert!(message.contains(says), "{text}: {message}");
        assert_eq!(place, quoted, "{text}: {message}");
    }
}

#[test]
fn a_secret_is_refused_and_covered_wherever_its_line_is_quoted() {
    // D3
    for text in [
        "[[keys]]\npublic = \"quorate:ed25519:seed:canary+/=\" # mine\n",
        "[[keys]]\npublic = quorate:ed25519:seed:canary+/=\n",
        "canary = 1\nkeys = \"quorate:ed25519:seed:canary+/=\"",
    ] {
        let report = loaded(text).report;
        let (message, _) = first(&report);
        assert!(!message.contains("canary+"), "{message}");
        let source = report.sources.values().next().expect("a text");
        assert_eq!(&**source, text.replace("canary+/=", "*********"));
    }
    let report = loaded("[[keys]]\npublic = \"quorate:ed25519:seed:canary\"\n").report;
    assert!(first(&report).0.contains("is a secret key"));
}

#[test]
fn edits_leave_everything_else() {
    let text = "# Who may sign.\n[[keys]]\npublic = \"a\" # Ada\nlabel = \"ada\"\n# the end";
    let more = add_key(text, "b", "bob \"b\"", "2026-01-01T00:00:00Z", None).expect("it can be added");
    assert!(more.starts_with(text));
    assert_eq!(loaded(&more).value.expect("two keys")[1].label.as_deref(), Some("bob \"b\""));
    let ended = set_time(&more, "a", TimeField::NotAfter, "2026-02-01T00:00:00Z").expect("it is there");
    assert_eq!(ended.replace("\nnot_after = \"2026-02-01T00:00:00Z\"", ""), more);
    let again = set_time(&ended, "a", TimeField::NotAfter, "2027-02-01T00:00:00Z").expect("it is there");
    assert_eq!(again, ended.replace("2026-02-01", "2027-02-01"));
    let revoked = set_time(&again, "b", TimeField::RevokedAt, "2026-03-01T00:00:00Z").expect("it is there");
    let keys = loaded(&revoked).value.expect("two keys");
    assert!(keys[0].not_after_ms.is_some() && keys[0].revoked_at_ms.is_none());
    assert!(keys[1].revoked_at_ms.is_some());
    assert_eq!(set_time(&more, "c", TimeField::NotAfter, "2026-02-01"), None);
    // Lines that end in CRLF go on to.
    let crlf =
        set_time("[[keys]]\r\npublic = \"a\"\r\n", "a", TimeField::NotAfter, "x").expect("it is there");
    assert_eq!(crlf, "[[keys]]\r\npublic = \"a\"\r\nnot_after = \"x\"\r\n");
    // In one line with others an entry cannot be edited alone, and a list that is written out takes no table after it.
    let inline = "keys = [{public = \"a\"}]\n";
    assert_eq!(set_time(inline, "a", TimeField::NotAfter, "2026-02-01"), None);
    assert_eq!(add_key(inline, "b", "b", "2026-02-01", None), None);
}
