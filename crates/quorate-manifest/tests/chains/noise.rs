//! Text that is nearly YAML: whatever is in a file, checking it comes to an end and panics nowhere.

use proptest::prelude::*;
use proptest::sample::select;
use quorate_manifest::check::{self, Named};
use quorate_manifest::round::{Options, Round};
use quorate_manifest::tree::{emit, yaml};
use quorate_manifest::workspace::{Memory, Spot};

use crate::config;
use crate::everything::Everything;

const NAMES: [&str; 6] =
    ["a/ASSEMBLY.md", "a/PERSONA.md", "a/OPERATOR.md", "playbook.md", "swarm.yaml", "tenants/t/ASSEMBLY.md"];

const KEYS: [&str; 32] = [
    "schema",
    "name",
    "title",
    "description",
    "version",
    "extends",
    "appliesTo",
    "mode",
    "members",
    "id",
    "persona",
    "role",
    "weight",
    "parent",
    "synthesis",
    "rules",
    "riskLevels",
    "range",
    "params",
    "lockedTraits",
    "matchMode",
    "audit",
    "overlays",
    "enabled",
    "defaultTtl",
    "metadata",
    "targets",
    "selector",
    "history",
    "at",
    "participants",
    "ttl",
];

const VALUES: [&str; 40] = [
    "assembly.workspace/v1",
    "persona/v1",
    "playbooks/v1",
    "agentruntimes/v1",
    "../ASSEMBLY.md",
    "../a/ASSEMBLY.md",
    "../../../x/ASSEMBLY.md",
    "ws://personas/x",
    "ws://personas/../x",
    "peer",
    "regex",
    "semantic",
    "hierarchy",
    "1.0.0",
    "0.5",
    "1e400",
    "-0x1",
    "99999999999999999999",
    ".inf",
    "~",
    "",
    "true",
    "yes",
    "[]",
    "{}",
    "[",
    "}",
    "*a",
    "&a b",
    "!!str x",
    "<<: {a: 1}",
    "\"\\u0000\"",
    "'",
    "|",
    ">-",
    "# c",
    "---",
    "P14D",
    "2026-04-21T09:00:00Z",
    "ü\u{301}\u{202e}",
];

/// Lines of keys and values at any depth, some of them broken.
fn noise() -> impl Strategy<Value = String> {
    let line = (0..4_usize, any::<bool>(), select(&KEYS[..]), select(&VALUES[..]));
    let written = line.prop_map(|(depth, item, key, value)| {
        format!("{}{}{key}: {value}\n", "  ".repeat(depth), if item { "- " } else { "" })
    });
    let junk = prop_oneof![20 => written, 1 => "\\PC{0,12}\n", 1 => "[ \t\n:,\\-\\[\\]{}#&*!|>'\"%@`]{0,8}"];
    (
        select(&["---\n", "---\n", "", "\u{feff}---\r\n"][..]),
        prop::collection::vec(junk, 0..14),
        select(&["---\n", "---", ""][..]),
    )
        .prop_map(|(open, lines, close)| format!("{open}{}{close}", lines.concat()))
}

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn nothing_panics_on_text_that_is_nearly_yaml(text in noise(), name in select(&NAMES[..])) {
        let memory = Memory::new().with(name, text.clone()).with("a/ASSEMBLY.md", text.clone());
        let round = Round::new(&memory, &Everything, Options::default());
        for path in [name, "a/ASSEMBLY.md"] {
            let spot = Spot::new(path).expect("a path in the workspace");
            let _ = check::check(&round, &spot, Named::Explicitly);
        }
        // What is a tree at all can be written down again.
        if let (Some(tree), problems) = yaml::parse(&text)
            && problems.is_empty()
        {
            let (read, problems) = yaml::parse(&emit(&tree));
            prop_assert!(problems.is_empty(), "{:?}", problems);
            prop_assert_eq!(read.map(|read| read.to_exact_json()), Some(tree.to_exact_json()));
        }
    }
}
