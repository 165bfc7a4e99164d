//! `quorate:members_missing`: an assembly of equals, or a tree that reports upwards, in which nobody sits. Advice that
//! nobody gives is empty and a vote without voters is refused when it is asked for; here there is nothing to begin with. It is
//! a warning, since a parent may leave its members to the views that extend it; whoever convenes it is refused.

use quorate_diagnostics::{Body, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if !matches!(view.mode, Mode::Peer | Mode::Hierarchy) || !view.members().is_empty() {
        return;
    }
    let message = format!("an assembly in {} mode without members cannot be convened", view.mode.as_str());
    let place = match view.root().entry("members") {
        Some(_) => view.key_place(view.root(), "members", "members"),
        None => view.value_place(view.root(), "mode", "mode"),
    };
    let help =
        "list them: members: [{id: …, persona: ws://personas/…, role: …}]; or convene a view that does";
    view.warn(codes::MEMBERS_MISSING, Body::new(message).at(place).help(help));
}
