//! How often deliberators agree: for each pair, the decided reviews in which both have a position, counted from the index.

use std::collections::{BTreeMap, BTreeSet};

use quorate_kernel::ports::ledger::Error;
use sqlx::Row as _;

use super::CountedLog;
use super::stats::{Filter, filtered, reviews};
use crate::Store;

/// A pair that has met in fewer reviews is too rare for a rate.
pub const MIN_SHARED: u64 = 20;
/// So many deliberators are paired, those with the most positions: a log can name any number.
pub const MAX_MEMBERS: usize = 64;

/// Who agrees with whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agreement {
    /// The decided reviews in which each deliberator has a position, of those that are paired.
    pub members: BTreeMap<String, u64>,
    /// Each pair that has met, its names in order.
    pub pairs: BTreeMap<(String, String), Pair>,
    /// Deliberators that are not paired, since there are more than [`MAX_MEMBERS`].
    pub omitted: u64,
}

/// The positions of two deliberators in the reviews in which both have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pair {
    pub both_block: u64,
    pub both_pass: u64,
    /// Only the first one blocks.
    pub first_blocks: u64,
    /// Only the second one blocks.
    pub second_blocks: u64,
}

impl Pair {
    /// In how many reviews both have a position.
    pub fn shared(&self) -> u64 {
        self.agreed() + self.first_blocks + self.second_blocks
    }

    /// In how many of them it is the same.
    pub fn agreed(&self) -> u64 {
        self.both_block + self.both_pass
    }

    /// Whether they have met often enough for a rate.
    pub fn is_enough(&self) -> bool {
        self.shared() >= MIN_SHARED
    }

    /// The share of reviews in which they agree, 0 to 1; `None` where they have met too rarely.
    pub fn rate(&self) -> Option<f64> {
        self.is_enough().then(|| self.agreed() as f64 / self.shared() as f64)
    }

    /// Cohen's kappa: how far they agree beyond what their rates of blocking alone make likely, up to 1. `None` where they
    /// have met too rarely, and where each always takes the same position.
    pub fn kappa(&self) -> Option<f64> {
        let observed = self.rate()?;
        let shared = self.shared() as f64;
        let first = (self.both_block + self.first_blocks) as f64 / shared;
        let second = (self.both_block + self.second_blocks) as f64 / shared;
        let expected = first * second + (1.0 - first) * (1.0 - second);
        (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
    }

    fn add(&mut self, first: bool, second: bool, reviews: u64) {
        let counted = match (first, second) {
            (true, true) => &mut self.both_block,
            (false, false) => &mut self.both_pass,
            (true, false) => &mut self.first_blocks,
            (false, true) => &mut self.second_blocks,
        };
        *counted += reviews;
    }
}

/// Counts.
///
/// # Errors
/// When the store does not answer.
#[crate::boxed]
pub async fn agreement(store: &Store, counted: &CountedLog, filter: &Filter) -> Result<Agreement, Error> {
    let Some(log) = counted.id else { return Ok(Agreement::default()) };
    let rows = {
        let mut writer = store.writer().await;
        filtered(
            reviews!("SELECT positions, COUNT(*)", "AND prior = 1 AND positions <> '' GROUP BY positions"),
            log,
            counted,
            filter,
        )
        .fetch_all(&mut *writer.log_index())
        .await
        .map_err(|error| store.error(error))?
    };
    // A few ways to decide together occur again and again.
    let decided = rows.iter().filter_map(|row| {
        let positions: BTreeMap<String, bool> = serde_json::from_str(row.get(0)).ok()?;
        Some((positions, row.get::<i64, _>(1).unsigned_abs()))
    });
    Ok(Agreement::count(&decided.collect::<Vec<_>>()))
}

impl Agreement {
    fn count(decided: &[(BTreeMap<String, bool>, u64)]) -> Agreement {
        let mut members: BTreeMap<&str, u64> = BTreeMap::new();
        for (positions, reviews) in decided {
            for name in positions.keys() {
                *members.entry(name).or_default() += reviews;
            }
        }
        let mut ranked: Vec<_> = members.iter().map(|(name, reviews)| (*name, *reviews)).collect();
        ranked.sort_by_key(|(name, reviews)| (std::cmp::Reverse(*reviews), *name));
        let omitted = ranked.len().saturating_sub(MAX_MEMBERS) as u64;
        ranked.truncate(MAX_MEMBERS);
        let paired: BTreeSet<&str> = ranked.iter().map(|(name, _)| *name).collect();
        let mut pairs: BTreeMap<(&str, &str), Pair> = BTreeMap::new();
        for (positions, reviews) in decided {
            let positions: Vec<(&str, bool)> = positions
                .iter()
                .map(|(name, block)| (&**name, *block))
                .filter(|(name, _)| paired.contains(name))
                .collect();
            for (at, (first, block)) in positions.iter().enumerate() {
                for (second, other) in &positions[at + 1..] {
                    pairs.entry((first, second)).or_default().add(*block, *other, *reviews);
                }
            }
        }
        let owned =
            |((first, second), pair): ((&str, &str), Pair)| ((first.to_owned(), second.to_owned()), pair);
        Agreement {
            members: ranked.into_iter().map(|(name, reviews)| (name.to_owned(), reviews)).collect(),
            pairs: pairs.into_iter().map(owned).collect(),
            omitted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(both_block: u64, both_pass: u64, first_blocks: u64, second_blocks: u64) -> Pair {
        Pair { both_block, both_pass, first_blocks, second_blocks }
    }

    #[test]
    fn a_pair_that_has_met_rarely_has_no_rate() {
        assert_eq!(pair(10, 9, 0, 0).rate(), None);
        assert_eq!(pair(10, 9, 0, 0).kappa(), None);
        assert_eq!(pair(10, 5, 3, 2).rate(), Some(0.75));
    }

    #[test]
    fn kappa_is_what_the_textbook_says() {
        // Cohen's example of two raters of 50 proposals: 20 and 15 together, 5 and 10 apart.
        let kappa = pair(20, 15, 5, 10).kappa().unwrap();
        assert!((kappa - 0.4).abs() < 1e-12, "{kappa}");
        assert_eq!(pair(0, 20, 0, 0).kappa(), None, "both always pass");
        assert_eq!(pair(10, 10, 0, 0).kappa(), Some(1.0));
        assert_eq!(pair(0, 0, 10, 10).kappa(), Some(-1.0));
    }

    #[test]
    fn of_too_many_the_most_frequent_are_paired() {
        let all: Vec<String> = (0..MAX_MEMBERS + 6).map(|n| format!("m{n:03}")).collect();
        let with = |names: &[String]| names.iter().map(|name| (name.clone(), true)).collect();
        // Two of the later names occur twice.
        let decided = [(with(&all), 1), (with(&all[MAX_MEMBERS + 4..]), 1)];
        let agreement = Agreement::count(&decided);
        assert_eq!((agreement.members.len(), agreement.omitted), (MAX_MEMBERS, 6));
        assert!(agreement.members.contains_key(&all[MAX_MEMBERS + 5]));
        assert!(!agreement.members.contains_key(&all[MAX_MEMBERS]));
        assert_eq!(agreement.pairs.len(), MAX_MEMBERS * (MAX_MEMBERS - 1) / 2);
    }
}
