//! The documents that are judged.

use quorate_manifest::doctype::Doctype;
use serde_json::{Value, json};

use super::chance::Chance;
use super::change::{changed, changes, places};
use super::deviations::deviating;
use super::judge::validator;
use super::text::without_nulls;
use super::walk::Walk;

/// Where chance begins.
const SEED: u64 = 24;
/// How often a document that fits is looked for.
const TRIES: usize = 500;

/// A bare and a full document of a schema, with every change at every place.
pub(crate) fn systematic(schema: &Value) -> Vec<Value> {
    let whole = validator(schema);
    let mut walk = Walk { root: schema, present: 0, items: 1, chance: Chance::new(SEED) };
    let mut chance = Chance::new(SEED + 1);
    let mut found = vec![json!(null), json!([]), json!("word"), json!({})];
    for present in [[0, 15], [100, 100]] {
        let fitting = present.iter().find_map(|present| {
            walk.present = *present;
            (0..TRIES).map(|_| without_nulls(&walk.document())).find(|document| whole.is_valid(document))
        });
        let document = fitting.expect("one of so many documents fits");
        for path in places(&document) {
            for change in changes(schema, &document, &path, &mut chance) {
                found.push(changed(&document, &path, &change));
            }
        }
        found.push(document);
    }
    found
}

/// So many documents as chance gives them, with up to three changes.
pub(crate) fn by_chance(schema: &Value, doctype: Doctype, count: usize) -> Vec<Value> {
    let mut walk = Walk { root: schema, present: 0, items: 1, chance: Chance::new(SEED + 2) };
    let mut chance = Chance::new(SEED + 3);
    let mut document = || {
        walk.present = *chance.pick(&[5, 20, 50, 80]);
        walk.items = *chance.pick(&[1, 2, 3, 5]);
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
        document
    };
    (0..count).map(|_| document()).collect()
}
