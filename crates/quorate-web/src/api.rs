//! The routes of the API, one file each. `routes.rs` lists them.

pub(crate) mod artifact;
pub(crate) mod audit;
pub(crate) mod checkpoint;
pub(crate) mod convenings;
pub(crate) mod events;
pub(crate) mod job;
pub(crate) mod job_cancel;
pub(crate) mod ledger;
pub(crate) mod openapi;
pub(crate) mod override_run;
pub(crate) mod proof;
pub(crate) mod records;
pub(crate) mod resume;
pub(crate) mod reviews;
pub(crate) mod run;
pub(crate) mod runs;
mod started;
