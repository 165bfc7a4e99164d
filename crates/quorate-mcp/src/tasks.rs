//! Long calls as tasks (`io.modelcontextprotocol/tasks`): a client that declares the extension gets a handle at once and
//! polls it. For other clients the same call is a job, for which `job_poll` waits. The library keeps the tasks, and the work
//! of each is a job of the server.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{CreateTaskResult, JsonObject};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};

use crate::conversations::Caller;
use crate::tool::Call;
use crate::{ServerState, card};

/// How long a task works at most, and how long its result is kept after that.
pub(super) const MAX_TASK_TIME: Duration = Duration::from_secs(6 * 60 * 60);

/// Whether the client of a request declares that it knows tasks.
pub(super) fn are_known(request: &RequestContext<RoleServer>) -> bool {
    request.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// Starts a call as a task.
pub(super) fn start(
    server: &Arc<ServerState>,
    call: Call,
    arguments: JsonObject,
    has_cards: bool,
) -> CreateTaskResult {
    let options = TaskOptions::new().with_ttl_ms(MAX_TASK_TIME.as_millis() as u64);
    let own = server.clone();
    let task = server.tasks.spawn(options, move |task| {
        Box::pin(async move {
            let caller = Caller::Task(task);
            let mut result = call(&own, arguments, &caller).await?;
            if result.is_error == Some(true) && caller.has_cancelled() {
                return Err(TaskExit::Cancelled);
            }
            if has_cards {
                card::annotate(&own, &mut result).await;
            }
            Ok(result)
        })
    });
    CreateTaskResult::new(task)
}
