//! Weighted votes, counted exactly (V3): weights and thresholds never pass through a binary float.

use std::cmp::Ordering;

use num_bigint::BigUint;
use quorate_manifest::decimal::Decimal;

use crate::Json;

/// How many digits after the point are counted with; a decimal of a manifest has no more.
const DECIMAL_DIGITS: u32 = 30;

/// A weight, or a sum of weights, in units of 10^-30.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Weight(BigUint);

/// What was cast, and of how much.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// The weights that say yes.
    pub yes: Weight,
    /// The weights that say no.
    pub no: Weight,
    /// The weights that abstain.
    pub abstain: Weight,
    /// The weights that gave no vote.
    pub missing: Weight,
    /// The denominator of the ratio.
    pub total: Weight,
}

impl From<Decimal> for Weight {
    /// A negative weight, which no manifest can have, counts nothing.
    fn from(decimal: Decimal) -> Self {
        let digits = u128::try_from(decimal.digits()).unwrap_or(0);
        Weight(
            BigUint::from(digits) * BigUint::from(10_u8).pow(DECIMAL_DIGITS.saturating_sub(decimal.scale())),
        )
    }
}

impl std::ops::AddAssign<&Weight> for Weight {
    fn add_assign(&mut self, other: &Weight) {
        self.0 += &other.0;
    }
}

impl Weight {
    /// The number, without zeros at the end.
    pub fn text(&self) -> String {
        let digits = format!("{:0>width$}", self.0.to_str_radix(10), width = DECIMAL_DIGITS as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - DECIMAL_DIGITS as usize);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{whole}{point}{fraction}")
    }

    /// The number as JSON, for showing: whole where it is whole, else rounded to a float.
    pub fn json(&self) -> Json {
        let text = self.text();
        match text.parse::<u32>() {
            Ok(whole) => Json::from(whole),
            Err(_) => Json::from(text.parse::<f64>().unwrap_or(f64::NAN)),
        }
    }
}

impl Tally {
    /// Whether yes / total is at or over a threshold; of nothing nothing is reached.
    pub fn reaches(&self, threshold: Decimal) -> bool {
        let ten = BigUint::from(10_u8).pow(DECIMAL_DIGITS);
        self.total != Weight::default() && &self.yes.0 * ten >= Weight::from(threshold).0 * &self.total.0
    }

    /// Compares yes / total with a half; `None` without votes.
    pub(crate) fn compare_to_half(&self) -> Option<Ordering> {
        (self.total != Weight::default()).then(|| (&self.yes.0 * 2_u8).cmp(&self.total.0))
    }

    /// The ratio as JSON, for showing: whole where it is whole.
    pub fn ratio_json(&self) -> Json {
        let ratio = self.ratio();
        if ratio == 0.0 || ratio == 1.0 { Json::from(u8::from(ratio == 1.0)) } else { Json::from(ratio) }
    }

    /// yes / total, rounded to six digits, for showing; 0 of nothing.
    pub fn ratio(&self) -> f64 {
        const DIGITS: u32 = 1_000_000;
        if self.total == Weight::default() {
            return 0.0;
        }
        let doubled = &self.yes.0 * (2 * DIGITS) + &self.total.0;
        let rounded = doubled / (&self.total.0 * 2_u8);
        let rounded = u32::try_from(rounded).unwrap_or(DIGITS);
        f64::from(rounded) / f64::from(DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(text: &str) -> Weight {
        Weight::from(text.parse::<Decimal>().unwrap_or(Decimal::ONE))
    }

    #[test]
    fn decimals_add_up() {
        // V3
        let mut sum = weight("0.1");
        sum += &weight("0.2");
        assert_eq!((sum.text(), sum == weight("0.3")), ("0.3".to_owned(), true));
        let tally = Tally { yes: sum, total: weight("1"), ..Tally::default() };
        assert!(tally.reaches("0.3".parse().unwrap()));
        assert!(!tally.reaches("0.30000000000000000000000000001".parse().unwrap()));
        assert_eq!((tally.ratio(), tally.compare_to_half()), (0.3, Some(Ordering::Less)));
        assert_eq!((weight("12").text(), weight("0.050").text()), ("12".to_owned(), "0.05".to_owned()));
    }

    #[test]
    fn of_nothing_nothing_is_reached() {
        // V3
        let tally = Tally::default();
        assert_eq!(
            (tally.reaches("0.1".parse().unwrap()), tally.compare_to_half(), tally.ratio()),
            (false, None, 0.0)
        );
        let third = Tally { yes: weight("1"), total: weight("3"), ..Tally::default() };
        assert_eq!(third.ratio(), 0.333_333);
        let two = Tally { yes: weight("2"), total: weight("3"), ..Tally::default() };
        assert_eq!(two.ratio(), 0.666_667);
    }
}
