//! What a persona speaks of: phrases with a stance, and where a text touches them.

use std::collections::HashMap;
use std::ops::Range;

use super::related;
use super::stems::{is_empty, is_generic};
use super::text::Text;
use crate::executor::rubric::document::Word;
use crate::stem::stem;

/// What a persona has to do with a topic, the heaviest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stance {
    Refuses,
    /// It sends people elsewhere with it.
    Redirects,
    /// It leaves it to specialists.
    Defers,
    /// It watches for it.
    Watches,
    /// It asks whether a text says something about it.
    Asks,
    /// It is in its line, and no more.
    Names,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topic {
    /// As its persona has it, on one line, without hyphens where it was an id.
    pub(super) phrase: String,
    /// What the persona has to do with it.
    pub(super) stance: Stance,
    /// Stems of what is there.
    pub(super) present: Vec<String>,
    /// Stems of what is lacking: "tests" in "deploys without tests".
    pub(super) lacking: Vec<String>,
}

/// Where a text touches a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touch {
    /// Which topic, as an index.
    pub(super) topic: usize,
    pub(super) words: Range<usize>,
    /// Whether it is said that it is not so: "we do not sell data".
    pub(super) denied: bool,
}

/// Topics, indexed by their stems.
#[derive(Debug)]
pub(super) struct Topics {
    /// In the persona's order.
    pub(super) all: Vec<Topic>,
    /// For a stem the topics that it belongs to, and which of their stems it is or belongs to.
    slots: HashMap<String, Vec<(usize, usize)>>,
}

const LACK: &[&str] = &["without", "no", "lacking", "lack", "missing", "not", "un"];
const NEGATORS: &[&str] = &[
    "not",
    "no",
    "never",
    "without",
    "don't",
    "doesn't",
    "won't",
    "can't",
    "cannot",
    "isn't",
    "aren't",
    "wouldn't",
    "shouldn't",
    "refuse",
    "refuses",
    "decline",
    "declines",
    "avoid",
    "avoids",
    "avoiding",
    "stop",
    "stops",
    "neither",
    "nor",
    "instead",
    "than",
    "didn't",
    "nothing",
    "forbid",
    "forbids",
    "prevent",
    "prevents",
];
const AFTER: &[&str] = &["not", "never", "forbidden", "prohibited", "excluded", "isn't", "aren't", "won't"];
const ABSENT: &[&str] = &[
    "missing",
    "absent",
    "lacking",
    "skipped",
    "later",
    "none",
    "unavailable",
    "optional",
    "unnecessary",
    "dropped",
];
/// How many words a topic may be spread over.
const SPREAD: usize = 16;
/// How far a negator reaches, in words.
const REACH: usize = 4;
/// A longer phrase is cut.
const PHRASE: usize = 100;

impl Topic {
    /// A topic from a phrase; none where the phrase says nothing of a subject.
    pub(super) fn read(phrase: &str, stance: Stance) -> Option<Topic> {
        let phrase = shown(phrase);
        let words = Text::read(&phrase).words;
        let words: Vec<&str> = words.iter().map(|word| &*word.text).collect();
        let lack = words.iter().position(|word| LACK.contains(word)).filter(|_| stance != Stance::Asks);
        let (there, not_there) = words.split_at(lack.unwrap_or(words.len()));
        let (present, lacking) = (stems(there), stems(not_there));
        (!present.is_empty() || !lacking.is_empty()).then_some(Topic { phrase, stance, present, lacking })
    }

    /// How many of so many stems have to be there.
    fn needed(stems: usize) -> usize {
        if stems <= 2 { stems } else { (2 * stems).div_ceil(3) }
    }

    fn slots(&self) -> impl Iterator<Item = &String> {
        self.present.iter().chain(&self.lacking)
    }
}

/// Content stems: generic words count only where there is nothing else.
fn stems(words: &[&str]) -> Vec<String> {
    let content: Vec<&str> = words.iter().copied().filter(|word| word.len() > 1 && !is_empty(word)).collect();
    let specific: Vec<&str> = content.iter().copied().filter(|word| !is_generic(word)).collect();
    let kept = if specific.is_empty() { content } else { specific };
    let mut stems: Vec<String> = kept.into_iter().map(|word| stem(word).to_owned()).collect();
    let mut seen = Vec::new();
    stems.retain(|stem| {
        !seen.contains(stem) && {
            seen.push(stem.clone());
            true
        }
    });
    stems
}

/// A phrase on one line, cut to a readable length; an id becomes words.
fn shown(phrase: &str) -> String {
    let line = phrase.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = if line.contains(' ') { line } else { line.replace(['-', '_'], " ") };
    let line = line.replace("self harm", "self-harm");
    match line.char_indices().nth(PHRASE) {
        None => line,
        Some((to, _)) => {
            line[..to].rsplit_once(' ').map_or(line[..to].to_owned(), |(whole, _)| whole.to_owned())
        }
    }
}

impl Topics {
    /// Topics with their index.
    pub(super) fn new(all: Vec<Topic>) -> Self {
        let mut slots: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for (at, topic) in all.iter().enumerate() {
            for (slot, stem) in topic.slots().enumerate() {
                let known = std::iter::once(stem.as_str()).chain(related::of(stem));
                known.for_each(|one| slots.entry(one.to_owned()).or_default().push((at, slot)));
            }
        }
        Topics { all, slots }
    }

    /// Where a text touches the topics, in its order.
    pub(super) fn touches(&self, text: &Text<'_>) -> Vec<Touch> {
        let mut touches = Vec::new();
        // Of each topic, in this sentence: which of its stems stood where last.
        let mut met: Vec<(usize, usize, usize)> = Vec::new();
        for sentence in &text.sentences {
            met.clear();
            for index in sentence.clone() {
                if let Some(slots) = self.slots.get(stem(&text.words[index].text)) {
                    met.extend(slots.iter().map(|(topic, slot)| (*topic, *slot, index)));
                }
            }
            met.sort_unstable();
            let by_topic = met.chunk_by(|a, b| a.0 == b.0);
            touches.extend(by_topic.filter_map(|hits| self.touch(&text.words, sentence, hits)));
        }
        touches
    }

    fn touch(
        &self,
        words: &[Word<'_>],
        sentence: &Range<usize>,
        hits: &[(usize, usize, usize)],
    ) -> Option<Touch> {
        let topic = hits.first()?.0;
        let read = &self.all[topic];
        let firsts: Vec<(usize, usize)> =
            hits.chunk_by(|a, b| a.1 == b.1).map(|same| (same[0].1, same[0].2)).collect();
        let (there, lacking): (Vec<_>, Vec<_>) =
            firsts.into_iter().partition(|(slot, _)| *slot < read.present.len());
        let whole = |found: usize, of: usize| found >= Topic::needed(of);
        let (has, lacks) = (whole(there.len(), read.present.len()), whole(lacking.len(), read.lacking.len()));
        // Of a thing without another either is enough to touch it, if not to say so.
        let touches =
            if read.present.is_empty() || read.lacking.is_empty() { has && lacks } else { has || lacks };
        let places = there.iter().chain(&lacking).map(|(_, at)| *at);
        let range = places.clone().min()?..places.max()? + 1;
        if !touches || range.len() > SPREAD {
            return None;
        }
        let denied = match lacking.iter().map(|(_, at)| *at).min() {
            Some(gone) => !(has && lacks && is_lacking(words, sentence, gone)),
            None => !lacks || is_denied(words, sentence, &range),
        };
        Some(Touch { topic, words: range, denied })
    }

    /// Of topics that are a thing without another, those whose thing a text has and whose other it never mentions.
    pub(super) fn unmentioned(&self, text: &Text<'_>) -> Vec<Touch> {
        let mut met: Vec<Vec<Option<usize>>> =
            self.all.iter().map(|topic| vec![None; topic.slots().count()]).collect();
        for (index, word) in text.words.iter().enumerate() {
            for (topic, slot) in self.slots.get(stem(&word.text)).into_iter().flatten() {
                met[*topic][*slot].get_or_insert(index);
            }
        }
        let without = self.all.iter().zip(met).enumerate().filter_map(|(at, (topic, met))| {
            let (there, lacking) = met.split_at(topic.present.len());
            let first = there.iter().flatten().min()?;
            let whole = there.iter().flatten().count() >= Topic::needed(there.len());
            let unmentioned = !lacking.is_empty() && lacking.iter().all(Option::is_none);
            (whole && unmentioned).then_some(Touch { topic: at, words: *first..*first + 1, denied: false })
        });
        without.collect()
    }
}

fn is_lacking(words: &[Word<'_>], sentence: &Range<usize>, at: usize) -> bool {
    let before = at.saturating_sub(REACH).max(sentence.start)..at;
    let after = at + 1..(at + 1 + REACH).min(sentence.end);
    let says =
        |range: Range<usize>, list: &[&str]| words[range].iter().any(|word| list.contains(&&*word.text));
    says(before, NEGATORS) || says(after.clone(), ABSENT) || says(after, AFTER)
}

fn is_denied(words: &[Word<'_>], sentence: &Range<usize>, range: &Range<usize>) -> bool {
    let before = range.start.saturating_sub(REACH).max(sentence.start)..range.start;
    let after = range.end..(range.end + REACH).min(sentence.end);
    let within = range.clone();
    words[before].iter().chain(&words[within]).any(|word| NEGATORS.contains(&&*word.text))
        || words[after].iter().any(|word| AFTER.contains(&&*word.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(phrase: &str, text: &str) -> Vec<(String, bool)> {
        let topics = Topics::new(Topic::read(phrase, Stance::Refuses).into_iter().collect());
        let read = Text::read(text);
        let touches = topics.touches(&read).into_iter();
        touches.map(|touch| (text[read.span(&touch.words)].to_owned(), touch.denied)).collect()
    }

    #[test]
    fn phrases_are_found_inflected_and_apart() {
        let found = |phrase: &str, text: &str| touched(phrase, text).iter().any(|(_, denied)| !denied);
        assert!(found("selling-personal-data", "We sell the personal data of our users."));
        assert!(found("tax-advice", "How do I file my taxes?"));
        assert!(found("tax-advice", "Is that deductible?"));
        assert!(!found("selling-personal-data", "We collect data."));
        assert!(!found("selling-personal-data", "We will never sell personal data."));
        assert!(!found("pricing", "The weather is nice."));
    }

    #[test]
    fn what_is_lacking_has_to_be_said_to_lack() {
        let touched = |text: &str| touched("deploys-without-tests", text);
        let found = |text: &str| touched(text).iter().any(|(_, denied)| !denied);
        assert!(found("We deploy on Friday without any tests."));
        assert!(found("The deploy goes out, tests come later."));
        assert!(!found("We deploy after all tests have passed."));
        assert_eq!(touched("We deploy.").len(), 1);
        let topics = Topics::new(Topic::read("deploys without tests", Stance::Refuses).into_iter().collect());
        assert_eq!(topics.unmentioned(&Text::read("We deploy on Friday.")).len(), 1);
        assert!(topics.unmentioned(&Text::read("We deploy when tests pass.")).is_empty());
        assert!(topics.unmentioned(&Text::read("We wait.")).is_empty());
    }

    #[test]
    fn phrases_that_say_nothing_are_no_topics() {
        assert_eq!(Topic::read("to be or not", Stance::Watches), None);
        assert_eq!(Topic::read("", Stance::Watches), None);
        assert_eq!(
            Topic::read("advice", Stance::Watches).map(|topic| topic.present),
            Some(vec!["advic".to_owned()])
        );
        assert_eq!(
            Topic::read("tax-advice", Stance::Watches).map(|topic| topic.phrase),
            Some("tax advice".to_owned())
        );
    }
}
