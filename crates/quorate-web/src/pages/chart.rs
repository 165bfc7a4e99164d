//! Charts, drawn as SVG by the server. Each is beside a table with the same numbers. Sizes are attributes, since the content
//! security policy forbids styles in the markup. A height or a shape repeats the meaning of each colour.

/// A part of a stacked bar.
pub(crate) struct Segment {
    /// The name of its style.
    pub(crate) class: &'static str,
    /// Where it begins, of 1,000.
    pub(crate) x: u64,
    /// How long it is, of 1,000.
    pub(crate) width: u64,
    /// Where its top is, of 40; each style has a height of its own.
    pub(crate) y: u64,
    /// How high it is, of 40.
    pub(crate) height: u64,
}

/// A stacked bar: each part with its weight. A part that is not nothing is visible.
pub(super) fn stacked(parts: &[(&'static str, f64)]) -> Vec<Segment> {
    let total: f64 = parts.iter().map(|(_, weight)| weight.max(0.0)).sum();
    if total <= 0.0 || !total.is_finite() {
        return Vec::new();
    }
    let mut segments = Vec::new();
    let mut sum = 0.0;
    for (class, weight) in parts.iter().filter(|(_, weight)| *weight > 0.0) {
        let x = place(sum / total);
        sum += weight;
        let width = place(sum / total).saturating_sub(x).max(2);
        let height = height(class);
        segments.push(Segment { class, x, width, y: 40 - height, height });
    }
    segments
}

/// A line over pairs, in a box of 1,000 by 300.
pub(super) struct Course {
    /// The points of the line.
    pub(super) points: String,
    /// The height of the threshold.
    pub(super) threshold: u64,
}

/// The course of evidence, which starts at 1, on a logarithmic scale; `None` without a value.
pub(super) fn course(values: &[f64], threshold: f64) -> Option<Course> {
    if values.is_empty() {
        return None;
    }
    let all: Vec<f64> = std::iter::once(1.0).chain(values.iter().copied()).collect();
    let height = |value: f64| value.clamp(1e-9, 1e12).log10();
    let heights = || all.iter().copied().chain([threshold]).map(height);
    let (low, high) = (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
    let y = |value: f64| (290.0 - (height(value) - low) / (high - low).max(1e-9) * 280.0).round() as u64;
    let x = |at: usize| (at as f64 / (all.len() - 1) as f64 * 1_000.0).round() as u64;
    let points = all.iter().enumerate().map(|(at, value)| format!("{},{}", x(at), y(*value)));
    Some(Course { points: points.collect::<Vec<_>>().join(" "), threshold: y(threshold) })
}

fn place(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * 1_000.0).round() as u64
}

fn height(class: &str) -> u64 {
    match class {
        "good" | "yes" => 40,
        "fair" | "abstain" => 22,
        "bad" | "no" => 31,
        _ => 12,
    }
}

/// A line over weeks, in a drawing of 1,000 by 160.
pub(super) struct Line {
    /// The points of each uninterrupted piece, as SVG has them.
    pub(super) pieces: Vec<String>,
    pub(super) dots: Vec<Dot>,
}

/// A point of a line.
pub(super) struct Dot {
    pub(super) x: u64,
    pub(super) y: u64,
}

/// The top and the bottom of a line's scale in its drawing.
const TOP: f64 = 20.0;
const BOTTOM: f64 = 140.0;
/// Its sides; the names of the levels are before it.
const LEFT: f64 = 120.0;
const RIGHT: f64 = 980.0;

/// A line through values from 0 to 1, one for each step; it is interrupted where there is none.
pub(super) fn line(values: &[Option<f64>]) -> Line {
    let last = values.len().saturating_sub(1).max(1) as f64;
    let (mut pieces, mut dots, mut piece) = (Vec::new(), Vec::new(), Vec::new());
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            pieces.extend(Some(std::mem::take(&mut piece)).filter(|piece: &Vec<String>| piece.len() > 1));
            continue;
        };
        let x = (LEFT + at as f64 / last * (RIGHT - LEFT)).round() as u64;
        let y = (BOTTOM - value.clamp(0.0, 1.0) * (BOTTOM - TOP)).round() as u64;
        piece.push(format!("{x},{y}"));
        dots.push(Dot { x, y });
    }
    pieces.extend(Some(piece).filter(|piece| piece.len() > 1));
    Line { pieces: pieces.iter().map(|piece| piece.join(" ")).collect(), dots }
}

/// The position, out of 1,000, of a mark on a bar whose first part ends at `reached`. A bar below the mark never appears to
/// reach it.
pub(super) fn mark(needed: f64, reached: f64) -> u64 {
    let (mark, end) = (place(needed), place(reached));
    match reached < needed && mark <= end {
        true => (end + 2).min(1_000),
        false => mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_stays_in_its_box() {
        let course = course(&[1.5, 0.3, 40.0], 20.0).unwrap();
        assert_eq!(course.points.split(' ').count(), 4);
        assert!(course.points.starts_with("0,") && course.points.ends_with("1000,10"), "{}", course.points);
        assert!((10..290).contains(&course.threshold), "{}", course.threshold);
        assert!(super::course(&[], 20.0).is_none());
        let odd = super::course(&[f64::INFINITY, 0.0, f64::NAN], 20.0).unwrap();
        assert!(odd.points.split([' ', ',']).all(|number| number.parse::<u64>().is_ok_and(|n| n <= 1_000)));
    }

    #[test]
    fn parts_fill_the_bar() {
        let bar = stacked(&[("yes", 2.0), ("no", 1.0), ("missing", 0.0)]);
        let places: Vec<_> = bar.iter().map(|part| (part.class, part.x, part.width)).collect();
        assert_eq!(places, [("yes", 0, 667), ("no", 667, 333)]);
        assert!(stacked(&[("yes", 0.0)]).is_empty());
        assert_eq!(stacked(&[("yes", 1e9), ("no", 1.0)])[1].width, 2, "it is visible");
    }

    #[test]
    fn each_style_of_a_bar_has_a_height_of_its_own() {
        for styles in [["good", "fair", "bad", "none"], ["yes", "no", "abstain", "missing"]] {
            let bar = stacked(&styles.map(|style| (style, 1.0)));
            let heights: std::collections::BTreeSet<u64> = bar.iter().map(|part| part.height).collect();
            assert_eq!(heights.len(), styles.len());
            assert!(bar.iter().all(|part| part.y + part.height == 40));
        }
    }

    #[test]
    fn a_line_is_interrupted_where_there_is_nothing() {
        let drawn = line(&[Some(1.0), Some(0.0), None, Some(0.5), None, Some(2.0), Some(0.5)]);
        assert_eq!(drawn.pieces, ["120,20 263,140", "837,20 980,80"]);
        assert_eq!(drawn.dots.len(), 5);
        assert!(line(&[]).dots.is_empty());
    }

    #[test]
    fn a_bar_reaches_a_mark_only_if_it_does() {
        assert_eq!(mark(0.66, 0.66), 660);
        assert_eq!(mark(0.66, 0.659_9), 662);
        assert_eq!(mark(1.0, 0.999_9), 1_000);
        assert_eq!(mark(0.5, 0.75), 500);
    }
}
