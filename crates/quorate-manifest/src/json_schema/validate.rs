//! Validates a value, JSON or a spanned tree, against a schema.

use std::collections::HashMap;

use serde_json::Value;

use super::{Additional, Bound, CompiledSchema, ErrorKind, Expected, PathStep, SchemaError, Type};
use crate::tree::{Kind, Node};

impl CompiledSchema {
    /// The errors of a value, in the order found.
    pub fn errors<I: Instance>(&self, value: &I) -> Vec<SchemaError> {
        let mut found = Vec::new();
        self.validate(value, &mut Vec::new(), &mut found);
        found
    }

    /// Whether a value is valid.
    pub fn is_valid<I: Instance>(&self, value: &I) -> bool {
        self.errors(value).is_empty()
    }

    fn validate<I: Instance>(&self, value: &I, at: &mut Vec<PathStep>, found: &mut Vec<SchemaError>) {
        let before = found.len();
        let mut say = |kind| found.push(SchemaError::new(at, kind));
        // A list of values implies the type.
        if let Some(values) = &self.enum_values {
            let is_one = match value.text() {
                Some(text) => values.iter().any(|allowed| allowed.as_str() == Some(text)),
                None => {
                    let written = value.json();
                    values.iter().any(|allowed| json_equal(allowed, &written))
                }
            };
            if !is_one {
                say(ErrorKind::NotInEnum(values.clone()));
                return;
            }
        }
        if !self.types.is_empty() && !self.types.iter().any(|kind| value.is(*kind)) {
            say(ErrorKind::Type(self.expected()));
            return;
        }
        self.validate_bounds(value, &mut say);
        if let Some(items) = value.items().filter(|_| self.unique_items)
            && let Some((first, second)) = first_duplicate(items)
        {
            say(ErrorKind::Duplicate { first, second });
        }
        for key in self.required.iter().filter(|key| value.entries().is_some() && value.get(key).is_none()) {
            let because = self.properties.iter().find(|(name, _)| name == key);
            let because = because.and_then(|(_, form)| form.description.clone());
            let error = SchemaError::new(at, ErrorKind::MissingKey(key.clone()));
            found.push(SchemaError { schema_description: because, ..error });
        }
        self.validate_children(value, at, found);
        self.validate_combinators(value, at, found);
        if let Some(description) = self.description.as_ref().filter(|_| self.explains_errors && at.is_empty())
        {
            for misfit in &mut found[before..] {
                misfit.schema_description.get_or_insert_with(|| description.clone());
            }
        }
    }

    fn expected(&self) -> Expected {
        Expected {
            types: self.types.iter().copied().filter(|kind| *kind != Type::Null).collect(),
            pattern: self.pattern.as_ref().map(|pattern| (pattern.text.clone(), pattern.description.clone())),
            keys: self.required.clone(),
        }
    }

    fn validate_bounds<I: Instance>(&self, value: &I, say: &mut impl FnMut(ErrorKind)) {
        let mut bound = |broken: bool, bound: Bound| {
            if broken {
                say(ErrorKind::OutOfBounds(bound));
            }
        };
        if let Some(number) = value.number() {
            self.minimum.into_iter().for_each(|least| bound(number < least, Bound::Least(least)));
            self.maximum.into_iter().for_each(|most| bound(number > most, Bound::Most(most)));
            self.exclusive_minimum.into_iter().for_each(|more| bound(number <= more, Bound::MoreThan(more)));
        }
        if let Some(items) = value.items() {
            self.min_items.into_iter().for_each(|few| bound(items.len() < few, Bound::FewestItems(few)));
            self.max_items.into_iter().for_each(|most| bound(items.len() > most, Bound::MostItems(most)));
        }
        if let Some(few) = self.min_properties
            && let Some(entries) = value.entries()
        {
            bound(entries.count() < few, Bound::FewestKeys(few));
        }
        if let Some(text) = value.text() {
            let length = || text.chars().count();
            if let Some(long) = self.max_length {
                bound(length() > long, Bound::LongestText(long));
            }
            // One error is enough: do not report the pattern of a text that is too short.
            if let Some(short) = self.min_length.filter(|short| length() < *short) {
                bound(true, Bound::ShortestText(short));
            } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
                say(ErrorKind::Pattern {
                    pattern: pattern.text.clone(),
                    description: pattern.description.clone(),
                });
            }
        }
    }

    /// The errors of items and entries.
    fn validate_children<I: Instance>(
        &self,
        value: &I,
        at: &mut Vec<PathStep>,
        found: &mut Vec<SchemaError>,
    ) {
        for (key, one) in value.entries().into_iter().flatten() {
            let known = self.properties.iter().find(|(name, _)| name == key).map(|(_, form)| form);
            let form = match (known, &self.additional) {
                (Some(form), _) => form,
                (None, Additional::Matching(form)) => form,
                (None, Additional::Allowed) => continue,
                (None, Additional::Denied) => {
                    let known = self.properties.iter().map(|(name, _)| name.clone()).collect();
                    found.push(SchemaError::new(at, ErrorKind::UnknownKey { key: key.to_owned(), known }));
                    continue;
                }
            };
            at.push(PathStep::Key(key.to_owned()));
            form.validate(one, at, found);
            at.pop();
        }
        if let Some(form) = &self.items {
            for (index, one) in value.items().into_iter().flatten().enumerate() {
                at.push(PathStep::Item(index));
                form.validate(one, at, found);
                at.pop();
            }
        }
    }

    fn validate_combinators<I: Instance>(
        &self,
        value: &I,
        at: &mut Vec<PathStep>,
        found: &mut Vec<SchemaError>,
    ) {
        for form in &self.all_of {
            form.validate(value, at, found);
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(|form| form.is_valid(value)) {
            Self::report_no_match(&self.any_of, value, at, found);
        }
        if !self.one_of.is_empty() {
            match self.one_of.iter().filter(|form| form.is_valid(value)).count() {
                0 => Self::report_no_match(&self.one_of, value, at, found),
                1 => {}
                _ => found.push(SchemaError::new(at, ErrorKind::MultipleMatches)),
            }
        }
        if self.not.as_ref().is_some_and(|form| form.is_valid(value)) {
            found.push(SchemaError::new(at, ErrorKind::Forbidden));
        }
        if let Some(condition) = &self.condition {
            let form = if condition.when.is_valid(value) { &condition.then } else { &condition.otherwise };
            if let Some(form) = form {
                form.validate(value, at, found);
            }
        }
    }

    /// If only one alternative is for this type of value, reports its errors.
    fn report_no_match<I: Instance>(
        ways: &[CompiledSchema],
        value: &I,
        at: &mut Vec<PathStep>,
        found: &mut Vec<SchemaError>,
    ) {
        // Messages do not suggest null: omitting the key is the same.
        let ways: Vec<&CompiledSchema> = ways.iter().filter(|way| way.types != [Type::Null]).collect();
        let listed: Option<Vec<&Vec<Value>>> = ways.iter().map(|way| way.enum_values.as_ref()).collect();
        let mut matching = ways.iter().filter(|way| way.types.iter().any(|kind| value.is(*kind)));
        if let [only] = ways.as_slice() {
            only.validate(value, at, found);
        } else if let Some(listed) = listed {
            let listed = listed.into_iter().flatten().cloned().collect();
            found.push(SchemaError::new(at, ErrorKind::NotInEnum(listed)));
        } else if let (Some(way), None) = (matching.next(), matching.next())
            && way.enum_values.is_none()
        {
            way.validate(value, at, found);
        } else {
            let mut all = Vec::new();
            ways.iter().for_each(|way| way.validate(value, at, &mut all));
            found.push(SchemaError::new(at, ErrorKind::NoMatch(all)));
        }
    }
}

/// Equality as in JSON Schema: 1 equals 1.0.
fn json_equal(value: &Value, other: &Value) -> bool {
    match (value, other) {
        // Compare integers exactly: different ones may have the same double.
        (Value::Number(value), Value::Number(other)) => {
            value == other || (value.is_f64() || other.is_f64()) && value.as_f64() == other.as_f64()
        }
        (Value::Array(value), Value::Array(other)) => {
            value.len() == other.len()
                && value.iter().zip(other).all(|(value, other)| json_equal(value, other))
        }
        (Value::Object(value), Value::Object(other)) => {
            value.len() == other.len()
                && value
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| json_equal(value, other)))
        }
        _ => value == other,
    }
}

fn first_duplicate<I: Instance>(items: &[I]) -> Option<(usize, usize)> {
    let texts: Option<Vec<&str>> = items.iter().map(Instance::text).collect();
    if let Some(texts) = texts {
        let mut firsts = HashMap::new();
        return texts.into_iter().enumerate().find_map(|(second, text)| {
            let first = *firsts.entry(text).or_insert(second);
            (first < second).then_some((first, second))
        });
    }
    let values: Vec<Value> = items.iter().map(Instance::json).collect();
    (1..values.len()).find_map(|second| {
        let first = (0..second).find(|first| json_equal(&values[*first], &values[second]))?;
        Some((first, second))
    })
}

/// A value that can be validated.
pub trait Instance: Sized {
    /// Whether the value is of a type.
    fn is(&self, wanted: Type) -> bool;
    /// The value as a number.
    fn number(&self) -> Option<f64>;
    /// The value as text.
    fn text(&self) -> Option<&str>;
    /// The value as a list.
    fn items(&self) -> Option<&[Self]>;
    /// The value's keys, if it is a mapping.
    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>>;
    /// The value of a key.
    fn get(&self, key: &str) -> Option<&Self>;
    /// The value as JSON.
    fn json(&self) -> Value;
}

impl Instance for Value {
    fn is(&self, wanted: Type) -> bool {
        match wanted {
            Type::Null => self.is_null(),
            Type::Boolean => self.is_boolean(),
            Type::Integer => {
                self.is_i64() || self.is_u64() || self.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            Type::Number => self.is_number(),
            Type::String => self.is_string(),
            Type::Array => self.is_array(),
            Type::Object => self.is_object(),
        }
    }

    fn number(&self) -> Option<f64> {
        self.as_f64()
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn items(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        Some(self.as_object()?.iter().map(|(key, value)| (key.as_str(), value)))
    }

    fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    fn json(&self) -> Value {
        self.clone()
    }
}

/// A key without a value is absent (M3).
impl Instance for Node {
    fn is(&self, wanted: Type) -> bool {
        match (&self.kind, wanted) {
            (Kind::Float(float), Type::Integer) => float.to_integer().is_some(),
            (Kind::Null, Type::Null)
            | (Kind::Bool(_), Type::Boolean)
            | (Kind::Int(_), Type::Integer | Type::Number)
            | (Kind::Float(_), Type::Number)
            | (Kind::Str(_), Type::String)
            | (Kind::Seq(_), Type::Array)
            | (Kind::Map(_), Type::Object) => true,
            _ => false,
        }
    }

    fn number(&self) -> Option<f64> {
        Node::number(self)
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn items(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::Seq(items) => Some(items),
            _ => None,
        }
    }

    fn entries(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        let Kind::Map(entries) = &self.kind else { return None };
        let present = entries.iter().filter(|entry| entry.value.kind != Kind::Null);
        Some(present.map(|entry| (entry.key.as_str(), &entry.value)))
    }

    fn get(&self, key: &str) -> Option<&Self> {
        self.key(key)
    }

    fn json(&self) -> Value {
        self.to_json()
    }
}
