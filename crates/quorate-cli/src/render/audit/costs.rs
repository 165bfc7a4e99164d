//! The cost of runs by executor, member, type and month.

use std::collections::BTreeMap;

use quorate::service::audit::costs::{Costs, Sum};

use super::super::deliberator_row::DASH;
use super::super::paint::one_line;
use super::super::wording::{digit_groups, dollars};
use super::Table;

const HEADINGS: [&str; 5] = ["calls", "tokens read", "cached", "written", "US$"];

pub(super) fn tables(costs: &Costs) -> [Table; 4] {
    let executors = costs.executors.iter().map(|((executor, model), sum)| {
        let name = match model {
            Some(model) if !executor.contains(model.as_str()) => format!("{executor} ({model})"),
            _ => executor.clone(),
        };
        row(&name, sum)
    });
    let mut executors: Vec<Vec<String>> = executors.collect();
    if executors.len() > 1 {
        executors.push(row("all", &costs.all));
    }
    [
        Table::new("Cost by executor", headings("executor"), executors),
        named("Cost by member", "member", &costs.members),
        named("Cost by type", "type", &costs.types),
        named("Cost by month", "month", &costs.months),
    ]
}

fn named(title: &'static str, first: &'static str, sums: &BTreeMap<String, Sum>) -> Table {
    let rows = sums.iter().map(|(name, sum)| row(name, sum)).collect();
    Table::new(title, headings(first), rows)
}

fn headings(first: &'static str) -> Vec<&'static str> {
    [first].into_iter().chain(HEADINGS).collect()
}

fn row(name: &str, sum: &Sum) -> Vec<String> {
    let count = |count: Option<u64>| count.map_or_else(|| DASH.to_owned(), digit_groups);
    let usage = &sum.usage;
    let money = match (usage.usd_nanos, sum.unpriced) {
        (None, _) => DASH.to_owned(),
        (Some(nanos), 0) => dollars(nanos),
        // Some of the calls have no known price.
        (Some(nanos), _) => format!("{} or more", dollars(nanos)),
    };
    vec![
        one_line(name),
        digit_groups(sum.calls),
        count(usage.tokens_in),
        count(usage.tokens_cached),
        count(usage.tokens_out),
        money,
    ]
}
