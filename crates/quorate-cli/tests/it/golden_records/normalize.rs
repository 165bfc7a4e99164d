//! Records without what is another one in each run: ids, times, hashes, keys, paths, versions.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Texts that follow from chance or from the clock, as a whole.
const VARYING: [&str; 4] = ["seed", "note", "signature", "sketch"];

/// Numbers that do.
const MEASURED: [&str; 4] = ["ms", "added_ms", "expires_ms", "log_bytes"];

static WORDS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let id = "[0-9abcdefghjkmnpqrstvwxyz]{12}";
    let words = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".to_owned(), "<time>"),
        (r"quorate:ed25519:public:[A-Za-z0-9+/]+=*".to_owned(), "<public key>"),
        (r"\b[0-9a-f]{64}\b".to_owned(), "<sha256>"),
        (r"\bquorate/[0-9.]+(-[a-z0-9.]+)?\b".to_owned(), "quorate/<version>"),
        (r"(quorate/[a-z0-9]+)\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*".to_owned(), "$1+<key>"),
        (format!(r"\br{id}\b"), "<run>"),
        (format!(r"\bo{id}\b"), "<overlay>"),
        (r"\bt_[0-9a-f]{12}\b".to_owned(), "<turn>"),
        (r"\b([0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{12})\b".to_owned(), "<id>"),
    ];
    words.into_iter().map(|(pattern, is)| (Regex::new(&pattern).expect("a pattern"), is)).collect()
});

/// The line of a record.
pub(crate) fn line(kind: &str, mut data: Value, root: &Path) -> String {
    if let Value::Object(fields) = &mut data {
        fields.remove("salt");
    }
    format!("{kind} {}", value("", data, root))
}

/// JSON in which what varies is replaced by what it is.
pub(crate) fn value(key: &str, data: Value, root: &Path) -> Value {
    match data {
        Value::Object(_) | Value::String(_) | Value::Array(_) if VARYING.contains(&key) => "<varies>".into(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, data)| (text(&key, root), value(&key, data, root)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(|item| value(key, item, root)).collect(),
        Value::String(said) => text(&said, root).into(),
        Value::Number(_) if MEASURED.contains(&key) => 0.into(),
        other => other,
    }
}

/// A text in which what varies is replaced by what it is.
pub(crate) fn text(said: &str, root: &Path) -> String {
    // A directory of a test's own; what was imported names the one that it comes from.
    let temporary = root.parent().expect("it lies in one").to_string_lossy();
    let name = "quorate-[A-Za-z0-9]{6}";
    let place = Regex::new(&format!("{}/{name}|^{name}$", regex::escape(&temporary)));
    let said = place.expect("a pattern").replace_all(said, "<root>").into_owned();
    WORDS.iter().fold(said, |said, (pattern, is)| pattern.replace_all(&said, *is).into_owned())
}
