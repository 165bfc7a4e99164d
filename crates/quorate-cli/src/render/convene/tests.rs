//! Each mode in each format, and that nothing hostile, large or deep breaks a drawing.

mod guidance;
mod hostile;
mod talk;
mod tree;
mod vote;
mod words;

use quorate_diagnostics::render::{Colour, TextOptions};

use super::human::human;
use super::markdown::markdown;

/// A look without colours.
fn wide(width: usize) -> TextOptions {
    TextOptions { colour: Colour::Off, width }
}
