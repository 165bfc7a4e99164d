//! Charts, drawn as SVG by the server. Each is beside a table with the same numbers, and hidden from screen readers.
//! Sizes are attributes, since the content security policy forbids styles in the markup.

/// A part of a stacked bar.
pub(crate) struct Segment {
    /// The name of its style.
    pub(crate) class: &'static str,
    /// Where it begins, of 1,000.
    pub(crate) x: u64,
    /// How long it is, of 1,000.
    pub(crate) width: u64,
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
        let x = (sum / total * 1_000.0).round() as u64;
        sum += weight;
        let end = (sum / total * 1_000.0).round() as u64;
        segments.push(Segment { class, x, width: end.saturating_sub(x).max(2) });
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
    let height = |value: f64| value.max(1e-9).min(1e12).log10();
    let heights = || all.iter().copied().chain([threshold]).map(height);
    let (low, high) = (heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max));
    let y = |value: f64| (290.0 - (height(value) - low) / (high - low).max(1e-9) * 280.0).round() as u64;
    let x = |at: usize| (at as f64 / (all.len() - 1) as f64 * 1_000.0).round() as u64;
    let points = all.iter().enumerate().map(|(at, value)| format!("{},{}", x(at), y(*value)));
    Some(Course { points: points.collect::<Vec<_>>().join(" "), threshold: y(threshold) })
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
}
