//! What was spent, read from the consultations of all runs and of single questions, and from comparisons by meaning.

use quorate_kernel::ports::executor::Usage;
use quorate_kernel::ports::ledger::{Error, Kind};
use quorate_kernel::record::Spent;
use serde::Deserialize;

use crate::Store;
use crate::record::Head;
use crate::store::engine::{Column, sql};

/// What stands for member and executor of a comparison by meaning: the table of the embedder.
const EMBEDDER: &str = "[embedder]";

/// How many records are read at once.
const PAGE: i64 = 1_000;

/// Which consultations count; all of them unless said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Of runs that were not opened before this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Of runs with this verdict alone.
    pub verdict: Option<String>,
    /// Of runs with this type of artifact alone.
    pub artifact_type: Option<String>,
}

/// What one member's question cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberCost {
    /// The type of the run's artifact; the name of the stream where it was asked outside of runs.
    pub artifact_type: String,
    /// When it ended: RFC 3339, UTC.
    pub at: String,
    pub member: String,
    pub executor: String,
    /// The executor's kind; empty for comparisons by meaning.
    pub kind: String,
    /// The model that answered, or was asked.
    pub model: Option<String>,
    pub calls: u64,
    pub usage: Usage,
}

/// Of a consultation or a comparison, what is needed here.
#[derive(Deserialize)]
struct Consulted {
    #[serde(default = "embedder")]
    member: String,
    #[serde(default = "embedder")]
    executor: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    spent: Spent,
}

fn embedder() -> String {
    EMBEDDER.to_owned()
}

impl Store {
    /// Hands over the cost of each consultation that made a call, and of each comparison with paid requests, in the order of the ledger. Imported runs were paid for
    /// elsewhere and are left out, as are consultations that were erased.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn member_costs(&self, filter: &Filter, mut each: impl FnMut(MemberCost)) -> Result<(), Error> {
        use Column::{Int, Text};
        let mut after = 0;
        loop {
            let page = sql(
                "SELECT record.seq, record.head, record.data, COALESCE(run.artifact_type, record.run) FROM record \
                 LEFT JOIN run ON run.run = record.run \
                 WHERE record.kind IN ($1, $7) AND record.seq > $2 AND record.data IS NOT NULL \
                   AND record.run NOT IN (SELECT run FROM imported) \
                   AND ($3 < 0 OR run.opened_ms >= $3) AND ($4 = '' OR run.verdict = $4) \
                   AND ($5 = '' OR run.artifact_type = $5) \
                 ORDER BY record.seq LIMIT $6",
            );
            let page = page
                .bind(Kind::Consultation.as_str())
                .bind(after)
                .bind(filter.since_ms.unwrap_or(-1))
                .bind(filter.verdict.as_deref().unwrap_or_default())
                .bind(filter.artifact_type.as_deref().unwrap_or_default())
                .bind(PAGE)
                .bind(Kind::Match.as_str());
            let rows = self.rows(page, &[Int, Text, Text, Text]).await?;
            for row in &rows {
                after = row.int(0);
                let head: Option<Head<&str>> = serde_json::from_str(row.text(1)).ok();
                let consulted: Option<Consulted> = serde_json::from_str(row.text(2)).ok();
                // What cannot be read is `ledger verify`'s to report.
                let Some((head, consulted)) = head.zip(consulted) else { continue };
                let calls = consulted.spent.calls.unwrap_or(0);
                if calls > 0 {
                    each(MemberCost {
                        artifact_type: row.text(3).to_owned(),
                        at: head.at.to_owned(),
                        member: consulted.member,
                        executor: consulted.executor,
                        kind: consulted.kind,
                        model: consulted.model,
                        calls,
                        usage: consulted.spent.usage(),
                    });
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}
