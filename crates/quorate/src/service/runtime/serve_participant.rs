//! Answers for one participant of a runtime that runs on another machine (`run --serve`).

use quorate_adapters::executor::remote;
use quorate_adapters::executor::remote::server::{ServeEvent, Served, serve};
use quorate_diagnostics::{Body, codes};
use tokio::sync::mpsc::UnboundedSender;

use super::{Runtime, build};
use crate::service::error::Error;
use crate::service::{executor, trust};

impl Runtime {
    /// Answers questions for a participant with its executor on this machine, until the future is dropped.
    ///
    /// # Errors
    /// If the participant is unknown, its executor is remote, not trusted or not installed, or the NATS servers cannot be
    /// used.
    pub(crate) async fn serve_participant(
        &self,
        id: &str,
        tell: UnboundedSender<ServeEvent>,
    ) -> Result<(), Error> {
        let speaker = self.ports.speakers.iter().find(|speaker| *speaker.participant.id == *id);
        let speaker = speaker.ok_or_else(|| self.no_such_participant(id))?;
        let member = speaker.member.clone();
        if member.executor.about().kind == remote::KIND {
            let body = Body::new(format!(
                "cannot answer for `{id}`: its executor on this machine is `{}`, which asks another machine",
                remote::KIND
            ));
            return Err(Error::configuration(
                codes::EXECUTOR_INVALID,
                body.help(format!(
                    "name the executor that answers with `--executor NAME`, or in quorate.toml below \
                     `[runtimes.{}.participants.{id}]`",
                    self.id
                )),
            ));
        }
        trust::admit(&self.environment, self.trust_requests())?;
        executor::installed(&member.executor_name, &*member.executor)?;
        let Some(servers) = &self.environment.nats else {
            let body = Body::new("cannot receive questions: no NATS servers are configured");
            let help = "set QUORATE_NATS, for example to `nats://nats.example.org:4222`";
            return Err(Error::configuration(codes::NATS_UNUSABLE, body.help(help)));
        };
        let served = Served {
            participant: speaker.participant.clone(),
            member,
            config: self.ports.remote_configs.get(&speaker.participant.id).cloned().unwrap_or_default(),
            redactor: self.redactor.clone(),
        };
        let nats = build::nats::shared(servers);
        serve(&nats, served, tell).await.map_err(|error| {
            let body = Body::new(format!("cannot use the NATS servers: {error}"));
            Error::configuration(codes::NATS_UNUSABLE, body)
        })
    }
}
