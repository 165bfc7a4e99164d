//! A finding: a place in the text, the problem, a fix, and its weight.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Minor,
    /// A reader would be misled.
    Major,
    /// Fails the text on its own.
    Critical,
}

impl Severity {
    /// Its weight in the score.
    pub(super) fn points(self) -> u32 {
        match self {
            Severity::Minor => 1,
            Severity::Major => 3,
            Severity::Critical => 9,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Severity::Minor => "minor",
            Severity::Major => "major",
            Severity::Critical => "critical",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// An edit of the quoted place is enough.
    Edit,
    /// The problem is the text's premise or subject, which no edit changes.
    Rethink,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Byte range in the artifact.
    pub(super) span: Range<usize>,
    pub(super) severity: Severity,
    pub(super) repair: Repair,
    /// Points besides the severity's: for repetitions, or added by the second round.
    pub(super) extra_points: u32,
    /// The problem, in one sentence.
    pub(super) issue: String,
    /// What to do, in one sentence.
    pub(super) fix: String,
}

impl Finding {
    /// A finding that an edit repairs.
    pub(super) fn new(
        span: Range<usize>,
        severity: Severity,
        issue: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Finding {
            span,
            severity,
            repair: Repair::Edit,
            extra_points: 0,
            issue: issue.into(),
            fix: fix.into(),
        }
    }

    /// A critical finding that no edit repairs.
    pub(super) fn beyond_edit(span: Range<usize>, issue: impl Into<String>, fix: impl Into<String>) -> Self {
        Finding { repair: Repair::Rethink, ..Finding::new(span, Severity::Critical, issue, fix) }
    }

    pub(super) fn points(&self) -> u32 {
        self.severity.points() + self.extra_points
    }
}
