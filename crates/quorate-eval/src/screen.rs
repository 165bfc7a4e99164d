//! When a cheap stage may decide alone: a threshold with a guarantee on the error.

use schemars::JsonSchema;
use serde::Serialize;

use crate::stats::{error_free_needed, upper_bound};

/// A marked text with the screen's score, from 0 (let it pass) to 1 (stop it).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub score: f64,
    /// Whether a person would stop it.
    pub stops: bool,
}

/// One side of a screen: below `pass` a text passes alone, from `stop` on it is stopped alone
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// The threshold
    pub threshold: f64,
    /// How many marked texts it would decide
    pub decided: u64,
    /// How many of them wrongly
    pub errors: u64,
    /// The highest share of errors that is compatible with these counts, at 95 percent
    pub at_most: f64,
}

/// The widest thresholds whose share of errors is at most alpha
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Screen {
    /// The share of errors that is allowed on each side
    pub alpha: f64,
    /// The number of marked texts
    pub marks: u64,
    /// Below this score a text passes alone; null if no threshold is safe
    pub pass: Option<Side>,
    /// From this score on a text is stopped alone; null if no threshold is safe
    pub stop: Option<Side>,
    /// How many more marks the nearest side needs, if they are without an error; 0 if a side is safe
    pub more_marks: u64,
}

/// Chooses the thresholds. All thresholds of a side are tested from the outermost one inwards, and the first that fails ends the
/// search: so the error of the chosen one holds although several were looked at.
pub fn choose(alpha: f64, marks: &[Scored]) -> Screen {
    let mut sorted = marks.to_vec();
    sorted.sort_by(|one, other| one.score.total_cmp(&other.score));
    let pass = side(alpha, &sorted, |mark| mark.stops);
    sorted.reverse();
    let stop = side(alpha, &sorted, |mark| !mark.stops);
    let error_free = |list: &[Scored], is_error: fn(&Scored) -> bool| {
        list.iter().take_while(|mark| !is_error(mark)).count() as u64
    };
    let longest = error_free(&sorted, |mark| !mark.stops).max({
        sorted.reverse();
        error_free(&sorted, |mark| mark.stops)
    });
    let more_marks = match pass.or(stop) {
        Some(_) => 0,
        None => error_free_needed(alpha).saturating_sub(longest).max(1),
    };
    Screen { alpha, marks: marks.len() as u64, pass, stop, more_marks }
}

/// The widest threshold of the side that the list begins with. Marks of the same score are decided together.
fn side(alpha: f64, list: &[Scored], is_error: fn(&Scored) -> bool) -> Option<Side> {
    let needed = error_free_needed(alpha) as usize;
    let mut best = None;
    let mut errors = 0;
    for (at, mark) in list.iter().enumerate() {
        errors += u64::from(is_error(mark));
        let decided = at as u64 + 1;
        let is_last_of_score = list.get(at + 1).is_none_or(|next| next.score != mark.score);
        if !is_last_of_score || at + 1 < needed {
            continue;
        }
        let at_most = upper_bound(errors, decided);
        if at_most > alpha {
            break;
        }
        best = Some(Side { threshold: mark.score, decided, errors, at_most });
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(pass: usize, stop: usize) -> Vec<Scored> {
        let scored = |from: f64, count: usize, stops| {
            (0..count).map(move |at| Scored { score: from + 0.4 * at as f64 / count as f64, stops })
        };
        scored(0.0, pass, false).chain(scored(0.6, stop, true)).collect()
    }

    #[test]
    fn fifty_nine_error_free_marks_are_enough_for_five_percent() {
        let screen = choose(0.05, &marks(59, 10));
        let pass = screen.pass.expect("59 marks");
        assert_eq!((pass.decided, pass.errors, screen.more_marks), (59, 0, 0));
        assert!(screen.stop.is_none() && pass.at_most <= 0.05);
        let open = choose(0.05, &marks(58, 20));
        assert_eq!((open.pass, open.stop, open.more_marks), (None, None, 1));
        assert_eq!(choose(0.05, &[]).more_marks, 59);
    }

    #[test]
    fn an_error_ends_what_is_decided_alone() {
        let mut all = marks(200, 200);
        let safe = choose(0.05, &all);
        // Each side goes beyond its 200 marks as long as the errors stay below 5 percent.
        for side in [safe.pass, safe.stop] {
            let side = side.expect("a safe threshold");
            assert!(side.decided >= 200 && side.at_most <= 0.05, "{side:?}");
        }
        // Many errors at the very bottom: nothing passes alone.
        all.iter_mut().take(30).for_each(|mark| mark.stops = true);
        assert_eq!(choose(0.05, &all).pass, None);
    }

    #[test]
    fn the_guarantee_holds() {
        // Scores that say nothing: a threshold is accepted in at most 5 of 100 cases.
        let mut state = 9_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut broken = 0;
        for _ in 0..2000 {
            // 8 percent of all texts are to be stopped, more than the 5 that are allowed.
            let list: Vec<Scored> =
                (0..200).map(|_| Scored { score: draw(), stops: draw() < 0.08 }).collect();
            broken += u32::from(choose(0.05, &list).pass.is_some());
        }
        assert!(broken <= 100, "{broken} of 2000");
    }
}
