//! The judged documents.

use quorate_manifest::doctype::Doctype;
use quorate_manifest::json_schema::PathStep;
use serde_json::{Value, json};

use super::change::{changed, changes, places};
use super::deviations::deviating;
use super::generator::Generator;
use super::judge::validator;
use super::rng::Rng;
use super::text::without_nulls;

/// The seed of the generator.
const SEED: u64 = 24;
/// The maximum number of attempts to generate a valid document.
const TRIES: usize = 2_000;

/// A bare and a full document of a schema, with every change at every place. Most changes of the full document keep
/// only the required keys beside the changed one, so that failures are short.
pub(crate) fn systematic(schema: &Value) -> Vec<Value> {
    let whole = validator(schema);
    let mut walk = Generator { root: schema, present: 0, items: 1, chance: Rng::new(SEED) };
    let mut fitting = |present: &[usize]| {
        let found = present.iter().find_map(|present| {
            walk.present = *present;
            (0..TRIES).map(|_| without_nulls(&walk.document())).find(|document| whole.is_valid(document))
        });
        found.expect("one of so many documents fits")
    };
    let (bare, full) = (fitting(&[0, 15]), fitting(&[100]));
    let mut chance = Rng::new(SEED + 1);
    let mut found = vec![json!(null), json!([]), json!("word"), json!({})];
    for path in places(&bare) {
        found.extend(
            changes(schema, &bare, &path, &mut chance).iter().map(|change| changed(&bare, &path, change)),
        );
    }
    for path in places(&full) {
        let mut small = bare.clone();
        if let (Some(PathStep::Key(key)), Some(small)) = (path.first(), small.as_object_mut()) {
            small.insert(key.clone(), full[key].clone());
        }
        let small = if path.is_empty() || !whole.is_valid(&small) { &full } else { &small };
        for (at, change) in changes(schema, &full, &path, &mut chance).iter().enumerate() {
            found.push(changed(if at % 6 == 0 { &full } else { small }, &path, change));
        }
    }
    found.extend([bare, full]);
    found
}

/// A number of random documents with up to three changes.
pub(crate) fn by_chance(schema: &Value, doctype: Doctype, count: usize) -> Vec<Value> {
    let mut walk = Generator { root: schema, present: 0, items: 1, chance: Rng::new(SEED + 2) };
    let mut chance = Rng::new(SEED + 3);
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
