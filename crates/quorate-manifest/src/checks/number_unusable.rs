//! `quorate:number_unusable`: a weight with more digits than can be counted with exactly (V3).

use quorate_diagnostics::{Body, codes};

use crate::assembly::view::View;
use crate::decimal::Decimal;
use crate::tree::{Kind, Node};

pub(super) fn check(view: &View<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        if let Some(weight) = member.key("weight") {
            look(view, weight, &format!("members[{at}].weight"));
        }
    }
    for (at, rule) in view.rules().iter().enumerate() {
        let Some(Node { kind: Kind::Map(params), .. }) = rule.key("params") else { continue };
        for param in params {
            look(view, &param.value, &format!("synthesis.rules[{at}].params.{}", param.key));
        }
    }
}

fn look(view: &View<'_, '_>, node: &Node, path: &str) {
    let Kind::Float(float) = &node.kind else { return };
    if let Err(error) = float.text.parse::<Decimal>() {
        let body = Body::new(format!("`{path}`: {error}")).at(view.place(node, path));
        view.refuse(codes::NUMBER_UNUSABLE, body.help("write it with fewer digits"));
    }
}
