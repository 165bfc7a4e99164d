//! Compares a ledger with the checkpoints of it that this machine keeps (D12).

use quorate_ledger::Store;
use quorate_ledger::local_checkpoints::LocalCheckpoints;
use quorate_ledger::note::{Checkpoint, Note};

use crate::service::environment::Environment;
use crate::service::error::ServiceError;
use crate::service::paths::display_path;

/// How a ledger departs from its local copies, in words; `None` if it extends every copy.
///
/// # Errors
/// If the store does not answer.
pub(crate) async fn rollback_reason(
    environment: &Environment,
    store: &Store,
    kept: &LocalCheckpoints,
) -> Result<Option<String>, ServiceError> {
    // Another process may have made the first checkpoint meanwhile.
    if let Some(origin) = &kept.replaced_origin
        && store.last_checkpoint().await?.is_none_or(|sealed| sealed.origin != *origin)
    {
        return Ok(Some(format!("another ledger has replaced the ledger {origin}, which this machine knows")));
    }
    for copy in &kept.copies {
        let file = display_path(environment, &copy.path);
        let checkpoint = match copy.note.as_deref().map(checkpoint_of) {
            Ok(Ok(checkpoint)) => checkpoint,
            Ok(Err(why)) => {
                return Ok(Some(format!("{file} is not a checkpoint that the ledger's key signed: {why}")));
            }
            Err(why) => {
                return Ok(Some(format!("{file} is not a checkpoint that the ledger's key signed: {why}")));
            }
        };
        if !store.has_checkpoint(&checkpoint).await? {
            return Ok(Some(format!(
                "it does not extend the checkpoint over {} records of {} that its key signed ({file})",
                checkpoint.tree().size,
                checkpoint.origin()
            )));
        }
    }
    Ok(None)
}

fn checkpoint_of(note: &str) -> Result<Checkpoint, String> {
    let note = Note::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    Checkpoint::parse(note.text()).map_err(|error| error.to_string())
}
