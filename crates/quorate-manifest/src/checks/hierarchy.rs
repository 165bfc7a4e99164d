//! The tree of a hierarchy: `assembly_hierarchy_invalid_parent`, `assembly_hierarchy_cycle` and
//! `quorate:hierarchy_multiple_roots` (M11). All three follow `parent`.

use std::collections::{BTreeMap, BTreeSet};

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::tree::Node;
use crate::tree::reader::nearest;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.mode != Mode::Hierarchy {
        return;
    }
    let mut parents: BTreeMap<&str, (usize, &Node)> = BTreeMap::new();
    let mut roots = Vec::new();
    for (at, member) in view.members().iter().enumerate() {
        let Some(id) = member.key("id").and_then(Node::as_str) else { continue };
        match member.key("parent") {
            Some(parent) => {
                parents.insert(id, (at, parent));
            }
            None => roots.push((at, id, member)),
        }
    }
    for (at, parent) in parents.values() {
        invalid_parent(view, *at, parent);
    }
    cycles(view, &parents);
    if let [(_, first, first_node), others @ ..] = roots.as_slice() {
        for (at, id, node) in others {
            let place = view.value_place(node, "id", format!("members[{at}]"));
            let body = Body::new(format!("`{id}` has no `parent`, and neither has `{first}`")).at(place);
            let body = body.related(view.value_place(first_node, "id", ""), "the first root");
            view.refuse(
                codes::HIERARCHY_MULTIPLE_ROOTS,
                body.help(format!("add `parent: {first}`, or another member above both")),
            );
        }
    }
}

fn invalid_parent(view: &CheckContext<'_, '_>, at: usize, parent: &Node) {
    let Some(id) = parent.as_str().filter(|id| !view.is_member(id)) else { return };
    let ids = view.member_ids();
    let help = match nearest(id, &ids) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the members are: {}", ids.join(", ")),
    };
    let body = Body::new(format!("there is no member `{id}` to report to"));
    let place = view.place(parent, format!("members[{at}].parent"));
    view.refuse(codes::ASSEMBLY_HIERARCHY_INVALID_PARENT, body.at(place).help(help));
}

/// Refuses each cycle once, at its first member in roster order.
fn cycles(view: &CheckContext<'_, '_>, parents: &BTreeMap<&str, (usize, &Node)>) {
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    for start in view.member_ids() {
        let mut path = vec![start];
        let mut at = start;
        while let Some(next) = parents.get(at).and_then(|(_, parent)| parent.as_str()) {
            if next == start {
                if path.iter().any(|id| reported.contains(id)) {
                    break;
                }
                reported.extend(&path);
                path.push(start);
                let (index, node) = parents[start];
                let body =
                    Body::new(format!("the members' `parent` keys form a cycle: {}", path.join(" -> ")));
                let place = view.place(node, format!("members[{index}].parent"));
                view.refuse(
                    codes::ASSEMBLY_HIERARCHY_CYCLE,
                    body.at(place).help("remove `parent` from the member that is the root"),
                );
                break;
            }
            if path.contains(&next) {
                break;
            }
            path.push(next);
            at = next;
        }
    }
}
