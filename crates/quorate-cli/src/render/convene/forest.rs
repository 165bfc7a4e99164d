//! The tree of a hierarchy as rows that can be drawn: long chains in which nothing changes are folded, what lies deeper
//! than a drawing can show goes on in a tree of its own, and past a number of rows the rest is counted.

use std::collections::{BTreeMap, VecDeque};

use quorate::service::convene::report::{Member, Node, Report};

/// How many nodes are shown.
const MAX_NODES: usize = 150;
/// A chain of so many nodes or more, in which nothing changes, is folded.
const MIN_FOLDED_CHAIN: usize = 4;

/// A member in the tree.
pub(super) struct TreeNode<'r> {
    pub(super) member: &'r Member,
    /// What became of it; `None` while nothing is decided.
    pub(super) node: Option<&'r Node>,
    /// The places of those who report to it, in roster order.
    pub(super) children: Vec<usize>,
}

/// All members, by their places in the roster.
pub(super) struct Forest<'r> {
    pub(super) twigs: Vec<TreeNode<'r>>,
    pub(super) roots: Vec<usize>,
}

/// What stands in a row.
pub(super) enum Kind {
    /// A member, by its place.
    Node(usize),
    /// A chain from one member to another, of so many.
    Chain { first: usize, last: usize, length: usize },
    /// So many members below one go on in a tree of their own.
    Below { at: usize, members: usize },
}

/// A row of a drawing.
pub(super) struct Row {
    pub(super) kind: Kind,
    /// For each level above it, whether a line goes on there; the last is its own.
    pub(super) continues: Vec<bool>,
    /// Whether rows below hang from it.
    pub(super) has_children: bool,
}

/// A tree, drawn from one of its nodes.
pub(super) struct Tree {
    /// The node above that it goes on from, where it is not a whole tree.
    pub(super) from: Option<usize>,
    pub(super) rows: Vec<Row>,
}

/// Everything that is drawn.
pub(super) struct Drawing {
    pub(super) trees: Vec<Tree>,
    /// How many members are not shown.
    pub(super) more: usize,
}

impl<'r> Forest<'r> {
    pub(super) fn of(report: &'r Report) -> Forest<'r> {
        let places: BTreeMap<&str, usize> =
            report.members.iter().enumerate().map(|(at, one)| (&*one.id, at)).collect();
        let nodes: BTreeMap<&str, &Node> = report.nodes.iter().map(|one| (&*one.member, one)).collect();
        let twig = |member: &'r Member| TreeNode {
            member,
            node: nodes.get(&*member.id).copied(),
            children: Vec::new(),
        };
        let mut twigs: Vec<TreeNode<'r>> = report.members.iter().map(twig).collect();
        let mut roots = Vec::new();
        for (at, member) in report.members.iter().enumerate() {
            match member.parent.as_deref().and_then(|parent| places.get(parent)) {
                Some(parent) => twigs[*parent].children.push(at),
                None => roots.push(at),
            }
        }
        Forest { twigs, roots }
    }

    /// Rows that go down so many levels at most.
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
            while let Some((at, goes_on)) = open.pop() {
                if shown >= MAX_NODES {
                    break;
                }
                // The node that a tree goes on from was shown before.
                shown += usize::from(!(from.is_some() && rows.is_empty()));
                let children = &self.twigs[at].children;
                rows.push(Row {
                    kind: Kind::Node(at),
                    continues: goes_on.clone(),
                    has_children: !children.is_empty(),
                });
                let below = |goes: bool| [&goes_on[..], &[goes]].concat();
                if !children.is_empty() && goes_on.len() + 1 >= deepest {
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
                    open.extend(self.twigs[last].children.first().map(|next| (*next, deeper)));
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

    /// How many report to a member, or to those who do.
    pub(super) fn descendant_count(&self, at: usize) -> usize {
        let (mut open, mut count) = (vec![at], 0);
        while let Some(at) = open.pop() {
            count += self.twigs[at].children.len();
            open.extend(&self.twigs[at].children);
        }
        count
    }

    /// The chain below a node that can be folded: its length, its first and its last.
    fn chain(&self, at: usize) -> Option<(usize, usize, usize)> {
        let [first] = self.twigs[at].children[..] else { return None };
        let (mut length, mut last, mut next) = (0, first, first);
        while self.is_uniform(next, at) {
            (length, last) = (length + 1, next);
            next = self.twigs[next].children[0];
        }
        (length >= MIN_FOLDED_CHAIN).then_some((length, first, last))
    }

    /// Whether a node hands on to one, from one, and as another does.
    fn is_uniform(&self, at: usize, as_one: usize) -> bool {
        let told = |at: usize| {
            let node = self.twigs[at].node;
            (node.map(|node| &*node.status), node.and_then(|node| Some(node.output.as_ref()?.severity)))
        };
        let plain = matches!(told(at).0, None | Some("passed" | "answered" | "not_asked"));
        plain && self.twigs[at].children.len() == 1 && told(at) == told(as_one)
    }
}
