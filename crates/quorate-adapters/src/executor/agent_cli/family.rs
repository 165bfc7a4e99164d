//! Everything that one member started, so that it can be ended whole. On Linux that is found through `/proc`;
//! elsewhere it is the process group.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Family;
#[cfg(target_os = "linux")]
pub(super) use linux::{Family, extinguish};
