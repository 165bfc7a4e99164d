//! All tools, one file each.

mod assembly_convene;
mod council_audit;
mod council_review;
mod council_sweep;
mod get_messages;
mod job_cancel;
mod job_poll;
mod kv_get;
mod kv_set;
mod ledger_prove;
mod ledger_verify;
mod options;
mod post_message;
mod run_operator;
mod run_show;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ServerState;
use super::tool::{Tool as _, ToolEntry};
use quorate::service::whole::Whole;

/// The longest wait of a call, in milliseconds: clients time out after 60 seconds.
const MAX_WAIT_MS: u64 = 50_000;
/// The default wait of a call for its job, in milliseconds.
const DEFAULT_WAIT_MS: u64 = 20_000;

/// All tools, in the order of `tools/list`.
pub(super) fn all() -> Vec<ToolEntry> {
    vec![
        ToolEntry::of::<post_message::PostMessage>(),
        ToolEntry::of::<get_messages::GetMessages>(),
        ToolEntry::of::<run_operator::RunOperator>(),
        ToolEntry::of::<kv_get::KvGet>(),
        ToolEntry::of::<kv_set::KvSet>(),
        ToolEntry::of::<council_review::CouncilReview>(),
        ToolEntry::of::<council_sweep::CouncilSweep>(),
        ToolEntry::of::<council_audit::CouncilAudit>(),
        ToolEntry::of::<assembly_convene::AssemblyConvene>(),
        ToolEntry::of::<run_show::RunShow>(),
        ToolEntry::of::<ledger_verify::LedgerVerify>(),
        ToolEntry::of::<ledger_prove::LedgerProve>(),
        ToolEntry::of::<job_poll::JobPoll>(),
        ToolEntry::of::<job_cancel::JobCancel>(),
    ]
}

/// Whether a tool needs a conversation.
pub(super) fn needs_conversation(name: &str) -> bool {
    [
        post_message::PostMessage::NAME,
        get_messages::GetMessages::NAME,
        run_operator::RunOperator::NAME,
        kv_get::KvGet::NAME,
        kv_set::KvSet::NAME,
    ]
    .contains(&name)
}

/// The server's instructions for a model.
pub(super) fn instructions(server: &ServerState) -> String {
    let mut text = "Quorate: councils and assemblies of agents whose decisions are recorded.".to_owned();
    if !server.read_only {
        text.push_str(
            " Long work is a job: a call that has no result after `wait_ms` gives the job's id, `job_poll` waits for \
             its end, `job_cancel` ends it.",
        );
    }
    let ids: Vec<String> = server.conversations.ids().map(|id| format!("`{id}`")).collect();
    if !ids.is_empty() {
        text.push_str(&format!(" Conversations: {}.", ids.join(", ")));
    }
    text
}

/// A JSON object that a command prints with `--format json`, without a schema of its own.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct Object(Map<String, Value>);

impl Object {
    /// Parses the JSON output of a command's renderer.
    fn from_json_text(text: &str) -> Object {
        Object(serde_json::from_str(text).expect("`--format json` prints one object"))
    }
}

/// The most calls of a run.
type MaxCalls = Whole<0, { u32::MAX as u64 }>;

/// The most tokens of a run.
type MaxTokens = Whole<1, { u64::MAX }>;

/// How long a call waits for its job, in milliseconds.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Wait(Option<Whole<0, MAX_WAIT_MS>>);

impl Wait {
    fn duration(self) -> Duration {
        Duration::from_millis(self.0.map_or(DEFAULT_WAIT_MS, Whole::get))
    }
}
