//! Several samples of one answer: the one that counts, by its typed fields.
//!
//! The values of a field are ordered from mild to strict. A value counts only if at least half of all samples that were asked are
//! as strict or milder, where a sample without an answer counts as the strictest: this is the median, rounded towards the
//! stricter value. Therefore a failed sample never makes the result milder, nor does a stricter answer.

use std::collections::BTreeMap;

use super::deliberator::{Adjudication, Answer, Round};
use super::{Schema, advice};
use crate::Json;

/// How often each value of each field was given.
pub type Spread = BTreeMap<String, BTreeMap<String, u32>>;

/// The answers of all samples, compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The index of the sample that counts; `None` where no answer counts.
    pub chosen: Option<usize>,
    /// How many samples gave the fields that decide the values of the chosen one.
    pub agree: u32,
    pub spread: Spread,
}

/// A typed field of an answer, with its strictness.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: &'static str,
    strictness: u8,
    word: String,
    /// Whether something follows from it. If several answers have the same deciding fields, the one nearest to the middle of the
    /// other fields is chosen.
    decides: bool,
}

/// Whether answers of this form have typed fields that can be compared.
pub fn can_compare(schema: Schema) -> bool {
    matches!(
        schema,
        Schema::FirstAnswer
            | Schema::SecondAnswer
            | Schema::Adjudication
            | Schema::Advice
            | Schema::Ballot
            | Schema::Message
    )
}

/// Compares the samples of one answer, in the order in which they were asked; `None` is a sample without an answer.
///
/// No answer counts where at most half of the samples answered, and where no sample has the middle value of every field
/// that decides.
pub fn compare(schema: Schema, samples: &[Option<Json>]) -> Compared {
    let read = |(at, answer): (usize, &Option<Json>)| Some((at, fields(schema, answer.as_ref()?)?));
    let answers: Vec<(usize, Vec<Field>)> = samples.iter().enumerate().filter_map(read).collect();
    let mut spread = Spread::new();
    for field in answers.iter().flat_map(|(_, fields)| fields) {
        *spread.entry(field.name.to_owned()).or_default().entry(field.word.clone()).or_default() += 1;
    }
    if answers.len() * 2 <= samples.len() {
        return Compared { chosen: None, agree: 0, spread };
    }
    let middle = |field: usize| {
        let mut given: Vec<u8> = answers.iter().map(|(_, fields)| fields[field].strictness).collect();
        given.sort_unstable();
        // Missing answers come after these, and more than half are there.
        given[samples.len() / 2]
    };
    let middles: Vec<u8> = (0..answers[0].1.len()).map(middle).collect();
    let is_middle = |fields: &[Field]| {
        fields.iter().zip(&middles).all(|(field, middle)| !field.decides || field.strictness == *middle)
    };
    let distance = |fields: &[Field]| {
        fields.iter().zip(&middles).map(|(field, middle)| u32::from(field.strictness.abs_diff(*middle))).sum()
    };
    let agreeing: Vec<&(usize, Vec<Field>)> =
        answers.iter().filter(|(_, fields)| is_middle(fields)).collect();
    let chosen = agreeing.iter().min_by_key(|(_, fields)| -> u32 { distance(fields) });
    let agree = u32::try_from(agreeing.len()).unwrap_or(u32::MAX);
    Compared { chosen: chosen.map(|(at, _)| *at), agree, spread }
}

fn fields(schema: Schema, answer: &Json) -> Option<Vec<Field>> {
    let field = |name, strictness, word: String, decides| Field { name, strictness, word, decides };
    let flag = |name, is: bool| field(name, u8::from(is), is.to_string(), true);
    let position = |round| {
        let answer = Answer::read(round, answer)?;
        // The variants are in the order of their strictness.
        let (strictness, word) =
            answer.verdict.map_or((0, "none"), |leaning| (leaning as u8 + 1, leaning.as_str()));
        Some(vec![
            flag("would_block", answer.would_block),
            flag("irreducible", answer.irreducible),
            field("verdict", strictness, word.to_owned(), false),
        ])
    };
    Some(match schema {
        Schema::FirstAnswer => position(Round::First)?,
        Schema::SecondAnswer => position(Round::Second)?,
        Schema::Adjudication => {
            let verdict = Adjudication::read(answer)?.verdict;
            vec![field("verdict", verdict as u8, verdict.as_str().to_owned(), true)]
        }
        Schema::Advice => {
            let severity = advice::Advice::read(answer)?.severity;
            vec![field("severity", severity, severity.to_string(), true)]
        }
        Schema::Ballot => {
            let vote = advice::Ballot::read(answer)?.vote;
            let strictness = match vote {
                advice::Vote::Yes => 0,
                advice::Vote::Abstain => 1,
                advice::Vote::No => 2,
            };
            vec![field("vote", strictness, vote.as_str().to_owned(), true)]
        }
        Schema::Message => {
            let message = advice::Message::read(answer)?;
            // To take an objection back is milder than to say nothing of it.
            let (strictness, word) = match message.objection {
                Some(false) => (0, "false"),
                None => (1, "none"),
                Some(true) => (2, "true"),
            };
            let passes = field("pass", u8::from(!message.pass), message.pass.to_string(), false);
            vec![field("objection", strictness, word.to_owned(), true), passes]
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The chosen sample and how many agree.
    fn chosen(schema: Schema, samples: &[Json]) -> (Option<usize>, u32) {
        let samples: Vec<Option<Json>> =
            samples.iter().map(|one| (!one.is_null()).then(|| one.clone())).collect();
        let compared = compare(schema, &samples);
        (compared.chosen, compared.agree)
    }

    fn position(block: bool, irreducible: bool, verdict: &str) -> Json {
        json!({"would_block": block, "irreducible": irreducible, "verdict": verdict})
    }

    #[test]
    fn the_position_of_most_deliberators_counts_and_a_tie_blocks() {
        let (ship, block) = (position(false, false, "ship"), position(true, false, "revise"));
        let never = position(true, true, "hold");
        let none = Json::Null;
        for (samples, expected) in [
            (vec![ship.clone()], (Some(0), 1)),
            (vec![block.clone(), ship.clone(), ship.clone()], (Some(1), 2)),
            (vec![ship.clone(), block.clone(), block.clone()], (Some(1), 2)),
            // A tie, for two samples and for four.
            (vec![ship.clone(), block.clone()], (Some(1), 1)),
            (vec![ship.clone(), ship.clone(), block.clone(), block.clone()], (Some(2), 2)),
            // One of three says irreducible; two of three block.
            (vec![ship.clone(), block.clone(), never.clone()], (Some(1), 1)),
            (vec![never.clone(), block.clone(), never.clone()], (Some(0), 2)),
            // A sample that failed counts as the strictest: one block of two answers is a block.
            (vec![ship.clone(), none.clone(), block.clone()], (Some(2), 1)),
            (vec![ship.clone(), none.clone(), ship.clone()], (Some(0), 2)),
            (vec![ship.clone(), ship.clone(), block.clone(), none.clone(), none.clone()], (Some(2), 1)),
            // More than half of the samples must answer.
            (vec![none.clone(), ship.clone()], (None, 0)),
            (vec![none.clone(), none.clone(), ship.clone()], (None, 0)),
            (vec![block.clone(), block.clone(), none.clone(), none.clone()], (None, 0)),
            (vec![none.clone()], (None, 0)),
            // An answer that does not fit counts as missing.
            (vec![json!({"would_block": "no"}), json!([]), ship.clone()], (None, 0)),
            // Two samples contradict each other, and no sample holds both.
            (vec![position(true, false, "hold"), position(false, true, "ship")], (None, 0)),
        ] {
            assert_eq!(chosen(Schema::FirstAnswer, &samples), expected, "{samples:?}");
            assert_eq!(chosen(Schema::SecondAnswer, &samples), expected, "{samples:?}");
        }
    }

    #[test]
    fn the_middle_verdict_of_equal_positions_is_returned() {
        let samples = ["hold", "ship", "revise"].map(|verdict| position(false, false, verdict)).to_vec();
        assert_eq!(chosen(Schema::FirstAnswer, &samples), (Some(2), 3));
        let samples = ["hold", "ship", "hold"].map(|verdict| position(true, false, verdict)).to_vec();
        assert_eq!(chosen(Schema::FirstAnswer, &samples), (Some(0), 3));
    }

    #[test]
    fn every_form_with_typed_fields_has_an_order() {
        let verdict = |word: &str| json!({"verdict": word, "reasoning": "r"});
        let vote = |word: &str| json!({"vote": word, "rationale": "r"});
        let severity = |level: u8| json!({"severity": level, "concern": "c"});
        let says =
            |objection: Json, pass: bool| json!({"message": "m", "objection": objection, "pass": pass});
        let (yes, no) = (json!(true), json!(false));
        for (schema, samples, expected) in [
            (Schema::Adjudication, vec![verdict("SHIP"), verdict("HOLD"), verdict("ship")], (Some(0), 2)),
            (Schema::Adjudication, vec![verdict("SHIP"), verdict("HOLD")], (Some(1), 1)),
            (Schema::Adjudication, vec![verdict("REVISE"), verdict("SHIP")], (Some(0), 1)),
            (Schema::Adjudication, vec![verdict("SHIP"), verdict("REVISE"), Json::Null], (Some(1), 1)),
            // Each verdict once: two of three do not ship, and two of three do not hold.
            (Schema::Adjudication, vec![verdict("HOLD"), verdict("SHIP"), verdict("REVISE")], (Some(2), 1)),
            (Schema::Ballot, vec![vote("yes"), vote("no"), vote("yes")], (Some(0), 2)),
            (Schema::Ballot, vec![vote("yes"), vote("no")], (Some(1), 1)),
            (Schema::Ballot, vec![vote("yes"), vote("abstain")], (Some(1), 1)),
            (Schema::Ballot, vec![vote("yes"), vote("abstain"), vote("no")], (Some(1), 1)),
            (Schema::Ballot, vec![vote("yes"), Json::Null, vote("yes")], (Some(0), 2)),
            (Schema::Ballot, vec![vote("yes"), Json::Null, vote("no")], (Some(2), 1)),
            (Schema::Ballot, vec![vote("yes"), Json::Null, Json::Null], (None, 0)),
            (Schema::Advice, vec![severity(9), severity(3), severity(4)], (Some(2), 1)),
            (Schema::Advice, vec![severity(2), severity(7)], (Some(1), 1)),
            (Schema::Advice, vec![severity(2), Json::Null, severity(7)], (Some(2), 1)),
            (Schema::Message, vec![says(yes.clone(), false), says(no.clone(), false)], (Some(0), 1)),
            (
                Schema::Message,
                vec![says(Json::Null, true), says(Json::Null, false), says(Json::Null, false)],
                (Some(1), 3),
            ),
            (Schema::Message, vec![says(yes, false), says(no, true), says(Json::Null, true)], (Some(2), 1)),
        ] {
            assert_eq!(chosen(schema, &samples), expected, "{schema:?} {samples:?}");
        }
        for schema in Schema::ALL {
            assert_eq!(fields(schema, &made_up(schema)).is_some(), can_compare(schema), "{schema:?}");
        }
    }

    fn made_up(schema: Schema) -> Json {
        match schema {
            Schema::Ballot => json!({"vote": "yes", "rationale": "r"}),
            Schema::Message => json!({"message": "m"}),
            Schema::Advice => json!({"severity": 1, "concern": "c"}),
            Schema::Adjudication => json!({"verdict": "SHIP", "reasoning": "r"}),
            _ => json!({"would_block": false, "irreducible": false}),
        }
    }

    #[test]
    fn the_spread_counts_each_value_of_the_answers() {
        let samples = [Some(position(true, false, "HOLD")), None, Some(json!({"would_block": false}))];
        let compared = compare(Schema::FirstAnswer, &samples);
        let spread = json!({
            "would_block": {"true": 1, "false": 1}, "irreducible": {"false": 2}, "verdict": {"hold": 1, "none": 1}
        });
        assert_eq!((json!(compared.spread), compared.chosen), (spread, Some(0)));
    }

    /// The two fields that decide; no answer is at least as strict as any.
    fn strictness(samples: &[Option<(bool, bool)>]) -> (bool, bool) {
        let answers: Vec<Option<Json>> =
            samples.iter().map(|one| one.map(|(block, never)| position(block, never, "ship"))).collect();
        let chosen = compare(Schema::FirstAnswer, &answers).chosen;
        chosen.map_or((true, true), |at| samples[at].expect("a sample that answered"))
    }

    proptest! {
        // X5
        #[test]
        fn a_stricter_or_failed_sample_never_makes_the_result_milder(
            mut samples in prop::collection::vec(prop::option::of(any::<(bool, bool)>()), 1..10),
            at in any::<prop::sample::Index>(),
            stricter in prop::option::of(any::<(bool, bool)>()),
        ) {
            let before = strictness(&samples);
            let at = at.index(samples.len());
            samples[at] = match (samples[at], stricter) {
                (Some((block, never)), Some((more, ever))) => Some((block || more, never || ever)),
                _ => None,
            };
            let after = strictness(&samples);
            prop_assert!(after.0 >= before.0 && after.1 >= before.1, "{:?} {:?} {:?}", samples, before, after);
        }

        #[test]
        fn more_than_half_of_all_samples_must_approve(
            votes in prop::collection::vec(prop::option::of(0..3_usize), 1..10),
        ) {
            let word = |vote: usize| ["yes", "abstain", "no"][vote];
            let ballot = |vote: usize| json!({"vote": word(vote), "rationale": "r"});
            let samples: Vec<Option<Json>> = votes.iter().map(|vote| vote.map(ballot)).collect();
            let compared = compare(Schema::Ballot, &samples);
            let yes = votes.iter().filter(|vote| **vote == Some(0)).count();
            let passes = compared.chosen.is_some_and(|at| votes[at] == Some(0));
            prop_assert_eq!(passes, yes * 2 > votes.len());
            let answered = votes.iter().flatten().count();
            prop_assert_eq!(compared.chosen.is_some(), answered * 2 > votes.len());
        }
    }
}
