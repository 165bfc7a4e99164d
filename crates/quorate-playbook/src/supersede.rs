//! Which playbook replaces which: `supersedes` of playbooks that are active at the same time. A promotion archives what the
//! playbook supersedes; this module handles files edited by hand, of which both may be active.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::gate::GOVERNANCE_PRIORITY;

/// What playbooks say that they take the place of, by slug.
#[derive(Debug, Clone, Default)]
pub struct Supersessions<'p>(BTreeMap<&'p str, (u8, &'p [String])>);

/// Why a playbook does not take the place of another one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEffect {
    /// There is no such playbook.
    Unknown,
    /// The other one takes the place of this one, itself or over others.
    Mutual,
    /// A playbook that governance promoted is superseded only by another one that governance promoted.
    Governed,
}

impl<'p> Supersessions<'p> {
    /// The claims of playbooks, each with its slug, its priority and what it supersedes.
    pub fn new(all: impl IntoIterator<Item = (&'p str, u8, &'p [String])>) -> Self {
        Supersessions(all.into_iter().map(|(slug, priority, others)| (slug, (priority, others))).collect())
    }

    /// Whether a playbook takes the place of another one.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, by: &str, other: &str) -> Result<(), NoEffect> {
        let (Some((own, _)), Some((priority, _))) = (self.0.get(by), self.0.get(other)) else {
            return Err(NoEffect::Unknown);
        };
        if self.reaches(other, by) {
            return Err(NoEffect::Mutual);
        }
        match *priority >= GOVERNANCE_PRIORITY && *own < GOVERNANCE_PRIORITY {
            true => Err(NoEffect::Governed),
            false => Ok(()),
        }
    }

    /// Those whose place another one has taken, with the slug of that one.
    pub fn superseded(&self) -> BTreeMap<&'p str, &'p str> {
        let mut superseded = BTreeMap::new();
        for (by, (_, others)) in &self.0 {
            for other in others.iter().filter(|other| self.check(by, other).is_ok()) {
                if let Some((other, _)) = self.0.get_key_value(other.as_str()) {
                    superseded.entry(*other).or_insert(*by);
                }
            }
        }
        superseded
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(slug) = open.pop() {
            if slug == to {
                return true;
            }
            if let Some((_, others)) = self.0.get(slug).filter(|_| seen.insert(slug)) {
                open.extend(others.iter().map(String::as_str));
            }
        }
        false
    }
}

impl fmt::Display for NoEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoEffect::Unknown => "there is no such playbook",
            NoEffect::Mutual => "each of them supersedes the other, so neither takes the other's place",
            NoEffect::Governed => "that has a priority which only governance promotes, and this one has not",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_the_place_of_what_it_names_and_no_two_of_each_other() {
        // B6
        let names = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let (b, c, none) = (names(&["b", "gone", "governed"]), names(&["c"]), names(&[]));
        let (x, y, z) = (names(&["y"]), names(&["z"]), names(&["x", "c"]));
        let claims = Supersessions::new([
            ("a", 50, b.as_slice()),
            ("b", 50, c.as_slice()),
            ("c", 50, none.as_slice()),
            ("governed", 75, none.as_slice()),
            ("x", 50, x.as_slice()),
            ("y", 50, y.as_slice()),
            ("z", 50, z.as_slice()),
        ]);
        assert_eq!(claims.superseded(), BTreeMap::from([("b", "a"), ("c", "b")]));
        assert_eq!(claims.check("a", "gone"), Err(NoEffect::Unknown));
        assert_eq!(claims.check("a", "governed"), Err(NoEffect::Governed));
        for (by, other) in [("x", "y"), ("y", "z"), ("z", "x")] {
            assert_eq!(claims.check(by, other), Err(NoEffect::Mutual), "{by} {other}");
        }
        assert_eq!(claims.check("z", "c"), Ok(()));
        let own = names(&["a"]);
        assert_eq!(Supersessions::new([("a", 50, own.as_slice())]).check("a", "a"), Err(NoEffect::Mutual));
    }
}
