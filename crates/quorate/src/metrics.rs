//! Metrics of appends, calls and the queue. They go to the recorder that the program installs (crate `metrics`).

#[cfg(feature = "postgres")]
use std::convert::Infallible;

use super::builder::Quorate;
use super::service::environment::Environment;

pub use super::service::metrics::{APPEND_SECONDS, describe};

impl Quorate {
    /// The same workspace, whose appends and calls are measured.
    #[must_use]
    pub fn metered(&self) -> Quorate {
        let environment = Environment { is_metered: true, ..self.environment.clone() };
        Quorate { environment, held: None, ..self.clone() }
    }

    /// Counts the tasks of the workspace's queue every few seconds, until the future is dropped; counts nothing if the
    /// workspace is not metered or has no queue.
    #[cfg(feature = "postgres")]
    pub async fn count_queue(&self) -> Infallible {
        super::service::metrics::queue::count_of_workspace(&self.environment, &self.places).await
    }
}
