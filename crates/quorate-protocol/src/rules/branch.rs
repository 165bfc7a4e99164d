//! A node of a hierarchy with what its children have passed up, as rules see it, and what they make of it.

use crate::Name;
use crate::answers::advice::Advice;

/// What a rule of a node looks at.
pub(crate) struct Branch {
    /// The node's own answer, where it has one.
    pub(crate) own: Option<Advice>,
    /// What its children have passed up, in roster order; those who passed up nothing are not among them.
    pub(crate) children: Vec<Child>,
}

/// What a child has passed up.
pub(crate) struct Child {
    pub(crate) member: Name,
    pub(crate) advice: Advice,
}

/// What a rule makes of a branch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rollup {
    pub(crate) advice: Advice,
    /// The children that it is made of.
    pub(crate) sources: Vec<Name>,
}

/// All evidence in order, each piece once.
pub(crate) fn union<'a>(all: impl Iterator<Item = &'a Advice>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    let mut union = Vec::new();
    for piece in all.flat_map(|one| &one.evidence) {
        if seen.insert(piece.as_str()) {
            union.push(piece.clone());
        }
    }
    union
}
