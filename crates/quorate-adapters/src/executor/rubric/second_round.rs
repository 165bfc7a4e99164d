//! The second round: findings that a member leaves to another, and findings that weigh more because others share them.
//!
//! Only a member's own findings change. The number of other members, or their blocks, adds no finding.

use std::cmp::Reverse;
use std::ops::Range;

use super::checks::CheckFinding;
use super::finding::Severity;
use super::lens_review::LensReview;
use super::peer_answers::{PeerAnswer, join_names, overlaps};

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
            let quote = reading.document().quote(&raised.finding.span);
            let note = format!(
                "{} counts more: {} stopped at the same sentence.",
                describe_quote(reading, &quote),
                join_names(&names)
            );
            reading.escalations.push(note);
            reading.findings[index].finding.extra_points += CONVERGENCE_POINTS;
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
        let quote = reading.document().quote(&reading.findings[index].finding.span);
        let note = format!(
            "{} counts more: {} block on what this reading found as well.",
            describe_quote(reading, &quote),
            join_names(&names)
        );
        reading.escalations.push(note);
        reading.findings[index].finding.extra_points += CONVERGENCE_POINTS;
    }
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
    use serde_json::{Value, json};

    use super::super::banned::BannedPhrases;
    use super::super::checks::Criteria;
    use super::super::document::Document;
    use super::super::goals::Goals;
    use super::super::lens::Lens;
    use super::super::peer_answers;
    use super::*;

    const TEXT: &str = "We sat down in the spring to write out what we knew about the mill and its tools.\n\n\
                        Results are guaranteed and it is the fastest saw in the county by far.\n";

    fn answer(lens: Lens, member: &str, cross_read: &Value) -> Value {
        let document = Document::parse("notes.md", TEXT);
        let banned = BannedPhrases::new(true, &[]).expect("usable");
        let criteria = Criteria { banned: &banned, goals: &Goals::default(), context: &[] };
        let mut reading = LensReview::first_round(lens, &document, &criteria);
        apply_peer_answers(&mut reading, member, &peer_answers::read(&cross_read.to_string(), &document));
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
