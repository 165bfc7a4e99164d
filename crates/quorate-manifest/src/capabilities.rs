//! What only the running program knows: which kinds are registered, what can be matched and signed. Manifests ask it
//! through [`Capabilities`] and name no kind themselves.

use serde_json::Value;

use crate::assembly::Mode;

/// What the running program can do.
pub trait Capabilities: Send + Sync {
    /// A kind of synthesis rule; `None` where nobody registered it.
    fn rule_kind(&self, kind: &str) -> Option<RuleKind>;

    /// All kinds of synthesis rules, for suggestions.
    fn rule_kinds(&self) -> Vec<&str>;

    /// Whether a gather strategy is registered.
    fn has_gather_strategy(&self, strategy: &str) -> bool;

    /// All gather strategies, for suggestions.
    fn gather_strategies(&self) -> Vec<&str>;

    /// The JSON Schema of a gather strategy's parameters, only with keywords that [`crate::json_schema::CompiledSchema`] holds; `None` where
    /// the strategy reads whatever is written.
    fn gather_params_schema(&self, strategy: &str) -> Option<Value> {
        let _ = strategy;
        None
    }

    /// Whether a locked trait can be matched as a regular expression.
    ///
    /// # Errors
    /// Why it cannot.
    fn check_pattern(&self, pattern: &str) -> Result<(), String>;

    /// Whether texts can be compared by their meaning.
    fn has_embedder(&self) -> bool;

    /// Whether a text is a public key that signatures can be verified with.
    ///
    /// # Errors
    /// Why it is none.
    fn check_public_key(&self, text: &str) -> Result<(), PublicKeyError>;
}

/// Why a text is no public key that signatures can be verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicKeyError {
    /// It is written as none of ours is; it may be a key of another kind.
    Foreign,
    /// It is written as ours are, and is none; why.
    Malformed(String),
}

/// A kind of synthesis rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleKind {
    /// The modes that it is for.
    pub modes: Vec<Mode>,
    /// The JSON Schema of its parameters; only keywords that [`crate::json_schema::CompiledSchema`] holds.
    pub params: Value,
    /// The parameters that name a member.
    pub member_params: &'static [&'static str],
    /// The parameters that map members to lists of members.
    pub member_map_params: &'static [&'static str],
    /// The parameters that name a kind of rule, each with the words that it can have instead.
    pub rule_kind_params: &'static [(&'static str, &'static [&'static str])],
    /// The parameters that are ISO 8601 durations.
    pub duration_params: &'static [&'static str],
    /// Whether it can end the synthesis by itself.
    pub ends_synthesis: EndsSynthesis,
    /// The parameters that name a class of proposals.
    pub class_params: &'static [&'static str],
    /// Whether a rule of it decides whatever the votes are, so that a veto behind it is not asked.
    pub always_decides: bool,
    /// The parameters that count in the first rule of the kind alone, in peer mode.
    pub first_rule_only_params: &'static [&'static str],
    /// Parameters that count only beside another one with this value.
    pub dependent_params: &'static [(&'static str, &'static str, &'static str)],
}

/// Whether a rule can end the synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EndsSynthesis {
    /// When it fires, no later rule is looked at.
    Yes,
    /// Later rules go on.
    #[default]
    No,
}

/// A program that registers nothing: for what asks it nothing, and for looking at shapes alone.
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
