//! The locked traits of an operator (B4): the built-in ones, those of `quorate.toml`, its own and its persona's.
//!
//! Built-in traits are locked in every operator; `[locks.<id>]` with `operators` narrows one, and adds phrases to a trait.
//! Manifests can only add (M13): `locks` names ids, and `metadata.quorate.locks` ids or whole traits.
//!
//! A person can make an exception: allow one text of one playbook to touch one locked trait, with a reason. Traits match
//! single words, so a harmless text may seem to touch one. The person decides at a terminal, and the ledger records the
//! decision; a playbook's file cannot grant itself an exception. An exception names the text by its hash: another text of
//! the same playbook is checked as usual.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quorate_diagnostics::invisible::first_invisible;
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Kind, PlaybookEvent, Record};
use quorate_kernel::record::{LockException, PlaybookEventData};
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::config::Lock;
use quorate_manifest::operator::Operator;
use quorate_manifest::workspace::Scope;
use quorate_playbook::curate::Objection;
use quorate_playbook::lock::{Locks, Trait, Violation, built_in, built_in_traits};
use serde_json::{Value, json};

use super::change::{ChangeEvent, playbook_event};
use super::versions::RecordedVersions;
use super::{Approver, GateClosed};
use crate::service::workspace::Workspace;

/// The locked traits of an operator, by id. `persona_locks` are the locks in its persona's documents.
pub(super) fn locked_traits(
    configured: &BTreeMap<String, Lock>,
    operator: &Operator,
    persona_locks: &[Value],
) -> Vec<Arc<Trait>> {
    let mut traits: BTreeMap<String, Arc<Trait>> = BTreeMap::new();
    for locked_trait in built_in_traits() {
        let narrowed = configured.get(&locked_trait.id).is_some_and(|lock| !is_for(lock, &operator.id));
        if !narrowed {
            traits.insert(locked_trait.id.clone(), locked_trait.clone());
        }
    }
    for (id, lock) in configured.iter().filter(|(_, lock)| is_for(lock, &operator.id)) {
        add(&mut traits, id, lock);
    }
    for id in operator.locks.iter().flatten() {
        add(&mut traits, id, &Lock::default());
    }
    let own_locks = operator.metadata.as_ref().and_then(|metadata| metadata.get("quorate")?.get("locks"));
    persona_locks.iter().chain(own_locks).for_each(|locks| add_from_manifest(&mut traits, locks));
    // The configuration's description applies to a trait that a manifest names, even if it was narrowed to other operators.
    let described: Vec<String> = traits.keys().cloned().collect();
    for id in described {
        if let Some(lock) = configured.get(&id) {
            add(&mut traits, &id, lock);
        }
    }
    traits.into_values().collect()
}

/// Compiled matchers. Compiling takes milliseconds and most operators have the same traits, so they are cached.
pub(crate) fn compile(traits: &[Arc<Trait>]) -> Arc<Locks> {
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
        let mut traits = built_in_traits().to_vec();
        traits.sort_by(|one, other| one.id.cmp(&other.id));
        compile(&traits)
    }));
}

/// Traits that a playbook's author names beyond the operator's.
pub(super) fn extra_traits(lock_check: &[String], known: &[Arc<Trait>]) -> Vec<Arc<Trait>> {
    let new = lock_check.iter().filter(|id| !known.iter().any(|locked_trait| locked_trait.id == **id));
    let mut traits = BTreeMap::new();
    new.for_each(|id| add(&mut traits, id, &Lock::default()));
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
    let mut one = |id: &str, value: &Value| {
        // For a trait by its id, a bare list is its phrases.
        let phrases = if value.is_array() { Some(value) } else { value.get("phrases") };
        let description = value.get("description").and_then(Value::as_str).map(str::to_owned);
        let (words, phrases) = (texts(value.get("words")), texts(phrases));
        add(traits, id, &Lock { description, words, phrases, operators: None });
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
fn add(traits: &mut BTreeMap<String, Arc<Trait>>, id: &str, lock: &Lock) {
    let new = || Arc::new(Trait { id: id.to_owned(), ..Trait::default() });
    let one = traits.entry(id.to_owned()).or_insert_with(|| built_in(id).cloned().unwrap_or_else(new));
    let description = lock.description.as_ref().filter(|text| !text.trim().is_empty());
    if description.is_none() && lock.words.is_empty() && lock.phrases.is_empty() {
        return;
    }
    let one = Arc::make_mut(one);
    if let Some(description) = description {
        one.description.clone_from(description);
    }
    for (list, more) in [(&mut one.words, &lock.words), (&mut one.phrases, &lock.phrases)] {
        for text in more {
            if !text.trim().is_empty() && !list.contains(text) {
                list.push(text.clone());
            }
        }
    }
}

/// The exceptions of a scope, read once, when a text first touches a trait.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exceptions {
    of: Option<(StoreAddress, Scope)>,
    /// Each with the playbook's slug.
    read: Arc<OnceLock<Vec<(String, LockException)>>>,
}

impl Exceptions {
    /// The exceptions that a workspace's ledger records for a scope.
    pub(crate) fn of(workspace: &Workspace, scope: &Scope) -> Self {
        Exceptions { of: Some((workspace.ledger.clone(), scope.clone())), read: Arc::default() }
    }

    /// Removes the touches of a text that an exception allows.
    pub(crate) fn not_excepted(&self, slug: &str, text: &str, mut touches: Vec<Violation>) -> Vec<Violation> {
        if !touches.is_empty() {
            let allowed = self.allowed(slug, text);
            touches.retain(|touch| !allowed.iter().any(|exception| exception.locked == touch.id));
        }
        touches
    }

    /// The exceptions of a text.
    pub(crate) fn allowed(&self, slug: &str, text: &str) -> Vec<&LockException> {
        let hash = text_hash(text);
        // An unreadable ledger allows nothing.
        let all = self.read.get_or_init(|| {
            let of = self.of.as_ref();
            let records = of.map(|(ledger, scope)| RecordedVersions::records_blocking(ledger, scope));
            records.iter().flatten().flat_map(exceptions_of_record).collect()
        });
        let allowed = all.iter().filter(|(of, exception)| of == slug && exception.text == hash);
        allowed.map(|(_, exception)| exception).collect()
    }
}

fn exceptions_of_record(record: &Record) -> Vec<(String, LockException)> {
    let registered =
        record.is(Kind::Playbook(PlaybookEvent::Registered)).then(|| playbook_event(record)).flatten();
    let Some(registered) = registered else { return Vec::new() };
    let slug = registered.slug.unwrap_or_default();
    registered.exceptions.into_iter().map(|exception| (slug.clone(), exception)).collect()
}

/// Exceptions that a proposer requests, and the person who decides.
pub struct ExceptionRequest {
    /// The ids of the traits.
    pub traits: Vec<String>,
    /// Why the text does not harm them.
    pub reason: String,
    /// Who decides.
    pub person: Box<dyn Approver>,
}

impl ExceptionRequest {
    /// Removes the objections that a person allows, and returns what to record.
    ///
    /// # Errors
    /// If the exception is not needed or has no reason, or no person allows it.
    pub(super) fn allow(
        &mut self,
        slug: &str,
        text: &str,
        objections: &mut Vec<Objection>,
    ) -> Result<ChangeEvent, GateClosed> {
        let (traits, reason) = (&self.traits, self.reason.trim());
        let is_meant = |objection: &Objection| objection.locked_id().is_some_and(|id| traits.contains(id));
        let touched = |id: &String| objections.iter().any(|objection| objection.locked_id() == Some(id));
        if let Some(id) = traits.iter().find(|id| !touched(id)) {
            let message = format!("`{slug}` does not touch `{id}`, so it needs no exception");
            return Err(GateClosed::new(
                message,
                "remove that `--except-trait`: unneeded exceptions are refused",
            ));
        }
        if reason.is_empty() || first_invisible(reason).is_some() {
            let message = "the reason of the exception is empty, or has an invisible character";
            let help = "give the reason why the text does not harm the trait with `--reason`";
            return Err(GateClosed::new(message, help));
        }
        let mut shown = format!("# Let `{slug}` touch what is locked\n\n");
        for objection in objections.iter().filter(|objection| is_meant(objection)) {
            shown.push_str(&format!("- {}\n", objection.body.message));
        }
        shown.push_str(&format!("\nWhy: {reason}\n\n## What agents would be told\n\n"));
        super::push_quote(&mut shown, text);
        let closed =
            |why: String, help: String| GateClosed::new(format!("cannot make an exception: {why}"), help);
        let answer = self.person.ask(&shown).map_err(|shut| closed(shut.message, shut.help))?;
        if !answer.yes {
            let help = "rephrase the text, so that it does not touch the trait".to_owned();
            return Err(closed(format!("{} refuses it", answer.by), help));
        }
        objections.retain(|objection| !is_meant(objection));
        let exception = |id: &String| LockException {
            locked: id.clone(),
            text: text_hash(text),
            by: answer.by.clone(),
            reason: reason.to_owned(),
        };
        let exceptions = traits.iter().map(exception).collect();
        let data = PlaybookEventData { exceptions, ..PlaybookEventData::default() };
        let words = format!("{} lets it touch {}: {reason}", answer.by, traits.join(", "));
        Ok(ChangeEvent::new(PlaybookEvent::Registered, slug, words, json!(data)))
    }
}

fn text_hash(text: &str) -> String {
    sha256_hex(text.trim().as_bytes())
}
