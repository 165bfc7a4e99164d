//! Requests that are paid for and are no calls of a member, such as those of an embedder: reserved and settled one by one,
//! and summed up for the record.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Amount, Budget, Caps, Exhausted, Reservation};
use crate::ports::executor::{CallLimit, Usage};

/// Reserves from the budget of a run.
#[derive(Debug)]
pub struct Meter {
    budget: Arc<Budget>,
    took: Mutex<Took>,
}

/// What requests took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Took {
    pub requests: u64,
    /// As far as the service reported it.
    pub usage: Usage,
    /// What counts against caps: where usage is not known, what was reserved.
    pub charged: Amount,
}

/// A request that may be sent. Dropped without [`MeteredRequest::settle`], it counts with what was reserved for it.
#[derive(Debug)]
pub struct MeteredRequest<'m> {
    meter: &'m Meter,
    reservation: Option<Reservation>,
}

impl Meter {
    pub(crate) fn new(budget: Arc<Budget>) -> Meter {
        Meter { budget, took: Mutex::default() }
    }

    /// Without a budget.
    pub fn unlimited() -> Meter {
        Meter::new(Arc::new(Budget::new(Caps::default(), 0, Amount::default())))
    }

    /// Sets aside what a request takes at most. `None` is a limit that is not known.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub async fn reserve(&self, limit: Option<CallLimit>) -> Result<MeteredRequest<'_>, Exhausted> {
        let reservation = Some(self.budget.reserve(limit).await?);
        self.count(1, Usage::default(), Amount::default());
        Ok(MeteredRequest { meter: self, reservation })
    }

    /// What all requests took until now.
    pub fn took(&self) -> Took {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, requests: u64, usage: Usage, charged: Amount) {
        let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
        took.requests += requests;
        took.usage.add(usage);
        took.charged.add(charged);
    }
}

impl MeteredRequest<'_> {
    /// Ends it with what it took, as far as that is known.
    pub fn settle(mut self, usage: &Usage) {
        if let Some(reservation) = self.reservation.take() {
            self.meter.count(0, *usage, Amount::settled(reservation.amount(), usage));
            reservation.settle(usage);
        }
    }
}

impl Drop for MeteredRequest<'_> {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.meter.count(0, Usage::default(), reservation.amount());
        }
    }
}
