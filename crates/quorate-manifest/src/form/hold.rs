//! Holding a value against a schema.

use std::collections::HashMap;

use serde_json::Value;

use super::{Additional, Bound, Fault, Form, Instance, Misfit, Step, Type, Wanted};

/// A step to the value that is held. Nearly all values fit, so that nobody asks for its path.
#[derive(Clone, Copy)]
enum At<'v> {
    Key(&'v str),
    Item(usize),
}

impl Form {
    /// What keeps a value from fitting, in the order found.
    pub fn misfits<I: Instance>(&self, value: &I) -> Vec<Misfit> {
        let mut found = Vec::new();
        self.hold(value, &mut Vec::new(), &mut found);
        found
    }

    /// Whether a value fits.
    pub fn fits<I: Instance>(&self, value: &I) -> bool {
        self.misfits(value).is_empty()
    }

    fn hold<'v, I: Instance>(&self, value: &'v I, at: &mut Vec<At<'v>>, found: &mut Vec<Misfit>) {
        let before = found.len();
        let mut say = |fault| found.push(Misfit { path: path(at), fault, because: None });
        // Where values are listed, their type says nothing that they don't.
        if let Some(values) = &self.one_of_values {
            let is_one = match value.text() {
                Some(text) => values.iter().any(|one| one.as_str() == Some(text)),
                None => {
                    let written = value.json();
                    values.iter().any(|one| same(one, &written))
                }
            };
            if !is_one {
                say(Fault::NotAmong(values.clone()));
                return;
            }
        }
        if !self.types.is_empty() && !self.types.iter().any(|one| value.is(*one)) {
            say(Fault::Type(self.wanted()));
            return;
        }
        self.bounds(value, &mut say);
        if let Some(items) = value.items().filter(|_| self.unique_items)
            && let Some((first, second)) = repeated(items)
        {
            say(Fault::Repeated { first, second });
        }
        for key in self.required.iter().filter(|key| value.entries().is_some() && value.get(key).is_none()) {
            let because = self.properties.iter().find(|(name, _)| name == key);
            let because = because.and_then(|(_, form)| form.description.clone());
            found.push(Misfit { path: path(at), fault: Fault::Missing(key.clone()), because });
        }
        self.within(value, at, found);
        self.combined(value, at, found);
        if let Some(description) = self.description.as_ref().filter(|_| self.explains && at.is_empty()) {
            for misfit in &mut found[before..] {
                misfit.because.get_or_insert_with(|| description.clone());
            }
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            types: self.types.iter().copied().filter(|one| *one != Type::Null).collect(),
            pattern: self.pattern.as_ref().map(|pattern| (pattern.text.clone(), pattern.says.clone())),
            keys: self.required.clone(),
        }
    }

    fn bounds<I: Instance>(&self, value: &I, say: &mut impl FnMut(Fault)) {
        let mut bound = |broken: bool, bound: Bound| {
            if broken {
                say(Fault::Bound(bound));
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
            // What is too short has no need to be told of a pattern too.
            if let Some(short) = self.min_length.filter(|short| length() < *short) {
                bound(true, Bound::ShortestText(short));
            } else if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.fits(text)) {
                say(Fault::Pattern { pattern: pattern.text.clone(), says: pattern.says.clone() });
            }
        }
    }

    /// What is wrong deeper inside.
    fn within<'v, I: Instance>(&self, value: &'v I, at: &mut Vec<At<'v>>, found: &mut Vec<Misfit>) {
        for (key, one) in value.entries().into_iter().flatten() {
            let known = self.properties.iter().find(|(name, _)| name == key).map(|(_, form)| form);
            let form = match (known, &self.additional) {
                (Some(form), _) => form,
                (None, Additional::Held(form)) => form,
                (None, Additional::Open) => continue,
                (None, Additional::Closed) => {
                    let known = self.properties.iter().map(|(name, _)| name.clone()).collect();
                    let fault = Fault::Unknown { key: key.to_owned(), known };
                    found.push(Misfit { path: path(at), fault, because: None });
                    continue;
                }
            };
            at.push(At::Key(key));
            form.hold(one, at, found);
            at.pop();
        }
        if let Some(form) = &self.items {
            for (index, one) in value.items().into_iter().flatten().enumerate() {
                at.push(At::Item(index));
                form.hold(one, at, found);
                at.pop();
            }
        }
    }

    fn combined<'v, I: Instance>(&self, value: &'v I, at: &mut Vec<At<'v>>, found: &mut Vec<Misfit>) {
        for form in &self.all_of {
            form.hold(value, at, found);
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(|form| form.fits(value)) {
            self.no_way(&self.any_of, value, at, found);
        }
        if !self.one_of.is_empty() {
            match self.one_of.iter().filter(|form| form.fits(value)).count() {
                0 => self.no_way(&self.one_of, value, at, found),
                1 => {}
                _ => found.push(Misfit { path: path(at), fault: Fault::ManyWays, because: None }),
            }
        }
        if self.not.as_ref().is_some_and(|form| form.fits(value)) {
            found.push(Misfit { path: path(at), fault: Fault::Forbidden, because: None });
        }
        if let Some(condition) = &self.condition {
            let form = if condition.when.fits(value) { &condition.then } else { &condition.otherwise };
            if let Some(form) = form {
                form.hold(value, at, found);
            }
        }
    }

    /// Where only one of the ways is meant for such a value, its faults are the ones to tell.
    fn no_way<'v, I: Instance>(
        &self,
        ways: &[Form],
        value: &'v I,
        at: &mut Vec<At<'v>>,
        found: &mut Vec<Misfit>,
    ) {
        // Nobody is told to write null: leaving the key out is the same.
        let ways: Vec<&Form> = ways.iter().filter(|way| way.types != [Type::Null]).collect();
        let listed: Option<Vec<&Vec<Value>>> = ways.iter().map(|way| way.one_of_values.as_ref()).collect();
        let mut meant = ways.iter().filter(|way| way.types.iter().any(|one| value.is(*one)));
        if let [only] = ways.as_slice() {
            only.hold(value, at, found);
        } else if let Some(listed) = listed {
            let fault = Fault::NotAmong(listed.into_iter().flatten().cloned().collect());
            found.push(Misfit { path: path(at), fault, because: None });
        } else if let (Some(way), None) = (meant.next(), meant.next())
            && way.one_of_values.is_none()
        {
            way.hold(value, at, found);
        } else {
            let mut all = Vec::new();
            ways.iter().for_each(|way| way.hold(value, at, &mut all));
            found.push(Misfit { path: path(at), fault: Fault::NoWay(all), because: None });
        }
    }
}

fn path(at: &[At<'_>]) -> Vec<Step> {
    let step = |one: &At<'_>| match one {
        At::Key(key) => Step::Key((*key).to_owned()),
        At::Item(index) => Step::Item(*index),
    };
    at.iter().map(step).collect()
}

/// Equality as JSON Schema has it: 1 and 1.0 are the same.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        // Two whole numbers are not the same because a double cannot tell them apart.
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        _ => one == other,
    }
}

fn repeated<I: Instance>(items: &[I]) -> Option<(usize, usize)> {
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
        let first = (0..second).find(|first| same(&values[*first], &values[second]))?;
        Some((first, second))
    })
}
