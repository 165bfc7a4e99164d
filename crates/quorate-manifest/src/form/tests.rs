use serde_json::json;

use super::*;

#[test]
fn a_keyword_that_is_not_held_is_refused() {
    assert!(Form::read(&json!({"type": "string", "contentEncoding": "base64"})).is_none());
    assert!(Form::read(&json!({"properties": {"a": {"prefixItems": []}}})).is_none());
    assert!(Form::read(&json!({"type": "text"})).is_none());
}

#[test]
fn faults_say_where() {
    let form = Form::read(&json!({
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
        form.misfits(&value).iter().map(|misfit| format!("{} {:?}", misfit.pointer(), misfit.fault)).collect()
    };
    assert_eq!(faults(json!({"a": [1, 2]})), Vec::<String>::new());
    assert_eq!(faults(json!({"a": [1, 0]})), ["/a/1 Bound(Least(1.0))"]);
    assert_eq!(faults(json!({"a": [1, 1.0]})), ["/a Repeated { first: 0, second: 1 }"]);
    assert_eq!(faults(json!({"a": [], "b": []})), ["/b Bound(FewestItems(1))"]);
    assert_eq!(
        faults(json!({"c": 1})),
        [" Missing(\"a\")", " Unknown { key: \"c\", known: [\"a\", \"b\"] }"]
    );
    assert_eq!(faults(json!([])), [" Type(Wanted { types: [Object], pattern: None, keys: [\"a\"] })"]);
}
