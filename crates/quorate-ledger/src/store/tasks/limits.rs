//! What bounds the queue: the shares and limits of tenants, and how fast pools of model services are asked by all workers.

use std::time::Duration;

use quorate_kernel::ports::ledger::Error;

use crate::Store;
use crate::store::engine::{Column, Row, sql};
use crate::store::leases::now;

/// A tenant's share and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub name: String,
    /// Its share of the workers, compared with the other tenants'.
    pub weight: u64,
    /// How many of its tasks workers may have at once.
    pub max_running: Option<u64>,
    /// How many of its tasks may wait.
    pub max_waiting: Option<u64>,
}

/// What is to change of a tenant; inside, `None` takes a limit away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantChange {
    pub weight: Option<u64>,
    pub max_running: Option<Option<u64>>,
    pub max_waiting: Option<Option<u64>>,
}

/// How fast a pool is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolQuota {
    pub pool: String,
    /// Calls an hour, and how many may be saved up; `None` without a limit.
    pub limit: Option<(u64, u64)>,
    /// How long the service has all workers wait, in milliseconds.
    pub blocked_ms: u64,
}

/// Permits for calls of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permits {
    /// There is no limit.
    Unlimited,
    Some(u64),
    /// None; ask again after this time.
    Wait(Duration),
}

impl Store {
    /// A tenant, as it is after a change.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn change_tenant(&self, name: &str, change: &TenantChange) -> Result<Tenant, Error> {
        const CHANGE: &str = "INSERT INTO tenant (name, weight, max_leased, max_ready, paused, served) \
            VALUES ($1, COALESCE($2, 1), $4, $6, 0, 0) ON CONFLICT (name) DO UPDATE \
            SET weight = COALESCE($2, tenant.weight), \
                max_leased = CASE WHEN $3 = 1 THEN $4 ELSE tenant.max_leased END, \
                max_ready = CASE WHEN $5 = 1 THEN $6 ELSE tenant.max_ready END";
        let limit =
            |limit: Option<Option<u64>>| (i64::from(limit.is_some()), limit.flatten().map(u64::cast_signed));
        if *change != TenantChange::default() {
            let (running, waiting) = (limit(change.max_running), limit(change.max_waiting));
            let statement = sql(CHANGE).bind(name).bind(change.weight.map(u64::cast_signed));
            let statement = statement.bind(running.0).bind(running.1).bind(waiting.0).bind(waiting.1);
            self.execute_on_server(statement).await?;
        }
        let columns = [Column::Int, Column::Text, Column::Text];
        let select =
            "SELECT weight, CAST(max_leased AS TEXT), CAST(max_ready AS TEXT) FROM tenant WHERE name = $1";
        let rows = self.rows(sql(select).bind(name), &columns).await?;
        let row = rows.first();
        let limit = |at| row.and_then(|row| row.opt_text(at)?.parse().ok());
        Ok(Tenant {
            name: name.to_owned(),
            weight: row.map_or(1, |row| row.count(0)),
            max_running: limit(1),
            max_waiting: limit(2),
        })
    }

    /// Takes permits for calls of a pool.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn take_permits(&self, pool: &str, wanted: u64) -> Result<Permits, Error> {
        let statement =
            sql("SELECT granted, wait_ms FROM quorate_take_permits($1, $2)").bind(pool).bind(wanted);
        let rows = self.rows(statement, &[Column::Int, Column::Int]).await?;
        Ok(match rows.first().map(|row| (row.int(0), row.count(1))) {
            Some((0, wait_ms)) => Permits::Wait(Duration::from_millis(wait_ms)),
            Some((granted, _)) if granted > 0 => Permits::Some(granted.unsigned_abs()),
            _ => Permits::Unlimited,
        })
    }

    /// Has all workers wait before they ask a pool.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn block_pool(&self, pool: &str, wait: Duration) -> Result<(), Error> {
        const BLOCK: &str = concat!(
            "INSERT INTO quota (pool, saved, at_ms, blocked_until_ms) VALUES ($1, 0, ",
            now!(),
            ", ",
            now!(),
            " + $2) \
             ON CONFLICT (pool) DO UPDATE SET blocked_until_ms = GREATEST(quota.blocked_until_ms, excluded.blocked_until_ms)"
        );
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.execute_on_server(sql(BLOCK).bind(pool).bind(wait_ms)).await.map(drop)
    }

    /// Bounds how fast all workers together ask a pool: so many calls an hour, of which so many may be saved up.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn set_quota(&self, pool: &str, limit: Option<(u64, u64)>) -> Result<(), Error> {
        const SET: &str = concat!(
            "INSERT INTO quota (pool, rate, burst, saved, at_ms, blocked_until_ms) VALUES ($1, $2, $3, 0, ",
            now!(),
            ", 0) \
             ON CONFLICT (pool) DO UPDATE SET rate = excluded.rate, burst = excluded.burst, saved = 0, at_ms = excluded.at_ms"
        );
        let rate = limit.map(|(rate, _)| rate.cast_signed());
        let burst = limit.map(|(_, burst)| burst.cast_signed());
        self.execute_on_server(sql(SET).bind(pool).bind(rate).bind(burst)).await.map(drop)
    }

    /// The pools that workers have asked, and those with a limit.
    ///
    /// # Errors
    /// When the store does not answer.
    #[crate::boxed]
    pub async fn quotas(&self) -> Result<Vec<PoolQuota>, Error> {
        const QUOTAS: &str = concat!(
            "SELECT pool, COALESCE(rate, 0), COALESCE(burst, 0), GREATEST(blocked_until_ms - ",
            now!(),
            ", 0) FROM quota ORDER BY pool"
        );
        let quota = |row: &Row| PoolQuota {
            pool: row.text(0).to_owned(),
            limit: Some((row.count(1), row.count(2))).filter(|(rate, _)| *rate > 0),
            blocked_ms: row.count(3),
        };
        let columns = [Column::Text, Column::Int, Column::Int, Column::Int];
        Ok(self.rows(sql(QUOTAS), &columns).await?.iter().map(quota).collect())
    }
}
