//! How often deliberators agree, as a matrix. A pair that has met too rarely has its number of reviews and no rate.

use std::cmp::Reverse;

use quorate_ledger::council_log::stats::{Agreement, MIN_SHARED, Pair};

use super::super::paint::one_line;
use super::super::wording::amount;
use super::Table;
use quorate::service::audit::percent;

/// The most deliberators of a matrix, those with the most positions.
const MAX_MEMBERS: usize = 8;

pub(super) fn table(agreement: &Agreement) -> Table {
    let mut ranked: Vec<(&String, &u64)> = agreement.members.iter().collect();
    ranked.sort_by_key(|(name, reviews)| (Reverse(**reviews), (*name).clone()));
    let omitted = agreement.omitted + ranked.len().saturating_sub(MAX_MEMBERS) as u64;
    ranked.truncate(MAX_MEMBERS);
    let mut names: Vec<&String> = ranked.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let row = |(at, first): (usize, &&String)| {
        let cells = names.iter().enumerate().skip(1).map(|(other, second)| match other > at {
            true => agreement.pairs.get(&((*first).clone(), (*second).clone())).map_or_else(never, cell),
            false => String::new(),
        });
        [one_line(first)].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let rows = names.iter().enumerate().take(names.len().saturating_sub(1)).map(row).collect();
    let headings =
        ["agrees with".to_owned()].into_iter().chain(names.iter().skip(1).map(|name| one_line(name)));
    let mut note = format!("A pair that shares fewer than {MIN_SHARED} decided reviews has no rate.");
    if omitted > 0 {
        note.push_str(&format!(
            " {} not shown: `quorate audit --format json` lists more.",
            amount(omitted, "deliberator")
        ));
    }
    Table { note: Some(note), ..Table::new("Agreement of deliberators", headings, rows) }
}

fn cell(pair: &Pair) -> String {
    match percent(pair.agreed(), pair.shared()).filter(|_| pair.is_enough()) {
        Some(rate) => format!("{rate} of {}", pair.shared()),
        None => format!("too few: {}", pair.shared()),
    }
}

fn never() -> String {
    "too few: 0".to_owned()
}
