//! The queue and its workers, for people.

use std::time::Duration;

use quorate_diagnostics::render::TextOptions;
use quorate_ledger::store::tasks::{PoolQuota, Tenant};
use quorate_ledger::store::tasks::{TaskRow, TaskState};

use super::layout::{Paint, finish, one_line};
use super::layout::{prose, table};
use super::wording::{amount, duration, minute};
use quorate::service::queue::enqueue::QueuedSubject;
use quorate::service::queue::manage::QueueStatus;
use quorate::service::queue::worker::TaskEnd;
use quorate::service::queue::worker::{TaskName, WorkerSummary};

/// The tasks by tenant, a column for each state.
pub(crate) fn status(status: &QueueStatus, options: TextOptions) -> String {
    let mut tenants: Vec<&str> = status.counts.iter().map(|count| &*count.tenant).collect();
    tenants.dedup();
    let mut out = String::new();
    let rows = tenants.iter().map(|tenant| {
        let mut row = vec![one_line(tenant)];
        for state in TaskState::ALL {
            let count = status.counts.iter().find(|count| count.tenant == *tenant && count.state == state);
            row.push(count.map_or_else(String::new, |count| count.tasks.to_string()));
        }
        let oldest =
            status.counts.iter().find(|count| count.tenant == *tenant && count.state == TaskState::Ready);
        row.push(oldest.map_or_else(String::new, |count| duration(Duration::from_millis(count.oldest_ms))));
        row.push(if status.paused.iter().any(|paused| paused == tenant) {
            "paused".into()
        } else {
            String::new()
        });
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    match rows.is_empty() {
        true => out.push_str("The queue is empty: `quorate sweep --enqueue` fills it.\n"),
        false => {
            let mut headings = vec!["tenant"];
            headings.extend(TaskState::ALL.map(TaskState::as_str));
            headings.extend(["oldest", ""]);
            out.push_str(&table(&headings, rows, 0, options.width));
        }
    }
    if status.is_paused {
        let text = "The queue is paused: `quorate queue pause --off` lets workers claim again.";
        out.push_str(&prose(text, 0, options.width));
    }
    finish(&out, options)
}

/// Tasks, with the reasons of those that failed.
pub(crate) fn list(tasks: &[TaskRow], options: TextOptions) -> String {
    if tasks.is_empty() {
        return "No task fits.\n".to_owned();
    }
    let rows = tasks.iter().map(|task| {
        vec![
            task.run.to_string(),
            of_state(task.state).on(task.state.as_str()),
            one_line(&task.tenant),
            task.attempts.to_string(),
            minute(task.queued_ms),
            one_line(&task.subject),
            one_line(task.error.as_deref().unwrap_or_default()),
        ]
    });
    let headings = ["run", "state", "tenant", "tries", "queued (UTC)", "subject", "error"];
    finish(&table(&headings, rows.collect(), 0, options.width), options)
}

fn of_state(state: TaskState) -> Paint {
    match state {
        TaskState::Dead => Paint::Absent,
        _ => Paint::Faint,
    }
}

/// A tenant's share and limits.
pub(crate) fn tenant(tenant: &Tenant, options: TextOptions) -> String {
    let limit = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let row = vec![
        one_line(&tenant.name),
        tenant.weight.to_string(),
        limit(tenant.max_running),
        limit(tenant.max_waiting),
    ];
    finish(
        &table(&["tenant", "weight", "running at most", "waiting at most"], vec![row], 0, options.width),
        options,
    )
}

/// A rate of calls an hour, in the unit in which it is a whole number.
fn calls(rate: u64) -> String {
    match rate {
        rate if rate % 3_600 == 0 => format!("{} a second", rate / 3_600),
        rate if rate % 60 == 0 => format!("{} a minute", rate / 60),
        rate => format!("{rate} an hour"),
    }
}

/// The call rates of pools.
pub(crate) fn quotas(quotas: &[PoolQuota], options: TextOptions) -> String {
    if quotas.is_empty() {
        return "No worker has asked a model service yet.\n".to_owned();
    }
    let row = |quota: &PoolQuota| {
        let limit = quota.calls_per_hour.zip(quota.burst).map_or_else(
            || "no limit".to_owned(),
            |(rate, burst)| format!("{}, {burst} saved up", calls(rate)),
        );
        let wait = match quota.blocked_ms {
            0 => String::new(),
            wait => format!("waits {} more", duration(Duration::from_millis(wait))),
        };
        vec![one_line(&quota.pool), limit, wait]
    };
    let rows = quotas.iter().map(row).collect();
    finish(&table(&["pool", "calls", ""], rows, 0, options.width), options)
}

/// The result of a task, on one line.
pub(crate) fn task_end(task: &TaskName, end: &TaskEnd, options: TextOptions) -> String {
    let (word, more) = match end {
        TaskEnd::Done { word } => (Paint::of_word(word).on(word), String::new()),
        TaskEnd::Later { wait_ms, why } => {
            let wait = duration(Duration::from_millis(*wait_ms));
            (Paint::Absent.on("later"), format!(" (in {wait}: {})", one_line(why)))
        }
        TaskEnd::Dead { why } => (Paint::Absent.on("dead"), format!(" ({})", one_line(why))),
        TaskEnd::Lost => (Paint::Faint.on("lost"), " (another worker has it)".to_owned()),
        TaskEnd::Released => (Paint::Faint.on("released"), String::new()),
    };
    let line = format!("{word}  {}  {}{more}\n", one_line(&task.subject), task.run);
    finish(&line, options)
}

/// A number of tasks.
pub(crate) fn tasks(count: u64) -> String {
    amount(count, "task")
}

/// Convenings that were queued: with their outcomes where they were waited for.
pub(crate) fn convenings(queued: &[QueuedSubject], options: TextOptions) -> String {
    let rows = queued.iter().map(|subject| {
        let word = match &subject.outcome {
            Some(outcome) => Paint::of_word(outcome).on(outcome),
            None => of_state(subject.state).on(subject.state.as_str()),
        };
        vec![
            word,
            one_line(&subject.path),
            subject.run.to_string(),
            one_line(subject.error.as_deref().unwrap_or_default()),
        ]
    });
    let mut out = table(&["outcome", "subject", "run", "error"], rows.collect(), 0, options.width);
    let new = queued.iter().filter(|subject| subject.is_new).count();
    let before = queued.len() - new;
    let known = if before == 0 { String::new() } else { format!(", {before} queued before") };
    out.push_str(&format!("\n{}: {new} queued{known}.\n", amount(queued.len() as u64, "subject")));
    finish(&out, options)
}

/// What a worker did, in a sentence.
pub(crate) fn summary(summary: &WorkerSummary) -> String {
    let parts = [
        (summary.later, "to be tried again"),
        (summary.dead, "dead"),
        (summary.lost, "taken over by others"),
        (summary.released, "given back"),
    ];
    let mut text = format!("{} done", amount(summary.done, "task"));
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {what}"));
    }
    text
}
