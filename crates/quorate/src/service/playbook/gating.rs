//! Whether an active playbook passed a gate (B13). A file that a person made active by hand is woven without a gate, unless
//! only governance may promote it.

use std::collections::BTreeSet;

use quorate_diagnostics::Body;
use quorate_manifest::frontmatter;
use quorate_manifest::loader::Loader;
use quorate_manifest::playbook::PlaybookFile;
use quorate_manifest::playbook::Status;
use quorate_manifest::playbook::{EntryKind, Gate};
use quorate_manifest::workspace::{Scope, WorkspacePath};
use quorate_playbook::bind::{Binding, Subject};
use quorate_playbook::gate::GOVERNANCE_PRIORITY;
use quorate_playbook::index::{NEVER_GATED, priority};

use super::known_operator::subject;
use super::versions::{VersionedFile, gate_word};
use crate::service::operators::load_operator;

/// Whether a playbook may be woven, by the gates that it passed.
#[derive(Debug, Clone, PartialEq)]
pub enum Gating {
    /// It passed a gate, or is not active.
    Passed,
    /// It passed no gate, and needs none.
    NeverGated,
    /// Only governance may promote it, and did not: it is not woven.
    Denied {
        body: Body,
        /// Whether it passed no other gate.
        never_gated: bool,
    },
}

impl Gating {
    /// Whether it is active and passed no gate.
    pub fn is_never_gated(&self) -> bool {
        matches!(self, Gating::NeverGated | Gating::Denied { never_gated: true, .. })
    }

    /// The gating of a playbook by its versions. A gate counts if it passed the current text of the file.
    pub fn of(file: &PlaybookFile, record: &VersionedFile, targets_all: bool) -> Gating {
        let playbook = &file.playbook;
        if playbook.status != Status::Active {
            return Gating::Passed;
        }
        let entries = playbook.history.as_deref().unwrap_or_default();
        let body = |text: &str| {
            let parts = frontmatter::split(text).ok()?;
            Some(text[parts.body].trim().replace("\r\n", "\n"))
        };
        let own = Some(file.text().replace("\r\n", "\n"));
        let promoted =
            record.versions.iter().rfind(|version| version.event == "promoted" && body(&version.text) == own);
        let gate = promoted.and_then(|version| {
            let entry =
                entries.iter().find(|entry| entry.at == version.at && entry.kind == EntryKind::Promoted);
            entry.and_then(|entry| entry.gate)
        });
        let priority = priority(playbook);
        let reach = match (priority >= GOVERNANCE_PRIORITY, targets_all) {
            (true, _) => format!("is active at priority {priority}"),
            (false, true) => "is active for all operators".to_owned(),
            (false, false) => return if gate.is_some() { Gating::Passed } else { Gating::NeverGated },
        };
        let slug = &playbook.slug;
        let message = match gate {
            Some(Gate::Governance) => return Gating::Passed,
            Some(gate) => {
                format!(
                    "`{slug}` {reach}, which only governance promotes, and it passed the gate `{}`",
                    gate_word(gate)
                )
            }
            None => format!("`{slug}` {reach}, which only governance promotes, and was {NEVER_GATED}"),
        };
        let help = format!(
            "run `quorate playbook shadow {slug}` and `quorate playbook promote {slug} --gate governance`; or give it a \
             priority below {GOVERNANCE_PRIORITY} and name its operators"
        );
        Gating::Denied { body: Body::new(message).help(help), never_gated: gate.is_none() }
    }
}

/// The warning about a playbook that is woven without a gate.
pub fn never_gated_body(slug: &str) -> Body {
    let body = Body::new(format!("`{slug}` is active, and no gate passed its text: it was {NEVER_GATED}"));
    body.help(format!(
        "to have it tested, run `quorate playbook shadow {slug}` and `quorate playbook promote {slug} --gate GATE`"
    ))
}

/// The active playbooks that target all operators of a scope by patterns. Operators are read only if there is a pattern.
pub fn targeting_all(books: &[PlaybookFile], loader: &Loader<'_>, scope: &Scope) -> BTreeSet<String> {
    let mut subjects: Option<Vec<Subject>> = None;
    let active = books.iter().map(|book| &book.playbook).filter(|book| book.status == Status::Active);
    let targets_all = active.filter(|playbook| {
        let binding = Binding::new(playbook);
        binding.has_patterns()
            && binding.targets_all(subjects.get_or_insert_with(|| operator_subjects(loader, scope)).iter())
    });
    targets_all.map(|playbook| playbook.slug.clone()).collect()
}

fn operator_subjects(loader: &Loader<'_>, scope: &Scope) -> Vec<Subject> {
    let folder = match scope.folder() {
        top if top.is_empty() => "operators".to_owned(),
        tenant => format!("{tenant}/operators"),
    };
    let Ok(location) = WorkspacePath::new(&folder) else { return Vec::new() };
    let load = |slug: &String| load_operator(loader, scope, &format!("ws://operators/{slug}")).ok();
    loader.folder_names(&location).iter().filter_map(load).map(|one| subject(&one.operator)).collect()
}
