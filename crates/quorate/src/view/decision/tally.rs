//! The sides of a vote and their weights.

use crate::service::convene::report::{Decision, VoteCount};
use crate::view::Tone;
use crate::view::layout::truncate;
use crate::view::wording::amount;

/// One side of a vote.
pub(super) struct Side {
    /// `yes`, `no`, `abstain` or `no vote`.
    pub(super) word: &'static str,
    pub(super) weight: f64,
    /// The sum of its weights, and the number of its votes.
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// The most digits of a weight.
pub(super) const DIGITS: usize = 12;

/// The sides of a vote; abstentions and missing votes only if there are any.
pub(super) fn sides(count: &VoteCount) -> Vec<Side> {
    let votes = |words: &[&str]| count.votes.iter().filter(|vote| words.contains(&&*vote.vote)).count();
    let all = [
        ("yes", count.yes, votes(&["yes"]), "vote", Tone::Good),
        ("no", count.no, votes(&["no"]), "vote", Tone::Bad),
        ("abstain", count.abstain, votes(&["abstain"]), "vote", Tone::Plain),
        ("no vote", count.missing, votes(&["missing", "cancelled"]), "voter", Tone::Absent),
    ];
    let shown = all.into_iter().filter(|(word, .., votes, _, _)| *votes > 0 || matches!(*word, "yes" | "no"));
    let side = |(word, weight, votes, noun, tone): (_, f64, usize, &str, _)| {
        let text = format!("{} ({})", truncate(&weight.to_string(), DIGITS), amount(votes as u64, noun));
        Side { word, weight, text, tone }
    };
    shown.map(side).collect()
}

/// The weight of all sides.
pub(super) fn total_weight(count: &VoteCount) -> f64 {
    count.yes + count.no + count.abstain + count.missing
}

impl Decision {
    /// `2.5 of 3 = 0.833, needs 0.66`.
    pub(super) fn ratio(&self, count: &VoteCount) -> String {
        let needs = self.threshold();
        let is_close = needs.as_ref().is_some_and(|needs| (needs.part - count.ratio).abs() < 0.000_5);
        let rounded = if is_close { format!("{:.6}", count.ratio) } else { format!("{:.3}", count.ratio) };
        let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
        let needs = needs.map_or_else(String::new, |needs| format!(", needs {}", needs.text));
        let is_exact = rounded.parse::<f64>() == Ok(count.ratio) && count.ratio.to_string().len() < 8;
        let equality = if is_exact { "=" } else { "≈" };
        format!("{} of {} {equality} {rounded}{needs}", count.exact.yes, count.exact.total)
    }
}
