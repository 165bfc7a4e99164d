//! `quorate:ttl_out_of_range`: a lifetime of overlays below or above the limits, which a run replaces by the nearest one (A5).

use quorate_diagnostics::{Body, codes};

use super::governance_exceeded::{length_ms, rule_lifetimes};
use crate::assembly::Mode;
use crate::assembly::audit::OVERLAY_TTL_DAYS;
use crate::assembly::check_context::CheckContext;
use crate::duration::IsoDuration;
use crate::tree::Node;

const DAY_MS: i64 = 86_400_000;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    if view.mode != Mode::Advisory {
        return;
    }
    let (least, most) = (*OVERLAY_TTL_DAYS.start(), *OVERLAY_TTL_DAYS.end());
    let warn = |node: &Node, path: String, ms: i64, text: &str| {
        if (least * DAY_MS..=most * DAY_MS).contains(&ms) {
            return;
        }
        let applies = if ms < least * DAY_MS { format!("{least} day") } else { format!("{most} days") };
        let message =
            format!("overlays hold for {least} to {most} days, and this is {text}: a run uses {applies}");
        let body = Body::new(message).at(view.place(node, path));
        view.warn(codes::TTL_OUT_OF_RANGE, body.help(format!("write a time from P{least}D to P{most}D")));
    };
    if let Some(node) = view.root().at_path(&["audit", "overlays", "defaultTtl"])
        && let Some(Ok(iso)) = node.as_str().map(str::parse::<IsoDuration>)
    {
        warn(node, "audit.overlays.defaultTtl".to_owned(), length_ms(iso), &iso.to_string());
    }
    for (node, path, written) in rule_lifetimes(view) {
        warn(node, path, written.ms, &written.text);
    }
}
