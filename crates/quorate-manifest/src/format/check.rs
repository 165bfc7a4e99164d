//! Compares a formatted text with the original.

use std::collections::HashMap;

use granit_parser::{self as yaml, Event, Parser};

use crate::tree::{self, Kind, Node};

/// Whether both parse as the same tree, up to the order of keys, and have the same comments.
pub(super) fn is_equivalent(before: &str, root: &Node, after: &str) -> bool {
    let (Some(formatted), problems) = tree::yaml::parse(after) else { return false };
    let comments = comments(before);
    problems.is_empty()
        && values_equal(root, &formatted)
        && comments.is_some()
        && comments == self::comments(after)
}

fn values_equal(node: &Node, other: &Node) -> bool {
    match (&node.kind, &other.kind) {
        (Kind::Seq(node), Kind::Seq(other)) => {
            node.len() == other.len() && node.iter().zip(other).all(|(node, other)| values_equal(node, other))
        }
        (Kind::Map(node), Kind::Map(other)) => {
            let values: HashMap<_, _> = other.iter().map(|entry| (&entry.key, &entry.value)).collect();
            let same = |key, value| values.get(key).is_some_and(|other| values_equal(value, other));
            node.len() == other.len() && node.iter().all(|entry| same(&entry.key, &entry.value))
        }
        (node, other) => node == other,
    }
}

/// The comments, sorted; `None` if they cannot be determined.
pub(super) fn comments(text: &str) -> Option<Vec<String>> {
    let options = yaml::options! { emit_comments: true, max_buffered_comment_events: text.len() };
    let mut comments = Vec::new();
    for event in Parser::new_from_str_with_options(text, options) {
        if let (Event::Comment(comment, _), _) = event.ok()? {
            comments.push(comment.trim_end().to_owned());
        }
    }
    comments.sort_unstable();
    Some(comments)
}
