//! How a kind of secrets is recognized.

use std::ops::Range;

use super::shape::Shape;

/// A kind of secrets.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) detector: Detector,
}

/// How a kind is recognized.
pub(super) enum Detector {
    Shape(Shape),
    /// By context: the texts that lead to it, in any case, and the function that finds it from there.
    Place(&'static [&'static str], Detect),
}

/// Finds the secret that an anchor leads to. It reads a bounded number of bytes, or none that it has read for an anchor
/// before, unless it finds one.
pub(super) type Detect = fn(&str, Range<usize>) -> Option<Range<usize>>;

impl Kind {
    pub(super) fn anchors(&self) -> &[&'static str] {
        match &self.detector {
            Detector::Shape(shape) => std::slice::from_ref(&shape.anchor),
            Detector::Place(anchors, _) => anchors,
        }
    }

    pub(super) fn find(&self, text: &str, anchor: Range<usize>) -> Option<Range<usize>> {
        match &self.detector {
            Detector::Shape(shape) => shape.find(text, anchor),
            Detector::Place(_, find) => find(text, anchor),
        }
    }
}
