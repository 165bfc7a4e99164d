//! What a call or an invocation cost.

use serde::{Deserialize, Serialize};

use super::lenient;
use crate::ports::executor::Usage;

/// What is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_written: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_written_long: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub tokens_reasoning: Option<u64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Calls made, re-prompts and retries included; `None` of one attempt.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// From question to end.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// An amount is a decimal text, since sums of binary fractions are not exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Money {
    pub amount: String,
    pub currency: String,
}

const NANOS: u64 = 1_000_000_000;

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Spent {
        Spent {
            tokens_in: usage.tokens_in,
            tokens_cached: usage.tokens_cached,
            tokens_written: usage.tokens_written,
            tokens_written_long: usage.tokens_written_long,
            tokens_out: usage.tokens_out,
            tokens_reasoning: usage.tokens_reasoning,
            money: usage.usd_nanos.map(Money::usd),
            calls: None,
            ms: None,
        }
    }
}

impl Spent {
    pub fn usage(&self) -> Usage {
        Usage {
            tokens_in: self.tokens_in,
            tokens_cached: self.tokens_cached,
            tokens_written: self.tokens_written,
            tokens_written_long: self.tokens_written_long,
            tokens_out: self.tokens_out,
            tokens_reasoning: self.tokens_reasoning,
            usd_nanos: self.money.as_ref().and_then(Money::usd_nanos),
        }
    }
}

impl Money {
    /// An amount in billionths of a US dollar.
    pub fn usd(nanos: u64) -> Money {
        let fraction = format!("{:09}", nanos % NANOS);
        let fraction = fraction.trim_end_matches('0');
        let amount = match fraction.is_empty() {
            true => (nanos / NANOS).to_string(),
            false => format!("{}.{fraction}", nanos / NANOS),
        };
        Money { amount, currency: "USD".to_owned() }
    }

    /// Billionths of a US dollar; `None` for another currency, or an amount in another form.
    pub fn usd_nanos(&self) -> Option<u64> {
        if self.currency != "USD" {
            return None;
        }
        let (whole, fraction) = self.amount.split_once('.').unwrap_or((&self.amount, ""));
        if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(NANOS)?.checked_add(fraction)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{read, to_data};

    #[test]
    fn usage_is_read_back_as_it_was_written() {
        for usd_nanos in [None, Some(0), Some(1), Some(1_500_000_000), Some(13_037_250), Some(u64::MAX)] {
            let usage = Usage {
                tokens_in: Some(3),
                tokens_cached: None,
                tokens_written: Some(1),
                tokens_written_long: Some(2),
                tokens_out: Some(u64::MAX),
                tokens_reasoning: Some(0),
                usd_nanos,
            };
            let spent: Spent = read(&to_data(&Spent::from(&usage))).expect("it is read");
            assert_eq!(spent.usage(), usage);
        }
        assert_eq!(json!(Money::usd(13_037_250)), json!({"amount": "0.01303725", "currency": "USD"}));
    }

    #[test]
    fn an_amount_in_another_form_is_unknown() {
        let nanos = |amount: serde_json::Value, currency: &str| {
            let money = json!({"money": {"amount": amount, "currency": currency}});
            read::<Spent>(money.as_object().expect("an object")).expect("it is read").usage().usd_nanos
        };
        for amount in [json!("1e3"), json!("1.0000000001"), json!("-1"), json!("1.+5"), json!(1), json!("")] {
            assert_eq!(nanos(amount.clone(), "USD"), None, "{amount}");
        }
        assert_eq!(nanos(json!("1"), "EUR"), None);
    }
}
