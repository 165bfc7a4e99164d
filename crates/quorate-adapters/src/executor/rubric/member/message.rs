//! A message of a peer (P3).
//!
//! In the first round a peer says what it has to say on the topic. Later it drops an objection that somebody has taken
//! up, repeats one that nobody has, once, answers messages that touch its words, each once, and else passes. What it
//! has said it reads from the transcript: it keeps nothing between rounds.

mod transcript;

use quorate_protocol::Json;
use serde_json::json;

use super::assessment::{About, Assessment, Concern};
use super::character::{Character, How};
use super::text::{Text, folded_line, has};
use super::topic::Stance;
use super::unanswered;
use transcript::{Said, Transcript};

/// From this gravity on a concern is an objection.
const GRAVE: u8 = 5;
/// How often somebody objects to the same thing.
const TIMES: usize = 2;
const OBJECTION: &str = "I object: ";
const AGAIN: &str = "I still object: ";
const TAKEN_UP: &str = "has taken up";
const NOTHING: &str = "I have nothing to add.";
/// With these a message says that a thing will not be taken up.
const DISMISSED: &[&str] = &[
    " not needed",
    " no need",
    " unnecessary",
    " irrelevant",
    " ignore",
    " won't ",
    " will not",
    " doesn't matter",
    " don't care",
    " never mind",
    " overblown",
    " not a problem",
    " no problem",
    " skip",
];

/// What is said, and to whom.
struct Message {
    text: String,
    to: Option<String>,
    objection: bool,
}

/// The answer of a round, from 1.
pub(super) fn answer(
    member: &str,
    round: usize,
    transcript: &str,
    character: &Character,
    assessment: &Assessment<'_>,
) -> Json {
    let transcript = Transcript::read(transcript, member);
    let peer = Peer { round, transcript, character, assessment };
    match peer.says() {
        Some(message) => json!({
            "message": message.text,
            "addressedTo": message.to.unwrap_or_else(|| "*".to_owned()),
            "objection": message.objection,
            "pass": false,
        }),
        None => json!({"message": NOTHING, "addressedTo": "*", "objection": false, "pass": true}),
    }
}

struct Peer<'p> {
    round: usize,
    transcript: Transcript,
    character: &'p Character,
    assessment: &'p Assessment<'p>,
}

impl Peer<'_> {
    fn says(&self) -> Option<Message> {
        let grave = || self.assessment.concerns.iter().filter(|concern| concern.gravity >= GRAVE);
        grave()
            .find_map(|concern| self.objects(concern))
            .or_else(|| grave().find_map(|concern| self.drops(concern)))
            .or_else(|| self.replies())
            .or_else(|| self.remarks())
    }

    /// How often it has objected to something. Who cannot see its own messages has spoken in every round.
    fn objections(&self, concern: &Concern<'_>) -> usize {
        let own = self.transcript.own().filter(|said| {
            let text = said.text.strip_prefix(OBJECTION).or_else(|| said.text.strip_prefix(AGAIN));
            text.is_some_and(|text| text.starts_with(&concern.headline))
        });
        let seen = own.count();
        if self.transcript.own().next().is_none() { self.round - 1 } else { seen }
    }

    fn objects(&self, concern: &Concern<'_>) -> Option<Message> {
        let times = self.objections(concern);
        if times >= TIMES || times > 0 && self.taker(concern).is_some() {
            return None;
        }
        let text = if times == 0 {
            format!("{OBJECTION}{}. {}", concern.headline, concern.instruction)
        } else {
            format!("{AGAIN}{}. Nobody has taken it up.", concern.headline)
        };
        Some(Message { text, to: None, objection: true })
    }

    /// Who has taken up an objection since it was first made.
    fn taker(&self, concern: &Concern<'_>) -> Option<&Said> {
        let first = self
            .transcript
            .own()
            .find(|said| said.text.contains(&concern.headline))
            .map_or(1, |said| said.round);
        self.transcript.others().find(|said| {
            let objects = said.text.starts_with(OBJECTION) || said.text.starts_with(AGAIN);
            let line = folded_line(&said.text) + " ";
            let dismissed = DISMISSED.iter().any(|word| line.contains(word));
            said.round > first && !objects && !dismissed && self.touches(concern, said, &line)
        })
    }

    fn touches(&self, concern: &Concern<'_>, said: &Said, line: &str) -> bool {
        match concern.about {
            About::Topic(topic, _) => {
                let touches = self.character.topics.touches(&Text::read(&said.text));
                touches.iter().any(|touch| touch.topic == topic)
            }
            About::Sign(minds) => {
                let label = folded_line(&concern.label);
                line.contains(&label) || minds.sign.cues.iter().any(|cue| has(line, cue))
            }
        }
    }

    fn drops(&self, concern: &Concern<'_>) -> Option<Message> {
        let taker = self.taker(concern).filter(|_| self.objections(concern) > 0)?;
        let text = format!("{} {TAKEN_UP} “{}”; I no longer object.", taker.from, concern.label);
        let said =
            self.transcript.own().any(|own| own.text.contains(TAKEN_UP) && own.text.contains(&concern.label));
        (!said).then(|| Message { text, to: Some(taker.from.clone()), objection: false })
    }

    /// An answer to the first message that touches its words and has none yet.
    fn replies(&self) -> Option<Message> {
        self.transcript.others().find_map(|said| {
            let line = folded_line(&said.text) + " ";
            let touches = self.character.topics.touches(&Text::read(&said.text));
            let topics = touches.iter().map(|touch| &self.character.topics.all[touch.topic]);
            let on_topics = topics.filter_map(|topic| {
                let words = match topic.stance {
                    Stance::Refuses => "that is where I say no.",
                    Stance::Redirects | Stance::Defers => "leave that to a specialist.",
                    Stance::Watches => "that is to be settled openly before we go on.",
                    Stance::Asks => "I still have no answer to that.",
                    Stance::Names => return None,
                };
                Some((topic.phrase.clone(), words))
            });
            let minded = self.character.minds.iter().filter(|minds| minds.how != How::Mentioned);
            let on_signs = minded.filter(|minds| minds.sign.cues.iter().any(|cue| has(&line, cue)));
            let on_signs = on_signs.map(|minds| (minds.sign.name.to_owned(), minds.sign.instruction));
            on_topics.chain(on_signs).find_map(|(label, words)| {
                let opening = format!("{}, on “{label}”: ", said.from);
                let answered = self.transcript.own().any(|own| own.text.starts_with(&opening));
                // A topic that it has spoken on itself is settled between the two objections.
                let own = self.transcript.own().any(|own| own.text.contains(&format!("“{label}”")));
                (!answered && !own && self.round > 1).then(|| Message {
                    text: format!("{opening}{words}"),
                    to: Some(said.from.clone()),
                    objection: false,
                })
            })
        })
    }

    /// The first thing that it has not said yet and that is no objection.
    fn remarks(&self) -> Option<Message> {
        if self.round > 1 && self.transcript.own().next().is_none() {
            return None;
        }
        let unsaid = |text: &str| !self.transcript.own().any(|own| own.text.contains(text));
        let small = self.assessment.concerns.iter().filter(|concern| concern.gravity < GRAVE);
        let concern = small.map(|concern| (&concern.headline, &concern.instruction));
        let concern = concern
            .filter(|(headline, _)| unsaid(headline))
            .map(|(headline, what)| format!("{headline}. {what}"));
        let questions = unanswered(self.character, self.assessment).into_iter();
        let questions = questions
            .filter(|question| unsaid(question))
            .map(|open| format!("Nobody has answered yet: {open}"));
        let text = concern.chain(questions).next()?;
        Some(Message { text, to: None, objection: false })
    }
}
