//! Figures against those of scipy and statsmodels, and how often an interval holds the true value.

use quorate_eval::stats::{Count, Differences, Method, difference, share, upper_bound};
use serde_json::Value;

/// Pseudo-random numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    /// The next number, from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn is(&mut self, chance: f64) -> bool {
        self.next() < chance
    }
}

fn oracle() -> Value {
    serde_json::from_str(include_str!("oracle.json")).expect("the file is JSON")
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64, table: &Value) {
    assert!((ours - theirs).abs() < 1e-6, "{ours} is not {theirs}: {table}");
}

#[test]
fn shares_have_the_intervals_of_statsmodels() {
    let oracle = oracle();
    for table in list(&oracle, "shares") {
        let count = |pair: &Value| Count { hits: pair[0].as_u64().unwrap(), of: pair[1].as_u64().unwrap() };
        let clusters: Vec<Count> = list(table, "clusters").iter().map(count).collect();
        let share = share(&clusters).expect("there are observations");
        assert_close(share.interval.low, number(&table["low"]), table);
        assert_close(share.interval.high, number(&table["high"]), table);
    }
}

#[test]
fn upper_bounds_are_those_of_scipy() {
    let oracle = oracle();
    for table in list(&oracle, "bounds") {
        let bound = upper_bound(table["errors"].as_u64().unwrap(), table["of"].as_u64().unwrap());
        assert_close(bound, number(&table["bound"]), table);
    }
    assert!(upper_bound(0, 59) <= 0.05 && upper_bound(0, 58) > 0.05);
    assert_eq!((upper_bound(0, 0), upper_bound(3, 3)), (1.0, 1.0));
}

#[test]
fn differences_have_the_intervals_of_statsmodels_and_the_flips_of_scipy() {
    let oracle = oracle();
    for table in list(&oracle, "differences") {
        let one = |pair: &Value| Differences { sum: number(&pair[0]), rows: pair[1].as_u64().unwrap() };
        let clusters: Vec<Differences> = list(table, "clusters").iter().map(one).collect();
        let difference = difference(&clusters).expect("there are rows");
        assert_close(difference.mean, number(&table["mean"]), table);
        match difference.method {
            Method::T => {
                assert_close(difference.interval.low, number(&table["low"]), table);
                assert_close(difference.interval.high, number(&table["high"]), table);
            }
            Method::SignFlips => {
                let p = number(&table["p"]);
                assert_eq!(difference.is_shown(), p <= 0.05, "p is {p}: {table}");
            }
        }
    }
}

/// How many of 4,000 simulations have the truth in their interval, in percent.
fn coverage(simulate: impl Fn(&mut Draw) -> bool) -> f64 {
    let mut draw = Draw(7);
    let held = (0..4000).filter(|_| simulate(&mut draw)).count();
    held as f64 / 40.0
}

#[track_caller]
fn assert_covers(what: &str, simulate: impl Fn(&mut Draw) -> bool) {
    let percent = coverage(simulate);
    assert!((93.0..=97.0).contains(&percent), "{what}: {percent} percent");
}

#[test]
fn intervals_of_shares_hold_the_truth() {
    for (chance, drafts, each) in [(0.3, 30, 1), (0.5, 40, 3), (0.15, 60, 2)] {
        assert_covers(&format!("a share of {chance} among {drafts} drafts"), |draw| {
            let count = |draw: &mut Draw| {
                let mut count = Count::default();
                (0..each).for_each(|_| count.add(draw.is(chance)));
                count
            };
            let clusters: Vec<Count> = (0..drafts).map(|_| count(draw)).collect();
            share(&clusters).is_some_and(|share| share.interval.contains(chance))
        });
    }
    // Answers about one draft agree with each other.
    for drafts in [6, 12, 50] {
        assert_covers(&format!("a share in related answers about {drafts} drafts"), |draw| {
            let count = |draw: &mut Draw| {
                let (mut count, draft) = (Count::default(), draw.is(0.4));
                (0..4).for_each(|_| count.add(if draw.is(0.7) { draft } else { draw.is(0.4) }));
                count
            };
            let clusters: Vec<Count> = (0..drafts).map(|_| count(draw)).collect();
            share(&clusters).is_some_and(|share| share.interval.contains(0.4))
        });
    }
}

#[test]
fn intervals_of_differences_hold_the_truth() {
    for (drafts, rows) in [(8, 2), (11, 1), (25, 1), (40, 3)] {
        assert_covers(&format!("a difference among {drafts} drafts of {rows} rows"), |draw| {
            let one = |draw: &mut Draw| {
                let hard = draw.is(0.5);
                let mut all = Differences::default();
                for _ in 0..rows {
                    let (first, second) = if hard { (0.6, 0.4) } else { (0.9, 0.8) };
                    all.sum += f64::from(u8::from(draw.is(first))) - f64::from(u8::from(draw.is(second)));
                    all.rows += 1;
                }
                all
            };
            let clusters: Vec<Differences> = (0..drafts).map(|_| one(draw)).collect();
            difference(&clusters).is_some_and(|found| found.interval.contains(0.15))
        });
    }
}

#[test]
fn too_little_shows_nothing() {
    assert_eq!(share(&[]), None);
    assert_eq!(difference(&[]), None);
    assert_eq!(difference(&[Differences { sum: 0.0, rows: 0 }]), None);
    let one = difference(&[Differences { sum: 1.0, rows: 1 }]).expect("a row");
    assert!(!one.is_shown(), "{one:?}");
    let five = difference(&[Differences { sum: 1.0, rows: 1 }; 5]).expect("rows");
    assert!(!five.is_shown(), "{five:?}");
    // Equal in every row does not prove equal: twenty rows leave room.
    let ties = difference(&[Differences { sum: 0.0, rows: 1 }; 20]).expect("rows");
    assert!(!ties.is_shown() && ties.interval.high > 0.05, "{ties:?}");
    assert_eq!(ties.rows_to_decide, None);
    let always = share(&[Count { hits: 10, of: 10 }]).expect("observations");
    assert!(always.interval.low < 0.8 && always.interval.high <= 1.0, "{always:?}");
}
