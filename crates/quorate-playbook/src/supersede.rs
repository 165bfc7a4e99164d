//! What takes the place of what: `supersedes` of playbooks that hold at the same time. A promotion archives what the
//! playbook supersedes; here it is about files that somebody has written by hand, of which both may say that they are
//! active.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::gate::GOVERNED;

/// What playbooks say that they take the place of, by slug.
#[derive(Debug, Clone, Default)]
pub struct Claims<'p>(BTreeMap<&'p str, (u8, &'p [String])>);

/// Why a playbook does not take the place of another one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// There is no such playbook.
    Unknown,
    /// The other one takes the place of this one, itself or over others.
    Mutual,
    /// Only what governance promotes takes the place of what it has promoted.
    Governed,
}

impl<'p> Claims<'p> {
    /// The claims of playbooks, each with its slug, its priority and what it supersedes.
    pub fn of(all: impl IntoIterator<Item = (&'p str, u8, &'p [String])>) -> Self {
        Claims(all.into_iter().map(|(slug, priority, others)| (slug, (priority, others))).collect())
    }

    /// Whether a playbook takes the place of another one.
    ///
    /// # Errors
    /// Why not.
    pub fn holds(&self, by: &str, other: &str) -> Result<(), Idle> {
        let (Some((own, _)), Some((priority, _))) = (self.0.get(by), self.0.get(other)) else {
            return Err(Idle::Unknown);
        };
        if self.reaches(other, by) {
            return Err(Idle::Mutual);
        }
        match *priority >= GOVERNED && *own < GOVERNED {
            true => Err(Idle::Governed),
            false => Ok(()),
        }
    }

    /// Those whose place another one has taken, with the slug of that one.
    pub fn settled(&self) -> BTreeMap<&'p str, &'p str> {
        let mut gone = BTreeMap::new();
        for (by, (_, others)) in &self.0 {
            for other in others.iter().filter(|other| self.holds(by, other).is_ok()) {
                if let Some((other, _)) = self.0.get_key_value(other.as_str()) {
                    gone.entry(*other).or_insert(*by);
                }
            }
        }
        gone
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

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Idle::Unknown => "there is no such playbook",
            Idle::Mutual => "each of them supersedes the other, so neither takes the other's place",
            Idle::Governed => "that has a priority which only governance promotes, and this one has not",
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
        let claims = Claims::of([
            ("a", 50, b.as_slice()),
            ("b", 50, c.as_slice()),
            ("c", 50, none.as_slice()),
            ("governed", 75, none.as_slice()),
            ("x", 50, x.as_slice()),
            ("y", 50, y.as_slice()),
            ("z", 50, z.as_slice()),
        ]);
        assert_eq!(claims.settled(), BTreeMap::from([("b", "a"), ("c", "b")]));
        assert_eq!(claims.holds("a", "gone"), Err(Idle::Unknown));
        assert_eq!(claims.holds("a", "governed"), Err(Idle::Governed));
        for (by, other) in [("x", "y"), ("y", "z"), ("z", "x")] {
            assert_eq!(claims.holds(by, other), Err(Idle::Mutual), "{by} {other}");
        }
        assert_eq!(claims.holds("z", "c"), Ok(()));
        let own = names(&["a"]);
        assert_eq!(Claims::of([("a", 50, own.as_slice())]).holds("a", "a"), Err(Idle::Mutual));
    }
}
