//! A finding: a place in the text, the problem, a fix, and its weight; and the lens that looks for it.

use std::ops::Range;

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// Byte range in the artifact.
    pub(super) span: Range<usize>,
    pub(super) severity: Severity,
    /// Whether the problem is the text's premise or subject, which no edit of a place repairs.
    pub(super) beyond_edit: bool,
    /// Points in addition to the severity's, for repetitions.
    pub(super) extra_points: u32,
    /// The problem, in one sentence.
    pub(super) issue: String,
    /// What to do, in one sentence.
    pub(super) fix: String,
}

impl Finding {
    pub(super) fn points(&self) -> u32 {
        self.severity.points() + self.extra_points
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
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
