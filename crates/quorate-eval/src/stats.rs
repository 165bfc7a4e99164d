//! Intervals and differences. Every figure carries its `n`, and every interval holds 95 percent.
//!
//! Answers about the same draft resemble each other, so that a hundred answers about ten drafts say less than answers about a
//! hundred drafts. The functions therefore take *clusters*: the observations of one draft, or of several drafts that the
//! caller holds to be related.

use puruspe::invbetai;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share of cases that an interval covers.
pub const CONFIDENCE: f64 = 0.95;

/// The deviation from the mean, in standard errors, within which a normal distribution has that share.
const Z: f64 = 1.959_963_984_540_054;

/// With fewer clusters than this, a difference is tested by flipping signs of whole clusters instead of by a t interval.
pub const T_CLUSTERS: usize = 20;

/// With fewer clusters than this, no difference can be shown: at 95 percent too few sign patterns exist.
pub const MIN_CLUSTERS: u64 = 6;

/// A range that holds the true value in 95 of 100 cases, both ends included
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The lower end
    pub low: f64,
    /// The upper end
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The hits of one cluster, and its observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    pub hits: u64,
    pub of: u64,
}

impl Count {
    /// Counts one more observation.
    pub fn add(&mut self, is_hit: bool) {
        self.hits += u64::from(is_hit);
        self.of += 1;
    }
}

/// A share, its interval and the counts that it rests on
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// How many observations count
    pub hits: u64,
    /// How many observations there are
    pub of: u64,
    /// hits / of
    pub share: f64,
    /// The interval of the share
    pub interval: Interval,
}

/// The share of hits over all clusters; `None` without an observation.
///
/// The interval is Wilson's. Where hits gather in some clusters, it is that of fewer observations: their number is divided by
/// the design effect, the variance between clusters over that of independent observations, and by a factor for few clusters.
/// Observations of one cluster say nothing about others: their interval is about that cluster alone.
pub fn share(clusters: &[Count]) -> Option<Share> {
    let (hits, of) = clusters.iter().fold((0, 0), |(hits, of), count| (hits + count.hits, of + count.of));
    if of == 0 {
        return None;
    }
    let share = hits as f64 / of as f64;
    let groups = clusters.iter().filter(|count| count.of > 0).count() as f64;
    // Few clusters say little about the variance between them (Korn and Graubard).
    let few = if groups > 1.0 && (of as f64) > groups { (t_quantile(groups - 1.0) / Z).powi(2) } else { 1.0 };
    let interval = wilson(share, of as f64 / (design_effect(clusters, share, of as f64) * few));
    Some(Share { hits, of, share, interval })
}

/// Wilson's interval of a share among `n` independent observations.
fn wilson(share: f64, n: f64) -> Interval {
    let shrink = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / shrink;
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt() / shrink;
    Interval {
        low: if share == 0.0 { 0.0 } else { (middle - half).max(0.0) },
        high: if share == 1.0 { 1.0 } else { (middle + half).min(1.0) },
    }
}

/// How many observations of these clusters say as much as one independent observation; from 1 to the mean size of a cluster.
fn design_effect(clusters: &[Count], share: f64, of: f64) -> f64 {
    let filled: Vec<&Count> = clusters.iter().filter(|count| count.of > 0).collect();
    let groups = filled.len() as f64;
    let independent = of * share * (1.0 - share);
    if groups < 2.0 || independent == 0.0 {
        return 1.0;
    }
    let squares: f64 = filled.iter().map(|count| (count.hits as f64 - share * count.of as f64).powi(2)).sum();
    (groups / (groups - 1.0) * squares / independent).clamp(1.0, of / groups)
}

/// The highest error rate that is compatible with `errors` of `of` observations, at 95 percent (Clopper and Pearson, one side):
/// 59 observations without an error give 5 percent.
pub fn upper_bound(errors: u64, of: u64) -> f64 {
    if errors >= of {
        return 1.0;
    }
    invbetai(CONFIDENCE, errors as f64 + 1.0, (of - errors) as f64)
}

/// The differences of one cluster: what the first arm scored minus what the second scored, summed over `rows` rows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Differences {
    pub sum: f64,
    pub rows: u64,
}

/// How an interval of a difference was computed
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t on the clusters
    T,
    /// The differences that no flip of whole clusters' signs rejects
    SignFlips,
}

/// The mean difference between two judges of the same rows
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The mean over rows, from -1 to 1
    pub mean: f64,
    /// The interval of the mean; a difference is shown only if it excludes zero
    pub interval: Interval,
    /// The number of rows
    pub rows: u64,
    /// The number of clusters: rows of one cluster resemble each other
    pub clusters: u64,
    /// How the interval was computed
    pub method: Method,
    /// How many rows like these, in total, would make the interval exclude zero if the mean stayed; null if it is zero, and with fewer than 6 clusters
    pub rows_to_decide: Option<u64>,
}

impl Difference {
    /// Whether the interval excludes zero. A difference that is not shown must not be reported as one.
    pub fn is_shown(&self) -> bool {
        !self.interval.contains(0.0)
    }
}

/// The mean difference over rows, with an interval that treats each cluster as one observation; `None` without a row.
///
/// The variance counts one more pair of rows that differ in opposite directions, so that a few rows without any difference do
/// not prove that the arms are equal.
pub fn difference(clusters: &[Differences]) -> Option<Difference> {
    let clusters: Vec<Differences> = clusters.iter().copied().filter(|cluster| cluster.rows > 0).collect();
    let rows: u64 = clusters.iter().map(|cluster| cluster.rows).sum();
    if rows == 0 {
        return None;
    }
    let (n, groups) = (rows as f64, clusters.len() as f64);
    let mean = clusters.iter().map(|cluster| cluster.sum).sum::<f64>() / n;
    let squares: f64 =
        clusters.iter().map(|cluster| (cluster.sum - mean * cluster.rows as f64).powi(2)).sum();
    let correction = if groups > 1.0 { groups / (groups - 1.0) } else { 1.0 };
    let error = ((squares * correction + 0.5) / (n * n)).sqrt();
    let (method, half_widths) = match clusters.len() {
        ..T_CLUSTERS => (Method::SignFlips, flip_interval(&clusters, mean, error)),
        _ => {
            let half = t_quantile(groups - 1.0) * error;
            (Method::T, Interval { low: mean - half, high: mean + half })
        }
    };
    let interval = Interval { low: half_widths.low.max(-1.0), high: half_widths.high.min(1.0) };
    let half = t_quantile((groups - 1.0).max(1.0)) * error;
    let can_decide = mean != 0.0 && clusters.len() as u64 >= MIN_CLUSTERS;
    let is_open = interval.contains(0.0);
    let rows_to_decide = can_decide.then(|| {
        let needed = (n * (half / mean).powi(2)).ceil() as u64;
        if is_open { needed.max(rows + 1) } else { needed }
    });
    Some(Difference { mean, interval, rows, clusters: clusters.len() as u64, method, rows_to_decide })
}

/// The shifts that are not rejected when each cluster's deviation from the shift may have either sign with equal probability.
/// With fewer than [`MIN_CLUSTERS`] clusters nothing can be rejected at 95 percent, and the interval is from -1 to 1.
fn flip_interval(clusters: &[Differences], mean: f64, error: f64) -> Interval {
    let is_rejected = |shift: f64| {
        let deviations: Vec<f64> =
            clusters.iter().map(|cluster| cluster.sum - shift * cluster.rows as f64).collect();
        flip_probability(&deviations) <= 1.0 - CONFIDENCE
    };
    let end = |outermost: f64| {
        if !is_rejected(outermost) {
            return outermost;
        }
        let (mut inside, mut outside) = (mean, outermost);
        while (outside - inside).abs() > 1e-4 {
            let middle = f64::midpoint(inside, outside);
            if is_rejected(middle) { outside = middle } else { inside = middle }
        }
        outside
    };
    // Without any deviation the flips reject all but the mean, and the error that `difference` assumes remains.
    let half = t_quantile((clusters.len() as f64 - 1.0).max(1.0)) * error;
    let is_constant = clusters.iter().all(|cluster| (cluster.sum - mean * cluster.rows as f64).abs() < 1e-12);
    let least = if is_constant { half } else { 0.0 };
    Interval { low: end(-1.0).min(mean - least), high: end(1.0).max(mean + least) }
}

/// The share of sign patterns whose sum is at least as far from zero as that of the deviations.
fn flip_probability(deviations: &[f64]) -> f64 {
    let observed = deviations.iter().sum::<f64>().abs() - 1e-9;
    // A pattern and its opposite have the same distance, so the first sign can stay.
    let mut sums = vec![deviations[0]];
    for deviation in &deviations[1..] {
        sums = sums.iter().flat_map(|sum| [sum + deviation, sum - deviation]).collect();
    }
    sums.iter().filter(|sum| sum.abs() >= observed).count() as f64 / sums.len() as f64
}

/// Student's t at the upper end of the interval.
fn t_quantile(freedom: f64) -> f64 {
    let x = invbetai(1.0 - CONFIDENCE, freedom / 2.0, 0.5);
    (freedom * (1.0 - x) / x).sqrt()
}
