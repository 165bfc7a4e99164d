//! The origin of a shown text: a record and a place in its data. A report states it as attributes of the text's element, and
//! its script compares both; the pages of a server omit it, since they have the ledger behind them.
//!
//! The escaper of all templates is here as well. It shows control and direction characters, so that no text can look like
//! another.

use std::fmt::{self, Write};

use askama::filters::{Escaper, Html};
use quorate_diagnostics::invisible::escape_invisible_except;

/// A place in a record; none on a server's pages.
#[derive(Debug, Clone, Default)]
pub(crate) struct At(Option<String>);

/// How a text was derived from the record. `assets/check.js` has the same list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A member's position in a word.
    Stance,
    /// The score of an answer.
    Score,
    /// `line 3, character 5`.
    Place,
    /// `1/2 of 3`.
    Ratio,
    /// What a rule did.
    Effect,
    /// What was checked, and what it hit.
    Locked,
    /// Texts with commas between them.
    List,
    /// Upper case.
    Upper,
    /// With spaces in place of underscores.
    Plain,
    /// A time to the minute.
    Minute,
    /// A number with marks between thousands.
    Number,
    YesNo,
}

impl Form {
    fn word(self) -> &'static str {
        match self {
            Form::Stance => "stance",
            Form::Score => "score",
            Form::Place => "place",
            Form::Ratio => "ratio",
            Form::Effect => "effect",
            Form::Locked => "locked",
            Form::List => "list",
            Form::Upper => "upper",
            Form::Plain => "plain",
            Form::Minute => "minute",
            Form::Number => "number",
            Form::YesNo => "yes-no",
        }
    }
}

impl At {
    /// The data of a record.
    pub(crate) fn record(n: impl fmt::Display) -> At {
        At(Some(n.to_string()))
    }

    /// A place within this one. `pointer` is a JSON pointer.
    pub(crate) fn under(&self, pointer: &str) -> At {
        At(self.0.as_ref().map(|base| format!("{base}{pointer}")))
    }

    /// An item of a list within this place.
    pub(crate) fn item(&self, list: &str, index: impl fmt::Display) -> At {
        self.under(&format!("{list}/{index}"))
    }

    /// The attribute of an element that shows a field unchanged.
    pub(crate) fn field(&self, name: impl fmt::Display) -> String {
        self.to(&format!("/{name}"))
    }

    /// The attribute of an element that shows a text of the record unchanged.
    pub(crate) fn to(&self, pointer: &str) -> String {
        let Some(base) = &self.0 else { return String::new() };
        let mut attribute = " data-at=\"".to_owned();
        // Writing to a string does not fail.
        let _ = Html.write_escaped_str(&mut attribute, &format!("{base}{pointer}"));
        attribute + "\""
    }

    /// The attributes of an element that shows what was made of it.
    pub(crate) fn shown(&self, pointer: &str, form: Form) -> String {
        match self.to(pointer) {
            none if none.is_empty() => none,
            attribute => format!("{attribute} data-as=\"{}\"", form.word()),
        }
    }

    /// The attribute of an element that shows a field of a record's head.
    pub(crate) fn head(n: impl fmt::Display, field: &str) -> String {
        format!(" data-at=\"{n}@{field}\"")
    }

    /// The attributes of an element that shows a record's time to the minute.
    pub(crate) fn opened(n: u64) -> String {
        format!("{} data-as=\"{}\"", At::head(n, "at"), Form::Minute.word())
    }

    // Templates cannot name variants.
    pub(crate) fn list(&self, pointer: &str) -> String {
        self.shown(pointer, Form::List)
    }

    pub(crate) fn plain(&self, pointer: &str) -> String {
        self.shown(pointer, Form::Plain)
    }

    pub(crate) fn place(&self) -> String {
        self.shown("", Form::Place)
    }

    pub(crate) fn ratio(&self) -> String {
        self.shown("/exact", Form::Ratio)
    }

    pub(crate) fn locked(&self) -> String {
        self.shown("", Form::Locked)
    }

    pub(crate) fn effect(&self) -> String {
        self.shown("", Form::Effect)
    }

    pub(crate) fn yes_no(&self, pointer: &str) -> String {
        self.shown(pointer, Form::YesNo)
    }

    pub(crate) fn upper(&self, pointer: &str) -> String {
        self.shown(pointer, Form::Upper)
    }
}

/// A key as a part of a JSON pointer (RFC 6901).
pub(crate) fn pointer_part(key: &str) -> String {
    format!("/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The escaper of all templates.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, dest: W, string: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &escape_invisible_except(string, |c| matches!(c, '\n' | '\t')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_attributes_and_nothing_else() {
        let found = At::record(25).under("/findings/0");
        assert_eq!(found.to("/issue"), " data-at=\"25/findings/0/issue\"");
        assert_eq!(found.place(), " data-at=\"25/findings/0\" data-as=\"place\"");
        assert_eq!(At::default().under("/x").place(), "");
        let hostile = At::record(1).to(&pointer_part("\" onclick=\"x/~<"));
        assert_eq!(hostile, " data-at=\"1/&#34; onclick=&#34;x~1~0&#60;\"");
        assert_eq!(At::opened(0), " data-at=\"0@at\" data-as=\"minute\"");
    }
}

#[cfg(test)]
mod escape_tests {
    use super::*;

    #[test]
    fn what_text_brings_stays_text() {
        let shown = |text: &str| {
            let mut html = String::new();
            Visible.write_escaped_str(&mut html, text).unwrap();
            html
        };
        assert_eq!(shown("<b onclick='x'>&\"</b>"), "&#60;b onclick=&#39;x&#39;&#62;&#38;&#34;&#60;/b&#62;");
        assert_eq!(shown("a\tb\nc"), "a\tb\nc");
        for hostile in ["a\u{202e}b", "a\u{1b}[31mb", "a\u{0}b", "a\u{200b}b"] {
            let html = shown(hostile);
            assert!(html.starts_with('a') && html.ends_with('b') && html.len() > hostile.len(), "{html}");
            assert!(html.chars().all(|c| !c.is_control()), "{html:?}");
        }
    }
}
