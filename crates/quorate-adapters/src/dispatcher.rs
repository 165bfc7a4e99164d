//! Dispatchers choose who speaks next. One file for each kind; this one reads what their blocks have in common.

pub mod capability_match;
pub mod fixed;
pub mod llm_router;
pub mod mention;
pub mod round_robin;

use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::dispatcher::{COMMON_KEYS, Input};
use quorate_kernel::ports::executor::ConfigError;
use quorate_kernel::registry::BuildContext;

use crate::block::{Block, nearest, quoted_list};

/// Allows a participant to answer its own turn.
const REENTRY: &str = "reentry";
/// How long a chain of triggers may be, in participants' turns.
const MAX_AGENT_TURNS: &str = "maxAgentTurns";

/// Reads a dispatcher's block: the common keys and those of its kind.
fn parse_block<'a>(build: &BuildContext<'a>, own: &[&str]) -> Result<Block<'a>, ConfigError> {
    let known: Vec<&str> = COMMON_KEYS.into_iter().chain(own.iter().copied()).collect();
    Block::parse(build.block, &known)
}

/// The eligible participants, in the manifest's order: all but the author of the last turn, unless reentry is allowed.
fn candidates<'a>(input: &Input<'a>, reentry: bool) -> impl Iterator<Item = &'a Participant> + use<'a> {
    let author = input.window.last().map(|turn| turn.participant.clone()).filter(|_| !reentry);
    input.participants.iter().filter(move |participant| author.as_deref() != Some(&*participant.id))
}

/// A list of participants in a block, without duplicates.
fn participant_ids(
    build: &BuildContext<'_>,
    block: &Block<'_>,
    key: &str,
) -> Result<Vec<String>, ConfigError> {
    let ids = block.texts(key)?;
    let known: Vec<&str> = build.participants.iter().map(|participant| &*participant.id).collect();
    for (at, id) in ids.iter().enumerate() {
        if !known.contains(&id.as_str()) {
            let help = match nearest(id, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the participants are {}", quoted_list(&known)),
            };
            return Err(ConfigError::for_key(key, format!("`{id}` takes no part")).with_help(help));
        }
        if ids[..at].contains(id) {
            return Err(ConfigError::for_key(key, format!("`{id}` stands there twice"))
                .with_help("name each participant once"));
        }
    }
    Ok(ids)
}
