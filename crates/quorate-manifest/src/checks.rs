//! Checks of an assembly with a resolved chain, beyond its schema. A file has the checks of one part of the manifest; a
//! [`CheckContext`] has their input (the merged tree, the typed manifest, its policies) and their report.

mod fields;
mod governance;
mod members;
pub(crate) mod references;
mod synthesis;

pub(crate) use fields::check_numbers;
pub(crate) use members::check_id_collisions;

use std::cell::RefCell;
use std::sync::Arc;

use quorate_diagnostics::codes::{RefusalCode, WarningCode};
use quorate_diagnostics::{Body, Place, Report};

use crate::assembly::{Assembly, Mode};
use crate::capabilities::RuleKind;
use crate::document::Document;
use crate::governance::Policies;
use crate::loader::{Chain, Loader};
use crate::tree::Node;
use crate::tree::reader::meant_or;

/// All checks, in the order of a manifest's keys.
pub(crate) const ALL: &[fn(&CheckContext<'_, '_>)] = &[
    references::check_applies_to,
    references::check_personas,
    fields::check_fields_without_effect,
    members::check_dropped_fields,
    members::check_phases,
    members::check_any_members,
    members::check_gather_strategies,
    members::check_gather_params,
    fields::check_metadata,
    members::check_hierarchy,
    synthesis::check_rule_params,
    synthesis::check_rule_members,
    synthesis::check_terminal_rules,
    synthesis::check_rules_without_effect,
    synthesis::check_replaced_terminals,
    synthesis::check_risk_levels,
    fields::check_trait_patterns,
    fields::check_doubtful_traits,
    fields::check_trait_match_modes,
    fields::check_default_ttl,
    governance::check_overlay_ttl_range,
    references::check_references,
    governance::check_widened_governance,
    governance::check_governance_limits,
];

/// An assembly with a resolved chain, under check.
pub(crate) struct CheckContext<'r, 'w> {
    pub(crate) loader: &'r Loader<'w>,
    pub(crate) chain: &'r Chain,
    pub(crate) manifest: &'r Assembly,
    pub(crate) mode: Mode,
    pub(crate) policies: &'r Policies,
    report: RefCell<Report>,
}

impl<'r, 'w> CheckContext<'r, 'w> {
    pub(crate) fn new(
        loader: &'r Loader<'w>,
        chain: &'r Chain,
        manifest: &'r Assembly,
        mode: Mode,
        policies: &'r Policies,
    ) -> Self {
        CheckContext { loader, chain, manifest, mode, policies, report: RefCell::default() }
    }

    pub(crate) fn root(&self) -> &'r Node {
        &self.chain.merged
    }

    /// The members' trees, in roster order.
    pub(crate) fn members(&self) -> &'r [Node] {
        self.root().items_at(&["members"])
    }

    /// The rules' trees, in declaration order.
    pub(crate) fn rules(&self) -> &'r [Node] {
        self.root().items_at(&["synthesis", "rules"])
    }

    pub(crate) fn is_member(&self, id: &str) -> bool {
        self.members().iter().any(|member| member.text_of("id") == Some(id))
    }

    /// What a rule's kind means; `None` for an unknown kind.
    pub(crate) fn kind_of(&self, rule: &Node) -> Option<RuleKind> {
        self.loader.capabilities.rule_kind(rule.text_of("kind")?)
    }

    /// The help for an unknown member's id.
    pub(crate) fn member_help(&self, id: &str) -> String {
        let ids = self.member_ids();
        meant_or(id, &ids, || format!("the members are: {}", ids.join(", ")))
    }

    pub(crate) fn member_ids(&self) -> Vec<&'r str> {
        self.members().iter().filter_map(|member| member.text_of("id")).collect()
    }

    /// The entry of the nearest ancestor that an entry of a document's list replaces, by its id.
    pub(crate) fn replaced(
        &self,
        document: usize,
        list: &[&str],
        entry: &Node,
    ) -> Option<(&'r Arc<Document>, &'r Node)> {
        let id = entry.text_of("id")?;
        self.chain.documents[..document].iter().rev().find_map(|ancestor| {
            let entries = ancestor.root.items_at(list);
            let same_id = |other: &&Node| other.text_of("id") == Some(id);
            Some((ancestor, entries.iter().find(same_id)?))
        })
    }

    pub(crate) fn place(&self, node: &Node, path: impl Into<String>) -> Place {
        self.chain.place(node, path)
    }

    /// The place of a key of a merged mapping.
    pub(crate) fn key_place(&self, node: &Node, key: &str, path: impl Into<String>) -> Place {
        let Some(entry) = node.entry(key) else { return self.place(node, path) };
        self.chain.document_of(&entry.value).place(entry.key_span.clone(), path)
    }

    /// The place of the value of a key of a merged mapping.
    pub(crate) fn value_place(&self, node: &Node, key: &str, path: impl Into<String>) -> Place {
        self.place(node.key(key).unwrap_or(node), path)
    }

    pub(crate) fn refuse(&self, code: RefusalCode, body: Body) {
        self.report.borrow_mut().refuse(code, body);
    }

    pub(crate) fn warn(&self, code: WarningCode, body: Body) {
        self.report.borrow_mut().warn(code, body);
    }

    /// The diagnostics of the checks and policies, with the sources of the chain.
    pub(crate) fn into_report(self) -> Report {
        let mut report = self.report.into_inner();
        report.absorb(self.policies.report.clone());
        for document in &self.chain.documents {
            report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
        }
        report
    }
}
