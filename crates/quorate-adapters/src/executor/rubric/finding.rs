//! A finding: a place in the text, what is wrong there, what to do, and how much it counts.

use std::ops::Range;

/// How much a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Minor,
    /// A reader would be misled.
    Major,
    /// The text fails on it alone.
    Critical,
}

impl Severity {
    /// The points that it counts.
    pub(super) fn points(self) -> u32 {
        match self {
            Severity::Minor => 1,
            Severity::Major => 3,
            Severity::Critical => 9,
        }
    }

    /// The word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Severity::Minor => "minor",
            Severity::Major => "major",
            Severity::Critical => "critical",
        }
    }
}

/// Whether a line edit can repair what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// An edit of the quoted place is enough.
    Edit,
    /// The text lacks or rests on something that no edit gives or takes.
    Rethink,
}

/// Something found at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Where, in bytes of the artifact.
    pub(super) span: Range<usize>,
    /// How much it counts.
    pub(super) severity: Severity,
    /// Whether an edit repairs it.
    pub(super) repair: Repair,
    /// Points beside the severity's: repetitions, or what a second reading added.
    pub(super) extra_points: u32,
    /// What is wrong, one sentence.
    pub(super) issue: String,
    /// What to do, one sentence.
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
