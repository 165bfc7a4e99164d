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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_bar() {
        let bar = stacked(&[("yes", 2.0), ("no", 1.0), ("missing", 0.0)]);
        let places: Vec<_> = bar.iter().map(|part| (part.class, part.x, part.width)).collect();
        assert_eq!(places, [("yes", 0, 667), ("no", 667, 333)]);
        assert!(stacked(&[("yes", 0.0)]).is_empty());
        assert_eq!(stacked(&[("yes", 1e9), ("no", 1.0)])[1].width, 2, "it is visible");
    }
}
