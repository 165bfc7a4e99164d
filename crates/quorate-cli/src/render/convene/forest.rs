//! The tree of a hierarchy as rows: long chains without a change are folded, levels beyond the drawable depth continue in
//! a separate tree, and rows beyond a limit are counted.

use std::collections::{BTreeMap, VecDeque};

use quorate::service::convene::report::{Decision, Member, Node};

const MAX_NODES: usize = 150;
/// Chains of at least this many nodes without a change are folded.
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
    pub(super) tree_nodes: Vec<TreeNode<'r>>,
    pub(super) roots: Vec<usize>,
}

/// The content of a row.
pub(super) enum Kind {
    /// A member, by index.
    Node(usize),
    /// A folded chain of `length` members.
    Chain { first: usize, last: usize, length: usize },
    /// `members` below this one continue in a separate tree.
    Below { at: usize, members: usize },
}

pub(super) struct Row {
    pub(super) kind: Kind,
    /// For each level above, whether its line continues; the last entry is the row's own level.
    pub(super) continues: Vec<bool>,
    /// Whether the next row is a child of it.
    pub(super) has_children: bool,
}

/// A tree, drawn from one of its nodes.
pub(super) struct Tree {
    /// The node that it continues from; `None` for a whole tree.
    pub(super) from: Option<usize>,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Drawing {
    pub(super) trees: Vec<Tree>,
    /// The number of members not shown.
    pub(super) more: usize,
}

impl<'r> Forest<'r> {
    pub(super) fn of(report: &'r Decision) -> Forest<'r> {
        let places: BTreeMap<&str, usize> =
            report.members.iter().enumerate().map(|(at, member)| (&*member.id, at)).collect();
        let nodes: BTreeMap<&str, &Node> = report.nodes.iter().map(|node| (&*node.member, node)).collect();
        let tree_node = |member: &'r Member| TreeNode {
            member,
            node: nodes.get(&*member.id).copied(),
            children: Vec::new(),
        };
        let mut tree_nodes: Vec<TreeNode<'r>> = report.members.iter().map(tree_node).collect();
        let mut roots = Vec::new();
        for (at, member) in report.members.iter().enumerate() {
            match member.parent.as_deref().and_then(|parent| places.get(parent)) {
                Some(parent) => tree_nodes[*parent].children.push(at),
                None => roots.push(at),
            }
        }
        Forest { tree_nodes, roots }
    }

    /// Rows of at most `deepest` levels.
    pub(super) fn drawing(&self, deepest: usize) -> Drawing {
        let mut later: VecDeque<(Option<usize>, usize)> =
            self.roots.iter().map(|root| (None, *root)).collect();
        let (mut trees, mut shown, mut folded) = (Vec::new(), 0, 0);
        while let Some((from, root)) = later.pop_front() {
            if shown >= MAX_NODES {
                break;
            }
            let mut rows = Vec::new();
            let mut open = vec![(root, Vec::new())];
            while let Some((at, continues)) = open.pop() {
                if shown >= MAX_NODES {
                    break;
                }
                // The node that a tree continues from was shown before.
                shown += usize::from(!(from.is_some() && rows.is_empty()));
                let children = &self.tree_nodes[at].children;
                rows.push(Row {
                    kind: Kind::Node(at),
                    continues: continues.clone(),
                    has_children: !children.is_empty(),
                });
                let below = |goes: bool| [&continues[..], &[goes]].concat();
                if !children.is_empty() && continues.len() + 1 >= deepest {
                    let members = self.descendant_count(at);
                    rows.push(Row {
                        kind: Kind::Below { at, members },
                        continues: below(false),
                        has_children: false,
                    });
                    later.push_back((Some(at), at));
                    continue;
                }
                if let Some((length, first, last)) = self.chain(at) {
                    let kind = Kind::Chain { first, last, length };
                    rows.push(Row { kind, continues: below(false), has_children: true });
                    folded += length;
                    let deeper = [&below(false)[..], &[false]].concat();
                    open.extend(self.tree_nodes[last].children.first().map(|next| (*next, deeper)));
                    continue;
                }
                for (number, child) in children.iter().enumerate().rev() {
                    open.push((*child, below(number + 1 < children.len())));
                }
            }
            trees.push(Tree { from, rows });
        }
        let reached: usize = self.roots.iter().map(|root| 1 + self.descendant_count(*root)).sum();
        Drawing { trees, more: reached.saturating_sub(shown + folded) }
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
    fn chain(&self, at: usize) -> Option<(usize, usize, usize)> {
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
        let plain = matches!(result(at).0, None | Some("passed" | "answered" | "not_asked"));
        plain && self.tree_nodes[at].children.len() == 1 && result(at) == result(as_one)
    }
}
