//! Arms, which are ways to judge a text from one call to a whole council, and their comparison on a labelled set. Exactly one comparison is primary, and it is fixed before the first call.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::set::Label;
use crate::stats::{Count, Difference, Differences, Share, difference, effective_votes, share};

/// A way to judge a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arm {
    /// One call with one prompt that asks for everything.
    Single(String),
    /// The majority of several such calls.
    Repeat(String, u32),
    /// The first answers of the council, without an adjudicator.
    Vote,
    /// A council: the workspace's, or that of a file.
    Council(Option<String>),
    /// The council, whose members do not read each other before round 2.
    RoundTwoAlone,
    /// Another arm, which is asked only where a screen does not decide alone.
    Cascade(String, Box<Arm>),
    /// A program that is asked as one judge.
    Command(Vec<String>),
}

/// The most calls of [`Arm::Repeat`].
pub const MAX_REPEATS: u32 = 99;

/// Why a text names no arm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    #[error("`{0}` is not an arm: write {FORMS}")]
    Unknown(String),
    #[error("`{0}` lacks {1}: write {2}")]
    Missing(String, &'static str, &'static str),
    #[error(
        "`{0}` repeats an even number of times or more than {MAX_REPEATS} times: name an odd number, so that there is a majority"
    )]
    Repeats(String),
}

/// The forms of arms.
const FORMS: &str = "single:EXECUTOR, repeat:EXECUTOR:K, vote, council, council:FILE, round2-alone, cascade:SCREEN,ARM or command:PROGRAM";

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Arm, ArmError> {
        let missing = |what, form| ArmError::Missing(text.to_owned(), what, form);
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let rest = rest.map(str::trim);
        let filled = rest.filter(|rest| !rest.is_empty());
        match (name.trim(), rest) {
            ("vote", None) => Ok(Arm::Vote),
            ("round2-alone", None) => Ok(Arm::RoundTwoAlone),
            ("council", None) => Ok(Arm::Council(None)),
            ("council", Some(_)) => filled
                .map(|file| Arm::Council(Some(file.to_owned())))
                .ok_or(missing("a file", "council:FILE")),
            ("single", _) => filled
                .map(|name| Arm::Single(name.to_owned()))
                .ok_or(missing("an executor", "single:EXECUTOR")),
            ("repeat", _) => {
                // An executor may be an address, which has colons.
                let (executor, times) = filled
                    .and_then(|rest| rest.rsplit_once(':'))
                    .filter(|(executor, _)| !executor.is_empty())
                    .ok_or(missing("an executor or a number", "repeat:EXECUTOR:K"))?;
                let times: u32 = times.parse().map_err(|_| missing("a number", "repeat:EXECUTOR:K"))?;
                match times % 2 == 1 && times <= MAX_REPEATS {
                    true => Ok(Arm::Repeat(executor.to_owned(), times)),
                    false => Err(ArmError::Repeats(text.to_owned())),
                }
            }
            ("cascade", _) => {
                let (screen, arm) = filled
                    .and_then(|rest| rest.split_once(','))
                    .filter(|(screen, _)| !screen.is_empty())
                    .ok_or(missing("a screen or an arm", "cascade:SCREEN,ARM"))?;
                Ok(Arm::Cascade(screen.trim().to_owned(), Box::new(arm.trim().parse()?)))
            }
            ("command", _) => {
                let words: Vec<String> =
                    filled.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
                match words.is_empty() {
                    true => Err(missing("a program", "command:PROGRAM")),
                    false => Ok(Arm::Command(words)),
                }
            }
            _ => Err(ArmError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arm::Single(executor) => write!(f, "single:{executor}"),
            Arm::Repeat(executor, times) => write!(f, "repeat:{executor}:{times}"),
            Arm::Vote => f.write_str("vote"),
            Arm::Council(None) => f.write_str("council"),
            Arm::Council(Some(file)) => write!(f, "council:{file}"),
            Arm::RoundTwoAlone => f.write_str("round2-alone"),
            Arm::Cascade(screen, arm) => write!(f, "cascade:{screen},{arm}"),
            Arm::Command(words) => write!(f, "command:{}", words.join(" ")),
        }
    }
}

/// What an arm made of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judgement {
    /// Whether it stops the text; `None` for INCOMPLETE, which is wrong under either label.
    pub stops: Option<bool>,
    /// Whether it blocks without a finding whose quote is in the text.
    pub is_ungrounded: bool,
    /// Whether each member's first answer stops the text; `None` without a readable answer.
    pub members: Vec<Option<bool>>,
    /// The calls that only this arm needs count here, and a shared call in each arm that would need it.
    pub calls: u32,
    /// Billionths of a US dollar, where the price is known.
    pub money_nanos: Option<u64>,
    pub seconds: f64,
}

/// A row with what each arm made of it, in the order of the arms.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedRow {
    pub label: Label,
    pub cluster: String,
    pub arms: Vec<Judgement>,
}

/// An arm's results on a set
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ArmReport {
    /// The arm, as it is written
    pub arm: String,
    /// How often it decided as the label says. A judgement that is missing is wrong
    pub right: Option<Share>,
    /// The share of right judgements if all missing ones were right
    pub right_at_best: Option<f64>,
    /// How many of the texts that must be stopped it stopped
    pub recall: Option<Share>,
    /// How many of the texts that it stopped must be stopped
    pub precision: Option<Share>,
    /// How many of the texts that it stopped it stopped without a quote of the text
    pub ungrounded: Option<Share>,
    /// How many judgements are missing
    pub missing: u64,
    /// How many independent votes its members are worth, from the correlation of their errors; null with one member
    pub effective_votes: Option<f64>,
    /// The mean share of first answers on the side of the majority; null with one member
    pub firmness: Option<f64>,
    /// Calls of all rows
    pub calls: u64,
    /// The price of all calls in US dollars; null if one of them is unknown
    pub dollars: Option<f64>,
    /// The mean time for a row, in seconds
    pub seconds: Option<f64>,
}

/// What the primary comparison shows
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The first arm is right more often
    Better,
    /// The first arm is not worse by more than the margin
    NotWorse,
    /// The first arm is right less often
    Worse,
    /// Neither is shown
    Inconclusive,
}

/// The primary comparison: the share of right judgements of the first arm less that of the second
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Primary {
    /// The first arm
    pub a: String,
    /// The second arm
    pub b: String,
    /// By how much the first arm may be worse
    pub margin: f64,
    /// The difference; null without a row
    pub difference: Option<Difference>,
    /// What it shows
    pub finding: Finding,
    /// How many more rows like these would decide, where it is inconclusive; null if none would
    pub more_rows: Option<u64>,
}

/// The results of an arm; `at` is its number.
pub fn arm_report(arm: String, at: usize, rows: &[JudgedRow]) -> ArmReport {
    let of = |row: &JudgedRow| row.arms[at].clone();
    let count = |counts: &dyn Fn(&JudgedRow, &Judgement) -> Option<bool>| {
        let mut clusters: BTreeMap<&str, Count> = BTreeMap::new();
        for row in rows {
            if let Some(is_hit) = counts(row, &row.arms[at]) {
                clusters.entry(&row.cluster).or_default().add(is_hit);
            }
        }
        share(&clusters.into_values().collect::<Vec<_>>())
    };
    let stops = |judged: &Judgement| judged.stops == Some(true);
    let missing = rows.iter().filter(|row| row.arms[at].stops.is_none()).count() as u64;
    let right = count(&|row, judged| Some(is_right(row.label, judged)));
    let money: Option<u64> = rows.iter().map(|row| of(row).money_nanos).sum();
    let seconds: f64 = rows.iter().map(|row| row.arms[at].seconds).sum();
    ArmReport {
        right_at_best: right.map(|right| (right.hits + missing) as f64 / right.of as f64),
        right,
        recall: count(&|row, judged| row.label.stops().then(|| stops(judged))),
        precision: count(&|row, judged| stops(judged).then(|| row.label.stops())),
        ungrounded: count(&|_, judged| stops(judged).then_some(judged.is_ungrounded)),
        missing,
        effective_votes: votes(at, rows),
        firmness: firmness(rows.iter().map(|row| &*row.arms[at].members)),
        calls: rows.iter().map(|row| u64::from(row.arms[at].calls)).sum(),
        dollars: money.map(|nanos| nanos as f64 / 1e9),
        seconds: (!rows.is_empty()).then(|| seconds / rows.len() as f64),
        arm,
    }
}

fn is_right(label: Label, judged: &Judgement) -> bool {
    judged.stops == Some(label.stops())
}

/// From the rows in which every member has a first answer.
fn votes(at: usize, rows: &[JudgedRow]) -> Option<f64> {
    let members = rows.iter().map(|row| row.arms[at].members.len()).max()?;
    let mut errors = vec![Vec::new(); members];
    for row in rows {
        let given: Option<Vec<bool>> = row.arms[at].members.iter().copied().collect();
        if let Some(given) = given.filter(|given| given.len() == members) {
            errors.iter_mut().zip(given).for_each(|(errors, stops)| errors.push(stops != row.label.stops()));
        }
    }
    if members < 2 { None } else { effective_votes(&errors) }
}

/// The mean share of first answers on the side of the majority; `None` unless two members answered somewhere.
pub fn firmness<'m>(rows: impl Iterator<Item = &'m [Option<bool>]>) -> Option<f64> {
    let shares: Vec<f64> = rows
        .filter_map(|members| {
            let given: Vec<bool> = members.iter().flatten().copied().collect();
            let stops = given.iter().filter(|stops| **stops).count();
            (given.len() > 1).then(|| stops.max(given.len() - stops) as f64 / given.len() as f64)
        })
        .collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Compares the arms with these numbers and names; the first may be worse by `margin`.
pub fn primary(names: [String; 2], [a, b]: [usize; 2], margin: f64, rows: &[JudgedRow]) -> Primary {
    let mut clusters: BTreeMap<&str, Differences> = BTreeMap::new();
    for row in rows {
        let score = |at: usize| f64::from(u8::from(is_right(row.label, &row.arms[at])));
        let cluster = clusters.entry(&row.cluster).or_default();
        cluster.sum += score(a) - score(b);
        cluster.rows += 1;
    }
    let difference = difference(&clusters.into_values().collect::<Vec<_>>());
    let finding = difference.map_or(Finding::Inconclusive, |difference| match difference.interval {
        interval if interval.low > 0.0 => Finding::Better,
        interval if margin > 0.0 && interval.low > -margin => Finding::NotWorse,
        interval if interval.high < 0.0 => Finding::Worse,
        _ => Finding::Inconclusive,
    });
    let decides = |difference: Difference| {
        // With a margin it is enough to exclude its lower end.
        let (half, gap) = (
            (difference.interval.high - difference.interval.low) / 2.0,
            difference.mean.abs().max(difference.mean + margin),
        );
        let rows = difference.rows as f64 * (half / gap).powi(2);
        rows.is_finite().then(|| (rows.ceil() as u64).saturating_sub(difference.rows).max(1))
    };
    let more_rows = difference.filter(|_| finding == Finding::Inconclusive).and_then(decides);
    let [a, b] = names;
    Primary { a, b, margin, difference, finding, more_rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_written_as_it_is_read() {
        for text in [
            "single:claude",
            "single:http://localhost:8080/v1",
            "repeat:claude:5",
            "repeat:http://localhost:8080/v1:3",
            "vote",
            "council",
            "council:other/council.yaml",
            "round2-alone",
            "cascade:rubric,council",
            "cascade:tiny,repeat:claude:3",
            "command:./judge.sh --fast",
        ] {
            let arm: Arm = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(arm.to_string(), text);
        }
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, said) in [
            ("", "is not an arm"),
            ("votes", "is not an arm"),
            ("vote:claude", "is not an arm"),
            ("single", "lacks an executor"),
            ("single:", "lacks an executor"),
            ("council:", "lacks a file"),
            ("repeat:claude", "lacks an executor or a number"),
            ("repeat:claude:many", "lacks a number"),
            ("repeat:claude:4", "an even number"),
            ("repeat:claude:0", "an even number"),
            ("repeat:claude:101", "more than 99"),
            ("cascade:rubric", "lacks a screen or an arm"),
            ("cascade:rubric,vot", "`vot` is not an arm"),
            ("command:  ", "lacks a program"),
        ] {
            let error = text.parse::<Arm>().expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    fn judged(stops: Option<bool>, members: &[bool]) -> Judgement {
        Judgement {
            stops,
            members: members.iter().map(|stops| Some(*stops)).collect(),
            calls: 1,
            ..Judgement::default()
        }
    }

    fn row(at: usize, label: Label, arms: [Option<bool>; 2]) -> JudgedRow {
        let arms = arms.map(|stops| judged(stops, &[stops == Some(true), true])).to_vec();
        JudgedRow { label, cluster: at.to_string(), arms }
    }

    /// Rows in which the first arm is right and the second is not, the other way round, and both are right.
    fn rows(first: usize, second: usize, both: usize) -> Vec<JudgedRow> {
        let (right, wrong) = (Some(true), Some(false));
        let kinds = [(first, [right, wrong]), (second, [wrong, right]), (both, [right, right])];
        let all = kinds.into_iter().flat_map(|(count, arms)| std::iter::repeat_n(arms, count));
        all.enumerate().map(|(at, arms)| row(at, Label::Block, arms)).collect()
    }

    fn finding(rows: &[JudgedRow], margin: f64) -> Finding {
        primary(["a".into(), "b".into()], [0, 1], margin, rows).finding
    }

    #[test]
    fn the_primary_comparison_says_what_is_shown_and_no_more() {
        assert_eq!(finding(&rows(30, 5, 65), 0.0), Finding::Better);
        assert_eq!(finding(&rows(5, 30, 65), 0.0), Finding::Worse);
        assert_eq!(finding(&rows(12, 10, 78), 0.0), Finding::Inconclusive);
        assert_eq!(finding(&rows(12, 10, 978), 0.02), Finding::NotWorse);
        // Worse, but by less than the margin.
        assert_eq!(finding(&rows(0, 40, 4960), 0.02), Finding::NotWorse);
        assert_eq!(finding(&rows(0, 40, 4960), 0.0), Finding::Worse);
        assert_eq!(finding(&rows(0, 0, 3), 0.0), Finding::Inconclusive);
        assert_eq!(finding(&[], 0.0), Finding::Inconclusive);
    }

    #[test]
    fn an_inconclusive_comparison_says_how_many_rows_would_decide() {
        let open = primary(["a".into(), "b".into()], [0, 1], 0.0, &rows(12, 8, 80));
        let more = open.more_rows.expect("a number") as usize;
        let scale = (100 + more).div_ceil(100);
        assert_eq!(finding(&rows(12 * scale, 8 * scale, 80 * scale), 0.0), Finding::Better, "{more} more");
        assert_eq!(primary(["a".into(), "b".into()], [0, 1], 0.0, &rows(5, 5, 90)).more_rows, None);
    }

    #[test]
    fn what_is_missing_is_wrong_under_either_label() {
        let all = [
            row(0, Label::Ship, [None, Some(false)]),
            row(1, Label::Hold, [None, Some(true)]),
            row(2, Label::Revise, [Some(true), Some(false)]),
        ];
        let report = arm_report("a".into(), 0, &all);
        assert_eq!((report.right.map(|share| share.hits), report.right_at_best), (Some(1), Some(1.0)));
        assert_eq!((report.missing, report.calls), (2, 3));
        assert_eq!(report.recall.map(|share| (share.hits, share.of)), Some((1, 2)));
        assert_eq!(report.precision.map(|share| (share.hits, share.of)), Some((1, 1)));
        let all: Vec<_> =
            all.into_iter().map(|row| JudgedRow { arms: vec![Judgement::default(); 2], ..row }).collect();
        let nothing = arm_report("a".into(), 0, &all);
        assert_eq!((nothing.right.map(|share| share.hits), nothing.precision), (Some(0), None));
        assert_eq!((nothing.effective_votes, nothing.firmness), (None, None));
    }

    #[test]
    fn the_order_of_rows_changes_nothing() {
        let mut all = rows(13, 6, 30);
        let before = primary(["a".into(), "b".into()], [0, 1], 0.01, &all);
        all.reverse();
        assert_eq!(primary(["a".into(), "b".into()], [0, 1], 0.01, &all), before);
    }
}
