//! Word numbers, and sequences of words in a trie, compiled once for all traits; and a text cut into numbered words.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use quorate_diagnostics::text::section;

use super::WORDS;
use super::text::{CONTRACTIONS, Separator, raw_words, separator_in, words};

/// The effect of a word or a sequence on the traits' words around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModifierKind {
    /// Nothing, though a part of it would do something: `not only`.
    Neutral,
    /// Negates what follows in its clause.
    Negator,
    /// Negates what follows at once: `no warmth`.
    Determiner,
    /// Diminishes what follows, and has an object of its own: `without`.
    Preposition,
    /// Puts something before what follows at once: `speed over warmth`.
    Comparison,
    /// Diminishes its object: `skip`.
    Verb,
    /// Diminishes the words between it and a particle: `leave … out`.
    SeparableVerb,
    /// The particle of such a verb.
    Particle,
    /// Said of a subject, it diminishes it: `is optional`.
    NegativePredicate,
    /// The same without `to be`: `can wait`.
    NegativeVerb,
    /// Said of a subject with `not`, it diminishes it: `is not needed`.
    PositivePredicate,
    /// Diminishes the words before its colon: `warmth: off`.
    Switch,
    /// Keeps what follows it.
    Keeper,
}

/// In which form a word was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inflection {
    /// As it is listed, or with an `s`.
    Base,
    /// In `-ing`.
    Ing,
    /// In `-ed`, or what stands for it.
    Past,
    /// In `-ly`: a manner, not a thing.
    Adverb,
}

/// The meaning of a sequence of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A word of a trait, by index.
    Word(usize, Inflection),
    /// A phrase that betrays a trait.
    Phrase(usize),
    /// The same, where its clause ends with it.
    ClauseFinalPhrase(usize),
    /// Something that acts on words.
    Modifier(ModifierKind, Inflection),
    /// What only looks like a trait's word.
    Harmless,
}

/// The possible roles of a single word, as bits.
pub(super) mod flag {
    pub(in super::super) const STARTER: u32 = 1;
    pub(in super::super) const SUBORDINATE: u32 = 2;
    pub(in super::super) const FUNCTION: u32 = 4;
    pub(in super::super) const FILLER: u32 = 8;
    pub(in super::super) const OPEN: u32 = 16;
    pub(in super::super) const COPULA: u32 = 32;
    pub(in super::super) const THIRD: u32 = 64;
    pub(in super::super) const NOUN_TO: u32 = 128;
    pub(in super::super) const AND: u32 = 256;
    pub(in super::super) const OR: u32 = 512;
    pub(in super::super) const BUT: u32 = 1024;
    pub(in super::super) const PRONOUN: u32 = 2048;
    pub(in super::super) const TO: u32 = 4096;
    pub(in super::super) const FINITE: u32 = 8192;
    pub(in super::super) const RELATIVE: u32 = 16384;
    pub(in super::super) const FOR: u32 = 32768;
    pub(in super::super) const CONSIDER: u32 = 65536;
    pub(in super::super) const ASK: u32 = 131_072;
    pub(in super::super) const POINTER: u32 = 262_144;
}

/// The sections of words and sequences that act on a trait's word, by what they do.
const MODIFIERS: [(ModifierKind, &str); 13] = [
    (ModifierKind::Neutral, "neutral"),
    (ModifierKind::Negator, "negator"),
    (ModifierKind::Determiner, "determiner"),
    (ModifierKind::Preposition, "preposition"),
    (ModifierKind::Comparison, "comparison"),
    (ModifierKind::Verb, "verb"),
    (ModifierKind::SeparableVerb, "separable verb"),
    (ModifierKind::Particle, "particle"),
    (ModifierKind::NegativePredicate, "negative predicate"),
    (ModifierKind::NegativeVerb, "negative verb"),
    (ModifierKind::PositivePredicate, "positive predicate"),
    (ModifierKind::Switch, "switch"),
    (ModifierKind::Keeper, "keeper"),
];
/// Forms that no rule makes, by their base; a form in `-ing` is one of the present.
static IRREGULAR: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let forms = section(WORDS, "irregular").filter_map(|line| line.split_once(' '));
    forms.map(|(base, others)| (base, others.split(' ').collect())).collect()
});
/// How far a sequence may run over fillers between two of its words.
const MAX_FILLERS: usize = 4;

#[derive(Debug, Clone, Default)]
struct Node {
    /// By word, sorted.
    next: Vec<(u32, u32)>,
    meanings: Vec<Meaning>,
}

/// FNV-1a. Words are short and many, and only those of lists are ever kept by it.
#[derive(Debug, Clone)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// All words and sequences.
#[derive(Debug, Clone)]
pub(super) struct Grammar {
    ids: HashMap<Box<str>, u32, BuildHasherDefault<Fnv>>,
    articles: [u32; 3],
    flags: Vec<u32>,
    /// By word: the node of a sequence that begins with it, or nothing.
    roots: Vec<u32>,
    nodes: Vec<Node>,
    /// By the first word of a phrase: its forms as a verb. By its last: its plural, if it has one.
    verbs: HashMap<Box<str>, Vec<u32>>,
    plurals: HashMap<Box<str>, Option<u32>>,
}

impl Grammar {
    /// The grammar without traits, which [`Grammar::add_word`] and [`Grammar::add_phrase`] add.
    pub(super) fn new() -> Grammar {
        let mut grammar = Grammar {
            ids: HashMap::default(),
            articles: [0; 3],
            flags: vec![0],
            roots: vec![0],
            nodes: vec![Node::default()],
            verbs: HashMap::new(),
            plurals: HashMap::new(),
        };
        grammar.articles = ["the", "a", "an"].map(|word| grammar.id(word));
        for (list, bit) in [
            ("starters", flag::STARTER),
            ("subordinates", flag::SUBORDINATE),
            ("functions", flag::FUNCTION),
            ("fillers", flag::FILLER),
            ("continuing", flag::OPEN),
            ("copulas", flag::COPULA),
            ("third parties", flag::THIRD),
            ("nouns to", flag::NOUN_TO),
            ("ask", flag::ASK),
            ("pointers", flag::POINTER | flag::FUNCTION),
            ("pointed at", flag::POINTER),
            ("and", flag::AND),
            ("or", flag::OR),
            ("but", flag::BUT),
            ("pronoun", flag::PRONOUN),
            ("to", flag::TO),
            ("finite", flag::FINITE),
            ("relative", flag::RELATIVE),
            ("for", flag::FOR),
            ("consider", flag::CONSIDER),
        ] {
            for word in section(WORDS, list) {
                let id = grammar.id(word);
                grammar.flags[id as usize] |= bit;
            }
        }
        for (op, list) in MODIFIERS {
            for entry in section(WORDS, list) {
                grammar.add_modifier(op, entry);
            }
        }
        for entry in super::harmless() {
            grammar.insert_each(&entry, &|form| form == Inflection::Base, false, &|_| Meaning::Harmless);
        }
        grammar
    }

    fn add_modifier(&mut self, op: ModifierKind, entry: &str) {
        match op {
            ModifierKind::Verb | ModifierKind::SeparableVerb | ModifierKind::Keeper => {
                self.insert_each(entry, &|form| form != Inflection::Adverb, true, &|form| {
                    Meaning::Modifier(op, form)
                });
            }
            ModifierKind::NegativePredicate => {
                self.insert_each(entry, &|form| form == Inflection::Base, false, &|form| {
                    Meaning::Modifier(op, form)
                });
            }
            _ => {
                let ids = self.ids_of(&words(entry));
                self.insert(&ids, Meaning::Modifier(op, Inflection::Base));
            }
        }
    }

    /// Adds a word of a trait. In a sequence, the last word is inflected.
    pub(super) fn add_word(&mut self, at: usize, entry: &str) {
        self.insert_each(entry, &|_| true, false, &|form| Meaning::Word(at, form));
        // A leading verb: `refusing harmful`.
        self.insert_each(entry, &|form| form != Inflection::Adverb, true, &|form| Meaning::Word(at, form));
    }

    /// Adds a phrase. Its first word is inflected as a verb, its last as a noun. One with a full stop ends its clause.
    pub(super) fn add_phrase(&mut self, at: usize, entry: &str) {
        let meaning = if entry.ends_with('.') { Meaning::ClauseFinalPhrase(at) } else { Meaning::Phrase(at) };
        let tokens = words(entry);
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return };
        let mut ids = self.ids_of(&tokens);
        let mut ends = vec![ids[ids.len() - 1]];
        let firsts: Vec<u32> = if first == "be" && tokens.len() > 1 {
            section(WORDS, "be forms").map(|word| self.id(word)).collect()
        } else {
            self.verb_forms(first)
        };
        if tokens.len() > 1 {
            ends.extend(self.plural(last));
        }
        for end in ends {
            *ids.last_mut().unwrap_or(&mut 0) = end;
            for first in &firsts {
                ids[0] = *first;
                self.insert(&ids, meaning);
            }
        }
    }

    /// The forms of a word as a verb.
    fn verb_forms(&mut self, word: &str) -> Vec<u32> {
        if let Some(known) = self.verbs.get(word) {
            return known.clone();
        }
        let fits = |form: &(String, Inflection)| form.1 != Inflection::Adverb;
        let ids: Vec<u32> = inflections(word).into_iter().filter(fits).map(|form| self.id(&form.0)).collect();
        self.verbs.insert(word.into(), ids.clone());
        ids
    }

    /// The plural of a word, where it has one.
    fn plural(&mut self, word: &str) -> Option<u32> {
        if let Some(known) = self.plurals.get(word) {
            return *known;
        }
        let plural = [word, "s"].concat();
        let id = inflections(word).iter().any(|form| form.0 == plural).then(|| self.id(&plural));
        self.plurals.insert(word.into(), id);
        id
    }

    /// Inserts a sequence in the forms of its first word, or of its last.
    fn insert_each(
        &mut self,
        entry: &str,
        fits: &dyn Fn(Inflection) -> bool,
        is_first: bool,
        means: &dyn Fn(Inflection) -> Meaning,
    ) {
        let tokens = words(entry);
        if tokens.is_empty() {
            return;
        }
        let mut ids = self.ids_of(&tokens);
        let place = if is_first { 0 } else { tokens.len() - 1 };
        for (word, form) in inflections(&tokens[place]) {
            if fits(form) {
                ids[place] = self.id(&word);
                self.insert(&ids, means(form));
            }
        }
    }

    /// The numbers of words.
    fn ids_of(&mut self, words: &[String]) -> Vec<u32> {
        words.iter().map(|word| self.id(word)).collect()
    }

    fn insert(&mut self, ids: &[u32], means: Meaning) {
        // An article is found everywhere, so none is asked for, but at the end.
        let last = ids.len().saturating_sub(1);
        let mut node = 0;
        for (at, id) in ids.iter().enumerate() {
            if at == last || !self.articles.contains(id) {
                let known = if node == 0 { self.roots[*id as usize] } else { self.next(node, *id) };
                node = if known == 0 { self.add_node(node, *id) } else { known };
            }
        }
        let all = &mut self.nodes[node as usize].meanings;
        if !all.contains(&means) {
            all.push(means);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a trait has fewer than 2^32 words")]
    fn add_node(&mut self, node: u32, id: u32) -> u32 {
        let new = self.nodes.len() as u32;
        self.nodes.push(Node::default());
        if node == 0 {
            self.roots[id as usize] = new;
        } else {
            let next = &mut self.nodes[node as usize].next;
            let place = next.partition_point(|(other, _)| *other < id);
            next.insert(place, (id, new));
        }
        new
    }

    fn next(&self, node: u32, id: u32) -> u32 {
        let next = &self.nodes[node as usize].next;
        next.binary_search_by_key(&id, |(other, _)| *other).map_or(0, |place| next[place].1)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a trait has fewer than 2^32 words")]
    fn id(&mut self, word: &str) -> u32 {
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let id = self.flags.len() as u32;
        self.ids.insert(word.into(), id);
        self.flags.push(0);
        self.roots.push(0);
        id
    }

    /// A word's number; 0 for what is in no list.
    pub(super) fn id_of(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or(0)
    }

    /// Whether a word is one of a class.
    pub(super) fn has_flag(&self, id: u32, bit: u32) -> bool {
        self.flags[id as usize] & bit != 0
    }

    /// Every sequence that begins here: what it is, and how many words of the text it takes. `ids` gives the words, and
    /// nothing where a sequence cannot go on.
    pub(super) fn sequences(
        &self,
        ids: impl Fn(usize) -> Option<u32>,
        mut found: impl FnMut(Meaning, usize),
    ) {
        let Some(first) = ids(0) else { return };
        let mut node = self.roots[first as usize];
        let (mut at, mut filled) = (1, 0);
        while node != 0 {
            if filled == 0 {
                for means in &self.nodes[node as usize].meanings {
                    found(*means, at);
                }
            }
            if self.nodes[node as usize].next.is_empty() {
                return;
            }
            let Some(id) = ids(at) else { return };
            let next = self.next(node, id);
            if next != 0 {
                node = next;
                filled = 0;
            } else if self.has_flag(id, flag::FILLER) && filled < MAX_FILLERS {
                filled += 1;
            } else {
                return;
            }
            at += 1;
        }
    }
}

/// The inflected forms of an English word: by rule, and irregular ones from the list.
fn inflections(word: &str) -> Vec<(String, Inflection)> {
    let mut all = vec![(word.to_owned(), Inflection::Base)];
    if let Some(others) = IRREGULAR.get(word) {
        let form = |word: &str| if word.ends_with("ing") { Inflection::Ing } else { Inflection::Past };
        all.extend(others.iter().map(|word| ((*word).to_owned(), form(word))));
    }
    if word.len() < 3 || !word.is_ascii() {
        return all;
    }
    let mut add = |word: String, form| all.push((word, form));
    let sibilant = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
    add(if sibilant { [word, "es"].concat() } else { [word, "s"].concat() }, Inflection::Base);
    let bytes = word.as_bytes();
    let is_vowel = |byte: u8| b"aeiou".contains(&byte);
    let last = bytes[bytes.len() - 1];
    if let Some(stem) = word.strip_suffix('y').filter(|_| !is_vowel(bytes[bytes.len() - 2])) {
        add([stem, "ies"].concat(), Inflection::Base);
        add([stem, "ied"].concat(), Inflection::Past);
        add([word, "ing"].concat(), Inflection::Ing);
        add([stem, "ier"].concat(), Inflection::Base);
        add([stem, "iness"].concat(), Inflection::Base);
    } else if let Some(stem) = word.strip_suffix('e') {
        add([word, "d"].concat(), Inflection::Past);
        add([stem, "ing"].concat(), Inflection::Ing);
        add([word, "r"].concat(), Inflection::Base);
        add([word, "st"].concat(), Inflection::Base);
        if let Some(stem) = word.strip_suffix("le") {
            add([stem, "ly"].concat(), Inflection::Adverb);
        }
    } else {
        add([word, "ed"].concat(), Inflection::Past);
        add([word, "ing"].concat(), Inflection::Ing);
        add([word, "er"].concat(), Inflection::Base);
        add([word, "est"].concat(), Inflection::Base);
        let doubles = bytes.len() >= 3 && !is_vowel(last) && is_vowel(bytes[bytes.len() - 2]);
        if doubles {
            let last = &word[word.len() - 1..];
            add([word, last, "ed"].concat(), Inflection::Past);
            add([word, last, "ing"].concat(), Inflection::Ing);
        }
    }
    if word.len() > 3 {
        add([word, "ly"].concat(), Inflection::Adverb);
        add([word, "ness"].concat(), Inflection::Base);
    }
    all
}

/// A word of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// Its number; 0 for what no list has.
    pub(super) id: u32,
    /// The separator before it.
    pub(super) separator: Separator,
    /// Its bytes in the block.
    pub(super) span: (usize, usize),
}

/// The words of a folded text.
pub(super) fn tokens(text: &str, grammar: &Grammar) -> Vec<Token> {
    let mut all = Vec::with_capacity(text.len() / 5);
    let (mut spelled, mut end) = (Vec::new(), 0);
    for (start, stop, word) in raw_words(text) {
        let separator = separator_in(
            &text[end..start],
            text.len() > stop || start > 0,
            all.is_empty() && spelled.is_empty(),
        );
        end = stop;
        let is_letter = word.chars().nth(1).is_none();
        if is_letter && (separator == Separator::None || spelled.is_empty()) {
            spelled.push((start, stop, word, separator));
            continue;
        }
        flush(&mut spelled, &mut all, grammar);
        push(&mut all, &word, separator, (start, stop), grammar);
    }
    flush(&mut spelled, &mut all, grammar);
    all
}

/// Letters set apart are read as the word that they spell, or as the words, from four on.
fn flush(spelled: &mut Vec<(usize, usize, String, Separator)>, all: &mut Vec<Token>, grammar: &Grammar) {
    if spelled.len() >= 4 {
        let span = (spelled[0].0, spelled[spelled.len() - 1].1);
        let word: String = spelled.iter().map(|letter| letter.2.as_str()).collect();
        if grammar.id_of(&word) == 0 && push_compound(all, &word, spelled[0].3, span, grammar) {
            spelled.clear();
            return;
        }
        push(all, &word, spelled[0].3, span, grammar);
    } else {
        for (start, stop, word, gap) in spelled.iter() {
            push(all, word, *gap, (*start, *stop), grammar);
        }
    }
    spelled.clear();
}

/// The minimum and maximum length of a word that is searched for joined words.
const COMPOUND_LENGTHS: std::ops::RangeInclusive<usize> = 8..=48;

fn push(all: &mut Vec<Token>, word: &str, gap: Separator, span: (usize, usize), grammar: &Grammar) {
    if let Some((_, long)) = CONTRACTIONS.iter().find(|(short, _)| *short == word) {
        all.push(Token { id: grammar.id_of(long[0]), separator: gap, span });
        all.push(Token { id: grammar.id_of(long[1]), separator: Separator::None, span });
        return;
    }
    let mut id = grammar.id_of(word);
    if id == 0 && word.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'@' | b'$')) {
        id = grammar.id_of(&word.chars().map(unleet).collect::<String>());
    }
    if id == 0 {
        id = LETTER_PAIRS
            .iter()
            .filter(|(pair, _)| word.contains(pair))
            .map(|(pair, letter)| grammar.id_of(&word.replace(pair, letter)))
            .find(|id| *id != 0)
            .unwrap_or(0);
    }
    if id == 0 && COMPOUND_LENGTHS.contains(&word.len()) && push_compound(all, word, gap, span, grammar) {
        return;
    }
    all.push(Token { id, separator: gap, span });
}

/// Pairs of letters that look like one.
const LETTER_PAIRS: [(&str, &str); 2] = [("rn", "m"), ("vv", "w")];

/// Reads a word as the known words that it is put together of, where it is.
fn push_compound(
    all: &mut Vec<Token>,
    word: &str,
    gap: Separator,
    span: (usize, usize),
    grammar: &Grammar,
) -> bool {
    if !word.is_ascii() || word.len() > *COMPOUND_LENGTHS.end() {
        return false;
    }
    let parts = split_compound(word, grammar);
    for (place, id) in parts.iter().enumerate() {
        all.push(Token { id: *id, separator: if place == 0 { gap } else { Separator::None }, span });
    }
    !parts.is_empty()
}

fn unleet(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        _ => c,
    }
}

/// Known words that a word is put together of; nothing where it is not.
fn split_compound(word: &str, grammar: &Grammar) -> Vec<u32> {
    let mut from: Vec<Option<(usize, u32)>> = vec![None; word.len() + 1];
    for start in 0..word.len() {
        if start > 0 && from[start].is_none() {
            continue;
        }
        for end in start + 2..=word.len().min(start + 16) {
            if from[end].is_none() {
                let id = grammar.id_of(&word[start..end]);
                if id != 0 {
                    from[end] = Some((start, id));
                }
            }
        }
    }
    let (mut at, mut parts) = (word.len(), Vec::new());
    while at > 0 {
        let Some((start, id)) = from[at] else { return Vec::new() };
        parts.push(id);
        at = start;
    }
    parts.reverse();
    parts
}
