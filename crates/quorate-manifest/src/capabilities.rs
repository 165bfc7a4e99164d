//! What the running program supports: registered kinds, patterns, embedders and public keys. The loader asks through
//! [`Capabilities`]; this crate names no kind itself.

use quorate_text::locks::TraitReach;
use serde_json::Value;

use crate::assembly::{MatchMode, Mode};

/// What the running program supports.
pub trait Capabilities: Send + Sync {
    /// A kind of synthesis rule; `None` if it is not registered.
    fn rule_kind(&self, kind: &str) -> Option<RuleKind>;

    /// All kinds of synthesis rules, for suggestions.
    fn rule_kinds(&self) -> Vec<&str>;

    /// Whether a gather strategy is registered.
    fn has_gather_strategy(&self, strategy: &str) -> bool;

    /// All gather strategies, for suggestions.
    fn gather_strategies(&self) -> Vec<&str>;

    /// The JSON Schema of a gather strategy's parameters, which may use the keywords that
    /// [`crate::json_schema::CompiledSchema`] supports; `None` if the strategy accepts any parameters.
    fn gather_params_schema(&self, strategy: &str) -> Option<Value> {
        let _ = strategy;
        None
    }

    /// Checks that a locked trait is a usable regular expression.
    ///
    /// # Errors
    /// The reason why the pattern cannot be used.
    fn check_pattern(&self, pattern: &str) -> Result<(), String>;

    /// Whether a locked trait, under the mode in which it is declared, matches no text or every text; `None` for a trait that
    /// matches some texts, or if the program cannot tell.
    fn trait_reach(&self, text: &str, declared: MatchMode) -> Option<TraitReach> {
        let _ = (text, declared);
        None
    }

    /// Whether an embedder is registered, which compares texts by meaning.
    fn has_embedder(&self) -> bool;

    /// Checks that a text is a public key that can verify signatures.
    ///
    /// # Errors
    /// The reason why the text is not such a key.
    fn check_public_key(&self, text: &str) -> Result<(), PublicKeyError>;
}

/// Why a text is not a public key that can verify signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKeyError {
    /// The text does not have the form of Quorate's keys; it may be a key of another kind.
    Foreign,
    /// The text has the form of Quorate's keys, but is not valid; the reason.
    Malformed(String),
}

/// A kind of synthesis rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleKind {
    /// The modes that support the kind.
    pub modes: Vec<Mode>,
    /// The JSON Schema of its parameters; may use the keywords that [`crate::json_schema::CompiledSchema`] supports.
    pub params: Value,
    /// The parameters that name a member.
    pub member_params: &'static [&'static str],
    /// The parameters that map members to lists of members.
    pub member_map_params: &'static [&'static str],
    /// The parameters that name a kind of rule, each with the other words that it accepts.
    pub rule_kind_params: &'static [(&'static str, &'static [&'static str])],
    /// The parameters that are ISO 8601 durations.
    pub duration_params: &'static [&'static str],
    /// The parameters that are durations in milliseconds.
    pub millisecond_params: &'static [&'static str],
    /// Whether a rule that fires ends the synthesis: later rules are skipped.
    pub ends_synthesis: bool,
    /// The parameters that name a class of proposals.
    pub class_params: &'static [&'static str],
    /// Whether a rule of the kind decides regardless of the answers, so that a later rule for the same decision never runs.
    /// Applies to modes in which the first rule that decides sets the result: voting and hierarchy.
    pub always_decides: bool,
    /// The parameters with which a rule of a kind that always decides may leave the decision to the next rule.
    pub conditional_params: &'static [&'static str],
    /// The parameters that a rule of the kind reads only in some of its modes.
    pub mode_params: &'static [(&'static str, &'static [Mode])],
    /// The parameters that have an effect only in the first rule of the kind.
    pub first_rule_only_params: &'static [&'static str],
    /// `(parameter, other, value)`: the parameter has an effect only if `other` has this value.
    pub dependent_params: &'static [(&'static str, &'static str, &'static str)],
    /// `(parameter, other)`: the parameter has no effect in a rule that has `other`.
    pub shadowed_params: &'static [(&'static str, &'static str)],
}

/// Capabilities of a program that registers nothing: for manifests that need none, and for checks of shape alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCapabilities;

impl Capabilities for NoCapabilities {
    fn rule_kind(&self, _: &str) -> Option<RuleKind> {
        None
    }

    fn rule_kinds(&self) -> Vec<&str> {
        Vec::new()
    }

    fn has_gather_strategy(&self, _: &str) -> bool {
        false
    }

    fn gather_strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn check_pattern(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn has_embedder(&self) -> bool {
        false
    }

    fn check_public_key(&self, _: &str) -> Result<(), PublicKeyError> {
        Ok(())
    }
}
