//! Compares the separator between two letters of a text with the trait's. It compares three forms: without invisible
//! characters; with markup removed and line-end hyphens joined; and with markup as space.

use super::character::{Class, ends_line};
use super::item::Item;

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
            // What is not seen may break a line, and so part words.
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
