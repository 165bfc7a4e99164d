//! A trait in the form in which it is looked for: its letters, by what they look like, and what stands between them. The
//! automaton finds the letters in a row, whatever stands between; here it is decided whether that is the trait, and how
//! far the text had to be folded to be it.

use std::ops::Range;

use super::character::{BAR, Class, I, L, ONE, Reading, entry, goes_on, is_mark};
use super::gap::{Gap, Level};
use super::hit::Layer;
use super::items::Item;

/// How many items around a place are looked at for what a trait begins or ends with beside letters.
pub(super) const AROUND: usize = 64;

/// The fewest letters of a trait that is also looked for letter by letter, `h.o.n.e.s.t`.
const SPELLED: usize = 4;

/// The fewest letters of a trait whose letters may stand for each other by rules that only long words bear.
const LONG: usize = 5;

/// The atom goes on with the letter of the one before it, as the second of an `m` does, which is an r and an n.
const WITHIN: u8 = 0;

/// How much may stand between letters that are set apart.
const APART: usize = 8;

/// A trait as it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The index of the trait.
    pub(super) at: usize,
    /// Its letters, by what they look like.
    pub(super) atoms: Box<[u8]>,
    /// Its letters, folded.
    plain: Box<str>,
    /// For each atom what it may be of `i`, `l`, `1` and `|`; all bits where it is something else, and [`WITHIN`] where it
    /// is not the first atom of its letter.
    thin: Box<[u8]>,
    /// What stands between the letters, by the number of atoms before it; nothing where it is not named.
    gaps: Box<[(usize, Gap)]>,
    lead: Gap,
    trail: Gap,
    letters: usize,
    /// The gap where there is none.
    nothing: Gap,
}

/// A text in items, or the part of it around a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
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
            let gap = Gap::of(&items[last.map_or(0, |last| last + 1)..position]);
            match last {
                None => lead = gap,
                Some(_) if gap == Gap::default() => {}
                Some(_) => gaps.push((atoms.len(), gap)),
            }
            let entry = item.entry();
            let (mut room, mut more) = ([0; 4], [0; 4]);
            let own = entry.atoms(item.c, reading, &mut room);
            let begins = if own == b"i" { entry.thin } else { u8::MAX };
            thin.extend((0..own.len()).map(|at| if at == 0 { begins } else { WITHIN }));
            atoms.extend_from_slice(own);
            plain.push_str(entry.plain(item.c, &mut more));
            last = Some(position);
        }
        let trail = Gap::of(&items[last? + 1..]);
        Some(Target {
            at,
            atoms: atoms.into(),
            plain: plain.into(),
            thin: thin.into(),
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
    pub(super) fn holds(&self, read: Read<'_>, last: usize) -> Option<(Layer, Range<usize>)> {
        let first = self.first(read, last)?;
        let items = read.items;
        if let Some(next) = items.get(last + 1)
            && goes_on(next.c)
        {
            return None;
        }
        let look = self.look(read, first, last)?;
        let before = &items[first.saturating_sub(AROUND)..first];
        let before =
            &before[before.iter().rposition(|item| item.class() == Class::Letter).map_or(0, |at| at + 1)..];
        let after = &items[last + 1..items.len().min(last + 1 + AROUND)];
        let after =
            &after[..after.iter().position(|item| item.class() == Class::Letter).unwrap_or(after.len())];
        let mut level = self.lead.ends(before)?.max(self.trail.begins(after)?);
        let mut apart = false;
        match look.level {
            Some(between) => level = level.max(between),
            None => {
                let alone =
                    (first == 0 || !before.is_empty()) && (last + 1 == items.len() || !after.is_empty());
                if !(alone && look.may_be_set_apart) {
                    return None;
                }
                apart = true;
            }
        }
        let layer = match (apart, look.plain, level) {
            (true, ..) => Layer::SetApart,
            (false, false, _) => Layer::Skeleton,
            (false, true, Level::Unmarked) => Layer::Unmarked,
            (false, true, Level::Folded) => Layer::Folded,
        };
        Some((layer, self.span(read, first - self.lead_of(before), last + self.trail_of(after))))
    }

    /// The item at which the letters begin; `None` where they are others, or begin within a character.
    fn first(&self, read: Read<'_>, last: usize) -> Option<usize> {
        let mut left = &self.atoms[..];
        for (at, item) in read.items[..=last].iter().enumerate().rev() {
            if item.class() == Class::Letter {
                let len = as_either(item.c, |atoms| left.ends_with(atoms))?;
                left = &left[..left.len() - len];
            }
            if left.is_empty() {
                return Some(at);
            }
        }
        None
    }

    /// Holds letters and gaps against the trait's.
    fn look(&self, read: Read<'_>, first: usize, last: usize) -> Option<Look> {
        let items = &read.items[first..=last];
        let mut look = Look { plain: true, level: Some(Level::Folded), may_be_set_apart: false };
        let mut plain = &*self.plain;
        let mut atoms = 0;
        let mut previous: Option<usize> = None;
        let (mut all_apart, mut some_apart) = (self.letters >= SPELLED, self.letters >= LONG);
        for (at, item) in items.iter().enumerate().filter(|(_, item)| item.class() == Class::Letter) {
            let entry = item.entry();
            if let Some(previous) = previous {
                let (gap, wanted) = (&items[previous + 1..at], self.gap(atoms));
                let met = wanted.met_by(gap);
                if met.is_none() {
                    some_apart &= may_part(gap, wanted);
                }
                all_apart &= parts(gap) || self.thin[atoms] == WITHIN;
                if !(all_apart || some_apart) && met.is_none() {
                    return None;
                }
                look.level = look.level.zip(met).map(|(one, other)| one.max(other));
            }
            let len = as_either(item.c, |own| self.atoms[atoms..].starts_with(own))?;
            if self.atoms[atoms..atoms + len] == *b"i" && !self.thin_enough(atoms, items, at) {
                return None;
            }
            atoms += len;
            let mut room = [0; 4];
            match plain.strip_prefix(entry.plain(item.c, &mut room)).filter(|_| look.plain) {
                Some(rest) => plain = rest,
                None => look.plain = false,
            }
            previous = Some(at);
        }
        look.plain &= plain.is_empty();
        look.may_be_set_apart = all_apart || some_apart;
        Some(look)
    }

    /// Whether an `i`, `l`, `1` or `|` of the text may be what the trait has there. By UTS 39 a capital I is an l and a 1
    /// is one; but `fall` is not `FAIL`, and only among capitals does an `l` pass for an I.
    fn thin_enough(&self, atoms: usize, items: &[Item], at: usize) -> bool {
        let (wanted, item) = (self.thin[atoms], items[at]);
        let has = item.entry().thin;
        if wanted == WITHIN {
            return true;
        }
        if wanted & I != 0 && matches!(item.c, '1' | '|') {
            return self.letters >= LONG;
        }
        if wanted & has != 0 {
            return item.c != 'I' || wanted & I != 0 || amid(items, at, char::is_lowercase);
        }
        let passes = has & (ONE | BAR) == 0 && has & L != 0 && wanted & I != 0;
        let capitals =
            amid(items, at, char::is_uppercase) && !amid(items, at, |c| c.is_lowercase() && c != 'l');
        passes && (capitals || (at == 0 && self.letters >= LONG))
    }

    /// How many of the items before the letters the trait's beginning takes.
    fn lead_of(&self, before: &[Item]) -> usize {
        let fits = |len: &usize| self.lead.ends(&before[before.len() - len..]).is_some();
        if self.lead.is_empty() { 0 } else { (0..=before.len()).find(fits).unwrap_or(0) }
    }

    /// How many of the items after the letters the trait's end takes.
    fn trail_of(&self, after: &[Item]) -> usize {
        if self.trail.is_empty() {
            // The marks on the last letter belong to it.
            return after.iter().take_while(|item| is_mark(item.c)).count();
        }
        (0..=after.len()).find(|len| self.trail.begins(&after[..*len]).is_some()).unwrap_or(0)
    }

    fn span(&self, read: Read<'_>, first: usize, last: usize) -> Range<usize> {
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

/// How a row of letters compares to a trait's.
struct Look {
    /// Whether they are the same, and not only of the same look.
    plain: bool,
    /// How far what stands between them had to be folded; `None` where it is something else.
    level: Option<Level>,
    may_be_set_apart: bool,
}

/// Whether any other letter around one, within the place, is such.
fn amid(items: &[Item], at: usize, is: impl Fn(char) -> bool) -> bool {
    items.iter().enumerate().any(|(other, item)| other != at && is(item.c))
}

/// Whether a gap sets two letters apart.
fn parts(gap: &[Item]) -> bool {
    (1..=APART).contains(&gap.len()) && gap.iter().any(|item| item.class() != Class::Nothing)
}

/// Whether a gap may part a word that is otherwise whole: a hyphen or a dot without space, which a word has for other
/// reasons than to hide it only now and then; between words also a line-end hyphen.
fn may_part(gap: &[Item], wanted: &Gap) -> bool {
    if wanted.is_space() {
        let hyphen = gap.iter().any(|item| item.class() == Class::Hyphen || item.c == '\u{ad}');
        let breaks = gap.iter().any(|item| super::character::ends_line(item.c));
        let spaceless = gap.iter().all(|item| item.class() != Class::Space);
        return (hyphen && breaks) || (spaceless && joined(gap));
    }
    wanted.is_empty() && joined(gap)
}

fn joined(gap: &[Item]) -> bool {
    let mut seen = gap.iter().filter(|item| item.class() != Class::Nothing);
    match (seen.next(), seen.next()) {
        (Some(only), None) => {
            only.class() == Class::Hyphen || matches!(only.c, '.' | '·' | '\'' | '’' | '/' | '+' | '•' | '‧')
        }
        _ => false,
    }
}
