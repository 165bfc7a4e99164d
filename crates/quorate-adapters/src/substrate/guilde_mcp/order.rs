//! In which order a server gives its messages: it does not say, but they bear times.

use super::message::Message;

/// Which message of a page comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Direction {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// What the times of a page say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// In this direction, all of them.
    Direction(Direction),
    /// Nothing: they are all the same.
    Nothing,
    /// They go to and fro.
    Neither,
}

/// What the times of a page say about its direction.
pub(super) fn told(messages: &[Message]) -> Told {
    let pairs = || messages.iter().zip(messages.iter().skip(1));
    let ups = pairs().any(|(one, next)| one.at_ms < next.at_ms);
    let downs = pairs().any(|(one, next)| one.at_ms > next.at_ms);
    match (ups, downs) {
        (true, false) => Told::Direction(Direction::OldestFirst),
        (false, true) => Told::Direction(Direction::NewestFirst),
        (false, false) => Told::Nothing,
        (true, true) => Told::Neither,
    }
}

/// Puts a page oldest first, given the direction that the server is known to have.
pub(super) fn settle(messages: &mut [Message], known: Direction) -> Told {
    let told = told(messages);
    let direction = match told {
        Told::Direction(direction) => direction,
        Told::Nothing | Told::Neither => known,
    };
    if direction == Direction::NewestFirst {
        messages.reverse();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::{Direction, Told, settle};
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

    fn settled(times: &[i64], known: Direction) -> (Told, Vec<String>) {
        let mut page = page(times);
        (settle(&mut page, known), page.into_iter().map(|one| one.id).collect())
    }

    #[test]
    fn times_tell_the_direction_and_equal_times_follow_it() {
        use Direction::{NewestFirst, OldestFirst};
        assert_eq!(settled(&[1, 1, 2], NewestFirst), (Told::Direction(OldestFirst), names(&[0, 1, 2])));
        assert_eq!(settled(&[2, 1, 1], OldestFirst), (Told::Direction(NewestFirst), names(&[2, 1, 0])));
        assert_eq!(settled(&[1, 1], NewestFirst), (Told::Nothing, names(&[1, 0])));
        assert_eq!(settled(&[1, 1], OldestFirst), (Told::Nothing, names(&[0, 1])));
        assert_eq!(settled(&[1, 3, 2], OldestFirst), (Told::Neither, names(&[0, 1, 2])));
    }

    fn names(order: &[usize]) -> Vec<String> {
        order.iter().map(|index| format!("m{index}")).collect()
    }
}
