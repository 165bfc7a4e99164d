//! `quorate:governance_exceeded`: an assembly keeps answers for less time than its governance requires, or its overlays
//! live for a shorter or longer time than allowed (D9). Every file that a chain binds applies, also to default values.

use std::cmp::Ordering;

use quorate_diagnostics::{Body, Place, codes};

use crate::assembly::Mode;
use crate::assembly::audit::{default_ttl, retention_days};
use crate::assembly::check_context::CheckContext;
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
    let answers_kept = audit.and_then(|audit| audit.consultations.as_ref()?.enabled) != Some(false);
    for bound in &view.policies.files {
        let Some((minimum, place)) = &bound.governance.minimum_retention else { continue };
        let required = match minimum {
            MinimumRetention::Forever => "for ever".to_owned(),
            MinimumRetention::Days(days) => format!("at least {days} days"),
        };
        let (at, message) = if !answers_kept {
            (ENABLED, format!("answers are not kept, and {} requires keeping them {required}", bound.file))
        } else if !minimum.allows(days) {
            let days = days.unwrap_or_default();
            (RETENTION, format!("answers are kept for {days} days, and {} requires {required}", bound.file))
        } else {
            continue;
        };
        let body = Body::new(message)
            .at(written_place(view, at, &bound.bound_at))
            .related(place.clone(), "required here");
        view.refuse(
            codes::GOVERNANCE_EXCEEDED,
            body.help("keep answers longer, or bind another governance file"),
        );
    }
}

fn ttl(view: &CheckContext<'_, '_>) {
    let default = default_ttl(view.manifest.audit.as_ref());
    check_ttl(view, default, "overlays hold", &|bound| written_place(view, TTL, bound));
    for (rule, node) in view
        .manifest
        .synthesis
        .iter()
        .flat_map(|synthesis| synthesis.rules.iter().flatten())
        .zip(view.rules())
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

/// Checks the lifetime of overlays against the limits of every governance file.
fn check_ttl(view: &CheckContext<'_, '_>, iso: IsoDuration, what: &str, at: &dyn Fn(&Place) -> Place) {
    for bound in &view.policies.files {
        let governance = &bound.governance;
        let limits = [
            (&governance.ttl_min, Ordering::Less, "least"),
            (&governance.ttl_max, Ordering::Greater, "most"),
        ];
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

/// The length of a duration in milliseconds, counted from 2026-01-01, since months and years vary in length.
fn length_ms(iso: IsoDuration) -> i64 {
    const NEW_YEAR_MS: i64 = 1_767_225_600_000;
    timestamp::add_duration(NEW_YEAR_MS, iso) - NEW_YEAR_MS
}

/// The place of a value; for a default value, the place that binds the governance file.
fn written_place(view: &CheckContext<'_, '_>, keys: &[&str], bound: &Place) -> Place {
    let node: Option<&Node> = view.root().at_path(keys);
    node.map_or_else(|| bound.clone(), |node| view.place(node, keys.join(".")))
}
