//! Runs with their findings, and issues that recur in them.

use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run<'t> {
    pub(super) id: &'t str,
    /// Timestamp; may be empty.
    pub(super) at: &'t str,
    pub(super) artifact_type: &'t str,
    /// The name of the artifact; may be empty.
    pub(super) subject: &'t str,
    pub(super) findings: Vec<RunFinding<'t>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunFinding<'t> {
    pub(super) member: &'t str,
    pub(super) issue: &'t str,
    /// May be empty.
    pub(super) fix: &'t str,
    /// Words of the artifact.
    pub(super) quote: &'t str,
}

/// One issue that several runs raised.
pub(super) struct RecurringIssue<'r> {
    /// The issue's normalized words.
    pub(super) key: String,
    /// The types of artifact in which it occurred often enough.
    pub(super) types: BTreeSet<&'r str>,
    /// The runs on these types in which it occurred, each once, the newest first.
    pub(super) runs: Vec<&'r Run<'r>>,
    /// Each occurrence in these runs.
    pub(super) findings: Vec<(&'r Run<'r>, &'r RunFinding<'r>)>,
}
