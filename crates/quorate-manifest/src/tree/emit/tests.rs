//! What is emitted reads back.

use proptest::prelude::*;

use super::*;
use crate::tree::Float;

fn read(text: &str) -> Node {
    let (node, problems) = yaml::parse(text);
    assert_eq!(problems, [], "{text}");
    node.unwrap_or_else(|| panic!("no tree: {text}"))
}

/// The tree without places.
fn bare(mut node: Node) -> Node {
    fn strip(node: &mut Node) {
        node.span = 0..0;
        match &mut node.kind {
            Kind::Seq(items) => items.iter_mut().for_each(strip),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_span = 0..0;
                strip(&mut entry.value);
            }),
            _ => {}
        }
    }
    strip(&mut node);
    node
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}",
        "[ -~]{0,12}",
        "\\PC{0,8}",
        "([ -~]{0,9}\n){1,4}",
        "[ \n\t\r\u{0}\u{7}\u{85}\u{2028}#:\"'|>%@`&*!\\[\\]{},?-]{0,6}",
        Just("yes".to_owned()),
        Just("null".to_owned()),
        Just("1.5".to_owned()),
        Just("0x1f".to_owned()),
        Just("ws://personas/x".to_owned()),
    ]
}

fn trees() -> impl Strategy<Value = Node> {
    let float = |value: f64| Kind::Float(Float { value, text: format!("{value:?}").into() });
    let leaf = prop_oneof![
        any::<bool>().prop_map(Kind::Bool),
        any::<i64>().prop_map(Kind::Int),
        (-1e9..1e9).prop_map(float),
        texts().prop_map(Kind::Str),
    ];
    leaf.prop_map(|kind| Node::new(kind, 0..0)).prop_recursive(5, 40, 6, |inner| {
        let map = prop::collection::btree_map(texts(), inner.clone(), 0..5).prop_map(|map| {
            let entry = |(key, value): (String, Node)| Entry { key, key_span: 0..0, value };
            Kind::Map(map.into_iter().filter(|(key, _)| !key.is_empty() && key != "<<").map(entry).collect())
        });
        prop_oneof![prop::collection::vec(inner, 0..5).prop_map(Kind::Seq), map]
            .prop_map(|kind| Node::new(kind, 0..0))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // M12.
    #[test]
    fn what_is_emitted_reads_back(tree in trees()) {
        let text = emit(&tree);
        prop_assert_eq!(bare(read(&text)), tree, "{}", text);
    }
}

#[test]
fn what_is_emitted_is_what_a_person_would_write() {
    let text = "\
name: board
description: |
  One line.

  Another: line.
members:
  - id: ceo
    voteClass: [budget, security]
    weight: 1.50
  - id: cto
empty: {}
none: []
quoted: \"yes # no\"
";
    assert_eq!(emit(&read(text)), text);
}
