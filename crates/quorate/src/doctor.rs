//! Whether everything that a review needs is in place, and which models an executor has.

use std::time::Duration;

pub use super::service::doctor::{CheckStatus, Diagnosis, DoctorCheck, DoctorRequest};

use super::builder::Quorate;
use super::error::Error;
use super::service::{doctor, models};

impl Quorate {
    /// Checks the configuration, the executors, the playbooks and the ledger. It calls each executor once, with a harmless
    /// text.
    ///
    /// # Errors
    /// If the configuration is refused; every other problem is a check.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let dir = tempfile::tempdir()?;
    /// use quorate::Quorate;
    ///
    /// let quorate = Quorate::builder().workspace(dir.path()).build()?;
    /// let diagnosis = quorate.doctor(Default::default()).await?;
    /// assert!(diagnosis.checks.iter().any(|check| check.name == "ledger"));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).map_err(|error| error.to_string())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[crate::boxed]
    pub async fn doctor(&self, request: DoctorRequest) -> Result<Diagnosis, Error> {
        doctor::doctor(&self.environment, &self.places, request).await
    }

    /// The models of an executor: a table of `quorate.toml`, a preset or an address. `timeout` limits the whole call.
    ///
    /// # Errors
    /// If the executor is unknown, its key is missing, it cannot list models, or the service does not answer.
    #[crate::boxed]
    pub async fn models(&self, executor: &str, timeout: Duration) -> Result<Vec<String>, Error> {
        models::models(&self.environment, &self.places, executor, timeout).await
    }
}
