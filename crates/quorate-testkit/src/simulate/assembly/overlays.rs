//! Overlays under a jumping clock: the advice of a simulated run is written repeatedly, and after every write no operator
//! exceeds the cap, no overlay is expired, and each eviction has a reason (A5, A8).

use std::collections::{BTreeMap, BTreeSet};

use quorate_manifest::timestamp;
use quorate_protocol::Json;
use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay, OverlaySet};

use super::super::Simulation;
use super::outcome;
use super::pick;
use crate::rng::Rng;

const DAY_MS: i64 = 86_400_000;
const CAP: usize = 3;

/// Writes the run's advice, for two operators, at twelve times.
pub(super) fn check(seed: u64, simulated: &Simulation) -> Result<(), String> {
    let outcome = outcome(&simulated.history);
    let Some(fragments) = outcome.get("fragments").and_then(Json::as_array) else { return Ok(()) };
    let mut rng = Rng::from_seed_and_name(seed, "overlays");
    let fed_ms = simulated.history.fed.last().map_or(simulated.history.opened_ms, |fed| fed.stamped.at_ms);
    let mut now_ms = fed_ms;
    let mut overlays = OverlaySet::default();
    for write in 0..12 {
        let mut coming = Vec::new();
        for (at, fragment) in fragments.iter().enumerate() {
            let lives_ms = lifetime_ms(fragment, fed_ms)?;
            for operator in ["one", "two"] {
                coming.push(overlay(fragment, write, at, operator, now_ms, lives_ms));
            }
        }
        let evicted = overlays.evictions(&coming, CAP, now_ms);
        check_evictions(&overlays, &coming, &evicted, now_ms)?;
        coming.into_iter().for_each(|overlay| overlays.add(overlay));
        evicted.iter().for_each(|eviction| overlays.evict(&eviction.overlay));
        check_active(&overlays, now_ms)?;
        let leap = i64::try_from(rng.below(20)).unwrap_or(0) * DAY_MS / 4;
        now_ms += if rng.percent(25) { -leap } else { leap };
        // Between two writes, expired overlays are not active either.
        if overlays.active(now_ms).iter().any(|overlay| overlay.expires_ms <= now_ms) {
            return Err("an overlay is active past its time".to_owned());
        }
        if pick(&mut rng, 4) == 0 {
            let swept = overlays.evictions(&[], CAP, now_ms);
            swept.iter().for_each(|eviction| overlays.evict(&eviction.overlay));
            check_active(&overlays, now_ms)?;
        }
    }
    Ok(())
}

/// A5: a fragment is valid for one to thirty days.
fn lifetime_ms(fragment: &Json, fed_ms: i64) -> Result<i64, String> {
    let expires = fragment["expires"].as_str().unwrap_or_default();
    let expires_ms = timestamp::parse(expires).ok_or_else(|| format!("`{expires}` is not a time"))?;
    let lives_ms = expires_ms - fed_ms;
    match (DAY_MS..=30 * DAY_MS).contains(&lives_ms) {
        true => Ok(lives_ms),
        false => Err(format!("a fragment holds for {lives_ms} ms")),
    }
}

fn overlay(fragment: &Json, write: usize, at: usize, operator: &str, now_ms: i64, lives_ms: i64) -> Overlay {
    let text = |key: &str| fragment[key].as_str().unwrap_or_default().to_owned();
    let small = |key: &str| fragment[key].as_u64().and_then(|number| u8::try_from(number).ok()).unwrap_or(0);
    Overlay {
        overlay: format!("o{write:02}{at:02}{operator}"),
        assembly: "simulated".to_owned(),
        operator: operator.to_owned(),
        run: format!("r{write}"),
        member: text("member"),
        rule: text("rule"),
        // Advice that a later run repeats has the same text.
        text: format!("{} ({})", text("text"), write % 5),
        severity: small("severity"),
        priority: small("priority"),
        added_ms: now_ms,
        expires_ms: now_ms + lives_ms,
    }
}

/// A5: after a write no operator has more texts than the cap, and no expired overlay is left.
fn check_active(overlays: &OverlaySet, now_ms: i64) -> Result<(), String> {
    let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for overlay in overlays.all() {
        texts.entry(&overlay.operator).or_default().insert(&overlay.text);
        if !overlay.is_active(now_ms) {
            return Err(format!("{} is over and was not swept", overlay.overlay));
        }
    }
    match texts.values().any(|texts| texts.len() > CAP) {
        true => Err(format!("over the cap: {texts:?}")),
        false => Ok(()),
    }
}

/// A5: an overlay that is evicted for the cap was repeated since, with at least its priority and expiry; or its text is
/// evicted as a whole, and is older than all that stay, or as old with less priority. No overlay is evicted twice.
fn check_evictions(
    overlays: &OverlaySet,
    coming: &[Overlay],
    evicted: &[Eviction],
    now_ms: i64,
) -> Result<(), String> {
    let by_id: BTreeMap<&str, &Overlay> =
        overlays.all().iter().chain(coming).map(|overlay| (overlay.overlay.as_str(), overlay)).collect();
    let mut staying = by_id.clone();
    for eviction in evicted {
        if staying.remove(eviction.overlay.as_str()).is_none() {
            return Err(format!("{} goes twice, or is not there", eviction.overlay));
        }
    }
    for eviction in evicted {
        let evicted_overlay = by_id[eviction.overlay.as_str()];
        let wrong = match eviction.why {
            EvictionReason::Expired => evicted_overlay.is_active(now_ms),
            EvictionReason::Cap => {
                !said_again(&by_id, evicted_overlay) && !is_oldest(&by_id, &staying, evicted_overlay, now_ms)
            }
            EvictionReason::Person => true,
        };
        if wrong {
            return Err(format!("{eviction:?} has no reason to go"));
        }
    }
    Ok(())
}

fn is_same(first: &Overlay, second: &Overlay) -> bool {
    (&first.operator, &first.text) == (&second.operator, &second.text)
}

fn said_again(by_id: &BTreeMap<&str, &Overlay>, evicted: &Overlay) -> bool {
    by_id.values().any(|repeated| {
        is_same(repeated, evicted)
            && repeated.overlay != evicted.overlay
            && repeated.priority >= evicted.priority
            && repeated.expires_ms >= evicted.expires_ms
    })
}

fn is_oldest(
    by_id: &BTreeMap<&str, &Overlay>,
    staying: &BTreeMap<&str, &Overlay>,
    evicted: &Overlay,
    now_ms: i64,
) -> bool {
    let last = |overlay: &Overlay| {
        let all = by_id.values().filter(|same| is_same(same, overlay) && same.is_active(now_ms));
        all.map(|same| (same.added_ms, same.priority)).max()
    };
    let mut stay = staying.values().filter(|kept| kept.operator == evicted.operator);
    stay.all(|kept| !is_same(kept, evicted) && last(kept) >= last(evicted))
}
