//! Files and edits for tests: every YAML form of a value, comments everywhere, keys in any order.

use proptest::prelude::*;
use quorate_manifest::playbook::edit::Edit;
use serde_json::{Map, Value, json};

use super::item;

/// An edit and its effect on the keys.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Scalar(String, String),
    Json(String, Value),
    Remove(String),
    Push(String, Value),
}

impl Change {
    pub(super) fn key(&self) -> &str {
        match self {
            Change::Scalar(key, _) | Change::Json(key, _) | Change::Remove(key) | Change::Push(key, _) => key,
        }
    }

    pub(super) fn make(&self, edit: &mut Edit) {
        match self {
            Change::Scalar(key, value) => edit.set_string(key, value),
            Change::Json(key, value) => edit.set_json(key, value),
            Change::Remove(key) => edit.remove(key),
            Change::Push(key, value) => edit.push_item(key, &item(value)),
        }
    }

    /// The keys after the edit; `None` if the edit is impossible.
    pub(super) fn result(&self, keys: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut keys = keys.clone();
        let (key, value) = match self {
            Change::Scalar(key, value) => (key, json!(value)),
            Change::Json(key, value) => (key, value.clone()),
            Change::Remove(key) => (key, Value::Null),
            Change::Push(key, value) => {
                let mut list = keys.get(key).cloned().unwrap_or(json!([]));
                list.as_array_mut()?.push(value.clone());
                (key, list)
            }
        };
        if value.is_null() {
            keys.remove(key);
        } else {
            keys.insert(key.clone(), value);
        }
        Some(keys)
    }
}

const KEYS: [&str; 9] =
    ["schema", "slug", "title", "evidence", "status", "history", "updated_at", "metadata", "x-own"];

/// The forms of a value after a key's colon.
const SCALARS: [&str; 20] = [
    " plain",
    " plain # c",
    "   a b   # c",
    " \"q # x\" # c",
    " 'it''s' # c",
    "\n  on its own line # c",
    " # beside\n  # above\n  own # c",
    " |\n  lit\n  # not a comment\n\n  more",
    " |+\n  keep\n\n",
    " >- # folded\n  a\n  b",
    " |2\n   x",
    " |\n    text\n  # less deep",
    " |",
    " plain\n  goes on # c",
    " \"more\n\n  # lines\n  in\" # c",
    "",
    " # nothing",
    " ~",
    " 2026-05-06T09:00:00Z # c",
    " 12",
];

const LISTS: [&str; 17] = [
    " []",
    " [] # c",
    " [ # c\n  ]",
    " [a, \"b\"] # c",
    " [ {k: v}, {k: w},\n  # c\n  ]  # d",
    " [a: b, 'c # d']",
    "\n- k: v\n  l: w # c\n- k: |\n    x\n\n    # y",
    "\n  # first\n  - k: v\n  # between\n  - k: w\n    # deep\n  # - k: old",
    "\n    - k: v",
    "\n  - [a, b]\n  - - c\n    - d",
    "\n  -\n    k: v # x\n\n  -   k: w",
    "\n- k: \"q\n    # r\"",
    " # beside\n\n  - k: v\n\n  - plain\n    text # c",
    "\n- k: v\n# - k: w\n- k:\n  # deep",
    "\n  - k: >-\n      a\n      b\n\n  - |\n    x",
    "\n  [a, b]",
    "\n  -",
];

const MAPS: [&str; 4] =
    ["\n  vendor:\n    # c\n    x: 1 # d\n  other: [a]", " {a: b} # c", " {}", "\n  a: |\n    x"];

const LEADS: [&str; 5] = ["", "", "# lead\n", "\n", "\n# lead: [\n\n#\n"];

/// A file in parts: the lines above the entries, and for each entry its leading comments and its lines.
#[derive(Debug, Clone)]
pub(super) struct File {
    head: String,
    pub(super) entries: Vec<(String, String, String)>,
    tail: String,
}

impl File {
    pub(super) fn text(&self) -> String {
        let entries: String = self.entries.iter().map(|(_, lead, text)| format!("{lead}{text}")).collect();
        format!("{}{entries}{}", self.head, self.tail)
    }

    /// The parts before and after the entry of a key.
    pub(super) fn around(&self, key: &str) -> Option<(String, String)> {
        let at = self.entries.iter().position(|(known, ..)| known == key)?;
        let mut before = self.clone();
        before.entries.truncate(at + 1);
        before.entries[at].2.clear();
        before.tail.clear();
        let after =
            File { head: String::new(), entries: self.entries[at + 1..].to_vec(), tail: self.tail.clone() };
        Some((before.text(), after.text()))
    }
}

pub(super) fn file() -> impl Strategy<Value = File> {
    let value = prop_oneof![
        3 => prop::sample::select(&SCALARS[..]),
        3 => prop::sample::select(&LISTS[..]),
        1 => prop::sample::select(&MAPS[..]),
    ];
    let entry = (value, prop::sample::select(&LEADS[..]), 0..4u8);
    let entries = prop::collection::vec(entry, 0..KEYS.len());
    let order = Just(KEYS.to_vec()).prop_shuffle();
    let ends = (
        prop::sample::select(&["", "\u{feff}", "\n# yaml-language-server: $schema=x\n"][..]),
        prop::sample::select(&["", "# end\n", "\n\n# end\n"][..]),
        prop::sample::select(&["", "\n", "\n# Title\n\ntext: [\n---\nno end", "\nText\n"][..]),
        any::<bool>(),
        prop::bool::weighted(0.2),
    );
    (entries, order, ends).prop_map(|(values, order, (above, tail, body, crlf, indented))| {
        let mut file =
            File { head: format!("{above}---\n"), entries: Vec::new(), tail: format!("{tail}---{body}") };
        let mut keeps = false;
        for ((value, lead, quote), key) in values.into_iter().zip(order) {
            // Empty lines below a literal text with `+` belong to it.
            let lead = if keeps { lead.trim_start_matches('\n') } else { lead };
            let name = if quote == 0 { format!("\"{key}\"") } else { key.to_owned() };
            file.entries.push((key.to_owned(), lead.to_owned(), format!("{name}:{value}\n")));
            keeps = value.contains("|+");
        }
        if file.entries.last().is_some_and(|(_, _, text)| text.contains("|")) || keeps {
            file.tail = format!("---{body}");
        }
        if indented {
            // The keys of a root may be in any column.
            let change = |text: &mut String| {
                let line =
                    |line: &str| if line.trim().is_empty() { line.to_owned() } else { format!("  {line}") };
                *text = text.split_inclusive('\n').map(line).collect();
            };
            for (_, lead, text) in &mut file.entries {
                change(lead);
                change(text);
            }
        }
        if crlf {
            let change = |text: &mut String| *text = text.replace('\n', "\r\n");
            change(&mut file.head);
            change(&mut file.tail);
            for (_, lead, text) in &mut file.entries {
                change(lead);
                change(text);
            }
        }
        file
    })
}

pub(super) fn words() -> impl Strategy<Value = String> {
    let nasty = [
        "",
        "yes",
        "No",
        "null",
        "~",
        "12",
        "1.5",
        "0x1f",
        "1_000",
        "2026-11-21",
        "2026-11-21T10:00:00.000Z",
        "12:30",
        "a: b",
        "a #b",
        "# a",
        "- a",
        "a, b",
        "[a]",
        "{a}",
        "a:",
        " a",
        "a ",
        "'a'",
        "\"a\"",
        "a\nb",
        "a\nb\n",
        "\n",
        "a\r\nb",
        "tab\there",
        "---",
        "a\n---\nb\n",
        "...",
        "|",
        ">-",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a`",
        "\\n",
        "ü “x”",
        "\u{85}",
        "\u{2028}",
        "\u{feff}a",
        "\u{1F600} a",
        "a\n\n  b\n",
        "  a\n b\n",
        "?",
        "? a",
        "<<",
        "=",
        "P30D",
        "Quote evidence, always (it's \"good\")",
        "a b\n \nc\n",
        "http://x.y/z?a=b#c",
    ];
    prop_oneof![
        prop::sample::select(nasty.to_vec()).prop_map(str::to_owned),
        "[a-z ,.'\"#:\\[\\]{}-]{0,20}",
        any::<String>().prop_map(|text| text.replace('\0', "")),
    ]
}

pub(super) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        words().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        (-1e6..1e6f64).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let key = prop_oneof!["[a-z_]{1,8}", words().prop_filter("a key", |key| !key.is_empty())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let key = || prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
    let one = prop_oneof![
        Just(
            json!({"at": "2026-11-21T10:00:00.000Z", "kind": "promoted", "summary": "Better, in 12 of 14 runs: yes."})
        ),
        (words(), words()).prop_map(|(a, b)| json!({"kind": a, "note": b})),
        value().prop_filter("an item", Value::is_object),
    ];
    prop_oneof![
        3 => (key(), words()).prop_map(|(key, value)| Change::Scalar(key, value)),
        1 => (key(), any::<i64>()).prop_map(|(key, value)| Change::Json(key, json!(value))),
        3 => (key(), value()).prop_map(|(key, value)| Change::Json(key, value)),
        2 => key().prop_map(Change::Remove),
        4 => (key(), one).prop_map(|(key, value)| Change::Push(key, value)),
    ]
}
