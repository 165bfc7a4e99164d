//! The second round: what a member leaves to another, and what counts more because others stopped there too.
//!
//! Only its own findings move. That others block, or are many, adds nothing that the member did not find itself.

use std::cmp::Reverse;
use std::ops::Range;

use super::checks::Raised;
use super::finding::Severity;
use super::others::{Other, listed, overlap};
use super::reading::Reading;

/// What convergence adds to a finding: a slip becomes as heavy as a major finding, none becomes critical.
const CONVERGENCE: u32 = 2;
/// So many others make convergence.
const OTHERS: usize = 2;

/// Takes the others' first answers into account.
pub(super) fn react(reading: &mut Reading<'_>, member: &str, others: &[Other]) {
    let others: Vec<&Other> = others.iter().filter(|other| other.id != member && other.answered()).collect();
    concede(reading, &others);
    escalate(reading, &others);
}

/// A finding whose words are more another lens's business, which raised them too, is left to that member.
fn concede(reading: &mut Reading<'_>, others: &[&Other]) {
    let mut kept = Vec::new();
    for raised in std::mem::take(&mut reading.raised) {
        let span = &raised.finding.span;
        let raises = |other: &Other| {
            other.findings.iter().filter_map(|heard| heard.span.as_ref()).any(|one| overlap(one, span))
        };
        let heir = others.iter().find(|other| raised.check.yields_to.contains(&other.lens) && raises(other));
        match heir.filter(|_| raised.finding.severity != Severity::Critical) {
            None => kept.push(raised),
            Some(heir) => {
                let place = place(reading, &reading.document().quote(span));
                let said = format!(
                    "{place} is left to {}, whose concern it is and who raised the same words.",
                    heir.id
                );
                reading.concessions.push(said);
            }
        }
    }
    reading.raised = kept;
}

/// A finding counts more when two others stopped at the same sentence; failing that, the heaviest one that blocking
/// others share.
fn escalate(reading: &mut Reading<'_>, others: &[&Other]) {
    let mut sentences = Vec::new();
    for index in 0..reading.raised.len() {
        let raised = &reading.raised[index];
        let met = meeting(reading, raised, others);
        let sentence = reading.document().sentence_at(raised.finding.span.start);
        if met.len() >= OTHERS && !sentences.contains(&sentence) {
            sentences.push(sentence);
            let names: Vec<&str> = met.iter().map(|other| other.id.as_str()).collect();
            let quote = reading.document().quote(&raised.finding.span);
            let said = format!(
                "{} counts more: {} stopped at the same sentence.",
                place(reading, &quote),
                listed(&names)
            );
            reading.escalations.push(said);
            reading.raised[index].finding.extra += CONVERGENCE;
        }
    }
    if reading.escalations.is_empty() {
        escalate_for_blocks(reading, others);
    }
}

fn escalate_for_blocks(reading: &mut Reading<'_>, others: &[&Other]) {
    let blocking: Vec<&Other> = others.iter().copied().filter(|other| other.blocks()).collect();
    let shared = |raised: &Raised| meeting(reading, raised, &blocking);
    let names: Vec<&str> = blocking
        .iter()
        .filter(|other| {
            reading.raised.iter().any(|raised| shared(raised).iter().any(|one| one.id == other.id))
        })
        .map(|other| other.id.as_str())
        .collect();
    let candidates = (0..reading.raised.len()).filter(|index| !shared(&reading.raised[*index]).is_empty());
    let heaviest = candidates.min_by_key(|index| (Reverse(reading.raised[*index].finding.points()), *index));
    if let Some(index) = heaviest.filter(|_| names.len() >= OTHERS) {
        let quote = reading.document().quote(&reading.raised[index].finding.span);
        let said = format!(
            "{} counts more: {} block on what this reading found as well.",
            place(reading, &quote),
            listed(&names)
        );
        reading.escalations.push(said);
        reading.raised[index].finding.extra += CONVERGENCE;
    }
}

/// The others who found something in the sentence of a finding.
fn meeting<'o>(reading: &Reading<'_>, raised: &Raised, others: &[&'o Other]) -> Vec<&'o Other> {
    let document = reading.document();
    let sentence = document.sentence_at(raised.finding.span.start);
    let there = |span: &Range<usize>| sentence.is_some() && document.sentence_at(span.start) == sentence;
    let meets = |other: &&&Other| other.findings.iter().any(|heard| heard.span.as_ref().is_some_and(there));
    others.iter().filter(meets).copied().collect()
}

fn place(reading: &Reading<'_>, quote: &Range<usize>) -> String {
    format!("“{}” (line {})", reading.document().said(quote), reading.document().line_of(quote.start))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::banned::Banned;
    use super::super::checks::Criteria;
    use super::super::document::Document;
    use super::super::goals::Goals;
    use super::super::lens::Lens;
    use super::super::others;
    use super::*;

    const TEXT: &str = "We sat down in the spring to write out what we knew about the mill and its tools.\n\n\
                        Results are guaranteed and it is the fastest saw in the county by far.\n";

    fn answer(lens: Lens, member: &str, cross_read: &Value) -> Value {
        let document = Document::parse("notes.md", TEXT);
        let banned = Banned::new(true, &[]).expect("usable");
        let criteria = Criteria { banned: &banned, goals: &Goals::default(), context: &[] };
        let mut reading = Reading::first(lens, &document, &criteria);
        react(&mut reading, member, &others::read(&cross_read.to_string(), &document));
        reading.answer()
    }

    fn said(id: &str, quote: &str, would_block: bool) -> Value {
        json!({"deliberator": id, "status": "answered", "would_block": would_block, "findings": [{"quote": quote, "issue": "i", "line": 3}]})
    }

    #[test]
    fn an_overlap_with_the_lens_whose_business_it_is_is_conceded() {
        let answer =
            answer(Lens::Skeptic, "skeptic", &json!([said("strategy-stakes", "are guaranteed", false)]));
        assert_eq!(answer["findings"], json!([]));
        assert!(
            answer["concessions"][0]
                .as_str()
                .is_some_and(|said| said.contains("strategy-stakes") && said.contains("guaranteed"))
        );
    }

    #[test]
    fn an_overlap_with_another_lens_is_not() {
        let answer = answer(Lens::Skeptic, "skeptic", &json!([said("voice", "guaranteed", true)]));
        assert_eq!((answer["findings"].as_array().map(Vec::len), answer.get("concessions")), (Some(1), None));
    }

    #[test]
    fn two_others_at_the_same_sentence_add_weight() {
        let alone = answer(Lens::Evidence, "evidence", &json!([]));
        let met = answer(
            Lens::Evidence,
            "evidence",
            &json!([said("voice", "by far", false), said("skeptic", "guaranteed", false)]),
        );
        assert!(met["escalations"][0].as_str().is_some_and(|said| said.contains("voice and skeptic")));
        assert!(met["score"].as_u64() < alone["score"].as_u64());
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
            for heir in check.yields_to {
                let back = super::super::checks::ALL.iter().filter(|other| other.lens == *heir);
                assert!(
                    back.flat_map(|other| other.yields_to).all(|lens| *lens != check.lens),
                    "{}",
                    check.name
                );
            }
        }
    }
}
