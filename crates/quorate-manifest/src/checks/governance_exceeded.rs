//! `quorate:governance_exceeded`: an assembly keeps answers for less time than its governance asks for, or lets advice
//! hold for a shorter or longer time than it allows (D9). The strictest of all files that bind the chain counts, also for
//! what is not written.

use std::cmp::Ordering;

use quorate_diagnostics::{Body, Place, codes};

use crate::assembly::Mode;
use crate::assembly::load::{default_ttl, retention_days};
use crate::assembly::view::View;
use crate::duration::Iso;
use crate::governance::Floor;
use crate::timestamp;
use crate::tree::Node;

const RETENTION: &[&str] = &["audit", "consultations", "retention"];
const ENABLED: &[&str] = &["audit", "consultations", "enabled"];
const TTL: &[&str] = &["audit", "overlays", "defaultTtl"];

pub(super) fn check(view: &View<'_, '_>) {
    retention(view);
    if view.mode == Mode::Advisory {
        ttl(view);
    }
}

fn retention(view: &View<'_, '_>) {
    let audit = view.written.audit.as_ref();
    let days = retention_days(audit);
    let kept = audit.and_then(|audit| audit.consultations.as_ref()?.enabled) != Some(false);
    for bound in &view.policies.bound {
        let Some((floor, place)) = &bound.says.floor else { continue };
        let asked = match floor {
            Floor::Forever => "for ever".to_owned(),
            Floor::Days(days) => format!("at least {days} days"),
        };
        let (at, message) = if !kept {
            (ENABLED, format!("answers are not kept, and {} asks to keep them {asked}", bound.file))
        } else if !floor.allows(days) {
            let days = days.unwrap_or_default();
            (RETENTION, format!("answers are kept for {days} days, and {} asks for {asked}", bound.file))
        } else {
            continue;
        };
        let body =
            Body::new(message).at(written(view, at, &bound.at)).related(place.clone(), "asked for here");
        view.refuse(codes::GOVERNANCE_EXCEEDED, body.help("keep them longer, or bind other governance"));
    }
}

fn ttl(view: &View<'_, '_>) {
    let default = default_ttl(view.written.audit.as_ref());
    hold(view, default, "overlays hold", &|bound| written(view, TTL, bound));
    for (rule, node) in
        view.written.synthesis.iter().flat_map(|one| one.rules.iter().flatten()).zip(view.rules())
    {
        let Some(kind) = view.round.host.rule(&rule.kind) else { continue };
        for param in kind.durations {
            let Some(node) = node.at(&["params", param]) else { continue };
            let Some(Ok(iso)) = node.as_str().map(str::parse) else { continue };
            let path = format!("synthesis.rules[{}].params.{param}", rule.id);
            hold(view, iso, "overlays of this rule hold", &|_| view.place(node, path.clone()));
        }
    }
}

/// Holds a time that advice holds against every file.
fn hold(view: &View<'_, '_>, iso: Iso, what: &str, at: &dyn Fn(&Place) -> Place) {
    for bound in &view.policies.bound {
        let says = &bound.says;
        let limits = [(&says.ttl_min, Ordering::Less, "least"), (&says.ttl_max, Ordering::Greater, "most")];
        for (limit, beyond, word) in limits {
            let Some((limit, place)) = limit else { continue };
            if length_ms(iso).cmp(&length_ms(*limit)) == beyond {
                let message = format!("{what} for {iso}, and {} allows at {word} {limit}", bound.file);
                let body = Body::new(message).at(at(&bound.at)).related(place.clone(), "the limit");
                view.refuse(codes::GOVERNANCE_EXCEEDED, body.help("write a time within its limits"));
            }
        }
    }
}

/// How long a duration is that begins with 2026, in milliseconds: months and years have no length of their own.
fn length_ms(iso: Iso) -> i64 {
    const NEW_YEAR_MS: i64 = 1_767_225_600_000;
    timestamp::after(NEW_YEAR_MS, iso) - NEW_YEAR_MS
}

/// Where something is written, or where the file is bound that its default does not fit.
fn written(view: &View<'_, '_>, keys: &[&str], bound: &Place) -> Place {
    let node: Option<&Node> = view.root().at(keys);
    node.map_or_else(|| bound.clone(), |node| view.place(node, keys.join(".")))
}
