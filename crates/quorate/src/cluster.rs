//! Work on several machines: a queue of reviews and convenings in a Postgres ledger, workers that decide them, events of
//! committed records over NATS, and metrics. A single machine needs none of it.

pub mod metrics;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "postgres")]
pub mod queue;

use super::builder::Quorate;
use super::service::environment::Environment;

/// Registers the descriptions of all metrics with the installed recorder.
pub fn describe_metrics() {
    metrics::describe();
    #[cfg(feature = "postgres")]
    queue::metrics::describe();
}

impl Quorate {
    /// The queue of the workspace's ledger.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// // The ledger of this workspace is a file, and a queue needs a Postgres database.
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let error = quorate.queue().status().await.unwrap_err();
    /// assert_eq!(error.code(), "quorate:queue_unavailable");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "postgres")]
    pub fn queue(&self) -> queue::Queue {
        queue::Queue(self.clone())
    }

    /// The same workspace, whose appends and calls are measured. The [metrics] go to the recorder that the program
    /// installs (crate `metrics`).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    /// use quorate::cluster;
    ///
    /// // Install a recorder, such as that of the crate `metrics-exporter-prometheus`, and then:
    /// cluster::describe_metrics();
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?.metered();
    /// # drop(quorate);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn metered(&self) -> Quorate {
        let environment = Environment { is_metered: true, ..self.environment.clone() };
        Quorate { environment, held: None, ..self.clone() }
    }

    /// Counts the tasks of the workspace's queue every five seconds, until the future is dropped; counts nothing if the
    /// workspace is not [metered](Quorate::metered) or has no queue.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use std::time::Duration;
    ///
    /// let quorate = quorate::Quorate::builder().workspace(dir.path()).build()?.metered();
    /// let serving = tokio::time::sleep(Duration::from_millis(1)); // the work of a server
    /// tokio::select! {
    ///     () = serving => {}
    ///     never = quorate.count_queue() => match never {},
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "postgres")]
    pub async fn count_queue(&self) -> std::convert::Infallible {
        queue::metrics::count_of_workspace(&self.environment, &self.places).await
    }

    /// Connects to NATS servers. Events flow as long as the returned value is held. If no server answers, the call
    /// returns all the same, and the connection is tried again in the background.
    ///
    /// # Errors
    /// `quorate:nats_unusable` for an invalid address, unreadable credentials, or a server that refuses the connection.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::cluster::nats::{Heard, NatsOptions};
    /// use quorate::{NatsServers, Quorate};
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let servers = NatsServers { urls: "gopher://h".to_owned(), credentials: None, inbox: None };
    /// let options = NatsOptions { servers, publishes: true, listens: Some(Heard::Runs) };
    /// assert_eq!(quorate.connect_events(&options).await.err().unwrap().code(), "quorate:nats_unusable");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "nats")]
    pub async fn connect_events(
        &self,
        options: &nats::NatsOptions,
    ) -> Result<nats::NatsEvents, super::Error> {
        nats::NatsEvents::connect(&self.environment.commit_events, options).await
    }
}
