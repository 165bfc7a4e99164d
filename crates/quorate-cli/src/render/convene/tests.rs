//! Each mode in each format; hostile, large and deep reports.

mod guidance;
mod hostile;
mod talk;
mod tree;
mod vote;
mod words;

use quorate::service::convene::report::Report;
use quorate_diagnostics::render::{Colour, TextOptions};

use super::super::Extent;

fn human(report: &Report, options: TextOptions) -> String {
    super::human::human(report, Extent::Full, options)
}

fn markdown(report: &Report) -> String {
    super::markdown::markdown(report, Extent::Full)
}

fn wide(width: usize) -> TextOptions {
    TextOptions { colour: Colour::Off, width }
}
