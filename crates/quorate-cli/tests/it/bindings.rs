//! The types of the Python and npm packages, which follow from the published schemas of JSON outputs. The files in
//! `packages/` are what this makes of them; `QUORATE_WRITE_BINDINGS=1` writes them.

mod python;
mod typescript;

use std::path::Path;

use serde_json::{Map, Value};

/// A type of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    /// Any JSON.
    Any,
    /// An object whose keys are not published.
    Object,
    Words(Vec<String>),
    List(Box<Type>),
    Class(String),
    Either(Vec<Type>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    kind: Type,
    is_required: bool,
    about: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    name: String,
    about: String,
    fields: Vec<Field>,
}

/// The outputs with types, the name of each, and what the names of its parts begin with.
const OUTPUTS: [(&str, &str, &str); 4] = [
    ("review", "Review", ""),
    ("convene", "Convening", "Assembly"),
    ("runs", "Runs", ""),
    ("verify", "Verification", "Ledger"),
];

/// All classes; one comes after those that it mentions.
fn classes() -> Vec<Class> {
    let mut found = Vec::new();
    for (output, name, prefix) in OUTPUTS {
        let schema = quorate::schemas::find(output).expect("it is published");
        let mut reader = Reader { schema: &schema, prefix, classes: &mut found };
        reader.class(name, &schema);
    }
    found
}

struct Reader<'s> {
    schema: &'s Value,
    prefix: &'s str,
    classes: &'s mut Vec<Class>,
}

impl Reader<'_> {
    fn class(&mut self, name: &str, schema: &Value) -> Type {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().expect("an object has properties");
        let mut fields: Vec<Field> = Vec::new();
        for (key, value) in properties {
            fields.push(Field {
                name: key.clone(),
                kind: self.kind(key, value),
                is_required: required.contains(&key.as_str()),
                about: about(value),
            });
        }
        let new = Class { name: name.to_owned(), about: about(schema), fields };
        // Two outputs may have the same part: then it is one class.
        let short = name.strip_prefix(self.prefix).unwrap_or(name);
        let same = self.classes.iter().find(|known| known.name == short && known.fields == new.fields);
        if let Some(same) = same {
            return Type::Class(same.name.clone());
        }
        match self.classes.iter().find(|known| known.name == name) {
            Some(known) => assert_eq!(*known, new, "two parts have one name"),
            None => self.classes.push(new),
        }
        Type::Class(name.to_owned())
    }

    /// The type of a value under a key.
    fn kind(&mut self, key: &str, schema: &Value) -> Type {
        let object = schema.as_object().expect("a schema is an object");
        only_known(object);
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.schema.pointer(reference.trim_start_matches('#')).expect("it refers to a part");
            let name = match reference.rsplit('/').next().unwrap_or_default() {
                // The packages' name for it.
                "Amount" => "Money",
                name => name,
            };
            return self.class(&self.named(name), &target.clone());
        }
        if let Some(word) = schema["const"].as_str() {
            return Type::Words(vec![word.to_owned()]);
        }
        if let Some(words) = schema["enum"].as_array() {
            let named: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let has_null = words.contains(&Value::Null);
            return either([Type::Words(named)].into_iter().chain(has_null.then_some(Type::Null)).collect());
        }
        if let Some(forms) = schema["anyOf"].as_array() {
            return either(forms.iter().map(|form| self.kind(key, form)).collect());
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => return Type::Any,
        };
        either(types.into_iter().map(|word| self.simple(key, word, schema)).collect())
    }

    fn simple(&mut self, key: &str, word: &str, schema: &Value) -> Type {
        match word {
            "string" => Type::Text,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            "array" => {
                let singular = key.strip_suffix('s').unwrap_or(key);
                Type::List(Box::new(self.kind(singular, &schema["items"])))
            }
            "object" if schema.get("properties").is_some() => self.class(&self.named(key), schema),
            "object" => Type::Object,
            other => panic!("no type {other}"),
        }
    }

    fn named(&self, key: &str) -> String {
        let key = key.strip_prefix(self.prefix).unwrap_or(key);
        let words = key.split('_').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_uppercase() + rest
        });
        format!("{}{}", self.prefix, words.collect::<String>())
    }
}

/// What this reads; a schema with more needs more here.
fn only_known(schema: &Map<String, Value>) {
    const KNOWN: [&str; 15] = [
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "default",
        "description",
        "enum",
        "format",
        "items",
        "maximum",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
    ];
    for key in schema.keys() {
        assert!(KNOWN.contains(&key.as_str()), "a schema with `{key}`: {schema:?}");
    }
}

fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().or_else(|| schema["title"].as_str());
    text.unwrap_or_default().replace('\n', " ")
}

fn either(mut kinds: Vec<Type>) -> Type {
    kinds.dedup();
    match kinds.len() {
        1 => kinds.remove(0),
        _ => Type::Either(kinds),
    }
}

#[track_caller]
fn is_written(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages").join(file);
    if std::env::var_os("QUORATE_WRITE_BINDINGS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "packages/{file} does not follow from the schemas: QUORATE_WRITE_BINDINGS=1 writes it"
    );
}

#[test]
fn types_of_the_python_package_follow_from_the_schemas() {
    is_written("python/src/quorate/models.py", &python::module(&classes()));
}

#[test]
fn types_of_the_npm_package_follow_from_the_schemas() {
    is_written("npm/models.d.ts", &typescript::module(&classes()));
}
