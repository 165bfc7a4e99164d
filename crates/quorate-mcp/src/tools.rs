//! All tools, by topic, and the arguments that several of them share, with the meaning of the command line's options.

mod conversation;
mod decisions;
mod jobs;
mod ledger;

use std::time::Duration;

use quorate::input::{self, Whole};
use quorate::{Caps, Money, RunOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ServerState;
use super::tool::{Tool as _, ToolEntry};
use crate::conversations::Caller;
use crate::failure::Failure;
use crate::tasks::MAX_TASK_TIME;

/// The longest wait of a call, in milliseconds: clients time out after 60 seconds.
const MAX_WAIT_MS: u64 = 50_000;
/// The default wait of a call for its job, in milliseconds.
const DEFAULT_WAIT_MS: u64 = 20_000;

/// All tools, in the order of `tools/list`.
pub(super) fn all() -> Vec<ToolEntry> {
    vec![
        ToolEntry::of::<conversation::PostMessage>(),
        ToolEntry::of::<conversation::GetMessages>(),
        ToolEntry::of::<conversation::RunOperator>(),
        ToolEntry::of::<conversation::KvGet>(),
        ToolEntry::of::<conversation::KvSet>(),
        ToolEntry::of::<decisions::CouncilReview>(),
        ToolEntry::of::<decisions::CouncilSweep>(),
        ToolEntry::of::<decisions::CouncilAudit>(),
        ToolEntry::of::<decisions::AssemblyConvene>(),
        ToolEntry::of::<decisions::CouncilOverride>(),
        ToolEntry::of::<ledger::RunShow>(),
        ToolEntry::of::<ledger::LedgerVerify>(),
        ToolEntry::of::<ledger::LedgerProve>(),
        ToolEntry::of::<jobs::JobPoll>(),
        ToolEntry::of::<jobs::JobCancel>(),
    ]
}

/// Whether a tool needs a conversation.
pub(super) fn needs_conversation(name: &str) -> bool {
    [
        conversation::PostMessage::NAME,
        conversation::GetMessages::NAME,
        conversation::RunOperator::NAME,
        conversation::KvGet::NAME,
        conversation::KvSet::NAME,
    ]
    .contains(&name)
}

/// The server's instructions for a model.
pub(super) fn instructions(server: &ServerState) -> String {
    let mut text = "Quorate: councils and assemblies of agents whose decisions are recorded.".to_owned();
    if !server.read_only {
        text.push_str(
            " Long work is a task, or a job for clients without tasks: a call that has no result after `wait_ms` gives \
             the job's id, `job_poll` waits for its end, `job_cancel` ends it.",
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

impl From<Value> for Object {
    fn from(report: Value) -> Object {
        match report {
            Value::Object(object) => Object(object),
            other => unreachable!("a report is an object: {other}"),
        }
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
    /// A task waits as long as it may work.
    fn duration(self, caller: &Caller) -> Duration {
        match caller {
            Caller::Request(_) => Duration::from_millis(self.0.map_or(DEFAULT_WAIT_MS, Whole::get)),
            Caller::Task(_) => MAX_TASK_TIME,
        }
    }
}

/// The options of a run. A client may name an executor of quorate.toml or a preset, whose address the user knows. An
/// address of the client's own would get any file of the root; the client may follow what it has read.
fn run_options(
    executor: Option<String>,
    calls: Option<MaxCalls>,
    tokens: Option<MaxTokens>,
    money: Option<&str>,
    timeout: Option<&str>,
) -> Result<RunOptions, Failure> {
    if executor.as_deref().is_some_and(|name| name.contains("://")) {
        return Err(Failure::usage(
            "`executor` is an address",
            "name a table of quorate.toml or a preset: an address that texts are sent to stands in quorate.toml",
        ));
    }
    let money = money.map(Money::parse_cap).transpose();
    let money =
        money.map_err(|error| Failure::usage(format!("`max_money`: {error}"), "write 5 USD or 0.50 USD"))?;
    let caps =
        Caps { calls: calls.map(|calls| calls.get() as u32), tokens: tokens.map(MaxTokens::get), money };
    let invalid = |why: String| Failure::usage(why, "write 90s or 5m");
    let timeout = match timeout.map(input::parse_duration).transpose() {
        Ok(Some(long)) if long.is_zero() => return Err(invalid("`timeout` is nothing".to_owned())),
        Ok(timeout) => timeout,
        Err(error) => return Err(invalid(format!("`timeout`: {error}"))),
    };
    Ok(RunOptions { executor, caps, timeout, ..RunOptions::default() })
}

/// Parses a time in the past, as `--since` does.
fn parse_since(text: &str, now_ms: i64) -> Result<Option<i64>, Failure> {
    input::parse_since(text, now_ms)
        .map_err(|error| Failure::usage(format!("`since`: {error}"), "write 24h, 7d, a date, or all"))
}
