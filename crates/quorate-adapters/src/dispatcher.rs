//! Dispatchers choose who speaks next. One file for each kind; this one reads what their blocks have in common.

pub mod capability_match;
pub mod fixed {
    //! The `fixed` dispatcher always selects the participants of `next`, in that order. It is meant for tests and
    //! demonstrations.

    use async_trait::async_trait;
    use quorate_kernel::ports::dispatcher::{DispatchError, Dispatcher, Input};
    use quorate_kernel::ports::executor::ConfigError;
    use quorate_kernel::registry::BuildContext;
    use quorate_protocol::Name;
    use std::sync::Arc;

    use super::{REENTRY, candidates, parse_block, participant_ids};

    /// The kind that manifests name.
    pub const KIND: &str = "fixed";

    /// Builds the dispatcher from its block.
    ///
    /// # Errors
    /// When the block has an unknown key, or `next` is empty or names an id that is not a participant.
    pub fn new(build: &BuildContext<'_>) -> Result<Arc<dyn Dispatcher>, ConfigError> {
        let block = parse_block(build, &["next"])?;
        let next = participant_ids(build, &block, "next")?;
        if next.is_empty() {
            return Err(ConfigError::for_key("next", "`next` names no participant")
                .with_help("list the ids of those who speak next"));
        }
        Ok(Arc::new(Fixed {
            next: next.into_iter().map(Name::from).collect(),
            reentry: block.flag(REENTRY)?,
        }))
    }

    struct Fixed {
        next: Vec<Name>,
        reentry: bool,
    }

    #[async_trait]
    impl Dispatcher for Fixed {
        fn kind(&self) -> &'static str {
            KIND
        }

        async fn select(&self, input: Input<'_>) -> Result<Vec<Name>, DispatchError> {
            let may = |id: &&Name| candidates(&input, self.reentry).any(|participant| participant.id == **id);
            Ok(self.next.iter().filter(may).cloned().collect())
        }
    }
}
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
