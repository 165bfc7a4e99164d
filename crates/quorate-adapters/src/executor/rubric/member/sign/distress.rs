//! Distress: somebody speaks of harming themselves or others, or of being at the end of their strength.

use std::sync::LazyLock;

use super::{Look, Place, Sign};
use crate::executor::rubric::document::Word;
use crate::executor::rubric::lexicon::{Hit, Lexicon};
use crate::executor::rubric::member::subject::{Speaker, Subject};

pub(super) const SIGN: Sign = Sign {
    name: "distress",
    cues: &["self harm", "self injur", "suicid", "distress", "despair", "imminent harm", "crisis"],
    hints: &[
        "sentinel",
        "safety",
        "harm",
        "therap",
        "wellbeing",
        "well being",
        "danger",
        "guardian",
        "emergenc",
        "imminent",
    ],
    always: false,
    unless_said: true,
    headline: "safety: {who} speaks of harm or of being in despair",
    instruction: "Stop what you are doing. Say that you are concerned, ask plainly whether the person is safe right now, \
                  and hand over to a human or an emergency line.",
    look: Look::Own(look),
};

/// How grave a phrase is.
static PHRASES: LazyLock<Lexicon<u8>> = LazyLock::new(|| {
    Lexicon::new([
        ("kill|killing|hurt|hurting|harm|harming|cut|cutting|hang|hanging|shoot|shooting myself", GRAVEST),
        ("kms", GRAVEST),
        ("end|ending|take|taking my own? life", GRAVEST),
        ("end|ending it all", GRAVEST),
        ("want|wants|wanted|wanna|going|ready to? die", GRAVEST),
        ("suicide|suicidal", GRAVEST),
        ("better off dead", GRAVEST),
        ("better off without me", GRAVEST),
        ("no reason to live|be", GRAVEST),
        ("don't want|wanna to? live|exist|wake|be alive|here|around|up", GRAVEST),
        ("not want to live|exist|wake|be alive|here|around|up", GRAVEST),
        ("wish i was|were dead|never", GRAVEST),
        ("nobody|no would|will one? miss me", GRAVEST),
        ("overdose|overdosing", GRAVEST),
        ("self harm|harming|injury", GRAVEST),
        ("kill|stab|shoot|poison him|her|someone|somebody|people|everyone", GRAVE),
        ("going to|gonna hurt|kill him|her|them|someone|somebody|people|everyone", GRAVE),
        ("he|she|partner|husband|wife|father|mother|dad|mum|mom hits|hit|beats|beat|chokes|choked me", GRAVE),
        ("can't|cannot cope", STRONG),
        ("can't|cannot go|take|do|bear|handle on|it|this? anymore", STRONG),
        ("can't|cannot go|take|do|bear|handle on|it|this? any more|longer", STRONG),
        ("can't go on", STRONG),
        ("hopeless|unbearable|worthless", STRONG),
        ("no|lost all? hope", STRONG),
        ("hate myself", STRONG),
        ("given|giving|give up on life|everything|myself", STRONG),
        ("panic attack|attacks", STRONG),
        ("no way out", STRONG),
    ])
});
const GRAVEST: u8 = 10;
const GRAVE: u8 = 9;
const STRONG: u8 = 7;
/// What makes a figure of speech of it.
const FIGURES: &[&str] = &[
    "laughing",
    "slack",
    "shaving",
    "cooking",
    "chopping",
    "prevention",
    "squad",
    "code",
    "test",
    "tests",
    "finger",
    "process",
];
const DENIED: &[&str] = &["not", "no", "never", "isn't", "aren't", "wasn't"];

fn look(subject: &Subject<'_>) -> Vec<Place> {
    let mut places = Vec::new();
    for (at, passage) in subject.passages.iter().enumerate() {
        // An agent that asks "are you thinking of suicide?" does what it should.
        if passage.speaker == Speaker::Agent {
            continue;
        }
        let words = &passage.text.words;
        places.extend(PHRASES.all(words).into_iter().filter_map(|hit| {
            let gravity = gravity(words, &hit)?;
            Some(Place { passage: at, span: passage.text.span(&hit.words), gravity })
        }));
    }
    places
}

fn gravity(words: &[Word<'_>], hit: &Hit<'_, u8>) -> Option<u8> {
    let after = &words[hit.words.end..words.len().min(hit.words.end + 3)];
    if after.iter().any(|word| FIGURES.contains(&&*word.text)) {
        return None;
    }
    let before = &words[hit.words.start.saturating_sub(2)..hit.words.start];
    let denied = before.iter().any(|word| DENIED.contains(&&*word.text));
    // Who says "I am not suicidal" has it on their mind all the same.
    Some(if denied { (*hit.meaning).min(STRONG) } else { *hit.meaning })
}
