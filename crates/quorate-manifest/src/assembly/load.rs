//! From a file to a resolved assembly: its document, its chain, the floor, the checks, and what comes of it.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use super::audit::Signing;
use super::check_context::CheckContext;
use super::resolved::{
    Audit, Gather, LockedTrait, Member, ModeSettings, Persona, Resolved, Retention, RiskLevel, Rule,
};
use super::synthesis::{AppliesTo, RiskLabel};
use super::{Assembly, MatchMode, Mode, inherited_minimums, members, merge};
use crate::checks;
use crate::decimal::Decimal;
use crate::doctype::Doctype;
use crate::document::Document;
use crate::duration::IsoDuration;
use crate::governance::Policies;
use crate::loader::{Chain, ChainOutcome, Loader, Refs};
use crate::tree::Node;
use crate::{Loaded, loader};

const CHAIN_RULES: loader::ChainRules = loader::ChainRules {
    doctype: Doctype::Assembly,
    table: merge::TABLE,
    cycle: codes::ASSEMBLY_EXTENDS_CYCLE,
    missing: codes::ASSEMBLY_EXTENDS_MISSING,
    depth: codes::ASSEMBLY_EXTENDS_DEPTH_EXCEEDED,
};

/// Severities and levels of an assembly that says nothing of them (A6).
const DEFAULT_RISK_LEVELS: [RiskLevel; 4] = [
    RiskLevel { lowest: 0, highest: 2, label: RiskLabel::Ok },
    RiskLevel { lowest: 3, highest: 4, label: RiskLabel::Watch },
    RiskLevel { lowest: 5, highest: 8, label: RiskLabel::Intervene },
    RiskLevel { lowest: 9, highest: 10, label: RiskLabel::Escalate },
];

/// How long a member may take that does not say so.
const DEFAULT_TIMEOUT_MS: u32 = 30_000;
/// How a member that says nothing of it gathers its input.
const DEFAULT_STRATEGY: &str = "working-memory";
/// How many overlays are active at once unless said.
const DEFAULT_MAX_ACTIVE: u8 = 10;
/// How long an overlay holds unless said.
const DEFAULT_TTL_DAYS: u32 = 14;

/// Loads an assembly whose manifest was read. The report says everything there is to say of it and of its ancestors.
pub fn load(loader: &Loader<'_>, leaf: &Arc<Document>) -> Loaded<Resolved> {
    let mut report = Report::new();
    let ChainOutcome { chain, report: said, visited: read, .. } = loader.chain(leaf, &CHAIN_RULES);
    read.iter().for_each(|document| report.absorb(document.report.clone()));
    report.absorb(said);
    let Some(chain) = chain else { return Loaded { value: None, report } };
    report.absorb(checks::collisions(&chain.documents));
    report.absorb(inherited_minimums::check(&chain.documents));
    let value = resolve(loader, &chain, &mut report);
    Loaded { value: value.filter(|_| !report.has_refusals()), report }
}

fn resolve(loader: &Loader<'_>, chain: &Arc<Chain>, report: &mut Report) -> Option<Resolved> {
    let Some(mode) = chain.merged.key("mode").and_then(Node::as_str).and_then(Mode::parse) else {
        let leaf = chain.leaf();
        let body = Body::new("`mode` is missing, and there is no parent to inherit it from");
        report.add_source(Arc::clone(&leaf.shown), Arc::clone(&leaf.text));
        report.refuse(
            codes::ASSEMBLY_WORKSPACE_INVALID,
            body.at(leaf.key_place("extends")).help("add `mode`, or make the parent reachable"),
        );
        return None;
    };
    let numbers = checks::numbers(chain);
    let uncountable = numbers.has_refusals();
    report.absorb(numbers);
    // A number that was just refused is not refused again for not fitting its type.
    let mut again = Report::new();
    let refusals = if uncountable { &mut again } else { &mut *report };
    let written: Assembly = chain.leaf().deserialize(&chain.merged, refusals)?;
    let policies = Policies::load(loader, chain);
    let view = CheckContext::new(loader, chain, &written, mode, &policies);
    checks::ALL.iter().for_each(|check| check(&view));
    report.absorb(view.into_report());
    if report.has_refusals() { None } else { Some(build_resolved(loader, chain, written, mode, policies)) }
}

/// For each document, root first, the match mode that its traits are declared under (M9).
pub(crate) fn declared_match_modes(documents: &[Arc<Document>]) -> Vec<MatchMode> {
    let mut strictest = MatchMode::default();
    let own = |document: &Arc<Document>| {
        document.root.key("matchMode").and_then(Node::as_str).and_then(MatchMode::parse)
    };
    documents
        .iter()
        .map(|document| {
            strictest = own(document).map_or(strictest, |mode| mode.max(strictest));
            strictest
        })
        .collect()
}

fn build_resolved(
    loader: &Loader<'_>,
    chain: &Arc<Chain>,
    written: Assembly,
    mode: Mode,
    policies: Policies,
) -> Resolved {
    let root = &chain.merged;
    let declared = declared_match_modes(&chain.documents);
    let nodes = root.key("members").map_or(&[][..], Node::items);
    let members = written.members.unwrap_or_default();
    let rule_nodes = root.at_path(&["synthesis", "rules"]).map_or(&[][..], Node::items);
    let synthesis = written.synthesis;
    let (rules, levels) = synthesis.map_or((None, None), |one| (one.rules, one.risk_levels));
    Resolved {
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
            let level = |one: &super::synthesis::RiskLevel| RiskLevel {
                lowest: one.range.first().copied().unwrap_or_default(),
                highest: one.range.get(1).copied().unwrap_or_default(),
                label: one.label,
            };
            levels.iter().map(level).collect()
        }),
        locked_traits: root
            .key("lockedTraits")
            .map_or(&[][..], Node::items)
            .iter()
            .filter_map(|node| {
                let document = usize::from(node.document);
                Some(LockedTrait {
                    text: node.as_str()?.to_owned(),
                    declared_match_mode: declared[document],
                    document,
                })
            })
            .collect(),
        match_mode: written.match_mode.unwrap_or_default(),
        audit: resolve_audit(written.audit.as_ref()),
        refs: checks::xref_unresolvable::references(root),
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
    member: members::Member,
    node: &Node,
    mode: Mode,
) -> Member {
    let persona = node.key("persona").map(|persona| (persona, &chain.document_of(persona).path));
    let found = persona
        .filter(|_| loader.options.refs == Refs::Followed)
        .and_then(|(persona, from)| loader.find_persona(from, persona.as_str()?).as_ref().clone().ok());
    let seat = match mode {
        Mode::Advisory => ModeSettings::Advisory { phase: member.phase, triggers: member.triggers },
        Mode::Voting => {
            ModeSettings::Voting { weight: member.weight.unwrap_or(Decimal::ONE), classes: member.vote_class }
        }
        Mode::Peer => ModeSettings::Peer,
        Mode::Hierarchy => ModeSettings::Hierarchy { parent: member.parent.map(Arc::from) },
    };
    Member {
        id: member.id.into(),
        role: member.role,
        persona: Persona {
            reference: member.persona,
            path: found.as_ref().map(|found| found.path.clone()),
            title: found.map(|found| found.title),
        },
        mode_settings: seat,
        timeout_ms: member.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS),
        gather: member.gather_input.map_or_else(
            || Gather { strategy: DEFAULT_STRATEGY.to_owned(), params: serde_json::Map::new() },
            |gather| Gather { strategy: gather.strategy, params: gather.params.unwrap_or_default() },
        ),
        document: usize::from(node.document),
    }
}

fn resolve_rule(rule: super::synthesis::Rule, node: &Node) -> Rule {
    let params = node.key("params").map(Node::to_exact_json);
    Rule {
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

fn resolve_audit(audit: Option<&super::audit::Audit>) -> Audit {
    let kept =
        |enabled: Option<bool>| if enabled == Some(false) { Retention::HashOnly } else { Retention::Full };
    let consultations = audit.and_then(|audit| audit.consultations.as_ref());
    let overlays = audit.and_then(|audit| audit.overlays.as_ref());
    Audit {
        consultations: kept(consultations.and_then(|one| one.enabled)),
        retention_days: retention_days(audit),
        overlays: kept(overlays.and_then(|one| one.enabled)),
        max_active: overlays.and_then(|one| one.max_active).unwrap_or(DEFAULT_MAX_ACTIVE),
        default_ttl: default_ttl(audit),
        signing: audit.and_then(|audit| audit.signing).unwrap_or(Signing::Optional),
    }
}

/// For how many days answers are kept; `None` is for ever.
pub(crate) fn retention_days(audit: Option<&super::audit::Audit>) -> Option<u32> {
    let retention = audit?.consultations.as_ref()?.retention.as_deref()?;
    Some(retention.strip_prefix("days:")?.parse().unwrap_or(u32::MAX))
}

/// How long an overlay holds that does not say so itself.
pub(crate) fn default_ttl(audit: Option<&super::audit::Audit>) -> IsoDuration {
    let written = audit.and_then(|audit| audit.overlays.as_ref()?.default_ttl.as_deref()?.parse().ok());
    written.unwrap_or(IsoDuration { days: DEFAULT_TTL_DAYS, ..IsoDuration::default() })
}
