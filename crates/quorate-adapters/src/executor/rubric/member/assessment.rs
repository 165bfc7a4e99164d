//! What a member makes of what it is shown: its concerns, each with places and a gravity, and the severity that
//! follows. The rule stands here and in `docs/rubric.md`, nowhere else.
//!
//! 1. A place has a gravity from 1 to 10. A topic that the persona refuses weighs 7 where the agent or the author has
//!    it and 4 where the user does; one that it redirects 5; one that it defers 4; one that it watches for 3. What is
//!    denied ("we do not sell data") weighs nothing. A sign weighs what its own file says, a check's finding 2, 4 or 7;
//!    1 less where the persona only mentions the fault, 2 more (up to 8) where it refuses it.
//! 2. In a conversation the last two turns weigh in full, the two before 1 less, the four before those 2 less, older
//!    ones 3 less.
//! 3. A concern is as grave as its gravest place, 1 more with two or three places, 2 more with four or more. Topics
//!    that are watched, redirected or deferred get at most 1 more.
//! 4. The severity is that of the gravest concern, 1 more if another one has a gravity of 3 or more; at most 8, unless
//!    one place alone has more.

use super::character::{Character, How, Minds};
use super::sign::{Place, Sign};
use super::subject::{Speaker, Subject};
use super::topic::{Stance, Touch};
use crate::executor::rubric::checks::Criteria;
use crate::executor::rubric::document::Document;

/// Above this only a single place of such gravity leads.
const CAP: u8 = 8;
/// From here on another concern adds to the gravest.
const COUNTS: u8 = 3;

/// What a concern is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum About<'c> {
    /// A topic of the persona's, as an index.
    Topic(usize, Stance),
    /// A fault that it minds.
    Sign(&'c Minds),
}

#[derive(Debug)]
pub(super) struct Concern<'c> {
    /// What it is about.
    pub(super) about: About<'c>,
    /// Its name in messages, the same in every round.
    pub(super) label: String,
    /// What is wrong, as a sentence without its full stop.
    pub(super) headline: String,
    /// What an agent is told to do.
    pub(super) instruction: String,
    /// From 1 to 10.
    pub(super) gravity: u8,
    /// Where, the gravest first.
    pub(super) places: Vec<Place>,
}

/// What a member makes of what it is shown.
#[derive(Debug)]
pub(super) struct Assessment<'c> {
    pub(super) concerns: Vec<Concern<'c>>,
    /// From 0 to 10.
    pub(super) severity: u8,
    /// Where the subject touches the persona's topics: the passage and the touch.
    pub(super) touches: Vec<(usize, Touch)>,
}

impl Concern<'_> {
    /// Whether the persona refuses what was found.
    pub(super) fn is_refused(&self) -> bool {
        match self.about {
            About::Topic(_, stance) => stance == Stance::Refuses,
            About::Sign(minds) => minds.how == How::Refused,
        }
    }
}

pub(super) fn assess<'c>(
    character: &'c Character,
    subject: &Subject<'_>,
    criteria: &Criteria<'_>,
) -> Assessment<'c> {
    let mut touches = Vec::new();
    for (at, passage) in subject.passages.iter().enumerate() {
        touches.extend(character.topics.touches(&passage.text).into_iter().map(|touch| (at, touch)));
        if passage.speaker == Speaker::Author {
            touches.extend(character.topics.unmentioned(&passage.text).into_iter().map(|touch| (at, touch)));
        }
    }
    let mut concerns: Vec<Concern<'_>> = Vec::new();
    // What a persona refuses is heard before what it minds.
    concerns.extend(
        (0..character.topics.all.len()).filter_map(|topic| of_topic(character, subject, topic, &touches)),
    );
    let documents: Vec<Option<Document<'_>>> = subject
        .passages
        .iter()
        .map(|passage| Sign::reads(passage.speaker).then(|| Document::parse("", passage.text.text)))
        .collect();
    concerns.extend(character.minds.iter().filter_map(|minds| of_sign(minds, subject, &documents, criteria)));
    concerns.sort_by_key(|concern| std::cmp::Reverse(concern.gravity));
    let severity = severity(&concerns);
    Assessment { concerns, severity, touches }
}

fn severity(concerns: &[Concern<'_>]) -> u8 {
    let Some(gravest) = concerns.first() else { return 0 };
    let others = concerns.iter().skip(1).any(|concern| concern.gravity >= COUNTS);
    let alone =
        concerns.iter().flat_map(|concern| &concern.places).map(|place| place.gravity).max().unwrap_or(0);
    (gravest.gravity + u8::from(others)).min(CAP.max(alone))
}

fn of_topic<'c>(
    character: &Character,
    subject: &Subject<'_>,
    topic: usize,
    touches: &[(usize, Touch)],
) -> Option<Concern<'c>> {
    let read = &character.topics.all[topic];
    let gravity = |speaker: Speaker| match (read.stance, speaker) {
        (Stance::Refuses, Speaker::User) => 4,
        (Stance::Refuses, _) => 7,
        (Stance::Redirects, _) => 5,
        (Stance::Defers, _) => 4,
        (Stance::Watches, _) => 3,
        (Stance::Asks | Stance::Names, _) => 0,
    };
    let places = touches.iter().filter(|(_, touch)| touch.topic == topic && !touch.denied).filter_map(
        |(at, touch)| {
            let passage = &subject.passages[*at];
            let gravity: u8 = gravity(passage.speaker);
            let left = gravity.checked_sub(passage.aged).filter(|left| *left > 0)?;
            Some(Place { passage: *at, span: passage.text.span(&touch.words), gravity: left })
        },
    );
    let places = ordered(places.collect());
    let first = places.first()?;
    let who = subject.who(first.passage);
    let phrase = &read.phrase;
    let (headline, instruction) = match (read.stance, subject.passages[first.passage].speaker) {
        (Stance::Refuses, Speaker::User) => (
            format!("{who} brings up “{phrase}”, a thing to refuse"),
            format!(
                "Decline {phrase}: say plainly that you do not do it, and offer what you can do in its place."
            ),
        ),
        (Stance::Refuses, _) => (
            format!("{who} goes into “{phrase}”, a thing to refuse"),
            format!(
                "Do not go on with {phrase}: say plainly that it is off the table, and offer what is not."
            ),
        ),
        (Stance::Redirects | Stance::Defers, _) => (
            format!("{who} goes into “{phrase}”, a matter for specialists"),
            format!("Leave {phrase} to a specialist: say so, and hand the question over."),
        ),
        _ => (
            format!("{who} touches “{phrase}”, a thing to watch"),
            format!("Take up {phrase} openly before you go on, and say what you make of it."),
        ),
    };
    let most = if read.stance == Stance::Refuses { 2 } else { 1 };
    Some(Concern {
        about: About::Topic(topic, read.stance),
        label: phrase.clone(),
        headline: capital(&headline),
        instruction,
        gravity: grave(&places, most),
        places,
    })
}

fn of_sign<'c>(
    minds: &'c Minds,
    subject: &Subject<'_>,
    documents: &[Option<Document<'_>>],
    criteria: &Criteria<'_>,
) -> Option<Concern<'c>> {
    let places = minds.sign.places(subject, documents, criteria).into_iter().filter_map(|place| {
        let weighed = match minds.how {
            How::Refused => place.gravity.max((place.gravity + 2).min(CAP)),
            How::Watched => place.gravity,
            How::Mentioned if place.gravity > CAP => place.gravity,
            How::Mentioned => place.gravity - 1,
        };
        let aged = subject.passages[place.passage].aged;
        let left = weighed.checked_sub(aged).filter(|left| *left > 0)?;
        Some(Place { gravity: left, ..place })
    });
    let places = ordered(places.collect());
    let first = places.first()?;
    let headline = capital(&minds.sign.headline.replace("{who}", subject.who(first.passage)));
    let told = minds.sign.instruction;
    let (headline, instruction) = match &minds.term {
        // In an emergency nothing stands before what is to be done.
        Some(term) if first.gravity <= CAP => {
            (named(headline, term), format!("Keep clear of {term}. {told}"))
        }
        Some(term) => (named(headline, term), told.to_owned()),
        None => (headline, told.to_owned()),
    };
    Some(Concern {
        about: About::Sign(minds),
        label: minds.term.clone().unwrap_or_else(|| minds.sign.name.to_owned()),
        headline,
        instruction,
        gravity: grave(&places, 2),
        places,
    })
}

/// A headline with what the persona calls it, unless it says so already.
fn named(headline: String, term: &str) -> String {
    if headline.to_lowercase().contains(&term.to_lowercase()) {
        headline
    } else {
        format!("{headline} (“{term}”)")
    }
}

/// How grave some places are together.
fn grave(places: &[Place], most: u8) -> u8 {
    let more = match places.len() {
        0 | 1 => 0,
        2 | 3 => 1,
        _ => 2,
    };
    let gravest = places.first().map_or(0, |place| place.gravity);
    (gravest + most.min(more)).min(CAP.max(gravest))
}

/// The gravest first, of equal ones the latest passage's, and in a passage in the order of its words.
fn ordered(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by_key(|place| {
        (std::cmp::Reverse(place.gravity), std::cmp::Reverse(place.passage), place.span.start, place.span.end)
    });
    places.dedup_by(|a, b| a.passage == b.passage && a.span == b.span);
    places
}

/// How many quotes an answer gives.
const QUOTES: usize = 5;
/// How many places are looked at for them: repetitions give the same quotes.
const TRIED: usize = 64;
/// How many of them are the first concern's, where others have some too.
const FIRST: usize = 3;

impl Assessment<'_> {
    /// Exact quotes of what the concerns rest on, the gravest first.
    pub(super) fn quotes(&self, subject: &Subject<'_>) -> Vec<String> {
        let mut quotes: Vec<String> = Vec::new();
        let several = self.concerns.len() > 1;
        for (at, concern) in self.concerns.iter().enumerate() {
            let most = if at == 0 && several { FIRST } else { QUOTES };
            let mut own = 0;
            for place in concern.places.iter().take(TRIED) {
                if own == most || quotes.len() == QUOTES {
                    break;
                }
                let quote = subject.passages[place.passage].text.quote(&place.span);
                if !quote.is_empty() && !quotes.iter().any(|known| known == quote) {
                    quotes.push(quote.to_owned());
                    own += 1;
                }
            }
        }
        quotes
    }

    /// What is wrong, in one sentence: the gravest concerns, each once.
    pub(super) fn concern(&self) -> Option<String> {
        let (first, rest) = self.concerns.split_first()?;
        let rest: Vec<String> = rest.iter().take(2).map(|concern| small(&concern.headline)).collect();
        let also = if rest.is_empty() { String::new() } else { format!("; also, {}", rest.join("; ")) };
        Some(format!("{}{also}.", first.headline))
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The middle of a sentence.
pub(super) fn small(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}
