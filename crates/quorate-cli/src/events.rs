//! `--events`: events of runs over NATS, for commands that execute or follow runs.

use crate::arguments::EventsArguments;
use crate::terminal::Terminal;
use quorate::{Error, Quorate};

/// How a command uses events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Publishes the records that it commits, and listens for new tasks.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "a worker does"))]
    Works,
    /// Listens for records that other processes commit.
    Listens,
    #[cfg_attr(not(feature = "serve"), allow(dead_code, reason = "a server does"))]
    Both,
}

/// The connection, if servers are configured.
pub(crate) struct Events(#[cfg(feature = "nats")] Option<quorate::cluster::nats::NatsEvents>);

impl Events {
    /// Connects the events of a workspace to the configured servers.
    ///
    /// # Errors
    /// If a server is unusable, or this build lacks NATS.
    #[cfg(feature = "nats")]
    pub(crate) async fn connect(
        arguments: EventsArguments,
        role: Role,
        quorate: &Quorate,
    ) -> Result<Events, Error> {
        use quorate::cluster::nats::{Heard, NatsOptions};
        let Some(servers) = arguments.servers() else { return Ok(Events(None)) };
        let (publishes, listens) = match role {
            Role::Works => (true, Some(Heard::Tasks)),
            Role::Listens => (false, Some(Heard::Runs)),
            Role::Both => (true, Some(Heard::Runs)),
        };
        let options = NatsOptions { servers, publishes, listens };
        Ok(Events(Some(quorate.connect_events(&options).await?)))
    }

    #[cfg(not(feature = "nats"))]
    #[expect(clippy::unused_async, reason = "as with NATS")]
    pub(crate) async fn connect(arguments: EventsArguments, _: Role, _: &Quorate) -> Result<Events, Error> {
        match arguments.servers() {
            None => Ok(Events()),
            Some(_) => Err(crate::exit::feature_missing("nats")),
        }
    }

    /// Runs `work`, and prints notices about the servers meanwhile.
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>, terminal: &Terminal) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                notice = self.notice() => terminal.status(&notice),
            }
        }
    }

    #[cfg(feature = "nats")]
    async fn notice(&mut self) -> String {
        match &mut self.0 {
            Some(events) => events.notice().await,
            None => std::future::pending().await,
        }
    }

    #[cfg(not(feature = "nats"))]
    async fn notice(&mut self) -> String {
        std::future::pending().await
    }

    /// Sends the remaining events.
    #[cfg(any(feature = "postgres", feature = "serve"))]
    pub(crate) async fn close(self) {
        #[cfg(feature = "nats")]
        if let Some(events) = self.0 {
            events.close().await;
        }
    }
}
