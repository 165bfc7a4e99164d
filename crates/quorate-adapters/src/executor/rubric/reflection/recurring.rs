//! What earlier runs have come to, and the topics that came up in several of them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_protocol::Json;

use super::wording;

/// In so many runs of one type the same has to be raised.
const MIN_RUNS: usize = 3;
/// The longest id of a run that evidence can name, in characters.
const MAX_ID_CHARS: usize = 500;
/// The longest text of a finding that is read, in bytes; what is longer says nothing.
const MAX_TEXT_BYTES: usize = 4_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run<'t> {
    pub(super) id: &'t str,
    /// When it was; empty where that is not said.
    pub(super) at: &'t str,
    /// What sort of thing it was about.
    pub(super) artifact_type: &'t str,
    /// What it was about.
    pub(super) subject: &'t str,
    pub(super) findings: Vec<RunFinding<'t>>,
}

/// Something that somebody found in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunFinding<'t> {
    pub(super) member: &'t str,
    pub(super) issue: &'t str,
    /// What to do; empty where that is not said.
    pub(super) fix: &'t str,
    /// The words of the artifact.
    pub(super) quote: &'t str,
}

/// The same thing, raised in several runs.
pub(super) struct RecurringIssue<'r> {
    /// The issue's words, folded.
    pub(super) key: String,
    /// The types of artifact in which it came up often enough.
    pub(super) types: BTreeSet<&'r str>,
    /// The runs of these types in which it came up, each once, the newest first.
    pub(super) runs: Vec<&'r Run<'r>>,
    /// Every time that it came up in these runs.
    pub(super) findings: Vec<(&'r Run<'r>, &'r RunFinding<'r>)>,
}

/// The runs of the part.
pub(super) struct Runs(Json);

impl Runs {
    /// Reads a part: a JSON array of runs. What is not of that form says nothing.
    pub(super) fn read(text: &str) -> Runs {
        Runs(serde_json::from_str(text).unwrap_or_default())
    }

    /// The runs that can be named.
    pub(super) fn all(&self) -> Vec<Run<'_>> {
        self.0.as_array().into_iter().flatten().filter_map(run).collect()
    }
}

fn run(value: &Json) -> Option<Run<'_>> {
    let field = |key: &str| string(value, key);
    let named = !field("run").is_empty() && field("run").chars().count() <= MAX_ID_CHARS;
    let findings = value.get("findings").and_then(Json::as_array).into_iter().flatten();
    let parse_finding = |finding| {
        let field = |key: &str| {
            Some(string(finding, key)).filter(|text| text.len() <= MAX_TEXT_BYTES).unwrap_or_default()
        };
        let (by, issue, fix, quote) = (field("by"), field("issue"), field("fix"), field("quote"));
        (!issue.is_empty()).then_some(RunFinding { member: by, issue, fix, quote })
    };
    (named && !field("artifact_type").is_empty()).then(|| Run {
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

/// The topics that came up often enough, by key.
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
        if !runs.iter().any(|one| one.id == run.id) {
            runs.push(run);
        }
    }
    runs.sort_by(|one, other| other.at.cmp(one.at).then_with(|| one.id.cmp(other.id)));
    (!runs.is_empty()).then(|| RecurringIssue {
        key,
        types: by_type.into_keys().collect(),
        runs,
        findings: raised,
    })
}
