//! The process that runs Quorate: its signals, and the processes of members whose executors are CLIs. A program whose
//! members are CLIs calls [`run_guard_if_asked`] and [`take_over`] first, and [`wait_for_members`] last.

pub use quorate_adapters::install_tls_provider;
#[cfg(unix)]
pub use quorate_adapters::process::ignores_hangups;
pub use quorate_adapters::process::{run_guard_if_asked, terminate_members, wait_for_members};

/// Prepares a program that starts no other processes than members: denies other processes access to its memory, restores
/// signals that its parent changed, and adopts the orphans of members, so that all of them are ended with it.
///
/// Call it at the beginning of `main`, after [`run_guard_if_asked`].
pub fn take_over() {
    use quorate_adapters::process;

    process::deny_inspection();
    process::restore_signals();
    process::adopt_orphans();
    process::claim_orphans();
    process::enable_guard();
}
