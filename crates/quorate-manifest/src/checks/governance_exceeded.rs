//! `quorate:governance_exceeded`: an assembly keeps answers for less time than its governance asks for, or lets advice
//! hold for a shorter or longer time than it allows (D9). The strictest of all files that bind the chain counts, also for
//! what is not written.

use std::cmp::Ordering;

use quorate_diagnostics::{Body, Place, codes};

use crate::assembly::Mode;
use crate::assembly::check_context::CheckContext;
use crate::assembly::load::{default_ttl, retention_days};
use crate::duration::IsoDuration;
use crate::governance::MinimumRetention;
use crate::timestamp;
use crate::tree::Node;

const RETENTION: &[&str] = &["audit", "consultations", "retention"];
const ENABLED: &[&str] = &["audit", "consultations", "enabled"];
const TTL: &[&str] = &["audit", "overlays", "defaultTtl"];

pub(super) fn check(view: &CheckContext<'_, '_>) {
    retention(view);
    if view.mode == Mode::Advisory {
        ttl(view);
    }
}

fn retention(view: &CheckContext<'_, '_>) {
    let audit = view.manifest.audit.as_ref();
    let days = retention_days(audit);
    let kept = audit.and_then(|audit| audit.consultations.as_ref()?.enabled) != Some(false);
    for bound in &view.policies.files {
        let Some((floor, place)) = &bound.governance.minimum_retention else { continue };
        let asked = match floor {
            MinimumRetention::Forever => "for ever".to_owned(),
            MinimumRetention::Days(days) => format!("at least {days} days"),
        };
        let (at, message) = if !kept {
            (ENABLED, format!("answers are not kept, and {} asks to keep them {asked}", bound.file))
        } else if !floor.allows(days) {
            let days = days.unwrap_or_default();
            (RETENTION, format!("answers are kept for {days} days, and {} asks for {asked}", bound.file))
        } else {
            continue;
        };
        let body = Body::new(message)
            .at(written_place(view, at, &bound.bound_at))
            .related(place.clone(), "asked for here");
        view.refuse(codes::GOVERNANCE_EXCEEDED, body.help("keep them longer, or bind other governance"));
    }
}

fn ttl(view: &CheckContext<'_, '_>) {
    let default = default_ttl(view.manifest.audit.as_ref());
    check_ttl(view, default, "overlays hold", &|bound| written_place(view, TTL, bound));
    for (rule, node) in
        view.manifest.synthesis.iter().flat_map(|one| one.rules.iter().flatten()).zip(view.rules())
    {
        let Some(kind) = view.loader.capabilities.rule_kind(&rule.kind) else { continue };
        for param in kind.duration_params {
            let Some(node) = node.at_path(&["params", param]) else { continue };
            let Some(Ok(iso)) = node.as_str().map(str::parse) else { continue };
            let path = format!("synthesis.rules[{}].params.{param}", rule.id);
            check_ttl(view, iso, "overlays of this rule hold", &|_| view.place(node, path.clone()));
        }
    }
}

/// Holds a time that advice holds against every file.
fn check_ttl(view: &CheckContext<'_, '_>, iso: IsoDuration, what: &str, at: &dyn Fn(&Place) -> Place) {
    for bound in &view.policies.files {
        let says = &bound.governance;
        let limits = [(&says.ttl_min, Ordering::Less, "least"), (&says.ttl_max, Ordering::Greater, "most")];
        for (limit, beyond, word) in limits {
            let Some((limit, place)) = limit else { continue };
            if length_ms(iso).cmp(&length_ms(*limit)) == beyond {
                let message = format!("{what} for {iso}, and {} allows at {word} {limit}", bound.file);
                let body = Body::new(message).at(at(&bound.bound_at)).related(place.clone(), "the limit");
                view.refuse(codes::GOVERNANCE_EXCEEDED, body.help("write a time within its limits"));
            }
        }
    }
}

/// How long a duration is that begins with 2026, in milliseconds: months and years have no length of their own.
fn length_ms(iso: IsoDuration) -> i64 {
    const NEW_YEAR_MS: i64 = 1_767_225_600_000;
    timestamp::add_duration(NEW_YEAR_MS, iso) - NEW_YEAR_MS
}

/// Where something is written, or where the file is bound that its default does not fit.
fn written_place(view: &CheckContext<'_, '_>, keys: &[&str], bound: &Place) -> Place {
    let node: Option<&Node> = view.root().at_path(keys);
    node.map_or_else(|| bound.clone(), |node| view.place(node, keys.join(".")))
}
