//! A finding: a place in the text, the problem, a fix, and its weight; and the lens that looks for it.

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
}

quorate_manifest::words!(Severity { Minor = "minor", Major = "major", Critical = "critical" });

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
    /// Points in addition to the severity's: for repetitions, or from the second round.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Lens {
    /// Whether the reasoning holds.
    Skeptic,
    /// Whether it reads well and has a voice.
    Voice,
    /// Whether claims have sources.
    Evidence,
    /// Whether it serves its goal, and what it commits to.
    Strategy,
    /// Everything, for a member whose id and role name no lens.
    General,
}

/// Words in a member's id or its role's heading, and the lens that they name.
const LENS_NAMES: &[(&str, Lens)] = &[
    ("skeptic", Lens::Skeptic),
    ("sceptic", Lens::Skeptic),
    ("voice", Lens::Voice),
    ("identity", Lens::Voice),
    ("evidence", Lens::Evidence),
    ("calibration", Lens::Evidence),
    ("strategy", Lens::Strategy),
    ("stakes", Lens::Strategy),
];

impl Lens {
    /// The lens of a member: by its id, else by the first heading of its role, else [`Lens::General`].
    pub(super) fn of(member: &str, role: &str) -> Lens {
        let heading =
            role.lines().map(str::trim_start).find(|line| line.starts_with('#')).unwrap_or_default();
        Lens::named(member).or_else(|| Lens::named(heading)).unwrap_or(Lens::General)
    }

    fn named(text: &str) -> Option<Lens> {
        let text = text.to_lowercase();
        LENS_NAMES.iter().find(|(name, _)| text.contains(name)).map(|(_, lens)| *lens)
    }

    /// Whether this lens runs the checks of another.
    pub(super) fn covers(self, other: Lens) -> bool {
        self == other || self == Lens::General || other == Lens::General
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_wins_over_the_heading() {
        assert_eq!(Lens::of("voice-identity", "# Skeptic"), Lens::Voice);
        assert_eq!(Lens::of("m2", "\nYou read.\n# Evidence & Calibration\n"), Lens::Evidence);
        assert_eq!(Lens::of("m2", "You are the skeptic."), Lens::General);
    }
}
