//! The composed prompt of one agent: what holds is woven, what a locked trait bars is not, and what is in shadow is
//! computed beside it and stands in no prompt (B3, B4, B6).

use quorate_manifest::playbook::Status;

use crate::base::Base;
use crate::lock::{Locks, Touch};
use crate::weave::{Overlay, Skipped, Why, Woven, weave};

/// A playbook that is for an agent, held against its locked traits.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What would be woven.
    pub overlay: Overlay,
    /// Whether it is to be.
    pub status: Status,
    /// The slugs of those that it takes the place of.
    pub supersedes: Vec<String>,
    /// The locked traits that it touches.
    pub touches: Vec<Touch>,
}

/// A prompt, and what might be one.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// What the agent is told.
    pub woven: Woven,
    /// What it would be told with each of the playbooks in shadow, which it never is.
    pub shadows: Vec<Shadow>,
}

/// A prompt that nobody is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow {
    /// The playbook's slug.
    pub id: String,
    /// The prompt with it; or why it would not be woven.
    pub prompt: Result<String, Why>,
}

/// Composes. `advice` are the overlays of advisory runs; `locks` are those of the agent, which they are held against,
/// too.
pub fn compose(
    base: &Base,
    candidates: &[Candidate],
    advice: &[Overlay],
    locks: &Locks,
    now_ms: i64,
) -> Composed {
    let mut barred = Vec::new();
    let mut overlays = Vec::new();
    for advice in advice {
        match locks.check(&advice.text).into_iter().next() {
            Some(touch) => barred.push(skipped(advice, touch)),
            None => overlays.push(advice.clone()),
        }
    }
    for one in candidates.iter().filter(|one| one.status == Status::Active) {
        match one.touches.first() {
            Some(touch) => barred.push(skipped(&one.overlay, touch.clone())),
            None => overlays.push(one.overlay.clone()),
        }
    }
    let mut woven = weave(base, &overlays, now_ms);
    woven.skipped.splice(0..0, barred);
    let shadows = candidates.iter().filter(|one| one.status == Status::Shadow);
    let shadows = shadows.map(|one| Shadow {
        id: one.overlay.id.clone(),
        prompt: counterfactual(base, one, &overlays, now_ms),
    });
    Composed { shadows: shadows.collect(), woven }
}

/// The prompt as it would be if a playbook held, and what it takes the place of did not.
fn counterfactual(base: &Base, one: &Candidate, overlays: &[Overlay], now_ms: i64) -> Result<String, Why> {
    if let Some(touch) = one.touches.first() {
        return Err(Why::Locked(Box::new(touch.clone())));
    }
    let stays = |other: &&Overlay| !one.supersedes.contains(&other.id);
    let mut overlays: Vec<Overlay> = overlays.iter().filter(stays).cloned().collect();
    overlays.push(one.overlay.clone());
    let with = weave(base, &overlays, now_ms);
    match with.skipped.into_iter().find(|other| other.id == one.overlay.id) {
        Some(skipped) => Err(skipped.why),
        None => Ok(with.prompt),
    }
}

fn skipped(overlay: &Overlay, touch: Touch) -> Skipped {
    Skipped { id: overlay.id.clone(), why: Why::Locked(Box::new(touch)) }
}
