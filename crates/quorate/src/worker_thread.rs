//! Runs CPU-heavy work on its own thread, so that it does not block the async runtime. The work may await and spawn as
//! usual.

use std::convert::Infallible;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Runs work on its own thread. If this future is dropped, the work stops at its next await; nothing waits for that.
pub(crate) async fn run_on_own_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let (held, dropped) = oneshot::channel::<Infallible>();
    let runtime = Handle::current();
    let thread = tokio::task::spawn_blocking(move || {
        runtime.block_on(async move {
            tokio::select! {
                biased;
                _ = dropped => None,
                done = work => Some(done),
            }
        })
    });
    let done = thread.await;
    drop(held);
    match done {
        Ok(Some(done)) => done,
        Ok(None) => unreachable!("the sender is held until the work is done"),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down, and with it the waiting task.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn computing_work_does_not_block() {
        let (go, gone) = std::sync::mpsc::channel::<()>();
        // On a single thread the second line would never run.
        let work = tokio::spawn(run_on_own_thread(async move { gone.recv().is_ok() }));
        tokio::time::sleep(Duration::from_millis(1)).await;
        go.send(()).unwrap();
        assert!(work.await.unwrap());
    }

    #[tokio::test]
    async fn abandoned_work_is_dropped() {
        let (held, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let work = run_on_own_thread(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), work).await.is_err());
        assert_eq!(dropped.recv().await, None);
    }

    #[tokio::test]
    #[should_panic(expected = "a bug")]
    async fn a_panic_is_passed_on() {
        run_on_own_thread(async { panic!("a bug") }).await
    }
}
