//! `quorate:number_unusable`: a weight with more digits than can be counted with exactly (V3). It is looked for before
//! the manifest is read into its type, which has no place for such a number.

use std::sync::Arc;

use quorate_diagnostics::{Body, Report, codes};

use crate::decimal::Decimal;
use crate::round::Chain;
use crate::tree::{Kind, Node};

/// Looks at the numbers of a merged assembly that are counted with.
pub(crate) fn check(chain: &Chain) -> Report {
    let mut report = Report::new();
    for layer in &chain.layers {
        report.source(Arc::clone(&layer.shown), Arc::clone(&layer.text));
    }
    let items = |keys: &[&str]| chain.merged.at(keys).map_or(&[][..], Node::items);
    for (at, member) in items(&["members"]).iter().enumerate() {
        if let Some(weight) = member.key("weight") {
            look(chain, weight, &format!("members[{at}].weight"), &mut report);
        }
    }
    for (at, rule) in items(&["synthesis", "rules"]).iter().enumerate() {
        let Some(Node { kind: Kind::Map(params), .. }) = rule.key("params") else { continue };
        for param in params {
            look(chain, &param.value, &format!("synthesis.rules[{at}].params.{}", param.key), &mut report);
        }
    }
    report
}

fn look(chain: &Chain, node: &Node, path: &str, report: &mut Report) {
    let Kind::Float(float) = &node.kind else { return };
    if let Err(error) = float.text.parse::<Decimal>() {
        let body = Body::new(format!("`{path}`: {error}")).at(chain.place(node, path));
        report.refuse(codes::NUMBER_UNUSABLE, body.help("write it with fewer digits"));
    }
}
