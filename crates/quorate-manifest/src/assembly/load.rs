//! Loads an assembly: resolves its chain, merges its keys (AIP-24, "Merge strategy"; M6), runs the checks, and fills in the
//! defaults.

use std::collections::BTreeMap;
use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AppliesTo, Assembly, Defaults, Display, GatherInput, LockedTrait, MatchMode, Mode, RiskLabel, Signing,
    Trigger, inherited_minimums,
};
use crate::checks::CheckContext;
use crate::decimal::Decimal;
use crate::doctype::Doctype;
use crate::document::Document;
use crate::governance::Policies;
use crate::loader::{Chain, ChainOutcome, Loader, Refs};
use crate::merge::Strategy::{ById, Deep, Fields, Local, Union};
use crate::merge::Table;
use crate::tree::Node;
use crate::workspace::WorkspacePath;
use crate::{Loaded, checks, loader};

const CHAIN_RULES: loader::ChainRules = loader::ChainRules {
    doctype: Doctype::Assembly,
    table: TABLE,
    cycle: codes::ASSEMBLY_EXTENDS_CYCLE,
    missing: codes::ASSEMBLY_EXTENDS_MISSING,
    depth: codes::ASSEMBLY_EXTENDS_DEPTH_EXCEEDED,
};

/// The risk levels of an assembly without `riskLevels` (A6).
const DEFAULT_RISK_LEVELS: [RiskLevel; 4] = [
    RiskLevel { lowest: 0, highest: 2, label: RiskLabel::Ok },
    RiskLevel { lowest: 3, highest: 4, label: RiskLabel::Watch },
    RiskLevel { lowest: 5, highest: 8, label: RiskLabel::Intervene },
    RiskLevel { lowest: 9, highest: 10, label: RiskLabel::Escalate },
];

const DEFAULT_MAX_ACTIVE: u8 = 10;

/// Loads an assembly from its document. The report has all diagnostics of it and its ancestors.
pub fn load(loader: &Loader<'_>, leaf: &Arc<Document>) -> Loaded<ResolvedAssembly> {
    let mut report = Report::new();
    let ChainOutcome { chain, broken, report: chain_report, visited } = loader.chain(leaf, &CHAIN_RULES);
    visited.iter().for_each(|document| report.absorb(document.report.clone()));
    report.absorb(chain_report);
    let Some(chain) = chain else {
        // M2: a violation of the schema hides no changed one-way switch.
        if broken.is_none() && visited.iter().all(|document| document.is_readable()) {
            let documents: Vec<Arc<Document>> = visited.into_iter().rev().collect();
            report.absorb(inherited_minimums::check_minimums(&documents));
        }
        return Loaded { value: None, report };
    };
    report.absorb(checks::check_id_collisions(&chain.documents));
    report.absorb(inherited_minimums::check_minimums(&chain.documents));
    let value = resolve(loader, &chain, &mut report);
    Loaded { value: value.filter(|_| !report.has_refusals()), report }
}

fn resolve(loader: &Loader<'_>, chain: &Arc<Chain>, report: &mut Report) -> Option<ResolvedAssembly> {
    let Some(mode) = chain.merged.text_of("mode").and_then(Mode::parse) else {
        let leaf = chain.leaf();
        let body = Body::new("`mode` is missing, and no loaded parent has one");
        report.add_source(Arc::clone(&leaf.shown), Arc::clone(&leaf.text));
        report.refuse(
            codes::ASSEMBLY_WORKSPACE_INVALID,
            body.at(leaf.key_place("extends")).help("add `mode`, or make the parent reachable"),
        );
        return None;
    };
    let numbers = checks::check_numbers(chain);
    let has_unusable_number = numbers.has_refusals();
    report.absorb(numbers);
    // Deserialization would refuse the same number again.
    let mut discarded = Report::new();
    let refusals = if has_unusable_number { &mut discarded } else { &mut *report };
    let written: Assembly = chain.leaf().deserialize(&chain.merged, refusals)?;
    let policies = Policies::load(loader, chain);
    let view = CheckContext::new(loader, chain, &written, mode, &policies);
    checks::ALL.iter().for_each(|check| check(&view));
    report.absorb(view.into_report());
    if report.has_refusals() { None } else { Some(build_resolved(loader, chain, written, mode, policies)) }
}

fn build_resolved(
    loader: &Loader<'_>,
    chain: &Arc<Chain>,
    written: Assembly,
    mode: Mode,
    policies: Policies,
) -> ResolvedAssembly {
    let root = &chain.merged;
    let declared = inherited_minimums::declared_match_modes(&chain.documents);
    let nodes = root.items_at(&["members"]);
    let members = written.members.unwrap_or_default();
    let rule_nodes = root.items_at(&["synthesis", "rules"]);
    let synthesis = written.synthesis;
    let (rules, levels) =
        synthesis.map_or((None, None), |synthesis| (synthesis.rules, synthesis.risk_levels));
    ResolvedAssembly {
        name: written.name,
        title: written.title,
        description: written.description,
        version: written.version,
        mode,
        members: members
            .into_iter()
            .zip(nodes)
            .map(|(member, node)| resolve_member(loader, chain, member, node, mode))
            .collect(),
        rules: rules
            .unwrap_or_default()
            .into_iter()
            .zip(rule_nodes)
            .map(|(rule, node)| resolve_rule(rule, node))
            .collect(),
        risk_levels: levels.map_or(DEFAULT_RISK_LEVELS.to_vec(), |levels| {
            let resolve = |level: &super::RiskLevel| RiskLevel {
                lowest: level.range.first().copied().unwrap_or_default(),
                highest: level.range.get(1).copied().unwrap_or_default(),
                label: level.label,
            };
            levels.iter().map(resolve).collect()
        }),
        locked_traits: root
            .items_at(&["lockedTraits"])
            .iter()
            .filter_map(|node| {
                let document = usize::from(node.document);
                let text = node.as_str()?.to_owned();
                Some(DeclaredTrait { locked: LockedTrait { text, declared: declared[document] }, document })
            })
            .collect(),
        match_mode: written.match_mode.unwrap_or_default(),
        audit: resolve_audit(written.audit.as_ref()),
        refs: checks::references::references(root),
        applies_to: written.applies_to.unwrap_or_default(),
        defaults: written.defaults,
        display: written.display,
        metadata: written.metadata.unwrap_or_default(),
        policies,
        chain: Arc::clone(chain),
    }
}

fn resolve_member(
    loader: &Loader<'_>,
    chain: &Chain,
    member: super::Member,
    node: &Node,
    mode: Mode,
) -> ResolvedMember {
    let persona = node.key("persona").map(|persona| (persona, &chain.document_of(persona).path));
    let found = persona
        .filter(|_| loader.options.refs == Refs::Followed)
        .and_then(|(persona, from)| loader.find_persona(from, persona.as_str()?).as_ref().clone().ok());
    let mode_settings = match mode {
        Mode::Advisory => ModeSettings::Advisory { phase: member.phase, triggers: member.triggers },
        Mode::Voting => {
            ModeSettings::Voting { weight: member.weight.unwrap_or(Decimal::ONE), classes: member.vote_class }
        }
        Mode::Peer => ModeSettings::Peer,
        Mode::Hierarchy => ModeSettings::Hierarchy { parent: member.parent.map(Arc::from) },
    };
    ResolvedMember {
        id: member.id.into(),
        role: member.role,
        persona: MemberPersona {
            reference: member.persona,
            path: found.as_ref().map(|found| found.path.clone()),
            title: found.map(|found| found.title),
        },
        mode_settings,
        timeout_ms: member.timeout_ms.unwrap_or(super::DEFAULT_TIMEOUT_MS),
        gather: member.gather_input.unwrap_or_default(),
        document: usize::from(node.document),
    }
}

fn resolve_rule(rule: super::Rule, node: &Node) -> ResolvedRule {
    let params = node.key("params").map(Node::to_exact_json);
    ResolvedRule {
        id: rule.id.into(),
        kind: rule.kind,
        applies_to: match rule.applies_to {
            Some(AppliesTo::These(ids)) => Some(ids.into_iter().map(Arc::from).collect()),
            Some(AppliesTo::All(_)) | None => None,
        },
        params: match params {
            Some(serde_json::Value::Object(params)) => params,
            _ => serde_json::Map::new(),
        },
        document: usize::from(node.document),
    }
}

fn resolve_audit(audit: Option<&super::Audit>) -> ResolvedAudit {
    let retention =
        |enabled: Option<bool>| if enabled == Some(false) { Retention::HashOnly } else { Retention::Full };
    let consultations = audit.and_then(|audit| audit.consultations.as_ref());
    let overlays = audit.and_then(|audit| audit.overlays.as_ref());
    ResolvedAudit {
        consultations: retention(consultations.and_then(|consultations| consultations.enabled)),
        retention_days: super::retention_days(audit),
        overlays: retention(overlays.and_then(|overlays| overlays.enabled)),
        max_active: overlays.and_then(|overlays| overlays.max_active).unwrap_or(DEFAULT_MAX_ACTIVE),
        default_ttl: super::default_ttl(audit),
        signing: audit.and_then(|audit| audit.signing).unwrap_or(Signing::Optional),
    }
}

/// AIP-24's table. A view's value of a key that is not listed overrides. `inherited_minimums.rs` checks the one-way keys.
const TABLE: Table = &[
    ("extends", Local),
    ("appliesTo", Local),
    ("members", ById("id")),
    ("synthesis", Fields(&[("rules", ById("id"))])),
    ("lockedTraits", Union),
    ("audit", Fields(&[("consultations", Fields(&[])), ("overlays", Fields(&[]))])),
    ("defaults", Fields(&[])),
    ("display", Fields(&[])),
    ("metadata", Deep),
];

/// A valid, merged assembly with all defaults filled in.
#[derive(Debug, Clone)]
pub struct ResolvedAssembly {
    /// The id of the leaf, in kebab case.
    pub name: String,
    /// The display name.
    pub title: String,
    /// One paragraph: the purpose, the audience, the reason for the mode.
    pub description: String,
    /// The version of the leaf, as in semantic versioning.
    pub version: String,
    /// How the members decide together.
    pub mode: Mode,
    /// In roster order.
    pub members: Vec<ResolvedMember>,
    /// In declaration order.
    pub rules: Vec<ResolvedRule>,
    /// By rising severity.
    pub risk_levels: Vec<RiskLevel>,
    pub locked_traits: Vec<DeclaredTrait>,
    /// The strictest match mode of the chain.
    pub match_mode: MatchMode,
    /// Which records are kept, and whether they are signed.
    pub audit: ResolvedAudit,
    /// Refs by key: identity, governance, work, executor.
    pub refs: BTreeMap<&'static str, String>,
    /// The consumers that the leaf applies to.
    pub applies_to: Vec<String>,
    /// When the assembly is convened automatically.
    pub defaults: Option<Defaults>,
    /// How the assembly is shown.
    pub display: Option<Display>,
    /// Data of other tools, each below its own key.
    pub metadata: Map<String, Value>,
    /// The governance files of the chain (D9).
    pub policies: Policies,
    /// The documents that were merged, root first.
    pub chain: Arc<Chain>,
}

/// A member with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedMember {
    /// Unique in the assembly.
    pub id: Arc<str>,
    /// The display name of the role.
    pub role: String,
    /// The member's persona.
    pub persona: MemberPersona,
    /// The settings that depend on the assembly's mode.
    pub mode_settings: ModeSettings,
    /// The deadline of an answer, in milliseconds.
    pub timeout_ms: u32,
    /// The input that the member gets.
    pub gather: GatherInput,
    /// Index in [`Chain::documents`] of the document whose entry applies.
    pub document: usize,
}

/// A persona, by ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPersona {
    /// The ref as written.
    pub reference: String,
    /// The file of the persona; `None` with [`crate::loader::Refs::ShapeOnly`].
    pub path: Option<WorkspacePath>,
    /// The persona's display name; `None` with [`crate::loader::Refs::ShapeOnly`].
    pub title: Option<String>,
}

/// The settings of a member that depend on the assembly's mode.
#[derive(Debug, Clone, PartialEq)]
pub enum ModeSettings {
    /// In an advisory assembly.
    Advisory {
        /// The phase in which the member is asked; `None`: it is never asked.
        phase: Option<String>,
        /// The triggers that the member answers to; `None` is all.
        triggers: Option<Vec<Trigger>>,
    },
    /// In a voting assembly.
    Voting {
        /// The weight of its vote.
        weight: Decimal,
        /// The classes of proposals that the member votes on; `None` is all.
        classes: Option<Vec<String>>,
    },
    /// In an assembly of peers.
    Peer,
    /// In a hierarchy.
    Hierarchy {
        /// The id of the member that it reports to; `None` for the root.
        parent: Option<Arc<str>>,
    },
}

/// A synthesis rule.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRule {
    /// Unique in the assembly.
    pub id: Arc<str>,
    /// The algorithm: a built-in kind, or a registered one.
    pub kind: String,
    /// Ids of the members whose outputs the rule reads; `None` is all.
    pub applies_to: Option<Vec<Arc<str>>>,
    /// The parameters. Fractional numbers are strings with the written text, since records keep decimals exactly (V3).
    pub params: Map<String, Value>,
    /// Index in [`Chain::documents`].
    pub document: usize,
}

/// A level of risk: the severities from `lowest` to `highest`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskLevel {
    /// The lowest severity of this level.
    pub lowest: u8,
    /// The highest severity of this level.
    pub highest: u8,
    /// What the level is called.
    pub label: RiskLabel,
}

/// A locked trait and the document that declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTrait {
    /// The trait.
    pub locked: LockedTrait,
    /// Index in [`Chain::documents`].
    pub document: usize,
}

/// Which records of a run are kept, and whether they are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedAudit {
    /// Retention of the members' answers.
    pub consultations: Retention,
    /// Retention of answers in days; `None` is forever.
    pub retention_days: Option<u32>,
    /// Retention of outcomes.
    pub overlays: Retention,
    /// The maximum number of active overlays.
    pub max_active: u8,
    /// The lifetime of overlays without their own.
    pub default_ttl: crate::duration::IsoDuration,
    /// Whether records are signed.
    pub signing: Signing,
}

/// How much of a record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The whole content.
    Full,
    /// The hash of the content alone.
    HashOnly,
}
