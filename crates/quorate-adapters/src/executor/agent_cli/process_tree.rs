//! All processes that one member started, to end them together. Linux finds them in `/proc`; elsewhere it is the process
//! group.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod process_group;

#[cfg(target_os = "linux")]
pub(super) use linux::{ProcessTree, kill_until_gone};
#[cfg(not(target_os = "linux"))]
pub(super) use process_group::ProcessTree;
