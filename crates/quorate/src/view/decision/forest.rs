//! The tree of a hierarchy: each member with its result and its reports.

use std::collections::BTreeMap;

use crate::service::convene::report::{Decision, Member, Node};

/// Chains of at least this many members without a change are folded.
const MIN_FOLDED_CHAIN: usize = 4;

/// A member in the tree.
pub(super) struct TreeNode<'r> {
    pub(super) member: &'r Member,
    /// Its result; `None` while the run is undecided.
    pub(super) node: Option<&'r Node>,
    /// Indices of the members that report to it, in roster order.
    pub(super) children: Vec<usize>,
}

/// All members, by their index in the roster.
pub(super) struct Forest<'r> {
    pub(super) decision: &'r Decision,
    pub(super) tree_nodes: Vec<TreeNode<'r>>,
    pub(super) roots: Vec<usize>,
}

impl<'r> Forest<'r> {
    pub(super) fn of(decision: &'r Decision) -> Forest<'r> {
        let places: BTreeMap<&str, usize> =
            decision.members.iter().enumerate().map(|(at, member)| (&*member.id, at)).collect();
        let nodes: BTreeMap<&str, &Node> = decision.nodes.iter().map(|node| (&*node.member, node)).collect();
        let tree_node = |member: &'r Member| TreeNode {
            member,
            node: nodes.get(&*member.id).copied(),
            children: Vec::new(),
        };
        let mut tree_nodes: Vec<TreeNode<'r>> = decision.members.iter().map(tree_node).collect();
        let mut roots = Vec::new();
        for (at, member) in decision.members.iter().enumerate() {
            match member.parent.as_deref().and_then(|parent| places.get(parent)) {
                Some(parent) => tree_nodes[*parent].children.push(at),
                None => roots.push(at),
            }
        }
        Forest { decision, tree_nodes, roots }
    }

    /// The number of direct and indirect reports of a member.
    pub(super) fn descendant_count(&self, at: usize) -> usize {
        let (mut open, mut count) = (vec![at], 0);
        while let Some(at) = open.pop() {
            count += self.tree_nodes[at].children.len();
            open.extend(&self.tree_nodes[at].children);
        }
        count
    }

    /// The foldable chain below a node: its length, its first and its last node.
    pub(super) fn chain(&self, at: usize) -> Option<(usize, usize, usize)> {
        let [first] = self.tree_nodes[at].children[..] else { return None };
        let (mut length, mut last, mut next) = (0, first, first);
        while self.is_uniform(next, at) {
            (length, last) = (length + 1, next);
            next = self.tree_nodes[next].children[0];
        }
        (length >= MIN_FOLDED_CHAIN).then_some((length, first, last))
    }

    /// Whether a node passes to one, from one, with the same result as another.
    fn is_uniform(&self, at: usize, as_one: usize) -> bool {
        let result = |at: usize| {
            let node = self.tree_nodes[at].node;
            (node.map(|node| &*node.status), node.and_then(|node| Some(node.output.as_ref()?.severity)))
        };
        let is_plain = matches!(result(at).0, None | Some("passed" | "answered" | "not_asked"));
        is_plain && self.tree_nodes[at].children.len() == 1 && result(at) == result(as_one)
    }
}
