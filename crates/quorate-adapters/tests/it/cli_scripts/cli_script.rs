//! One hostile command: a script, the executor that runs it, and the marker by which everything that it starts is
//! found in the process table, independently of how the executor finds it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use quorate_adapters::executor::agent_cli;

use quorate_kernel::ports::executor::{Executor, Failure, Inspection, Invocation, Reply, Settings};
use quorate_protocol::answers::Schema;
use serde_json::{Value, json};

/// The inputs of an attempt.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
/// Ten megabytes.
pub(crate) static HUGE: LazyLock<String> = LazyLock::new(|| "a".repeat(10 << 20));

/// The result of asking.
pub(crate) type CallResult = Result<Reply, Failure>;

/// An command.
pub(crate) struct CliScript {
    /// The script.
    pub(crate) name: String,
    /// Stands in the command line or the environment of all that it starts.
    pub(crate) marker: String,
    executor: Arc<dyn Executor>,
}

impl CliScript {
    /// A hostile script.
    pub(crate) fn new(name: &str) -> Self {
        CliScript::with(name, json!({}))
    }

    /// A hostile script with further keys.
    pub(crate) fn with(name: &str, keys: Value) -> Self {
        let marker = marker();
        let mut block = keys.as_object().cloned().unwrap_or_default();
        block.insert("command".into(), json!(format!("tests/it/cli_scripts/{name}.sh")));
        if !block.contains_key("preset") {
            block.insert("args".into(), json!([marker]));
        }
        let settings = Settings {
            name: name.into(),
            timeout: TIMEOUT,
            retries: 0,
            dir: Path::new(env!("CARGO_MANIFEST_DIR")).to_owned(),
            block,
            servers: Default::default(),
            prices: None,
        };
        CliScript {
            name: name.into(),
            marker,
            executor: agent_cli::new(&settings).expect("the block is fine"),
        }
    }

    /// Asks once, and sees to it that nothing is left at the moment of the answer.
    pub(crate) fn ask(&self, prompt: &str) -> (CallResult, Duration) {
        let before = Instant::now();
        let asked = self.ask_within(prompt, TIMEOUT);
        let took = before.elapsed();
        assert_eq!(count_processes(&self.marker), 0, "{}: processes are left", self.name);
        (asked, took)
    }

    /// Checks the installed program against what a judge needs.
    pub(crate) fn inspect(&self) -> Result<Inspection, Failure> {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        runtime().block_on(self.executor.inspect(deadline)).expect("a preset is inspected")
    }

    /// Asks once.
    pub(crate) fn ask_within(&self, prompt: &str, timeout: Duration) -> CallResult {
        runtime().block_on(self.invoke(prompt, timeout))
    }

    /// Asks once.
    pub(crate) async fn invoke(&self, prompt: &str, timeout: Duration) -> CallResult {
        let invocation = Invocation {
            run: "run".into(),
            id: "r1/script".into(),
            member: "script".into(),
            step: "r1".into(),
            attempt: 1,
            sample: 1,
            prompt: prompt.into(),
            cuts: Arc::new([]),
            parts: Arc::new([]),
            role: "".into(),
            task: "".into(),
            persona: None,
            answer_schema: Schema::FirstAnswer,
            json_schema: Arc::new(json!({"type": "object"})),
            conversation: None,
            nonce: "".into(),
            redactor: quorate_kernel::redact::Redactor::default(),
            fence: quorate_kernel::ports::ledger::Fence::default(),
            deadline: tokio::time::Instant::now() + timeout,
            notes: quorate_kernel::ports::executor::Notes::default(),
            progress: quorate_kernel::ports::executor::Progress::default(),
        };
        self.executor.invoke(invocation).await
    }
}

/// A runtime with nothing but a clock: the executor needs no more.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A marker that is also a duration for `sleep`: some hours, and a unique fraction.
pub(crate) fn marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}{:03}", 20_000 + COUNT.fetch_add(1, Ordering::Relaxed), std::process::id(), 7)
}

/// How many processes have the marker in their command line or environment.
pub(crate) fn count_processes(marker: &str) -> usize {
    processes().filter(|pid| mentions(*pid, marker)).count()
}

fn processes() -> impl Iterator<Item = u32> {
    let own = std::process::id();
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(move |pid| *pid != own)
}

fn mentions(pid: u32, marker: &str) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(marker.len()).any(|window| window == marker.as_bytes())
    })
}
