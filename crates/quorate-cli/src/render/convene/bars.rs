//! Bars for severities and for votes.

use super::super::paint::Paint;

/// The cells of a severity's bar: one for each step.
const STEPS: usize = 10;

const FULL: &str = "█";
const EMPTY: &str = "░";
/// Marks the share that a side needs.
pub(super) const THRESHOLD_MARK: &str = "┃";

/// A severity with its bar: `7 ███████░░░`.
pub(super) fn severity(severity: u64) -> String {
    format!("{} {}", paint_by_severity(severity, &format!("{severity:>2}")), scale(severity))
}

/// The bar of a severity.
pub(super) fn scale(severity: u64) -> String {
    let full = usize::try_from(severity).unwrap_or(STEPS).min(STEPS);
    paint_by_severity(severity, &FULL.repeat(full)) + &faint(EMPTY.repeat(STEPS - full))
}

/// A word in the colour of a severity.
pub(super) fn paint_by_severity(severity: u64, text: &str) -> String {
    let paint = match severity {
        9.. => Paint::Bad,
        5..=8 => Paint::Fair,
        _ => Paint::Strong,
    };
    if text.is_empty() { String::new() } else { paint.on(text) }
}

fn faint(text: String) -> String {
    if text.is_empty() { text } else { Paint::Faint.on(&text) }
}

/// The bar of a side in a vote: its share, and the share that it needs, if any. A bar reaches the mark only if the side
/// reaches what it needs.
pub(super) fn side(part: f64, needs: Option<f64>, paint: Option<Paint>, cells: usize) -> String {
    let threshold = needs.map(|needs| cell_of(needs, cells));
    let mut full = cell_of(part, cells).max(usize::from(part > 0.0));
    if let (Some(needs), Some(threshold)) = (needs, threshold)
        && part < needs
    {
        full = full.min(threshold.saturating_sub(1));
    }
    let painted = |text: String| match paint {
        Some(paint) if !text.is_empty() => paint.on(&text),
        _ => text,
    };
    let piece = |start: usize, end: usize| {
        let to_full = full.clamp(start, end);
        painted(FULL.repeat(to_full - start)) + &faint(EMPTY.repeat(end - to_full))
    };
    match threshold {
        Some(threshold) => piece(0, threshold) + THRESHOLD_MARK + &piece(threshold, cells),
        None => piece(0, cells),
    }
}

/// The number of cells of a share, rounded.
fn cell_of(part: f64, cells: usize) -> usize {
    // NaN counts as zero; `as` saturates.
    let cell = (part.clamp(0.0, 1.0) * cells as f64).round();
    (cell as usize).min(cells)
}

#[cfg(test)]
mod tests {
    use quorate_diagnostics::render::TextOptions;

    use super::super::super::paint::finish;
    use super::*;

    fn plain(text: &str) -> String {
        finish(text, TextOptions::default()).trim_end().to_owned()
    }

    #[test]
    fn a_cell_for_each_step() {
        assert_eq!(plain(&severity(7)), " 7 ███████░░░");
        assert_eq!(plain(&severity(10)), "10 ██████████");
        assert_eq!(plain(&severity(u64::MAX)).matches('█').count(), 10);
    }

    #[test]
    fn a_bar_reaches_the_mark_only_if_the_side_does() {
        assert_eq!(plain(&side(0.66, Some(0.66), None, 10)), "███████┃░░░");
        assert_eq!(plain(&side(0.6599, Some(0.66), None, 10)), "██████░┃░░░");
        assert_eq!(plain(&side(1.0, Some(1.0), None, 10)), "██████████┃");
        assert_eq!(plain(&side(0.001, None, None, 10)), "█░░░░░░░░░");
        assert_eq!(plain(&side(f64::NAN, None, None, 4)), "░░░░");
    }
}
