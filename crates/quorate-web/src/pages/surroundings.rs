//! What the page of a run shows besides the run's report.

use super::live_run::LiveView;

/// What a page shows besides the report.
pub(super) struct Surroundings {
    /// How far an open run is.
    pub(super) live: Option<LiveView>,
    /// Whether a process works on it: an open run, or an incomplete one that is resumed.
    pub(super) is_driven: bool,
    /// The decided run before it on the same artifact.
    pub(super) previous: Option<String>,
}
