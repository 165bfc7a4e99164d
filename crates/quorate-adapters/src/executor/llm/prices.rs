//! What models cost: the dated table that ships, a table's own `price`, and the cost of a call.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use quorate_kernel::clock::{Clock as _, System};
use quorate_kernel::ports::executor::{ConfigError, Usage};
use quorate_manifest::money::Money;
use quorate_protocol::Json;
use serde::Deserialize;

use crate::block::Block;
use quorate_kernel::files;

/// The largest file of prices, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// How long prices are taken to hold.
const MAX_AGE_DAYS: i64 = 180;

const SHIPPED: &str = include_str!("prices.toml");

/// A table of prices, from the form of `prices.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceTable {
    /// When the prices held.
    pub(crate) date: String,
    models: BTreeMap<String, Price>,
}

/// The table that ships.
pub(crate) fn shipped() -> &'static PriceTable {
    static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
        toml::from_str(SHIPPED).expect("the table that ships can be read, which a test holds")
    });
    &TABLE
}

/// The table of a file (`budget.prices`), in the form of the one that ships.
///
/// # Errors
/// When it cannot be read, or has another form.
fn read(file: &Path) -> Result<PriceTable, ConfigError> {
    const HELP: &str = "a file of prices has `date = \"2026-07-02\"` and tables such as `[models.\"my-model\"]` with `input` \
                        and `output`, in dollars for a million tokens";
    let refused = |why: String| {
        ConfigError::for_block(format!("`budget.prices`: {}: {why}", file.display())).with_help(HELP)
    };
    let text = files::read_text(file, MAX_FILE_BYTES).map_err(|error| refused(error.to_string()))?;
    let table: PriceTable = toml::from_str(&text).map_err(|error| refused(error.message().to_owned()))?;
    match table.date.len() == 10 && table.date.parse::<Date>().is_ok() {
        true => Ok(table),
        false => Err(refused(format!("`date` is `{}`, not a day such as `2026-07-02`", table.date))),
    }
}

/// What a model costs, and where that is from.
#[derive(Debug)]
pub(super) struct Priced {
    /// `None` where it is not known.
    pub(super) price: Option<Price>,
    source: String,
    /// Prices that come before those that ship, and their file.
    own: Option<PriceTable>,
    pub(super) file: Option<PathBuf>,
}

impl Priced {
    /// The price of a model: that of its table's key `price`, nothing on this machine, that of the file `budget.prices`, or
    /// that of the table that ships. `output` is what a `price` without one has.
    ///
    /// # Errors
    /// When the key or the file cannot be used.
    pub(super) fn of(
        block: &Block<'_>,
        model: &str,
        is_local: bool,
        file: Option<&Path>,
        output: Option<f64>,
    ) -> Result<Priced, ConfigError> {
        let own = file.map(read).transpose()?;
        let (price, source) = match parse(block, output)? {
            Some(price) => (Some(price), "`price`".to_owned()),
            None if is_local => (Some(Price::FREE), "on this machine".to_owned()),
            None => match own.as_ref().and_then(|own| Some((own.price(model)?, &own.date))) {
                Some((price, date)) => (Some(price), source("`budget.prices`", date)),
                None => (shipped().price(model), source("prices", &shipped().date)),
            },
        };
        Ok(Priced { price, source, own, file: file.map(Path::to_owned) })
    }

    /// The cost of a response. A service may answer with another model than it was asked for: the dearer one counts.
    pub(super) fn charge(&self, usage: &Usage, served: Option<&str>) -> Option<Money> {
        let asked = self.price.as_ref()?.cost(usage)?;
        let served = served.filter(|_| self.price != Some(Price::FREE)).and_then(|model| {
            let own = self.own.as_ref().and_then(|own| own.price(model));
            own.or_else(|| shipped().price(model))?.cost(usage)
        });
        Some(asked.max(served.unwrap_or_default()))
    }

    /// What it costs, for a person.
    pub(super) fn describe(&self) -> String {
        match &self.price {
            Some(price) if *price == Price::FREE => "free".to_owned(),
            Some(price) => format!("{price} USD for a million tokens in and out ({})", self.source),
            None => "unknown price: set `price`".to_owned(),
        }
    }
}

/// Where a price comes from, for people, with a warning where it may no longer hold.
fn source(table: &str, date: &str) -> String {
    match is_old(date, System.now_ms()) {
        true => {
            format!(
                "{table} of {date}, not of the last {MAX_AGE_DAYS} days; `budget.prices` names newer ones"
            )
        }
        false => format!("{table} of {date}"),
    }
}

/// Whether prices of a day (`2026-07-02`) may have changed by now.
fn is_old(date: &str, now_ms: i64) -> bool {
    const DAY_MS: i64 = 24 * 3600 * 1000;
    let day = date.parse::<Date>().ok().and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    // Prices of a later day cannot be known yet; clocks and time zones differ by up to a day.
    day.is_none_or(|day| {
        let age_ms = now_ms.saturating_sub(day.timestamp().as_millisecond());
        !(-DAY_MS..=MAX_AGE_DAYS * DAY_MS).contains(&age_ms)
    })
}

/// The price of a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    #[serde(flatten)]
    rates: Rates,
    /// What holds for a whole call with a longer input, in ascending order.
    #[serde(default)]
    tiers: Vec<Tier>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Tier {
    /// Tokens of input.
    above: u64,
    #[serde(flatten)]
    rates: Rates,
}

/// For one token each, in millionths of a millionth of a dollar. What is not there costs as `input`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Rates {
    #[serde(deserialize_with = "per_million")]
    input: u64,
    #[serde(deserialize_with = "per_million")]
    output: u64,
    #[serde(default, deserialize_with = "optional_per_million")]
    cache_read: Option<u64>,
    #[serde(default, deserialize_with = "optional_per_million")]
    cache_write: Option<u64>,
    #[serde(default, deserialize_with = "optional_per_million")]
    cache_write_long: Option<u64>,
}

impl PriceTable {
    /// The price of a model, however a service writes its name: with its vendor before it (`openai/gpt-5.5`), with dots
    /// for dashes, or with a date behind it. `None` where the table does not have it.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        let (_, bare) = model.rsplit_once('/').unwrap_or(("", model));
        let known = |name: &str| {
            let dashed = name.replace('.', "-");
            self.models.get(name).or_else(|| {
                self.models
                    .iter()
                    .find(|(known, _)| known.replace('.', "-") == dashed)
                    .map(|(_, price)| price)
            })
        };
        known(bare).or_else(|| known(without_date(bare)?)).cloned()
    }
}

/// A name without the date behind it: `-20250929` or `-2025-09-29`.
fn without_date(name: &str) -> Option<&str> {
    let is_date = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    [9, 11].into_iter().find_map(|length| {
        let (name, date) = name.split_at_checked(name.len().checked_sub(length)?)?;
        (date.starts_with("-20") && is_date(date)).then_some(name)
    })
}

impl Price {
    /// The price on the user's own server.
    pub(crate) const FREE: Price = Price {
        rates: Rates { input: 0, output: 0, cache_read: None, cache_write: None, cache_write_long: None },
        tiers: Vec::new(),
    };

    fn rates(&self, tokens_in: u64) -> Rates {
        let tier = self.tiers.iter().rev().find(|tier| tokens_in > tier.above);
        tier.map_or(self.rates, |tier| tier.rates)
    }

    /// The cost of a call rounded up to a billionth of a dollar; `None` where its tokens are not known.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<Money> {
        let (read, wrote) = (usage.tokens_in?, usage.tokens_out?);
        let rates = self.rates(read);
        let parts = [
            (usage.tokens_cached, rates.cache_read),
            (usage.tokens_written, rates.cache_write),
            (usage.tokens_written_long, rates.cache_write_long),
        ];
        let (mut plain, mut sum) = (read, u128::from(wrote) * u128::from(rates.output));
        for (tokens, rate) in parts {
            let tokens = tokens.unwrap_or(0).min(plain);
            plain -= tokens;
            sum += u128::from(tokens) * u128::from(rate.unwrap_or(rates.input));
        }
        sum += u128::from(plain) * u128::from(rates.input);
        Some(money(sum))
    }

    /// The most that a call with at most so many tokens can cost.
    pub(crate) fn most(&self, tokens_in: u64, tokens_out: u64) -> Money {
        let all = self.tiers.iter().map(|tier| &tier.rates).chain([&self.rates]);
        let (mut input, mut output) = (0, 0);
        for rates in all {
            let write = rates.cache_write.max(rates.cache_write_long).unwrap_or(0);
            (input, output) = (input.max(rates.input).max(write), output.max(rates.output));
        }
        let sum = u128::from(tokens_in) * u128::from(input) + u128::from(tokens_out) * u128::from(output);
        money(sum)
    }
}

/// Rounds millionths of a millionth of a dollar up to billionths.
fn money(sum: u128) -> Money {
    Money::from_nanos(u64::try_from(sum.div_ceil(1_000)).unwrap_or(u64::MAX))
}

impl fmt::Display for Price {
    /// The prices of input and output in dollars for a million tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = |rate: u64| {
            let text = format!("{}.{:06}", rate / 1_000_000, rate % 1_000_000);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        write!(f, "{} and {}", dollars(self.rates.input), dollars(self.rates.output))
    }
}

/// Reads the key `price`: `"free"`, or dollars for a million tokens each; `output` is what one without it has.
fn parse(block: &Block<'_>, output: Option<f64>) -> Result<Option<Price>, ConfigError> {
    const HELP: &str =
        "write `price = \"free\"`, or dollars for a million tokens: `{ input = 3.0, output = 15.0 }`";
    if block.is_text("price") {
        return match block.text("price")? {
            Some("free") => Ok(Some(Price::FREE)),
            _ => Err(ConfigError::for_key("price", "`price` is `free` or a table").with_help(HELP)),
        };
    }
    let Some(table) = block.table("price")? else { return Ok(None) };
    let mut table = table.clone();
    if let Some(output) = output {
        table.entry("output").or_insert(output.into());
    }
    let price = Price::deserialize(&Json::Object(table));
    price
        .map(Some)
        .map_err(|error| ConfigError::for_key("price", format!("`price`: {error}")).with_help(HELP))
}

/// Dollars for a million tokens as millionths of a millionth for one.
fn per_million<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let dollars = f64::deserialize(from)?;
    match (0.0..=1_000_000.0).contains(&dollars) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is within bounds")]
        true => Ok((dollars * 1e6).round() as u64),
        false => Err(serde::de::Error::custom(format!("{dollars} is not a price"))),
    }
}

fn optional_per_million<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    per_million(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_that_ships_is_read_and_names_are_found_as_services_write_them() {
        let table = shipped();
        assert!(table.models.len() > 60 && table.date.len() == 10);
        let price = table.price("claude-opus-4-8").unwrap();
        for name in ["anthropic/claude-opus-4.8", "claude-opus-4-8-20260528", "claude-opus-4.8"] {
            assert_eq!(table.price(name).as_ref(), Some(&price), "{name}");
        }
        for name in ["claude-opus", "", "claude-opus-4-8-mini", "x-2026", "-20260101"] {
            assert_eq!(table.price(name), None, "{name}");
        }
    }

    #[test]
    fn the_cost_of_cached_written_and_tiered_tokens_is_as_computed_by_hand() {
        let usage = Usage {
            tokens_in: Some(10_000),
            tokens_cached: Some(6_000),
            tokens_written: Some(1_000),
            tokens_written_long: Some(500),
            tokens_out: Some(200),
            ..Usage::default()
        };
        // 2,500 x 3 + 6,000 x 0.30 + 1,000 x 3.75 + 500 x 6 + 200 x 15 dollars for a million
        assert_eq!(
            shipped().price("claude-sonnet-4-5").unwrap().cost(&usage),
            Some(Money::from_nanos(19_050_000))
        );
        let long = Usage {
            tokens_in: Some(300_000),
            tokens_cached: Some(100_000),
            tokens_out: Some(1_000),
            ..Usage::default()
        };
        // 200,000 x 4 + 100,000 x 0.40 + 1,000 x 18
        assert_eq!(
            shipped().price("gemini-3.1-pro-preview").unwrap().cost(&long),
            Some(Money::from_nanos(858_000_000))
        );
        // 200,000 x 0.435 + 100,000 x 0.003625 + 1,000 x 0.87
        assert_eq!(
            shipped().price("deepseek-v4-pro").unwrap().cost(&long),
            Some(Money::from_nanos(88_232_500))
        );
        assert_eq!(shipped().price("deepseek-v4-pro").unwrap().to_string(), "0.435 and 0.87");
        assert_eq!(Price::FREE.cost(&long), Some(Money::ZERO));
        assert_eq!(Price::FREE.cost(&Usage::default()), None, "unknown, not nothing");
    }

    #[test]
    fn prices_are_old_after_half_a_year() {
        const DAY_MS: i64 = 24 * 3600 * 1000;
        let day_ms = 1_782_950_400_000;
        assert!(
            !is_old("2026-07-02", day_ms + 180 * DAY_MS) && is_old("2026-07-02", day_ms + 180 * DAY_MS + 1)
        );
        assert!(is_old("soon", day_ms), "a day that cannot be read");
        assert!(is_old("2026-07-02", day_ms - 2 * DAY_MS) && !is_old("2026-07-02", day_ms - DAY_MS));
        assert!(source("prices", "2020-01-01").contains("not of the last 180 days"));
    }

    #[test]
    fn no_call_costs_more_than_its_most() {
        for price in shipped().models.values() {
            for (read, cached, written) in [(100, 0, 0), (300_000, 0, 300_000), (1_000_000, 400_000, 100_000)]
            {
                let usage = Usage {
                    tokens_in: Some(read),
                    tokens_cached: Some(cached),
                    tokens_written_long: Some(written),
                    tokens_out: Some(4_000),
                    ..Usage::default()
                };
                assert!(price.cost(&usage).unwrap() <= price.most(read, 4_000));
            }
        }
    }
}
