//! Long calls as tasks (`io.modelcontextprotocol/tasks`): a client that declares the extension gets a handle at once and
//! polls it. For other clients the same call is a job, for which `job_poll` waits. The library keeps the tasks, and the work
//! of each is a job of the server.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::CreateTaskResult;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};

use crate::conversations::Caller;
use crate::tool::CallResult;

/// How long a task works at most, and how long its result is kept after that.
pub(super) const MAX_TASK_TIME: Duration = Duration::from_secs(6 * 60 * 60);

/// Whether the client of a request declares that it knows tasks.
pub(super) fn are_known(request: &RequestContext<RoleServer>) -> bool {
    request.client_capabilities().is_some_and(|declared| declared.supports_tasks())
}

/// Starts a call as a task.
pub(super) fn start<W>(tasks: &TaskManager, work: impl FnOnce(Caller) -> W) -> CreateTaskResult
where
    W: Future<Output = CallResult> + Send + 'static,
{
    let options = TaskOptions::new().with_ttl_ms(MAX_TASK_TIME.as_millis() as u64);
    CreateTaskResult::new(tasks.spawn(options, |task| {
        let work = work(Caller::Task(task.clone()));
        Box::pin(async move {
            let result = work.await?;
            match result.is_error == Some(true) && task.is_cancel_requested() {
                true => Err(TaskExit::Cancelled),
                false => Ok(result),
            }
        })
    }))
}
