//! Each mode in each format; hostile, large and deep reports.

mod guidance;
mod hostile;
mod talk;
mod tree;
mod vote;
mod words;

use quorate_diagnostics::render::{Colour, TextOptions};

use super::human::human;
use super::markdown::markdown;

fn wide(width: usize) -> TextOptions {
    TextOptions { colour: Colour::Off, width }
}
