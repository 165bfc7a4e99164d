//! The lexicon of playbook locks (B4): which traits of an operator a text violates. English only.
//!
//! A trait has *words* that stand for it (`warmth`) and *phrases* that violate it (`be cold`). [`traits.txt`](built_in) has those
//! of the built-in traits, `words.txt` the words that turn a sentence round; both are data. For each match the negations that act
//! on it are counted: before it in its clause, with at most six words of content between (`never`, `skip`, `without`), and after
//! it where the clause says something of it (`is optional`, `can wait`). *A word violates its trait if the count is odd, a phrase
//! if it is even*, so `never skip the pleasantries` passes and `do not be warm` does not.
//!
//! `clause.rs` reads words and counts negations. Callers choose the traits and decide what follows from a violation.

mod clause;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, LazyLock};

use quorate_diagnostics::text::section;
use serde::Serialize;

use clause::{Block, kind};

use crate::words::{WORDS, blocks, expanded, folded};

/// Words and phrases of the built-in traits, and expressions that only look like them.
const TRAITS: &str = include_str!("lexicon/traits.txt");

/// The longest excerpt, in bytes of folded text.
const MAX_EXCERPT: usize = 160;

/// A locked trait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Trait {
    /// Its name: `voice-register`.
    pub id: String,
    /// Its description, in a sentence.
    pub description: String,
    /// Words that stand for it: `warmth`. Negated, they violate it.
    pub words: Vec<String>,
    /// Phrases that violate it: `be cold`.
    pub phrases: Vec<String>,
}

/// A trait that a text violates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub id: String,
    /// The sentence that violates it, shortened to about 160 bytes.
    pub excerpt: String,
    pub cause: Cause,
}

/// Why a trait is violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The text has a phrase.
    Phrase(String),
    /// A word for the trait is negated.
    Diminished { word: String, by: String },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Phrase(phrase) => write!(f, "the text says `{phrase}`"),
            Cause::Diminished { word, by } => write!(f, "`{word}` is diminished by `{by}`"),
        }
    }
}

/// The role of a sequence of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It stands for a trait; in `-ly` it is a manner of acting.
    Word { of: usize, is_adverb: bool },
    /// It violates a trait.
    Phrase { of: usize },
    /// It only looks like one of these: `identity provider`.
    Harmless,
    /// It acts on the words around it; a bit of [`kind`].
    Modifier(u32),
}

/// A sequence of words with the choices for each.
#[derive(Debug, Clone)]
struct Entry {
    words: Vec<Vec<u32>>,
    role: Role,
    /// Whether its clause ends with it.
    is_final: bool,
}

/// Traits, ready to be looked for.
#[derive(Debug, Clone)]
pub struct Lexicon {
    traits: Vec<Arc<Trait>>,
    ids: HashMap<String, u32>,
    /// By word: the bits of its classes.
    classes: Vec<u32>,
    /// By first word.
    entries: HashMap<u32, Vec<Arc<Entry>>>,
}

impl Lexicon {
    /// Compiles traits; one without words and phrases is held by its own name.
    pub fn new(traits: Vec<Arc<Trait>>) -> Lexicon {
        let mut new = Lexicon { traits, ids: HashMap::new(), classes: Vec::new(), entries: HashMap::new() };
        for (list, bit) in kind::CLASSES.iter().copied() {
            for word in section(WORDS, list) {
                let id = new.id(word);
                new.classes[id as usize] |= bit;
            }
        }
        for (list, bit) in kind::MODIFIERS.iter().copied() {
            section(WORDS, list).for_each(|entry| new.add(entry, Role::Modifier(bit)));
        }
        section(TRAITS, "harmless").for_each(|entry| new.add(entry, Role::Harmless));
        for (of, one) in new.traits.clone().iter().enumerate() {
            let name = [one.id.replace(['-', '_'], " ")];
            let is_bare = one.words.is_empty() && one.phrases.is_empty();
            for word in if is_bare { &name[..] } else { &one.words } {
                new.add(word, Role::Word { of, is_adverb: false });
                let stem = word
                    .strip_suffix("le")
                    .filter(|stem| !stem.ends_with("ab"))
                    .map(|stem| format!("{stem}ly"));
                new.add(&stem.unwrap_or(format!("{word}ly")), Role::Word { of, is_adverb: true });
            }
            one.phrases.iter().for_each(|phrase| new.add(phrase, Role::Phrase { of }));
        }
        new
    }

    fn add(&mut self, entry: &str, role: Role) {
        let is_final = entry.ends_with('.');
        let is_plain = |c: char| c.is_ascii_lowercase() || matches!(c, ' ' | '|' | '.');
        let entry = if entry.chars().all(is_plain) { entry.to_owned() } else { folded(entry) };
        let mut words: Vec<Vec<u32>> = Vec::new();
        for choices in entry.trim_end_matches('.').split(|c: char| !c.is_alphanumeric() && !"|'’".contains(c))
        {
            let choices = choices.replace(['\'', '’'], "");
            for choices in expanded(&choices).split(' ').filter(|word| !word.is_empty()) {
                words.push(choices.split('|').map(|word| self.id(word)).collect());
            }
        }
        if matches!(role, Role::Phrase { .. }) && words.len() > 1 && words[0] == [self.id("be")] {
            words[0] = section(WORDS, "be forms").map(|word| self.id(word)).collect();
        }
        // An article is a filler, so a text need not have it.
        let last = words.len().saturating_sub(1);
        let articles = ["the", "a", "an"].map(|word| self.id(word));
        let mut place = 0;
        words.retain(|choices| {
            place += 1;
            place > last || !articles.contains(&choices[0])
        });
        let entry = Arc::new(Entry { words, role, is_final });
        for first in entry.words.first().into_iter().flatten() {
            self.entries.entry(*first).or_default().push(entry.clone());
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a lexicon has fewer than 2^32 words")]
    fn id(&mut self, word: &str) -> u32 {
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let id = self.classes.len() as u32;
        self.ids.insert(word.to_owned(), id);
        self.classes.push(0);
        id
    }

    /// The traits, in the order given.
    pub fn traits(&self) -> &[Arc<Trait>] {
        &self.traits
    }

    /// The traits that a text violates: at most one violation of each, in trait order.
    pub fn check(&self, text: &str) -> Vec<Violation> {
        let mut found = BTreeMap::new();
        if self.traits.is_empty() {
            return Vec::new();
        }
        self.check_text(text, &mut found);
        // Folding removes the signs of markup; they may also stand for a space.
        const SIGNS: [char; 7] = ['<', '>', '[', ']', '_', '`', '\\'];
        if text.contains(SIGNS) {
            let spaced = text.replace("<!--", "\n\n").replace("-->", "\n\n");
            let line = |line: &str| {
                let start = line.len() - line.trim_start_matches([' ', '>']).len();
                format!("{}{}\n", &line[..start], line[start..].replace(SIGNS, " "))
            };
            self.check_text(&spaced.lines().map(line).collect::<String>(), &mut found);
        }
        found.into_values().collect()
    }

    fn check_text(&self, text: &str, found: &mut BTreeMap<usize, Violation>) {
        for (intro, body) in blocks(text) {
            let mut body = folded(&body);
            if let Some(intro) = intro.map(|intro| folded(&intro)) {
                // `Things to drop:` is read before each item of its list.
                if self.read(&intro).acts() {
                    body = format!("{intro} {body}");
                }
            }
            self.check_block(text, &self.read(&body), found);
        }
    }

    fn read<'a>(&'a self, folded: &'a str) -> Block<'a> {
        Block::new(self, folded)
    }

    fn check_block(&self, text: &str, block: &Block, found: &mut BTreeMap<usize, Violation>) {
        for spot in &block.spots {
            if found.contains_key(&spot.of) {
                continue;
            }
            let Some(by) = block.violation(spot) else { continue };
            let said = block.text_of(spot.start, spot.end).to_owned();
            let cause = match by {
                Some(by) => Cause::Diminished { word: said, by: by.to_owned() },
                None => Cause::Phrase(said),
            };
            let excerpt = as_given(text, block.sentence(spot, MAX_EXCERPT));
            found.insert(spot.of, Violation { id: self.traits[spot.of].id.clone(), excerpt, cause });
        }
    }
}

/// A folded sentence as the text has it, if only case differs.
fn as_given(text: &str, sentence: &str) -> String {
    let start = text.is_ascii().then(|| text.to_ascii_lowercase().find(sentence)).flatten();
    start.map_or(sentence, |start| &text[start..start + sentence.len()]).to_owned()
}

/// Id and description of the built-in traits.
const BUILT_IN: [(&str, &str); 8] = [
    ("warmth", "Meets people with warmth: greets them, is friendly, has time for a kind word."),
    ("honesty", "Says what is true, says what is not known, and hides nothing that matters."),
    ("voice-register", "Speaks in its own voice and register, whoever it speaks to."),
    ("safety-boundary", "Stays inside its safety boundaries, whoever asks to move them."),
    ("identity", "Is who it is and says so: its name, its persona, that it is an AI."),
    ("mission", "Works for its mission and for no other."),
    ("refuse-harm", "Refuses to help with harm."),
    ("kindness", "Is kind to people, also where it disagrees with them."),
];

static BUILT_IN_TRAITS: LazyLock<Vec<Arc<Trait>>> = LazyLock::new(|| {
    let entries = |id: &str, of: &str| section(TRAITS, &format!("{id} {of}")).map(str::to_owned).collect();
    let read = |(id, description): (&str, &str)| Trait {
        id: id.to_owned(),
        description: description.to_owned(),
        words: entries(id, "words"),
        phrases: entries(id, "phrases"),
    };
    BUILT_IN.into_iter().map(read).map(Arc::new).collect()
});

/// The built-in traits: warmth, honesty, voice-register, safety-boundary, identity, mission, refuse-harm, kindness. A phrase may
/// have choices (`make it|them up`), and ends its clause if it ends with a full stop.
pub fn built_in_traits() -> &'static [Arc<Trait>] {
    &BUILT_IN_TRAITS
}

/// A built-in trait by its id.
pub fn built_in(id: &str) -> Option<&'static Arc<Trait>> {
    built_in_traits().iter().find(|locked_trait| locked_trait.id == id)
}
