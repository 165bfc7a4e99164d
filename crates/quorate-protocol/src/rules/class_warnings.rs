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
