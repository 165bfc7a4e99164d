//! Reads earlier runs, and finds the issues that recur in several of them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::Json;

use super::issue::{RecurringIssue, Run, RunFinding};
use super::wording;

/// The fewest runs on one type of artifact in which an issue must occur.
const MIN_RUNS: usize = 3;
/// The longest run id that evidence can name, in characters.
const MAX_ID_CHARS: usize = 500;
/// The longest text of a finding that is read, in bytes; longer ones are ignored.
const MAX_TEXT_BYTES: usize = 4_000;

pub(super) struct Runs(Json);

impl Runs {
    /// Reads a part: a JSON array of runs. Anything else is ignored.
    pub(super) fn read(text: &str) -> Runs {
        Runs(serde_json::from_str(text).unwrap_or_default())
    }

    /// The runs with a valid id.
    pub(super) fn all(&self) -> Vec<Run<'_>> {
        self.0.as_array().into_iter().flatten().filter_map(run).collect()
    }
}

fn run(value: &Json) -> Option<Run<'_>> {
    let field = |key: &str| string(value, key);
    let has_valid_id = !field("run").is_empty() && field("run").chars().count() <= MAX_ID_CHARS;
    let findings = value.get("findings").and_then(Json::as_array).into_iter().flatten();
    let parse_finding = |finding| {
        let field = |key: &str| {
            Some(string(finding, key)).filter(|text| text.len() <= MAX_TEXT_BYTES).unwrap_or_default()
        };
        let (member, issue, fix, quote) = (field("by"), field("issue"), field("fix"), field("quote"));
        (!issue.is_empty()).then_some(RunFinding { member, issue, fix, quote })
    };
    (has_valid_id && !field("artifact_type").is_empty()).then(|| Run {
        id: field("run"),
        at: field("at"),
        artifact_type: field("artifact_type"),
        subject: field("subject"),
        findings: findings.filter_map(parse_finding).collect(),
    })
}

fn string<'t>(object: &'t Json, key: &str) -> &'t str {
    object.get(key).and_then(Json::as_str).unwrap_or_default().trim()
}

/// The issues that occur often enough, by key.
pub(super) fn recurring_issues<'r>(runs: &'r [Run<'r>]) -> Vec<RecurringIssue<'r>> {
    let mut by_key: BTreeMap<String, Vec<(&Run<'_>, &RunFinding<'_>)>> = BTreeMap::new();
    for run in runs {
        for raised in &run.findings {
            by_key.entry(wording::comparison_key(raised.issue)).or_default().push((run, raised));
        }
    }
    by_key.remove("");
    by_key.into_iter().filter_map(|(key, raised)| recurring_issue(key, raised)).collect()
}

fn recurring_issue<'r>(
    key: String,
    mut raised: Vec<(&'r Run<'r>, &'r RunFinding<'r>)>,
) -> Option<RecurringIssue<'r>> {
    let mut by_type: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (run, _) in &raised {
        by_type.entry(run.artifact_type).or_default().insert(run.id);
    }
    by_type.retain(|_, runs| runs.len() >= MIN_RUNS);
    raised.retain(|(run, _)| by_type.contains_key(run.artifact_type));
    let mut runs: Vec<&Run<'_>> = Vec::new();
    for (run, _) in &raised {
        if !runs.iter().any(|known| known.id == run.id) {
            runs.push(run);
        }
    }
    runs.sort_by(|left, right| right.at.cmp(left.at).then_with(|| left.id.cmp(right.id)));
    (!runs.is_empty()).then(|| RecurringIssue {
        key,
        types: by_type.into_keys().collect(),
        runs,
        findings: raised,
    })
}
