//! The caller's variables, which configurations may name and whose secrets are redacted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use quorate_kernel::redact::{is_worth_redacting, names_a_secret};

#[derive(Clone, Default)]
pub struct Variables(Arc<BTreeMap<String, String>>);

/// Shows names only: a value may be a secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Variables(Arc::new(variables.into_iter().collect()))
    }
}

impl Variables {
    /// A variable's value; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The values to redact: of variables whose name indicates a secret, and of those `forwarded` to members. Paths, words and
    /// short values are not redacted.
    pub fn secrets(&self, forwarded: &BTreeSet<String>) -> Vec<String> {
        let holds = |(name, value): (&String, &String)| {
            let named = names_a_secret(name);
            let is_secret = (named || forwarded.contains(name)) && is_worth_redacting(value, named);
            is_secret.then(|| value.clone())
        };
        self.0.iter().filter_map(holds).collect()
    }
}
