//! Binding (B2): which operators a playbook targets.
//!
//! A subject, which is an operator at work, has values on axes. A playbook's selector requires values on axes; its targets,
//! the older notation, are converted to a selector. A selector overrides targets. An empty selector matches no subject, and
//! neither does a term on an axis that the subject has no value on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    axis: String,
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
        match &playbook.selector {
            Some(selector) => Binding { clauses: selector_clauses(selector) },
            None => {
                let targeted = target_requirements(playbook);
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
        let clause = |one_of: &Vec<Requirement>| {
            one_of.iter().filter_map(|wanted| wanted.matches_subject(subject)).min()
        };
        self.clauses.iter().map(clause).collect::<Option<Vec<MatchKind>>>()?.into_iter().min()
    }
}

impl Requirement {
    fn new<'v>(axis: &str, values: impl IntoIterator<Item = &'v str>) -> Self {
        let values = values.into_iter().map(|value| Pattern::parse(bare_value(axis, value))).collect();
        Requirement { axis: axis.to_owned(), values }
    }

    fn matches_subject(&self, subject: &Subject) -> Option<MatchKind> {
        let has = subject.axes.get(&self.axis).filter(|values| !values.is_empty())?;
        let meets = |pattern: &Pattern| match pattern {
            Pattern::Any => Some(MatchKind::Pattern),
            Pattern::Exact(value) => has.contains(value).then_some(MatchKind::Exact),
            Pattern::Glob(glob) => has.iter().any(|value| glob.matches(value)).then_some(MatchKind::Pattern),
        };
        self.values.iter().filter_map(meets).min()
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

fn selector_clauses(selector: &Selector) -> Vec<Vec<Requirement>> {
    let requirement =
        |axis: &str, values: &[String]| Requirement::new(axis, values.iter().map(String::as_str));
    let axes = selector.axes.iter().map(|(axis, values)| vec![requirement(axis, values.as_slice())]);
    let term = |term: &Term| requirement(&term.axis, &term.any_of);
    let all_of = selector.all_of.iter().flatten().map(|one| vec![term(one)]);
    axes.chain(all_of).chain(selector.any_of.iter().map(|terms| terms.iter().map(term).collect())).collect()
}

/// The requirements of `targets`: a subject has to match one of them. The name in a target can be a slug or a role.
fn target_requirements(playbook: &Playbook) -> Vec<Requirement> {
    let mut needed = Vec::new();
    let mut operator = |value: &str| {
        // A role behind `operator/`, or an operator behind `role/`, is what the word says.
        let role_alone = value.starts_with("role/") || value.starts_with("ws://roles/");
        let operator_alone = value.starts_with("ws://operators/");
        if !role_alone {
            needed.push(Requirement::new(IDENTITY, [value]));
        }
        if !operator_alone {
            needed.push(Requirement::new(ROLE, [bare_value(IDENTITY, value)]));
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
        needed.push(Requirement::new(axis, [target.reference.as_str()]));
    }
    needed
}

/// A pattern for a value.
#[derive(Debug, Clone)]
enum Pattern {
    Any,
    Exact(String),
    Glob(Glob),
}

#[derive(Debug, Clone)]
struct Glob {
    text: String,
    /// How many bytes at its beginning stand for themselves.
    head: usize,
    /// `None` if the text is not a valid glob; the requirement then matches no value.
    compiled: OnceLock<Option<GlobMatcher>>,
}

impl Pattern {
    fn parse(value: &str) -> Self {
        if value == "*" {
            Pattern::Any
        } else if value.contains(['*', '?', '[', '{']) {
            Pattern::Glob(Glob::new(value))
        } else {
            Pattern::Exact(value.to_owned())
        }
    }
}

impl Glob {
    fn new(text: &str) -> Self {
        // A `/` beside `**` may match nothing, and a comma separates alternatives.
        let head = text.find(['*', '?', '[', ']', '{', '}', '\\', '/', ',']).unwrap_or(text.len());
        Glob { text: text.to_owned(), head, compiled: OnceLock::new() }
    }

    /// Whether it matches a value. Most globs are never compiled, since their beginning differs.
    fn matches(&self, value: &str) -> bool {
        let compile = || {
            let glob = GlobBuilder::new(&self.text).literal_separator(true).build().ok()?;
            Some(glob.compile_matcher())
        };
        value.starts_with(&self.text[..self.head])
            && self.compiled.get_or_init(compile).as_ref().is_some_and(|glob| glob.is_match(value))
    }
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
        fn heads_are_those_of_the_globs(
            text in "([ab]|/|\\*\\*|\\*|\\?|\\[a-b\\]|\\[!a\\]|\\{a,b\\}|\\{|\\]|,|\\\\|é){1,6}",
            value in "[ab/,é*]{0,6}",
        ) {
            let naive = glob(&text).is_some_and(|glob| glob.is_match(&value));
            prop_assert_eq!(Glob::new(&text).matches(&value), naive, "{} {}", text, value);
        }
    }
}
