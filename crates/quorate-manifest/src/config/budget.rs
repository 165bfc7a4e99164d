//! `[budget]`: the limits of one run (X8).

use super::Budget;
use crate::tree::Field;

/// A limit on money, for messages.
const MONEY_FORM: &str =
    "write an amount in US dollars, in which models are priced: \"5 USD\" or \"0.50 USD\"";

/// Reads `[budget]`.
pub(super) fn read(field: &Field<'_>) -> Budget {
    let Some(mut fields) = field.fields() else { return Budget::default() };
    let mut count = |key| fields.optional(key).and_then(|field| field.integer(1, i64::MAX));
    let (calls, tokens) = (count("calls"), count("tokens"));
    let budget = Budget {
        calls: calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX)),
        tokens: tokens.and_then(|tokens| u64::try_from(tokens).ok()),
        usd_nanos: fields.optional("money").and_then(|field| money(&field)),
        prices: fields.optional("prices").and_then(|f| Some((f.non_blank_text()?.to_owned(), f.place()))),
        wall: fields.optional("wall").and_then(|field| field.duration()),
    };
    fields.finish();
    budget
}

fn money(field: &Field<'_>) -> Option<u64> {
    let amount = parse_money(field.non_blank_text()?);
    if let Err(why) = &amount {
        field.invalid_with(format!("`{}`: {why}", field.path()), MONEY_FORM);
    }
    amount.ok()
}

/// Reads an amount such as `5 USD` as billionths of a US dollar.
///
/// # Errors
/// Says what is wrong with it: another currency, more than nine decimal places, nothing or less.
pub fn parse_money(text: &str) -> Result<u64, String> {
    const NANOS: u64 = 1_000_000_000;
    let refused = || format!("`{text}` is not an amount of money");
    let (amount, currency) = text.split_once(' ').ok_or_else(refused)?;
    if currency != "USD" {
        return Err(format!("`{currency}` is not USD, and Quorate converts no currencies"));
    }
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(refused());
    }
    let read = |text: &str| text.parse::<u64>().map_err(|_| refused());
    let nanos = read(whole)?.checked_mul(NANOS).ok_or_else(refused)?;
    match nanos.checked_add(read(&format!("{fraction:0<9}"))?) {
        None => Err(refused()),
        Some(0) => Err("nothing could be asked with that".to_owned()),
        Some(nanos) => Ok(nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_an_exact_amount_of_dollars() {
        for (text, nanos) in [("5 USD", 5_000_000_000), ("0.50 USD", 500_000_000), ("0.000000001 USD", 1)] {
            assert_eq!(parse_money(text), Ok(nanos), "{text}");
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
            assert!(parse_money(text).is_err(), "{text}");
        }
        assert!(parse_money("5 EUR").unwrap_err().contains("converts no currencies"));
    }
}
