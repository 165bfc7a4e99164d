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
use crate::tree::{Kind, Node};

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
    let written = Lifetime { ms: length_ms(default), text: default.to_string() };
    check_ttl(view, &written, "overlays hold", &|bound| written_place(view, TTL, bound));
    for (node, path, written) in rule_lifetimes(view) {
        check_ttl(view, &written, "overlays of this rule hold", &|_| view.place(node, path.clone()));
    }
}

/// A lifetime of overlays.
pub(super) struct Lifetime {
    pub(super) ms: i64,
    pub(super) text: String,
}

/// The lifetimes that rules write, each with its value and path.
pub(super) fn rule_lifetimes<'r>(view: &CheckContext<'r, '_>) -> Vec<(&'r Node, String, Lifetime)> {
    let mut lifetimes = Vec::new();
    for (at, rule) in view.rules().iter().enumerate() {
        let kind = rule.key("kind").and_then(Node::as_str);
        let Some(kind) = kind.and_then(|kind| view.loader.capabilities.rule_kind(kind)) else { continue };
        let mut add = |param: &str, length: &dyn Fn(&Node) -> Option<Lifetime>| {
            let Some(node) = rule.at_path(&["params", param]) else { return };
            let path = format!("synthesis.rules[{at}].params.{param}");
            lifetimes.extend(length(node).map(|written| (node, path, written)));
        };
        for param in kind.duration_params {
            add(param, &|node| {
                let iso: IsoDuration = node.as_str()?.parse().ok()?;
                Some(Lifetime { ms: length_ms(iso), text: iso.to_string() })
            });
        }
        for param in kind.millisecond_params {
            add(param, &|node| {
                let ms = match &node.kind {
                    Kind::Int(ms) => *ms,
                    Kind::Float(float) => float.to_integer()?,
                    _ => return None,
                };
                Some(Lifetime { ms, text: format!("{ms} ms") })
            });
        }
    }
    lifetimes
}

/// Checks the lifetime of overlays against the limits of every governance file.
fn check_ttl(view: &CheckContext<'_, '_>, written: &Lifetime, what: &str, at: &dyn Fn(&Place) -> Place) {
    for bound in &view.policies.files {
        let governance = &bound.governance;
        let limits = [
            (&governance.ttl_min, Ordering::Less, "least"),
            (&governance.ttl_max, Ordering::Greater, "most"),
        ];
        for (limit, beyond, word) in limits {
            let Some((limit, place)) = limit else { continue };
            if written.ms.cmp(&length_ms(*limit)) == beyond {
                let message =
                    format!("{what} for {}, and {} allows at {word} {limit}", written.text, bound.file);
                let body = Body::new(message).at(at(&bound.bound_at)).related(place.clone(), "the limit");
                view.refuse(codes::GOVERNANCE_EXCEEDED, body.help("write a time within its limits"));
            }
        }
    }
}

/// The length of a duration in milliseconds, counted from 2026-01-01, since months and years vary in length.
pub(super) fn length_ms(iso: IsoDuration) -> i64 {
    const NEW_YEAR_MS: i64 = 1_767_225_600_000;
    timestamp::add_duration(NEW_YEAR_MS, iso) - NEW_YEAR_MS
}

/// The place of a value; for a default value, the place that binds the governance file.
fn written_place(view: &CheckContext<'_, '_>, keys: &[&str], bound: &Place) -> Place {
    let node: Option<&Node> = view.root().at_path(keys);
    node.map_or_else(|| bound.clone(), |node| view.place(node, keys.join(".")))
}
