//! Infers the order of a server's messages from their times, since the server does not declare it.

use super::message::Message;

/// Which message of a page comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Direction {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// The order of a page by its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageOrder {
    /// All times are ordered in this direction.
    Direction(Direction),
    /// All times are equal.
    Equal,
    /// The times are not ordered.
    Mixed,
}

pub(super) fn page_order(messages: &[Message]) -> PageOrder {
    let pairs = || messages.iter().zip(messages.iter().skip(1));
    let ups = pairs().any(|(message, next)| message.at_ms < next.at_ms);
    let downs = pairs().any(|(message, next)| message.at_ms > next.at_ms);
    match (ups, downs) {
        (true, false) => PageOrder::Direction(Direction::OldestFirst),
        (false, true) => PageOrder::Direction(Direction::NewestFirst),
        (false, false) => PageOrder::Equal,
        (true, true) => PageOrder::Mixed,
    }
}

/// Sorts a page oldest first, given the server's direction as known so far.
pub(super) fn sort_oldest_first(messages: &mut [Message], known: Direction) -> PageOrder {
    let order = page_order(messages);
    let direction = match order {
        PageOrder::Direction(direction) => direction,
        PageOrder::Equal | PageOrder::Mixed => known,
    };
    if direction == Direction::NewestFirst {
        messages.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::{Direction, PageOrder, sort_oldest_first};
    use crate::substrate::guilde_mcp::message::Message;

    fn page(times: &[i64]) -> Vec<Message> {
        let message = |(index, at_ms): (usize, &i64)| Message {
            id: format!("m{index}"),
            authors: vec!["u".into()],
            content: String::new(),
            timestamp: String::new(),
            at_ms: *at_ms,
            metadata: serde_json::Map::new(),
        };
        times.iter().enumerate().map(message).collect()
    }

    fn settled(times: &[i64], known: Direction) -> (PageOrder, Vec<String>) {
        let mut page = page(times);
        (sort_oldest_first(&mut page, known), page.into_iter().map(|message| message.id).collect())
    }

    #[test]
    fn times_tell_the_direction_and_equal_times_follow_it() {
        use Direction::{NewestFirst, OldestFirst};
        assert_eq!(settled(&[1, 1, 2], NewestFirst), (PageOrder::Direction(OldestFirst), names(&[0, 1, 2])));
        assert_eq!(settled(&[2, 1, 1], OldestFirst), (PageOrder::Direction(NewestFirst), names(&[2, 1, 0])));
        assert_eq!(settled(&[1, 1], NewestFirst), (PageOrder::Equal, names(&[1, 0])));
        assert_eq!(settled(&[1, 1], OldestFirst), (PageOrder::Equal, names(&[0, 1])));
        assert_eq!(settled(&[1, 3, 2], OldestFirst), (PageOrder::Mixed, names(&[0, 1, 2])));
    }

    fn names(order: &[usize]) -> Vec<String> {
        order.iter().map(|index| format!("m{index}")).collect()
    }
}
