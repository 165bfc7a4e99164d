//! Use cases, one module each, and what they share. A front end parses, calls one of these, and renders; it decides
//! nothing.

pub mod artifact;
pub mod audit;
pub mod check;
pub mod confined;
pub mod convene;
pub mod desk;
pub mod diff;
pub mod disk;
pub mod doctor;
pub mod environment;
pub mod executor;
pub mod fingerprint;
pub mod fmt;
pub mod host;
pub mod init;
pub mod locks;
pub mod manifests;
pub mod modularity;
pub mod operate;
pub mod overlays;
pub mod overriding;
mod playbooks;
pub mod provision;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod resume;
pub mod review;
pub mod runs;
pub mod runtime;
pub mod since;
pub mod sitting;
pub mod stop;
pub mod sweep;
pub mod weave;
pub mod workspace;
