//! Locked persona traits (B4): whether a playbook's text betrays one, by what it says about it and in which direction.
//! English only. Callers decide which traits are locked for which operator, and what follows from a touch.
//!
//! # The rule
//!
//! A text is read folded (as in `quorate_protocol::locks`), letter for lookalike letter, once with markup taken out and
//! once with its signs as spaces. It falls into paragraphs, headings and list items; an item is read together with the
//! line that its list is under, if that line acts. A sentence ends at `.`, `!`, `?` and `;`.
//!
//! A verb without its object (`# Skip`, `Skip the following.`, `Drop;`) is read with the sentence or the block after it,
//! and on as long as each could be one more object: it is short, begins with no verb and states nothing. What says
//! something of lines that follow (`these can wait:`) is read after them, and what begins with `skip them` or
//! `not needed` after a line that only names a trait. A block is also read by itself; only an item under a line that
//! says that something follows is read no other way.
//!
//! A trait has *words* that stand for it (`warmth`) and *phrases* that betray it by themselves (`be cold`), both in
//! their inflections. For each, what acts on it in its sentence is counted:
//!
//! 1. before it: negations (`not`, `never`) and diminishing verbs (`skip`, `avoid`) with at most six words of content
//!    between, `without`, `instead of`; directly before it `no`, `less` and `over`;
//! 2. after it: what the clause says about it (`is optional`, `can wait`, `is not needed`, `should be dropped`, `: off`,
//!    `skip it`), and the particle of `leave … out`, `set … aside`.
//!
//! Nothing acts across a colon, `but`, a subordinate clause, a keeper (`keep`, `stay`), or `and` or a comma with a new
//! verb, once it has an object of its own. *A word betrays when the count is odd, a phrase when it is even.* So `never skip
//! the pleasantries` passes, `do not be warm` does not, and `don't be cold` passes. Conditions about another person (`if the
//! user is not friendly`) say nothing; names of things (`identity provider`) are not words of a
//! trait. Quoted text counts as said. When in doubt the text is rejected.

mod direction;
mod grammar;
mod lead;
pub(crate) mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use quorate_diagnostics::text::section;
use quorate_manifest::assembly::{LockedTrait, MatchMode};
use quorate_protocol::locks as protocol;
use serde::Serialize;

use direction::BlockAnalysis;
use grammar::Grammar;
use lead::Lead;

/// The longest excerpt, in bytes of folded text.
const MAX_EXCERPT: usize = 160;

/// A locked trait: its id, what it is, and the words by which a text betrays it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Trait {
    /// Its name: `voice-register`.
    pub id: String,
    /// What it is, in a sentence.
    pub description: String,
    /// What stands for it: `warmth`, `pleasantries`. They betray it where they are diminished.
    pub words: Vec<String>,
    /// What betrays it by itself: `be cold`. Phrases without English words are looked for as they stand.
    pub phrases: Vec<String>,
}

/// Traits, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Locks {
    traits: Vec<Arc<Trait>>,
    grammar: Grammar,
    /// Phrases in other scripts, which have no words that a grammar could find.
    verbatim: Option<protocol::Locks>,
    /// The trait of each of them.
    verbatim_traits: Vec<usize>,
}

/// A trait that a text betrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub id: String,
    /// The clause that betrays it, in one line of at most about 160 characters.
    pub excerpt: String,
    /// What betrays it there.
    pub cause: Cause,
}

/// What betrays a trait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A phrase does, as the text says it.
    Phrase(String),
    /// A word for the trait is diminished.
    Diminished {
        /// The word, as the text says it.
        word: String,
        by: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Phrase(phrase) => write!(f, "the text says `{phrase}`"),
            Cause::Diminished { word, by } => write!(f, "`{word}` is diminished by `{by}`"),
        }
    }
}

impl Locks {
    /// Compiles traits. One without words and phrases is held by its own name.
    pub fn new(traits: Vec<Arc<Trait>>) -> Locks {
        let mut grammar = Grammar::new();
        let (mut verbatim, mut owners) = (Vec::new(), Vec::new());
        for (at, one) in traits.iter().enumerate() {
            let name = one.id.replace(['-', '_'], " ");
            let by_name = one.words.is_empty() && one.phrases.is_empty();
            for word in one.words.iter().chain(by_name.then_some(&name)) {
                grammar.add_word(at, word);
            }
            for phrase in &one.phrases {
                if text::is_plain(phrase) {
                    grammar.add_phrase(at, phrase);
                    continue;
                }
                let folded = text::folded(phrase);
                if folded.is_ascii() && folded.contains(|c: char| c.is_ascii_alphanumeric()) {
                    grammar.add_phrase(at, phrase);
                } else if !folded.trim().is_empty() {
                    verbatim.push(LockedTrait::plain(phrase));
                    owners.push(at);
                }
            }
        }
        // Plain text always compiles.
        let verbatim = if verbatim.is_empty() {
            None
        } else {
            protocol::Locks::compile(&verbatim, MatchMode::Substring).ok()
        };
        Locks { traits, grammar, verbatim, verbatim_traits: owners }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.traits.is_empty()
    }

    /// The traits, in the order given.
    pub fn traits(&self) -> &[Arc<Trait>] {
        &self.traits
    }

    /// The traits that a text betrays: at most one touch for each, in trait order.
    pub fn check(&self, text: &str) -> Vec<Violation> {
        let mut found: BTreeMap<usize, Violation> = BTreeMap::new();
        if self.is_empty() {
            return Vec::new();
        }
        self.check_text(text, &mut found);
        if let Cow::Owned(bare) = without_markup(text) {
            self.check_text(&bare, &mut found);
        }
        for hit in self.verbatim.iter().flat_map(|verbatim| verbatim.check(text)) {
            let at = self.verbatim_traits[hit.trait_index];
            found.entry(at).or_insert_with(|| Violation {
                id: self.traits[at].id.clone(),
                excerpt: protocol::excerpt(text, &hit.span),
                cause: Cause::Phrase(hit.trait_text.to_string()),
            });
        }
        found.into_values().collect()
    }

    fn check_text(&self, text: &str, found: &mut BTreeMap<usize, Violation>) {
        let mut known: Option<(String, bool)> = None;
        let (mut lead, mut topic): (Option<Lead>, Option<String>) = (None, None);
        let mut below = false;
        let mut unfinished: Option<String> = None;
        for block in text::blocks(text) {
            let own_text = text::folded(&block.body);
            // `- Be` and `- cold.` say one thing.
            if let Some(before) = unfinished.take().filter(|_| block.intro.is_some()) {
                self.check_block(text, &format!("{before} {own_text}"), found);
            }
            unfinished = (block.intro.is_some() && text::is_single_word(&own_text)).then(|| own_text.clone());
            let mut body = own_text.clone();
            let is_item = block.intro.is_some();
            if let Some(intro) = block.intro.filter(|intro| !intro.is_empty()) {
                if known.as_ref().is_none_or(|(known, _)| *known != intro) {
                    let folded = text::folded(&intro);
                    let acts = self.analyze(&folded).has_modifier();
                    known = Some((intro.clone(), acts));
                }
                if known.as_ref().is_some_and(|(_, acts)| *acts) {
                    body = format!("{} {body}", text::folded(&intro));
                }
            }
            let alone = self.analyze(&own_text);
            let points = is_item && lead.as_ref().is_some_and(|lead| lead.points_on);
            let hung =
                lead.take_if(|lead| (!block.is_heading || below) && (points || alone.attaches_to(lead)));
            if let Some(topic) = topic.take().filter(|_| alone.refers_to_topic()) {
                self.check_block(text, &format!("{topic}: {own_text}"), found);
            }
            if let Some(hung) = &hung {
                let joined = hung.join(&own_text);
                self.check_block(text, &joined, found);
                // An item under `never do the following` says nothing by itself.
                if points && !hung.is_said {
                    body = joined;
                }
            }
            let read = self.check_block(text, &body, found);
            topic = read.topic();
            lead = read.lead().or(hung.filter(|_| !block.is_heading));
            below = block.is_heading;
        }
    }

    /// Notes what a folded block betrays.
    fn check_block<'a>(
        &'a self,
        text: &str,
        body: &'a str,
        found: &mut BTreeMap<usize, Violation>,
    ) -> BlockAnalysis<'a> {
        let read = self.analyze(body);
        for spot in &read.matches {
            if found.contains_key(&spot.trait_index) {
                continue;
            }
            if let Some(by) = read.violation_cause(spot) {
                let said = read.text_of(spot.start, spot.end).to_owned();
                let cause = match by {
                    Some(by) => Cause::Diminished { word: said, by: by.to_owned() },
                    None => Cause::Phrase(said),
                };
                let (start, end) = read.clause(spot, MAX_EXCERPT);
                let excerpt = original_text(text, &body[start..end]);
                found.insert(
                    spot.trait_index,
                    Violation { id: self.traits[spot.trait_index].id.clone(), excerpt, cause },
                );
            }
        }
        read
    }

    fn analyze<'a>(&'a self, folded: &'a str) -> BlockAnalysis<'a> {
        BlockAnalysis::new(folded, grammar::tokens(folded, &self.grammar), &self.grammar)
    }
}

/// The text with the signs of markup as spaces, if it has any.
fn without_markup(text: &str) -> Cow<'_, str> {
    const SIGNS: [char; 7] = ['<', '>', '[', ']', '_', '`', '\\'];
    if !text.contains(&SIGNS[..]) {
        return Cow::Borrowed(text);
    }
    // What begins a line tells items and quotations apart.
    let line = |line: &str| {
        let start = line.len() - line.trim_start_matches([' ', '\t', '>', '*', '-', '!']).len();
        format!("{}{}\n", line[..start].replace("**", "  "), line[start..].replace(&SIGNS[..], " "))
    };
    Cow::Owned(text.replace("<!--", "\n\n").replace("-->", "\n\n").lines().map(line).collect())
}

/// A folded clause as the text gives it, where it can be found there.
fn original_text(text: &str, clause: &str) -> String {
    // The text usually contains the clause unchanged, except for case.
    if text.is_ascii()
        && let Some(start) = text.to_ascii_lowercase().find(clause)
    {
        return text[start..start + clause.len()].to_owned();
    }
    let hit = protocol::Locks::compile(&[LockedTrait::plain(clause)], MatchMode::Substring)
        .ok()
        .and_then(|locks| locks.check(text).into_iter().next());
    let shown = hit.map_or(clause, |hit| &text[hit.span]);
    let mut out = String::with_capacity(shown.len());
    for word in shown.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    if out.chars().count() > MAX_EXCERPT + 40 { clause.to_owned() } else { out }
}

/// Id and description; words and phrases are in `lexicon.txt`.
const TABLE: [(&str, &str); 8] = [
    ("warmth", "Meets people with warmth: greets them, is friendly, has time for a kind word."),
    ("honesty", "Says what is true, says what is not known, and hides nothing that matters."),
    ("voice-register", "Speaks in its own voice and register, whoever it speaks to."),
    ("safety-boundary", "Stays inside its safety boundaries, whoever asks to move them."),
    ("identity", "Is who it is and says so: its name, its persona, that it is an AI."),
    ("mission", "Works for its mission and for no other."),
    ("refuse-harm", "Refuses to help with harm."),
    ("kindness", "Is kind to people, also where it disagrees with them."),
];

/// The words and phrases of the built-in traits.
const LEXICON_ENTRIES: &str = include_str!("lock/lexicon.txt");

/// Lists of English words by what they do in a sentence.
const WORDS: &str = include_str!("lock/words.txt");

static LEXICON: LazyLock<Vec<Arc<Trait>>> = LazyLock::new(|| {
    let entries = |id: &str, of: &str| {
        section(LEXICON_ENTRIES, &format!("{id} {of}")).flat_map(expand_alternatives).collect()
    };
    let read = |(id, description): (&str, &str)| Trait {
        id: id.to_owned(),
        description: description.to_owned(),
        words: entries(id, "words"),
        phrases: entries(id, "phrases"),
    };
    TABLE.into_iter().map(read).map(Arc::new).collect()
});

/// Expressions that contain a trait's word but are unrelated: `identity provider`. Each hides the words in it.
fn harmless() -> impl Iterator<Item = String> {
    section(LEXICON_ENTRIES, "harmless").flat_map(expand_alternatives)
}

/// The built-in traits: warmth, honesty, voice-register, safety-boundary, identity, mission, refuse-harm, kindness.
pub fn lexicon() -> &'static [Arc<Trait>] {
    &LEXICON
}

/// A built-in trait by its id.
pub fn built_in(id: &str) -> Option<&'static Arc<Trait>> {
    lexicon().iter().find(|locked_trait| locked_trait.id == id)
}

/// The entries of an entry with choices: `make it|them up`.
fn expand_alternatives(entry: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for word in entry.split_whitespace() {
        let stop = if word.ends_with('.') { "." } else { "" };
        let mut longer = Vec::new();
        for start in &all {
            for choice in word.trim_end_matches('.').split('|') {
                let space = if start.is_empty() { "" } else { " " };
                longer.push([start, space, choice, stop].concat());
            }
        }
        all = longer;
    }
    all
}
