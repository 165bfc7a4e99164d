//! A vote (V2).
//!
//! No, where the text has what the persona refuses, tells its judges how to judge, or weighs 6 or more. Abstaining,
//! where nothing in it is in the persona's line, or more of it is for specialists than in that line. Else yes.

use std::collections::BTreeSet;

use quorate_protocol::Json;
use quorate_protocol::answers::vote::Vote;
use serde_json::json;

use super::assessment::{About, Assessment, Concern, capital, small};
use super::character::Character;
use super::sign::solicitation_decides;
use super::subject::Subject;
use super::topic::{Stance, Touch};
use super::{listed, unanswered};

/// From this severity on it is no.
const GRAVE: u8 = 6;
/// How many topics a rationale names.
const NAMED: usize = 4;
/// How many quotes an answer gives.
const QUOTES: usize = 5;

pub(super) fn answer(character: &Character, assessment: &Assessment<'_>, subject: &Subject<'_>) -> Json {
    let against: Vec<&Concern<'_>> = assessment.concerns.iter().filter(|concern| decides(concern)).collect();
    if !against.is_empty() || assessment.severity >= GRAVE {
        let named = if against.is_empty() { assessment.concerns.iter().take(2).collect() } else { against };
        let why: Vec<String> = named.iter().take(3).map(|concern| small(&concern.headline)).collect();
        return write(Vote::No, capital(&format!("{}.", why.join("; "))), assessment.quotes(subject));
    }
    let touched = |stances: &[Stance]| {
        let of = |(_, touch): &&(usize, Touch)| stances.contains(&character.topics.all[touch.topic].stance);
        assessment.touches.iter().filter(of).collect::<Vec<_>>()
    };
    let own = touched(&[Stance::Refuses, Stance::Watches, Stance::Asks, Stance::Names]);
    let others = touched(&[Stance::Defers, Stance::Redirects]);
    let phrases = |touches: &[&(usize, Touch)]| {
        let mut seen = BTreeSet::new();
        let named = touches.iter().map(|(at, touch)| word(character, subject, *at, touch));
        let fresh =
            named.filter(|word| seen.insert(word.to_lowercase())).take(NAMED).map(|word| format!("“{word}”"));
        listed(&fresh.collect::<Vec<_>>())
    };
    let quotes = |touches: &[&(usize, Touch)]| {
        let mut quotes: Vec<String> = Vec::new();
        for (at, touch) in touches.iter().take(4 * QUOTES) {
            let text = &subject.passages[*at].text;
            let quote = text.quote(&text.span(&touch.words)).to_owned();
            if quotes.len() < QUOTES && !quote.is_empty() && !quotes.contains(&quote) {
                quotes.push(quote);
            }
        }
        quotes
    };
    let name = subject.name;
    if others.len() > own.len() {
        let why = format!("More of {name} is for specialists than mine to judge: {}.", phrases(&others));
        return write(Vote::Abstain, why, quotes(&others));
    }
    let line: Vec<String> = character
        .topics_of(&[Stance::Refuses, Stance::Watches, Stance::Names])
        .take(NAMED)
        .map(|topic| format!("“{}”", topic.phrase))
        .collect();
    if own.is_empty() && !line.is_empty() {
        let why = format!("Nothing in {name} is in my line: {}.", listed(&line));
        return write(Vote::Abstain, why, Vec::new());
    }
    let touches = if own.is_empty() { String::new() } else { format!(" touches {} and", phrases(&own)) };
    let mut why = format!("{}{touches} has nothing that I would refuse.", capital(name));
    if let Some(concern) = assessment.concerns.first() {
        why.push_str(&format!(" To be minded: {}.", small(&concern.headline)));
    }
    if let Some(question) = unanswered(character, assessment).first() {
        why.push_str(&format!(" It leaves open: {question}"));
    }
    let evidence = if assessment.concerns.is_empty() { quotes(&own) } else { assessment.quotes(subject) };
    write(Vote::Yes, why, evidence)
}

/// What a touch is called: the persona's phrase, but the text's words where the persona only names a subject or asks.
fn word(character: &Character, subject: &Subject<'_>, passage: usize, touch: &Touch) -> String {
    let topic = &character.topics.all[touch.topic];
    match topic.stance {
        Stance::Names | Stance::Asks => {
            let text = &subject.passages[passage].text;
            let words = text.words[touch.words.clone()].iter().map(|word| &*word.text);
            words.collect::<Vec<_>>().join(" ")
        }
        _ => topic.phrase.clone(),
    }
}

/// Whether one concern decides the vote.
fn decides(concern: &Concern<'_>) -> bool {
    match concern.about {
        About::Topic(..) => concern.is_refused(),
        // Of a fault that is refused a slip does not decide.
        About::Sign(minds) => {
            solicitation_decides(minds.sign, &concern.places)
                || concern.is_refused() && concern.gravity >= GRAVE
        }
    }
}

fn write(vote: Vote, rationale: String, evidence: Vec<String>) -> Json {
    json!({"vote": vote.as_str(), "rationale": rationale, "evidence": evidence})
}
