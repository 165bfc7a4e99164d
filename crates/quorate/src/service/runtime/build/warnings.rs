//! Checks across a manifest's ports: access to MCP servers, participants whose executors cannot take their turns, and
//! warnings for the user who runs it.

use std::sync::Arc;

use quorate_adapters::effectors;
use quorate_diagnostics::{Body, Place, codes};
use quorate_kernel::conversation::{Capability, Participant, Tools};
use quorate_kernel::ports::dispatcher::Dispatcher;
use quorate_kernel::ports::effectors::Effectors;
use quorate_kernel::ports::state::State;
use quorate_kernel::ports::substrate::Substrate;
use quorate_kernel::turn::Speaker;

use super::{PortBuilder, participant_place};
use crate::service::executor::with_help;

/// The key of a participant's `meta` that names its operator.
const OPERATOR_ID_KEY: &str = "operatorId";

impl PortBuilder<'_> {
    /// The tools and MCP servers of each participant. Warns about unknown servers.
    pub(super) fn effectors(&mut self) -> Arc<dyn Effectors> {
        let bindings = self.written.runtime.effectors.iter().flatten().map(|effector| {
            let servers = effector.mcp_servers.clone().unwrap_or_default();
            (effector.participant_id.clone(), Tools { allowed: Some(effector.tools.clone()), servers })
        });
        let effectors = effectors::new(bindings.collect(), &self.servers);
        for (participant, server) in effectors.unknown_servers() {
            let body = Body::new(format!(
                "`{participant}` may use the MCP server `{server}`, which is not configured"
            ));
            let help = format!("add `[mcp.{server}]` to quorate.toml; until then it is not passed on");
            let body = body.at(self.effector_place(&participant, &server)).help(help);
            self.cautions.warn(codes::EFFECTOR_UNKNOWN_SERVER, body);
        }
        effectors
    }

    /// The place that allows a participant to use a server.
    fn effector_place(&self, participant: &str, server: &str) -> Place {
        let bindings = self.written.runtime.effectors.iter().flatten().enumerate();
        let mut named =
            bindings.filter(|(_, one)| one.participant_id == participant).filter_map(|(at, one)| {
                Some((at, one.mcp_servers.iter().flatten().position(|id| id == server)?))
            });
        let Some((at, of)) = named.next() else { return self.place_of("effectors", "") };
        let binding = self.document.root.key("effectors").and_then(|all| all.items().get(at));
        let servers = binding.and_then(|binding| binding.key("mcpServers"));
        let span = servers.and_then(|servers| servers.items().get(of)).map_or(0..0, |node| node.span.clone());
        self.document.place(span, format!("effectors[{at}].mcpServers[{of}]"))
    }

    /// Refuses participants whose executors could never take their turns here.
    pub(super) fn check_executors(&mut self, substrate: &dyn Substrate, speakers: &[Option<Speaker>]) {
        let conversation = substrate.about().conversation;
        for (at, speaker) in speakers.iter().enumerate() {
            let Some(Speaker { participant, member: config, .. }) = speaker else { continue };
            if let Err(refused) = config.executor.check_participant(participant, conversation.as_deref()) {
                let at = participant_place(self.document, at, refused.key.as_deref().unwrap_or("executor"));
                let body = with_help(Body::new(refused.message).at(at), refused.help);
                self.refuse(codes::EXECUTOR_INVALID, body);
            }
        }
    }

    /// Warnings about valid manifests that may behave unexpectedly.
    pub(super) fn collect_warnings(
        &mut self,
        substrate: &dyn Substrate,
        dispatcher: &dyn Dispatcher,
        participants: &[Participant],
        speakers: &[Option<Speaker>],
    ) {
        for caution in dispatcher.warnings(participants) {
            self.cautions
                .warn(codes::DISPATCH_AMBIGUOUS, Body::new(caution).at(self.place_of("dispatcher", "")));
        }
        // Readers of the conversation get these as well.
        for caution in substrate.warnings() {
            self.report
                .warn(codes::CONVERSATION_DOUBTFUL, Body::new(caution).at(self.place_of("substrate", "")));
        }
        // If the substrate gives authors their own identities, an operator of the remote side may also answer (K8).
        let identities = substrate.about().capabilities.contains(&Capability::Identity);
        for (at, speaker) in speakers.iter().enumerate() {
            let Some(speaker) = speaker else { continue };
            self.warn_unpassed_servers(speaker);
            if identities {
                self.warn_double_answers(at, speaker);
            }
        }
    }

    pub(super) fn warn_states(&mut self, state: &dyn State) {
        for warning in state.warnings() {
            self.cautions.warn(codes::STATE_UNREAD, Body::new(warning).at(self.place_of("state", "")));
        }
    }

    /// Warns about servers that an executor does not pass on.
    fn warn_unpassed_servers(&mut self, Speaker { participant, member: config, .. }: &Speaker) {
        let Some(server) = participant.tools.servers.first() else { return };
        if config.executor.forwards_mcp_servers() {
            return;
        }
        let body = Body::new(format!(
            "`{}` may use MCP servers, but its executor `{}` does not pass them on",
            participant.id, config.executor_name
        ));
        let body = body.at(self.effector_place(&participant.id, server));
        let help =
            "remove `mcpServers`, or use a CLI that gets the servers: the presets `claude` and `codex`";
        self.cautions.warn(codes::FIELD_WITHOUT_EFFECT, body.help(help));
    }

    /// Warns about a participant for which the remote side may also answer.
    fn warn_double_answers(&mut self, at: usize, Speaker { participant, member: config, .. }: &Speaker) {
        // The remote side answers only because it is asked from here, so its answer is posted once.
        if config.executor.returns_answer_only() {
            return;
        }
        let Some(operator) = participant.meta_text(OPERATOR_ID_KEY) else { return };
        let body = Body::new(format!(
            "`{}` may also be an operator of the conversation (`{operator}`): if the server answers mentions by itself, \
             each mention is answered twice",
            participant.id
        ));
        let help = "use the executor `db-operator` with `postReply: false`, so that the operator answers from the server, \
                    or turn off routing of mentions to it on the server";
        let at = participant_place(self.document, at, "meta.operatorId");
        self.cautions.warn(codes::ORCHESTRATOR_COEXISTS, body.at(at).help(help));
    }
}
