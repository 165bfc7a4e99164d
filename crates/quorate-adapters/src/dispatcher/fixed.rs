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
    Ok(Arc::new(Fixed { next: next.into_iter().map(Name::from).collect(), reentry: block.flag(REENTRY)? }))
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
