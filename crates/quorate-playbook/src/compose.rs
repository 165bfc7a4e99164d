//! Composes the prompt of one agent: weaves active playbooks, leaves out what a locked trait bars, and computes shadow
//! playbooks beside it (B3, B4, B6).

use quorate_manifest::playbook::Status;

use crate::base::BasePrompt;
use crate::lock::{Locks, Violation};
use crate::supersede::Supersessions;
use crate::weave::{Overlay, SkipReason, SkippedOverlay, WovenPrompt, weave};

/// A playbook for an agent, checked against its locked traits.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What would be woven.
    pub overlay: Overlay,
    /// Whether it is to be.
    pub status: Status,
    /// The slugs of those that it takes the place of.
    pub supersedes: Vec<String>,
    /// The locked traits that it touches.
    pub violations: Vec<Violation>,
}

/// A prompt, and what might be one.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// The agent's prompt.
    pub woven: WovenPrompt,
    /// The prompt that it would get with each of the playbooks in shadow.
    pub shadows: Vec<ShadowPrompt>,
}

/// A shadow prompt, which no agent gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowPrompt {
    pub id: String,
    /// The prompt with it; or why it would not be woven.
    pub prompt: Result<String, SkipReason>,
}

/// Composes. `advice` are the overlays of advisory runs; `locks` are those of the agent, which they are compared with,
/// too.
pub fn compose(
    base: &BasePrompt,
    candidates: &[Candidate],
    advice: &[Overlay],
    locks: &Locks,
    now_ms: i64,
) -> Composition {
    let (mut barred, mut advised) = (Vec::new(), Vec::new());
    for advice in advice {
        match locks.check(&advice.text).into_iter().next() {
            Some(touch) => barred.push(skipped_by_lock(advice, touch)),
            None => advised.push(advice.clone()),
        }
    }
    let active: Vec<&Candidate> =
        candidates.iter().filter(|candidate| candidate.status == Status::Active).collect();
    let (selected, kept_out) = select_active(&active, now_ms);
    barred.extend(kept_out);
    let mut woven = weave(base, &[advised.as_slice(), &selected].concat(), now_ms);
    woven.skipped.splice(0..0, barred);
    let shadows = candidates.iter().filter(|candidate| candidate.status == Status::Shadow);
    let shadows = shadows.map(|shadow| ShadowPrompt {
        id: shadow.overlay.id.clone(),
        prompt: counterfactual(base, shadow, &active, &advised, now_ms),
    });
    Composition { shadows: shadows.collect(), woven }
}

/// Of playbooks that are active what is woven, and what is not because it touches a lock or another one has taken its
/// place.
pub fn select_active(active: &[&Candidate], now_ms: i64) -> (Vec<Overlay>, Vec<SkippedOverlay>) {
    let is_active = |candidate: &&&Candidate| {
        candidate.violations.is_empty()
            && candidate.overlay.expires_ms.is_none_or(|expires| expires > now_ms)
            && !candidate.overlay.text.trim().is_empty()
    };
    // What is not woven itself takes no other's place.
    let claims = active.iter().filter(is_active);
    let superseded = Supersessions::new(
        claims.map(|claim| (&*claim.overlay.id, claim.overlay.priority, &*claim.supersedes)),
    )
    .superseded();
    let (mut woven, mut barred) = (Vec::new(), Vec::new());
    for one in active {
        match (one.violations.first(), superseded.get(&*one.overlay.id)) {
            (Some(touch), _) => barred.push(skipped_by_lock(&one.overlay, touch.clone())),
            (None, Some(by)) => {
                barred.push(SkippedOverlay {
                    id: one.overlay.id.clone(),
                    reason: SkipReason::Superseded((*by).to_owned()),
                });
            }
            (None, None) => woven.push(one.overlay.clone()),
        }
    }
    (woven, barred)
}

/// The prompt as it would be if a playbook held, and what it takes the place of were archived.
fn counterfactual(
    base: &BasePrompt,
    one: &Candidate,
    active: &[&Candidate],
    advised: &[Overlay],
    now_ms: i64,
) -> Result<String, SkipReason> {
    let stays = |other: &&Candidate| !one.supersedes.contains(&other.overlay.id);
    let with: Vec<&Candidate> = active.iter().copied().filter(stays).chain([one]).collect();
    let (selected, barred) = select_active(&with, now_ms);
    let woven = weave(base, &[advised, &selected].concat(), now_ms);
    match barred.into_iter().chain(woven.skipped).find(|other| other.id == one.overlay.id) {
        Some(skipped) => Err(skipped.reason),
        None => Ok(woven.prompt),
    }
}

fn skipped_by_lock(overlay: &Overlay, touch: Violation) -> SkippedOverlay {
    SkippedOverlay { id: overlay.id.clone(), reason: SkipReason::Locked(Box::new(touch)) }
}
