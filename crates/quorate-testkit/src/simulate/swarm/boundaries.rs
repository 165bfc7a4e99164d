//! One disturbance at each step of a short conversation, one simulation for each: a kill, a power failure, an interruption,
//! a dropped cycle, a failure of a port, and some of them one after the other.

use std::collections::BTreeSet;

use super::life::LifePlan;
use super::setup::Setup;
use super::{Violation, simulated};

/// How many steps an outage lasts: longer than the runner tries again.
const OUTAGE: usize = 12;
/// How many steps after the first disturbance the second one may come.
const SECOND_WITHIN: usize = 8;

/// The step after which a successor has something to restore.
const AFTER_APPEND: &str = "an append that was done";
/// How many such crashes are simulated, and how many steps of the process that comes next are disturbed.
const CRASHES: usize = 2;
const FIRST_STEPS: usize = 14;

/// The plan of a life that is disturbed at a step.
type Disturbance = fn(usize) -> LifePlan;

/// The disturbances of a life, each from the index of a step.
const DISTURBANCES: [(&str, Disturbance); 8] = [
    ("crash", |at| LifePlan { crash: Some(at), ..LifePlan::default() }),
    ("power failure", |at| LifePlan { crash: Some(at), loses_power: true, ..LifePlan::default() }),
    ("interruption", |at| LifePlan { interrupt: Some(at), ..LifePlan::default() }),
    ("dropped cycle", |at| LifePlan { drop: Some(at), ..LifePlan::default() }),
    ("failure", |at| LifePlan { failing: at..at + 1, ..LifePlan::default() }),
    ("outage", |at| LifePlan { failing: at..at + OUTAGE, ..LifePlan::default() }),
    ("interruption and crash", |at| LifePlan {
        interrupt: Some(at),
        crash: Some(second(at)),
        ..LifePlan::default()
    }),
    ("failure and interruption", |at| LifePlan {
        failing: at..at + 1,
        interrupt: Some(second(at)),
        ..LifePlan::default()
    }),
];

/// The step of a second disturbance; over all first steps, every distance comes up at every kind of step.
fn second(at: usize) -> usize {
    at + 1 + at % SECOND_WITHIN
}

/// What the simulations of [`simulate_boundaries`] have covered.
#[derive(Debug, Default)]
pub struct Boundaries {
    pub simulations: usize,
    /// Each disturbance, with the step at which it came.
    pub disturbed: BTreeSet<(&'static str, &'static str)>,
}

/// Simulates one short conversation from a seed once for each step of its first process and each disturbance, and checks
/// the invariants each time. Then the same for the first steps of a process whose predecessor crashed after an append.
///
/// # Errors
/// The first violated invariant, with the seed, the disturbance and the step.
pub async fn simulate_boundaries(seed: u64) -> Result<Boundaries, Violation> {
    let mut covered = Boundaries::default();
    let steps = covered.sweep(seed, &[], usize::MAX).await?;
    let appends = steps.iter().enumerate().filter(|(_, step)| **step == AFTER_APPEND);
    for (at, _) in appends.take(CRASHES) {
        let crash = LifePlan { crash: Some(at), ..LifePlan::default() };
        covered.sweep(seed, &[crash], FIRST_STEPS).await?;
    }
    Ok(covered)
}

impl Boundaries {
    /// Disturbs the life after those of `before` at each of its steps, up to `most`. Returns its steps.
    async fn sweep(
        &mut self,
        seed: u64,
        before: &[LifePlan],
        most: usize,
    ) -> Result<Vec<&'static str>, Violation> {
        let simulate = async |plan| {
            let plans = before.iter().cloned().chain([plan]).collect();
            simulated(Setup::brief(seed), plans).await.map(|(_, steps)| steps)
        };
        let undisturbed = simulate(LifePlan::default()).await;
        let steps = undisturbed.map_err(|what| Violation::new(seed, what))?;
        self.simulations += 1;
        for (disturbance, plan) in DISTURBANCES {
            for (at, step) in steps.iter().enumerate().take(most) {
                let violated = |what| {
                    let life = before.len();
                    Violation::new(seed, format!("{disturbance} at step {at} of life {life}, {step}: {what}"))
                };
                let disturbed = simulate(plan(at)).await.map_err(violated)?;
                self.simulations += 1;
                self.disturbed.extend(disturbed.get(at).map(|step| (disturbance, *step)));
            }
        }
        Ok(steps)
    }
}
