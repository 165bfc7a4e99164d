//! Synthesis rules: the built-in kinds, each with its name, its modes, its parameters, and its effect in each mode; and
//! warnings about rules that cannot fire. Custom kinds are registered here by name and schema, and applied by the host.

pub mod advice;
pub mod aggregate;
pub mod custom;
pub mod terminal;
pub mod votes;

use std::collections::BTreeMap;

use quorate_manifest::capabilities::RuleKind;
use quorate_manifest::json_schema::CompiledSchema;

use crate::assembly::{AssemblyRequest, Rule};
use advice::{Branch, Rollup};
use advice::{Emission, MemberAdvice};
use votes::{Poll, Ruling};

/// What a rule makes of the members' advice; `None` where it does not fire.
type Advise = fn(&Rule, &[MemberAdvice]) -> Option<Emission>;
/// What a rule decides; `None` leaves it to the next.
type Decide = fn(&Rule, &Poll<'_>) -> Option<Ruling>;
/// What a node passes up by a rule; `None` leaves it to the next.
type Roll = fn(&Rule, &Branch) -> Option<Rollup>;

/// What a built-in kind is and does.
pub(crate) struct BuiltIn {
    kind: &'static str,
    describe: fn() -> RuleKind,
    pub(crate) advise: Option<Advise>,
    pub(crate) decide: Option<Decide>,
    pub(crate) roll: Option<Roll>,
}

const fn rule(
    kind: &'static str,
    describe: fn() -> RuleKind,
    advise: Option<Advise>,
    decide: Option<Decide>,
    roll: Option<Roll>,
) -> BuiltIn {
    BuiltIn { kind, describe, advise, decide, roll }
}

static BUILT_IN: [BuiltIn; 7] = [
    rule(
        terminal::KIND,
        terminal::kind,
        Some(terminal::advise),
        Some(terminal::decide),
        Some(terminal::roll),
    ),
    rule(advice::PRIORITY, advice::priority_kind, Some(advice::advise_by_priority), None, None),
    rule(aggregate::KIND, aggregate::kind, Some(aggregate::advise), None, Some(aggregate::roll)),
    rule(votes::QUORUM, votes::quorum_kind, None, Some(votes::decide_by_quorum), None),
    rule(votes::MAJORITY, votes::majority_kind, None, Some(votes::decide_by_majority), None),
    rule(votes::UNANIMITY, votes::unanimity_kind, None, Some(votes::decide_unanimously), None),
    rule(
        aggregate::ESCALATE_ON_SEVERITY,
        aggregate::escalate_on_severity_kind,
        None,
        None,
        Some(aggregate::roll_by_severity),
    ),
];

/// A built-in kind; `None` where it is the host's.
pub(crate) fn built_in(kind: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|rule| rule.kind == kind)
}

/// Whether a rule is of a kind that ends the synthesis when it fires.
pub(crate) fn is_terminal(rule: &Rule) -> bool {
    built_in(&rule.kind).is_some_and(|logic| (logic.describe)().ends_synthesis)
}

/// The known rule kinds.
#[derive(Debug, Clone)]
pub struct Rules {
    kinds: BTreeMap<String, RuleKind>,
}

/// A kind that cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterRuleError {
    /// There is one of that name.
    #[error("the rule kind `{0}` is registered twice")]
    Duplicate(String),
    /// The schema of its parameters uses a keyword that is not held.
    #[error("the schema of the parameters of `{0}` has a keyword that cannot be held")]
    Schema(String),
}

impl Rules {
    /// The kinds that this program has.
    pub fn built_in() -> Self {
        Rules { kinds: BUILT_IN.iter().map(|one| (one.kind.to_owned(), (one.describe)())).collect() }
    }

    /// Adds a kind.
    ///
    /// # Errors
    /// When there is one of that name, or its parameters' schema cannot be held.
    pub fn register(&mut self, name: &str, kind: RuleKind) -> Result<(), RegisterRuleError> {
        if self.kinds.contains_key(name) {
            return Err(RegisterRuleError::Duplicate(name.to_owned()));
        }
        if CompiledSchema::parse(&kind.params).is_none() {
            return Err(RegisterRuleError::Schema(name.to_owned()));
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

/// The rules of a vote that cannot do what their author may rely on, a veto most of all: those for another class than
/// none, and those for members who are not asked. `members` are given with the classes that each votes on.
pub fn class_warnings<'m>(
    request: &AssemblyRequest,
    rules: &[Rule],
    members: impl Iterator<Item = (&'m str, Option<&'m [String]>)>,
) -> Vec<String> {
    let AssemblyRequest::Voting { class } = request else { return Vec::new() };
    let mut warnings = Vec::new();
    let scoped = rules.iter().filter_map(|rule| Some(format!("`{}` ({})", rule.id, rule.scope()?)));
    let scoped: Vec<String> = scoped.collect();
    if class.is_none() && !scoped.is_empty() {
        warnings.push(format!("No class is said, so these rules do not count: {}.", scoped.join(", ")));
    }
    let is_unasked = |classes: Option<&[String]>| {
        classes.is_some_and(|classes| !class.as_ref().is_some_and(|class| classes.contains(class)))
    };
    let unasked: Vec<&str> =
        members.filter(|(_, classes)| is_unasked(*classes)).map(|(member, _)| member).collect();
    let on = match class {
        Some(class) => format!("proposals of the class `{class}`"),
        None => "proposals without a class".to_owned(),
    };
    let counts = |rule: &&Rule| {
        *rule.kind == *terminal::KIND && rule.scope().is_none_or(|scope| class.as_deref() == Some(scope))
    };
    for rule in rules.iter().filter(counts) {
        let named = rule.applies_to.iter().flatten().filter(|id| unasked.contains(&&***id));
        let named: Vec<String> = named.map(|id| format!("`{id}`")).collect();
        if !named.is_empty() {
            warnings.push(format!(
                "`{}` ({}) cannot fire for {}, not asked on {on}.",
                rule.id,
                rule.kind,
                named.join(", ")
            ));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use quorate_manifest::assembly::Mode;

    use super::*;

    #[test]
    fn every_kind_can_be_held_to_its_parameters() {
        // M16.
        for name in Rules::built_in().names() {
            let rules = Rules::built_in();
            let kind = rules.get(name).expect("its own name");
            let form = CompiledSchema::parse(&kind.params)
                .unwrap_or_else(|| panic!("{name}: a keyword that is not held"));
            let needs = form.errors(&serde_json::json!({}));
            assert_eq!(needs.is_empty(), name != votes::QUORUM, "{name}: {needs:?}");
            assert!(
                !form.is_valid(&serde_json::json!({"thresold": 1})),
                "{name}: a slip of the finger passes"
            );
        }
    }

    #[test]
    fn every_kind_says_where_it_holds_and_what_its_parameters_name() {
        // M16, P2, V4.
        // `check` refuses and warns by this alone.
        let [advisory, voting, peer, hierarchy] = [Mode::Advisory, Mode::Voting, Mode::Peer, Mode::Hierarchy];
        let in_modes = |modes: &[Mode]| RuleKind { modes: modes.to_vec(), ..RuleKind::default() };
        let decides = || RuleKind { always_decides: true, ..in_modes(&[voting]) };
        const GUIDED: &[Mode] = &[Mode::Advisory, Mode::Hierarchy];
        const ADVISED: &[Mode] = &[Mode::Advisory];
        const DISCUSSED: &[Mode] = &[Mode::Peer];
        let expected = [
            (
                "aggregate",
                RuleKind {
                    member_params: &["hub"],
                    member_map_params: &["peers"],
                    rule_kind_params: &[("terminationRule", &["no-new-objections", "all-pass"])],
                    duration_params: &["ttl"],
                    millisecond_params: &["ttlMs"],
                    always_decides: true,
                    conditional_params: &["minSeverity", "maxSeverity"],
                    mode_params: &[
                        ("minSeverity", GUIDED),
                        ("maxSeverity", GUIDED),
                        ("topN", GUIDED),
                        ("priority", ADVISED),
                        ("priorityBase", ADVISED),
                        ("ttl", ADVISED),
                        ("ttlMs", ADVISED),
                        ("maxRounds", DISCUSSED),
                        ("terminationRule", DISCUSSED),
                        ("topology", DISCUSSED),
                        ("hub", DISCUSSED),
                        ("peers", DISCUSSED),
                        ("terminal", GUIDED),
                    ],
                    shadowed_params: &[
                        ("priorityBase", "priority"),
                        ("ttl", "ttlMs"),
                        ("topology", "peers"),
                        ("hub", "peers"),
                    ],
                    first_rule_only_params: &["maxRounds", "terminationRule", "topology", "hub", "peers"],
                    dependent_params: &[("hub", "topology", "star")],
                    ..in_modes(&[advisory, peer, hierarchy])
                },
            ),
            ("escalate-on-severity", RuleKind { always_decides: true, ..in_modes(&[hierarchy]) }),
            (
                "majority",
                RuleKind {
                    member_params: &["chair"],
                    dependent_params: &[("chair", "tieBreaker", "chair-vote")],
                    ..decides()
                },
            ),
            (
                "priority",
                RuleKind {
                    duration_params: &["ttl"],
                    millisecond_params: &["ttlMs"],
                    shadowed_params: &[("ttl", "ttlMs")],
                    ..in_modes(&[advisory])
                },
            ),
            ("quorum", decides()),
            (
                "terminal",
                RuleKind {
                    duration_params: &["ttl"],
                    millisecond_params: &["ttlMs"],
                    ends_synthesis: true,
                    class_params: &["scope"],
                    mode_params: &[
                        ("triggerSeverity", GUIDED),
                        ("triggerVote", &[Mode::Voting]),
                        ("scope", &[Mode::Voting]),
                        ("priority", ADVISED),
                        ("ttl", ADVISED),
                        ("ttlMs", ADVISED),
                    ],
                    shadowed_params: &[("ttl", "ttlMs")],
                    ..in_modes(&[advisory, voting, hierarchy])
                },
            ),
            ("unanimity", decides()),
        ];
        let rules = Rules::built_in();
        assert_eq!(rules.names(), expected.each_ref().map(|(name, _)| *name));
        for (name, kind) in expected {
            let said = rules.get(name).expect("its own name").clone();
            assert_eq!(said, RuleKind { params: said.params.clone(), ..kind }, "{name}");
        }
    }

    #[test]
    fn a_kind_is_registered_once_and_with_a_schema_that_holds() {
        let mut rules = Rules::built_in();
        let kind = || rules_kind(serde_json::json!({"type": "object"}));
        assert_eq!(rules.register("coin", kind()), Ok(()));
        assert_eq!(rules.register("coin", kind()), Err(RegisterRuleError::Duplicate("coin".to_owned())));
        assert_eq!(
            rules.register(votes::QUORUM, kind()),
            Err(RegisterRuleError::Duplicate(votes::QUORUM.to_owned()))
        );
        let odd = rules_kind(serde_json::json!({"contains": {}}));
        assert_eq!(rules.register("odd", odd), Err(RegisterRuleError::Schema("odd".to_owned())));
    }

    fn rules_kind(params: serde_json::Value) -> RuleKind {
        RuleKind { params, ..votes::unanimity_kind() }
    }
}

#[cfg(test)]
mod class_tests {
    use serde_json::json;

    use super::*;

    fn rule(id: &str, scope: Option<&str>, applies_to: Option<&[&str]>) -> Rule {
        Rule {
            id: id.into(),
            kind: terminal::KIND.into(),
            applies_to: applies_to.map(|ids| ids.iter().map(|id| (*id).into()).collect()),
            params: scope.map(|scope| ("scope".to_owned(), json!(scope))).into_iter().collect(),
        }
    }

    /// The warnings on a vote of `a`, who votes on all, and `b`, who votes on money alone.
    fn warnings(class: Option<&str>, rules: &[Rule]) -> Vec<String> {
        let money = ["money".to_owned()];
        let members = [("a", None), ("b", Some(&money[..]))];
        class_warnings(
            &AssemblyRequest::Voting { class: class.map(str::to_owned) },
            rules,
            members.into_iter(),
        )
    }

    #[test]
    fn a_rule_that_cannot_fire_is_named() {
        let unclassed = "No class is said, so these rules do not count: `m` (money), `s` (safety).";
        let scoped =
            [rule("m", Some("money"), None), rule("s", Some("safety"), None), rule("all", None, None)];
        assert_eq!(warnings(None, &scoped), [unclassed]);
        assert_eq!(warnings(Some("money"), &scoped), [""; 0]);
        assert_eq!(warnings(None, &scoped[2..]), [""; 0]);

        let on_safety = "`v` (terminal) cannot fire for `b`, not asked on proposals of the class `safety`.";
        let no_class = "`v` (terminal) cannot fire for `b`, not asked on proposals without a class.";
        let both = Some(&["a", "b"][..]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, both)]), [on_safety]);
        assert_eq!(warnings(Some("safety"), &[rule("v", Some("safety"), both)]), [on_safety]);
        assert_eq!(warnings(Some("safety"), &[rule("v", Some("money"), both)]), [""; 0]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, None)]), [""; 0]);
        assert_eq!(warnings(Some("safety"), &[rule("v", None, Some(&["a"]))]), [""; 0]);
        assert_eq!(warnings(Some("money"), &[rule("v", None, both)]), [""; 0]);
        assert_eq!(warnings(None, &[rule("v", None, both)]), [no_class]);
        let counted = Rule { kind: "majority".into(), ..rule("v", None, both) };
        assert_eq!(warnings(Some("safety"), &[counted]), [""; 0]);
        assert_eq!(class_warnings(&AssemblyRequest::Hierarchy, &scoped, std::iter::empty()), [""; 0]);
    }
}
