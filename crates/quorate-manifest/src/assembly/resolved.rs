//! An assembly as `convene` uses it: merged along its chain, with all defaults filled in.

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

/// A valid, merged assembly with all defaults filled in.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub name: String,
    pub title: String,
    pub description: String,
    pub version: String,
    pub mode: Mode,
    /// In roster order.
    pub members: Vec<Member>,
    /// In declaration order.
    pub rules: Vec<Rule>,
    /// By rising severity.
    pub risk_levels: Vec<RiskLevel>,
    pub locked_traits: Vec<LockedTrait>,
    /// The strictest match mode of the chain.
    pub match_mode: MatchMode,
    pub audit: Audit,
    /// Refs by key: identity, governance, work, executor.
    pub refs: BTreeMap<&'static str, String>,
    /// The consumers that the leaf applies to.
    pub applies_to: Vec<String>,
    pub defaults: Option<Defaults>,
    pub display: Option<Display>,
    pub metadata: Map<String, Value>,
    /// The governance files of the chain (D9).
    pub policies: Policies,
    pub chain: Arc<Chain>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: Arc<str>,
    /// The display name of the role.
    pub role: String,
    pub persona: Persona,
    pub mode_settings: ModeSettings,
    pub timeout_ms: u32,
    pub gather: Gather,
    /// Index in [`Chain::documents`] of the document whose entry applies.
    pub document: usize,
}

/// A persona, by ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    /// The ref as written.
    pub reference: String,
    /// `None` with [`crate::loader::Refs::ShapeOnly`].
    pub path: Option<WorkspacePath>,
    /// `None` with [`crate::loader::Refs::ShapeOnly`].
    pub title: Option<String>,
}

/// The settings of a member that depend on the assembly's mode.
#[derive(Debug, Clone, PartialEq)]
pub enum ModeSettings {
    Advisory {
        /// `None`: the member is never asked.
        phase: Option<String>,
        /// `None` is all.
        triggers: Option<Vec<Trigger>>,
    },
    Voting {
        weight: Decimal,
        /// The classes of proposals that the member votes on; `None` is all.
        classes: Option<Vec<String>>,
    },
    Peer,
    Hierarchy {
        /// `None` for the root.
        parent: Option<Arc<str>>,
    },
}

/// The input that a member gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    pub strategy: String,
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub id: Arc<str>,
    pub kind: String,
    /// Ids of the members whose outputs the rule reads; `None` is all.
    pub applies_to: Option<Vec<Arc<str>>>,
    /// Fractional numbers are strings with the written text (V3).
    pub params: Map<String, Value>,
    /// Index in [`Chain::documents`].
    pub document: usize,
}

/// A level of risk: the severities from `lowest` to `highest`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiskLevel {
    pub lowest: u8,
    pub highest: u8,
    pub label: RiskLabel,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedTrait {
    /// The trait as written.
    pub text: String,
    /// The match mode in the document that declares the trait.
    pub declared_match_mode: MatchMode,
    /// Index in [`Chain::documents`].
    pub document: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audit {
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
    pub signing: Signing,
}

/// How much of a record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    Full,
    HashOnly,
}
