//! Orders the entries of mappings, each with its comments.

use super::Order;
use super::cst::{Block, Item, Value};
use super::order::PathSegment;

/// Orders a document.
pub(super) fn arrange(root: &mut Block<'_>, order: &Order) {
    block(root, order, &mut Vec::new());
}

fn block<'t>(block: &mut Block<'t>, order: &Order, path: &mut Vec<PathSegment<'t>>) {
    for piece in &mut block.items {
        path.push(piece.key.map_or(PathSegment::Item, |key| PathSegment::Key(key.name)));
        if let Value::Block(inner) = &mut piece.value {
            self::block(inner, order, path);
        }
        path.pop();
        if piece.key.is_none() {
            hoist(piece);
        }
    }
    if let Some(keys) = order.keys(path) {
        sort(&mut block.items, keys);
    }
}

fn sort(pieces: &mut [Item<'_>], keys: &[&str]) {
    let rank = |piece: &Item<'_>| {
        let name = piece.key.map(|key| key.name);
        keys.iter().position(|key| Some(*key) == name).unwrap_or(keys.len())
    };
    let Some(first) = (0..pieces.len()).min_by_key(|at| rank(&pieces[*at])) else { return };
    // The first entry has no empty line above it: the old first entry gets the flag of the new one.
    let gap = std::mem::replace(pieces[first].first_gap(), false);
    *pieces[0].first_gap() = gap && first > 0;
    pieces.sort_by_key(rank);
}

/// The first key of an item is on the dash's line, so comments above that key move above the dash.
fn hoist(piece: &mut Item<'_>) {
    let Value::Block(block) = &mut piece.value else { return };
    let Some(first) = block.items.first_mut().filter(|_| piece.trailing.is_none()) else { return };
    let mut remarks = std::mem::take(&mut block.head);
    let below_head = remarks.len();
    remarks.append(&mut first.lead);
    if remarks.is_empty() {
        return;
    }
    remarks[0].gap = piece.gap;
    let mut gap = std::mem::replace(&mut first.gap, false);
    if below_head > 0 {
        *remarks.get_mut(below_head).map_or(&mut gap, |remark| &mut remark.gap) = block.head_gap;
    }
    piece.gap = gap;
    piece.lead.append(&mut remarks);
}
