//! Answer schemas, compiled once: the text that members are shown, and the validator of their answers.
//! Also words the complaints about an answer that does not fit: in the terms of JSON Schema, which models know best.

use std::sync::{Arc, LazyLock};

use quorate_manifest::json_schema::{Bound, CompiledSchema, ErrorKind, SchemaError};
use quorate_protocol::Json;
use quorate_protocol::answers::Schema;

pub(crate) struct PreparedSchema {
    /// The schema that an answer must fit.
    pub(crate) validator: CompiledSchema,
    /// The JSON Schema that a member is shown, and that its CLI is given.
    pub(crate) schema: Arc<Json>,
    /// The JSON Schema as the prompt shows it.
    pub(crate) text: String,
}

/// A form, made ready.
pub(crate) fn compiled(schema: Schema) -> &'static PreparedSchema {
    static ALL: LazyLock<Vec<(Schema, PreparedSchema)>> =
        LazyLock::new(|| Schema::ALL.map(|schema| (schema, compile(schema))).into());
    let found = ALL.iter().find(|(known, _)| *known == schema);
    &found.expect("every form is among all forms").1
}

fn compile(schema: Schema) -> PreparedSchema {
    let shown = shown_schema(schema).json_schema();
    PreparedSchema {
        validator: CompiledSchema::parse(&schema.json_schema())
            .expect("the built-in answer schemas use no other keywords than are held"),
        text: serde_json::to_string_pretty(&shown).expect("a JSON value can be written"),
        schema: Arc::new(shown),
    }
}

/// The form that a member is shown. Both rounds of a council show the second's, so that their prompts begin the same and
/// the second round finds the first one's in the cache (X2); the first round accepts an answer without `irreducible`.
fn shown_schema(schema: Schema) -> Schema {
    match schema {
        Schema::FirstAnswer => Schema::SecondAnswer,
        other => other,
    }
}

/// An error's place, as a JSON pointer, and its description.
pub(crate) fn describe(answer: &Json, misfit: &SchemaError) -> (String, String) {
    let place = misfit.pointer().to_string();
    let value = answer.pointer(&place).unwrap_or(&Json::Null);
    let what = message(value, misfit);
    (place, what)
}

/// The complaint about a list with too many entries.
pub(crate) fn too_many(items: usize, most: usize) -> String {
    format!("it has {items} items, and at most {most} are allowed; keep those that matter most")
}

fn message(value: &Json, misfit: &SchemaError) -> String {
    match &misfit.kind {
        ErrorKind::Type(wanted) => {
            let types: Vec<_> = wanted.types.iter().map(|one| format!("\"{}\"", one.as_str())).collect();
            format!("{value} is not of type {}", types.join(" or "))
        }
        ErrorKind::NotInEnum(values) => {
            let values: Vec<_> = values.iter().map(Json::to_string).collect();
            format!("{value} is not one of {}", values.join(", "))
        }
        ErrorKind::MissingKey(key) => format!("\"{key}\" is a required property"),
        ErrorKind::UnknownKey { key, .. } => format!("\"{key}\" is not expected here"),
        ErrorKind::OutOfBounds(bound) => match bound {
            Bound::Least(least) => format!("{value} is less than the minimum of {least}"),
            Bound::Most(most) => format!("{value} is greater than the maximum of {most}"),
            Bound::MoreThan(more) => format!("{value} is not greater than {more}"),
            Bound::ShortestText(_) | Bound::FewestItems(_) | Bound::FewestKeys(_) => {
                format!("{value} is too short")
            }
            Bound::LongestText(_) => format!("{value} is too long"),
            Bound::MostItems(most) => too_many(value.as_array().map_or(0, Vec::len), *most),
        },
        ErrorKind::Pattern { pattern, .. } => format!("{value} does not match \"{pattern}\""),
        ErrorKind::Duplicate { first, second } => format!("items {first} and {second} are the same"),
        ErrorKind::NoMatch(ways) => {
            let ways: Vec<String> = ways.iter().map(|way| message(value, way)).collect();
            format!("it has to be otherwise in one of these: {}", ways.join("; or "))
        }
        ErrorKind::MultipleMatches | ErrorKind::Forbidden => format!("{value} is not allowed here"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether a value fits, which a full validator has to say as well; and what fits can be read.
    fn fits(schema: Schema, value: &Json) -> bool {
        let fits = compiled(schema).validator.is_valid(value);
        let oracle = jsonschema::draft202012::new(&schema.json_schema()).expect("a JSON Schema");
        assert_eq!(fits, oracle.is_valid(value), "{schema:?}: {value}");
        assert!(!fits || schema.accepts(value), "{schema:?}: {value}");
        fits
    }

    #[test]
    fn both_rounds_of_a_council_show_one_form() {
        // X2
        let [first, second] = [Schema::FirstAnswer, Schema::SecondAnswer].map(compiled);
        assert_eq!((&first.text, &first.schema), (&second.text, &second.schema));
        assert!(fits(Schema::FirstAnswer, &json!({"would_block": false})));
        assert!(!fits(Schema::SecondAnswer, &json!({"would_block": false})));
        // An answer that fits the schema in the prompt also fits the validated schema.
        assert!(fits(Schema::FirstAnswer, &json!({"would_block": false, "irreducible": false})));
    }

    #[test]
    fn deltas_are_held_item_by_item() {
        // X4
        let add = json!({"op": "add", "slug": "name-the-base", "title": "t", "body": "b"});
        let revise = json!({"op": "revise", "slug": "s1", "body": "b", "summary": "s"});
        let one = |item: Json| fits(Schema::Deltas, &json!({"deltas": [item]}));
        let with = |base: &Json, key: &str, value: Json| {
            let mut item = base.clone();
            item[key] = value;
            one(item)
        };
        assert!(fits(Schema::Deltas, &json!({"deltas": [], "notes": "nothing yet"})));
        assert!(one(add.clone()) && one(revise.clone()));
        for (key, value) in [
            (
                "evidence",
                json!([{"kind": "run", "ref": "r1", "note": null}, {"kind": "human", "ref": "x", "by": 1}]),
            ),
            ("evidence", json!([])),
            ("targets", json!([{"kind": "role", "ref": "companion"}])),
            ("selector", json!({"role": ["companion"]})),
            ("priority", json!(100)),
            ("lock_check", json!(["warmth"])),
            ("ttl", json!("P30D")),
            ("supersedes", json!(["other"])),
            ("tags", json!([])),
            ("metadata", json!({"house": null})),
            ("odd", json!(3)),
        ] {
            assert!(with(&add, key, value), "{key}");
            assert!(key == "odd" || with(&add, key, Json::Null), "{key}");
        }
        for (key, value) in [
            ("op", json!("remove")),
            ("op", json!("revise")),
            ("op", Json::Null),
            ("slug", json!("Not-Kebab")),
            ("slug", json!("a")),
            ("slug", json!("a".repeat(81))),
            ("title", json!(" ")),
            ("title", json!("t".repeat(201))),
            ("body", json!("\n")),
            ("body", Json::Null),
            ("priority", json!(101)),
            ("priority", json!(1.5)),
            ("targets", json!([])),
            ("targets", json!([{"kind": "planet", "ref": "x"}])),
            ("selector", json!("role")),
            ("evidence", json!([{"kind": "run"}])),
            ("evidence", json!([{"kind": "rumour", "ref": "x"}])),
            ("tags", json!("post")),
        ] {
            assert!(!with(&add, key, value.clone()), "{key}: {value}");
        }
        assert!(!with(&revise, "summary", Json::Null) && !with(&revise, "op", json!("add")));
        // The constraints of one type do not apply to another.
        assert!(with(&revise, "title", json!("")) && with(&add, "summary", json!(3)));
        for value in [json!({}), json!({"deltas": null}), json!({"deltas": [null]}), json!([])] {
            assert!(!fits(Schema::Deltas, &value), "{value}");
        }
    }

    #[test]
    fn a_judgement_is_one_of_three_words() {
        // X4
        let judged = |verdict: Json, traits: Json, reason: Json| {
            fits(Schema::Judgement, &json!({"verdict": verdict, "traits": traits, "reason": reason}))
        };
        for verdict in ["keeps", "betrays", "unsure"] {
            assert!(judged(json!(verdict), json!(["warmth"]), json!("r")));
            assert!(judged(json!(verdict), Json::Null, json!("r")));
        }
        assert!(
            !judged(json!("Keeps"), json!([]), json!("r")) && !judged(json!(true), json!([]), json!("r"))
        );
        assert!(!judged(json!("keeps"), json!("warmth"), json!("r")));
        assert!(
            !judged(json!("keeps"), json!([]), json!("")) && !judged(json!("keeps"), json!([]), Json::Null)
        );
    }
}
