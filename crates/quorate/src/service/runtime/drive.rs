//! The loop over a conversation: runs cycles until no turn is pending, or until it is stopped.

use std::time::Duration;

use quorate_kernel::turn::{CycleResult, Runner};

use crate::service::error::ServiceError;

/// The first pause after a transient failure. Each further pause doubles, up to the longest.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How long the loop continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until one cycle has asked participants, or nothing is pending.
    Once,
    /// Until nothing is pending.
    Idle,
    /// Waits for new turns until it is interrupted or the calls are spent.
    Watch,
}

/// What happened on the way.
#[derive(Debug)]
pub enum Step {
    /// A cycle is over.
    Cycled(CycleResult),
    /// Nothing is pending; the loop waits.
    Waiting,
    /// The time limit is over. The next run asks the interrupted participants again.
    TimeUp,
    /// A cycle failed; the loop tries again after the pause.
    Retrying(ServiceError, Duration),
}

/// Runs the loop for at most `wall`.
///
/// # Errors
/// If the substrate or the ledger fails. In watch mode only if the position in the conversation is unknown.
pub async fn drive(
    runner: &mut Runner,
    until: Until,
    wall: Option<Duration>,
    mut on_step: impl FnMut(Step),
) -> Result<(), ServiceError> {
    let Some(wall) = wall else { return run_loop(runner, until, &mut on_step).await };
    match tokio::time::timeout(wall, run_loop(runner, until, &mut on_step)).await {
        Ok(driven) => driven,
        // Dropping a cycle interrupts it.
        Err(_) => {
            on_step(Step::TimeUp);
            Ok(())
        }
    }
}

async fn run_loop(
    runner: &mut Runner,
    until: Until,
    on_step: &mut impl FnMut(Step),
) -> Result<(), ServiceError> {
    let mut pause = INITIAL_BACKOFF;
    loop {
        let cycled = match runner.cycle().await {
            Ok(CycleResult::NoNewTurn) if until == Until::Watch => {
                on_step(Step::Waiting);
                runner.changed().await.map(|()| None)
            }
            Ok(CycleResult::NoNewTurn) => return Ok(()),
            Ok(spent @ CycleResult::BudgetExhausted { .. }) => {
                on_step(Step::Cycled(spent));
                return Ok(());
            }
            Ok(cycled) => Ok(Some(cycled)),
            Err(error) => Err(error),
        };
        match cycled {
            Ok(None) => pause = INITIAL_BACKOFF,
            Ok(Some(cycled)) => {
                let has_asked = matches!(cycled, CycleResult::Asked { .. });
                on_step(Step::Cycled(cycled));
                if has_asked && until == Until::Once {
                    return Ok(());
                }
                pause = INITIAL_BACKOFF;
            }
            Err(error) if until == Until::Watch && is_transient(&error) => {
                on_step(Step::Retrying(error.into(), pause));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_BACKOFF);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether trying again may help.
fn is_transient(error: &quorate_kernel::turn::Error) -> bool {
    use quorate_kernel::ports::substrate;
    use quorate_kernel::turn::Error;
    matches!(error, Error::Substrate(substrate::Error::Unavailable { .. }))
}
