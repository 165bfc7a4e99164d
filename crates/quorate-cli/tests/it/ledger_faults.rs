//! Faults of the real process: kill -9 at every call, calls that fail, power that is lost, media that went bad. After each
//! of them nothing that was acknowledged is missing, nothing is fused or doubled, and what was begun can be ended.
//!
//! `council.rs` owns the council that all of them use and what has to hold afterwards, `points.rs` which faults are tried and
//! how one is repeated, `disk.rs` the bytes that are damaged and put back.

#![cfg(target_os = "linux")]
mod council;
mod disk;
mod errors;
mod killed;
mod media;
mod points;
mod power;
use crate::support::records;
