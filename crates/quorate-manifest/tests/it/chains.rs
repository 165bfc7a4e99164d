//! Properties of every `extends` chain, tested on random chains.

mod capabilities;
mod generated;
mod noise;
mod oracle;
mod trees;

use capabilities::AllCapabilities;
use generated::{bytes, chains};
use proptest::prelude::*;
use quorate_manifest::Loaded;
use quorate_manifest::assembly::Signing;
use quorate_manifest::assembly::load::Retention;
use quorate_manifest::assembly::{self, MatchMode, ResolvedAssembly};
use quorate_manifest::loader::{Loader, OpenResult, Options, Refs};
use quorate_manifest::tree::{Node, emit, yaml};
use quorate_manifest::workspace::{Memory, WorkspacePath};
use serde_json::Value;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The path of the document at a depth below the root.
fn path(at: usize) -> String {
    format!("{}ASSEMBLY.md", "a/".repeat(at))
}

fn workspace(documents: &[Value]) -> Memory {
    documents.iter().enumerate().fold(Memory::new(), |memory, (at, document)| {
        memory.with(&path(at), bytes(document, at, (at > 0).then_some("../ASSEMBLY.md")))
    })
}

/// The result of the document at a depth below the root.
fn load(memory: &Memory, at: usize) -> Loaded<ResolvedAssembly> {
    let options = Options { refs: Refs::ShapeOnly, ..Options::default() };
    let loader = Loader::new(memory, &AllCapabilities, options);
    let location = WorkspacePath::new(&path(at)).expect("a path in the workspace");
    match loader.open(&location) {
        OpenResult::Document(document) => assembly::load(&loader, &document),
        other => panic!("{}: {other:?}", path(at)),
    }
}

/// A value without the keys that differ in each document.
fn shared(mut value: Value) -> Value {
    let keys = value.as_object_mut().expect("a manifest is a mapping");
    for key in ["schema", "name", "title", "description", "version", "extends"] {
        keys.remove(key);
    }
    value
}

proptest! {
    #![proptest_config(config(300))]

    // M6: the merge table, compared with a naive implementation.
    #[test]
    fn a_chain_is_merged_as_its_table_says(documents in chains()) {
        let memory = workspace(&documents);
        let loaded = load(&memory, documents.len() - 1);
        prop_assert_eq!(loaded.value.is_none(), oracle::relaxes(&documents), "{:?}", loaded.report);
        if let Some(resolved) = loaded.value {
            let merged = shared(resolved.chain.merged.to_json());
            prop_assert_eq!(merged, oracle::merged(&documents));
        }
    }

    // M6: a chain of many documents equals a chain of two whose root is the merge of the others.
    #[test]
    fn merging_at_once_is_merging_step_by_step(documents in chains()) {
        let memory = workspace(&documents);
        let last = documents.len() - 1;
        let (Some(whole), true) = (load(&memory, last).value, last > 0) else { return Ok(()) };
        let above = load(&memory, last - 1).value.expect("an ancestor of what is resolved is resolved");
        let above = shared(above.chain.merged.to_json());
        let stepped = load(&workspace(&[above, documents[last].clone()]), 1).value;
        let stepped = stepped.expect("what is resolved at once is resolved in steps");
        prop_assert_eq!(shared(stepped.chain.merged.to_json()), shared(whole.chain.merged.to_json()));
        prop_assert_eq!(stepped.members.len(), whole.members.len());
        prop_assert_eq!(stepped.audit, whole.audit);
        prop_assert_eq!(stepped.match_mode, whole.match_mode);
        let texts = |resolved: &ResolvedAssembly| {
            resolved.locked_traits.iter().map(|held| held.locked.text.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(texts(&stepped), texts(&whole));
    }

    // M7, M8, M9: no resolved setting is weaker than that of an ancestor.
    #[test]
    fn a_floor_only_rises(documents in chains()) {
        let memory = workspace(&documents);
        let resolved: Vec<Option<ResolvedAssembly>> = (0..documents.len()).map(|at| load(&memory, at).value).collect();
        for (at, one) in resolved.iter().enumerate() {
            let Some(one) = one else { continue };
            for above in &resolved[..at] {
                let above = above.as_ref().expect("an ancestor of what is resolved is resolved");
                prop_assert_eq!(one.mode, above.mode);
                prop_assert!(one.match_mode >= above.match_mode);
                prop_assert!(above.audit.consultations != Retention::Full || one.audit.consultations == Retention::Full);
                prop_assert!(above.audit.overlays != Retention::Full || one.audit.overlays == Retention::Full);
                prop_assert!(above.audit.signing != Signing::Required || one.audit.signing == Signing::Required);
                prop_assert!(above.locked_traits.iter().all(|held| one.locked_traits.contains(held)));
            }
            // A trait is declared under the strictest mode of its document and its ancestors.
            for held in &one.locked_traits {
                let strictest = resolved[held.document].as_ref().map_or(MatchMode::Substring, |document| document.match_mode);
                prop_assert_eq!(held.locked.declared, strictest);
            }
        }
    }

    // M6: every value names its document.
    #[test]
    fn every_value_knows_its_layer(documents in chains()) {
        let Some(resolved) = load(&workspace(&documents), documents.len() - 1).value else { return Ok(()) };
        let merged = &resolved.chain.merged;
        let documents: Vec<Value> = documents.iter().map(oracle::without_nulls).collect();
        let last = |pointer: &str| documents.iter().rposition(|document| document.pointer(pointer).is_some());
        for keys in [
            &["mode"][..],
            &["matchMode"],
            &["executor"],
            &["audit", "signing"],
            &["audit", "consultations", "enabled"],
            &["audit", "overlays", "maxActive"],
            &["synthesis", "riskLevels"],
        ] {
            let document = merged.at_path(keys).map(|node| usize::from(node.document));
            prop_assert_eq!(document, last(&format!("/{}", keys.join("/"))), "{:?}", keys);
        }
        for member in merged.key("members").map_or(&[][..], Node::items) {
            let id = member.key("id").map(Node::to_json);
            let entry = |document: &Value| {
                let mut members = document["members"].as_array().into_iter().flatten();
                members.find(|member| Some(&member["id"]) == id.as_ref()).cloned()
            };
            let names = |document: &Value| entry(document).is_some();
            let last = documents.iter().rposition(names).expect("a document names the member");
            for field in ["role", "weight", "timeout_ms", "triggers", "gatherInput"] {
                let document = member.key(field).map(|node| usize::from(node.document));
                let expected = entry(&documents[last]).is_some_and(|entry| entry.get(field).is_some());
                prop_assert_eq!(document, expected.then_some(last), "{} of {:?}", field, id);
            }
        }
        for held in &resolved.locked_traits {
            let has = |document: &Value| {
                document["lockedTraits"].as_array().is_some_and(|traits| traits.iter().any(|text| *text == *held.locked.text))
            };
            prop_assert_eq!(Some(held.document), documents.iter().position(has), "{}", &held.locked.text);
        }
    }

    // M12: parse(serialise(x)) = x.
    #[test]
    fn what_was_merged_reads_back(documents in chains()) {
        let Some(resolved) = load(&workspace(&documents), documents.len() - 1).value else { return Ok(()) };
        let merged = &resolved.chain.merged;
        let text = emit(merged);
        let (read, problems) = yaml::parse(&text);
        prop_assert!(problems.is_empty(), "{text}\n{problems:?}");
        let read = read.expect("a tree without problems");
        prop_assert_eq!(read.to_json(), merged.to_json(), "{}", &text);
        prop_assert_eq!(read.to_exact_json(), merged.to_exact_json(), "{}", &text);
        prop_assert_eq!(emit(&read), text);
    }
}
