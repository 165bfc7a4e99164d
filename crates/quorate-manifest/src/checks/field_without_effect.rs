//! `quorate:field_without_effect`: a member's field that belongs to another mode (M16).

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::view::View;

/// Fields of members, and the one mode in which each means something.
const FIELDS: [(&str, Mode); 5] = [
    ("phase", Mode::Advisory),
    ("triggers", Mode::Advisory),
    ("weight", Mode::Voting),
    ("voteClass", Mode::Voting),
    ("parent", Mode::Hierarchy),
];

pub(super) fn check(view: &View<'_, '_>) {
    for (at, member) in view.members().iter().enumerate() {
        for (field, mode) in FIELDS {
            if mode == view.mode || member.key(field).is_none() {
                continue;
            }
            let message = format!("`{field}` means nothing in {} mode", view.mode.word());
            let place = view.key_place(member, field, format!("members[{at}].{field}"));
            let help = format!("take it out; it is a field of {} mode", mode.word());
            view.warn(codes::FIELD_WITHOUT_EFFECT, Body::new(message).at(place).help(help));
        }
    }
}
