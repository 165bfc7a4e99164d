//! Who a member is, as far as it can be read without a model: its topics, and which faults it minds. From its persona
//! where it has one, else from its role's text.

mod body;

use quorate_protocol::Json;

use super::sign::{self, Sign};
use super::stems::is_generic;
use super::text::{folded_line, has};
use super::topic::{Stance, Topic, Topics};

/// A longer persona is read up to here, in bytes.
const BODY: usize = 64 * 1024;
/// A longer role is a text.
const TITLE: usize = 8;
/// How many topics are kept.
const TOPICS: usize = 200;

/// Who a member is.
#[derive(Debug)]
pub(super) struct Character {
    /// What it speaks of.
    pub(super) topics: Topics,
    /// The faults that it minds, those that it minds most first.
    pub(super) minds: Vec<Minds>,
}

/// A fault that somebody minds.
#[derive(Debug, Clone)]
pub(super) struct Minds {
    pub(super) sign: &'static Sign,
    /// What the persona calls it, where it has a phrase of its own for it.
    pub(super) term: Option<String>,
    pub(super) how: How,
}

/// How much a fault is minded, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    /// The persona refuses it.
    Refused,
    /// It is what the persona is for.
    Watched,
    Mentioned,
}

/// What is gathered while a persona is read.
#[derive(Default)]
struct Reader {
    topics: Vec<Topic>,
    minds: Vec<Minds>,
}

impl Character {
    /// Reads a member. Its id counts too: a member called `ciso` has security in its line.
    pub(super) fn read(member: &str, role: &str, persona: Option<&Json>) -> Character {
        let mut reader = Reader::default();
        match persona {
            Some(persona) => reader.persona(persona),
            None => {
                // A role of a few words is a title.
                if role.split_whitespace().nth(TITLE).is_none() {
                    reader.names(role);
                }
                reader.body(role);
            }
        }
        reader.names(&member.replace(['-', '_'], " "));
        let Reader { topics, mut minds } = reader;
        for sign in sign::ALL {
            if sign.always && !minds.iter().any(|one| std::ptr::eq(one.sign, sign)) {
                minds.push(Minds { sign, term: None, how: How::Mentioned });
            }
        }
        // Who says nothing of itself reads as a careful reader would.
        if topics.iter().all(|topic| topic.stance == Stance::Names) && minds.iter().all(|one| one.sign.always)
        {
            let rest = sign::ALL.iter().filter(|sign| sign.unless_said && !sign.always);
            minds.extend(rest.map(|sign| Minds { sign, term: None, how: How::Mentioned }));
        }
        minds.sort_by_key(|one| one.how);
        Character { topics: Topics::new(topics), minds }
    }

    /// The topics of some stances, in the persona's order.
    pub(super) fn topics_of(&self, stances: &[Stance]) -> impl Iterator<Item = &Topic> {
        self.topics.all.iter().filter(move |topic| stances.contains(&topic.stance))
    }
}

impl Reader {
    fn persona(&mut self, persona: &Json) {
        let text = |pointer: &str| persona.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
        let texts = |pointer: &str| {
            let list = persona.pointer(pointer).and_then(Json::as_array).into_iter().flatten();
            list.filter_map(Json::as_str).collect::<Vec<_>>()
        };
        texts("/boundaries/refuses").into_iter().for_each(|phrase| self.topic(phrase, Stance::Refuses));
        let redirects =
            persona.pointer("/boundaries/redirects").and_then(Json::as_array).into_iter().flatten();
        for topic in redirects.filter_map(|one| one.get("topic")?.as_str()) {
            self.topic(topic, Stance::Redirects);
        }
        texts("/boundaries/defers").into_iter().for_each(|phrase| self.topic(phrase, Stance::Defers));
        // What a tone or an archetype is called is not what its bearer looks for, but says which faults it minds.
        for word in texts("/voice/tonality").into_iter().chain(texts("/backstory/archetypes")) {
            self.minds(word, How::Watched, None);
        }
        self.minds(text("/description"), How::Mentioned, None);
        self.names(text("/title"));
        for tag in texts("/tags") {
            self.minds(tag, How::Watched, None);
            self.name(tag);
        }
        self.body(text("/body"));
    }

    fn body(&mut self, body: &str) {
        let mut end = body.len().min(BODY);
        while !body.is_char_boundary(end) {
            end -= 1;
        }
        body::read(&body[..end], self);
    }

    /// Takes in a phrase that the persona has a stance to. What one of the signs looks for is left to it: a text that
    /// flatters does not say "flattery".
    fn topic(&mut self, phrase: &str, stance: Stance) {
        let Some(topic) = Topic::read(phrase, stance) else { return };
        let how = if stance == Stance::Refuses { How::Refused } else { How::Watched };
        let covered = self.minds(phrase, how, Some(&topic.phrase));
        let left_to_sign = covered && matches!(stance, Stance::Refuses | Stance::Watches);
        // The heaviest stance is taken in first; a lighter one to the same adds nothing.
        let known = self.topics.iter().any(|known| known.phrase.eq_ignore_ascii_case(&topic.phrase));
        if !left_to_sign && !known && self.topics.len() < TOPICS {
            self.topics.push(topic);
        }
    }

    /// Takes in words that say what is in the persona's line: of "Ada Lovelace — Head of Security" the latter part.
    fn names(&mut self, text: &str) {
        let line = [" — ", " – ", ": "]
            .iter()
            .find_map(|dash| text.rsplit_once(dash))
            .map_or(text, |(_, line)| line);
        self.minds(line, How::Watched, None);
        folded_line(line).split(' ').for_each(|word| self.name(word));
    }

    fn name(&mut self, word: &str) {
        let says = word.len() > 2 && !is_generic(word);
        let topic = Topic::read(word, Stance::Names).filter(|_| says);
        let known = |topic: &Topic| self.topics.iter().any(|known| known.phrase == topic.phrase);
        if let Some(topic) = topic.filter(|topic| !known(topic)) {
            self.topics.push(topic);
        }
    }

    /// Takes in which faults a phrase speaks of; whether one of them is what the phrase is about.
    fn minds(&mut self, phrase: &str, how: How, term: Option<&str>) -> bool {
        let line = folded_line(phrase);
        let mut covered = false;
        for sign in sign::ALL {
            let says = |cues: &[&str]| cues.iter().any(|cue| has(&line, cue));
            let meant = says(sign.cues);
            if !meant && !says(sign.hints) {
                continue;
            }
            covered |= meant;
            let term = term.filter(|_| meant).map(str::to_owned);
            match self.minds.iter_mut().find(|one| std::ptr::eq(one.sign, sign)) {
                Some(known) => {
                    if how < known.how {
                        *known = Minds { sign, term: term.or(known.term.take()), how };
                    } else if known.term.is_none() {
                        known.term = term;
                    }
                }
                None => self.minds.push(Minds { sign, term, how }),
            }
        }
        covered
    }
}
