//! What was spent, by executor, member, type and month, from the records of the ledger.

use std::collections::BTreeMap;

use quorate_kernel::ports::executor::Usage;
use quorate_kernel::record::Money;
use quorate_ledger::costs::{Filter, MemberCost};
use serde_json::{Value, json};

use crate::service::error::ServiceError;
use crate::service::session::LedgerSession;

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

/// Calls and what they took.
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

    fn json(&self) -> Value {
        json!({
            "calls": self.calls,
            "unpriced_calls": self.unpriced,
            "tokens_in": self.usage.tokens_in,
            "tokens_cached": self.usage.tokens_cached,
            "tokens_out": self.usage.tokens_out,
            "money": self.usage.usd_nanos.map(Money::usd),
        })
    }
}

impl Costs {
    /// Sums up what the ledger has recorded.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(session: &LedgerSession, filter: &Filter) -> Result<Costs, ServiceError> {
        let mut costs = Costs::default();
        session.store.member_costs(filter, |cost| costs.add(cost)).await?;
        Ok(costs)
    }

    fn add(&mut self, cost: MemberCost) {
        // An executor that tells no tokens asks no model, or does not count.
        if cost.usage == Usage::default() {
            return;
        }
        self.all.add(&cost);
        let month = cost.at.get(..7).unwrap_or_default().to_owned();
        self.months.entry(month).or_default().add(&cost);
        self.types.entry(cost.artifact_type.clone()).or_default().add(&cost);
        self.members.entry(cost.member.clone()).or_default().add(&cost);
        self.executors.entry((cost.executor.clone(), cost.model.clone())).or_default().add(&cost);
    }

    /// As reports have it.
    pub fn json(&self) -> Value {
        let named = |sums: &BTreeMap<String, Sum>, key: &str| -> Vec<Value> {
            let named = sums.iter().map(|(name, sum)| {
                let mut object = sum.json();
                object[key] = json!(name);
                object
            });
            named.collect()
        };
        let executors = self.executors.iter().map(|((executor, model), sum)| {
            let mut object = sum.json();
            (object["executor"], object["model"]) = (json!(executor), json!(model));
            object
        });
        json!({
            "all": self.all.json(),
            "executors": executors.collect::<Vec<_>>(),
            "members": named(&self.members, "member"),
            "artifact_types": named(&self.types, "artifact_type"),
            "months": named(&self.months, "month"),
        })
    }
}
