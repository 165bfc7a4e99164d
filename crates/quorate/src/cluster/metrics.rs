//! Metrics of appends, executor calls and the queue. The values go to the recorder that the embedding program has installed
//! (crate `metrics`); without a recorder they cost nothing.

use std::sync::Arc;

use async_trait::async_trait;
use metrics::{counter, describe_counter, describe_histogram, histogram};
use quorate_kernel::ports::ledger::{Append, Fence, Kind, Ledger, LedgerError, Record};
use quorate_kernel::record::{self, Consultation};
use quorate_ledger::store::Store;
use quorate_protocol::Name;
use tokio::time::Instant;

/// The histogram of appends. Appends are a thousand times faster than calls, so it needs its own buckets.
pub const APPEND_SECONDS: &str = "quorate_append_seconds";
const APPENDS: &str = "quorate_appends_total";
const INVOCATIONS: &str = "quorate_invocations_total";
const INVOCATION_SECONDS: &str = "quorate_invocation_seconds";
const TOKENS: &str = "quorate_tokens_total";
const COST: &str = "quorate_cost_usd_nanos_total";

/// Registers the descriptions of the metrics of appends and calls with the installed recorder.
pub(super) fn describe() {
    describe_histogram!(
        APPEND_SECONDS,
        "How long an append to the ledger took, including the wait for other writers."
    );
    describe_counter!(
        APPENDS,
        "Appends to the ledger, by result: written, refused (another has the run), failed."
    );
    describe_counter!(
        INVOCATIONS,
        "Invocations of members, by executor and status. An invocation has one or more calls."
    );
    describe_histogram!(INVOCATION_SECONDS, "How long an invocation took from question to end, by executor.");
    describe_counter!(TOKENS, "Tokens that executors report, by executor and direction: in, out.");
    describe_counter!(COST, "Cost that executors report, in billionths of a US dollar, by executor.");
}

fn count_call(ended: &Consultation) {
    if ended.recorded {
        return;
    }
    let (executor, spent) = (&ended.executor, &ended.spent);
    counter!(INVOCATIONS, "executor" => executor.clone(), "status" => ended.status.as_str().to_owned())
        .increment(1);
    if let Some(ms) = spent.ms {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a call takes fewer than 2^53 milliseconds, so the conversion is exact"
        )]
        histogram!(INVOCATION_SECONDS, "executor" => executor.clone()).record(ms as f64 / 1000.0);
    }
    for (direction, tokens) in [("in", spent.tokens_in), ("out", spent.tokens_out)] {
        if let Some(tokens) = tokens {
            counter!(TOKENS, "executor" => executor.clone(), "direction" => direction).increment(tokens);
        }
    }
    if let Some(money) = spent.money {
        counter!(COST, "executor" => executor.clone()).increment(money.nanos());
    }
}

/// A ledger that measures its appends.
pub(crate) struct MeteredLedger(pub(crate) Arc<Store>);

#[async_trait]
impl Ledger for MeteredLedger {
    async fn append(&self, append: Append) -> Result<u64, LedgerError> {
        let ended: Vec<Consultation> = append
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Consultation)
            .filter_map(|entry| record::read(&entry.data).ok())
            .collect();
        let began = Instant::now();
        let done = self.0.append(append).await;
        histogram!(APPEND_SECONDS).record(began.elapsed());
        let result = match &done {
            Ok(_) => "written",
            Err(LedgerError::Conflict { .. }) => "refused",
            Err(_) => "failed",
        };
        counter!(APPENDS, "result" => result).increment(1);
        if done.is_ok() {
            ended.iter().for_each(count_call);
        }
        done
    }

    async fn records(&self, run: &Name) -> Result<Vec<Record>, LedgerError> {
        self.0.records(run).await
    }

    async fn tail(&self, run: &Name, count: u32) -> Result<Vec<Record>, LedgerError> {
        self.0.tail(run, count).await
    }

    async fn body(&self, sha256: &str) -> Result<Option<Arc<str>>, LedgerError> {
        self.0.body(sha256).await
    }

    fn fence(&self, run: &Name) -> Fence {
        self.0.fence(run)
    }
}
