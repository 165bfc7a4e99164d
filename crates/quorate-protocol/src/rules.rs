//! Synthesis rules: one file for each built-in kind, with its name, the modes that it is for, and its parameters.

pub mod aggregate;
pub mod escalate_on_severity;
pub mod majority;
pub mod priority;
pub mod quorum;
pub mod terminal;
pub mod unanimity;

use std::collections::BTreeMap;

use quorate_manifest::form::Form;
use quorate_manifest::known::RuleKind;

/// The kinds of rules that there are.
#[derive(Debug, Clone)]
pub struct Rules {
    kinds: BTreeMap<String, RuleKind>,
}

/// A kind that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is one of that name.
    #[error("the rule kind `{0}` is registered twice")]
    Duplicate(String),
    /// The schema of its parameters uses a keyword that is not held.
    #[error("the schema of the parameters of `{0}` has a keyword that cannot be held")]
    Schema(String),
}

impl Rules {
    /// The built-in kinds.
    pub fn built_in() -> Self {
        let built_in = [
            (terminal::KIND, terminal::kind()),
            (priority::KIND, priority::kind()),
            (aggregate::KIND, aggregate::kind()),
            (quorum::KIND, quorum::kind()),
            (majority::KIND, majority::kind()),
            (unanimity::KIND, unanimity::kind()),
            (escalate_on_severity::KIND, escalate_on_severity::kind()),
        ];
        Rules { kinds: built_in.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect() }
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// When there is one of that name, or its parameters' schema cannot be held.
    pub fn register(&mut self, name: &str, kind: RuleKind) -> Result<(), Error> {
        if self.kinds.contains_key(name) {
            return Err(Error::Duplicate(name.to_owned()));
        }
        if Form::read(&kind.params).is_none() {
            return Err(Error::Schema(name.to_owned()));
        }
        self.kinds.insert(name.to_owned(), kind);
        Ok(())
    }

    /// A kind by its name.
    pub fn get(&self, name: &str) -> Option<&RuleKind> {
        self.kinds.get(name)
    }

    /// The names of all kinds.
    pub fn names(&self) -> Vec<&str> {
        self.kinds.keys().map(String::as_str).collect()
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules::built_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_held_to_its_parameters() {
        // M16.
        for name in Rules::built_in().names() {
            let rules = Rules::built_in();
            let kind = rules.get(name).expect("its own name");
            let form =
                Form::read(&kind.params).unwrap_or_else(|| panic!("{name}: a keyword that is not held"));
            let needs = form.misfits(&serde_json::json!({}));
            assert_eq!(needs.is_empty(), name != quorum::KIND, "{name}: {needs:?}");
            assert!(!form.fits(&serde_json::json!({"thresold": 1})), "{name}: a slip of the finger passes");
        }
    }

    #[test]
    fn a_kind_is_registered_once_and_with_a_schema_that_holds() {
        let mut rules = Rules::built_in();
        let kind = || rules_kind(serde_json::json!({"type": "object"}));
        assert_eq!(rules.register("coin", kind()), Ok(()));
        assert_eq!(rules.register("coin", kind()), Err(Error::Duplicate("coin".to_owned())));
        assert_eq!(rules.register(quorum::KIND, kind()), Err(Error::Duplicate(quorum::KIND.to_owned())));
        let odd = rules_kind(serde_json::json!({"contains": {}}));
        assert_eq!(rules.register("odd", odd), Err(Error::Schema("odd".to_owned())));
    }

    fn rules_kind(params: serde_json::Value) -> RuleKind {
        RuleKind { params, ..unanimity::kind() }
    }
}
