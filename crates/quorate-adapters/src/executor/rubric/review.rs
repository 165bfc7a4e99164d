//! One member's review of an artifact: the findings of its lens, its score, and its answer.
//!
//! The rule that turns counted findings into a score and a block; `docs/rubric.md` documents it.
//!
//! 1. A finding counts 1 (minor), 3 (major) or 9 (critical) points; a repeated phrase counts once more each time.
//! 2. The *load* of a concern is its points per 100 words of prose; a shorter text counts as 100 words.
//! 3. The score is 5 without findings, 4 under a load of 2, 3 under 4, 2 under 8, else 1; at most 2 with a critical finding.
//! 4. A concern blocks on a critical finding, or with at least [`BLOCK_POINTS`] points and a load of
//!    [`BLOCK_LOAD`] or more.
//! 5. A block is irreducible when one of its findings cannot be repaired by an edit.

use std::cmp::Reverse;

use quorate_protocol::Json;
use quorate_protocol::answers::deliberator::NOT_JUDGED;
use serde_json::{Map, json};

use super::checks::{self, CheckFinding, Criteria, Reading};
use super::document::Document;
use super::finding::{Lens, Severity};
use super::scope;

/// How many findings an answer lists; unlisted ones still count.
const MAX_FINDINGS: usize = 12;
/// With fewer points a concern blocks only on a critical finding.
const BLOCK_POINTS: u32 = 6;
/// The load, in points per 100 words, from which a concern blocks.
const BLOCK_LOAD: u64 = 3;
/// A text counts as at least this long.
const MIN_WORDS: u64 = 100;

/// An answer that fits the deliberator's schema.
pub(super) fn answer(lens: Lens, document: &Document<'_>, criteria: &Criteria<'_>) -> Json {
    let reading = Reading::new(document, criteria);
    let findings = reading.run(lens);
    let words = document.word_count();
    let judgement = judge(&findings, words);
    let verdict = match (judgement.would_block, judgement.irreducible) {
        (true, true) => "hold",
        (true, false) => "revise",
        (false, _) => "ship",
    };
    let listed = heaviest(&findings, MAX_FINDINGS);
    let checks = checks::ALL.iter().filter(|check| lens.covers(check.lens));
    let scores: Map<String, Json> = checks
        .map(|check| {
            let found =
                findings.iter().filter(|raised| std::ptr::eq(raised.check, check)).collect::<Vec<_>>();
            (check.name.clone(), json!(judge_concern(&found, words).score))
        })
        .collect();
    let brief = listed.iter().enumerate().map(|(at, raised)| {
        let finding = &raised.finding;
        format!(
            "{}. Line {}: {} {}",
            at + 1,
            document.line_of(finding.span.start),
            finding.issue,
            finding.fix
        )
    });
    let brief = brief.collect::<Vec<_>>().join("\n");
    let mut notes =
        vec![format!("Counted by rule, no model was asked: {} points in {words} words.", judgement.points)];
    if findings.len() > listed.len() {
        notes.push(format!("{} findings in all, the heaviest {} are listed.", findings.len(), listed.len()));
    }
    if lens.covers(Lens::Strategy) && criteria.goals.is_empty() {
        notes.push(
            "No goals document was given, so whether the text serves a goal was not judged.".to_owned(),
        );
    }
    let mut answer = json!({
        "verdict": verdict,
        "score": judgement.score,
        "scores": scores,
        "would_block": judgement.would_block,
        "irreducible": judgement.irreducible,
        "revision_brief": (!brief.is_empty()).then_some(brief),
        "findings": listed.iter().map(|raised| finding_json(document, raised)).collect::<Vec<_>>(),
        "notes": notes.join(" "),
    });
    let not_judged = scope::unread_places(document, &reading.suppressions);
    if !not_judged.is_empty() {
        answer[NOT_JUDGED] = json!(not_judged);
    }
    answer
}

/// So many findings, the heaviest, in the order of the text.
fn heaviest(findings: &[CheckFinding], most: usize) -> Vec<&CheckFinding> {
    let mut listed: Vec<&CheckFinding> = findings.iter().collect();
    listed.sort_by_key(|raised| (Reverse(raised.finding.points()), raised.finding.span.start));
    listed.truncate(most);
    listed.sort_by_key(|raised| (raised.finding.span.start, raised.finding.span.end));
    listed
}

fn finding_json(document: &Document<'_>, raised: &CheckFinding) -> Json {
    let quote = document.quote(&raised.finding.span);
    json!({
        "quote": &document.text[quote.clone()],
        "issue": raised.finding.issue,
        "fix": raised.finding.fix,
        "line": document.line_of(quote.start),
        "check": raised.check.name,
        "severity": raised.finding.severity.as_str(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Judgement {
    points: u32,
    /// 1 to 5.
    score: u8,
    /// Whether the text must not be published unchanged.
    would_block: bool,
    /// Whether no edit repairs the block.
    irreducible: bool,
}

/// Judges the findings of one review. A review under several concerns blocks if one of them does, and gets the lowest of
/// their scores.
fn judge(raised: &[CheckFinding], words: usize) -> Judgement {
    let concerns = [Lens::General, Lens::Skeptic, Lens::Voice, Lens::Evidence, Lens::Strategy];
    let judged = concerns.map(|concern| {
        let of_concern: Vec<&CheckFinding> = raised.iter().filter(|one| one.check.lens == concern).collect();
        judge_concern(&of_concern, words)
    });
    Judgement {
        points: judged.iter().map(|judgement| judgement.points).sum(),
        score: judged.iter().map(|judgement| judgement.score).min().unwrap_or(5),
        would_block: judged.iter().any(|judgement| judgement.would_block),
        irreducible: judged.iter().any(|judgement| judgement.irreducible),
    }
}

fn judge_concern(raised: &[&CheckFinding], words: usize) -> Judgement {
    let points: u32 = raised.iter().map(|raised| raised.finding.points()).sum();
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
    let critical = raised.iter().any(|raised| raised.finding.severity == Severity::Critical);
    let would_block = critical || points >= BLOCK_POINTS && !under(BLOCK_LOAD);
    let beyond_edit = raised.iter().any(|raised| raised.finding.beyond_edit);
    let score = if critical { score.min(2) } else { score };
    Judgement { points, score, would_block, irreducible: would_block && beyond_edit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::rubric::finding::Finding;

    fn raised(lens: Lens, severities: &[Severity]) -> Vec<CheckFinding> {
        let check = checks::ALL.iter().find(|check| check.lens == lens).expect("a check of every lens");
        let finding = |severity: &Severity| CheckFinding {
            check,
            finding: Finding {
                span: 0..0,
                severity: *severity,
                beyond_edit: false,
                extra_points: 0,
                issue: "issue".to_owned(),
                fix: "fix".to_owned(),
            },
        };
        severities.iter().map(finding).collect()
    }

    #[test]
    fn length_dilutes_slips_but_not_a_critical_finding() {
        let majors = raised(Lens::Evidence, &[Severity::Major; 3]);
        assert!(judge(&majors, 300).would_block && !judge(&majors, 301).would_block);
        assert!(judge(&raised(Lens::Evidence, &[Severity::Critical]), 100_000).would_block);
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
        findings[0].finding.beyond_edit = true;
        assert!(judge(&findings, 50).irreducible);
    }
}
