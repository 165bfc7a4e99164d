//! The outcomes of each producer's artifacts: in total and by week.

use std::cmp::Reverse;

use quorate_ledger::council_log::priors::{ProducerStats, Producers, ReviewCounts};

use super::super::deliberator_row::DASH;
use super::super::paint::one_line;
use super::super::wording::{amount, day};
use super::{Table, Tally, columns, percent, row};

/// The most producers, those with the most reviews, and the most weeks of each, the newest ones.
const MAX_PRODUCERS: usize = 12;
const MAX_WEEKS: usize = 8;

pub(super) fn tables(producers: &Producers) -> [Table; 2] {
    let mut shown: Vec<(&String, &ProducerStats)> = producers.iter().collect();
    shown.sort_by_key(|(name, stats)| (Reverse(stats.all.reviews()), (*name).clone()));
    let omitted = shown.len().saturating_sub(MAX_PRODUCERS) as u64;
    shown.truncate(MAX_PRODUCERS);
    let has_other = Tally::of(shown.iter().map(|(_, stats)| &stats.all.verdicts)).other > 0;
    let all = shown.iter().map(|(name, stats)| {
        let mut row = row(one_line(name), Tally::of([&stats.all.verdicts]), has_other);
        row.extend(means(&stats.all));
        row.push(stats.overrides.to_string());
        row
    });
    let headings = columns("producer", has_other).into_iter().chain([MEAN, BLOCKS, SCORE, "overrides"]);
    let note = (omitted > 0).then(|| {
        format!("{} not shown: `quorate audit --format json` lists all.", amount(omitted, "producer"))
    });
    let weeks = shown.iter().flat_map(|(name, stats)| {
        let weeks = stats.weeks.iter().skip(stats.weeks.len().saturating_sub(MAX_WEEKS));
        weeks.map(|(monday, counts)| {
            let mut row = vec![one_line(name), day(*monday), counts.reviews().to_string()];
            row.extend(means(counts));
            row
        })
    });
    [
        Table { note, ..Table::new("Producers", headings, all.collect()) },
        Table::new(
            "Producers by week",
            ["producer", "week of", "reviews", MEAN, BLOCKS, SCORE],
            weeks.collect(),
        ),
    ]
}

const MEAN: &str = "mean verdict";
const BLOCKS: &str = "blocks";
const SCORE: &str = "score";

/// The mean verdict, the share of positions that block, and the mean score, each with the number that it is of.
fn means(counts: &ReviewCounts) -> [String; 3] {
    let dash = || DASH.to_owned();
    let (positions, blocks) = counts.positions;
    let blocks = match positions {
        0 => dash(),
        _ => format!("{} of {positions}", percent(blocks, positions)),
    };
    [
        counts.mean_verdict().map_or_else(dash, |mean| format!("{mean:.2}")),
        blocks,
        counts.mean_score().map_or_else(dash, |mean| format!("{mean:.2} of {}", counts.scores.0)),
    ]
}
