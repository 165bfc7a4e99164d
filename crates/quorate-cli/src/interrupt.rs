//! Ctrl-C, SIGTERM, and SIGHUP, which is the end of the terminal. The first one drops what is under way, which ends its
//! members, and the run stays resumable; the command then closes what it has open. The next one, and any that comes while
//! the command opens or closes something, ends the process at once.

use std::future::Future;

/// The command was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interrupted;

/// Hears signals from now on. Before a command listens the first one ends the process, with the exit code of an
/// interruption and after its members.
pub(super) fn start_listening() {
    #[cfg(unix)]
    listener::start();
}

/// From now on a signal is how the command is meant to end, as with a server: the process then ends with the exit code of what
/// is done, also where the signal comes while the command ends by itself.
#[cfg(feature = "mcp")]
pub(super) fn exit_cleanly_on_signal() {
    #[cfg(unix)]
    listener::EXIT_CODE.store(super::exit::Exit::DONE.code(), std::sync::atomic::Ordering::Relaxed);
}

/// Runs to the end or to an interruption.
pub(super) async fn until_interrupted<T>(work: impl Future<Output = T>) -> Result<T, Interrupted> {
    tokio::select! {
        biased;
        () = signalled() => {}
        done = work => return Ok(done),
    }
    Err(Interrupted)
}

#[cfg(unix)]
async fn signalled() {
    // Dropping the receiver is how the watch learns that the work is over.
    if listener::listen().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A thread that hears signals whatever the command is busy with: files that do not answer, a ledger that is locked.
#[cfg(unix)]
mod listener {
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Mutex, Once, PoisonError};

    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tokio::sync::oneshot;

    use super::super::exit::Exit;

    /// Who wants to be told of the next signal.
    static LISTENER: Mutex<Option<oneshot::Sender<()>>> = Mutex::new(None);

    /// The exit code of a signal that nobody listens for.
    pub(super) static EXIT_CODE: AtomicU8 = AtomicU8::new(Exit::INTERRUPTED.code());

    /// Tells of the next signal, as long as the receiver is there.
    pub(super) fn listen() -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        start();
        receiver
    }

    /// Starts the thread once, and returns when signals are heard. Where that fails the default holds: the process ends
    /// at the first one, and the guard ends its members.
    pub(super) fn start() {
        static STARTED: Once = Once::new();
        STARTED.call_once(start_thread);
    }

    fn start_thread() {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
                return;
            };
            runtime.block_on(async {
                let (Ok(mut interrupts), Ok(mut terminations)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    return;
                };
                // A terminal that ends is no reason to end for what was told to outlive it.
                let mut hangups = match quorate_adapters::process::ignores_hangups() {
                    true => None,
                    false => signal(SignalKind::hangup()).ok(),
                };
                // The receiver waits for exactly this.
                let _ = ready.send(());
                loop {
                    tokio::select! {
                        _ = interrupts.recv() => {}
                        _ = terminations.recv() => {}
                        Some(_) = next_hangup(&mut hangups) => {}
                    }
                    notify_or_exit();
                }
            });
        });
        if thread.is_ok() {
            // An error is a thread that has given up.
            let _ = is_ready.recv();
        }
    }

    async fn next_hangup(signals: &mut Option<Signal>) -> Option<()> {
        match signals {
            Some(signals) => signals.recv().await,
            None => None,
        }
    }

    /// Tells who listens; where nobody does, the process ends.
    fn notify_or_exit() {
        let listens = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).take();
        if listens.is_none_or(|listens| listens.send(()).is_err()) {
            quorate_adapters::process::terminate_members();
            std::process::exit(EXIT_CODE.load(Ordering::Relaxed).into());
        }
    }
}
