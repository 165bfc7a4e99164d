//! The order in which a server lists the messages of a page. A server does not declare it, so it follows from the server's
//! answers to further requests, never from the messages' times: clocks differ, and several messages may share a second
//! (K17).

use std::sync::OnceLock;

/// The values of the block's key `order`.
const NEWEST_FIRST: &str = "newest-first";
const OLDEST_FIRST: &str = "oldest-first";

/// Which message of a page comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    OldestFirst,
    NewestFirst,
}

impl Direction {
    /// The direction that a manifest names.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            NEWEST_FIRST => Some(Direction::NewestFirst),
            OLDEST_FIRST => Some(Direction::OldestFirst),
            _ => None,
        }
    }
}

/// The kinds of pages; a server may list them in different directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// The messages after one.
    After,
    /// The newest messages, or those before one.
    Newest,
}

/// The directions, as far as known. They stay the same as long as the process.
#[derive(Debug, Default)]
pub(super) struct ListingOrder {
    after: OnceLock<Direction>,
    newest: OnceLock<Direction>,
}

impl ListingOrder {
    /// The order that a manifest declares; `None` asks the server.
    pub(super) fn new(declared: Option<Direction>) -> Self {
        let order = ListingOrder::default();
        if let Some(direction) = declared {
            order.set(PageKind::After, direction);
            order.set(PageKind::Newest, direction);
        }
        order
    }

    pub(super) fn get(&self, kind: PageKind) -> Option<Direction> {
        self.cell(kind).get().copied()
    }

    pub(super) fn set(&self, kind: PageKind, direction: Direction) {
        self.cell(kind).get_or_init(|| direction);
    }

    fn cell(&self, kind: PageKind) -> &OnceLock<Direction> {
        match kind {
            PageKind::After => &self.after,
            PageKind::Newest => &self.newest,
        }
    }
}

/// The direction of a page, given the messages after the page's first one.
pub(super) fn from_later<T: PartialEq>(page: &[T], after_first: &[T]) -> Direction {
    match page.iter().skip(1).any(|message| after_first.contains(message)) {
        true => Direction::OldestFirst,
        false => Direction::NewestFirst,
    }
}

/// The direction of the two newest messages, given the newest one; `None` if another message came between the requests.
pub(super) fn from_newest<T: PartialEq>(pair: &[T], newest: &[T]) -> Option<Direction> {
    match (pair, newest) {
        ([first, _], [newest]) if first == newest => Some(Direction::NewestFirst),
        ([_, last], [newest]) if last == newest => Some(Direction::OldestFirst),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{NewestFirst, OldestFirst};
    use super::{from_later, from_newest};

    #[test]
    fn the_servers_answers_tell_the_direction() {
        // K17
        assert_eq!(from_later(&["a", "b", "c"], &["b"]), OldestFirst);
        assert_eq!(from_later(&["c", "b", "a"], &[]), NewestFirst);
        assert_eq!(from_later(&["c", "b", "a"], &["d"]), NewestFirst, "a new message");
        assert_eq!(from_newest(&["c", "b"], &["c"]), Some(NewestFirst));
        assert_eq!(from_newest(&["b", "c"], &["c"]), Some(OldestFirst));
        assert_eq!(from_newest(&["b", "c"], &["d"]), None);
        assert_eq!(from_newest(&["b", "c"], &["b", "c"]), None, "a server that ignores the limit");
    }
}
