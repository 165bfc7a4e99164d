//! `quorate:members_missing`: a peer or hierarchy assembly without members. It is a warning, since a parent may leave its
//! members to the views that extend it; `convene` refuses such an assembly. An advisory assembly without members gives no
//! advice, and a voting one is refused when a vote is requested.

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
        "add members: [{id: …, persona: ws://personas/…, role: …}]; or convene a view that has members";
    view.warn(codes::MEMBERS_MISSING, Body::new(message).at(place).help(help));
}
