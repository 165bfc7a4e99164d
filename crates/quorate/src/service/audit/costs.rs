//! Costs by executor, member, type and month, from the records of the ledger.

use std::collections::BTreeMap;

use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;
use quorate_adapters::executor::{cassette, inline, rubric, script};
use quorate_kernel::ports::executor::Usage;
use quorate_ledger::stats::{ReviewFilter, MemberCost};

/// Kinds of executors that ask no model. Any other may ask one, even if it reports neither tokens nor a price.
const ASK_NO_MODEL: [&str; 4] = [cassette::KIND, inline::KIND, rubric::KIND, script::KIND];

/// Sums of costs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Costs {
    pub all: Sum,
    /// By executor, with the model that answered or was asked.
    pub executors: BTreeMap<(String, Option<String>), Sum>,
    pub members: BTreeMap<String, Sum>,
    /// By type of artifact; by the ledger's stream for questions outside of runs.
    pub types: BTreeMap<String, Sum>,
    /// By month, such as `2026-11`.
    pub months: BTreeMap<String, Sum>,
}

/// Calls, and their cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    pub calls: u64,
    /// Calls of consultations whose price is not known.
    pub unpriced: u64,
    pub usage: Usage,
}

impl Sum {
    fn add(&mut self, cost: &MemberCost) {
        self.calls += cost.calls;
        if cost.usage.usd_nanos.is_none() {
            self.unpriced += cost.calls;
        }
        self.usage.add(cost.usage);
    }
}

impl Costs {
    /// Sums up the costs that the ledger has recorded.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    #[crate::boxed]
    pub async fn load(session: &LedgerSession, filter: &ReviewFilter) -> Result<Costs, ServiceError> {
        let mut costs = Costs::default();
        session.store.member_costs(filter, |cost| costs.add(cost)).await?;
        Ok(costs)
    }

    fn add(&mut self, cost: MemberCost) {
        if cost.usage == Usage::default() && ASK_NO_MODEL.contains(&&*cost.kind) {
            return;
        }
        self.all.add(&cost);
        let month = cost.at.get(..7).unwrap_or_default().to_owned();
        self.months.entry(month).or_default().add(&cost);
        self.types.entry(cost.artifact_type.clone()).or_default().add(&cost);
        self.members.entry(cost.member.clone()).or_default().add(&cost);
        self.executors.entry((cost.executor.clone(), cost.model.clone())).or_default().add(&cost);
    }
}
