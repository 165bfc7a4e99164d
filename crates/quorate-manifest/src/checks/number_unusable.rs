//! `quorate:number_unusable`: a weight or parameter that cannot be represented or recorded exactly (V3, X10). This check
//! runs before deserialization, since the manifest's type cannot represent such a number.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use crate::decimal::Decimal;
use crate::loader::Chain;
use crate::tree::{Kind, Node};

/// The largest integer up to which a double represents every integer exactly.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// Checks the weights and parameters of a merged assembly.
pub(crate) fn check(chain: &Chain) -> Report {
    let mut report = Report::new();
    for document in &chain.documents {
        report.add_source(Arc::clone(&document.shown), Arc::clone(&document.text));
    }
    let items = |keys: &[&str]| chain.merged.at_path(keys).map_or(&[][..], Node::items);
    for (at, member) in items(&["members"]).iter().enumerate() {
        if let Some(weight) = member.key("weight") {
            check_decimal(chain, weight, &format!("members[{at}].weight"), &mut report);
        }
        if let Some(params) = member.at_path(&["gatherInput", "params"]) {
            check_recordable(chain, params, &format!("members[{at}].gatherInput.params"), &mut report);
        }
    }
    for (at, rule) in items(&["synthesis", "rules"]).iter().enumerate() {
        if let Some(params) = rule.key("params") {
            check_recordable(chain, params, &format!("synthesis.rules[{at}].params"), &mut report);
        }
    }
    report
}

/// Refuses a number with too many digits.
fn check_decimal(chain: &Chain, node: &Node, path: &str, report: &mut Report) {
    let Kind::Float(float) = &node.kind else { return };
    if let Err(error) = float.text.parse::<Decimal>() {
        let body = Body::new(format!("`{path}`: {error}")).at(chain.place(node, path));
        report.refuse(codes::NUMBER_UNUSABLE, body.help("write it with fewer digits"));
    }
}

/// Refuses the numbers in a parameter that a run's first record cannot represent exactly.
fn check_recordable(chain: &Chain, node: &Node, path: &str, report: &mut Report) {
    let whole = match &node.kind {
        Kind::Int(value) => Some(*value),
        Kind::Float(float) => float.to_integer(),
        _ => None,
    };
    match whole {
        Some(value) if value.unsigned_abs() > MAX_EXACT_INTEGER => {
            let body = Body::new(format!("`{path}` is {value}; integers are exact only up to 2^53"));
            let body = body.at(chain.place(node, path));
            report.refuse(codes::NUMBER_UNUSABLE, body.help("write a smaller number, or put it in quotes"));
        }
        Some(_) => {}
        None => check_decimal(chain, node, path, report),
    }
    for (at, item) in node.items().iter().enumerate() {
        check_recordable(chain, item, &format!("{path}[{at}]"), report);
    }
    for entry in node.entries() {
        check_recordable(chain, &entry.value, &format!("{path}.{}", entry.key), report);
    }
}
