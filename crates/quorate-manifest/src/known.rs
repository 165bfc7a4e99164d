//! What only the running program knows: which kinds are registered, what can be matched and signed. Manifests ask it
//! through [`Host`] and name no kind themselves.

use serde_json::Value;

use crate::assembly::Mode;

/// What the running program can do.
pub trait Host: Send + Sync {
    /// A kind of synthesis rule; `None` where nobody registered it.
    fn rule(&self, kind: &str) -> Option<RuleKind>;

    /// All kinds of synthesis rules, for suggestions.
    fn rules(&self) -> Vec<&str>;

    /// Whether a gather strategy is registered.
    fn gathers(&self, strategy: &str) -> bool;

    /// All gather strategies, for suggestions.
    fn strategies(&self) -> Vec<&str>;

    /// The JSON Schema of a gather strategy's parameters, only with keywords that [`crate::form::Form`] holds; `None` where
    /// the strategy reads whatever is written.
    fn gather_params(&self, strategy: &str) -> Option<Value> {
        let _ = strategy;
        None
    }

    /// Whether a locked trait can be matched as a regular expression.
    ///
    /// # Errors
    /// Why it cannot.
    fn pattern(&self, pattern: &str) -> Result<(), String>;

    /// Whether texts can be compared by their meaning.
    fn embeds(&self) -> bool;

    /// Whether a text is a public key that signatures can be verified with.
    ///
    /// # Errors
    /// Why it is none.
    fn public_key(&self, text: &str) -> Result<(), NoKey>;
}

/// Why a text is no public key that signatures can be verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoKey {
    /// It is written as none of ours is; it may be a key of another kind.
    Foreign,
    /// It is written as ours are, and is none; why.
    Broken(String),
}

/// A kind of synthesis rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleKind {
    /// The modes that it is for.
    pub modes: Vec<Mode>,
    /// The JSON Schema of its parameters; only keywords that [`crate::form::Form`] holds.
    pub params: Value,
    /// The parameters that name a member.
    pub names_member: &'static [&'static str],
    /// The parameters that map members to lists of members.
    pub names_members: &'static [&'static str],
    /// The parameters that name a kind of rule, each with the words that it can have instead.
    pub names_kind: &'static [(&'static str, &'static [&'static str])],
    /// The parameters that are ISO 8601 durations.
    pub durations: &'static [&'static str],
    /// Whether it can end the synthesis by itself.
    pub ends: Ends,
    /// The parameters that name a class of proposals.
    pub names_class: &'static [&'static str],
    /// Whether a rule of it decides whatever the votes are, so that a veto behind it is not asked.
    pub settles: bool,
    /// The parameters that count in the first rule of the kind alone, in peer mode.
    pub first_alone: &'static [&'static str],
    /// Parameters that count only beside another one with this value.
    pub beside: &'static [(&'static str, &'static str, &'static str)],
}

/// Whether a rule can end the synthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// When it fires, no later rule is looked at.
    Yes,
    /// Later rules go on.
    #[default]
    No,
}

/// A program that registers nothing: for what asks it nothing, and for looking at shapes alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Host for Nothing {
    fn rule(&self, _: &str) -> Option<RuleKind> {
        None
    }

    fn rules(&self) -> Vec<&str> {
        Vec::new()
    }

    fn gathers(&self, _: &str) -> bool {
        false
    }

    fn strategies(&self) -> Vec<&str> {
        Vec::new()
    }

    fn pattern(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn embeds(&self) -> bool {
        false
    }

    fn public_key(&self, _: &str) -> Result<(), NoKey> {
        Ok(())
    }
}
