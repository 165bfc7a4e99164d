//! The classes of evasion: what each does to the letters of a trait, or puts between them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

use crate::evasion::rng::Rng;

/// A trait during its disguise, letter by letter.
pub(crate) struct Units(Vec<Unit>);

struct Unit {
    /// The letter or the space.
    original: char,
    /// What is put before it.
    before: String,
    /// What stands for it.
    letter: String,
}

impl Units {
    pub(crate) fn of(locked: &str) -> Units {
        let unit = |c: char| Unit { original: c, before: String::new(), letter: c.to_string() };
        Units(locked.chars().map(unit).collect())
    }

    /// The text, and the bytes from the beginning of the first letter to the end of the last.
    pub(crate) fn render(&self) -> (String, std::ops::Range<usize>) {
        let mut text = String::new();
        let mut start = 0;
        for (at, unit) in self.0.iter().enumerate() {
            text.push_str(&unit.before);
            if at == 0 {
                start = text.len();
            }
            text.push_str(&unit.letter);
        }
        let end = text.len();
        (text, start..end)
    }

    fn letters(&mut self) -> impl Iterator<Item = &mut Unit> {
        self.0.iter_mut().filter(|unit| unit.original != ' ')
    }

    /// One letter at least, and some of the others.
    fn some(&mut self, chance: &mut Rng, mut change: impl FnMut(&mut Unit, &mut Rng)) {
        let count = self.letters().count();
        let sure = chance.below(count);
        for (at, unit) in self.letters().enumerate() {
            if at == sure || chance.one_in(3) {
                change(unit, chance);
            }
        }
    }

    /// Puts something into the words: before one letter at least that is not a word's first, and before some others.
    fn insert(&mut self, chance: &mut Rng, mut what: impl FnMut(&mut Rng) -> String) {
        let inner: Vec<usize> = (1..self.0.len())
            .filter(|at| self.0[*at].original != ' ' && self.0[at - 1].original != ' ')
            .collect();
        let sure = *chance.of(&inner);
        for at in inner {
            if at == sure || chance.one_in(4) {
                let more = what(chance);
                self.0[at].before.push_str(&more);
            }
        }
    }

    fn spaces(&mut self) -> impl Iterator<Item = &mut Unit> {
        self.0.iter_mut().filter(|unit| unit.original == ' ')
    }
}

type Class = (&'static str, fn(&mut Units, &mut Rng));

/// The classes, by name.
pub(crate) const CLASSES: [Class; 12] = [
    ("case", case),
    ("width", width),
    ("zero-width", zero_width),
    ("soft hyphen", soft_hyphen),
    ("confusable", confusable),
    ("bidi", bidi),
    ("combining", combining),
    ("markup split", markup),
    ("entity", entity),
    ("line split", line_split),
    ("whitespace runs", whitespace),
    ("HTML tags", tags),
];

fn case(units: &mut Units, chance: &mut Rng) {
    units.some(chance, |unit, _| unit.letter = unit.letter.to_uppercase());
}

fn width(units: &mut Units, chance: &mut Rng) {
    // The first letter of alphabets that are compatible with ASCII's, capitals and small ones.
    const ALPHABETS: [u32; 9] = [0xff21, 0xff41, 0x1d400, 0x1d41a, 0x1d5a0, 0x1d670, 0x24b6, 0x24d0, 0x1f130];
    units.some(chance, |unit, chance| {
        let first = *chance.of(&ALPHABETS);
        if unit.original.is_ascii_lowercase() {
            unit.letter =
                char::from_u32(first + u32::from(unit.original) - u32::from('a')).unwrap().to_string();
        }
    });
}

fn zero_width(units: &mut Units, chance: &mut Rng) {
    const UNSEEN: [&str; 8] =
        ["\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}", "\u{180e}", "\u{fe0f}", "\u{e0061}"];
    units.insert(chance, |chance| {
        let times = 1 + chance.below(3);
        (0..times).map(|_| *chance.of(&UNSEEN)).collect()
    });
}

fn soft_hyphen(units: &mut Units, chance: &mut Rng) {
    units.insert(chance, |chance| "\u{ad}".repeat(1 + chance.below(2)));
}

/// For each letter the characters that UTS 39 has for it or for its capital.
fn confusables() -> &'static BTreeMap<char, Vec<char>> {
    static TABLE: OnceLock<BTreeMap<char, Vec<char>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let looks = |c: char| skeleton(c.encode_utf8(&mut [0; 4])).collect::<String>();
        let mut table: BTreeMap<char, Vec<char>> = BTreeMap::new();
        let letters: Vec<(char, String)> =
            ('a'..='z').flat_map(|c| [(c, looks(c)), (c, looks(c.to_ascii_uppercase()))]).collect();
        for c in ('\u{80}'..='\u{1ffff}').filter(|c| !c.is_ascii()) {
            let look = looks(c);
            if look.chars().eq([c]) {
                continue;
            }
            for (letter, wanted) in &letters {
                // A capital I looks like an l, but an l does not make an i of what is written small.
                if *wanted == look && !(*letter == 'i' && look == "l") {
                    table.entry(*letter).or_default().push(c);
                }
            }
        }
        table
    })
}

fn confusable(units: &mut Units, chance: &mut Rng) {
    units.some(chance, |unit, chance| {
        if unit.original == 'm' && chance.one_in(3) {
            unit.letter = "rn".to_owned();
        } else if let Some(all) = confusables().get(&unit.original) {
            unit.letter = chance.of(all).to_string();
        }
    });
}

fn bidi(units: &mut Units, chance: &mut Rng) {
    const CONTROLS: [&str; 12] = [
        "\u{200e}", "\u{200f}", "\u{61c}", "\u{202a}", "\u{202b}", "\u{202c}", "\u{202d}", "\u{202e}",
        "\u{2066}", "\u{2067}", "\u{2068}", "\u{2069}",
    ];
    units.insert(chance, |chance| (*chance.of(&CONTROLS)).to_owned());
}

fn combining(units: &mut Units, chance: &mut Rng) {
    units.some(chance, |unit, chance| {
        for _ in 0..=chance.below(3) {
            let code = 0x300 + u32::try_from(chance.below(0x70)).unwrap();
            // The one mark that has a capital which is a letter is left out.
            unit.letter.extend(char::from_u32(code).filter(|mark| *mark != '\u{345}'));
        }
        if chance.one_in(2) {
            unit.letter = unit.letter.nfc().collect();
        }
    });
}

fn markup(units: &mut Units, chance: &mut Rng) {
    const MARKS: [&str; 9] = ["*", "**", "_", "__", "`", "~~", "***", "\\", "``"];
    if chance.one_in(4) {
        // A part of it as the text of a link.
        let last = units.0.len() - 1;
        units.0[0].before.push('[');
        let target = *chance.of(&["](https://example.org)", "](x \"y\")", "][x]", "](<a b>)", "](a(b)c)"]);
        units.0[last].before.push_str(target);
    } else {
        let mark = *chance.of(&MARKS);
        units.insert(chance, |_| mark.to_owned());
        units.0[0].before.push_str(mark);
    }
    for space in units.spaces() {
        if chance.one_in(3) {
            space.letter = (*chance.of(&["_", "** **", "*_ ", " `"])).to_owned();
        }
    }
}

fn entity(units: &mut Units, chance: &mut Rng) {
    units.some(chance, |unit, chance| {
        let how = chance.below(6);
        unit.letter = unit
            .letter
            .chars()
            .map(|c| {
                let code = u32::from(c);
                match how {
                    0 => format!("&#{code};"),
                    1 => format!("&#x{code:x};"),
                    2 => format!("&#X{code:06X};"),
                    3 => format!("&#{code:010};"),
                    4 => format!("&amp;#{code};"),
                    _ => format!("&amp;amp;#x{code:X};"),
                }
            })
            .collect();
    });
    for space in units.spaces() {
        if chance.one_in(2) {
            space.letter =
                (*chance.of(&["&nbsp;", "&#32;", "&ensp;&thinsp;", "&#10;", "&nbsp", "&Tab;"])).to_owned();
        }
    }
}

fn line_split(units: &mut Units, chance: &mut Rng) {
    const HYPHENS: [&str; 4] = ["-", "\u{2010}", "\u{ad}", "\u{2011}"];
    const ENDS: [&str; 6] = ["\n", "\r\n", " \n  ", "\u{2028}", "\n> ", "\n\t"];
    let end = *chance.of(&ENDS);
    let hyphen = *chance.of(&HYPHENS);
    if units.spaces().count() > 0 && chance.one_in(2) {
        for space in units.spaces() {
            space.letter = end.to_owned();
        }
    } else {
        units.insert(chance, |_| format!("{hyphen}{end}"));
    }
}

fn whitespace(units: &mut Units, chance: &mut Rng) {
    const BLANK: [&str; 8] = [" ", "\t", "\n", "\u{a0}", "\u{2003}", "\u{3000}", "\u{202f}", "\r\n"];
    let count = units.spaces().count();
    for space in units.spaces() {
        space.letter = (0..2 + chance.below(6)).map(|_| *chance.of(&BLANK)).collect();
    }
    if count == 0 {
        // A single word has no space to stretch: its letters are set apart.
        let gap = *chance.of(&[" ", "  ", "\u{a0}", "\u{2009}"]);
        for unit in &mut units.0[1..] {
            unit.before.push_str(gap);
        }
    }
}

fn tags(units: &mut Units, chance: &mut Rng) {
    const TAGS: [&str; 9] = [
        "<b>",
        "</b>",
        "<wbr>",
        "<br/>",
        "<span class=\"x\">",
        "<!-- no -->",
        "<i title='a > b'>",
        "</SPAN >",
        "<?x?>",
    ];
    units.insert(chance, |chance| (*chance.of(&TAGS)).to_owned());
    for space in units.spaces() {
        if chance.one_in(2) {
            space.letter = (*chance.of(&["<br>", " <b>", "</p>\n<p>", "<!-- - -->", "&nbsp;<i>"])).to_owned();
        }
    }
}
