//! Words that several pages show.

pub(crate) use quorate::view::wording::{digit_groups, instant, minute};

/// A verdict or outcome: its word, and a shape besides its colour.
pub(crate) struct Mark {
    pub(crate) word: String,
    /// The name of its style.
    pub(crate) class: &'static str,
    pub(crate) shape: &'static str,
}

impl Mark {
    /// The mark of a verdict, a vote or a status of the records; `None` for an undecided run.
    pub(crate) fn of(word: Option<&str>) -> Mark {
        let word = word.unwrap_or("open").to_uppercase();
        let (class, shape) = match word.as_str() {
            "SHIP" | "PASS" | "DONE" | "YES" => ("good", "●"),
            "REVISE" | "ABSTAIN" => ("fair", "◆"),
            "HOLD" | "FAIL" | "REFUSED" | "NO" => ("bad", "■"),
            "OPEN" => ("open", "○"),
            _ => ("none", "▲"),
        };
        Mark { word, class, shape }
    }
}

/// A word of a record, for people: `round1_block` is `round1 block`.
pub(crate) fn plain(word: &str) -> String {
    word.replace('_', " ")
}
