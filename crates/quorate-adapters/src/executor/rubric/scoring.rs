//! The rule that turns counted findings into a score and a block; `docs/rubric.md` documents it.
//!
//! 1. A finding counts 1 (minor), 3 (major) or 9 (critical) points; a repeated phrase counts once more each time.
//! 2. The *load* of a concern is its points per 100 words of prose; a shorter text counts as 100 words.
//! 3. The score is 5 without findings, 4 under a load of 2, 3 under 4, 2 under 8, else 1.
//! 4. A concern blocks on a critical finding, or with at least [`BLOCK_POINTS`] points and a load of
//!    [`BLOCK_LOAD`] or more.
//! 5. A block is irreducible when one of its findings cannot be repaired by an edit.

use super::checks::CheckFinding;
use super::finding::{Repair, Severity};
use super::lens::Lens;

/// With fewer points a concern blocks only on a critical finding.
const BLOCK_POINTS: u32 = 6;
/// The load, in points per 100 words, from which a concern blocks.
const BLOCK_LOAD: u64 = 3;
/// A text counts as at least this long.
const MIN_WORDS: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) points: u32,
    /// 1 to 5.
    pub(super) score: u8,
    /// Whether the text must not be published as it is.
    pub(super) would_block: bool,
    /// Whether no edit repairs the block.
    pub(super) irreducible: bool,
}

/// Judges the findings of one review. A review under several concerns blocks if one of them does, and gets the lowest of
/// their scores.
pub(super) fn judge(raised: &[CheckFinding], words: usize) -> Judgement {
    let concerns = [Lens::General, Lens::Skeptic, Lens::Voice, Lens::Evidence, Lens::Strategy];
    let judged = concerns.map(|concern| {
        let of_concern: Vec<&CheckFinding> =
            raised.iter().filter(|finding| finding.check.lens == concern).collect();
        judge_concern(&of_concern, words)
    });
    Judgement {
        points: judged.iter().map(|judgement| judgement.points).sum(),
        score: judged.iter().map(|judgement| judgement.score).min().unwrap_or(5),
        would_block: judged.iter().any(|judgement| judgement.would_block),
        irreducible: judged.iter().any(|judgement| judgement.irreducible),
    }
}

/// The score of a subset of findings, such as those of one check.
pub(super) fn score<'r>(raised: impl Iterator<Item = &'r CheckFinding>, words: usize) -> u8 {
    judge_concern(&raised.collect::<Vec<_>>(), words).score
}

fn judge_concern(raised: &[&CheckFinding], words: usize) -> Judgement {
    let points: u32 = raised.iter().map(|raised_finding| raised_finding.finding.points()).sum();
    let length = (words as u64).max(MIN_WORDS);
    // Compared without division: points / words * 100 < load.
    let under = |load: u64| u64::from(points) * 100 < load * length;
    let score = match () {
        () if points == 0 => 5,
        () if under(2) => 4,
        () if under(4) => 3,
        () if under(8) => 2,
        () => 1,
    };
    let critical = raised.iter().any(|raised_finding| raised_finding.finding.severity == Severity::Critical);
    let would_block = critical || points >= BLOCK_POINTS && !under(BLOCK_LOAD);
    let beyond_edit = raised.iter().any(|raised_finding| raised_finding.finding.repair == Repair::Rethink);
    // A text with one critical finding scores no better than one with many others.
    let score = if critical { score.min(2) } else { score };
    Judgement { points, score, would_block, irreducible: would_block && beyond_edit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::rubric::checks::ALL;
    use crate::executor::rubric::finding::Finding;

    fn raised(lens: Lens, severities: &[Severity]) -> Vec<CheckFinding> {
        let check = ALL.iter().find(|check| check.lens == lens).expect("a check of every lens");
        let finding = |severity: &Severity| CheckFinding {
            check,
            finding: Finding::new(0..0, *severity, "issue", "fix"),
        };
        severities.iter().map(finding).collect()
    }

    #[test]
    fn length_dilutes_slips_but_not_a_critical_finding() {
        let majors = raised(Lens::Evidence, &[Severity::Major; 3]);
        assert!(judge(&majors, 300).would_block);
        assert!(!judge(&majors, 301).would_block);
        let critical = raised(Lens::Evidence, &[Severity::Critical]);
        assert!(judge(&critical, 100_000).would_block);
    }

    #[test]
    fn one_slip_in_a_short_text_does_not_block() {
        assert!(!judge(&raised(Lens::Voice, &[Severity::Major]), 20).would_block);
        assert!(judge(&raised(Lens::Voice, &[Severity::Major; 2]), 20).would_block);
    }

    #[test]
    fn concerns_are_not_added_up() {
        let mut mixed = raised(Lens::Voice, &[Severity::Major]);
        mixed.extend(raised(Lens::Evidence, &[Severity::Major]));
        assert!(!judge(&mixed, 20).would_block);
    }

    #[test]
    fn scores_fall_with_the_load() {
        let score_of = |minors: usize| judge(&raised(Lens::Voice, &vec![Severity::Minor; minors]), 100).score;
        assert_eq!([0, 1, 2, 4, 8].map(score_of), [5, 4, 3, 2, 1]);
    }

    #[test]
    fn irreducible_only_with_a_finding_beyond_an_edit() {
        let mut findings = raised(Lens::Strategy, &[Severity::Critical]);
        assert!(!judge(&findings, 50).irreducible);
        findings[0].finding.repair = Repair::Rethink;
        assert!(judge(&findings, 50).irreducible);
    }
}
