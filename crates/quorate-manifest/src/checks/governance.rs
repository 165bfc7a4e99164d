//! Checks of an assembly against its governance (D9): how long answers are kept, how long overlays live, and the keys that a
//! view binds. Every governance file that a chain binds applies, also to default values. The root decides who signs for an
//! assembly; a view may only remove keys.
//!
//! A lifetime of overlays outside of the general limits gets a warning, since a run uses the nearest limit (A5).

use std::cmp::Ordering;

use quorate_diagnostics::{Body, Place, codes};

use super::CheckContext;
use crate::assembly::{Mode, OVERLAY_TTL_DAYS, default_ttl, retention_days};
use crate::duration::IsoDuration;
use crate::governance::MinimumRetention;
use crate::timestamp;
use crate::tree::Node;

const RETENTION: &[&str] = &["audit", "consultations", "retention"];
const ENABLED: &[&str] = &["audit", "consultations", "enabled"];
const TTL: &[&str] = &["audit", "overlays", "defaultTtl"];

pub(super) fn check_governance_limits(view: &CheckContext<'_, '_>) {
    check_retention(view);
    if view.mode == Mode::Advisory {
        check_overlay_ttl(view);
    }
}

fn check_retention(view: &CheckContext<'_, '_>) {
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

fn check_overlay_ttl(view: &CheckContext<'_, '_>) {
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
        let Some(kind) = view.kind_of(rule) else { continue };
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
                let ms = node.integer()?;
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

pub(super) fn check_widened_governance(view: &CheckContext<'_, '_>) {
    let with_keys =
        view.policies.files.iter().filter_map(|file| Some((file, file.governance.keys.as_ref()?)));
    let pairs: Vec<_> = with_keys.collect();
    for ((above, allowed), (below, keys)) in pairs.iter().zip(pairs.iter().skip(1)) {
        for key in keys.iter().filter(|key| !allowed.iter().any(|other| other.public == key.public)) {
            let message = format!("{} has a key that {} does not have", below.file, above.file);
            let body = Body::new(message)
                .at(below.bound_at.clone())
                .related(key.place.clone(), "this key")
                .related(above.bound_at.clone(), "an ancestor binds its keys here")
                .help("remove the key, or add it to the ancestor's governance file");
            view.refuse(codes::GOVERNANCE_WIDENED, body);
        }
    }
}

const DAY_MS: i64 = 86_400_000;

pub(super) fn check_overlay_ttl_range(view: &CheckContext<'_, '_>) {
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
