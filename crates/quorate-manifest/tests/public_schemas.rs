//! M4: we accept and reject as the public JSON Schemas do, with a closed list of deviations. Thousands of manifests are
//! made from each schema, fitting and not, and judged by us and by a full validator. The public schemas and examples
//! are data that does not come with the project: `QUORATE_CONFORMANCE_DIR` says where they lie.

#![expect(clippy::disallowed_methods, reason = "the public schemas and examples are files")]

#[path = "public_schemas/chance.rs"]
mod chance;
#[path = "public_schemas/change.rs"]
mod change;
#[path = "public_schemas/deviations.rs"]
mod deviations;
#[path = "public_schemas/documents.rs"]
mod documents;
#[path = "public_schemas/judge.rs"]
mod judge;
#[path = "public_schemas/mutants.rs"]
mod mutants;
#[path = "public_schemas/nobody.rs"]
mod nobody;
#[path = "public_schemas/part.rs"]
mod part;
#[path = "public_schemas/spelling.rs"]
mod spelling;
#[path = "public_schemas/text.rs"]
mod text;
#[path = "public_schemas/typed.rs"]
mod typed;
#[path = "public_schemas/walk.rs"]
mod walk;

use std::path::{Path, PathBuf};

use documents::documents;
use judge::Judge;
use quorate_manifest::doctype::Doctype;
use serde_json::Value;

/// How many documents of each doctype are judged at least.
const AT_LEAST: usize = 4_000;

/// The public data; `None`, saying so, where nobody says where it lies.
fn public() -> Option<PathBuf> {
    let found = std::env::var_os("QUORATE_CONFORMANCE_DIR").map(PathBuf::from);
    if found.is_none() {
        eprintln!("SKIPPED: QUORATE_CONFORMANCE_DIR does not say where the public schemas lie");
    }
    found
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judged_as_in_public(doctype: Doctype, file: &str) {
    let Some(dir) = public() else { return };
    let schema = json(&dir.join("schemas").join(file));
    let mut judge = Judge::new(doctype, Some(&schema));
    documents(&schema, doctype).iter().for_each(|document| judge.judge(document));
    judge.conclude(AT_LEAST);
}

#[test]
fn assemblies_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Assembly, "ASSEMBLY.schema.json");
}

#[test]
fn personas_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Persona, "PERSONA.schema.json");
}

#[test]
fn playbooks_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Playbook, "PLAYBOOK.schema.json");
}

#[test]
fn runtimes_are_judged_as_by_the_public_schema() {
    // M4.
    judged_as_in_public(Doctype::Runtime, "MultiAgentRuntime.schema.json");
}

#[test]
fn scratch_mutants() {
    let Some(dir) = public() else { return };
    for (doctype, file) in [(Doctype::Assembly, "ASSEMBLY"), (Doctype::Persona, "PERSONA"), (Doctype::Playbook, "PLAYBOOK"), (Doctype::Runtime, "MultiAgentRuntime")] {
        let schema = json(&dir.join("schemas").join(format!("{file}.schema.json")));
        let at = std::time::Instant::now();
        let documents: Vec<Value> = documents(&schema, doctype).iter().map(|one| deviations::undone(doctype, one).0).collect();
        println!("{:?} {}", at.elapsed(), documents.len());
        let whole = judge::validator(&schema);
        let verdicts: Vec<bool> = documents.iter().map(|one| whole.is_valid(one)).collect();
        println!("{:?}", at.elapsed());
        let mutants = mutants::mutants(&schema);
        let mut alive = 0;
        for (what, mutant) in &mutants {
            let mutant = judge::validator(mutant);
            if !documents.iter().zip(&verdicts).any(|(one, verdict)| mutant.is_valid(one) != *verdict) {
                println!("  survives: {what}");
                alive += 1;
            }
        }
        println!("{doctype:?} {} mutants, {alive} alive {:?}", mutants.len(), at.elapsed());
    }
}
