//! M4: Quorate accepts and rejects like the public JSON Schemas, with a closed list of deviations. The tests generate thousands
//! of valid and invalid manifests from each schema, and compare Quorate with a full validator. The public schemas and examples
//! are not part of the project: `QUORATE_CONFORMANCE_DIR` names their folder.

mod change;
mod deviations;
mod documents;
mod examples;
mod generator;
mod judge;
mod patterns;
mod rng;
mod spelling;
mod subschema;
mod text;
mod typed;

use std::path::{Path, PathBuf};

use deviations::reverted_text;
use documents::{by_chance, systematic};
use judge::{Judge, validator, with_plain_digits};
use patterns::{around, follow, patterned};
use quorate_manifest::doctype::{Doctype, schema};
use quorate_manifest::json_schema::CompiledSchema;
use rng::Rng;
use serde_json::Value;

/// The doctypes that have a public schema, and the schema's files.
const PUBLIC: [(Doctype, &str); 4] = [
    (Doctype::Assembly, "ASSEMBLY.schema.json"),
    (Doctype::Persona, "PERSONA.schema.json"),
    (Doctype::Playbook, "PLAYBOOK.schema.json"),
    (Doctype::Runtime, "MultiAgentRuntime.schema.json"),
];
/// The minimum number of judged documents of a doctype.
const AT_LEAST: usize = 4_000;
/// The minimum number of random documents among them.
const BY_CHANCE: usize = 1_000;

/// The public data; `None`, with a note on stderr, if its location is not configured.
fn public() -> Option<PathBuf> {
    let found = std::env::var_os("QUORATE_CONFORMANCE_DIR").map(PathBuf::from);
    if found.is_none() {
        eprintln!("SKIPPED: QUORATE_CONFORMANCE_DIR does not say where the public schemas lie");
    }
    found
}

fn public_schema(dir: &Path, doctype: Doctype) -> Value {
    let (_, file) =
        PUBLIC.into_iter().find(|(known, _)| *known == doctype).expect("a doctype with a public schema");
    let path = dir.join("schemas").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judged_as_in_public(doctype: Doctype) {
    let Some(dir) = public() else { return };
    let schema = public_schema(&dir, doctype);
    let mut judge = Judge::new(doctype, Some(&schema));
    systematic(&schema).iter().for_each(|document| judge.judge(document));
    let more = AT_LEAST.saturating_sub(judge.judged()).max(BY_CHANCE);
    by_chance(&schema, doctype, more).iter().for_each(|document| judge.judge(document));
    judge.conclude();
}

#[test]
fn assemblies_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Assembly);
}

#[test]
fn personas_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Persona);
}

#[test]
fn playbooks_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Playbook);
}

#[test]
fn runtimes_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Runtime);
}

#[test]
fn patterns_match_as_the_public_ones() {
    // M4.
    let Some(dir) = public() else { return };
    let mut chance = Rng::new(12);
    let mut judged = 0;
    for (doctype, _) in PUBLIC {
        let (public, ours) =
            (public_schema(&dir, doctype), schema(doctype).expect("a doctype with a schema"));
        for (hops, part) in patterned(&public) {
            let own = follow(&ours, &hops).unwrap_or_else(|| panic!("{doctype:?} {hops:?}: nothing of ours"));
            let form = CompiledSchema::parse(own).expect("a part of a schema that is held");
            let validator = validator(&with_plain_digits(part));
            for text in around(part["pattern"].as_str().expect("a pattern"), &mut chance) {
                let accepted = form.is_valid(&Value::from(text.as_str()));
                let undone = reverted_text(doctype, &hops, &text);
                assert_eq!(accepted, validator.is_valid(&undone), "{doctype:?} {hops:?}: {text:?}");
                judged += 1;
            }
        }
    }
    println!("{judged} texts");
    assert!(judged > 100_000, "only {judged} texts");
}

#[test]
fn the_schemas_that_we_publish_are_schemas_and_say_what_we_do() {
    // M4.
    for doctype in Doctype::ALL {
        let Some(schema) = schema(doctype) else { continue };
        if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
            panic!("{}: {} {error}", doctype.as_str(), error.instance_path());
        }
        let mut judge = Judge::new(doctype, None);
        if PUBLIC.iter().all(|(known, _)| *known != doctype) {
            systematic(&schema).iter().for_each(|document| judge.judge(document));
        }
        by_chance(&schema, doctype, 300).iter().for_each(|document| judge.judge(document));
        judge.agree();
        assert!(judge.accepted > 30 && judge.refused > 30, "{}: too much alike", doctype.as_str());
    }
}

#[test]
fn the_public_examples_fit() {
    // M4.
    let Some(dir) = public() else { return };
    let folders = ["aip-24", "aip-25", "aip-12", "aip-48"];
    for ((doctype, _), folder) in PUBLIC.into_iter().zip(folders) {
        let mut judge = Judge::new(doctype, Some(&public_schema(&dir, doctype)));
        let found = examples::read(&dir.join("examples").join(folder));
        assert!(found.len() >= 5, "{folder}: only {} examples", found.len());
        for example in found {
            judge.judge(&example.manifest(doctype));
        }
        judge.agree();
        assert_eq!(judge.refused, 0, "{folder}");
    }
}
