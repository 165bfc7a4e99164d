//! Generates texts that a regular expression of ECMA-262 accepts. Supports the syntax that the public schemas use and panics
//! on other syntax, so that a schema with new syntax fails the test.

use super::rng::Rng;

/// Samples of "anything but white space", with characters that other languages count as white space.
const DARK: [char; 14] =
    ['a', 'Z', '7', '-', '_', '/', '.', ':', 'é', '漢', '😀', '\u{85}', '\u{200B}', '\u{180E}'];

enum Term {
    /// One character of these ranges.
    Char(Vec<(char, char)>),
    /// One character that is not white space.
    Dark,
    /// One of several alternatives.
    Ways(Vec<Alternative>),
}

type Alternative = Vec<(Term, usize, Option<usize>)>;

/// The number of repetitions of an unlimited part, beyond its minimum.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Repetition {
    /// This number for the first such part, none for the others.
    First(usize),
    /// A random number up to this for each.
    Each(usize),
}

/// A text that the pattern accepts.
pub(crate) fn spell(pattern: &str, mut longer: Repetition, chance: &mut Rng) -> String {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    let ways = ways(&pattern, &mut at);
    assert_eq!(at, pattern.len(), "a bracket that nothing opened");
    let mut out = String::new();
    write(&ways, &mut longer, chance, &mut out);
    out
}

/// A text of a given number of characters that the pattern accepts, if one exists.
pub(crate) fn spell_to(pattern: &str, length: usize, chance: &mut Rng) -> String {
    let short = spell(pattern, Repetition::First(0), &mut chance.clone());
    let longer = length.saturating_sub(short.chars().count());
    spell(pattern, Repetition::First(longer), chance)
}

fn write(ways: &[Alternative], longer: &mut Repetition, chance: &mut Rng, out: &mut String) {
    for (piece, least, most) in chance.pick(ways) {
        let times = match (most, &mut *longer) {
            (Some(most), _) => least + chance.below(most - least + 1),
            (None, Repetition::First(more)) => least + std::mem::take(more),
            (None, Repetition::Each(more)) => least + chance.below(*more + 1),
        };
        let mut own = chance.fork();
        for _ in 0..times {
            match piece {
                Term::Char(ranges) => {
                    let (from, to) = *own.pick(ranges);
                    let among: Vec<char> = (from..=to).collect();
                    out.push(*own.pick(&among));
                }
                Term::Dark => out.push(*own.pick(&DARK)),
                Term::Ways(inner) => write(inner, longer, &mut own, out),
            }
        }
    }
}

fn ways(pattern: &[char], at: &mut usize) -> Vec<Alternative> {
    let mut ways = vec![Alternative::new()];
    while let Some(&c) = pattern.get(*at) {
        *at += 1;
        let piece = match c {
            ')' => {
                *at -= 1;
                break;
            }
            '|' => {
                ways.push(Alternative::new());
                continue;
            }
            '^' | '$' => continue,
            '(' if pattern[*at..].starts_with(&['?', '!', '$', ')']) => {
                *at += 4;
                continue;
            }
            '(' => {
                if pattern[*at..].starts_with(&['?', ':']) {
                    *at += 2;
                }
                let inner = self::ways(pattern, at);
                assert_eq!(pattern.get(*at), Some(&')'), "a group that does not end");
                *at += 1;
                Term::Ways(inner)
            }
            '[' => class(pattern, at),
            '\\' => {
                *at += 1;
                Term::Char(vec![escape(pattern[*at - 1])])
            }
            '.' | '?' | '*' | '+' | '{' | '}' | ']' => panic!("{c} is not spelt here"),
            c => Term::Char(vec![(c, c)]),
        };
        let (least, most) = times(pattern, at);
        ways.last_mut().expect("there is a way from the start").push((piece, least, most));
    }
    ways
}

fn escape(c: char) -> (char, char) {
    match c {
        'd' => ('0', '9'),
        c if c.is_alphanumeric() => panic!("\\{c} is not spelt here"),
        c => (c, c),
    }
}

fn class(pattern: &[char], at: &mut usize) -> Term {
    if pattern[*at..].starts_with(&['^', '\\', 's', ']']) {
        *at += 4;
        return Term::Dark;
    }
    let mut ranges = Vec::new();
    loop {
        let c = pattern[*at];
        *at += 1;
        match (c, pattern.get(*at), pattern.get(*at + 1)) {
            (']', _, _) => return Term::Char(ranges),
            ('^', _, _) => panic!("a class of what is not in it is not spelt here"),
            ('\\', Some(&escaped), _) => {
                *at += 1;
                ranges.push(escape(escaped));
            }
            (from, Some('-'), Some(&to)) if to != ']' => {
                *at += 2;
                ranges.push((from, to));
            }
            (c, _, _) => ranges.push((c, c)),
        }
    }
}

fn times(pattern: &[char], at: &mut usize) -> (usize, Option<usize>) {
    let found = match pattern.get(*at) {
        Some('?') => (0, Some(1)),
        Some('*') => (0, None),
        Some('+') => (1, None),
        Some('{') => {
            let end = pattern[*at..].iter().position(|c| *c == '}').expect("a count that ends") + *at;
            let inside: String = pattern[*at + 1..end].iter().collect();
            *at = end + 1;
            let number = |text: &str| text.parse::<usize>().expect("a count is a number");
            return match inside.split_once(',') {
                Some((least, most)) => (number(least), Some(number(most))),
                None => (number(&inside), Some(number(&inside))),
            };
        }
        _ => return (1, Some(1)),
    };
    *at += 1;
    found
}
