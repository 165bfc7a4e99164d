//! Sums of money.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sum of US dollars, exact to a billionth: a cap, a price or what calls cost. Its JSON is
/// `{"amount": "0.25", "currency": "USD"}`, since sums of binary fractions are not exact. Operations saturate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "Amount", try_from = "Amount")]
#[schemars(rename = "Amount", description = "A sum of US dollars, exact to a billionth.")]
pub struct Money(u64);

// The JSON form.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Amount {
    /// A decimal number
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]{1,9})?$"))]
    amount: String,
    #[schemars(extend("const" = "USD"))]
    currency: String,
}

/// Why a text is not a sum of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMoneyError {
    /// The text has another form than `5 USD`, more than nine decimal places, or a sum that is too large.
    #[error("`{0}` is not an amount of money")]
    Form(String),
    /// The currency is not the US dollar.
    #[error("`{0}` is not USD, and Quorate converts no currencies")]
    Currency(String),
    /// A cap of nothing.
    #[error("nothing could be asked with that")]
    Nothing,
}

const NANOS: u64 = 1_000_000_000;

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);
    /// The largest sum, about 18 billion dollars.
    pub const MAX: Money = Money(u64::MAX);

    /// A sum in billionths of a US dollar.
    pub const fn from_nanos(nanos: u64) -> Money {
        Money(nanos)
    }

    /// Billionths of a US dollar.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The sum of both.
    #[must_use]
    pub fn saturating_add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }

    /// What remains of this sum.
    #[must_use]
    pub fn saturating_sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }

    /// A multiple of this sum.
    #[must_use]
    pub fn saturating_mul(self, factor: u64) -> Money {
        Money(self.0.saturating_mul(factor))
    }

    /// Dollars as an exact decimal number: `0.25`.
    pub fn amount(self) -> String {
        let (whole, fraction) = (self.0 / NANOS, format!("{:09}", self.0 % NANOS));
        match fraction.trim_end_matches('0') {
            "" => whole.to_string(),
            fraction => format!("{whole}.{fraction}"),
        }
    }

    /// Reads a cap, such as `5 USD`.
    ///
    /// # Errors
    /// If the text is not a sum of US dollars, or the sum is zero.
    pub fn parse_cap(text: &str) -> Result<Money, ParseMoneyError> {
        match text.parse()? {
            Money::ZERO => Err(ParseMoneyError::Nothing),
            cap => Ok(cap),
        }
    }

    fn from_amount(amount: &str) -> Option<Money> {
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
            return None;
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(NANOS)?.checked_add(fraction).map(Money)
    }
}

/// The exact sum: `0.25 USD`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} USD", self.amount())
    }
}

/// Reads `5 USD` or `0.50 USD`.
impl FromStr for Money {
    type Err = ParseMoneyError;

    fn from_str(text: &str) -> Result<Money, ParseMoneyError> {
        let refused = || ParseMoneyError::Form(text.to_owned());
        let (amount, currency) = text.split_once(' ').ok_or_else(refused)?;
        if currency != "USD" {
            return Err(ParseMoneyError::Currency(currency.to_owned()));
        }
        Money::from_amount(amount).ok_or_else(refused)
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(sums: I) -> Money {
        sums.fold(Money::ZERO, Money::saturating_add)
    }
}

impl From<Money> for Amount {
    fn from(money: Money) -> Amount {
        Amount { amount: money.amount(), currency: "USD".to_owned() }
    }
}

impl TryFrom<Amount> for Money {
    type Error = ParseMoneyError;

    fn try_from(Amount { amount, currency }: Amount) -> Result<Money, ParseMoneyError> {
        format!("{amount} {currency}").parse()
    }
}

/// The form of wires between processes: billionths of a US dollar as a number.
pub mod nanos {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::Money;

    /// Writes the number, or null.
    ///
    /// # Errors
    /// If the serializer fails.
    pub fn serialize<S: Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
        money.map(Money::nanos).serialize(serializer)
    }

    /// Reads the number, or null.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Money>, D::Error> {
        Ok(Option::deserialize(from)?.map(Money::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn money_is_an_exact_amount_of_dollars() {
        for (text, nanos) in [("5 USD", 5_000_000_000), ("0.50 USD", 500_000_000), ("0.000000001 USD", 1)] {
            assert_eq!(Money::parse_cap(text), Ok(Money(nanos)), "{text}");
        }
        for text in [
            "5",
            "5USD",
            "5 EUR",
            "$5",
            "-1 USD",
            "1e3 USD",
            ".5 USD",
            "5  USD",
            "1. USD",
            "0 USD",
            "0.0000000001 USD",
            "99999999999999 USD",
            "",
        ] {
            assert!(Money::parse_cap(text).is_err(), "{text}");
        }
        let foreign = Money::parse_cap("5 EUR").unwrap_err();
        assert!(foreign.to_string().contains("converts no currencies"));
    }

    #[test]
    fn json_and_text_are_read_back() {
        for nanos in [0, 1, 13_037_250, 1_500_000_000, u64::MAX] {
            let money = Money(nanos);
            assert_eq!(serde_json::from_value::<Money>(json!(money)).unwrap(), money);
            assert_eq!(money.to_string().parse(), Ok(money));
        }
        assert_eq!(json!(Money(13_037_250)), json!({"amount": "0.01303725", "currency": "USD"}));
    }
}
