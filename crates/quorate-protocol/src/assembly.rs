//! The setup of an assembly's run: the resolved manifest and the request, in the form that `run.opened` stores, so that a
//! run can be derived from the ledger alone.

use std::collections::BTreeSet;

use quorate_manifest::assembly::{MatchMode, Mode, ResolvedAssembly, load};
use quorate_manifest::decimal::Decimal;
use quorate_manifest::workspace::Scope;
use serde::{Deserialize, Serialize};
use serde_json::Map;

pub use quorate_manifest::assembly::load::RiskLevel;

use crate::locks::LockedTrait;
use crate::{Json, Name, PartKind};

/// The phase that can end an advisory run before the others are asked.
pub const SENTINEL: &str = "sentinel";

/// What an assembly's run is set up with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The assembly's name, with its tenant before it where it has one.
    pub assembly: Name,
    /// How its members decide.
    pub mode: Mode,
    /// Its members, in roster order.
    pub members: Vec<Member>,
    /// Its rules, in the order of declaration.
    pub rules: Vec<Rule>,
    /// Which severity is which level of risk.
    pub risk_levels: Vec<RiskLevel>,
    /// The traits that no outcome may contain.
    pub locked_traits: Vec<LockedTrait>,
    /// The strictest way of matching of the chain.
    pub match_mode: MatchMode,
    /// Whether the host can compare by meaning.
    pub embeds: bool,
    /// How long an overlay holds, how many are active, and whether outcomes are kept.
    pub overlays: Overlays,
    /// The operators that its overlays target (A8); one empty id if none is named.
    pub operators: Vec<String>,
    /// The refs that an outcome carries: identity, work, executor.
    pub refs: Map<String, Json>,
    /// The request of the run.
    pub request: AssemblyRequest,
    /// Whether a vote ends once what is out cannot change it (V7).
    pub early_decision: bool,
}

/// A member of the roster, with what its mode needs of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Unique in the roster.
    pub id: Name,
    /// What people call the role.
    pub role: String,
    /// Advisory: its phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Advisory: the triggers on which it is asked; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Vec<String>>,
    /// Voting: the weight of the vote, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Voting: the classes that it votes on; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote_class: Option<Vec<String>>,
    /// Hierarchy: to whom it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// How it is given what to read.
    pub strategy: Name,
    /// The parameters of the strategy.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Json>,
    /// The layer whose entry applies, root first.
    pub layer: usize,
}

/// A rule of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Unique among the rules.
    pub id: Name,
    /// The name of a built-in kind, or of a kind that the host registered.
    pub kind: Name,
    /// Whose outputs it looks at; `None` is everybody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies_to: Option<Vec<Name>>,
    /// The parameters; numbers that are not whole are texts, verbatim.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Json>,
}

/// What becomes of outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlays {
    /// Whether they are kept; otherwise only their hash is (D8).
    pub enabled: bool,
    /// How many are active at once, for each operator.
    pub max_active: u8,
    /// The default lifetime of an overlay, as an ISO 8601 duration.
    pub default_ttl: String,
}

/// The request of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum AssemblyRequest {
    /// Advise on a conversation.
    Advisory {
        /// The members of this phase.
        phase: String,
        /// The event that triggered the request.
        trigger: String,
        /// Whether the sentinel phase runs before and can end it.
        sentinel_first: bool,
    },
    /// Vote on a proposal.
    Voting {
        /// The class of the proposal; rules with another scope do not count.
        class: Option<String>,
    },
    /// Talk about a topic.
    Peer {
        /// The maximum number of rounds, overrides the manifest.
        rounds: Option<u32>,
    },
    /// Assess a request.
    Hierarchy,
}

/// The trigger of a run whose mode has no triggers: a person, or a person's program, convened it.
const CONVENED: &str = "manual";

impl AssemblyRequest {
    /// The event that started the run (D7).
    pub fn trigger(&self) -> &str {
        match self {
            AssemblyRequest::Advisory { trigger, .. } => trigger,
            AssemblyRequest::Voting { .. } | AssemblyRequest::Peer { .. } | AssemblyRequest::Hierarchy => {
                CONVENED
            }
        }
    }
}

/// What a mode's run is about.
pub fn subject_kind(mode: Mode) -> PartKind {
    match mode {
        Mode::Advisory => PartKind::Conversation,
        Mode::Voting => PartKind::Proposal,
        Mode::Peer => PartKind::Topic,
        Mode::Hierarchy => PartKind::Request,
    }
}

impl Setup {
    /// The classes of proposals that a member's `voteClass` or a rule's scope names, each once.
    pub fn classes(&self) -> BTreeSet<&str> {
        let by_member = self.members.iter().filter_map(|member| member.vote_class.as_ref()).flatten();
        by_member.map(String::as_str).chain(self.rules.iter().filter_map(Rule::scope)).collect()
    }

    /// The setup of a resolved assembly, for a host that does not compare by meaning and waits for all votes. `request` has
    /// to be of the assembly's mode.
    pub fn from_resolved(resolved: &ResolvedAssembly, request: AssemblyRequest) -> Setup {
        let tenant = resolved.chain.leaf().path.scope().tenant().map(str::to_owned);
        let name = &resolved.name;
        Setup {
            assembly: tenant.map_or_else(|| name.clone(), |tenant| format!("{tenant}/{name}")).into(),
            mode: resolved.mode,
            members: resolved.members.iter().map(to_member).collect(),
            rules: resolved.rules.iter().map(to_rule).collect(),
            risk_levels: resolved.risk_levels.clone(),
            locked_traits: resolved.locked_traits.iter().map(|declared| declared.locked.clone()).collect(),
            match_mode: resolved.match_mode,
            embeds: false,
            overlays: Overlays {
                enabled: resolved.audit.overlays == load::Retention::Full,
                max_active: resolved.audit.max_active,
                default_ttl: resolved.audit.default_ttl.to_string(),
            },
            operators: operator_ids(resolved),
            refs: ["identity", "work", "executor"]
                .into_iter()
                .filter_map(|key| Some((key.to_owned(), Json::from(resolved.refs.get(key)?.clone()))))
                .collect(),
            request,
            early_decision: false,
        }
    }
}

/// A8: the operators of the leaf's `appliesTo`, else the executor, else one empty id; each in the scope of the
/// layer that names it (M10).
pub fn operator_ids(resolved: &ResolvedAssembly) -> Vec<String> {
    let slug = |reference: &str, scope: &Scope| {
        reference.strip_prefix("ws://operators/").map(|slug| operator_id(scope, slug))
    };
    let leaf = resolved.chain.leaf().path.scope();
    let mut named: Vec<String> =
        resolved.applies_to.iter().filter_map(|reference| slug(reference, leaf)).collect();
    if named.is_empty() {
        let chain = &resolved.chain;
        let scope = chain.merged.key("executor").map(|node| chain.document_of(node).path.scope());
        named.extend(resolved.refs.get("executor").zip(scope).and_then(|(one, scope)| slug(one, scope)));
    }
    if named.is_empty() {
        named.push(String::new());
    }
    named
}

/// Where advice goes, in words, by the operators of [`operator_ids`].
pub fn describe_operators(operators: &[String]) -> String {
    let named: Vec<String> = operators
        .iter()
        .filter(|operator| !operator.is_empty())
        .map(|operator| format!("`{operator}`"))
        .collect();
    match named.is_empty() {
        true => "goes to nobody: name an operator in `executor`, or in `appliesTo` of a view".to_owned(),
        false => format!("goes to {}", named.join(", ")),
    }
}

/// An operator, as overlays name it: a tenant's with the tenant before it.
pub fn operator_id(scope: &Scope, slug: &str) -> String {
    scope.tenant().map_or_else(|| slug.to_owned(), |tenant| format!("{tenant}/{slug}"))
}

fn to_member(member: &load::ResolvedMember) -> Member {
    let (mut phase, mut triggers, mut weight, mut vote_class, mut parent) = (None, None, None, None, None);
    match &member.mode_settings {
        load::ModeSettings::Advisory { phase: in_phase, triggers: on } => {
            phase.clone_from(in_phase);
            triggers = on.as_ref().map(|all| all.iter().map(|trigger| trigger.as_str().to_owned()).collect());
        }
        load::ModeSettings::Voting { weight: counts, classes } => {
            weight = Some(decimal_text(*counts));
            vote_class.clone_from(classes);
        }
        load::ModeSettings::Peer => {}
        load::ModeSettings::Hierarchy { parent: to } => parent.clone_from(to),
    }
    Member {
        id: member.id.clone(),
        role: member.role.clone(),
        phase,
        triggers,
        weight,
        vote_class,
        parent,
        strategy: member.gather.strategy.as_str().into(),
        params: member.gather.params.clone(),
        layer: member.document,
    }
}

fn to_rule(rule: &load::ResolvedRule) -> Rule {
    Rule {
        id: rule.id.clone(),
        kind: rule.kind.as_str().into(),
        applies_to: rule.applies_to.clone(),
        params: rule.params.clone(),
    }
}

/// A decimal without trailing zeros.
pub(crate) fn decimal_text(decimal: Decimal) -> String {
    let (digits, scale) = (decimal.digits(), decimal.scale() as usize);
    let sign = if digits < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

impl Member {
    /// Whether it votes on proposals of a class (V1).
    pub fn votes_on(&self, class: Option<&str>) -> bool {
        match &self.vote_class {
            None => true,
            Some(classes) => class.is_some_and(|class| classes.iter().any(|candidate| candidate == class)),
        }
    }

    /// What its vote counts.
    pub(crate) fn vote_weight(&self) -> Decimal {
        self.weight.as_deref().and_then(|weight| weight.parse().ok()).unwrap_or(Decimal::ONE)
    }
}

impl Rule {
    /// A rule that applies where a manifest has none.
    pub(crate) fn implicit(id: &str, kind: &str) -> Rule {
        Rule { id: id.into(), kind: kind.into(), applies_to: None, params: Map::new() }
    }

    /// Whether it looks at a member's output.
    pub fn applies_to_member(&self, member: &str) -> bool {
        self.applies_to.as_ref().is_none_or(|ids| ids.iter().any(|id| **id == *member))
    }

    /// The class of proposals that it counts for alone.
    pub fn scope(&self) -> Option<&str> {
        self.text_param("scope")
    }

    pub(crate) fn text_param(&self, key: &str) -> Option<&str> {
        self.params.get(key).and_then(Json::as_str)
    }

    /// An integer, also where it is written `7.0`.
    pub(crate) fn integer_param(&self, key: &str) -> Option<u64> {
        let decimal = self.decimal_param(key).filter(|decimal| decimal.scale() == 0)?;
        u64::try_from(decimal.digits()).ok()
    }

    /// A severity or a priority.
    pub(crate) fn u8_param(&self, key: &str) -> Option<u8> {
        self.integer_param(key).and_then(|number| u8::try_from(number).ok())
    }

    pub(crate) fn bool_param(&self, key: &str) -> bool {
        self.params.get(key) == Some(&Json::Bool(true))
    }

    /// A number, verbatim (V3).
    pub(crate) fn decimal_param(&self, key: &str) -> Option<Decimal> {
        match self.params.get(key)? {
            Json::String(text) => text.parse().ok(),
            Json::Number(number) => number.to_string().parse().ok(),
            _ => None,
        }
    }
}
