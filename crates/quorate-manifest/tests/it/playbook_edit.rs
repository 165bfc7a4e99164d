//! Edits of a playbook's file change the intended value and no other byte (B8).

mod files;

use files::{Change, change, file, value};
use proptest::prelude::*;
use quorate_manifest::playbook::edit::{Edit, render};
use quorate_manifest::{frontmatter, tree};
use serde_json::{Map, Value, json};

/// The keys and the body of a file.
fn read(text: &str) -> (Map<String, Value>, String) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parts = frontmatter::split(text).expect("there is frontmatter");
    let (root, problems) = tree::yaml::parse(&text[parts.yaml]);
    assert_eq!(problems, [], "{text}");
    let keys = match root.expect("there is a tree").to_json() {
        Value::Object(keys) => keys,
        _ => Map::new(),
    };
    (keys, text[parts.body].to_owned())
}

fn edited(text: &str, change: impl FnOnce(&mut Edit)) -> String {
    let mut edit = Edit::new(text).expect(text);
    change(&mut edit);
    edit.finish().expect(text)
}

fn item(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an item is a mapping").clone()
}

/// The number of bytes in the common prefix and suffix of two texts, each byte counted once.
fn common_prefix(one: &str, other: &str) -> usize {
    let start = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let most = one.len().min(other.len()) - start;
    start + one.bytes().rev().zip(other.bytes().rev()).take(most).take_while(|(a, b)| a == b).count()
}

fn comments(text: &str) -> usize {
    text.matches("# c").count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_change_leaves_the_rest_to_the_byte(file in file(), change in change()) {
        // B8
        let text = file.text();
        let (keys, body) = read(&text);
        let mut edit = Edit::new(&text).unwrap();
        change.make(&mut edit);
        let Some(wanted) = change.result(&keys) else {
            prop_assert!(edit.finish().is_err());
            return Ok(());
        };
        let new = edit.finish().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read(&new), (wanted.clone(), body), "{}\n->\n{}", text, new);

        match file.around(change.key()) {
            None => prop_assert_eq!(common_prefix(&text, &new), text.len().min(new.len()), "{}\n->\n{}", text, new),
            Some((before, after)) => {
                prop_assert!(new.starts_with(&before), "{}\n->\n{}", text, new);
                prop_assert!(new.ends_with(&after), "{}\n->\n{}", text, new);
            }
        }
        let old = keys.get(change.key());
        match (&change, old) {
            (Change::Push(..), Some(Value::Array(items))) if !items.is_empty() => {
                prop_assert_eq!(common_prefix(&text, &new), text.len(), "{}\n->\n{}", text, new);
            }
            (Change::Scalar(..), Some(old)) if !old.is_array() && !old.is_object() => {
                let literal = file.entries.iter().any(|(key, _, text)| key == change.key() && text.contains(['|', '>']));
                prop_assert!(literal || comments(&new) >= comments(&text), "{}\n->\n{}", text, new);
            }
            _ => {}
        }
        if text.contains("\r\n") {
            prop_assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
        }
    }

    #[test]
    fn changes_follow_each_other(
        file in file(),
        changes in prop::collection::vec(change(), 1..6),
        body in prop::option::of("(#? ?[a-z-]{0,5}(\r?\n)?){0,5}"),
    ) {
        // B8
        let text = file.text();
        let (mut keys, mut below) = read(&text);
        let mut edit = Edit::new(&text).unwrap();
        for change in &changes {
            let Some(wanted) = change.result(&keys) else { continue };
            change.make(&mut edit);
            keys = wanted;
        }
        if let Some(body) = body {
            edit.set_body(&body);
            below = body;
        }
        let new = edit.finish().map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let (read, found) = read(&new);
        prop_assert_eq!(read, keys);
        prop_assert_eq!(found.replace("\r\n", "\n"), below.replace("\r\n", "\n"));
    }

    #[test]
    fn an_odd_file_is_edited_right_or_not_at_all(
        file in file(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), 0..2usize, "[\r\n\t ?:#|>\"'{}\\[\\]~,ü\u{2028}-]{0,3}"), 1..4),
        change in change(),
    ) {
        // B8
        let mut chars: Vec<char> = file.text().chars().collect();
        for (at, without, more) in &noise {
            let at = at.index(chars.len());
            chars.splice(at..(at + without).min(chars.len()), more.chars());
            if chars.is_empty() {
                return Ok(());
            }
        }
        let text: String = chars.into_iter().collect();
        let Ok(mut edit) = Edit::new(&text) else { return Ok(()) };
        let (keys, body) = read(&text);
        change.make(&mut edit);
        if let Ok(new) = edit.finish() {
            prop_assert_eq!(Some(read(&new)), change.result(&keys).map(|keys| (keys, body)), "{}\n->\n{}", text, new);
        }
    }

    #[test]
    fn a_new_file_reads_as_what_it_was_made_of(
        keys in prop::collection::btree_map("[a-z_]{1,12}", value(), 0..6),
        body in any::<String>(),
    ) {
        let body = body.replace('\0', "");
        let keys: Map<String, Value> = keys.into_iter().collect();
        prop_assert_eq!(read(&render(&keys, &body).unwrap()), (keys, body));
    }
}

const FILE: &str = "\
---
# A playbook of ours.
schema: playbooks/v1
slug: quote-evidence   # never change this
title: 'Quote evidence inline.'
kind: overlay

# What it leaves alone:
lock_check: [warmth]
evidence:
- kind: run
  ref: runs/1 # the first
  # nothing more
status: shadow # until a gate
updated_at: 2026-05-06T09:00:00Z
metadata:
  simone:
    mentor: ada
# the end
---

# Quote evidence
";

#[test]
fn a_promotion_changes_what_it_has_to() {
    // B8
    let entry = json!({"at": "2026-11-21T10:00:00.000Z", "kind": "promoted", "summary": "Better: 12 of 14.", "gate": "a-b"});
    let new = edited(FILE, |edit| {
        edit.set_string("status", "active");
        edit.set_string("title", "It's quoted inline.");
        edit.set_string("updated_at", "2026-11-21T10:00:00.000Z");
        edit.set_string("created_at", "2026-05-06T09:00:00Z");
        edit.set_json("priority", &json!(60));
        edit.push_item("history", &item(&entry));
        edit.push_item("evidence", &item(&json!({"ref": "runs/2", "kind": "run", "note": "yes"})));
        edit.set_body("\n# Quote evidence\n\nAlways.\n");
    });
    let expected = "\
---
# A playbook of ours.
schema: playbooks/v1
slug: quote-evidence   # never change this
title: 'It''s quoted inline.'
kind: overlay
priority: 60

# What it leaves alone:
lock_check: [warmth]
evidence:
- kind: run
  ref: runs/1 # the first
  # nothing more
- kind: run
  ref: runs/2
  note: \"yes\"
status: active # until a gate
history:
- at: \"2026-11-21T10:00:00.000Z\"
  kind: promoted
  summary: \"Better: 12 of 14.\"
  gate: a-b
created_at: \"2026-05-06T09:00:00Z\"
updated_at: 2026-11-21T10:00:00.000Z
metadata:
  simone:
    mentor: ada
# the end
---

# Quote evidence

Always.
";
    assert_eq!(new, expected);
    assert_eq!(edited(&new, |edit| edit.set_body("\n# Quote evidence\n\nAlways.\n")), new);
}

#[test]
fn marks_line_ends_and_a_missing_last_break_stay() {
    // B8
    let text = format!("\u{feff}{}", FILE.trim_end().replace('\n', "\r\n"));
    let new = edited(&text, |edit| edit.push_item("history", &item(&json!({"at": "x", "kind": "created"}))));
    let added = "history:\r\n- at: x\r\n  kind: created\r\n";
    assert_eq!(new.replace(added, ""), text);
    let new = edited("---\r\nslug: a\r\n---", |edit| edit.set_body("One\nTwo\r\n"));
    assert_eq!(new, "---\r\nslug: a\r\n---\r\nOne\r\nTwo\r\n");
}

#[test]
fn lists_grow_as_they_are_written() {
    // B8
    let one = json!({"k": "v w"});
    let cases = [
        ("history: []\n", "history:\n  - k: v w\n"),
        ("history:\nx: 1\n", "history:\n  - k: v w\nx: 1\n"),
        ("history: [{a: 1},\n  {b: 2}] # two\n", "history: [{a: 1},\n  {b: 2}, {k: v w}] # two\n"),
        ("history:\n    - a: 1\n\n# next\nx: 1\n", "history:\n    - a: 1\n    - k: v w\n\n# next\nx: 1\n"),
        ("history:\n- a: |\n    # text\n\nx: 1\n", "history:\n- a: |\n    # text\n- k: v w\n\nx: 1\n"),
        ("history:\n- a: |+\n    text\n\nx: 1\n", "history:\n- a: |+\n    text\n\n- k: v w\nx: 1\n"),
        ("x:\n- 1\n", "history:\n- k: v w\nx:\n- 1\n"),
        ("", "history:\n  - k: v w\n"),
    ];
    for (text, expected) in cases {
        let new = edited(&format!("---\n{text}---\n"), |edit| edit.push_item("history", &item(&one)));
        assert_eq!(new, format!("---\n{expected}---\n"));
    }
}

#[test]
fn texts_of_several_lines_go_as_a_whole() {
    // B8
    let cases = [
        ("title: | # c\n  a\n\n  # b\n\nx: 1\n", "title: new\n\nx: 1\n"),
        ("title: |+\n  a\n\nx: 1\n", "title: new\nx: 1\n"),
        ("title: \"a\n  # b\" # c\nx: 1\n", "title: \"new\" # c\nx: 1\n"),
        ("title: # c\n  # d\n  a\n  b # e\n", "title: # c\n  # d\n  new # e\n"),
        ("title:\n  # d\n  a: b # e\n  # f\n# g\n", "title: new\n# g\n"),
        ("title:\n  - a\n\n# g\n", "title: new\n\n# g\n"),
    ];
    for (text, expected) in cases {
        let new = edited(&format!("---\n{text}---\n"), |edit| edit.set_string("title", "new"));
        assert_eq!(new, format!("---\n{expected}---\n"));
    }
    let text = "---\nkind: |+\n  a\n\n# b\nx: 1\n---\n";
    let new = edited(text, |edit| edit.set_string("block", "voice"));
    assert_eq!(new, text.replace("# b", "block: voice\n# b"));
    let text = "---\nkind: |+\n  a\nttl: P1D\n\nx: 1\n---\n";
    assert_eq!(edited(text, |edit| edit.remove("ttl")), text.replace("ttl: P1D\n\n", ""));
}

#[test]
fn new_keys_stand_in_the_order_of_the_schema() {
    let keys = [
        "schema",
        "slug",
        "title",
        "entry",
        "targets",
        "selector",
        "kind",
        "block",
        "priority",
        "lock_check",
        "ttl",
        "evidence",
        "status",
        "supersedes",
        "history",
        "binds_operator",
        "created_at",
        "updated_at",
        "tags",
        "metadata",
        "x-own",
    ];
    let expected: String = keys.iter().map(|key| format!("{key}: x\n")).collect();
    for step in [1, 2, 4, 5, 8, 10, 11, 13] {
        let new = edited("---\n---\n", |edit| {
            (0..keys.len()).for_each(|at| edit.set_string(keys[at * step % keys.len()], "x"));
        });
        assert_eq!(new, format!("---\n{expected}---\n"));
    }
}

#[test]
fn what_is_no_playbook_or_cannot_be_said_is_refused() {
    for (text, why) in [
        ("# Title\n", "line 1: the frontmatter is missing"),
        ("---\na: 1\na: 2\n---\n", "line 3: the key `a` is there twice"),
        ("---\n- a\n---\n", "line 2: there is a list here, not a mapping of keys"),
        ("---\na: \0\n---\n", "line 2: there is a NUL character here"),
        (
            "---\n{a: 1}\n---\n",
            "line 2: the keys are in braces, where they cannot be edited; write one on each line",
        ),
    ] {
        assert_eq!(Edit::new(text).unwrap_err().to_string(), why);
    }
    let refused = |change: &dyn Fn(&mut Edit)| {
        let mut edit = Edit::new(FILE).unwrap();
        change(&mut edit);
        edit.set_string("slug", "not-made");
        edit.finish().unwrap_err().to_string()
    };
    assert_eq!(refused(&|edit| edit.push_item("status", &Map::new())), "`status` is not a list");
    assert_eq!(
        refused(&|edit| edit.set_json("ttl", &json!(u64::MAX))),
        "18446744073709551615 is too large a number"
    );
    assert!(
        refused(&|edit| edit.set_string("", "x"))
            .starts_with("`` cannot be set to this value: a key without")
    );
    assert!(refused(&|edit| edit.set_body("\0")).contains("NUL"));
    assert!(
        refused(&|edit| edit.set_body(&"x".repeat(1 << 20))).contains("more than the maximum of 1048576")
    );
}

#[test]
fn a_lone_carriage_return_is_no_trap() {
    let mut edit = Edit::new("---\na: 1\rb: 2\rhistory:\r- c: 3\n---\n").unwrap();
    edit.push_item("history", &item(&json!({"d": 4})));
    edit.set_json("b", &json!(3));
    if let Ok(new) = edit.finish() {
        assert_eq!(Value::Object(read(&new).0), json!({"a": 1, "b": 3, "history": [{"c": 3}, {"d": 4}]}));
    }
}

#[test]
fn a_new_file_is_readable() {
    let keys = json!({
        "metadata": {"simone": {"mentor": "ada"}}, "slug": "a-b", "schema": "playbooks/v1", "ttl": "P30D",
        "title": "Quote evidence, always: it counts.", "tags": ["no", "x"], "lock_check": [], "kind": "overlay",
        "targets": [{"ref": "operator/*", "kind": "operator"}], "priority": 50, "status": "shadow",
        "evidence": [{"note": "One.\nTwo.\n", "kind": "run", "ref": "runs/1"}], "binds_operator": null,
    });
    let expected = "\
---
schema: playbooks/v1
slug: a-b
title: \"Quote evidence, always: it counts.\"
targets:
  - kind: operator
    ref: operator/*
kind: overlay
priority: 50
lock_check: []
ttl: P30D
evidence:
  - kind: run
    ref: runs/1
    note: |
      One.
      Two.
status: shadow
tags: [\"no\", x]
metadata:
  simone:
    mentor: ada
---

# Text
";
    assert_eq!(render(&item(&keys), "\n# Text\n").unwrap(), expected);
}
