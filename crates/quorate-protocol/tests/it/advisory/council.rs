//! Advisers as a protocol is given them, and a run in which all of them end.

use quorate_manifest::assembly::Mode;
use quorate_protocol::assembly::{AssemblyRequest, Member, Setup};
use quorate_protocol::{Json, PartKind};
use serde_json::json;

use super::oracle::{Advice, Kind, Rule, Words};
use crate::test_run::{self, TestRun};

pub(crate) const TALK: &str = "user: Am I right?\nassistant: You are always right.\n";

/// A setup for the phase `session`, on the trigger `manual`.
pub(crate) fn setup(members: &[Member], sentinel_first: bool) -> Setup {
    let request = AssemblyRequest::Advisory {
        phase: "session".to_owned(),
        trigger: "manual".to_owned(),
        sentinel_first,
    };
    let mut setup = test_run::setup(Mode::Advisory, request);
    setup.members = members.to_vec();
    setup
}

/// A member of a phase, asked on these triggers; none named is all.
pub(crate) fn member(id: &str, phase: Option<&str>, triggers: Option<&[&str]>) -> Member {
    Member {
        phase: phase.map(str::to_owned),
        triggers: triggers.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
        ..test_run::member(id)
    }
}

pub(crate) fn name(index: usize) -> String {
    format!("a{index}")
}

/// So many members of the session.
pub(crate) fn session_members(many: usize) -> Vec<Member> {
    (0..many).map(|index| member(&name(index), Some("session"), None)).collect()
}

/// Ends every pending invocation with the answer in a table; members that are not in it give none.
pub(crate) fn all(sitting: &mut TestRun, says: &[(&str, Json)]) {
    while let Some(id) = sitting.out.keys().next().cloned() {
        let invoke = &sitting.out[&id];
        assert!(
            invoke.parts.iter().any(|part| part.kind == PartKind::Conversation),
            "what it is about is shown"
        );
        match says.iter().find(|(member, _)| *member == &*invoke.member) {
            Some((_, says)) => sitting.answer(&id, says.clone()),
            None => sitting.give_no_answer(&id),
        }
    }
}

/// The fragments of an outcome: member, priority, rule.
pub(crate) fn fragments(sitting: &TestRun) -> Vec<(String, u64, String)> {
    let listed = sitting.outcome()["fragments"].as_array().cloned().unwrap_or_default();
    let text = |value: &Json, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    listed
        .iter()
        .map(|fragment| {
            (
                text(fragment, "member"),
                fragment["priority"].as_u64().unwrap_or(u64::MAX),
                text(fragment, "rule"),
            )
        })
        .collect()
}

/// Whether something was noted.
pub(crate) fn notes(sitting: &TestRun, what: &str) -> bool {
    let notes = sitting.outcome()["notes"].as_array().cloned().unwrap_or_default();
    notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(what)))
}

pub(crate) fn json_of(says: &Advice) -> Json {
    let evidence: Vec<String> = (0..says.evidence).map(|at| format!("e{at}")).collect();
    json!({
        "severity": says.severity, "concern": says.concern,
        "evidence": evidence, "suggestion": says.suggestion,
    })
}

/// A rule of the oracle as a setup has it.
pub(crate) fn rule_setup(at: usize, rule: &Rule) -> quorate_protocol::assembly::Rule {
    let (kind, params) = match &rule.kind {
        Kind::Terminal { trigger, priority } => {
            ("terminal", json!({"triggerSeverity": trigger, "priority": priority}))
        }
        Kind::Priority { words, priority, ends } => {
            let kind = if matches!(words, Words::Sycophancy) { "sycophancy" } else { "over-promise" };
            let listed = matches!(words, Words::Listed).then(|| words.all());
            (
                "priority",
                json!({"triggerKind": kind, "words": listed, "priority": priority, "terminal": ends}),
            )
        }
        Kind::Aggregate { least, most, top, priority, base, ends } => (
            "aggregate",
            json!({
                "minSeverity": least, "maxSeverity": most, "topN": top,
                "priority": priority, "priorityBase": base, "terminal": ends,
            }),
        ),
    };
    let mut params = params;
    if let Json::Object(params) = &mut params {
        params.retain(|_, value| !value.is_null());
    }
    let of: Option<Vec<String>> = rule.of.as_ref().map(|of| of.iter().map(|index| name(*index)).collect());
    let of: Option<Vec<&str>> = of.as_ref().map(|of| of.iter().map(String::as_str).collect());
    test_run::rule(&format!("r{at}"), kind, of.as_deref(), params)
}
