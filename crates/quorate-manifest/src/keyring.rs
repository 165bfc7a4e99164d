//! Keyrings (D3, D9): `keyring.toml`, and the keys of a governance file. Each entry is a public key with its owner's label
//! and validity. [`Capabilities::check_public_key`] decides whether a text is a key.

use std::path::Path;
use std::sync::Arc;

use quorate_diagnostics::{Body, Place, codes};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capabilities::{Capabilities, PublicKeyError};
use crate::doctype::compiled;
use crate::pattern::SOMETHING;
use crate::tree::reader::contains_secret_key;
use crate::tree::{Field, Format, Kind, Node, ParsedFile, open, toml};
use crate::{Loaded, Source, timestamp};

const DAY_MS: i64 = 86_400_000;

/// A public key and its validity, in milliseconds since the Unix epoch. `None` is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub public: Arc<str>,
    /// The owner, for people.
    pub label: Option<String>,
    /// Inclusive.
    pub not_before_ms: Option<i64>,
    /// Inclusive.
    pub not_after_ms: Option<i64>,
    /// Signatures from this time on are invalid.
    pub revoked_at_ms: Option<i64>,
    /// Signed statements of other keys that this key deserves the same trust, as `quorate keys vouch` writes them.
    pub vouchers: Vec<Arc<str>>,
    #[serde(skip)]
    pub place: Place,
}

/// A keyring's keys.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct KeyringFile {
    keys: Option<Vec<Value>>,
}

/// The keys of an entry; a text is the public key alone.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Entry {
    /// A public key's text.
    public: String,
    #[schemars(regex(pattern = SOMETHING))]
    label: Option<String>,
    not_before: Option<String>,
    not_after: Option<String>,
    revoked_at: Option<String>,
    vouched: Option<Vec<String>>,
}

/// Loads a keyring. `shown` is the path as messages show it.
pub fn load(
    path: &Path,
    shown: &str,
    source: &dyn Source,
    capabilities: &dyn Capabilities,
) -> Loaded<Vec<Key>> {
    let read = |opened: &ParsedFile| {
        let mut found = Vec::new();
        let read: Option<IgnoredAny> = opened.read(&compiled::<KeyringFile>(), |root| {
            found = root.get("keys").map_or_else(Vec::new, |field| keys(&field, capabilities, None));
        });
        read.map(|_| found)
    };
    open::load(source, (path, shown), Format::Toml, codes::KEYRING_INVALID, read)
}

/// Reads a list of keys, each a text or a mapping. Refuses duplicates. Keys of other formats go to `foreign`; without it
/// they are refused.
pub(crate) fn keys(
    field: &Field<'_>,
    capabilities: &dyn Capabilities,
    mut foreign: Option<&mut Vec<Place>>,
) -> Vec<Key> {
    let schema = compiled::<Entry>();
    let mut keys: Vec<Key> = Vec::new();
    for item in field.items() {
        if let Some(foreign) = &mut foreign
            && is_foreign_key(&item, capabilities)
        {
            foreign.push(item.place());
            continue;
        }
        if !matches!(item.kind(), Kind::Str(_)) {
            item.validate(&schema);
        }
        let Some(key) = key(&item, capabilities) else { continue };
        if let Some(first) = keys.iter().find(|other| other.public == key.public) {
            let body = Body::new("this key is in the list twice").help("keep one of the two");
            item.refuse_body(body.related(first.place.clone(), "first here"));
        }
        keys.push(key);
    }
    keys
}

fn key(item: &Field<'_>, capabilities: &dyn Capabilities) -> Option<Key> {
    let public = if matches!(item.kind(), Kind::Str(_)) { item.clone() } else { item.get("public")? };
    check_public_key(&public, capabilities);
    for voucher in item.at("vouched.*") {
        // A key's name, a time and a signature. The ledger verifies them.
        if voucher.text().is_some_and(|text| text.split(' ').filter(|word| !word.is_empty()).count() != 3) {
            let message =
                format!("`{}` is not a voucher: a key's name, a time and a signature", voucher.path());
            voucher.invalid_with(message, "remove it; `quorate keys vouch KEY` writes one");
        }
    }
    let time = |key: &str, of_day_ms| parse_time(&item.get(key)?, of_day_ms);
    let key = Key {
        public: public.text()?.into(),
        label: item.get("label").and_then(|label| label.text().map(str::to_owned)),
        not_before_ms: time("not_before", 0),
        not_after_ms: time("not_after", DAY_MS - 1),
        revoked_at_ms: time("revoked_at", 0),
        vouchers: item.at("vouched.*").iter().filter_map(|voucher| Some(voucher.text()?.into())).collect(),
        place: public.place(),
    };
    if key.not_before_ms.zip(key.not_after_ms).is_some_and(|(from, to)| to < from) {
        item.invalid_with("`not_after` is before `not_before`", "write a later `not_after`");
    }
    Some(key)
}

fn check_public_key(field: &Field<'_>, capabilities: &dyn Capabilities) {
    let text = field.text().unwrap_or_default();
    if contains_secret_key(text) {
        return field.invalid_with(
            format!("`{}` is a secret key, but this file is public", field.path()),
            "remove it, make another key with `quorate keys rotate`, and write its public key here",
        );
    }
    if let Err(error) = capabilities.check_public_key(text) {
        let reason = match error {
            PublicKeyError::Foreign => "it has another prefix".to_owned(),
            PublicKeyError::Malformed(reason) => reason,
        };
        let message = format!("`{}` is not a public key: {reason}", field.path());
        field.invalid_with(message, "write the key that `quorate keys export` prints");
    }
}

/// Whether an item is a key of another format.
fn is_foreign_key(item: &Field<'_>, capabilities: &dyn Capabilities) -> bool {
    let foreign = |text: &str| {
        !contains_secret_key(text) && capabilities.check_public_key(text) == Err(PublicKeyError::Foreign)
    };
    match item.kind() {
        Kind::Str(text) => foreign(text),
        Kind::Map(_) => item.get("public").is_none_or(|public| public.text().is_some_and(foreign)),
        _ => false,
    }
}

/// Reads a time. A date without one means the moment `of_day_ms` after its start.
fn parse_time(field: &Field<'_>, of_day_ms: i64) -> Option<i64> {
    let text = field.text()?;
    let day = || {
        let date = text.len() == 10 && text.as_bytes().get(4) == Some(&b'-');
        Some(date.then(|| timestamp::parse(&format!("{text}T00:00:00Z"))).flatten()? + of_day_ms)
    };
    let help = "write it like 2026-04-21T09:00:00Z, or a date like 2026-04-21";
    let read = timestamp::parse(text).or_else(day);
    if read.is_none() {
        field.invalid_with(format!("`{}` is not a time", field.path()), help);
    }
    read
}

/// A time of an entry that [`set_time`] can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeField {
    /// `not_after`.
    NotAfter,
    /// `revoked_at`.
    RevokedAt,
}

impl TimeField {
    fn key(self) -> &'static str {
        match self {
            TimeField::NotAfter => "not_after",
            TimeField::RevokedAt => "revoked_at",
        }
    }
}

/// The text with a new entry at its end, with an optional voucher; `None` if an entry cannot be appended to this text.
pub fn add_key(
    text: &str,
    public: &str,
    label: &str,
    not_before: &str,
    voucher: Option<&str>,
) -> Option<String> {
    let mut edited = text.to_owned();
    if !edited.is_empty() && !edited.ends_with('\n') {
        edited.push('\n');
    }
    if !edited.is_empty() {
        edited.push('\n');
    }
    let label = Value::from(label);
    edited.push_str(&format!(
        "[[keys]]\npublic = \"{public}\"\nlabel = {label}\nnot_before = \"{not_before}\"\n"
    ));
    parse_entry(&edited, public)?;
    match voucher {
        Some(voucher) => add_voucher(&edited, public, voucher),
        None => Some(edited),
    }
}

/// The text with a voucher added to a key's entry; `None` if there is no such entry, or its `public` does not have its own
/// line.
pub fn add_voucher(text: &str, public: &str, voucher: &str) -> Option<String> {
    let entry = &parse_entry(text, public)?;
    let mut edited = text.to_owned();
    match entry.entry("vouched") {
        Some(list) => {
            let end =
                list.value.span.end.checked_sub(1).filter(|end| text.get(*end..*end + 1) == Some("]"))?;
            let comma = if list.value.items().is_empty() { "" } else { ", " };
            let end = text[..end].trim_end().len();
            let comma = if text[..end].ends_with(',') { " " } else { comma };
            edited.insert_str(end, &format!("{comma}\"{voucher}\""));
        }
        None => insert_line(&mut edited, entry, &format!("vouched = [\"{voucher}\"]"))?,
    }
    let entry = parse_entry(&edited, public)?;
    entry.key("vouched")?.items().iter().any(|item| item.as_str() == Some(voucher)).then_some(edited)
}

/// Inserts a line below an entry's public key.
fn insert_line(text: &mut String, entry: &Node, line: &str) -> Option<()> {
    let after = entry.key("public")?.span.end;
    let line_end = text[after..].find('\n').map_or(text.len(), |end| after + end);
    let newline = if text[..line_end].ends_with('\r') { "\r\n" } else { "\n" };
    text.insert_str(line_end - (newline.len() - 1), &format!("{newline}{line}"));
    Some(())
}

/// The text with a time set in a key's entry; `None` if there is no such entry, or its `public` does not have its own line.
pub fn set_time(text: &str, public: &str, field: TimeField, at: &str) -> Option<String> {
    let entry = &parse_entry(text, public)?;
    let mut edited = text.to_owned();
    match entry.entry(field.key()) {
        Some(old) => edited.replace_range(old.value.span.clone(), &format!("\"{at}\"")),
        None => insert_line(&mut edited, entry, &format!("{} = \"{at}\"", field.key()))?,
    }
    // The insertion fails if the entry is on one line; then the check gives `None`.
    let entry = parse_entry(&edited, public)?;
    (entry.key(field.key())?.as_str()? == at).then_some(edited)
}

/// The entry of a key in a valid keyring.
fn parse_entry(text: &str, public: &str) -> Option<Node> {
    let (root, problems) = toml::parse(text);
    let root = root.filter(|_| problems.is_empty())?;
    root.key("keys")?.items().iter().find(|entry| entry.text_of("public") == Some(public)).cloned()
}

#[cfg(test)]
mod tests {
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
        let revoked =
            set_time(&again, "b", TimeField::RevokedAt, "2026-03-01T00:00:00Z").expect("it is there");
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
}
