//! What a member has to do with an item.

/// What a member has to do with an item, the heaviest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stance {
    RedLine,
    Refuses,
    /// It sends people elsewhere with it.
    Redirects,
    /// It leaves it to specialists.
    Defers,
    Watches,
    /// It asks whether a text says something about it.
    Asks,
}

impl Stance {
    pub(super) fn weight(self) -> u8 {
        match self {
            Stance::RedLine => 9,
            Stance::Refuses => 7,
            Stance::Redirects => 5,
            Stance::Defers => 4,
            Stance::Watches => 3,
            Stance::Asks => 0,
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Stance::RedLine => "a red line",
            Stance::Refuses => "a thing to refuse",
            Stance::Redirects | Stance::Defers => "a matter for specialists",
            Stance::Watches => "a thing to watch for",
            Stance::Asks => "a thing to ask about",
        }
    }

    /// Whether others are to judge it.
    pub(super) fn is_for_others(self) -> bool {
        matches!(self, Stance::Redirects | Stance::Defers)
    }
}
