//! Which peers reached which, and their objections.

use quorate::service::convene::report::{Message, Report};

/// How many messages each peer sent to each other one, and to all in reach.
pub(super) struct Reach {
    pub(super) members: Vec<String>,
    pub(super) rows: Vec<(String, Vec<usize>, usize)>,
}

/// `None` without a message.
pub(super) fn reach(report: &Report) -> Option<Reach> {
    if report.messages.is_empty() {
        return None;
    }
    let members: Vec<String> = report.members.iter().map(|member| member.id.clone()).collect();
    let names =
        |message: &Message, id: &str| message.to.as_ref().is_some_and(|to| to.iter().any(|one| one == id));
    let row = |from: &String| {
        let sent: Vec<&Message> = report.messages.iter().filter(|message| message.from == *from).collect();
        let counts =
            members.iter().map(|id| sent.iter().filter(|message| names(message, id)).count()).collect();
        (from.clone(), counts, sent.iter().filter(|message| message.to.is_none()).count())
    };
    Some(Reach { rows: members.iter().map(row).collect(), members })
}

/// Each member's last objection: the round, and what became of it. Open ones come first.
pub(super) fn objections(report: &Report) -> Vec<(String, u64, String)> {
    let mut all: Vec<_> = report.objections.iter().collect();
    all.sort_by_key(|objection| (objection.taken_back, objection.answered, objection.round));
    let shown = all.into_iter().map(|objection| {
        let state = match (objection.taken_back, objection.answered) {
            (true, _) => "taken back",
            (false, true) => "open, answered",
            (false, false) => "open, not answered",
        };
        (objection.member.clone(), objection.round, state.to_owned())
    });
    shown.collect()
}
