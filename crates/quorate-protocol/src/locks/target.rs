//! A compiled trait: its letters by their looks, and the separators between them. The automaton finds the letters in a row,
//! whatever separates them; this module decides whether the candidate is the trait, and how far the text had to be folded.
//! Also the separators between letters, and letters set apart (`i g n o r e`).

use std::ops::Range;

use super::Layer;
use super::character::{Class, I, L, Reading, continues_letter, ends_line, entry, is_mark};
use super::items::Item;

/// How many items around a place are looked at for what a trait begins or ends with beside letters.
pub(super) const CONTEXT_ITEMS: usize = 64;

/// The fewest letters of a trait that is seen within longer words where it only looks the same, and whose `m` may be an r
/// and an n. A shorter one would be seen everywhere: `AI` in `all`, `modem` in `modern`.
const MIN_LETTERS_WITHIN_WORDS: usize = 6;

/// The fewest letters of a trait that may begin with an l in place of an I, and have a bar in place of one.
const MIN_LETTERS_WITH_STROKES: usize = 5;

/// The fewest letters of a trait that may have a figure in place of a letter: `FA1L`, but `A1` is not `AI`.
const MIN_LETTERS_WITH_DIGITS: usize = 4;

/// The atom continues with the letter of the one before it, as the second of an `m` does, which is an r and an n.
const SAME_LETTER: u8 = 0;

/// A compiled trait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The index of the trait.
    pub(super) trait_index: usize,
    /// Its letters, by what they look like.
    pub(super) atoms: Box<[u8]>,
    plain: Box<str>,
    /// For each atom, its readings among `i` and `l`; all bits for other letters, and [`WITHIN`] where it
    /// is not the first atom of its letter.
    strokes: Box<[u8]>,
    /// The separators between the letters, by the number of preceding atoms; none where no entry exists.
    gaps: Box<[(usize, Gap)]>,
    lead: Gap,
    trail: Gap,
    letters: usize,
    /// The empty separator.
    nothing: Gap,
}

/// A text in items, or the part of it around a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextItems<'a> {
    pub(super) items: &'a [Item],
    /// The byte at which the last item ends.
    pub(super) end: usize,
}

impl Target {
    /// The trait in items; `None` where it has no letters.
    pub(super) fn new(at: usize, items: &[Item], reading: Reading) -> Option<Target> {
        let is_letter = |item: &&Item| item.class() == Class::Letter;
        let letters = items.iter().filter(is_letter).count();
        let (mut atoms, mut plain, mut thin, mut gaps) = (Vec::new(), String::new(), Vec::new(), Vec::new());
        let mut last: Option<usize> = None;
        let mut lead = Gap::default();
        for (position, item) in items.iter().enumerate().filter(|(_, item)| is_letter(item)) {
            let gap = Gap::new(&items[last.map_or(0, |last| last + 1)..position]);
            match last {
                None => lead = gap,
                Some(_) if gap == Gap::default() => {}
                Some(_) => gaps.push((atoms.len(), gap)),
            }
            let entry = item.entry();
            let (mut room, mut more) = ([0; 4], [0; 4]);
            let own = entry.atoms(item.c, reading, &mut room);
            let begins = if own == b"i" { trait_strokes(item.c, entry.strokes) } else { u8::MAX };
            thin.extend((0..own.len()).map(|at| if at == 0 { begins } else { SAME_LETTER }));
            atoms.extend_from_slice(own);
            plain.push_str(entry.plain(item.c, &mut more));
            last = Some(position);
        }
        let trail = Gap::new(&items[last? + 1..]);
        Some(Target {
            trait_index: at,
            atoms: atoms.into(),
            plain: plain.into(),
            strokes: thin.into(),
            gaps: gaps.into(),
            lead,
            trail,
            letters,
            nothing: Gap::default(),
        })
    }

    fn gap(&self, atoms: usize) -> &Gap {
        self.gaps
            .binary_search_by_key(&atoms, |(at, _)| *at)
            .map_or(&self.nothing, |found| &self.gaps[found].1)
    }

    /// Whether the trait ends at an item, and if so what of the text it is, by which layer.
    pub(super) fn match_at(&self, read: TextItems<'_>, last: usize) -> Option<(Layer, Range<usize>)> {
        let first = self.first(read, last)?;
        let items = read.items;
        if let Some(next) = items.get(last + 1)
            && continues_letter(next.c)
        {
            return None;
        }
        let look = self.compare(read, first, last)?;
        let before = &items[first.saturating_sub(CONTEXT_ITEMS)..first];
        let before =
            &before[before.iter().rposition(|item| item.class() == Class::Letter).map_or(0, |at| at + 1)..];
        let after = &items[last + 1..items.len().min(last + 1 + CONTEXT_ITEMS)];
        let after =
            &after[..after.iter().position(|item| item.class() == Class::Letter).unwrap_or(after.len())];
        let mut level = self.lead.ends(before)?.max(self.trail.begins(after)?);
        let ends = Surroundings::of(read, first, last);
        let apart = look.level.is_none();
        match (look.level, look.edges) {
            (Some(between), _) => {
                level = level.max(between);
                if self.letters < MIN_LETTERS_WITHIN_WORDS
                    && (!look.plain || look.is_snake)
                    && !(ends.is_whole_word() || ends.mixes_scripts(&look))
                {
                    return None;
                }
            }
            (None, Some(edges)) => {
                let free = (ends.before_is_free || !edges.before) && (ends.after_is_free || !edges.after);
                if !free || (edges.is_abbreviation && !ends.is_isolated()) {
                    return None;
                }
            }
            (None, None) => return None,
        }
        let layer = match (apart, look.plain, level) {
            (true, ..) => Layer::SetApart,
            (false, false, _) => Layer::Skeleton,
            (false, true, Level::Unmarked) => Layer::Unmarked,
            (false, true, Level::Folded) => Layer::Folded,
        };
        Some((layer, self.span(read, first - self.lead_len(before), last + self.trail_len(after))))
    }

    /// The item at which the letters begin; `None` where they are others, or begin within a character.
    fn first(&self, read: TextItems<'_>, last: usize) -> Option<usize> {
        let mut remaining = &self.atoms[..];
        for (at, item) in read.items[..=last].iter().enumerate().rev() {
            if item.class() == Class::Letter {
                let len = as_either(item.c, |atoms| remaining.ends_with(atoms))?;
                remaining = &remaining[..remaining.len() - len];
            }
            if remaining.is_empty() {
                return Some(at);
            }
        }
        None
    }

    /// Checks letters and gaps against the trait's.
    fn compare(&self, read: TextItems<'_>, first: usize, last: usize) -> Option<Comparison> {
        let items = &read.items[first..=last];
        let mut look = Comparison::default();
        let mut apart = SpacingState::new(self.letters);
        let mut plain = &*self.plain;
        let mut atoms = 0;
        let mut previous: Option<usize> = None;
        for (at, item) in items.iter().enumerate().filter(|(_, item)| item.class() == Class::Letter) {
            let entry = item.entry();
            if let Some(previous) = previous {
                let (gap, wanted) = (&items[previous + 1..at], self.gap(atoms));
                let met = wanted.met_by(gap);
                // Within a letter that two of the text make up nothing is set apart.
                let within = self.strokes[atoms] == SAME_LETTER && gap.is_empty();
                if !within && !apart.accept_gap(gap, wanted, met.is_some()) && met.is_none() {
                    return None;
                }
                look.is_snake |= !gap.is_empty() && gap.iter().all(|item| item.c == '_');
                look.level = look.level.zip(met).map(|(one, other)| one.max(other));
            }
            let len = as_either(item.c, |own| self.atoms[atoms..].starts_with(own))?;
            if self.letters < MIN_LETTERS_WITHIN_WORDS && self.is_astride(atoms, len) {
                return None;
            }
            if self.atoms[atoms..atoms + len] == *b"i" && !self.strokes_match(atoms, items, at) {
                return None;
            }
            atoms += len;
            let mut room = [0; 4];
            match plain.strip_prefix(entry.plain(item.c, &mut room)).filter(|_| look.plain) {
                Some(rest) => plain = rest,
                None => look.plain = false,
            }
            look.has_latin |= item.c.is_ascii_alphabetic();
            look.has_foreign |= is_foreign(*item);
            previous = Some(at);
        }
        look.plain &= plain.is_empty();
        if self.letters < MIN_LETTERS_WITH_DIGITS
            && !look.plain
            && items.iter().any(|item| ascii(*item).is_some_and(|c| c.is_ascii_digit()))
        {
            return None;
        }
        look.edges = apart.edges();
        Some(look)
    }

    /// Whether so many atoms begin or end within an `m`, or are an `m` where the trait has two letters.
    fn is_astride(&self, atoms: usize, len: usize) -> bool {
        let within = |at: usize| self.strokes.get(at) == Some(&SAME_LETTER);
        let is_m = |at: usize| self.atoms.get(at..at + 2) == Some(b"rn") && within(at + 1);
        match len {
            1 => is_m(atoms) || (within(atoms) && is_m(atoms - 1)),
            _ => self.atoms[atoms..].starts_with(b"rn") && !within(atoms + 1),
        }
    }

    /// Whether an `i`, `l`, `1` or `|` of the text may be what the trait has there. By UTS 39 a capital I is an l and a 1
    /// is one; but `fall` is not `FAIL`, and only among capitals does an `l` pass for an I.
    fn strokes_match(&self, atoms: usize, items: &[Item], at: usize) -> bool {
        let (wanted, item) = (self.strokes[atoms], items[at]);
        // An upright stroke of another script may mean either letter.
        let has = if is_foreign(item) { I | L } else { item.entry().strokes };
        if wanted == SAME_LETTER {
            return true;
        }
        match ascii(item) {
            Some('1') if wanted & I != 0 => return self.letters >= MIN_LETTERS_WITH_DIGITS,
            Some('|') if wanted & I != 0 => return self.letters >= MIN_LETTERS_WITH_STROKES,
            _ => {}
        }
        if wanted & has != 0 {
            return item.c != 'I' || wanted & I != 0 || count(items, at, char::is_lowercase) > 0;
        }
        let passes = has & L != 0 && !item.c.is_uppercase();
        // Two of them, since `Al` is a name.
        let capitals = count(items, at, char::is_uppercase) > 1
            && count(items, at, |c| c.is_lowercase() && c != 'l') == 0;
        passes && (capitals || (at == 0 && self.letters >= MIN_LETTERS_WITH_STROKES))
    }

    /// How many of the items before the letters the trait's beginning takes.
    fn lead_len(&self, before: &[Item]) -> usize {
        let fits = |len: &usize| self.lead.ends(&before[before.len() - len..]).is_some();
        if self.lead.is_empty() { 0 } else { (0..=before.len()).find(fits).unwrap_or(0) }
    }

    /// How many of the items after the letters the trait's end takes.
    fn trail_len(&self, after: &[Item]) -> usize {
        if self.trail.is_empty() {
            // The marks on the last letter belong to it.
            return after.iter().take_while(|item| is_mark(item.c)).count();
        }
        (0..=after.len()).find(|len| self.trail.begins(&after[..*len]).is_some()).unwrap_or(0)
    }

    fn span(&self, read: TextItems<'_>, first: usize, last: usize) -> Range<usize> {
        let start = read.items[first].start;
        let own = read.items[last].start;
        let next = read.items[last..].iter().find(|item| item.start != own);
        start as usize..next.map_or(read.end, |item| item.start as usize)
    }
}

/// The number of a letter's atoms by the first of its readings that fits.
fn as_either(c: char, fits: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let (entry, mut room) = (entry(c), [0; 4]);
    let mut len = |reading| {
        let atoms = entry.atoms(c, reading, &mut room);
        fits(atoms).then_some(atoms.len())
    };
    len(Reading::Small).or_else(|| len(Reading::Standing))
}

/// The readings of a trait's letter. A capital I looks like an l, but the author of `FAIL` does not mean `fall`.
fn trait_strokes(c: char, thin: u8) -> u8 {
    if c.is_uppercase() && thin & I != 0 { thin & !L } else { thin }
}

/// The ASCII character that it folds to: the 1 of a `１`.
fn ascii(item: Item) -> Option<char> {
    match item.entry().plain(item.c, &mut [0; 4]).as_bytes() {
        [only] => Some(char::from(*only)),
        _ => None,
    }
}

/// Whether it is a letter of another script that has the look of a Latin one, or may have.
fn is_foreign(item: Item) -> bool {
    const LATIN: char = '\u{24f}';
    item.c > LATIN && item.c.is_alphabetic() && !item.entry().plain(item.c, &mut [0; 4]).is_ascii()
}

/// How a row of letters compares to a trait's.
struct Comparison {
    /// Whether they are the same, and not only of the same look.
    plain: bool,
    /// How far the separators had to be folded; `None` if they differ.
    level: Option<Level>,
    /// How they are set apart, if they may be.
    edges: Option<Edges>,
    /// Whether a lone low line is between two of them, as in `data_index`: Markdown takes that for no mark.
    is_snake: bool,
    /// Whether some of them are Latin.
    has_latin: bool,
    /// Whether some of them are of another script.
    has_foreign: bool,
}

impl Default for Comparison {
    fn default() -> Self {
        Comparison {
            plain: true,
            level: Some(Level::Folded),
            edges: None,
            is_snake: false,
            has_latin: false,
            has_foreign: false,
        }
    }
}

/// The context of a candidate.
struct Surroundings<'a> {
    before: &'a [Item],
    after: &'a [Item],
    /// Whether it begins a word.
    before_is_free: bool,
    /// Whether it ends one.
    after_is_free: bool,
}

impl<'a> Surroundings<'a> {
    fn of(read: TextItems<'a>, first: usize, last: usize) -> Self {
        let seen = |item: &&Item| item.class() != Class::Nothing;
        let free = |next: Option<&Item>| next.is_none_or(|item| item.class() != Class::Letter);
        let before = &read.items[first.saturating_sub(CONTEXT_ITEMS)..first];
        let after = &read.items[last + 1..read.items.len().min(last + 1 + CONTEXT_ITEMS)];
        Surroundings {
            before,
            after,
            before_is_free: free(before.iter().rev().find(seen)),
            after_is_free: free(after.iter().find(seen)),
        }
    }

    /// Whether it is a whole word.
    fn is_whole_word(&self) -> bool {
        self.before_is_free && self.after_is_free
    }

    /// Whether it has, with the letters beside it, those of several scripts, which no word has that does not hide anything.
    fn mixes_scripts(&self, look: &Comparison) -> bool {
        let seen = |item: &&Item| item.class() != Class::Nothing;
        let beside = [self.before.iter().rev().find(seen), self.after.iter().find(seen)];
        let any = |is: fn(Item) -> bool| beside.iter().flatten().any(|item| is(**item));
        let latin = look.has_latin || any(|item| item.c.is_ascii_alphabetic());
        latin && look.has_foreign
    }

    /// Whether it is not part of a longer row of letters and signs, as `A.I.` is in `A.I.D.`.
    fn is_isolated(&self) -> bool {
        let letter = |item: &Item| item.class() == Class::Letter;
        let before = self.before.iter().rposition(letter).map_or(self.before, |at| &self.before[at..]);
        let after = self.after.iter().position(letter).map_or(self.after, |at| &self.after[..=at]);
        let alone = |beside: &[Item]| {
            !beside.iter().any(letter) || beside.iter().any(|item| item.class() == Class::Space)
        };
        alone(before) && alone(after)
    }
}

/// How many of the other letters around one, within the place, are such.
fn count(items: &[Item], at: usize, is: impl Fn(char) -> bool) -> usize {
    items.iter().enumerate().filter(|(other, item)| *other != at && is(item.c)).count()
}

/// The fewest letters of a trait that is also looked for letter by letter, `h o n e s t`. One of fewer is seen only with a
/// single sign between its letters, `A.I.`.
const MIN_SPELLED_LETTERS: usize = 4;

/// The fewest letters of a trait that may be parted here and there by a single sign.
const MIN_SPLIT_LETTERS: usize = 5;

/// The fewest letters of a trait whose blanks may have been moved.
const MIN_MOVED_LETTERS: usize = 12;

/// How many signs may be between letters that are set apart; blanks in a row are one.
const MAX_GAP_SIGNS: usize = 8;

/// How much may be between them at all.
const MAX_GAP_ITEMS: usize = 64;

/// What is known of a place's gaps so far.
#[derive(Debug)]
pub(super) struct SpacingState {
    letters: usize,
    /// Every two letters are apart.
    all_apart: bool,
    /// Every two letters have a single sign between them.
    all_single_sign: bool,
    /// Where letters are apart that should not be, a single sign parts them.
    some_split: bool,
    /// Where the gap is another, it is one of blanks, or of nothing.
    blanks_moved: bool,
    /// Each word is whole, or apart.
    word_by_word: bool,
    word: WordState,
    /// Whether the first word is apart; `None` before its end.
    first: Option<bool>,
    /// Whether the word before the current one is apart, or has only one letter.
    before: bool,
    /// The gap before the current word is another than the trait's, which only words that are apart may have.
    pending: bool,
}

#[derive(Debug)]
struct WordState {
    gaps: usize,
    matches_trait: bool,
    is_apart: bool,
}

const NEW_WORD: WordState = WordState { gaps: 0, matches_trait: true, is_apart: true };

/// How a place is set apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edges {
    /// Nothing may stand directly before it.
    pub(super) before: bool,
    /// Nothing may stand directly after it.
    pub(super) after: bool,
    /// The adjacent rows of letters must not continue either.
    pub(super) is_abbreviation: bool,
}

impl SpacingState {
    /// For a trait with this number of letters.
    pub(super) fn new(letters: usize) -> Self {
        SpacingState {
            letters,
            all_apart: letters >= MIN_SPELLED_LETTERS,
            all_single_sign: (2..MIN_SPELLED_LETTERS).contains(&letters),
            some_split: letters >= MIN_SPLIT_LETTERS,
            blanks_moved: letters >= MIN_MOVED_LETTERS,
            word_by_word: letters >= MIN_SPELLED_LETTERS,
            word: NEW_WORD,
            first: None,
            before: false,
            pending: false,
        }
    }

    /// Takes the gap between two letters, and whether it is what the trait has there. Whether it still may be set apart.
    pub(super) fn accept_gap(&mut self, gap: &[Item], wanted: &Gap, is_met: bool) -> bool {
        let is_separated = separates(gap);
        self.all_apart &= is_separated;
        self.all_single_sign &= is_joiner(gap);
        if !is_met {
            self.some_split &= may_split_word(gap, wanted);
            let plain = wanted.is_empty() || wanted.is_space();
            self.blanks_moved &= (plain && is_blank(gap)) || may_split_word(gap, wanted);
        }
        if wanted.is_empty() {
            self.word.gaps += 1;
            self.word.matches_trait &= is_met;
            self.word.is_apart &= is_separated;
            self.word_by_word &= self.word.matches_trait || self.word.is_apart;
        } else {
            self.end_word();
            self.word_by_word &= is_met || (is_separated && self.before);
            self.pending = !is_met;
        }
        self.all_apart || self.all_single_sign || self.some_split || self.blanks_moved || self.word_by_word
    }

    fn end_word(&mut self) {
        let word = std::mem::replace(&mut self.word, NEW_WORD);
        let apart = !word.matches_trait;
        self.before = apart || word.gaps == 0;
        self.word_by_word &= !self.pending || self.before;
        self.first = self.first.or(Some(apart));
    }

    /// Whether the place is the trait, set apart, and what has to stand around it then.
    pub(super) fn edges(mut self) -> Option<Edges> {
        let last = !self.word.matches_trait;
        self.end_word();
        let edges = |before: bool, after: bool| Edges {
            before,
            after,
            is_abbreviation: self.letters < MIN_SPELLED_LETTERS,
        };
        if self.word_by_word {
            return Some(edges(self.first.unwrap_or(true), last));
        }
        (self.all_apart || self.all_single_sign || self.some_split || self.blanks_moved)
            .then(|| edges(true, true))
    }
}

/// Whether a gap sets two letters apart.
fn separates(gap: &[Item]) -> bool {
    let (mut signs, mut in_blanks) = (0, false);
    for item in gap {
        let blank = item.class() == Class::Space;
        signs += usize::from(item.class() != Class::Nothing && !(blank && in_blanks));
        in_blanks = blank || (in_blanks && item.class() == Class::Nothing);
    }
    gap.len() <= MAX_GAP_ITEMS && (1..=MAX_GAP_SIGNS).contains(&signs)
}

fn is_blank(gap: &[Item]) -> bool {
    gap.iter().all(|item| matches!(item.class(), Class::Space | Class::Nothing))
}

/// Whether a gap may part a word that is otherwise whole: a hyphen or a dot without space, which a word has for other
/// reasons than to hide it only now and then; between words also a line-end hyphen.
fn may_split_word(gap: &[Item], wanted: &Gap) -> bool {
    if wanted.is_space() {
        let hyphen = gap.iter().any(|item| item.class() == Class::Hyphen || item.c == '\u{ad}');
        let breaks = gap.iter().any(|item| ends_line(item.c));
        let spaceless = gap.iter().all(|item| item.class() != Class::Space);
        return (hyphen && breaks) || (spaceless && is_joiner(gap));
    }
    wanted.is_empty() && is_joiner(gap)
}

/// Whether a gap is a single sign that joins as well as it parts.
fn is_joiner(gap: &[Item]) -> bool {
    let mut seen = gap.iter().filter(|item| item.class() != Class::Nothing);
    match (seen.next(), seen.next()) {
        (Some(only), None) => {
            only.class() == Class::Hyphen || matches!(only.c, '.' | '·' | '\'' | '’' | '/' | '+' | '•' | '‧')
        }
        _ => false,
    }
}

/// A gap in its three forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Gap {
    /// White space as one space, markup kept.
    with_markup: Box<str>,
    tight: Box<str>,
    loose: Box<str>,
}

/// How far a gap had to be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// White space and invisible characters.
    Folded,
    /// Markup and line-end hyphens.
    Unmarked,
}

impl Gap {
    pub(super) fn new(items: &[Item]) -> Gap {
        let mut forms = GapBuilder::default();
        let mut at = 0;
        while at < items.len() {
            at = forms.add(items, at);
        }
        Gap { with_markup: forms.with_markup.into(), tight: forms.tight.into(), loose: forms.loose.into() }
    }

    /// Whether there is nothing in it that is seen.
    pub(super) fn is_empty(&self) -> bool {
        self.with_markup.is_empty()
    }

    /// Whether it is white space.
    pub(super) fn is_space(&self) -> bool {
        &*self.with_markup == " "
    }

    /// Whether what a text has between two letters meets this.
    pub(super) fn met_by(&self, items: &[Item]) -> Option<Level> {
        match items {
            [] if self.with_markup.is_empty() => Some(Level::Folded),
            [] => self.tight.is_empty().then_some(Level::Unmarked),
            [Item { c: ' ', .. }] if self.is_space() => Some(Level::Folded),
            // Invisible characters may break a line, and so part words.
            _ if self.is_space() && items.iter().all(|item| item.class() == Class::Nothing) => {
                Some(Level::Unmarked)
            }
            _ => self.compare(&Gap::new(items), |have, want| have == want),
        }
    }

    /// Whether the text before a word ends with this.
    pub(super) fn ends(&self, before: &[Item]) -> Option<Level> {
        if self.tight.is_empty() && !self.with_markup.is_empty() {
            return Some(Level::Unmarked);
        }
        self.is_empty()
            .then_some(Level::Folded)
            .or_else(|| self.compare(&Gap::new(before), |have, want| have.ends_with(want)))
    }

    /// Whether the text after a word begins with this.
    pub(super) fn begins(&self, after: &[Item]) -> Option<Level> {
        if self.tight.is_empty() && !self.with_markup.is_empty() {
            return Some(Level::Unmarked);
        }
        self.is_empty()
            .then_some(Level::Folded)
            .or_else(|| self.compare(&Gap::new(after), |have, want| have.starts_with(want)))
    }

    fn compare(&self, have: &Gap, meets: impl Fn(&str, &str) -> bool) -> Option<Level> {
        if meets(&have.with_markup, &self.with_markup) {
            return Some(Level::Folded);
        }
        let wanted = [&self.tight, &self.loose];
        let any =
            [&have.tight, &have.loose].into_iter().any(|have| wanted.iter().any(|want| meets(have, want)));
        any.then_some(Level::Unmarked)
    }
}

#[derive(Default)]
struct GapBuilder {
    with_markup: String,
    tight: String,
    loose: String,
}

impl GapBuilder {
    /// Adds what begins at an item, and says where the next begins.
    fn add(&mut self, items: &[Item], at: usize) -> usize {
        let item = items[at];
        let class = item.class();
        if (class == Class::Hyphen || item.c == '\u{ad}')
            && let Some(end) = line_end(items, at + 1)
        {
            if class == Class::Hyphen {
                self.with_markup.push('-');
                self.loose.push('-');
            }
            space(&mut self.with_markup);
            return end;
        }
        match class {
            Class::Nothing | Class::Letter => {}
            Class::Space => {
                for form in [&mut self.with_markup, &mut self.tight, &mut self.loose] {
                    space(form);
                }
                if ends_line(item.c) {
                    let end = after_prefix(items, at + 1);
                    for item in items[at + 1..end].iter().filter(|item| item.class() == Class::Other) {
                        self.with_markup.push(item.c);
                        self.with_markup.push(' ');
                    }
                    return end;
                }
            }
            Class::Mark => {
                self.with_markup.push(item.c);
                space(&mut self.loose);
            }
            Class::Hyphen | Class::Other => {
                let sign = item.entry().sign;
                for form in [&mut self.with_markup, &mut self.tight, &mut self.loose] {
                    form.push(sign);
                }
            }
        }
        at + 1
    }
}

fn space(form: &mut String) {
    if !form.ends_with(' ') {
        form.push(' ');
    }
}

/// Where the next line begins, if nothing but space is between here and the line's end.
fn line_end(items: &[Item], from: usize) -> Option<usize> {
    let end = (from..items.len()).find(|at| {
        let item = items[*at];
        ends_line(item.c) || !matches!(item.class(), Class::Nothing | Class::Space)
    })?;
    ends_line(items[end].c).then(|| after_prefix(items, end + 1))
}

/// Where a line's text begins: after its space, and after the signs that make it a quotation or a comment.
fn after_prefix(items: &[Item], from: usize) -> usize {
    let blank = |item: &Item| matches!(item.class(), Class::Nothing | Class::Space);
    let sign = |item: &Item| matches!(item.c, '>' | '#' | '/');
    let text = (from..items.len()).find(|at| !blank(&items[*at]) && !sign(&items[*at]));
    text.unwrap_or(items.len())
}
