//! `_index.md` (B5): lists every playbook of a scope for people. It depends only on the playbooks, so that it can be
//! checked against them.

use std::fmt::Write as _;

use quorate_manifest::playbook::selector::{Selector, Term, Values};
use quorate_manifest::playbook::targets::TargetKind;
use quorate_manifest::playbook::{Playbook, Status};

/// The index's name in `playbooks/`.
pub const FILE_NAME: &str = "_index.md";

/// The priority of what says none.
pub const DEFAULT_PRIORITY: u8 = 50;

/// The mark of an active playbook that passed no gate, in every view (B13).
pub const NEVER_GATED: &str = "never gated";

/// The index of playbooks, each with whether it is active although it passed no gate: by status, then priority, then slug,
/// independent of the input order.
pub fn index<'p>(playbooks: impl IntoIterator<Item = (&'p Playbook, bool)>) -> String {
    let mut all: Vec<(&Playbook, bool)> = playbooks.into_iter().collect();
    all.sort_by_key(|(playbook, _)| {
        (status_rank(playbook.status), std::cmp::Reverse(priority(playbook)), playbook.slug.clone())
    });
    let count = |wanted: Status| all.iter().filter(|(playbook, _)| playbook.status == wanted).count();
    let mut text = format!(
        "# Playbooks\n\n{} active, {} in shadow, {} archived. Written by `quorate`; changes are lost with the next write.\n",
        count(Status::Active),
        count(Status::Shadow),
        count(Status::Archived),
    );
    if !all.is_empty() {
        text.push_str(
            "\n| slug | title | targets | status | priority | lock_check |\n|---|---|---|---|---|---|\n",
        );
    }
    for (playbook, never_gated) in all {
        let status = status_rank(playbook.status).1;
        let status = if never_gated { format!("{status}, {NEVER_GATED}") } else { status.to_owned() };
        let locks = playbook.lock_check.iter().map(|lock| cell(lock)).collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "| {} | {} | {} | {status} | {} | {} |",
            cell(&playbook.slug),
            cell(&playbook.title),
            cell(&describe_targets(playbook)),
            priority(playbook),
            locks,
        );
    }
    text
}

/// What a playbook is woven with.
pub fn priority(playbook: &Playbook) -> u8 {
    playbook.priority.unwrap_or(DEFAULT_PRIORITY)
}

/// Where a status stands, and its word.
fn status_rank(status: Status) -> (u8, &'static str) {
    match status {
        Status::Active => (0, "active"),
        Status::Shadow => (1, "shadow"),
        Status::Archived => (2, "archived"),
    }
}

/// A text as one cell of a Markdown table.
fn cell(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").replace('\\', "\\\\").replace('|', "\\|")
}

/// Whom it is for, in words.
fn describe_targets(playbook: &Playbook) -> String {
    if let Some(selector) = &playbook.selector {
        return describe_selector(selector);
    }
    let kind = |kind: TargetKind| match kind {
        TargetKind::Operator => "operator",
        TargetKind::Role => "role",
        TargetKind::Skill => "skill",
        TargetKind::Runtime => "runtime",
    };
    let targets = playbook
        .targets
        .iter()
        .flatten()
        .map(|target| format!("{}: {}", kind(target.kind), target.reference));
    targets.collect::<Vec<_>>().join("; ")
}

fn describe_selector(selector: &Selector) -> String {
    let term = |axis: &str, values: &[&str]| format!("{axis} = {}", values.join(" or "));
    let any_of =
        |clause: &Term| term(&clause.axis, &clause.any_of.iter().map(String::as_str).collect::<Vec<_>>());
    let mut parts: Vec<String> = Vec::new();
    for (axis, values) in &selector.axes {
        parts.push(match values {
            Values::One(value) => term(axis, &[value]),
            Values::Some(values) => term(axis, &values.iter().map(String::as_str).collect::<Vec<_>>()),
        });
    }
    parts.extend(selector.all_of.iter().flatten().map(any_of));
    if let Some(terms) = &selector.any_of {
        let terms: Vec<String> = terms.iter().map(any_of).collect();
        parts.push(format!("({})", terms.join(" or ")));
    }
    parts.join(" and ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn playbook(slug: &str, more: Value) -> Playbook {
        let mut playbook = json!({
            "schema": "playbooks/v1", "slug": slug, "title": "A | title\nof two lines.", "kind": "overlay",
            "targets": [{"kind": "role", "ref": "a"}, {"kind": "operator", "ref": "operator/*"}],
            "lock_check": ["warmth", "honesty"], "evidence": [{"kind": "run", "ref": "r1"}], "status": "shadow",
        });
        playbook.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        serde_json::from_value(playbook).unwrap()
    }

    #[test]
    fn every_playbook_has_a_line() {
        // B5
        let selector =
            json!({"selector": {"role": ["a", "b"], "anyOf": [{"axis": "skill", "anyOf": ["x"]}]}});
        let (one, two, three) = (
            playbook("one", json!({})),
            playbook("two", json!({"status": "active", "priority": 74, "lock_check": []})),
            playbook("three", selector),
        );
        let text = index([(&one, false), (&two, true), (&three, false)]);
        assert_eq!(text, index([(&three, false), (&one, false), (&two, true)]));
        let expected = "# Playbooks

1 active, 2 in shadow, 0 archived. Written by `quorate`; changes are lost with the next write.

| slug | title | targets | status | priority | lock_check |
|---|---|---|---|---|---|
| two | A \\| title of two lines. | role: a; operator: operator/* | active, never gated | 74 |  |
| one | A \\| title of two lines. | role: a; operator: operator/* | shadow | 50 | warmth, honesty |
| three | A \\| title of two lines. | role = a or b and (skill = x) | shadow | 50 | warmth, honesty |
";
        assert_eq!(text, expected);
        assert!(!index([]).contains("| slug |"));
    }
}
