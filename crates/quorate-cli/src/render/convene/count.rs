//! The count of a vote in words: the sides, the exact ratio, and the required one.

use quorate_protocol::Json;

use super::super::paint::{Paint, one_line};
use super::super::wording::{amount, truncate};
use quorate::service::convene::report::{AppliedRule, Decision, Report};

/// The most digits of a weight beside a bar.
const DIGITS: usize = 12;

/// One side of a vote.
pub(super) struct Side {
    /// `yes`, `no`, `abstain` or `no vote`.
    pub(super) word: &'static str,
    /// The sum of its weights.
    pub(super) weight: f64,
    /// The sum of its weights, and the number of its votes.
    pub(super) text: String,
    pub(super) paint: Option<Paint>,
}

/// The sides; abstentions and missing votes only if there are any.
pub(super) fn sides(decision: &Decision) -> Vec<Side> {
    let count =
        |words: &[&str]| decision.votes.iter().filter(|ballot| words.contains(&&*ballot.vote)).count();
    let side = |word, weight: f64, words: &[&str], paint| Side {
        word,
        weight,
        text: format!("{} ({})", truncate(&weight.to_string(), DIGITS), amount(count(words) as u64, "vote")),
        paint,
    };
    let mut all = vec![
        side("yes", decision.yes, &["yes"], Some(Paint::Good)),
        side("no", decision.no, &["no"], Some(Paint::Bad)),
    ];
    if count(&["abstain"]) > 0 {
        all.push(side("abstain", decision.abstain, &["abstain"], None));
    }
    let missing = count(&["missing", "cancelled"]);
    if missing > 0 {
        let weight = truncate(&decision.missing.to_string(), DIGITS);
        let text = format!("{weight} ({})", amount(missing as u64, "voter"));
        all.push(Side { word: "no vote", weight: decision.missing, text, paint: Some(Paint::Absent) });
    }
    all
}

/// The weight of all sides.
pub(super) fn total_weight(decision: &Decision) -> f64 {
    decision.yes + decision.no + decision.abstain + decision.missing
}

/// A string among a rule's parameters.
pub(super) fn param<'r>(report: &'r Report, rule: &AppliedRule, key: &str) -> Option<&'r str> {
    report.declared_rule(&rule.id)?.params.get(key).and_then(Json::as_str)
}

/// `2.5 of 3 = 0.833, needs 0.66`.
pub(super) fn ratio_text(report: &Report, decision: &Decision) -> String {
    let needs = report.threshold();
    let close = needs.as_ref().is_some_and(|needs| (needs.part - decision.ratio).abs() < 0.000_5);
    let rounded = if close { format!("{:.6}", decision.ratio) } else { format!("{:.3}", decision.ratio) };
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    let (yes, total) = (one_line(&decision.exact.yes), one_line(&decision.exact.total));
    let needs = needs.map_or_else(String::new, |needs| format!(", needs {}", one_line(&needs.text)));
    let equality = match rounded.parse::<f64>() == Ok(decision.ratio) && decision.ratio.to_string().len() < 8
    {
        true => "=",
        false => "≈",
    };
    format!("{yes} of {total} {equality} {rounded}{needs}")
}
