//! Handles Ctrl-C, SIGTERM, and SIGHUP (the end of the terminal), in a thread that receives them even while the command blocks:
//! on files that do not answer, or a locked ledger. The first signal drops pending work, which ends its
//! members, and the run stays resumable; the command then closes what it has open. The next signal, and any that arrives
//! while the command opens or closes something, ends the process at once.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::exit::Exit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interrupted;

/// Handles signals from now on. Before a command calls [`until_interrupted`] the first one ends the process, with the exit
/// code of an interruption and after its members.
pub(super) fn start_listening() {
    static STARTED: Once = Once::new();
    STARTED.call_once(start_thread);
}

/// Makes a signal the regular end of the command, as for a server: the process then exits with success, even if the
/// signal arrives while the command ends by itself.
#[cfg(any(feature = "mcp", feature = "nats", feature = "serve", feature = "postgres"))]
pub(super) fn exit_cleanly_on_signal() {
    EXIT_CODE.store(Exit::DONE.0, Ordering::Relaxed);
}

/// Makes the next signal an interruption of a command that is ending because of one.
#[cfg(feature = "postgres")]
pub(super) fn exit_as_interrupted_on_signal() {
    EXIT_CODE.store(Exit::INTERRUPTED.0, Ordering::Relaxed);
}

/// Runs to completion, or to an interruption. A signal that arrives as the work completes interrupts what is run next.
pub(super) async fn until_interrupted<T>(work: impl Future<Output = T>) -> Result<T, Interrupted> {
    let mut signalled = listen();
    tokio::select! {
        biased;
        // Without a listener nothing interrupts.
        Ok(()) = &mut signalled => Err(Interrupted),
        done = work => {
            if signalled.try_recv().is_ok() {
                interrupt_next();
            }
            Ok(done)
        }
    }
}

/// Has a signal that was received interrupt what is run next.
pub(super) fn interrupt_next() {
    WAITS.store(true, Ordering::Relaxed);
}

/// The receiver of the next signal.
static LISTENER: Mutex<Option<oneshot::Sender<()>>> = Mutex::new(None);

/// Whether a signal waits for its receiver.
static WAITS: AtomicBool = AtomicBool::new(false);

/// The exit code for a signal without a receiver.
static EXIT_CODE: AtomicU8 = AtomicU8::new(Exit::INTERRUPTED.0);

/// Reports the next signal, as long as the receiver exists.
fn listen() -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    if WAITS.swap(false, Ordering::Relaxed) {
        let _ = sender.send(());
        return receiver;
    }
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    start_listening();
    receiver
}

/// Starts the thread, and returns when it receives signals. If that fails, the system's default holds: the first signal ends
/// the process, and the guard ends its members.
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
            // A process that was started to outlive its terminal (nohup) ignores SIGHUP.
            let mut hangups = match quorate::process::ignores_hangups() {
                true => None,
                false => signal(SignalKind::hangup()).ok(),
            };
            // The receiver waits for exactly this message.
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
        // An error means that the thread has ended.
        let _ = is_ready.recv();
    }
}

async fn next_hangup(signals: &mut Option<Signal>) -> Option<()> {
    match signals {
        Some(signals) => signals.recv().await,
        None => None,
    }
}

/// Notifies the receiver; without one, ends the process.
fn notify_or_exit() {
    let listens = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if listens.is_none_or(|listens| listens.send(()).is_err()) {
        quorate::process::terminate_members();
        std::process::exit(EXIT_CODE.load(Ordering::Relaxed).into());
    }
}
