//! One member's review of an artifact: the findings of its lens, its answer, and its second round after the cross-read.
//!
//! The rule that turns counted findings into a score and a block; `docs/rubric.md` documents it.
//!
//! 1. A finding counts 1 (minor), 3 (major) or 9 (critical) points; a repeated phrase counts once more each time.
//! 2. The *load* of a concern is its points per 100 words of prose; a shorter text counts as 100 words.
//! 3. The score is 5 without findings, 4 under a load of 2, 3 under 4, 2 under 8, else 1.
//! 4. A concern blocks on a critical finding, or with at least [`BLOCK_POINTS`] points and a load of
//!    [`BLOCK_LOAD`] or more.
//! 5. A block is irreducible when one of its findings cannot be repaired by an edit.
//!
//! In the second round only a member's own findings change: it leaves some to another member, and others weigh more because
//! others share them. The number of other members, or their blocks, adds no finding.

use std::cmp::Reverse;
use std::ops::Range;

use quorate_protocol::answers::deliberator::NOT_JUDGED;
use serde_json::{Map, Value, json};

use super::checks::{self, CheckFinding, Criteria};
use super::document::Document;
use super::finding::{Lens, Repair, Severity};
use super::substance;

/// How many findings an answer lists; unlisted ones still count.
const MAX_FINDINGS: usize = 12;

pub(super) struct LensReview<'d> {
    document: &'d Document<'d>,
    lens: Lens,
    pub(super) findings: Vec<CheckFinding>,
    /// Findings left to another member, one sentence each.
    pub(super) concessions: Vec<String>,
    /// Findings that weigh more because others share them, one sentence each.
    pub(super) escalations: Vec<String>,
    notes: Vec<String>,
}

impl<'d> LensReview<'d> {
    /// Reviews an artifact through a lens, without other members' answers.
    pub(super) fn first_round(lens: Lens, document: &'d Document<'d>, criteria: &Criteria<'_>) -> Self {
        let findings = checks::run(lens, document, criteria);
        let mut notes = Vec::new();
        if lens.covers(Lens::Strategy) && criteria.goals.is_empty() {
            notes.push(
                "No goals document was given, so whether the text serves a goal was not judged.".to_owned(),
            );
        }
        LensReview { document, lens, findings, concessions: Vec::new(), escalations: Vec::new(), notes }
    }

    pub(super) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// An answer that fits the deliberator's schema.
    pub(super) fn to_answer(&self) -> Value {
        let words = self.document.word_count();
        let judgement = judge(&self.findings, words);
        let verdict = match (judgement.would_block, judgement.irreducible) {
            (true, true) => "hold",
            (true, false) => "revise",
            (false, _) => "ship",
        };
        let listed = self.heaviest_findings();
        let findings: Vec<Value> = listed.iter().map(|finding| self.finding_json(finding)).collect();
        let mut answer = json!({
            "verdict": verdict,
            "score": judgement.score,
            "scores": self.scores(words),
            "would_block": judgement.would_block,
            "irreducible": judgement.irreducible,
            "revision_brief": self.revision_brief(&listed),
            "findings": findings,
            "notes": self.notes(judgement.points, words, listed.len()),
        });
        if let Some(object) = answer.as_object_mut() {
            if !self.concessions.is_empty() {
                object.insert("concessions".into(), json!(self.concessions));
            }
            if !self.escalations.is_empty() {
                object.insert("escalations".into(), json!(self.escalations));
            }
            let not_judged = substance::unread_places(self.document);
            if !not_judged.is_empty() {
                object.insert(NOT_JUDGED.into(), json!(not_judged));
            }
        }
        answer
    }

    /// The heaviest findings, in the order of the text.
    fn heaviest_findings(&self) -> Vec<&CheckFinding> {
        let mut listed: Vec<&CheckFinding> = self.findings.iter().collect();
        listed.sort_by_key(|raised| (std::cmp::Reverse(raised.finding.points()), raised.finding.span.start));
        listed.truncate(MAX_FINDINGS);
        listed.sort_by_key(|raised| (raised.finding.span.start, raised.finding.span.end));
        listed
    }

    fn finding_json(&self, raised: &CheckFinding) -> Value {
        let quote = self.document.quote(&raised.finding.span);
        json!({
            "quote": &self.document.text[quote.clone()],
            "issue": raised.finding.issue,
            "fix": raised.finding.fix,
            "line": self.document.line_of(quote.start),
            "check": raised.check.name,
            "severity": raised.finding.severity.as_str(),
        })
    }

    /// One score for each check of the lens.
    fn scores(&self, words: usize) -> Map<String, Value> {
        let findings_of = |check: &checks::Check| {
            self.findings.iter().filter(move |raised| std::ptr::eq(raised.check, check)).collect::<Vec<_>>()
        };
        let checks = checks::ALL.iter().filter(|check| self.lens.covers(check.lens));
        checks.map(|check| (check.name.into(), json!(score(findings_of(check).into_iter(), words)))).collect()
    }

    fn revision_brief(&self, listed: &[&CheckFinding]) -> Option<String> {
        let lines = listed.iter().enumerate().map(|(index, raised)| {
            let line = self.document.line_of(raised.finding.span.start);
            format!("{}. Line {line}: {} {}", index + 1, raised.finding.issue, raised.finding.fix)
        });
        let brief = lines.collect::<Vec<_>>().join("\n");
        (!brief.is_empty()).then_some(brief)
    }

    fn notes(&self, points: u32, words: usize, listed: usize) -> String {
        let mut notes =
            vec![format!("Counted by rule, no model was asked: {points} points in {words} words.")];
        if self.findings.len() > listed {
            notes.push(format!("{} findings in all, the heaviest {listed} are listed.", self.findings.len()));
        }
        notes.extend(self.notes.iter().cloned());
        notes.join(" ")
    }
}

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
    /// Whether the text must not be published unchanged.
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

#[derive(Debug, Clone, PartialEq)]
pub(super) struct PeerAnswer {
    pub(super) id: String,
    /// By the member's id.
    pub(super) lens: Lens,
    /// `answered`, or the reason for a missing answer.
    pub(super) status: String,
    /// `None` if not shown.
    pub(super) would_block: Option<bool>,
    /// Whether it claims that no edit helps.
    pub(super) irreducible: bool,
    /// 1 to 5; `None` if not shown.
    pub(super) score: Option<f64>,
    pub(super) findings: Vec<PeerFinding>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PeerFinding {
    /// Words of the artifact.
    pub(super) quote: String,
    pub(super) issue: String,
    pub(super) fix: String,
    pub(super) line: Option<usize>,
    /// Where the artifact contains the quote, if it does.
    pub(super) span: Option<Range<usize>>,
}

impl PeerAnswer {
    pub(super) fn answered(&self) -> bool {
        self.status == "answered"
    }

    /// Whether it answered and would block.
    pub(super) fn blocks(&self) -> bool {
        self.answered() && self.would_block == Some(true)
    }
}

/// Reads a part: a JSON array of answers. Anything else is ignored.
pub(super) fn read_peer_answers(text: &str, document: &Document<'_>) -> Vec<PeerAnswer> {
    let Ok(Value::Array(members)) = serde_json::from_str(text) else { return Vec::new() };
    members.iter().filter_map(|member| read_peer_answer(member, document)).collect()
}

fn read_peer_answer(member: &Value, document: &Document<'_>) -> Option<PeerAnswer> {
    let id = member.get("deliberator")?.as_str()?.to_owned();
    let findings = member.get("findings").and_then(Value::as_array).into_iter().flatten();
    Some(PeerAnswer {
        lens: Lens::of(&id, ""),
        id,
        status: string_of(member, "status"),
        would_block: member.get("would_block").and_then(Value::as_bool),
        irreducible: member.get("irreducible").and_then(Value::as_bool).unwrap_or(false),
        score: member.get("score").and_then(Value::as_f64),
        findings: findings.map(|finding| parse_finding(finding, document)).collect(),
    })
}

fn parse_finding(finding: &Value, document: &Document<'_>) -> PeerFinding {
    let quote = string_of(finding, "quote");
    let stated_line = finding.get("line").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    let span = locate(document, &quote, stated_line);
    let line = span.as_ref().map(|span| document.line_of(span.start)).or(stated_line);
    PeerFinding { issue: string_of(finding, "issue"), fix: string_of(finding, "fix"), quote, line, span }
}

fn string_of(object: &Value, key: &str) -> String {
    object.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

/// The place of a quote: on its line, else the first in the text.
fn locate(document: &Document<'_>, quote: &str, line: Option<usize>) -> Option<Range<usize>> {
    if quote.is_empty() {
        return None;
    }
    let on_line = line.map(|line| document.line(line)).and_then(|line| {
        let rest = document.text.get(line.start..)?;
        rest.find(quote).map(|at| line.start + at).filter(|at| *at <= line.end)
    });
    let start = on_line.or_else(|| document.text.find(quote))?;
    Some(start..start + quote.len())
}

pub(super) fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Joins names in a sentence: `a`, `a and b`, `a, b and c`.
pub(super) fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Points that convergence adds to a finding: a minor one then weighs as much as a major one, none becomes critical.
const CONVERGENCE_POINTS: u32 = 2;
/// How many others must share a finding.
const MIN_PEERS: usize = 2;

/// Takes the others' first answers into account.
pub(super) fn apply_peer_answers(reading: &mut LensReview<'_>, member: &str, others: &[PeerAnswer]) {
    let others: Vec<&PeerAnswer> =
        others.iter().filter(|other| other.id != member && other.answered()).collect();
    concede(reading, &others);
    escalate(reading, &others);
}

/// Leaves a finding to a member whose lens it belongs to, if that member raised it too.
fn concede(reading: &mut LensReview<'_>, others: &[&PeerAnswer]) {
    let mut own_findings = Vec::new();
    for raised in std::mem::take(&mut reading.findings) {
        let span = &raised.finding.span;
        let raises = |other: &PeerAnswer| {
            other
                .findings
                .iter()
                .filter_map(|finding| finding.span.as_ref())
                .any(|other_span| overlaps(other_span, span))
        };
        let owner = others.iter().find(|other| raised.check.yields_to.contains(&other.lens) && raises(other));
        match owner.filter(|_| raised.finding.severity != Severity::Critical) {
            None => own_findings.push(raised),
            Some(owner) => {
                let place = describe_quote(reading, &reading.document().quote(span));
                let sentence = format!(
                    "{place} is left to {}, whose concern it is and who raised the same words.",
                    owner.id
                );
                reading.concessions.push(sentence);
            }
        }
    }
    reading.findings = own_findings;
}

/// Adds weight to findings whose sentence two others raised too; failing that, to the heaviest one that blocking others
/// share.
fn escalate(reading: &mut LensReview<'_>, others: &[&PeerAnswer]) {
    let mut sentences = Vec::new();
    for index in 0..reading.findings.len() {
        let raised = &reading.findings[index];
        let peers = peers_in_sentence(reading, raised, others);
        let sentence = reading.document().sentence_at(raised.finding.span.start);
        if peers.len() >= MIN_PEERS && !sentences.contains(&sentence) {
            sentences.push(sentence);
            let names: Vec<&str> = peers.iter().map(|other| other.id.as_str()).collect();
            add_convergence(reading, index, &format!("{} stopped at the same sentence", join_names(&names)));
        }
    }
    if reading.escalations.is_empty() {
        escalate_for_blocks(reading, others);
    }
}

fn escalate_for_blocks(reading: &mut LensReview<'_>, others: &[&PeerAnswer]) {
    let blocking: Vec<&PeerAnswer> = others.iter().copied().filter(|other| other.blocks()).collect();
    let shared = |raised: &CheckFinding| peers_in_sentence(reading, raised, &blocking);
    let names: Vec<&str> = blocking
        .iter()
        .filter(|other| {
            reading.findings.iter().any(|raised| shared(raised).iter().any(|peer| peer.id == other.id))
        })
        .map(|other| other.id.as_str())
        .collect();
    let candidates =
        (0..reading.findings.len()).filter(|index| !shared(&reading.findings[*index]).is_empty());
    let heaviest =
        candidates.min_by_key(|index| (Reverse(reading.findings[*index].finding.points()), *index));
    if let Some(index) = heaviest.filter(|_| names.len() >= MIN_PEERS) {
        let why = format!("{} block on what this reading found as well", join_names(&names));
        add_convergence(reading, index, &why);
    }
}

/// Adds weight to a finding, and says why.
fn add_convergence(reading: &mut LensReview<'_>, index: usize, why: &str) {
    let quote = reading.document().quote(&reading.findings[index].finding.span);
    let note = format!("{} counts more: {why}.", describe_quote(reading, &quote));
    reading.escalations.push(note);
    reading.findings[index].finding.extra_points += CONVERGENCE_POINTS;
}

/// The others who raised a finding in the same sentence.
fn peers_in_sentence<'o>(
    reading: &LensReview<'_>,
    raised: &CheckFinding,
    others: &[&'o PeerAnswer],
) -> Vec<&'o PeerAnswer> {
    let document = reading.document();
    let sentence = document.sentence_at(raised.finding.span.start);
    let is_same_sentence =
        |span: &Range<usize>| sentence.is_some() && document.sentence_at(span.start) == sentence;
    let meets = |other: &&&PeerAnswer| {
        other.findings.iter().any(|finding| finding.span.as_ref().is_some_and(is_same_sentence))
    };
    others.iter().filter(meets).copied().collect()
}

fn describe_quote(reading: &LensReview<'_>, quote: &Range<usize>) -> String {
    format!("“{}” (line {})", reading.document().one_line(quote), reading.document().line_of(quote.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::rubric::criteria::BannedPhrases;
    use crate::executor::rubric::criteria::Goals;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it is about time")]
    fn a_text_of_one_unit_over_and_over_is_read_in_proportion_to_its_length() {
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let goals = Goals::default();
        let criteria = Criteria { banned: &banned, goals: &goals, context: &[] };
        let english = "A text of the kind that is read by all of us on each and every day at work.\n\n";
        for unit in [
            "password:\n",
            "token: >-\n",
            "word  \n",
            "17 ",
            "$17 ",
            "forever ",
            "best ",
            "never\n",
            "we are the best, so sales rose. ",
            "(n ",
            "http://a ",
            "http://&amp;",
            "\u{feff}\u{fe00}",
            "| a | b |\n",
            "- studies show\n",
            "# all users say\n",
            "\"it ",
        ] {
            let text = format!("{english}{}", unit.repeat(60_000 / unit.len()));
            let started = std::time::Instant::now();
            let document = Document::parse("", &text);
            let reading = LensReview::first_round(Lens::General, &document, &criteria);
            assert!(reading.to_answer().is_object());
            assert!(
                started.elapsed() < std::time::Duration::from_secs(3),
                "{unit:?} {:?}",
                started.elapsed()
            );
        }
    }
}

#[cfg(test)]
mod scoring_tests {
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

#[cfg(test)]
mod peer_answers_tests {
    use super::*;

    #[test]
    fn quotes_are_looked_up_on_their_line_first() {
        let document = Document::parse("", "one two\n\ntwo three\n");
        let span = |line| locate(&document, "two", line);
        assert_eq!(
            (span(Some(3)), span(Some(1)), span(None), span(Some(9))),
            (Some(9..12), Some(4..7), Some(4..7), Some(4..7))
        );
        assert_eq!(locate(&document, "four", Some(1)), None);
    }

    #[test]
    fn what_is_not_of_the_form_says_nothing() {
        let document = Document::parse("", "x");
        assert!(
            read_peer_answers("", &document).is_empty()
                && read_peer_answers("{}", &document).is_empty()
                && read_peer_answers("[1, {\"status\": 2}]", &document).is_empty()
        );
        let text = r#"[{"deliberator": "voice", "status": "answered", "would_block": "true", "findings": [{"line": -1}, 7]}]"#;
        let answers = read_peer_answers(text, &document);
        assert_eq!((answers.len(), answers[0].would_block, answers[0].findings.len()), (1, None, 2));
    }

    #[test]
    fn names_are_listed_as_one_says_them() {
        assert_eq!(join_names(&["a", "b", "c"]), "a, b and c");
    }
}

#[cfg(test)]
mod second_round_tests {
    use serde_json::{Value, json};

    use super::super::checks::Criteria;
    use super::super::criteria::BannedPhrases;
    use super::super::criteria::Goals;
    use super::super::document::Document;
    use super::super::finding::Lens;
    use super::super::lens_review;
    use super::*;

    const TEXT: &str = "We sat down in the spring to write out what we knew about the mill and its tools.\n\n\
                        Results are guaranteed and it is the fastest saw in the county by far.\n";

    fn answer(lens: Lens, member: &str, cross_read: &Value) -> Value {
        let document = Document::parse("notes.md", TEXT);
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let criteria = Criteria { banned: &banned, goals: &Goals::default(), context: &[] };
        let mut reading = LensReview::first_round(lens, &document, &criteria);
        apply_peer_answers(
            &mut reading,
            member,
            &lens_review::read_peer_answers(&cross_read.to_string(), &document),
        );
        reading.to_answer()
    }

    fn said(id: &str, quote: &str, would_block: bool) -> Value {
        json!({"deliberator": id, "status": "answered", "would_block": would_block, "findings": [{"quote": quote, "issue": "i", "line": 3}]})
    }

    #[test]
    fn an_overlap_with_the_lens_whose_business_it_is_is_conceded() {
        let answer =
            answer(Lens::Skeptic, "skeptic", &json!([said("strategy-stakes", "are guaranteed", false)]));
        assert_eq!(answer["findings"], json!([]));
        assert!(answer["concessions"][0].as_str().is_some_and(|concession| {
            concession.contains("strategy-stakes") && concession.contains("guaranteed")
        }));
    }

    #[test]
    fn an_overlap_with_another_lens_is_not() {
        let answer = answer(Lens::Skeptic, "skeptic", &json!([said("voice", "guaranteed", true)]));
        assert_eq!((answer["findings"].as_array().map(Vec::len), answer.get("concessions")), (Some(1), None));
    }

    #[test]
    fn two_others_at_the_same_sentence_add_weight() {
        let without_peers = answer(Lens::Evidence, "evidence", &json!([]));
        let with_peers = answer(
            Lens::Evidence,
            "evidence",
            &json!([said("voice", "by far", false), said("skeptic", "guaranteed", false)]),
        );
        assert!(
            with_peers["escalations"][0]
                .as_str()
                .is_some_and(|escalation| escalation.contains("voice and skeptic"))
        );
        assert!(with_peers["score"].as_u64() < without_peers["score"].as_u64());
    }

    #[test]
    fn louder_others_elsewhere_change_nothing() {
        let loud = json!([
            said("voice", "We sat down", true),
            said("skeptic", "the mill", true),
            said("strategy", "its tools", true)
        ]);
        assert_eq!(answer(Lens::Evidence, "evidence", &loud), answer(Lens::Evidence, "evidence", &json!([])));
    }

    #[test]
    fn its_own_first_answer_and_absent_members_are_not_others() {
        let mut absent = said("voice", "guaranteed", true);
        absent["status"] = json!("timed_out");
        let cross =
            json!([said("evidence", "the fastest", true), absent, said("skeptic", "guaranteed", true)]);
        assert_eq!(answer(Lens::Evidence, "evidence", &cross).get("escalations"), None);
    }

    #[test]
    fn concessions_go_one_way() {
        for check in super::super::checks::ALL {
            for owner in check.yields_to {
                let back = super::super::checks::ALL.iter().filter(|other| other.lens == *owner);
                assert!(
                    back.flat_map(|other| other.yields_to).all(|lens| *lens != check.lens),
                    "{}",
                    check.name
                );
            }
        }
    }
}
