//! An assembly as it is convened: merged along its chain, every default filled in, valid by type.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::audit::Signing;
use super::defaults::Defaults;
use super::display::Display;
use super::members::Trigger;
use super::synthesis::RiskLabel;
use super::{MatchMode, Mode};
use crate::decimal::Decimal;
use crate::governance::Policies;
use crate::loader::Chain;
use crate::workspace::WorkspacePath;

/// An assembly as it is convened.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it is for.
    pub description: String,
    pub version: String,
    /// How its members decide.
    pub mode: Mode,
    /// Who decides, in roster order.
    pub members: Vec<Member>,
    /// The rules, in the order of declaration.
    pub rules: Vec<Rule>,
    /// The levels of risk, in the order of their severities.
    pub risk_levels: Vec<RiskLevel>,
    /// What no outcome may contain.
    pub locked_traits: Vec<LockedTrait>,
    /// The strictest way of matching of the chain.
    pub match_mode: MatchMode,
    pub audit: Audit,
    /// The refs to other things, by key: identity, governance, work, executor.
    pub refs: BTreeMap<&'static str, String>,
    /// The consumers that the leaf applies to.
    pub applies_to: Vec<String>,
    /// When it is convened without being asked.
    pub defaults: Option<Defaults>,
    /// How it is shown.
    pub display: Option<Display>,
    pub metadata: Map<String, Value>,
    /// What governs it (D9).
    pub policies: Policies,
    /// The chain that it was made of.
    pub chain: Arc<Chain>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: Arc<str>,
    /// What people call the role.
    pub role: String,
    pub persona: Persona,
    /// What it does in this mode.
    pub mode_settings: ModeSettings,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u32,
    /// What it is given to read.
    pub gather: Gather,
    /// The document that first named it, root first.
    pub document: usize,
}

/// A persona, by ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    /// The ref as written.
    pub reference: String,
    /// Its file; `None` where refs were not followed.
    pub path: Option<WorkspacePath>,
    /// What people call it; `None` where refs were not followed.
    pub title: Option<String>,
}

/// What a member does in its assembly's mode.
#[derive(Debug, Clone, PartialEq)]
pub enum ModeSettings {
    Advisory {
        /// In this phase; in none it is never asked.
        phase: Option<String>,
        /// On these triggers; `None` is all.
        triggers: Option<Vec<Trigger>>,
    },
    Voting {
        /// What its vote counts.
        weight: Decimal,
        /// On these classes of proposals; `None` is all.
        classes: Option<Vec<String>>,
    },
    Peer,
    Hierarchy {
        /// To this member; the root to nobody.
        parent: Option<Arc<str>>,
    },
}

/// What a member is given to read.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    pub strategy: String,
    /// What the strategy is set up with.
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: Arc<str>,
    pub kind: String,
    /// Whose outputs it looks at; `None` is everybody's.
    pub applies_to: Option<Vec<Arc<str>>>,
    /// What it is set up with. Numbers that are not whole are texts, exactly as they were written (V3).
    pub params: Map<String, Value>,
    /// The document that it comes from, root first.
    pub document: usize,
}

/// A level of risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiskLevel {
    /// The lowest severity of this level.
    pub lowest: u8,
    /// The highest severity of this level.
    pub highest: u8,
    /// What it is called.
    pub label: RiskLabel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedTrait {
    /// The trait as written.
    pub text: String,
    /// How it was meant to be matched where it was declared.
    pub declared_match_mode: MatchMode,
    /// The document that declared it, root first.
    pub document: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audit {
    /// Whether members' answers are kept.
    pub consultations: Retention,
    /// For how many days; `None` is for ever.
    pub retention_days: Option<u32>,
    /// Whether outcomes are kept.
    pub overlays: Retention,
    /// How many overlays are active at once.
    pub max_active: u8,
    /// How long an overlay holds that does not say so itself, as an ISO 8601 duration that was checked.
    pub default_ttl: crate::duration::IsoDuration,
    /// Whether records are signed.
    pub signing: Signing,
}

/// Whether something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    Full,
    /// Only its hash is.
    HashOnly,
}
