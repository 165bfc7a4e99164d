//! The `round-robin` dispatcher gives the participants the floor in turn.
//!
//! A turn of a non-participant (a person) is followed by one full round: one turn of each participant, in the order of
//! `order` (by default the manifest's); then the runtime is idle. `turns` shortens the round: with `turns: 1` each
//! person's turn is answered by the next participant. A round starts after the last participant that spoke in the
//! window, or with the first if none has.
//!
//! The position follows from the window alone, and therefore:
//!
//! - a round that does not fit in the window is refused;
//! - a round longer than `maxAgentTurns` is cut short by that guard, with a warning;
//! - a participant that fails posts nothing, which ends the round. Each unanswered turn of a person moves the start on
//!   by one, so that a failing participant does not block the others.

use std::sync::Arc;

use async_trait::async_trait;
use quorate_kernel::conversation::{Participant, Turn};
use quorate_kernel::ports::dispatcher::{Dispatcher, Error, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;
use quorate_kernel::turn::Policy;
use quorate_protocol::Name;

use super::{MAX_AGENT_TURNS, REENTRY, WINDOW, candidates, parse_block, participant_ids};

/// The kind that manifests name.
pub const KIND: &str = "round-robin";

/// Builds the dispatcher from its block.
///
/// # Errors
/// When the block has an unknown key, `order` names an id that is not a participant, or a round does not fit in the window.
pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
    let block = parse_block(build, &["order", "turns"])?;
    let mut order: Vec<Name> = participant_ids(build, &block, "order")?.into_iter().map(Name::from).collect();
    if order.is_empty() {
        order = build.participants.iter().map(|participant| participant.id.clone()).collect();
    }
    let turns = block.count("turns")?;
    let round_turns = turns.unwrap_or(order.len());
    let window = block.count(WINDOW)?.unwrap_or(Policy::default().window);
    if round_turns > window {
        let key = if turns.is_some() { "turns" } else { WINDOW };
        let message = format!("a round of {round_turns} turns does not fit in a window of {window}");
        return Err(ConfigError::for_key(key, message)
            .with_help(format!("set `{WINDOW}: {round_turns}`, or fewer `turns`")));
    }
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

    async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, Error> {
        let takes_part =
            |turn: &&Turn| input.participants.iter().any(|participant| participant.id == turn.participant);
        let spoken = input.window.iter().rev().take_while(takes_part).count();
        if spoken >= self.round_turns {
            return Ok(Vec::new());
        }
        let place = |turn: &Turn| self.order.iter().position(|id| *id == turn.participant);
        let unanswered = input.window.iter().rev().take_while(|turn| !takes_part(turn)).count();
        let last = input.window.iter().rev().find_map(place);
        let from = last.map_or(0, |last| last + 1) + unanswered.saturating_sub(1);
        let may = |id: &&Name| candidates(&input, self.reentry).any(|participant| participant.id == **id);
        let next = self.order.iter().cycle().skip(from).take(self.order.len()).find(may);
        Ok(next.cloned().into_iter().collect())
    }

    fn warnings(&self, _: &[Participant]) -> Vec<String> {
        if self.round_turns <= self.max_agent_turns {
            return Vec::new();
        }
        vec![format!(
            "a round has {} turns, and after {} turns without a person's the runtime stops; set `{MAX_AGENT_TURNS}: {}` \
             in the dispatcher's block",
            self.round_turns, self.max_agent_turns, self.round_turns
        )]
    }
}
