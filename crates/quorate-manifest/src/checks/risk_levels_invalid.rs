//! `quorate:risk_levels_invalid`: levels of risk that overlap or are not in the order of their severities.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::tree::{Kind, Node};

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let levels = view.root().at_path(&["synthesis", "riskLevels"]).map_or(&[][..], Node::items);
    let mut before: Option<(i64, &Node)> = None;
    for (at, level) in levels.iter().enumerate() {
        let Some(range) = level.key("range") else { continue };
        let [low, high] = range.items() else { continue };
        let (Some(low), Some(high)) = (as_integer(low), as_integer(high)) else { continue };
        let place = view.value_place(level, "range", format!("synthesis.riskLevels[{at}].range"));
        if low > high {
            let body = Body::new(format!("the level begins at {low} and ends at {high}")).at(place);
            view.refuse(codes::RISK_LEVELS_INVALID, body.help("write the lowest severity first"));
            continue;
        }
        if let Some((end, other)) = before.filter(|(end, _)| low <= *end) {
            let body =
                Body::new(format!("the level begins at {low}, but the one before ends at {end}")).at(place);
            let body = body.related(view.value_place(other, "range", ""), "the level before");
            view.refuse(
                codes::RISK_LEVELS_INVALID,
                body.help("list the levels in rising order, without overlap"),
            );
        }
        before = Some((high, level));
    }
}

fn as_integer(node: &Node) -> Option<i64> {
    match &node.kind {
        Kind::Int(value) => Some(*value),
        Kind::Float(float) => float.to_integer(),
        _ => None,
    }
}
