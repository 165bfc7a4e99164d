//! What the page of a run shows besides the run's report.

use super::live_run::LiveView;

/// What a page shows besides the report.
pub(super) struct Surroundings {
    /// How far an open run is.
    pub(super) live: Option<LiveView>,
    /// The decided run before it on the same artifact.
    pub(super) previous: Option<String>,
}
