//! Words that several pages show.

use std::time::Duration;

use quorate_kernel::ports::executor::Usage;
use quorate_manifest::timestamp;

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

/// A time to the minute, in UTC.
pub(crate) fn minute(at_ms: i64) -> String {
    let text = timestamp::format(at_ms);
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time}"),
        _ => text,
    }
}

/// A time for programs.
pub(crate) fn instant(at_ms: i64) -> String {
    timestamp::format(at_ms)
}

/// `1.5 s`, `2 min 3 s`.
pub(super) fn took(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Money in US dollars, from billionths; rounded up to the cent.
pub(crate) fn money(nanos: u64) -> String {
    let cents = nanos.div_ceil(10_000_000);
    match nanos {
        0 => "US$ 0.00".to_owned(),
        1..10_000_000 => format!("US$ {:.4}", nanos as f64 / 1e9),
        _ => format!("US$ {}.{:02}", cents / 100, cents % 100),
    }
}

/// A number with a mark between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The known tokens and money.
pub(super) fn usage(usage: &Usage) -> String {
    let mut parts = Vec::new();
    if let (Some(read), Some(written)) = (usage.tokens_in, usage.tokens_out) {
        parts.push(format!("{} tokens read, {} written", grouped(read), grouped(written)));
    }
    parts.extend(usage.usd_nanos.map(money));
    parts.join(", ")
}

/// A word of a record, for people: `round1_block` is `round1 block`.
pub(crate) fn plain(word: &str) -> String {
    word.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1_230_000, 10_000_000, 1_239_999_999].map(money),
            ["US$ 0.00", "US$ 0.0012", "US$ 0.01", "US$ 1.24"]
        );
        let times = [Duration::from_millis(12), Duration::from_millis(1_540), Duration::from_secs(123)];
        assert_eq!(times.map(took), ["12 ms", "1.5 s", "2 min 3 s"]);
    }
}
