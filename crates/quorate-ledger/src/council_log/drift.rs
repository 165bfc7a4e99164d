//! Drift: artifact types, or producers, whose verdicts become stricter or milder from week to week.

use std::collections::BTreeMap;

use super::counts::Stats;

/// Weeks with fewer reviews of a type are ignored.
const MIN_REVIEWS: u64 = 5;
/// So many weeks in a row are a drift.
const MIN_WEEKS: usize = 3;
/// How far the mean moves at least, from each of these weeks to the next.
const MIN_STEP: f64 = 0.05;

/// Three weeks in a row, each with enough reviews, and each stricter than the one before, or each milder.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// The type of artifact, or the producer.
    pub of: String,
    pub direction: Direction,
    /// Each week (Monday's day number since the Unix epoch) and its mean verdict: SHIP is 1, REVISE 0.5, all else 0.
    pub weeks: Vec<(i64, f64)>,
}

/// Where verdicts drift to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is let through.
    Improving,
    /// Less is let through.
    Tightening,
}

impl Direction {
    /// The word, as the public tool has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Improving => "improving",
            Direction::Tightening => "tightening",
        }
    }
}

/// The last drift of each type that has one, by type.
pub fn find_drift(stats: &Stats) -> Vec<Drift> {
    let weeks = stats.weeks.iter().flat_map(|(monday, types)| {
        types.iter().map(move |(artifact_type, verdicts)| (&**artifact_type, *monday, verdicts))
    });
    drifts(weeks)
}

/// The last drift of each name that has one, by name. Given are a name, a week's Monday, and the verdicts of that week, the
/// weeks of a name in order.
pub(super) fn drifts<'c>(
    weeks: impl Iterator<Item = (&'c str, i64, &'c BTreeMap<String, u64>)>,
) -> Vec<Drift> {
    let mut names: BTreeMap<&str, Vec<(i64, f64)>> = BTreeMap::new();
    for (name, monday, verdicts) in weeks {
        if let Some((mean, _)) = mean(verdicts).filter(|(_, reviews)| *reviews >= MIN_REVIEWS) {
            names.entry(name).or_default().push((monday, mean));
        }
    }
    let drifts = names.into_iter().filter_map(|(name, weeks)| {
        let last = weeks.windows(MIN_WEEKS).rev().find_map(|weeks| Some((direction(weeks)?, weeks.to_vec())));
        let (direction, weeks) = last?;
        Some(Drift { of: name.to_owned(), direction, weeks })
    });
    drifts.collect()
}

/// The mean verdict, and of how many reviews; `None` of none.
pub(super) fn mean(verdicts: &BTreeMap<String, u64>) -> Option<(f64, u64)> {
    let (mut count, mut sum) = (0, 0.0);
    for (verdict, reviews) in verdicts {
        let worth = match &**verdict {
            "SHIP" => 1.0,
            "REVISE" => 0.5,
            "HOLD" | "INCOMPLETE" => 0.0,
            _ => continue,
        };
        count += reviews;
        sum += worth * *reviews as f64;
    }
    (count > 0).then(|| (sum / count as f64, count))
}

fn direction(weeks: &[(i64, f64)]) -> Option<Direction> {
    if weeks.windows(2).any(|pair| pair[1].0 - pair[0].0 != 7) {
        return None;
    }
    let all = |moved: fn(f64) -> bool| weeks.windows(2).all(|pair| moved(pair[1].1 - pair[0].1));
    if all(|step| step >= MIN_STEP) {
        Some(Direction::Improving)
    } else if all(|step| -step >= MIN_STEP) {
        Some(Direction::Tightening)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ships and holds of each week.
    fn drifts(weeks: &[(u64, u64)]) -> Vec<(Direction, Vec<i64>)> {
        let counts = |(ships, holds): (u64, u64)| {
            BTreeMap::from([
                ("SHIP".to_owned(), ships),
                ("HOLD".to_owned(), holds),
                ("UNKNOWN".to_owned(), 9),
            ])
        };
        let week = |(at, week): (usize, &(u64, u64))| {
            (at as i64 * 7, BTreeMap::from([("post".to_owned(), counts(*week))]))
        };
        let stats = Stats { weeks: weeks.iter().enumerate().map(week).collect(), ..Stats::default() };
        let days = |drift: Drift| (drift.direction, drift.weeks.iter().map(|(day, _)| *day).collect());
        find_drift(&stats).into_iter().map(days).collect()
    }

    #[test]
    fn three_weeks_in_one_direction_are_a_drift() {
        assert_eq!(drifts(&[(5, 0), (4, 1), (3, 2)]), [(Direction::Tightening, vec![0, 7, 14])]);
        assert_eq!(drifts(&[(0, 5), (1, 4), (3, 2)]), [(Direction::Improving, vec![0, 7, 14])]);
        assert_eq!(drifts(&[(5, 0), (4, 1)]), []);
        assert_eq!(drifts(&[(5, 0), (4, 1), (4, 1)]), []);
    }

    #[test]
    fn weeks_with_few_reviews_end_a_row_and_small_steps_are_none() {
        assert_eq!(drifts(&[(5, 0), (0, 4), (4, 1), (3, 2)]), []);
        assert_eq!(drifts(&[(5, 0), (4, 1), (0, 4), (3, 2), (2, 3)]), []);
        assert_eq!(drifts(&[(100, 0), (97, 3), (94, 6)]), []);
    }

    #[test]
    fn of_several_the_last_one_counts() {
        let weeks = [(5, 0), (4, 1), (3, 2), (4, 1), (5, 0)];
        assert_eq!(drifts(&weeks), [(Direction::Improving, vec![14, 21, 28])]);
    }
}
