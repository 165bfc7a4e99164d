//! The `round-robin` dispatcher gives the participants the floor in turn (K11).
//!
//! Each turn of a person starts a round: one turn of each participant, in the order of `order` (by default the manifest's),
//! of which each answers the one before. `turns` sets another number of turns. The position follows from the trigger alone,
//! so rounds of several open turns do not mix. A participant that fails posts nothing, which ends its round.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::dispatcher::{DispatchError, Dispatcher, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_kernel::turn::Policy;
use quorate_protocol::Name;

use super::{MAX_AGENT_TURNS, REENTRY, candidates, parse_block, participant_ids};

/// The kind that manifests name.
pub const KIND: &str = "round-robin";

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, or `order` names an id that is not a participant.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["order", "turns"])?;
    let mut order: Vec<Name> = participant_ids(build, &block, "order")?.into_iter().map(Name::from).collect();
    if order.is_empty() {
        order = build.participants.iter().map(|participant| participant.id.clone()).collect();
    }
    let round_turns = block.count("turns")?.unwrap_or(order.len());
    let max_agent_turns = block.count(MAX_AGENT_TURNS)?.unwrap_or(Policy::default().max_agent_turns);
    Ok(Arc::new(RoundRobin { order, round_turns, max_agent_turns, reentry: block.flag(REENTRY)? }))
}

struct RoundRobin {
    order: Vec<Name>,
    round_turns: usize,
    max_agent_turns: usize,
    reentry: bool,
}

#[async_trait]
impl Dispatcher for RoundRobin {
    fn kind(&self) -> &'static str {
        KIND
    }

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
        let Some(trigger) = input.trigger().filter(|_| input.chain < self.round_turns) else {
            return Ok(Vec::new());
        };
        let place = match input.chain {
            0 => Some(0),
            // The turn of a participant outside of the order belongs to no round.
            _ => self.order.iter().position(|id| *id == trigger.participant).map(|at| at + 1),
        };
        let next = place.and_then(|place| self.order.iter().cycle().nth(place));
        let may = |id: &&Name| candidates(&input, self.reentry).any(|participant| participant.id == **id);
        Ok(next.filter(may).cloned().into_iter().collect())
    }

    fn warnings(&self, _: &[Participant]) -> Vec<String> {
        if self.round_turns <= self.max_agent_turns {
            return Vec::new();
        }
        vec![format!(
            "a round has {} turns, and a chain of more than {} is not answered; set `{MAX_AGENT_TURNS}: {}` \
             in the dispatcher's block",
            self.round_turns, self.max_agent_turns, self.round_turns
        )]
    }
}
