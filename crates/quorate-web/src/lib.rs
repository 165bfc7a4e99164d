//! `quorate serve`: pages and an HTTP API over the runs of a workspace. It is a front end: routes parse, call one
//! method of [`Quorate`], and show or return what the command line shows.
//!
//! `routes` is the URL map; `endpoint` defines a route of the API, and `api/` has one file for each topic; `pages/` has one
//! file and one template for each page. `guard` checks every request first, and `talks` holds the open conversations.

mod api;
mod assets;
mod endpoint;
mod failure;
mod guard;
mod idempotency;
mod listener;
mod openapi;
mod pages;
pub mod report;
mod routes;
mod talks;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub use quorate::http::Deadlines;
use quorate::jobs::Jobs;
use quorate::reader::Reader;
use quorate::{Error, Quorate};
use serde_json::Value;

use failure::Failure;
use idempotency::Answered;
pub use listener::Listener;
use talks::Talks;

/// The settings of a server.
#[derive(Debug, Clone, Default)]
pub struct WebServerOptions {
    /// The port on 127.0.0.1; 0 selects a free one.
    pub port: u16,
    /// The bearer token of programs; by default a random one.
    pub token: Option<String>,
    /// The workspace; by default the one that contains the working directory.
    pub root: Option<PathBuf>,
    /// Whether to omit the routes that change something.
    pub read_only: bool,
    pub deadlines: Deadlines,
}

/// What routes share.
pub struct Server {
    /// The workspace, confined to its root, for routes that append to the ledger; [`Server::reading`] is for the others.
    quorate: Quorate,
    /// The ledger, open for reading.
    reader: Reader,
    jobs: Jobs<Failure>,
    talks: Talks,
    answered: Answered,
    read_only: bool,
    deadlines: Deadlines,
    /// The description of the API, from the table of routes.
    openapi: OnceLock<Value>,
}

impl Server {
    /// Opens the workspace.
    ///
    /// # Errors
    /// When the root is unusable.
    pub fn open(quorate: &Quorate, options: &WebServerOptions) -> Result<Arc<Server>, Error> {
        let within = quorate.in_directory(options.root.clone().unwrap_or_else(|| quorate.root()));
        let quorate = within.confined()?;
        let server = Server {
            reader: Reader::new(quorate.clone()),
            quorate,
            jobs: Jobs::default(),
            talks: Talks::default(),
            answered: Answered::default(),
            read_only: options.read_only,
            deadlines: options.deadlines,
            openapi: OnceLock::new(),
        };
        Ok(Arc::new(server))
    }

    /// Ends all jobs, with their members.
    pub fn close(&self) {
        self.jobs.abort_all();
    }

    /// The workspace with its ledger, which must exist, opened for reading.
    async fn reading(&self) -> Result<Quorate, Error> {
        self.reader.open().await
    }
}
