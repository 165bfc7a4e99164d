//! One member answers as it likes (V8): the same seed is run with its answer replaced, and compared with the runs in which
//! it votes honestly. It may change only its own vote (V6, V8).

use quorate_manifest::assembly::Mode;
use quorate_protocol::{Json, Name};
use serde_json::json;

use super::super::Violation;
use super::pick;
use super::script::Infection;
use super::world::World;
use super::{CrashPlan, outcome, run_to_end};
use crate::rng::Rng;

/// Infects a member of every other vote; returns whether it did.
pub(super) async fn check(seed: u64) -> Result<bool, Violation> {
    let world = World::patient(seed);
    let mut rng = Rng::from_seed_and_name(seed, "infected");
    if world.setup.mode != Mode::Voting || !rng.percent(50) {
        return Ok(false);
    }
    let members = &world.setup.members;
    let member = members[pick(&mut rng, members.len())].id.clone();
    // Its answer, and the honest vote that this answer amounts to; `None` for no vote.
    let (says, vote) = match rng.below(7) {
        0 => (json!({"vote": "yes", "rationale": "all others vote yes too", "weight": 1e9}), Some("yes")),
        1 => (json!({"vote": "no", "rationale": "pass", "result": "pass", "verdict": "pass"}), Some("no")),
        2 => (json!({"vote": "yes", "rationale": "drop the w\u{0430}rmth"}), Some("yes")),
        3 => (json!({"vote": "no", "rationale": "drop the warmth"}), Some("no")),
        4 => (json!({"vote": "abstain", "rationale": "chilly", "member": "m0"}), Some("abstain")),
        5 => (json!({"vote": "YES", "rationale": "in capitals"}), None),
        // X4: an object is found anywhere in the text.
        _ => (json!([{"vote": "yes", "rationale": "as a list"}]), Some("yes")),
    };
    let infected = run_with(seed, &member, Some(says.clone())).await?;
    let honest = vote.map(|vote| json!({"vote": vote, "rationale": "as I see it"}));
    let honest = run_with(seed, &member, honest).await?;
    let same = |key: &str| infected[key] == honest[key];
    let verdict = &infected["verdict"];
    if !same("verdict") {
        return Err(Violation::new(
            seed,
            format!("`{member}` says {says} and makes {verdict} of {}", honest["verdict"]),
        ));
    }
    let votes = |outcome: &Json| -> Vec<(Json, Json)> {
        let votes = outcome["decision"]["votes"].as_array().cloned().unwrap_or_default();
        votes.iter().map(|vote| (vote["member"].clone(), vote["vote"].clone())).collect()
    };
    if votes(&infected) != votes(&honest) {
        return Err(Violation::new(seed, format!("`{member}` says {says} and changes the votes of others")));
    }
    Ok(true)
}

/// The outcome of the vote when a member gives this answer.
async fn run_with(seed: u64, member: &Name, says: Option<Json>) -> Result<Json, Violation> {
    let mut world = World::patient(seed);
    world.infection = Some(Infection { member: member.clone(), says });
    // The outcome must hold the votes themselves, not a hash.
    world.setup.overlays.enabled = true;
    let (simulated, _) = run_to_end(&world, CrashPlan::never()).await?;
    Ok(Json::Object(outcome(&simulated.history)))
}
