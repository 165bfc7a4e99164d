//! Words that several pages show.

use quorate::review::Usage;
use quorate::view::wording::dollars;
pub(super) use quorate::view::wording::duration;
pub(crate) use quorate::view::wording::{digit_groups, instant, minute};

/// A verdict or outcome: its word, and a shape besides its colour.
pub(crate) struct Mark {
    pub(crate) word: String,
    /// The name of its style.
    pub(crate) class: &'static str,
    pub(crate) shape: &'static str,
}

impl Mark {
    /// The mark of a verdict or status word of the records; `None` for an undecided run.
    pub(crate) fn of(word: Option<&str>) -> Mark {
        let word = word.unwrap_or("open").to_uppercase();
        let (class, shape) = match word.as_str() {
            "SHIP" | "PASS" | "DONE" => ("good", "●"),
            "REVISE" => ("fair", "◆"),
            "HOLD" | "FAIL" | "REFUSED" => ("bad", "■"),
            "OPEN" => ("open", "○"),
            _ => ("none", "▲"),
        };
        Mark { word, class, shape }
    }
}

/// Money in US dollars, from billionths; rounded up to the cent.
pub(crate) fn usd(nanos: u64) -> String {
    format!("US$ {}", dollars(nanos))
}

/// The known tokens and money.
pub(super) fn usage(usage: &Usage) -> String {
    let mut parts = Vec::new();
    if let (Some(read), Some(written)) = (usage.tokens_in, usage.tokens_out) {
        parts.push(format!("{} tokens read, {} written", digit_groups(read), digit_groups(written)));
    }
    parts.extend(usage.usd_nanos.map(usd));
    parts.join(", ")
}

/// A word of a record, for people: `round1_block` is `round1 block`.
pub(crate) fn plain(word: &str) -> String {
    word.replace('_', " ")
}
