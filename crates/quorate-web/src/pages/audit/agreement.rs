//! The agreement of deliberators, as a matrix. Pairs with too few common reviews are marked.

use std::cmp::Reverse;

use quorate::service::audit::percent;
use quorate_ledger::council_log::stats::{Agreement, Pair};

/// The most deliberators of the matrix, those with the most positions.
const MAX_MEMBERS: usize = 10;

#[derive(Default)]
pub(super) struct Matrix {
    /// The deliberators of the columns.
    pub(super) columns: Vec<String>,
    /// Each with its pairs.
    pub(super) rows: Vec<(String, Vec<Option<Cell>>)>,
    /// Deliberators that are not shown.
    pub(super) omitted: u64,
}

/// A pair.
pub(super) struct Cell {
    pub(super) shared: u64,
    /// In percent; `None` where they have met too rarely.
    pub(super) rate: Option<String>,
    /// How long its bar is, of 100.
    pub(super) width: u64,
    /// Cohen's kappa.
    pub(super) kappa: Option<String>,
}

/// Nothing where no two have met.
pub(super) fn matrix(agreement: &Agreement) -> Matrix {
    if agreement.pairs.is_empty() {
        return Matrix::default();
    }
    let mut ranked: Vec<(&String, &u64)> = agreement.members.iter().collect();
    ranked.sort_by_key(|(name, reviews)| (Reverse(**reviews), (*name).clone()));
    let omitted = agreement.omitted + ranked.len().saturating_sub(MAX_MEMBERS) as u64;
    let mut names: Vec<&String> = ranked.into_iter().take(MAX_MEMBERS).map(|(name, _)| name).collect();
    names.sort_unstable();
    let row = |(at, first): (usize, &&String)| {
        let cells = names.iter().enumerate().skip(1).map(|(other, second)| {
            let pair = || agreement.pairs.get(&((*first).clone(), (*second).clone()));
            (other > at).then(|| cell(&pair().copied().unwrap_or_default()))
        });
        ((*first).clone(), cells.collect())
    };
    Matrix {
        columns: names.iter().skip(1).map(|name| (*name).clone()).collect(),
        rows: names.iter().enumerate().take(names.len() - 1).map(row).collect(),
        omitted,
    }
}

fn cell(pair: &Pair) -> Cell {
    Cell {
        shared: pair.shared(),
        rate: percent(pair.agreed(), pair.shared()).filter(|_| pair.is_enough()),
        width: (100 * pair.agreed()).checked_div(pair.shared()).unwrap_or(0),
        kappa: pair.kappa().map(|kappa| format!("{kappa:.2}")),
    }
}
