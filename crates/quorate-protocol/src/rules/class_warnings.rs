//! Rules of a vote that cannot fire.

use super::terminal;
use crate::assembly::{Request, Rule};

/// The rules of a vote that cannot do what their author may rely on, a veto most of all: those for another class than
/// none, and those for members who are not asked. `members` are given with the classes that each votes on.
pub fn class_warnings<'m>(
    request: &Request,
    rules: &[Rule],
    members: impl Iterator<Item = (&'m str, Option<&'m [String]>)>,
) -> Vec<String> {
    let Request::Voting { class } = request else { return Vec::new() };
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
        class_warnings(&Request::Voting { class: class.map(str::to_owned) }, rules, members.into_iter())
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
        assert_eq!(class_warnings(&Request::Hierarchy, &scoped, std::iter::empty()), [""; 0]);
    }
}
