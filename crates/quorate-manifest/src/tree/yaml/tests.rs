//! What the YAML of manifests is, and what it is not.

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn reads(text: &str, expected: Value) {
    let (root, problems) = parse(text);
    assert_eq!(problems, [], "{text:?}");
    assert_eq!(root.expect("a tree").to_json(), expected, "{text:?}");
}

/// The problems, each with what is at its place.
#[track_caller]
fn refuses(text: &str, expected: &[(&str, &str)]) {
    let (_, problems) = parse(text);
    let seen: Vec<_> = problems.iter().map(|p| (&text[p.span.clone()], p.message.as_str())).collect();
    assert_eq!(seen.len(), expected.len(), "{text:?}: {seen:?}");
    for ((place, message), (expected_place, part)) in seen.iter().zip(expected) {
        assert_eq!(place, expected_place, "{text:?}: {seen:?}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn scalars_have_the_kind_that_they_show() {
    reads("a: true\nb: False\nc: null\nd: ~\ne:\n", json!({"a": true, "b": false}));
    reads(
        "a: yes\nb: no\nc: on\nd: y\ne: \"true\"\n",
        json!({"a": "yes", "b": "no", "c": "on", "d": "y", "e": "true"}),
    );
    reads("a: 1\nb: -2\nc: 0x1F\nd: 0o17\ne: 010\n", json!({"a": 1, "b": -2, "c": 31, "d": 15, "e": 10}));
    reads("a: 1.0\nb: .5\nc: 1e3\nd: -1.\n", json!({"a": 1.0, "b": 0.5, "c": 1000.0, "d": -1.0}));
    reads(
        "a: 1.0.0\nb: 1_000\nc: 2026-11-20\nd: .\ne: 10m\n",
        json!({
            "a": "1.0.0", "b": "1_000", "c": "2026-11-20", "d": ".", "e": "10m"
        }),
    );
}

#[test]
fn structure_comments_and_block_text() {
    reads(
        "# c\na:\n  - x\n  - y: 1 # c\n    z: [1, {b: 2}]\n",
        json!({"a": ["x", {"y": 1, "z": [1, {"b": 2}]}]}),
    );
    reads("a: |\n  one\n  two\nb: >\n  one\n  two\n", json!({"a": "one\ntwo\n", "b": "one two\n"}));
    reads("---\na: 1\n...\n", json!({"a": 1}));
    reads("a: 1\r\nb:\r\n  - x\r\n", json!({"a": 1, "b": ["x"]}));
    reads("", Value::Null);
    reads("# nothing\n", Value::Null);
}

#[test]
fn places_are_bytes_of_the_text() {
    let text = "ä: ö\nlist:\n  - über: \"q\"\n";
    let Kind::Map(entries) = parse(text).0.expect("a tree").kind else { panic!("a mapping") };
    assert_eq!((&text[entries[0].key_span.clone()], &text[entries[0].value.span.clone()]), ("ä", "ö"));
    let Kind::Seq(items) = &entries[1].value.kind else { panic!("a list") };
    let Kind::Map(item) = &items[0].kind else { panic!("a mapping") };
    assert_eq!((&text[item[0].key_span.clone()], &text[item[0].value.span.clone()]), ("über", "\"q\""));
}

// M1
#[test]
fn what_acts_from_a_distance_is_refused() {
    refuses("a: 1\nb: 2\na: 3\n", &[("a", "`a` is there twice")]);
    refuses("a: !!str 1\n", &[("1", "tag `!!str`")]);
    refuses("a: &x 1\n", &[("1", "anchors")]);
    refuses("a: &x 1\nb: *x\n", &[("1", "anchors"), ("*x", "aliases")]);
    refuses("a: *x\n", &[("*x", "aliases")]);
    refuses("a:\n  <<: {b: 1}\n", &[("<<", "merge keys")]);
    refuses("a: 1\n---\nb: 1\n", &[("---", "second document")]);
    refuses("%YAML 1.2\n---\na: 1\n", &[("", "no YAML")]);
    refuses("? [a]\n: 1\n", &[("[", "a key is text")]);
    refuses(": 1\n", &[("", "without a name")]);
    refuses(
        "a: .inf\nb: 99999999999999999999\nc: 1e999\n",
        &[(".inf", ""), ("99999999999999999999", "large"), ("1e999", "large")],
    );
}

#[test]
fn a_problem_that_leaves_the_shape_alone_leaves_the_tree() {
    let (root, problems) = parse("a: 1\na: 2\nb: 3\n");
    assert_eq!(problems.len(), 1);
    assert_eq!(root.expect("a tree").to_json(), json!({"a": 1, "b": 3}));
}

#[test]
fn broken_text_is_refused_with_a_place() {
    for text in [
        "a: [1, 2\n",
        "a: \"x\n",
        "a: b: c\n",
        "a:\n\t- x\n",
        "- a\nb: 1\n",
        "a: 1\n b: 2\n",
        "\0",
        "a: \u{7}\n",
    ] {
        let (root, problems) = parse(text);
        assert!(root.is_none() && problems.len() == 1, "{text:?}: {problems:?}");
        assert!(problems[0].span.end <= text.len(), "{text:?}");
    }
}

#[test]
fn abuse_ends_at_once() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(parse(&nested(MAX_DEPTH)).0.is_some());
    refuses(&nested(MAX_DEPTH + 1), &[("[", "deeper")]);
    for text in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000), "a: [".repeat(50_000)] {
        assert_eq!(parse(&text).1.len(), 1);
    }
    let block: String = (0..40).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert_eq!(parse(&block).1.len(), 1);
    refuses(&format!("[{}]", "1,".repeat(MAX_NODES)), &[("1", "more than 20000")]);
    assert_eq!(parse(&"a: &a 1\n".repeat(5_000)).1.len(), MAX_PROBLEMS);
}
