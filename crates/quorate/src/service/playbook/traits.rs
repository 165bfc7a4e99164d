//! The locked traits of an operator (B4): the built-in ones, those of `quorate.toml`, its own and its persona's.
//!
//! Built-in traits are locked in every operator; `[locks.<id>]` with `operators` narrows one, and adds phrases to a trait.
//! Manifests can only add (M13): `locks` names ids, and `metadata.quorate.locks` ids or whole traits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use quorate_manifest::config::Lock;
use quorate_manifest::operator::Operator;
use quorate_playbook::lock::{Locks, Trait, built_in, lexicon};
use serde_json::Value;

/// The locked traits of an operator, by id. `persona_locks` are the locks in its persona's documents.
pub(super) fn locked_traits(
    configured: &BTreeMap<String, Lock>,
    operator: &Operator,
    persona_locks: &[Value],
) -> Vec<Arc<Trait>> {
    let mut traits: BTreeMap<String, Arc<Trait>> = BTreeMap::new();
    for locked_trait in lexicon() {
        let narrowed = configured.get(&locked_trait.id).is_some_and(|lock| !is_for(lock, &operator.id));
        if !narrowed {
            traits.insert(locked_trait.id.clone(), locked_trait.clone());
        }
    }
    for (id, lock) in configured.iter().filter(|(_, lock)| is_for(lock, &operator.id)) {
        add(&mut traits, id, lock.description.as_deref(), &lock.words, &lock.phrases);
    }
    for id in operator.locks.iter().flatten() {
        add(&mut traits, id, None, &[], &[]);
    }
    let own_locks = operator.metadata.as_ref().and_then(|metadata| metadata.get("quorate")?.get("locks"));
    persona_locks.iter().chain(own_locks).for_each(|locks| add_from_manifest(&mut traits, locks));
    // The configuration's description applies to a trait that a manifest names, even if it was narrowed to other operators.
    let described: Vec<String> = traits.keys().cloned().collect();
    for id in described {
        if let Some(lock) = configured.get(&id) {
            add(&mut traits, &id, lock.description.as_deref(), &lock.words, &lock.phrases);
        }
    }
    traits.into_values().collect()
}

/// Compiled matchers. Compiling takes milliseconds and most operators have the same traits, so they are cached.
pub(in crate::service) fn compile(traits: &[Arc<Trait>]) -> Arc<Locks> {
    static READY: Mutex<Vec<Arc<Locks>>> = Mutex::new(Vec::new());
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = ready.iter().find(|matcher| matcher.traits() == traits) {
        return found.clone();
    }
    let new = Arc::new(Locks::new(traits.to_vec()));
    ready.push(new.clone());
    new
}

/// Compiles the common traits in the background.
pub(super) fn precompile() {
    drop(std::thread::spawn(|| {
        let mut traits = lexicon().to_vec();
        traits.sort_by(|one, other| one.id.cmp(&other.id));
        compile(&traits)
    }));
}

/// Traits that a playbook's author names beyond the operator's.
pub(super) fn extra_traits(lock_check: &[String], known: &[Arc<Trait>]) -> Vec<Arc<Trait>> {
    let new = lock_check.iter().filter(|id| !known.iter().any(|locked_trait| locked_trait.id == **id));
    let mut traits = BTreeMap::new();
    new.for_each(|id| add(&mut traits, id, None, &[], &[]));
    traits.into_values().collect()
}

fn is_for(lock: &Lock, operator: &str) -> bool {
    lock.operators.as_ref().is_none_or(|all| all.iter().any(|name| name == operator || name == "*"))
}

/// A list of ids or traits, traits by their ids, or one id. Lenient about shapes, so that no lock is lost to its notation.
fn add_from_manifest(traits: &mut BTreeMap<String, Arc<Trait>>, locks: &Value) {
    let texts = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(all)) => all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
            _ => Vec::new(),
        }
    };
    let mut one = |id: &str, value: &Value| match value {
        // For a trait by its id, a bare text or list is its phrases.
        Value::Array(_) => add(traits, id, None, &[], &texts(Some(value))),
        _ => {
            let description = value.get("description").and_then(Value::as_str);
            add(traits, id, description, &texts(value.get("words")), &texts(value.get("phrases")));
        }
    };
    match locks {
        Value::String(id) => one(id, locks),
        Value::Array(all) => {
            for value in all {
                let named = || ["id", "name", "trait"].iter().find_map(|key| value.get(key)?.as_str());
                if let Some(id) = value.as_str().or_else(named) {
                    one(id, value);
                } else if let Some(all) = value.as_object() {
                    all.iter().for_each(|(id, value)| one(id, value));
                }
            }
        }
        Value::Object(all) => all.iter().for_each(|(id, value)| one(id, value)),
        _ => {}
    }
}

/// Adds words and phrases to a trait; never removes any.
fn add(
    traits: &mut BTreeMap<String, Arc<Trait>>,
    id: &str,
    description: Option<&str>,
    words: &[String],
    phrases: &[String],
) {
    let one = traits.entry(id.to_owned()).or_insert_with(|| match built_in(id) {
        Some(known) => known.clone(),
        None => Arc::new(Trait {
            id: id.to_owned(),
            description: String::new(),
            words: Vec::new(),
            phrases: Vec::new(),
        }),
    });
    let description = description.filter(|text| !text.trim().is_empty());
    if description.is_none() && words.is_empty() && phrases.is_empty() {
        return;
    }
    let one = Arc::make_mut(one);
    if let Some(description) = description {
        one.description = description.to_owned();
    }
    for (list, more) in [(&mut one.words, words), (&mut one.phrases, phrases)] {
        for text in more {
            if !text.trim().is_empty() && !list.contains(text) {
                list.push(text.clone());
            }
        }
    }
}
