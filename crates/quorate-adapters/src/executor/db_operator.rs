//! The `db-operator` executor: an operator that lives on the conversation's server, run by the tool `run_operator`. Each
//! call runs one turn: it skips the server's routing and triage, since the local dispatcher decides who speaks.
//!
//! A server whose operators take long returns a job in place of the result: `{job, done, result?}`. The caller polls it,
//! and cancels a job that it no longer waits for.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use quorate_kernel::conversation::Participant;
use quorate_kernel::ports::executor::{About, ConfigError, Executor, Failure, Invocation, Reply, Settings};
use quorate_protocol::{Json, Name};
use serde_json::json;
use tokio::time::Instant;

use crate::block::Block;
use crate::mcp::{self, Arguments, CallDeadline, CallError, Connection, Retry, ServerTools};

/// The kind that a manifest names.
pub const KIND: &str = crate::optional_kinds::MCP_EXECUTOR;

const KEYS: &[&str] = &[mcp::SERVER_KEY, "postReply", "conversationId"];

const RUN_TOOL: &str = "run_operator";

const OPERATOR_KEY: &str = "operatorId";

/// Builds the executor from its table or from a participant's `config`.
///
/// # Errors
/// When the block has an unknown key or a value of the wrong type, or when the server that it names is not configured.
pub fn new(settings: &Settings) -> Result<Arc<dyn Executor>, ConfigError> {
    let block = Block::parse(&settings.block, KEYS)?;
    Ok(Arc::new(DbOperator {
        posts_reply: block.flag("postReply")?,
        conversation: block.text("conversationId")?.map(str::to_owned),
        connection: mcp::connection(&block, &settings.servers, &settings.dir)?,
    }))
}

/// The operator that answers for a participant.
fn operator_id(participant: &Participant) -> Result<&str, ConfigError> {
    participant.meta_text(OPERATOR_KEY).ok_or_else(|| {
        let message = format!("participant `{}` has no `meta.{OPERATOR_KEY}`", participant.id);
        ConfigError::for_key(format!("meta.{OPERATOR_KEY}"), message)
            .with_help("name the operator that answers for it there")
    })
}

struct DbOperator {
    connection: Arc<Connection>,
    /// Whether the server posts the reply into the conversation itself.
    posts_reply: bool,
    /// The conversation's id on the server, if the substrate has none.
    conversation: Option<String>,
}

impl DbOperator {
    fn arguments(&self, invocation: &Invocation, offer: &ServerTools) -> Result<Arguments, Failure> {
        let Some(conversation_context) = invocation.conversation.as_deref() else {
            return Err(Failure::failed(
                "an operator of a server can be asked in a conversation alone, as a participant of a runtime",
            ));
        };
        let to_failure = |error: ConfigError| {
            let help = error.help.map(|help| format!("; {help}")).unwrap_or_default();
            Failure::failed(format!("{}{help}", error.message))
        };
        let operator = operator_id(&conversation_context.participant).map_err(to_failure)?;
        let conversation =
            self.conversation(conversation_context.external_id.as_deref()).map_err(to_failure)?;
        let mut arguments = Arguments::from_iter([
            (OPERATOR_KEY.to_owned(), json!(operator)),
            ("conversationId".to_owned(), json!(conversation)),
            ("postReply".to_owned(), json!(self.posts_reply)),
            ("idempotencyKey".to_owned(), json!(&*invocation.id)),
        ]);
        // K8: the local dispatcher alone chooses who answers.
        arguments.insert("disableAutoOrchestration".to_owned(), json!(true));
        if self.posts_reply && !offer.accepts(RUN_TOOL, "postReply") {
            return Err(Failure::failed(format!(
                "MCP server `{}`: `{RUN_TOOL}` cannot post its reply; leave `postReply` out",
                self.connection.id()
            )));
        }
        Ok(offer.without_unsupported(
            RUN_TOOL,
            arguments,
            &["postReply", "idempotencyKey", "disableAutoOrchestration"],
        ))
    }

    fn conversation<'a>(&'a self, conversation: Option<&'a str>) -> Result<&'a str, ConfigError> {
        conversation.or(self.conversation.as_deref()).ok_or_else(|| {
            ConfigError::for_key(
                "config",
                "the substrate has no name for the conversation that the server knows",
            )
            .with_help("set `conversationId` in the participant's config")
        })
    }

    fn reply(&self, result: &Json) -> Result<Reply, Failure> {
        let invalid = |problem: &str| {
            Failure::failed(format!(
                "MCP server `{}`: the result of `{RUN_TOOL}` {problem}",
                self.connection.id()
            ))
        };
        let texts =
            |names: &[&str]| names.iter().find_map(|name| result.get(name)?.as_str()).map(str::to_owned);
        let text = texts(&["text", "content"]).ok_or_else(|| invalid("has no `text`"))?;
        if text.trim().is_empty() {
            return Err(invalid("is an empty text"));
        }
        let posted = match self.posts_reply {
            true => {
                let id = texts(&["messageId"]).ok_or_else(|| {
                    invalid("has no `messageId`, so the posted message cannot be identified")
                })?;
                Some(Name::from(id))
            }
            false => None,
        };
        Ok(Reply { text, model: texts(&["model"]), posted, ..Reply::default() })
    }
}

#[async_trait]
impl Executor for DbOperator {
    fn about(&self) -> About {
        About { kind: KIND, asks_a_model: true, model: None }
    }

    fn check_participant(
        &self,
        participant: &Participant,
        conversation: Option<&str>,
    ) -> Result<(), ConfigError> {
        operator_id(participant)?;
        self.conversation(conversation).map(drop)
    }

    fn returns_answer_only(&self) -> bool {
        !self.posts_reply
    }

    async fn invoke(&self, invocation: Invocation) -> Result<Reply, Failure> {
        let until = CallDeadline::At(invocation.deadline);
        let failed = |error: mcp::CallError| match Instant::now() >= invocation.deadline {
            true => Failure::TimedOut,
            false => Failure::failed(error.to_string()),
        };
        let offer = self.connection.tools(until).await.map_err(failed)?;
        let mut arguments = self.arguments(&invocation, &offer)?;
        set_wait_parameter(&mut arguments, &offer, RUN_TOOL, invocation.deadline);
        let keyed = offer.accepts(RUN_TOOL, "idempotencyKey");
        // From here on the reply may be posted, also by a call that fails: another executor would post a second one.
        invocation.notes.note(|info| info.no_stand_in |= self.posts_reply);
        if self.posts_reply && !keyed && invocation.attempt > 1 {
            return Err(Failure::failed(format!(
                "it is not asked again: its first reply may have been posted, and `{RUN_TOOL}` of MCP server `{}` has no \
                 `idempotencyKey` to tell",
                self.connection.id()
            )));
        }
        let repeat = if keyed { Retry::Safe } else { Retry::Never };
        let result = self.connection.call(RUN_TOOL, arguments, repeat, until).await.map_err(failed)?;
        let settled = await_result(&self.connection, &offer, result, invocation.deadline).await;
        self.reply(&settled.map_err(failed)?)
    }
}

const POLL_TOOL: &str = "job_poll";
const CANCEL_TOOL: &str = "job_cancel";

/// The names that servers use for the wait time, in milliseconds.
const WAIT_PARAMETERS: &[&str] = &["waitMs", "wait_ms"];

const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long before the deadline a server is asked to answer.
const DEADLINE_MARGIN: Duration = Duration::from_millis(250);

/// The pause before the next poll if a server answered at once.
const POLL_DELAY: Duration = Duration::from_millis(100);

/// Asks the server to wait for a result as long as the deadline allows.
fn set_wait_parameter(arguments: &mut Arguments, offer: &ServerTools, tool: &str, deadline: Instant) {
    let remaining = deadline.saturating_duration_since(Instant::now()).saturating_sub(DEADLINE_MARGIN);
    let remaining = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
    if let Some(name) = WAIT_PARAMETERS.iter().find(|name| offer.accepts(tool, name)) {
        let wait = remaining.min(offer.maximum(tool, name).unwrap_or(u64::MAX));
        arguments.insert((*name).to_owned(), json!(wait));
    }
}

/// The result in a reply, or that of the job in it.
async fn await_result(
    connection: &Arc<Connection>,
    offer: &ServerTools,
    mut result: Json,
    deadline: Instant,
) -> Result<Json, CallError> {
    let mut job = Job(None);
    loop {
        let done = result.get("done").and_then(Json::as_bool);
        let (Some(id), Some(done)) = (result.get("job").and_then(Json::as_str), done) else {
            return Ok(result);
        };
        if done {
            job.0 = None;
            return Ok(result.get("result").cloned().unwrap_or_default());
        }
        let id = id.to_owned();
        job.0.get_or_insert_with(|| (Arc::clone(connection), id.clone()));
        let mut arguments = Arguments::from_iter([("job".to_owned(), json!(id))]);
        set_wait_parameter(&mut arguments, offer, POLL_TOOL, deadline);
        let polled_at = Instant::now();
        let polled = connection.call(POLL_TOOL, arguments, Retry::Safe, CallDeadline::At(deadline)).await;
        if let Err(CallError::Failed { .. }) = &polled {
            job.0 = None;
        }
        result = polled?;
        if polled_at.elapsed() < POLL_DELAY {
            tokio::time::sleep_until(deadline.min(polled_at + POLL_DELAY)).await;
        }
    }
}

/// A pending job on a server; dropping it cancels it there.
struct Job(Option<(Arc<Connection>, String)>);

impl Drop for Job {
    fn drop(&mut self) {
        let (Some((connection, id)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let arguments = Arguments::from_iter([("job".to_owned(), json!(id))]);
        runtime.spawn(async move {
            let until = CallDeadline::At(Instant::now() + CANCEL_TIMEOUT);
            // A server that cannot cancel it finishes it without effect.
            let _ = connection.call(CANCEL_TOOL, arguments, Retry::Never, until).await;
        });
    }
}
