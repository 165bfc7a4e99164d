//! The process that runs Quorate: its signals, and the processes of members whose executors are CLIs. A program whose
//! members are CLIs calls [`take_over`] first, and [`wait_for_members`] last.

pub use quorate_adapters::install_tls_provider;
#[cfg(unix)]
pub use quorate_adapters::process::ignores_hangups;
pub use quorate_adapters::process::{terminate_members, wait_for_members};

/// Denies other processes access to this one's memory, and restores signals that its parent changed.
///
/// Call it at the beginning of `main`.
pub fn take_over() {
    quorate_adapters::process::deny_inspection();
    quorate_adapters::process::restore_signals();
}
