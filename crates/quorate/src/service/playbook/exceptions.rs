//! Exceptions (B4): a person allows one text of one playbook to touch one locked trait, with a reason. Traits match single
//! words, so a harmless text may seem to touch one. The person decides at a terminal, and the ledger records the decision;
//! a playbook's file cannot grant itself an exception.
//!
//! An exception names the text by its hash: another text of the same playbook is checked as usual.

use std::sync::{Arc, OnceLock};

use quorate_diagnostics::invisible::first_invisible;
use quorate_diagnostics::{Body, Report, codes};
use quorate_kernel::entropy::sha256_hex;
use quorate_kernel::ports::ledger::{Kind, Ledger as _, PlaybookEvent, Record};
use quorate_kernel::record::{LockException, PlaybookEventData};
use quorate_ledger::Store;
use quorate_ledger::store::address::StoreAddress;
use quorate_manifest::workspace::Scope;
use quorate_playbook::curate::Objection;
use quorate_playbook::lock::Violation;
use quorate_protocol::Name;
use serde_json::json;

use super::event::{ChangeEvent, event, stream};
use super::gate::evidence::Approver;
use crate::service::workspace::Workspace;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exception {
    pub slug: String,
    /// The id of the trait that it may touch.
    pub locked: String,
    /// SHA-256 of the text that may.
    pub text: String,
    pub by: String,
    pub reason: String,
}

/// The exceptions of a scope, read once, when a text first touches a trait.
#[derive(Debug, Clone, Default)]
pub struct Exceptions {
    of: Option<(StoreAddress, Name)>,
    read: Arc<OnceLock<Vec<Exception>>>,
}

impl Exceptions {
    /// The exceptions that a workspace's ledger records for a scope.
    pub fn of(workspace: &Workspace, scope: &Scope) -> Self {
        Exceptions { of: Some((workspace.ledger.clone(), stream(scope))), read: Arc::default() }
    }

    /// Removes the touches of a text that an exception allows.
    pub fn not_excepted(&self, slug: &str, text: &str, mut touches: Vec<Violation>) -> Vec<Violation> {
        if !touches.is_empty() {
            let allowed = self.allowed(slug, text);
            touches.retain(|touch| !allowed.iter().any(|exception| exception.locked == touch.id));
        }
        touches
    }

    /// The exceptions of a text.
    pub fn allowed(&self, slug: &str, text: &str) -> Vec<&Exception> {
        let hash = hash(text);
        self.all().iter().filter(|exception| exception.slug == slug && exception.text == hash).collect()
    }

    fn all(&self) -> &[Exception] {
        // An unreadable ledger allows nothing.
        self.read.get_or_init(|| {
            let of = self.of.clone().filter(|(address, _)| address.may_exist());
            of.and_then(|(address, stream)| read(address, stream)).unwrap_or_default()
        })
    }
}

/// Reads a ledger from synchronous code, on its own thread.
fn read(address: StoreAddress, stream: Name) -> Option<Vec<Exception>> {
    let read = async move {
        let store = Store::open_at(&address).await.ok()?.store;
        let records = store.records(&stream).await;
        store.close().await;
        Some(records.ok()?.iter().flat_map(exceptions_of_record).collect())
    };
    let run = move || tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?.block_on(read);
    std::thread::spawn(run).join().ok()?
}

fn exceptions_of_record(record: &Record) -> Vec<Exception> {
    let registered = record.is(Kind::Playbook(PlaybookEvent::Registered)).then(|| event(record)).flatten();
    let Some(registered) = registered else { return Vec::new() };
    let slug = registered.slug.unwrap_or_default();
    let exception = |one: LockException| {
        let LockException { locked, text, by, reason } = one;
        Exception { slug: slug.clone(), locked, text, by, reason }
    };
    registered.exceptions.into_iter().map(exception).collect()
}

/// Exceptions that a proposer requests, and the person who decides.
pub struct ExceptionRequest<'a> {
    /// The ids of the traits.
    pub traits: &'a [String],
    pub reason: &'a str,
    pub person: &'a mut dyn Approver,
}

impl ExceptionRequest<'_> {
    /// Removes the objections that a person allows, and returns what to record.
    pub fn allow(
        &mut self,
        slug: &str,
        text: &str,
        objections: &mut Vec<Objection>,
        report: &mut Report,
    ) -> Option<ChangeEvent> {
        let mut refuse = |message: String, help: String| {
            report.refuse(codes::LOCK_VIOLATED, Body::new(message).help(help));
        };
        let is_meant = |objection: &Objection| matches!(objection, Objection::Locked { touch, .. } if self.traits.contains(&touch.id));
        let touched = |id: &String| {
            objections
                .iter()
                .any(|objection| matches!(objection, Objection::Locked { touch, .. } if touch.id == *id))
        };
        if let Some(id) = self.traits.iter().find(|id| !touched(id)) {
            refuse(
                format!("`{slug}` does not touch `{id}`, so it needs no exception"),
                "remove that `--except-trait`: unneeded exceptions are refused".to_owned(),
            );
            return None;
        }
        if self.reason.trim().is_empty() || first_invisible(self.reason).is_some() {
            refuse(
                "the reason of the exception is empty, or has an invisible character".to_owned(),
                "give the reason why the text does not harm the trait with `--reason`".to_owned(),
            );
            return None;
        }
        let mut shown = format!("# Let `{slug}` touch what is locked\n\n");
        for objection in objections.iter().filter(|objection| is_meant(objection)) {
            shown.push_str(&format!("- {objection}\n"));
        }
        shown.push_str(&format!("\nWhy: {}\n\n## What agents would be told\n\n", self.reason.trim()));
        super::gate::evidence::push_quote(&mut shown, text);
        let answer = match self.person.ask(&shown) {
            Ok(answer) => answer,
            Err(shut) => {
                refuse(format!("cannot make an exception: {}", shut.message), shut.help);
                return None;
            }
        };
        if !answer.yes {
            refuse(
                format!("cannot make an exception: {} refuses it", answer.by),
                "rephrase the text, so that it does not touch the trait".to_owned(),
            );
            return None;
        }
        objections.retain(|objection| !is_meant(objection));
        let hash = hash(text);
        let exception = |id: &String| LockException {
            locked: id.clone(),
            text: hash.clone(),
            by: answer.by.clone(),
            reason: self.reason.trim().to_owned(),
        };
        let exceptions = self.traits.iter().map(exception).collect();
        let data = PlaybookEventData { exceptions, ..PlaybookEventData::default() };
        let words = format!("{} lets it touch {}: {}", answer.by, self.traits.join(", "), self.reason.trim());
        Some(ChangeEvent::new(PlaybookEvent::Registered, slug, words, json!(data)))
    }
}

fn hash(text: &str) -> String {
    sha256_hex(text.trim().as_bytes())
}
