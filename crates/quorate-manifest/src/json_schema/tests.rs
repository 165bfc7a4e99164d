//! Schemas read, and what keeps values from fitting them.

use serde_json::json;

use super::*;

#[test]
fn a_keyword_that_is_not_held_is_refused() {
    assert!(CompiledSchema::parse(&json!({"type": "string", "contentEncoding": "base64"})).is_none());
    assert!(CompiledSchema::parse(&json!({"properties": {"a": {"prefixItems": []}}})).is_none());
    assert!(CompiledSchema::parse(&json!({"type": "text"})).is_none());
}

#[test]
fn faults_say_where() {
    let form = CompiledSchema::parse(&json!({
        "type": "object",
        "required": ["a"],
        "additionalProperties": false,
        "properties": {
            "a": {"type": "array", "uniqueItems": true, "items": {"type": "integer", "minimum": 1}},
            "b": {"oneOf": [{"type": "string", "const": "*"}, {"type": "array", "minItems": 1}]}
        }
    }))
    .expect("a schema");
    let faults = |value: Value| -> Vec<String> {
        form.errors(&value).iter().map(|misfit| format!("{} {:?}", misfit.pointer(), misfit.kind)).collect()
    };
    assert_eq!(faults(json!({"a": [1, 2]})), Vec::<String>::new());
    assert_eq!(faults(json!({"a": [1, 0]})), ["/a/1 OutOfBounds(Least(1.0))"]);
    assert_eq!(faults(json!({"a": [1, 1.0]})), ["/a Duplicate { first: 0, second: 1 }"]);
    assert_eq!(faults(json!({"a": [], "b": []})), ["/b OutOfBounds(FewestItems(1))"]);
    assert_eq!(
        faults(json!({"c": 1})),
        [" MissingKey(\"a\")", " UnknownKey { key: \"c\", known: [\"a\", \"b\"] }"]
    );
    assert_eq!(faults(json!([])), [" Type(Expected { types: [Object], pattern: None, keys: [\"a\"] })"]);
}

#[test]
fn the_same_is_the_same_number_or_text() {
    let form = CompiledSchema::parse(&json!({"uniqueItems": true})).expect("a schema");
    for (items, fits) in [
        (json!([1, 1.0]), false),
        (json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]), true),
        (json!(["a", "b", "a"]), false),
        (json!(["1", 1]), true),
        (json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]), false),
    ] {
        assert_eq!(form.is_valid(&items), fits, "{items}");
    }
}

#[test]
fn what_is_said_of_several_ways_is_what_was_meant() {
    let form = CompiledSchema::parse(&json!({"properties": {
        "word": {"anyOf": [{"oneOf": [{"const": "a", "type": "string"}, {"const": "b", "type": "string"}]}, {"type": "null"}]},
        "whom": {"anyOf": [{"oneOf": [{"const": "*", "type": "string"}, {"type": "array", "minItems": 1}]}, {"type": "null"}]},
        "text": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1}]}
    }}))
    .expect("a schema");
    let faults = |value: Value| -> Vec<ErrorKind> {
        form.errors(&value).into_iter().map(|error| error.kind).collect()
    };
    for word in [json!("c"), json!(3), json!(["a"])] {
        assert_eq!(faults(json!({"word": word})), [ErrorKind::NotInEnum(vec![json!("a"), json!("b")])]);
    }
    assert!(matches!(faults(json!({"whom": "c"})).as_slice(), [ErrorKind::NoMatch(ways)] if ways.len() == 2));
    assert_eq!(faults(json!({"whom": []})), [ErrorKind::OutOfBounds(Bound::FewestItems(1))]);
    assert_eq!(faults(json!({"text": ""})), [ErrorKind::OutOfBounds(Bound::ShortestText(1))]);
    assert!(matches!(faults(json!({"text": 1})).as_slice(), [ErrorKind::NoMatch(ways)] if ways.len() == 2));
}
