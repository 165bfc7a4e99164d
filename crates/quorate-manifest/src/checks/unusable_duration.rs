//! `quorate:duration`: a duration that matches the schema's pattern but is not usable.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;
use crate::duration::IsoDuration;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let Some(node) = view.root().at_path(&["audit", "overlays", "defaultTtl"]) else { return };
    let Some(Err(error)) = node.as_str().map(str::parse::<IsoDuration>) else { return };
    let place = view.place(node, "audit.overlays.defaultTtl");
    let body = Body::new(format!("`audit.overlays.defaultTtl` is not a usable duration: {error}"));
    view.refuse(codes::DURATION, body.at(place).help("write it like P14D"));
}
