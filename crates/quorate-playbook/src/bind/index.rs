//! An index of many bindings by value: out of 10 000 playbooks an operator is matched only against the few that require one
//! of its values.
//!
//! A playbook requires several values, so it is indexed under the one that the fewest playbooks require: a subject without
//! it cannot match. Each axis keeps exact values, globs by their prefix, and wildcards apart. Every candidate is then
//! checked against its whole binding, so hash collisions of axes and values are harmless.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use quorate_manifest::playbook::Playbook;

use super::pattern::{GlobCache, Pattern};
use super::{Binding, IDENTITY, MatchKind, Requirement, Subject};

/// The bindings of many playbooks.
#[derive(Debug, Clone, Default)]
pub struct BindingIndex {
    bindings: Vec<Binding>,
    /// Who asks for a value of an axis.
    exact: Postings,
    /// Who asks for one that begins so.
    by_prefix: Postings,
    /// Who asks for any.
    wildcards: Postings,
}

/// Positions in the list of playbooks, by key hash; sorted.
#[derive(Debug, Clone, Default)]
struct Postings(Vec<(u64, usize)>);

impl BindingIndex {
    /// Whom each of many playbooks is for.
    pub fn new<'p>(playbooks: impl IntoIterator<Item = &'p Playbook>) -> Self {
        let mut index = BindingIndex::default();
        let mut globs = GlobCache::default();
        for (at, playbook) in playbooks.into_iter().enumerate() {
            let binding = Binding::with_globs(playbook, &mut globs);
            let rarest = binding.clauses.iter().min_by_key(|one_of| estimated_matches(one_of));
            for wanted in rarest.into_iter().flatten() {
                for pattern in &wanted.values {
                    let (places, value) = match pattern {
                        Pattern::Any => (&mut index.wildcards, ""),
                        Pattern::Exact(value) => (&mut index.exact, value.as_str()),
                        Pattern::Glob(glob) => (&mut index.by_prefix, glob.prefix()),
                    };
                    places.0.push((key(&wanted.axis, value), at));
                }
            }
            index.bindings.push(binding);
        }
        for places in [&mut index.exact, &mut index.by_prefix, &mut index.wildcards] {
            places.0.sort_unstable();
        }
        index
    }

    /// The playbooks that are for a subject, by their places in the list that was given, in its order; and how that came
    /// about.
    pub fn matching(&self, subject: &Subject) -> Vec<(usize, MatchKind)> {
        let mut found: Vec<usize> = Vec::new();
        for (axis, values) in &subject.axes {
            found.extend(self.wildcards.positions(axis, ""));
            for value in values {
                found.extend(self.exact.positions(axis, value));
                if !self.by_prefix.0.is_empty() {
                    let heads = value.char_indices().map(|(at, _)| &value[..at]).chain([value.as_str()]);
                    heads.for_each(|head| found.extend(self.by_prefix.positions(axis, head)));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|at| Some((at, self.bindings[at].matches(subject)?))).collect()
    }
}

impl Postings {
    fn positions(&self, axis: &str, value: &str) -> impl Iterator<Item = usize> {
        let key = key(axis, value);
        let first = self.0.partition_point(|(other, _)| *other < key);
        self.0[first..].iter().take_while(move |(other, _)| *other == key).map(|(_, at)| *at)
    }
}

fn key(axis: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (axis, value).hash(&mut hasher);
    hasher.finish()
}

/// How many there may be that are one of these; a guess. A slug is one operator's.
fn estimated_matches(one_of: &[Requirement]) -> usize {
    let each = |wanted: &Requirement| -> usize {
        let exact_count = if wanted.axis == IDENTITY { 1 } else { 10 };
        let one = |pattern: &Pattern| match pattern {
            Pattern::Exact(_) => exact_count,
            Pattern::Glob(_) => 100,
            Pattern::Any => 10_000,
        };
        wanted.values.iter().map(one).sum()
    };
    one_of.iter().map(each).sum()
}
