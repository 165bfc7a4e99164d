//! Binding (B2): which operators a playbook targets.
//!
//! A subject, which is an operator at work, has values on axes. A playbook's selector requires values on axes; its targets,
//! the older notation, are converted to a selector. A selector overrides targets. An empty selector matches no subject, and
//! neither does a term on an axis that the subject has no value on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use globset::{GlobBuilder, GlobMatcher};
use quorate_manifest::operator::Operator;
use quorate_manifest::playbook::{Playbook, Selector, TargetKind, Term};

/// The axis of an operator's own slug.
const IDENTITY: &str = "identity";
/// The axis of what an operator does.
const ROLE: &str = "role";
/// The axis of what an operator can do.
const CAPABILITY: &str = "capability";
/// The axis of the skill that is used.
pub const SKILL: &str = "skill";
/// The axis of the runtime that it works in.
pub const RUNTIME: &str = "runtime";

/// The words that may be before a slug on an axis, as in `role/companion` or `ws://roles/companion`.
const AXIS_PREFIXES: [(&str, &[&str]); 5] = [
    (IDENTITY, &["operator", "operators", "identity"]),
    (ROLE, &["role", "roles"]),
    (CAPABILITY, &["capability", "capabilities"]),
    (SKILL, &["skill", "skills"]),
    (RUNTIME, &["runtime", "runtimes"]),
];

/// An operator during a call: its values by axis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    axes: BTreeMap<String, BTreeSet<String>>,
}

/// How a playbook matched a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// It names a value of the subject.
    Exact,
    /// A pattern of it matches one.
    Pattern,
}

/// The compiled selector of one playbook.
#[derive(Debug, Clone)]
pub struct Binding {
    /// All of these have to hold; of each, one.
    clauses: Vec<Vec<Requirement>>,
}

/// One axis, and its required values.
#[derive(Debug, Clone)]
struct Requirement {
    axis: Cow<'static, str>,
    values: Vec<Pattern>,
}

impl Subject {
    /// An operator: its slug, role, skills and capabilities.
    pub fn from_operator(operator: &Operator) -> Self {
        let mut subject = Subject::default().with(IDENTITY, &operator.id);
        if let Some(role) = &operator.role {
            subject = subject.with(ROLE, role);
        }
        for skill in operator.skills.iter().flatten() {
            subject = subject.with(SKILL, skill);
        }
        for capability in operator.capabilities.iter().flatten() {
            subject = subject.with(CAPABILITY, capability);
        }
        subject
    }

    /// With one more value on an axis.
    #[must_use]
    pub fn with(mut self, axis: &str, value: &str) -> Self {
        self.axes.entry(axis.to_owned()).or_default().insert(bare_value(axis, value).to_owned());
        self
    }

    /// With one value on an axis in place of all.
    #[must_use]
    pub fn replace(mut self, axis: &str, value: &str) -> Self {
        self.axes.remove(axis);
        self.with(axis, value)
    }
}

impl Binding {
    /// Compiles the targets of a playbook.
    pub fn new(playbook: &Playbook) -> Self {
        Binding::with_globs(playbook, &mut GlobCache::default())
    }

    /// The same, with the globs of other playbooks.
    fn with_globs(playbook: &Playbook, globs: &mut GlobCache) -> Self {
        match &playbook.selector {
            Some(selector) => Binding { clauses: selector_clauses(selector, globs) },
            None => {
                let targeted = target_requirements(playbook, globs);
                Binding { clauses: if targeted.is_empty() { Vec::new() } else { vec![targeted] } }
            }
        }
    }

    /// Whether it matches every subject: all its terms are wildcards.
    fn matches_everyone(&self) -> bool {
        let any = |wanted: &Requirement| wanted.values.iter().any(|value| matches!(value, Pattern::Any));
        !self.clauses.is_empty() && self.clauses.iter().all(|one_of| one_of.iter().any(any))
    }

    /// Whether it is for all subjects of a scope without naming any: a wildcard, or patterns that match each of several.
    pub fn targets_all<'s>(&self, subjects: impl IntoIterator<Item = &'s Subject>) -> bool {
        let mut count = 0;
        let by_pattern = |subject| {
            count += 1;
            self.matches(subject) == Some(MatchKind::Pattern)
        };
        self.matches_everyone() || (subjects.into_iter().all(by_pattern) && count > 1)
    }

    /// Whether it has a pattern, so that it may target subjects that it does not name.
    pub fn has_patterns(&self) -> bool {
        let is_pattern = |value: &Pattern| !matches!(value, Pattern::Exact(_));
        self.clauses.iter().flatten().flat_map(|wanted| &wanted.values).any(is_pattern)
    }

    /// Whether it is for a subject, and how that came about; by name where any of it is.
    pub fn matches(&self, subject: &Subject) -> Option<MatchKind> {
        if self.clauses.is_empty() {
            return None;
        }
        let mut bound = MatchKind::Pattern;
        for one_of in &self.clauses {
            match one_of
                .iter()
                .filter_map(|wanted| wanted.matches_subject(subject))
                .min_by_key(|how| *how == MatchKind::Pattern)?
            {
                MatchKind::Exact => bound = MatchKind::Exact,
                MatchKind::Pattern => {}
            }
        }
        Some(bound)
    }
}

impl Requirement {
    fn new<'v>(axis: &str, values: impl IntoIterator<Item = &'v str>, globs: &mut GlobCache) -> Self {
        let values = values.into_iter().map(|value| Pattern::parse(bare_value(axis, value), globs)).collect();
        let known = AXIS_PREFIXES.iter().find(|(known, _)| *known == axis);
        let axis = known.map_or_else(|| Cow::Owned(axis.to_owned()), |(known, _)| Cow::Borrowed(*known));
        Requirement { axis, values }
    }

    fn matches_subject(&self, subject: &Subject) -> Option<MatchKind> {
        let has = subject.axes.get(&*self.axis).filter(|values| !values.is_empty())?;
        let meets = |pattern: &Pattern| match pattern {
            Pattern::Any => Some(MatchKind::Pattern),
            Pattern::Exact(value) => has.contains(value).then_some(MatchKind::Exact),
            Pattern::Glob(glob) => has.iter().any(|value| glob.matches(value)).then_some(MatchKind::Pattern),
        };
        self.values.iter().filter_map(meets).min_by_key(|how| *how == MatchKind::Pattern)
    }
}

/// A value without the word for its axis, and without `ws://`.
fn bare_value<'v>(axis: &str, value: &'v str) -> &'v str {
    let value = value.strip_prefix("ws://").unwrap_or(value);
    let words = AXIS_PREFIXES.iter().find(|(of, _)| *of == axis).map_or(&[][..], |(_, words)| *words);
    match value.split_once('/') {
        Some((word, rest)) if words.contains(&word) && !rest.is_empty() => rest,
        _ => value,
    }
}

fn selector_clauses(selector: &Selector, globs: &mut GlobCache) -> Vec<Vec<Requirement>> {
    let mut clauses = Vec::new();
    for (axis, values) in &selector.axes {
        clauses.push(vec![Requirement::new(axis, values.as_slice().iter().map(String::as_str), globs)]);
    }
    let mut term = |term: &Term| Requirement::new(&term.axis, term.any_of.iter().map(String::as_str), globs);
    clauses.extend(selector.all_of.iter().flatten().map(|selector| vec![term(selector)]));
    clauses.extend(selector.any_of.iter().map(|terms| terms.iter().map(&mut term).collect()));
    clauses
}

/// The requirements of `targets`: a subject has to match one of them. The name in a target can be a slug or a role.
fn target_requirements(playbook: &Playbook, globs: &mut GlobCache) -> Vec<Requirement> {
    let mut needed = Vec::new();
    let mut operator = |value: &str| {
        // A role behind `operator/`, or an operator behind `role/`, is what the word says.
        let role_alone = value.starts_with("role/") || value.starts_with("ws://roles/");
        let operator_alone = value.starts_with("ws://operators/");
        if !role_alone {
            needed.push(Requirement::new(IDENTITY, [value], globs));
        }
        if !operator_alone {
            needed.push(Requirement::new(ROLE, [bare_value(IDENTITY, value)], globs));
        }
    };
    let targets = playbook.targets.iter().flatten();
    targets
        .clone()
        .filter(|target| target.kind == TargetKind::Operator)
        .for_each(|target| operator(&target.reference));
    playbook.binds_operator.iter().for_each(|slug| operator(slug));
    for target in targets {
        let axis = match target.kind {
            TargetKind::Operator => continue,
            TargetKind::Role => ROLE,
            TargetKind::Skill => SKILL,
            TargetKind::Runtime => RUNTIME,
        };
        needed.push(Requirement::new(axis, [target.reference.as_str()], globs));
    }
    needed
}

/// The characters that make a text a glob.
const META_CHARS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A pattern for a value.
#[derive(Debug, Clone)]
enum Pattern {
    Any,
    Exact(String),
    /// One that a glob matches.
    Glob(Arc<Glob>),
}

#[derive(Debug)]
struct Glob {
    text: String,
    /// What a value begins with that it matches, and what it ends with.
    head: usize,
    tail: Range<usize>,
    /// `None` if the text is not a valid glob; the requirement then matches no value.
    compiled: OnceLock<Option<GlobMatcher>>,
}

/// The compiled globs, by their text.
#[derive(Debug, Default)]
struct GlobCache(HashMap<String, Arc<Glob>>);

impl Pattern {
    fn parse(value: &str, globs: &mut GlobCache) -> Self {
        if value == "*" {
            Pattern::Any
        } else if value.contains(['*', '?', '[', '{']) {
            Pattern::Glob(globs.get_or_insert(value))
        } else {
            Pattern::Exact(value.to_owned())
        }
    }
}

impl GlobCache {
    fn get_or_insert(&mut self, text: &str) -> Arc<Glob> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new = Arc::new(Glob::new(text));
        self.0.insert(text.to_owned(), Arc::clone(&new));
        new
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        // A `/` beside `**` may match nothing, and a comma separates alternatives.
        let divides = |c: char| META_CHARS.contains(&c) || matches!(c, '/' | ',');
        let prefix_len = text.find(divides).unwrap_or(text.len());
        let suffix = text.rfind(divides).map_or(0, |at| at + 1)..text.len();
        Glob { text: text.to_owned(), head: prefix_len, tail: suffix, compiled: OnceLock::new() }
    }

    /// What every value begins with that it matches.
    fn prefix(&self) -> &str {
        &self.text[..self.head]
    }

    /// Whether it matches a value.
    fn matches(&self, value: &str) -> bool {
        if !value.starts_with(self.prefix()) || !value.ends_with(&self.text[self.tail.clone()]) {
            return false;
        }
        let compile = || {
            let glob = GlobBuilder::new(&self.text).literal_separator(true).build().ok()?;
            Some(glob.compile_matcher())
        };
        self.compiled.get_or_init(compile).as_ref().is_some_and(|glob| glob.is_match(value))
    }
}

/// The bindings of many playbooks.
#[derive(Debug, Clone, Default)]
pub struct BindingIndex {
    bindings: Vec<Binding>,
    /// Who asks for a value of an axis.
    exact: Postings,
    /// The playbooks that require a value with this prefix.
    by_prefix: Postings,
    /// Who asks for any.
    wildcards: Postings,
}

/// Positions in the list of playbooks, by key hash; sorted.
#[derive(Debug, Clone, Default)]
struct Postings(Vec<(u64, usize)>);

impl BindingIndex {
    /// Indexes many playbooks by their targets.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn playbook(binding: Value) -> Playbook {
        let mut playbook = json!({
            "schema": "playbooks/v1", "slug": "a-book", "title": "A book.", "kind": "overlay", "lock_check": [],
            "evidence": [{"kind": "run", "ref": "r1"}], "status": "active",
        });
        playbook.as_object_mut().unwrap().extend(binding.as_object().cloned().unwrap());
        serde_json::from_value(playbook).unwrap()
    }

    fn ada() -> Subject {
        let operator = json!({
            "id": "ada", "name": "Ada", "role": "role/librarian", "skills": ["research/auth-debugging"],
            "capabilities": ["search", "cite"],
        });
        Subject::from_operator(&serde_json::from_value(operator).unwrap())
    }

    fn bound(binding: Value) -> Option<MatchKind> {
        Binding::new(&playbook(binding)).matches(&ada())
    }

    fn target(kind: &str, reference: &str) -> Option<MatchKind> {
        bound(json!({"targets": [{"kind": kind, "ref": reference}]}))
    }

    #[test]
    fn targets_are_held_against_slug_and_role() {
        // B2
        for (kind, reference) in [
            ("operator", "ada"),
            ("operator", "operator/ada"),
            ("operator", "ws://operators/ada"),
            ("operator", "librarian"),
            ("operator", "role/librarian"),
            ("role", "librarian"),
            ("role", "role/librarian"),
            ("role", "ws://roles/librarian"),
            ("skill", "research/auth-debugging"),
            ("skill", "skill/research/auth-debugging"),
        ] {
            assert_eq!(target(kind, reference), Some(MatchKind::Exact), "{kind} {reference}");
        }
        for (kind, reference) in [
            ("operator", "operator/*"),
            ("operator", "a?a"),
            ("role", "lib*"),
            ("skill", "research/*"),
            ("skill", "*"),
            ("role", "*"),
        ] {
            assert_eq!(target(kind, reference), Some(MatchKind::Pattern), "{kind} {reference}");
        }
        for (kind, reference) in [
            ("operator", "bob"),
            ("operator", "ws://operators/librarian"),
            ("role", "ada"),
            ("skill", "research"),
            ("runtime", "*"),
            ("operator", "[ada"),
            ("operator", "Ada"),
        ] {
            assert_eq!(target(kind, reference), None, "{kind} {reference}");
        }
    }

    #[test]
    fn the_operator_that_is_named_beside_targets_counts_as_one() {
        assert_eq!(bound(json!({"binds_operator": "ada"})), Some(MatchKind::Exact));
        let selector = json!({"binds_operator": "ada", "selector": {"role": "engineer"}});
        assert_eq!(bound(selector), None, "a selector wins");
    }

    #[test]
    fn all_axes_of_a_selector_have_to_match() {
        assert_eq!(
            bound(json!({"selector": {"role": "librarian", "capability": ["x", "cite"]}})),
            Some(MatchKind::Exact)
        );
        assert_eq!(bound(json!({"selector": {"role": "librarian", "capability": "fly"}})), None);
        assert_eq!(bound(json!({"selector": {"role": "*"}})), Some(MatchKind::Pattern));
        assert_eq!(bound(json!({"selector": {"region": "*"}})), None, "an axis without a value");
        assert_eq!(bound(json!({"selector": {}})), None, "an empty one matches no operator");
        let wins =
            json!({"selector": {"role": "engineer"}, "targets": [{"kind": "role", "ref": "librarian"}]});
        assert_eq!(bound(wins), None);
        let long = |role: &str| {
            json!({"selector": {
                "allOf": [{"axis": "capability", "anyOf": ["search"]}],
                "anyOf": [{"axis": "identity", "anyOf": ["bob"]}, {"axis": "role", "anyOf": [role]}],
            }})
        };
        assert_eq!((bound(long("librarian")), bound(long("engineer"))), (Some(MatchKind::Exact), None));
        assert_eq!(bound(json!({"selector": {"anyOf": []}})), None);
    }

    #[test]
    fn patterns_that_match_each_of_several_target_all() {
        // B13
        let bob =
            serde_json::from_value(json!({"id": "bob", "name": "Bob", "role": "role/librarian"})).unwrap();
        let (ada, both) = ([ada()], [ada(), Subject::from_operator(&bob)]);
        let targets = |kind: &str, of: &[&str]| {
            let targets = of.iter().map(|of| json!({"kind": kind, "ref": of})).collect::<Vec<_>>();
            Binding::new(&playbook(json!({"targets": targets})))
        };
        for (kind, of) in [
            ("operator", &["*"][..]),
            ("operator", &["operator/*"]),
            ("operator", &["a*", "b*"]),
            ("role", &["lib*"]),
        ] {
            assert!(
                targets(kind, of).targets_all(&both) && targets(kind, of).has_patterns(),
                "{kind} {of:?}"
            );
        }
        for (kind, of) in [("operator", &["a*"][..]), ("operator", &["ada", "bob"]), ("role", &["librarian"])]
        {
            assert!(!targets(kind, of).targets_all(&both), "{kind} {of:?}");
        }
        assert!(
            targets("operator", &["*"]).targets_all(&ada) && !targets("operator", &["a*"]).targets_all(&ada)
        );
    }

    #[test]
    fn a_subject_at_work_has_one_skill_and_a_runtime() {
        let at_work = ada().replace(SKILL, "skill/write").with(RUNTIME, "claude");
        let of = |kind: &str, reference: &str| {
            Binding::new(&playbook(json!({"targets": [{"kind": kind, "ref": reference}]}))).matches(&at_work)
        };
        assert_eq!(of("skill", "write"), Some(MatchKind::Exact));
        assert_eq!(of("skill", "research/auth-debugging"), None);
        assert_eq!(of("runtime", "cl*"), Some(MatchKind::Pattern));
    }
}

#[cfg(test)]
mod pattern_tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> Option<GlobMatcher> {
        Some(GlobBuilder::new(text).literal_separator(true).build().ok()?.compile_matcher())
    }

    proptest! {
        /// The cheap test rejects no value that the glob would match.
        #[test]
        fn heads_and_tails_are_the_globs(
            text in "([ab]|/|\\*\\*|\\*|\\?|\\[a-b\\]|\\[!a\\]|\\{a,b\\}|\\{|\\]|,|\\\\|é){1,6}",
            value in "[ab/,é*]{0,6}",
        ) {
            let naive = glob(&text).is_some_and(|glob| glob.is_match(&value));
            prop_assert_eq!(Glob::new(&text).matches(&value), naive, "{} {}", text, value);
        }
    }
}
