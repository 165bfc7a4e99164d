//! Gates (B6): what a playbook has to pass before it is woven, as functions of evidence that callers bring.
//!
//! # The sequential test
//!
//! Outcomes are looked at again and again while they come in, so the test has to hold at every look. Outcomes with the
//! playbook and without it are compared in pairs, in the order in which they came: the first with the first. A pair that
//! came out the same says nothing; of the others, if the playbook makes nothing better, each is a win with a probability
//! of at most one half. The evidence is how much somebody would have made who bet on wins at those odds, in equal parts
//! on the strengths of [`STRENGTHS`]: it starts at 1, and if nothing is better, it ever reaches 1/e with a probability of
//! at most e (Ville's inequality), however often one looks. The gate opens at `1 / error_rate`, and not before each side
//! has its minimum of outcomes.

use std::cmp::Ordering;
use std::fmt;

/// The probabilities of a win that are bet on.
pub const STRENGTHS: [f64; 8] = [0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.95];

/// From this priority on only governance promotes.
pub const GOVERNED: u8 = 75;

/// How evidence is weighed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// How many outcomes each side has to have.
    pub min_sample: u32,
    /// How often the gate may open for what is no better: a share above 0 and below 1.
    pub error_rate: f64,
}

/// What the evidence comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// How many outcomes there are with the playbook.
    pub with: u32,
    /// How many without.
    pub without: u32,
    /// Pairs in which the one with it was better.
    pub wins: u32,
    /// Pairs in which the one without it was better.
    pub losses: u32,
    /// The highest evidence that there ever was.
    pub evidence: f64,
    /// What it has to reach.
    pub needed: f64,
    /// How many outcomes each side has to have.
    pub min_sample: u32,
}

impl Finding {
    /// Whether the gate opens.
    pub fn passes(&self) -> bool {
        self.with.min(self.without) >= self.min_sample && self.evidence >= self.needed
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { with, without, wins, losses, evidence, needed, min_sample } = self;
        write!(
            f,
            "{with} with it, {without} without (at least {min_sample} each): {wins} better, {losses} worse; "
        )?;
        write!(f, "evidence {evidence:.1} of {needed:.1}")
    }
}

/// Compares outcomes with a playbook and outcomes without it, each in the order in which they came; more is better. What
/// is no number is a tie.
pub fn compare(with: &[f64], without: &[f64], terms: Terms) -> Finding {
    paired(with.iter().copied().zip(without.iter().copied()), (with.len(), without.len()), terms)
}

/// Compares scores that come in pairs: with the playbook, and without.
pub fn compare_pairs(pairs: &[(f64, f64)], terms: Terms) -> Finding {
    paired(pairs.iter().copied(), (pairs.len(), pairs.len()), terms)
}

fn paired(pairs: impl Iterator<Item = (f64, f64)>, sizes: (usize, usize), terms: Terms) -> Finding {
    let (mut wins, mut losses) = (0, 0);
    let mut capital = [1.0_f64; STRENGTHS.len()];
    let mut best = 1.0_f64;
    for (with, without) in pairs {
        let won = match with.partial_cmp(&without) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Less) => false,
            Some(Ordering::Equal) | None => continue,
        };
        *(if won { &mut wins } else { &mut losses }) += 1;
        for (capital, strength) in capital.iter_mut().zip(STRENGTHS) {
            *capital *= 2.0 * if won { strength } else { 1.0 - strength };
        }
        best = best.max(capital.iter().sum::<f64>() / STRENGTHS.len() as f64);
    }
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Finding {
        with: count(sizes.0),
        without: count(sizes.1),
        wins,
        losses,
        evidence: best,
        needed: 1.0 / terms.error_rate,
        min_sample: terms.min_sample,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { min_sample: 8, error_rate: 0.05 };

    #[test]
    fn what_is_always_better_passes_after_some() {
        // B6
        let lots = |n: usize| (vec![1.0; n], vec![0.0; n]);
        let passes = |n: usize| {
            let (with, without) = lots(n);
            compare(&with, &without, TERMS).passes()
        };
        let first = (1..30).find(|n| passes(*n)).unwrap();
        assert_eq!(first, 8, "eight wins in a row, which also is the minimum");
        assert!(passes(29));
        let (with, without) = lots(8);
        assert!(!compare(&without, &with, TERMS).passes());
        assert!(!compare(&with, &with, TERMS).passes());
        // Nothing is made of one side that has none.
        assert!(!compare(&with, &[], TERMS).passes());
        assert_eq!(compare(&[f64::NAN], &[0.0], TERMS).wins, 0);
    }

    #[test]
    fn what_is_no_better_rarely_passes_however_often_one_looks() {
        // B6: the stated error rate, at 400 looks each.
        let mut state = 7_u64;
        let mut coin = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from((state >> 40) as u32 & 1)
        };
        let trials = 2_000;
        let passed = (0..trials).filter(|_| {
            let pairs: Vec<(f64, f64)> = (0..400).map(|_| (coin(), coin())).collect();
            compare_pairs(&pairs, TERMS).passes()
        });
        let share = passed.count() as f64 / f64::from(trials);
        println!("{share} of {trials} gates opened for what is no better");
        assert!(share <= 0.05, "{share}");
        assert!(share > 0.0, "a gate that never opens measures nothing");
    }

    #[test]
    fn an_improvement_is_found() {
        let mut state = 11_u64;
        let mut better = |share: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from(u8::from((state >> 33) % 100 < share))
        };
        let pairs: Vec<(f64, f64)> = (0..120).map(|_| (better(80), better(40))).collect();
        assert!(compare_pairs(&pairs, TERMS).passes());
    }
}
