//! The stream of overlays under a clock that leaps: what a simulated run has advised is written again and again, and at
//! every write nobody is over the cap, past its time, or gone without a reason (A5, A8).

use std::collections::{BTreeMap, BTreeSet};

use quorate_manifest::timestamp;
use quorate_protocol::Json;
use quorate_protocol::overlay::{Eviction, EvictionReason, Overlay, OverlaySet};

use super::super::Simulation;
use super::outcome;
use super::world::pick;
use crate::rng::Rng;

const DAY_MS: i64 = 86_400_000;
const CAP: usize = 3;

/// Writes what the run advised, for two operators, at twelve times.
pub(super) fn check(seed: u64, simulated: &Simulation) -> Result<(), String> {
    let outcome = outcome(&simulated.history);
    let Some(fragments) = outcome.get("fragments").and_then(Json::as_array) else { return Ok(()) };
    let mut chance = Rng::from_seed_and_name(seed, "overlays");
    let fed_ms = simulated.history.fed.last().map_or(simulated.history.opened_ms, |fed| fed.stamped.at_ms);
    let mut now_ms = fed_ms;
    let mut standing = OverlaySet::default();
    for write in 0..12 {
        let mut coming = Vec::new();
        for (at, fragment) in fragments.iter().enumerate() {
            let lives_ms = lifetime_ms(fragment, fed_ms)?;
            for operator in ["one", "two"] {
                coming.push(overlay(fragment, write, at, operator, now_ms, lives_ms));
            }
        }
        let evicted = standing.evictions(&coming, CAP, now_ms);
        check_evictions(&standing, &coming, &evicted, now_ms)?;
        coming.into_iter().for_each(|one| standing.add(one));
        evicted.iter().for_each(|one| standing.evict(&one.overlay));
        check_active(&standing, now_ms)?;
        let leap = i64::try_from(chance.below(20)).unwrap_or(0) * DAY_MS / 4;
        now_ms += if chance.percent(25) { -leap } else { leap };
        // What is read between two writes is never past its time either.
        if standing.active(now_ms).iter().any(|one| one.expires_ms <= now_ms) {
            return Err("an overlay is active past its time".to_owned());
        }
        if pick(&mut chance, 4) == 0 {
            let swept = standing.evictions(&[], CAP, now_ms);
            swept.iter().for_each(|one| standing.evict(&one.overlay));
            check_active(&standing, now_ms)?;
        }
    }
    Ok(())
}

/// A5: a fragment holds for one to thirty days from what it follows from.
fn lifetime_ms(fragment: &Json, fed_ms: i64) -> Result<i64, String> {
    let expires = fragment["expires"].as_str().unwrap_or_default();
    let expires_ms = timestamp::parse(expires).ok_or_else(|| format!("`{expires}` is no time"))?;
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
        // What is advised again a few runs later is the same piece of advice.
        text: format!("{} ({})", text("text"), write % 5),
        severity: small("severity"),
        priority: small("priority"),
        added_ms: now_ms,
        expires_ms: now_ms + lives_ms,
    }
}

/// A5: after a write nobody has more texts than the cap, and nothing that is over is left.
fn check_active(standing: &OverlaySet, now_ms: i64) -> Result<(), String> {
    let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in standing.all() {
        texts.entry(&one.operator).or_default().insert(&one.text);
        if !one.is_active(now_ms) {
            return Err(format!("{} is over and was not swept", one.overlay));
        }
    }
    match texts.values().any(|texts| texts.len() > CAP) {
        true => Err(format!("over the cap: {texts:?}")),
        false => Ok(()),
    }
}

/// A5: what goes for the cap was said again since, as weightily and for as long; or its text goes as a whole, and is older
/// than all that stay, or as old and less weighty. Nothing goes twice.
fn check_evictions(
    standing: &OverlaySet,
    coming: &[Overlay],
    evicted: &[Eviction],
    now_ms: i64,
) -> Result<(), String> {
    let known: BTreeMap<&str, &Overlay> =
        standing.all().iter().chain(coming).map(|one| (one.overlay.as_str(), one)).collect();
    let mut staying = known.clone();
    for one in evicted {
        if staying.remove(one.overlay.as_str()).is_none() {
            return Err(format!("{} goes twice, or is not there", one.overlay));
        }
    }
    for one in evicted {
        let gone = known[one.overlay.as_str()];
        let wrong = match one.why {
            EvictionReason::Expired => gone.is_active(now_ms),
            EvictionReason::Cap => !said_again(&known, gone) && !is_oldest(&known, &staying, gone, now_ms),
            EvictionReason::Person => true,
        };
        if wrong {
            return Err(format!("{one:?} has no reason to go"));
        }
    }
    Ok(())
}

fn is_same(one: &Overlay, other: &Overlay) -> bool {
    (&one.operator, &one.text) == (&other.operator, &other.text)
}

fn said_again(known: &BTreeMap<&str, &Overlay>, gone: &Overlay) -> bool {
    known.values().any(|other| {
        is_same(other, gone)
            && other.overlay != gone.overlay
            && other.priority >= gone.priority
            && other.expires_ms >= gone.expires_ms
    })
}

fn is_oldest(
    known: &BTreeMap<&str, &Overlay>,
    staying: &BTreeMap<&str, &Overlay>,
    gone: &Overlay,
    now_ms: i64,
) -> bool {
    let last = |of: &Overlay| {
        let all = known.values().filter(|one| is_same(one, of) && one.is_active(now_ms));
        all.map(|one| (one.added_ms, one.priority)).max()
    };
    let mut stay = staying.values().filter(|other| other.operator == gone.operator);
    stay.all(|other| !is_same(other, gone) && last(other) >= last(gone))
}
