//! Text that is nearly a manifest: whatever is in a file, checking it comes to an end and panics nowhere.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use quorate_manifest::check::{self, Named};
use quorate_manifest::round::{Options, Round};
use quorate_manifest::tree::{emit, yaml};
use quorate_manifest::workspace::{Memory, Spot};

use crate::config;
use crate::everything::Everything;

const NAMES: [&str; 6] = [
    "a/ASSEMBLY.md",
    "a/PERSONA.md",
    "operators/a/OPERATOR.md",
    "playbooks/a.md",
    "swarm.yaml",
    "tenants/t/ASSEMBLY.md",
];

const KEYS: &str = "schema name title description version extends appliesTo mode members id persona role weight parent \
    synthesis rules riskLevels range params lockedTraits matchMode audit overlays enabled defaultTtl metadata targets \
    selector history at participants ttl slug kind evidence status lock_check substrate executor";

/// Values that stand for themselves wherever they are.
const PLAIN: &str = "assembly.workspace/v1 persona/v1 playbooks/v1 agentruntimes/v1 ../ASSEMBLY.md ../a/ASSEMBLY.md \
    ../../../x/ASSEMBLY.md ../a/PERSONA.md ws://personas/x ws://personas/../x ws://operators/a peer regex semantic \
    hierarchy 1.0.0 0.5 -1 0x1F 2.50 true yes ~ P14D 2026-04-21 \"\\0\" \"*\" ü [] {}";

/// Values that do not.
const ODD: &str = "[ } *a &a !!str @ ` 1e400 99999999999999999999 .inf ' \" | >- # --- ? - : <<: %";

fn word(of: &'static str) -> impl Strategy<Value = &'static str> {
    select(of.split_whitespace().collect::<Vec<_>>())
}

/// Lines of keys and values at any depth, many of them broken.
fn lines() -> impl Strategy<Value = String> {
    let line = (0..3_usize, any::<bool>(), word(KEYS), prop_oneof![6 => word(PLAIN), 1 => word(ODD)]);
    let written = line.prop_map(|(depth, item, key, value)| {
        format!("{}{}{key}: {value}\n", "  ".repeat(depth), if item { "- " } else { "" })
    });
    let line = prop_oneof![20 => written, 1 => "\\PC{0,12}\n", 1 => "[ \t\n:,{}#&*!|>'\"%@`-]{0,8}"];
    prop::collection::vec(line, 0..10).prop_map(|lines| lines.concat())
}

/// A tree of keys and values, with up to two characters changed.
fn tree() -> impl Strategy<Value = String> {
    let tree = word(PLAIN).prop_map(str::to_owned).prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map(word(KEYS), inner, 0..5).prop_map(|map| {
                let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            }),
        ]
    });
    let keys = prop::collection::btree_map(word(KEYS), tree, 0..8).prop_map(|map| {
        let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        lines.concat()
    });
    let edits =
        prop::collection::vec((any::<Index>(), select(vec!['{', ']', ':', '\n', '"', '\0', ' '])), 0..3);
    (keys, edits).prop_map(|(text, edits)| {
        let mut text: Vec<char> = text.chars().collect();
        for (at, c) in edits {
            if !text.is_empty() {
                let at = at.index(text.len());
                text[at] = c;
            }
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn nothing_panics_on_text_that_is_nearly_yaml(
        yaml in prop_oneof![lines(), tree()],
        (open, close) in select(vec![("---\n", "---\n"), ("---\n", "---\nText\n"), ("\u{feff}---\r\n", "---"), ("", "")]),
        name in select(&NAMES[..]),
    ) {
        let (open, close) = if name.ends_with(".yaml") { ("", "") } else { (open, close) };
        let memory = Memory::new().with(name, format!("{open}{yaml}{close}"));
        let round = Round::new(&memory, &Everything, Options::default());
        let spot = Spot::new(name).expect("a path in the workspace");
        let _ = check::check(&round, &spot, Named::Explicitly);
        // What is a tree can be written down again.
        if let (Some(tree), []) = (yaml::parse(&yaml).0, &*yaml::parse(&yaml).1) {
            let (read, problems) = yaml::parse(&emit(&tree));
            prop_assert!(problems.is_empty(), "{:?}", problems);
            prop_assert_eq!(read.map(|read| read.to_exact_json()), Some(tree.to_exact_json()));
        }
    }
}
