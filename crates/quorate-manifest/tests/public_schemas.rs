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
#[path = "public_schemas/judge.rs"]
mod judge;
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

use chance::Chance;
use change::{changed, changes, places};
use deviations::deviating;
use judge::Judge;
use quorate_manifest::doctype::Doctype;
use serde_json::Value;
use text::without_nulls;
use walk::Walk;

/// Where the documents begin.
const SEED: u64 = 24;
/// How many documents chance gives of each doctype.
const BY_CHANCE: usize = 2_000;
/// How many documents of each doctype are judged at least.
const AT_LEAST: usize = 4_000;
/// How often a document that fits is looked for.
const TRIES: usize = 500;

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

/// Judges documents made from a schema: a bare and a full one with every change at every place, and then such as
/// chance gives.
fn judge(judge: &mut Judge, schema: &Value, doctype: Doctype) {
    let mut walk = Walk { root: schema, present: 0, items: 2, chance: Chance::new(SEED) };
    let mut chance = Chance::new(SEED + 1);
    for present in [[0, 15], [100, 100]] {
        let mut fitting = present.iter().flat_map(|present| {
            walk.present = *present;
            let made: Vec<Value> = (0..TRIES).map(|_| without_nulls(&walk.document())).collect();
            made.into_iter().find(|document| judge.fits(document))
        });
        let document = fitting.next().expect("one of so many documents fits");
        judge.judge(&document);
        for path in places(&document) {
            for change in changes(schema, &document, &path, &mut chance) {
                judge.judge(&changed(&document, &path, &change));
            }
        }
    }
    walk.items = 33;
    for _ in 0..BY_CHANCE {
        walk.present = *chance.pick(&[5, 20, 50, 80]);
        let mut document = walk.document();
        if chance.percent(30) {
            document = deviating(doctype, &document, &mut chance);
        }
        for _ in 0..chance.below(4) {
            let places = places(&document);
            let path = chance.pick(&places);
            let changes = changes(schema, &document, path, &mut chance);
            if !changes.is_empty() {
                document = changed(&document, path, chance.pick(&changes));
            }
        }
        judge.judge(&document);
    }
}

fn judged_as_in_public(doctype: Doctype, file: &str) {
    let Some(dir) = public() else { return };
    let schema = json(&dir.join("schemas").join(file));
    let mut court = Judge::new(doctype, Some(&schema));
    judge(&mut court, &schema, doctype);
    court.conclude(AT_LEAST);
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
